"""Plans a slate: chooses the route from how many slates are wanted and whether similarity is public.

A plan is a function of public parameters: neither the choice nor an error reveals anything about a rating. `plan` is the entry;
`each_of` shares a budget among several releases; the last part explains a plan in words, when somebody asks for `Plan.why`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Literal, get_args

from tacit.checks import member, positive, probability, whole
from tacit.curator.private_slates.routes import (
    FEATURED,
    ONCE,
    Floats,
    Options,
    Route,
    SetUp,
    likes_that_fit,
    promise,
    search_stages,
    set_up,
)
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, repeat, rho_of, tight
from tacit.guarantees.arithmetic import shown_up
from tacit.ledger import Accounting, Budget, Terms
from tacit.ledger.budgets import DELTA_DIGITS, MEASURES, allowance, price, shown
from tacit.mechanisms import GaussianKernel, LaplaceSum, NaturalSlate
from tacit.mechanisms.inputs import STEPS
from tacit.mechanisms.slates import Sampler, natural_epsilon
from tacit.messages.private_slates import MOST_KERNEL_ITEMS
from tacit.models.dpp.tempered import MOST_NATS

Which = Literal["public", "private"]
WORTH = 10.0  # counts need about ten times the epsilon of one tempered slate for slates as popular (MovieLens 1M)
_NEARLY = 1.0 - 1e-9  # two epsilons that differ by rounding are the same
_STEPS = 8  # towards the epsilon of a given rho: the first square root is nearly always right
_LEAST_SHARE = 2.0**-20  # of the share: if not even that fits, rounding is not the cause
_USERS = 5_000  # of the example figure: the real number of users is private


@dataclass(frozen=True, slots=True)
class Plan:
    """How slates are made, and what they promise: ``each`` release by itself, and all planned releases in ``total``.

    ``epsilon`` is that of each release. If ``most_likes`` is given, the cap at 40 nats may have lowered it, and the rest stays in
    the budget. For a route that releases once, ``each`` and ``total`` are that release.
    """

    route: Route
    epsilon: float
    each: Guarantee
    total: Guarantee
    request: "PlanRequest" = field(repr=False)
    by_name: bool = field(repr=False)  # the caller named the route
    uncapped: float = field(repr=False)  # the epsilon of each release before the cap

    @property
    def options(self) -> Options:
        """What is public about a slate besides its epsilon."""
        return self.request.options

    @property
    def k(self) -> int:
        """How many items a slate has."""
        return self.options.k

    @property
    def slates(self) -> int | None:
        """How many slates are planned; None for any number of them."""
        return self.request.slates

    @property
    def delta(self) -> float:
        """The delta of all slates together, a probability."""
        return self.request.delta

    @property
    def why(self) -> str:
        """Why this route was chosen, and what its figures mean, in words."""
        return explain(self)

    @property
    def once(self) -> bool:
        """Whether one release serves all slates, so that it is charged once."""
        return self.route in ONCE

    def set_up(self, features: Floats | None, request: Floats | None = None) -> SetUp:
        """Checks features and request, and gives back what takes the likes and draws (see `routes.set_up`)."""
        return set_up(self.route, self.options, self.epsilon, self.delta, features, request)

    def __str__(self) -> str:
        return f"{self.route}: {self.why}\n  each: {self.each}\n  total: {self.total}"


def plan(
    k: int = 10,
    epsilon: float = 1.0,
    slates: int | None = 1,
    *,
    items: int,
    similarity: Which = "public",
    delta: float = 0.0,
    route: Route | str = "auto",
    rank: int | None = None,
    accounting: Accounting | str | None = None,
    most_likes: float | None = None,
    likes_each: float = 20.0,
    candidates: int | None = None,
    threshold: int | None = None,
    sampler: Sampler | None = None,
) -> Plan:
    """A plan for ``slates`` slates of ``k`` out of ``items`` items (None: any number), which cost (``epsilon``, ``delta``) in all.

    ``rank`` is that of the public features, if similarity is public (None: at least k). ``accounting`` is how the ledger adds
    charges up: "basic", "zcdp", or None for the better of the two. ``route`` names a route instead of the automatic choice.
    ``epsilon`` is in nats, ``delta`` a probability. At most ``most_likes`` likes of an item and ``likes_each`` likes of a person
    count.
    """
    options = Options(items, k, most_likes, likes_each, candidates, threshold, sampler)
    request = PlanRequest(
        options,
        positive("epsilon", epsilon),
        0.0 if type(delta) in (int, float) and delta == 0 else countable(probability("delta", delta)),
        None if slates is None else whole("slates", slates, least=1),
        None if accounting is None else member("accounting", Accounting, accounting),
        None if rank is None else whole("rank", rank, least=0),
    )
    if similarity not in get_args(Which):
        raise InvalidParameter(f"similarity must be 'public' or 'private', not {similarity!r}.")
    if request.accounting is Accounting.PLD:
        raise InvalidParameter("slates of several kinds add up by 'basic' or 'zcdp', not by 'pld'.")
    chosen = request.choose(similarity == "public") if route == "auto" else member("route", Route, route)
    return request.plan(chosen, by_name=route != "auto")


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The parameters of `plan`, checked."""

    options: Options
    epsilon: float
    delta: float
    slates: int | None
    accounting: Accounting | None
    rank: int | None

    def choose(self, public: bool) -> Route:
        """The route for public or private similarity."""
        if not public:
            return Route.KERNEL if self.slates is None else Route.NATURAL
        if self.slates is None:
            return Route.COUNTS
        by_likes = Route.TOP_K if self.rank is not None and self.options.k > self.rank else Route.TEMPERED
        # Tempered slates have about the same noise as counts if each gets a tenth of the epsilon of the counts.
        return by_likes if WORTH * self.each(by_likes) >= _NEARLY * self.each(Route.COUNTS) else Route.COUNTS

    def plan(self, route: Route, *, by_name: bool) -> Plan:
        """The plan for this route."""
        self._require_features(route)
        uncapped = epsilon = self.each(route)
        each = promise(route, self.options, self.delta)(epsilon)
        if route is Route.TEMPERED and each.epsilon > 0.0:
            epsilon = each.epsilon  # the cap at 40 nats may have lowered it
        total = together(each, 1 if route in ONCE else self.slates or 1, self.delta)
        return Plan(route, epsilon, each, total, self, by_name, uncapped)

    def each(self, route: Route) -> float:
        """The largest epsilon of each release that keeps all of them within (epsilon, delta), before the cap."""
        if self.accounting is not None:
            return self.each_under(self.accounting, route)
        kinds = [Accounting.BASIC, Accounting.ZCDP] if self.delta else [Accounting.BASIC]
        return max(self.each_under(kind, route) for kind in kinds)

    def each_under(self, accounting: Accounting, route: Route) -> float:
        """The same, if charges add up by this accounting."""
        times, options = 1 if route in ONCE else self.slates or 1, self.options
        if route is Route.TEMPERED and options.most_likes is not None:
            # A range so narrow that 40 nats are never reached. Without ``most_likes`` no cap applies: a search sets the range.
            options = replace(options, most_likes=1e-300)
        return each_of(promise(route, options, self.delta), times, Budget(self.epsilon, self.delta), accounting)

    def _require_features(self, route: Route) -> None:
        k, rank = self.options.k, self.rank
        if rank is None or route not in FEATURED or route is Route.SPARSE:
            return
        if rank == 0:
            raise InvalidParameter(f"the route {route.value!r} needs public features, and there are none.")
        if route is Route.TEMPERED and k > rank:
            raise InvalidParameter(
                f"features of rank {rank} make a tempered slate of at most {rank} items, not {k}: ask for fewer items, for the "
                "route 'counts' or 'top-k', or give features that tell more items apart."
            )


def together(each: Guarantee, slates: int, delta: float) -> Guarantee:
    """``slates`` releases under ``each``: added up, or at ``delta`` by their ranges (rho = T eta^2 / 8), whichever is less."""
    basic = repeat(each, slates)
    if not delta or basic.promises_nothing or each.epsilon == 0.0 or each.delta:
        return basic
    ranged = tight({each: slates}, delta, "zcdp")
    return ranged if ranged.epsilon < basic.epsilon else basic


def each_of(promise: Callable[[float], Guarantee], times: int, budget: Budget, accounting: Accounting) -> float:
    """The epsilon at which ``times`` charges under ``promise(epsilon)`` fit into ``budget`` as a ledger adds them up.

    The ledger rounds every charge up to its units, so a plain epsilon / times could leave the last charge without room. Ten times
    the float 0.1 is more than 1; under basic accounting, the sum stays within the budget in whole numbers and in floats.
    """
    terms = Terms.of(budget, ONE_USER, accounting)
    allowed = allowance(budget, terms)
    share = float(shown(allowed.amount // times, MEASURES[accounting][1]))
    if share == 0.0:
        raise _no_room(times, budget)

    def fits(epsilon: float) -> bool:
        each = promise(epsilon)
        if accounting is Accounting.BASIC and Fraction(each.epsilon) * times > Fraction(budget.epsilon):
            return False
        cost = price(each, terms)
        return cost.amount * times <= allowed.amount and cost.delta * times <= allowed.delta

    nominal = promise(budget.epsilon)
    if nominal.promises_nothing or nominal.epsilon == 0.0:  # nothing to add up: a nominal figure
        return budget.epsilon / times
    start = share if accounting is Accounting.BASIC else _of_rho(promise, share, budget.epsilon)
    epsilon, less = start, 2.0**-53
    while not fits(epsilon):
        epsilon, less = epsilon * (1.0 - less), min(0.5, 2.0 * less)
        if epsilon < _LEAST_SHARE * start:
            raise _no_room(times, budget)
    return epsilon


def countable(delta: float) -> float:
    """``delta`` to twelve digits, rounded down. The ledger counts delta in units of 10^-18 and rounds charges up."""
    digits = Context(prec=12, rounding=ROUND_FLOOR).create_decimal(repr(delta))
    kept = digits.quantize(Decimal((0, (1,), -DELTA_DIGITS)), rounding=ROUND_FLOOR)
    return float(kept) if kept > 0 else delta


def _no_room(times: int, budget: Budget) -> InvalidParameter:
    return InvalidParameter(
        f"{times:,} slates have no share in {budget}: ask for fewer slates, or give a larger budget."
    )


def _of_rho(promise: Callable[[float], Guarantee], rho: float, most: float) -> float:
    """About the epsilon whose rho is ``rho``. Rho grows with the square of epsilon; for some routes only nearly."""
    epsilon = most
    for _ in range(_STEPS):
        better = min(most, epsilon * math.sqrt(rho / rho_of(promise(epsilon))))
        if abs(better - epsilon) <= 1e-14 * epsilon:
            break
        epsilon = better
    return epsilon


# ---- A plan in words. Every figure follows from public parameters.


def explain(plan: Plan) -> str:
    """The plan in words."""
    route = f"asked for by name. {_named_route(plan)}" if plan.by_name else _chosen_route(plan)
    return " ".join(part for part in (route, _accounting(plan), _figures(plan), _total(plan)) if part)


def _accounting(plan: Plan) -> str:
    """What another accounting would give, if the ledger's zCDP gives each slate less than basic composition."""
    request = plan.request
    if request.accounting is not Accounting.ZCDP:
        return ""
    basic = request.each_under(Accounting.BASIC, plan.route)
    if plan.uncapped >= _NEARLY * basic:
        return ""
    release = "the release" if plan.route in ONCE else "the slate" if plan.slates == 1 else "each slate"
    other = "" if plan.route is Route.KERNEL else " or a budget without delta"
    return (
        f"Charges add up by zCDP, and epsilon {request.epsilon:.4g} at delta = {plan.delta:g} has room for {plan.uncapped:.4g} "
        f"for {release}; accounting='basic'{other} would give {basic:.4g}."
    )


def _named_route(plan: Plan) -> str:
    match plan.route:
        case Route.FEATURE:
            return "Natural slates, for tastes described by a few public features of the items."
        case Route.TOP_K:
            return "Popularity alone: nothing makes the items of a slate differ."
        case Route.TWO_STAGE:
            kept = plan.options.kept(Route.TWO_STAGE)
            return f"Half of epsilon keeps the {kept} most liked items (Gumbel noise), half draws a natural slate among them."
        case Route.SPARSE:
            kept, threshold = plan.options.kept(Route.SPARSE), _likes(float(plan.options.threshold or 0))
            return (
                f"Up to {kept} items with about {threshold} or more are found, in a random order of items. Public features choose "
                "among them at no cost. If too few are found, others fill the slate uniformly."
            )
        case Route.SUBSET:
            return (
                f"The unconstrained process: how many items there are is drawn, too, and k = {plan.options.k} is not used. It "
                "draws more than n sigma / (1 + sigma) of n items, so use it for short lists."
            )
        case Route.PUBLISHED:
            return "The paper's bound, for comparison."
    return _usual_route(plan)


def _chosen_route(plan: Plan) -> str:
    number = "any number of slates is" if plan.slates is None else _count(plan.slates)
    number += {None: "", 1: " is"}.get(plan.slates, " are")
    match plan.route:
        case Route.TEMPERED | Route.COUNTS:
            return f"similarity is public, and {number} wanted. {_usual_route(plan)}"
        case Route.TOP_K:
            return (
                f"similarity is public, but the rank of the features is below {plan.options.k}, so they cannot tell that many "
                "items apart. Popularity alone decides."
            )
        case _:
            return f"similarity is private, and {number} wanted. {_usual_route(plan)}"


def _usual_route(plan: Plan) -> str:
    match plan.route:
        case Route.TEMPERED:
            return "Each slate is drawn by likes and public features; counts would need about ten times the epsilon of a slate."
        case Route.COUNTS:
            return "Noisy counts are released once; after that, every slate from them and the public features is free."
        case Route.NATURAL:
            return "Each slate is drawn by which items the same people like; the other slots are left to chance."
        case _:
            return "The kernel is released once, with Gaussian noise; after that, every slate from it is free."


def _figures(plan: Plan) -> str:
    options, epsilon = plan.options, plan.epsilon
    if plan.total.epsilon == 0.0:
        return "The slate holds all items, so there is nothing to draw, and it costs nothing."
    match plan.route:
        case Route.TEMPERED:
            return _search_figures(plan) if options.most_likes is None else _range_figures(plan, options.most_likes)
        case Route.COUNTS:
            steps = LaplaceSum(options.items, options.likes_each, epsilon).noise_law.width
            scale = float(steps) * options.likes_each / STEPS
            return f"Of each person up to {_likes(options.likes_each)} count; the noise has scale {scale:.4g} likes."
        case Route.NATURAL:
            return _jitter_figures(plan)
        case Route.KERNEL:
            on, off = (law.sd for law in GaussianKernel(options.items, epsilon, plan.delta).noise_laws)
            return f"The noise has a deviation of {on:.4g} on the diagonal and {off:.4g} off it."
        case Route.PUBLISHED:
            slate = NaturalSlate.published(options.items, options.k, epsilon)
            return (
                f"It asks for a jitter of {slate.sigma:.4g} at epsilon {epsilon:.4g} and covers the eigenvalue step only: it "
                "promises nothing, and a ledger refuses it unless `unprotected` names 'published'. The proved bound for this "
                f"jitter is epsilon = {shown_up(slate.proved.epsilon, 4)} for the whole draw."
            )
    return f"Epsilon is {epsilon:.4g} for each slate."


def _range_figures(plan: Plan, high: float) -> str:
    k, epsilon, uncapped = plan.options.k, plan.epsilon, plan.uncapped
    text = f"A score counts up to {_likes(high)}, each worth theta = {epsilon / k:.4g} nats (epsilon / k)."
    if epsilon < uncapped:
        text += (
            f" Epsilon {uncapped:.4g} would make {uncapped / k * high:.4g} nats of {_likes(high)}, and floats draw correctly only "
            f"up to {MOST_NATS:g} nats: epsilon is {shown_up(epsilon, 4)} instead, and the rest is not spent."
        )
    return text


def _search_figures(plan: Plan) -> str:
    k, stages = plan.options.k, search_stages(plan.options.k, plan.epsilon)
    if stages is None:
        return f"A like is worth theta = {plan.epsilon / k:.4g} nats (epsilon / k)."
    left = stages[2]
    return (
        f"A tenth of epsilon finds out up to how many likes count; with the rest a like is worth theta = {left / k:.4g} nats. "
        f"If that is more than {_likes(likes_that_fit(k, left))}, they would exceed {MOST_NATS:g} nats, beyond which floats do not "
        "draw correctly: theta is lowered, and part of epsilon is not used. Give `most_likes`, a public number, to spend less."
    )


def _jitter_figures(plan: Plan) -> str:
    items, k, epsilon = plan.options.items, plan.options.k, plan.epsilon
    sigma = NaturalSlate(items, k, epsilon).sigma
    cost = natural_epsilon(1.0, sigma)
    text = f"The jitter is sigma = {sigma:.4g}, for which the whole draw costs log(1 + 1/sigma) = {cost:.4g}"
    if f"{cost:.4g}" != f"{epsilon:.4g}":
        text += f" (sigma is rounded up to whole steps of 2^-32, so not all of epsilon = {epsilon:.4g} is of use)"
    text += f"; the paper's bound would ask for {NaturalSlate.published(items, k, epsilon).sigma:.4g}."
    if plan.slates is not None and plan.slates > 1:
        uniform = items / (items + _USERS / sigma)  # the jitter's share of the trace; 1/sigma = e^epsilon - 1
        text += (
            f" Each gets epsilon {epsilon:.4g}: with N users, about n / (n + N (e^epsilon - 1)) of a slate from n = {items:,} "
            f"items is uniform, {uniform:.2g} of it for {_USERS:,} users. The route 'kernel' (up to {MOST_KERNEL_ITEMS:,} items, "
            "with a delta) pays once for any number of slates."
        )
    return text


def _total(plan: Plan) -> str:
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
