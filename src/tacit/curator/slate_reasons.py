"""Why a route was chosen and what its figures are, in words. Every figure follows from public parameters."""

from typing import Protocol

from tacit.curator.slate_ceiling import room, stages
from tacit.curator.slate_routes import ONCE, Options, Route
from tacit.guarantees import Guarantee
from tacit.guarantees.rounding import shown_up
from tacit.guarantees.slate_bounds import natural_epsilon
from tacit.mechanisms import GaussianKernel, LaplaceSum, NaturalSlate
from tacit.mechanisms.grid import STEPS
from tacit.messages.private_slates_grid import MOST_KERNEL_ITEMS
from tacit.models.dpp.tempered import MOST_NATS

_USERS = 5_000  # for which a figure is given as an example: how many there are is private


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


def reason(plan: Planned, wished: float, by_name: bool, asked: float, added_up: float | None) -> str:
    """``wished`` is the epsilon of each slate before the cap, of ``asked`` in all; ``added_up`` what it would be without zCDP."""
    first = f"asked for by name. {_asked(plan)}" if by_name else _chosen(plan)
    account = "" if added_up is None else _accounting(plan, wished, asked, added_up)
    return " ".join(part for part in (first, account, _figures(plan, wished), _together(plan)) if part)


def _accounting(plan: Planned, wished: float, asked: float, added_up: float) -> str:
    one = "the release" if plan.route in ONCE else "the slate" if plan.slates == 1 else "each slate"
    other = "" if plan.route is Route.KERNEL else " or a budget without delta"
    return (
        f"Charges add up by zCDP, and epsilon {asked:.4g} at delta = {plan.delta:g} has room for {wished:.4g} for {one}; "
        f"accounting='basic'{other} would give {added_up:.4g}."
    )


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
            kept, threshold = plan.options.kept(Route.SPARSE), _likes(float(plan.options.threshold or 0))
            return (
                f"Up to {kept} items with about {threshold} or more are found, in a random order of items; public features "
                "choose among these at no cost. Where too few are found, others fill the slate uniformly."
            )
        case Route.SUBSET:
            return (
                f"The unconstrained process: how many items there are is drawn, too, and k = {plan.options.k} is not used. Of n "
                "items it draws more than n sigma / (1 + sigma), so it is for short lists."
            )
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
    if plan.total.epsilon == 0.0:
        return "All items are in it, so there is nothing to draw, and it costs nothing."
    match plan.route:
        case Route.TEMPERED:
            return _searched(plan) if options.most_likes is None else _tempered(plan, wished, options.most_likes)
        case Route.COUNTS:
            steps = LaplaceSum(options.items, options.likes_each, epsilon).scale_in_steps
            scale = float(steps) * options.likes_each / STEPS
            return f"Of each person up to {_likes(options.likes_each)} count; the noise has scale {scale:.4g} likes."
        case Route.NATURAL:
            return _natural(plan)
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


def _tempered(plan: Planned, wished: float, high: float) -> str:
    k, epsilon = plan.options.k, plan.epsilon
    text = f"A score counts up to {_likes(high)}, each worth theta = {epsilon / k:.4g} nats (epsilon / k)."
    if epsilon < wished:
        text += (
            f" Epsilon {wished:.4g} would make {wished / k * high:.4g} nats of {_likes(high)}, and floats draw every slate "
            f"rightly up to {MOST_NATS:g}: epsilon is {shown_up(epsilon, 4)} instead, and the rest is not spent."
        )
    return text


def _searched(plan: Planned) -> str:
    k, found = plan.options.k, stages(plan.options.k, plan.epsilon)
    if found is None:
        return f"A like is worth theta = {plan.epsilon / k:.4g} nats (epsilon / k)."
    left = found[2]
    return (
        f"A tenth of epsilon finds out up to how many likes count; with the rest a like is worth theta = {left / k:.4g} nats. "
        f"Where that is more than {_likes(room(k, left))}, they would exceed {MOST_NATS:g} nats, beyond which floats do not draw "
        "every slate rightly: theta is lowered, and part of epsilon is not used. Give `most_likes`, a public number, to spend less."
    )


def _natural(plan: Planned) -> str:
    items, k, epsilon = plan.options.items, plan.options.k, plan.epsilon
    sigma = NaturalSlate(items, k, epsilon).sigma
    cost = natural_epsilon(1.0, sigma)
    text = f"The jitter is sigma = {sigma:.4g}, for which the whole draw costs log(1 + 1/sigma) = {cost:.4g}"
    if f"{cost:.4g}" != f"{epsilon:.4g}":
        text += f" (it is rounded up to whole steps of 2^-32, so that not all of epsilon = {epsilon:.4g} is of use)"
    text += f"; the paper's bound would ask for {NaturalSlate.published(items, k, epsilon).sigma:.4g}."
    if plan.slates is not None and plan.slates > 1:
        uniform = items / (items + _USERS / sigma)  # the jitter's share of the trace; 1/sigma = e^epsilon - 1
        text += (
            f" Each gets epsilon {epsilon:.4g}: with N users about n / (n + N (e^epsilon - 1)) of a slate from n = {items:,} items "
            f"is uniform, {uniform:.2g} of it for {_USERS:,} users. The route 'kernel' (up to {MOST_KERNEL_ITEMS:,} items, with a "
            "delta) pays once for any number of slates."
        )
    return text


def _together(plan: Planned) -> str:
    total = plan.total
    if plan.slates in (None, 1) or plan.route in ONCE or total.promises_nothing or total.epsilon == 0.0:
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


def _likes(count: float) -> str:
    return "1 like" if count == 1.0 else f"{count:,.0f} likes" if count.is_integer() else f"{count:,g} likes"
