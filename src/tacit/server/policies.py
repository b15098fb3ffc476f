"""Which candidates of an auction are offered, and by which policy a device is to choose: from public data alone."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from tacit.checks import finite, positive, whole
from tacit.errors import InvalidParameter
from tacit.messages.private_selection import MOST_CANDIDATES, MOST_EPSILON, Candidate, Policy, Rule
from tacit.messages.private_selection_policy import MOST_SLOTS
from tacit.models.policy_choice import Spread, choose
from tacit.server.listings import Priced
from tacit.server.population import Population

AUTO = "auto"
_GAMMA_OF_RR = 0.8
_USUAL_EPSILON = 1.0
_MICRO = 1e6


class View(NamedTuple):
    """What everybody is offered who asks in the same context: one value, the same for all of them."""

    policy: Policy
    candidates: tuple[Candidate, ...]
    prices: tuple[int, ...]  # micro-units; they stay on the server

    @property
    def items(self) -> tuple[str, ...]:
        """The candidates' items, in the order of their public scores."""
        return tuple(one.item for one in self.candidates)


class PolicyMaker:
    """From an auction to a View. ``policy`` is "auto", "rr", "public", or a Policy whose m is the most to be offered.

    Where there is money and no ``spread`` is given, `auto` takes the usual one, Spread(): a sigma of 1 in log odds.
    """

    def __init__(
        self,
        policy: str | Policy,
        *,
        epsilon: float | None,
        spread: Spread | Population | None,
        gamma: float | None,
        slots: int,
        most_d: int,
        with_money: bool,
    ) -> None:
        self.slots = whole("slots", slots, least=1, most=MOST_SLOTS)
        self.most_d = whole("most_d", most_d, least=1)
        if epsilon is not None and isinstance(policy, Policy) and epsilon != policy.epsilon:
            raise InvalidParameter("the policy has its own epsilon: leave it out, or say the same.")
        self.epsilon = positive("epsilon", _USUAL_EPSILON if epsilon is None or isinstance(policy, Policy) else epsilon)
        if self.epsilon > MOST_EPSILON:
            raise InvalidParameter(f"epsilon is at most {MOST_EPSILON:g}; a larger one promises nothing.")
        self.fixed = _template(policy, self.epsilon, self.slots)
        if self.fixed is not None:
            self.slots = self.fixed.slots
        if self.slots > 1 and self.most_d > 1:
            raise InvalidParameter("only one slot has a d above 1.")
        if spread is None and self.fixed is None and not with_money:
            raise InvalidParameter(
                "`auto` has to know how far private scores lie from public ones, in units of quality: for example "
                "spread=Spread(0.5, 'normal')."
            )
        self.spread, self.with_money = spread or Spread(), with_money
        usual = _GAMMA_OF_RR if self.fixed is not None and self.fixed.rule is Rule.RR else 1.0
        self.gamma = finite("gamma", usual if gamma is None else gamma)
        if not 0.0 <= self.gamma <= 1.0:
            raise InvalidParameter(f"gamma must lie from 0 to 1, not {gamma!r}.")
        self._cut = 1 - Fraction(Decimal(repr(self.gamma)))

    def view(self, priced: Priced) -> View | None:
        """What is offered of an auction; None where there is nothing to offer."""
        close = self._close(priced)
        if close == 0:
            return None
        return _view(priced, self._auto(priced, close) if self.fixed is None else _fitted(self.fixed, close))

    @property
    def public(self) -> bool:
        """Whether only what is publicly best is ever shown."""
        return self.fixed is not None and self.fixed.rule is Rule.PUBLIC

    def uniform(self, priced: Priced, most: int) -> View:
        """The same auction: of all eligible listings the ``most`` publicly best, chosen uniformly."""
        return _view(priced, Policy(Rule.UNIFORM, min(most, len(priced.items))))

    def _close(self, priced: Priced) -> int:
        """How many have a score of at least (1 - gamma) times the best; with money in whole numbers, to the last digit."""
        if not priced.items or self._cut == 0:
            return len(priced.items)
        if priced.exact is not None:
            least = ceil(self._cut * priced.exact[0])
            return sum(score >= least for score in priced.exact)
        if priced.scores[-1] < 0.0:
            raise InvalidParameter("a gamma below 1 needs qualities of at least 0: it keeps a share of the best.")
        return int(np.count_nonzero(priced.scores >= float(self._cut) * priced.scores[0]))

    def _auto(self, priced: Priced, close: int) -> Policy:
        bids = np.array(priced.bids[:close]) / _MICRO if self.with_money else None
        # Peeling: each slot is a choice of its own, at its share of epsilon (for several slots a rule of thumb).
        prior = self.spread.tastes(priced.items[:close]) if isinstance(self.spread, Population) else self.spread
        best = choose(priced.scores[:close], prior, self.epsilon / self.slots, bids=bids, most_d=self.most_d)
        slots = min(self.slots, close)
        if best.m <= slots:
            return Policy(Rule.PUBLIC, slots, slots=slots)
        return Policy(Rule.RR, best.m, self.epsilon, best.d, slots)


def _fitted(policy: Policy, close: int) -> Policy:
    """The given policy for as many candidates as there are; d stays the same share of them."""
    m = min(policy.m, close)
    slots = min(policy.slots, m)
    # An envelope has one floor for each candidate: it fits all of them or none.
    if m == 1 or (policy.floors is not None and m < policy.m):
        return Policy(Rule.PUBLIC, m, slots=slots)
    return replace(policy, m=m, d=max(1, policy.d * m // policy.m), slots=slots)


def _template(policy: str | Policy, epsilon: float, slots: int) -> Policy | None:
    if isinstance(policy, Policy):
        if slots not in (1, policy.slots):
            raise InvalidParameter("the policy has its own slots: leave them out, or say the same.")
        return policy
    if policy == AUTO:
        return None
    if policy == Rule.PUBLIC:
        return Policy(Rule.PUBLIC, slots, slots=slots)  # nothing but the publicly best can be shown
    if policy == Rule.RR:
        return Policy(Rule.RR, MOST_CANDIDATES, epsilon, slots=slots)
    raise InvalidParameter("a policy is 'auto', 'rr', 'public', or a Policy.")


def _view(priced: Priced, policy: Policy) -> View:
    m = policy.m
    return View(
        policy,
        tuple(
            Candidate(item, score, bid)
            for item, score, bid in zip(priced.items[:m], priced.scores[:m].tolist(), priced.bids[:m], strict=True)
        ),
        priced.prices[:m],
    )
