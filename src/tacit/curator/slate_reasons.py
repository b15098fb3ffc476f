"""Why a route was chosen and what its figures are, in words. Every figure follows from public parameters."""

from typing import Protocol

from tacit.curator.slate_routes import Options, Route
from tacit.guarantees import Guarantee
from tacit.guarantees.rounding import shown_up
from tacit.mechanisms import GaussianKernel, LaplaceSum, NaturalSlate
from tacit.models.dpp.tempered import MOST_NATS


class Planned(Protocol):
    """The plan, as far as words are made of it."""

    @property
    def route(self) -> Route: ...
    @property
    def options(self) -> Options: ...
    @property
    def slates(self) -> int | None: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def total(self) -> Guarantee: ...


def reason(plan: Planned, wished: float, by_name: bool) -> str:
    """``wished`` is the epsilon of each slate before the cap."""
    first = f"asked for by name. {_asked(plan)}" if by_name else _chosen(plan)
    return " ".join(part for part in (first, _figures(plan, wished), _together(plan)) if part)


def _asked(plan: Planned) -> str:
    match plan.route:
        case Route.FEATURE:
            return "Natural, for tastes that are few public features of the items."
        case Route.TOP_K:
            return "Popularity alone: nothing makes the items differ."
        case Route.TWO_STAGE:
            kept = plan.options.kept(Route.TWO_STAGE)
            return (
                f"Half of epsilon keeps the {kept} most liked items (Gumbel), half draws a natural slate among these."
            )
        case Route.SPARSE:
            kept, threshold = plan.options.kept(Route.SPARSE), plan.options.threshold
            return (
                f"Up to {kept} items with about {threshold} likes or more are found, in a random order of items; public features "
                "choose among these at no cost. Where too few are found, others fill the slate uniformly."
            )
        case Route.SUBSET:
            return "The unconstrained process: of n items it draws more than n sigma / (1 + sigma), so it is for short lists."
        case Route.PUBLISHED:
            return "The paper's bound, for comparison."
    return _kind(plan)


def _chosen(plan: Planned) -> str:
    number = "any number of slates is" if plan.slates is None else _count(plan.slates)
    number += {None: "", 1: " is"}.get(plan.slates, " are")
    match plan.route:
        case Route.TEMPERED | Route.COUNTS:
            return f"similarity is public, and {number} wanted. {_kind(plan)}"
        case Route.TOP_K:
            return (
                f"similarity is public, but the features cannot tell {plan.options.k} items apart: their rank is less. So "
                "popularity alone decides."
            )
        case _:
            return f"similarity is private, and {number} wanted. {_kind(plan)}"


def _kind(plan: Planned) -> str:
    match plan.route:
        case Route.TEMPERED:
            return "Each is drawn by its likes and the public features; counts would need about ten times the epsilon of a slate."
        case Route.COUNTS:
            return "Noisy counts are released once; every slate from them and the public features is then free."
        case Route.NATURAL:
            return "Each is drawn by who likes what together, with the rest of the slots left to chance."
        case _:
            return "The kernel is released once, with Gaussian noise; every slate from it is then free."


def _figures(plan: Planned, wished: float) -> str:
    options, epsilon = plan.options, plan.epsilon
    match plan.route:
        case Route.TEMPERED:
            high = options.high(wished)
            text = (
                f"A score counts up to {high:g} likes, each worth theta = {epsilon / options.k:.4g} nats (epsilon / k)."
            )
            if epsilon < wished:
                nats = wished / options.k * high
                text += (
                    f" Epsilon {wished:.4g} would make {nats:.4g} nats of {high:g} likes, and floats draw every slate rightly up "
                    f"to {MOST_NATS:g}: epsilon is {shown_up(epsilon, 4)} instead, and the rest is not spent."
                )
            return text
        case Route.COUNTS:
            scale = (
                float(LaplaceSum(options.items, options.likes_each, epsilon).scale_in_steps)
                * options.likes_each
                / 2**20
            )
            return f"Of each person up to {options.likes_each:g} likes count; the noise has scale {scale:.4g} likes."
        case Route.NATURAL:
            proved = NaturalSlate(options.items, options.k, epsilon)
            published = NaturalSlate.published(options.items, options.k, epsilon)
            return (
                f"The jitter is sigma = {proved.sigma:.4g}, for which the whole draw costs log(1 + 1/sigma) = {epsilon:.4g}; the "
                f"paper's bound would ask for {published.sigma:.4g}."
            )
        case Route.KERNEL:
            on, off = GaussianKernel(options.items, epsilon, plan.delta).sds
            return f"The noise has a deviation of {on:.4g} on the diagonal and {off:.4g} off it."
        case Route.PUBLISHED:
            one = NaturalSlate.published(options.items, options.k, epsilon)
            return (
                f"It asks for a jitter of {one.sigma:.4g} at epsilon {epsilon:.4g} and covers the eigenvalue step only: it "
                f"promises nothing, and a ledger refuses it unless 'published' is named. What is proved of this jitter is epsilon "
                f"= {shown_up(one.proved.epsilon, 4)} for the whole draw."
            )
    return f"Epsilon is {epsilon:.4g} for each slate."


def _together(plan: Planned) -> str:
    total = plan.total
    if plan.slates in (None, 1) or plan.route in (Route.COUNTS, Route.KERNEL) or total.promises_nothing:
        return ""
    added = shown_up((plan.slates or 1) * plan.epsilon, 4)
    if total.delta:
        return (
            f"{_count(plan.slates or 1)} cost epsilon = {shown_up(total.epsilon, 4)} at delta = {total.delta:g} together, by the "
            f"range of their losses; added up they would cost {added}."
        )
    return f"{_count(plan.slates or 1)} cost {added} together."


def _count(slates: int) -> str:
    return "one slate" if slates == 1 else f"{slates:,} slates"
