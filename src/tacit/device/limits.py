"""The limits that the owner of a device sets, whatever a server's offers say. Every limit acts on public data only."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from tacit.checks import finite, keep, member, positive, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_PROFILE, Guarantee, Neighbours, pure
from tacit.ledger import Budget, Period, Terms
from tacit.mechanisms import Noise
from tacit.messages.private_selection import MOST_EPSILON, Rule

MOST_SERVER = 60  # characters of a server's name
GREEDY = "the privately best item is shown, without noise: the owner of this device said non_private"
PRIVATE_RULES = frozenset(Rule) - {Rule.GREEDY}
_MOST_WINDOW = 82_800  # seconds: a display is kept for 24 hours after its offer expires, which leaves an hour to report
_DAILY = Budget(10, per=Period.DAY, sliding=True)


@dataclass(frozen=True, slots=True)
class Limits:
    """What private selection may spend, and which of a server's policies the device follows.

    Each server has a ``budget`` of its own: with a common one, every server could see what the user does elsewhere. The losses
    of servers that pool their reports add up.

    ``most_epsilon`` is the most that one offer may cost. ``lifetime`` is an epsilon for ever, in addition to the budget of a
    period, because a daily budget bounds a day and not a life. ``non_private`` allows the rule `greedy`, which promises nothing;
    the ledger then records that. Clicks are reported with ``click_epsilon`` (None: never), ``click_window`` seconds after their
    offer expires.
    """

    budget: Budget = _DAILY
    most_epsilon: float = 1.0  # nats
    rules: frozenset[Rule] = PRIVATE_RULES
    non_private: bool = False
    lifetime: float | None = None  # nats
    click_epsilon: float | None = 1.0  # nats
    click_window: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.budget, Budget) or self.budget.delta:
            raise InvalidParameter("the budget of a server must be one Budget(epsilon, per=...) without a delta.")
        if type(self.non_private) is not bool:
            raise InvalidParameter("non_private must be True or False.")
        given: object = self.rules
        if isinstance(given, str) or not isinstance(given, Collection):
            raise InvalidParameter("rules must be a collection of names, such as {'public', 'rr'}.")
        rules = frozenset(member("a rule", Rule, rule) for rule in given)
        if Rule.GREEDY in rules and not self.non_private:
            raise InvalidParameter("the rule 'greedy' promises nothing: to allow it, set non_private=True.")
        keep(
            self,
            rules=rules | {Rule.GREEDY} if self.non_private else rules,
            most_epsilon=_epsilon("most_epsilon", self.most_epsilon),
            click_epsilon=None if self.click_epsilon is None else _epsilon("click_epsilon", self.click_epsilon),
            click_window=whole("click_window", self.click_window, least=0, most=_MOST_WINDOW),
        )
        if self.lifetime is not None:
            keep(self, lifetime=positive("lifetime", self.lifetime))
            if self.budget.per is Period.LIFETIME:
                raise InvalidParameter("the budget already covers a lifetime: leave `lifetime` out.")

    def terms(self, noise: Noise) -> Terms:
        """The terms of each server's account. They never change."""
        budgets = [self.budget] if self.lifetime is None else [self.budget, Budget(self.lifetime)]
        unprotected = [] if noise.caveat is None else [noise.caveat]
        return Terms.of(budgets, ONE_PROFILE, unprotected=[*unprotected, *([GREEDY] if self.non_private else [])])


@dataclass(frozen=True, slots=True)
class Overall:
    """One budget for everything that leaves the device: signals, choices and clicks, for all servers together.

    It protects features within ``radius`` of each other. With a smaller radius more signals fit, and features that are further
    apart are promised less. Once the budget is spent, every server can see that: what the user does at one server then shows at
    the others.
    """

    radius: float  # L1 distance of features
    budget: Budget = field(default_factory=lambda: replace(_DAILY))

    def __post_init__(self) -> None:
        keep(self, radius=positive("radius", self.radius))
        if not isinstance(self.budget, Budget) or self.budget.delta:
            raise InvalidParameter("the overall budget must be one Budget(epsilon, per=...) without a delta.")

    @property
    def protects(self) -> Neighbours:
        """Features within the radius, in L1 distance."""
        return Neighbours.features("L1", self.radius)

    def terms(self, noise: Noise, limits: Limits) -> Terms:
        """The terms of the overall account. They never change."""
        return Terms.of(self.budget, self.protects, unprotected=limits.terms(noise).unprotected)

    def restated(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee of a choice or click, for features within the radius.

        The given guarantee bounds the loss between *any* two private states of the device. The same epsilon therefore holds
        between two states whose features are near each other.
        """
        if guarantee.protects != ONE_PROFILE or not guarantee.is_pure:
            raise InvalidParameter("only a pure guarantee for the whole profile holds between any two feature vectors.")
        if guarantee.promises_nothing:
            return replace(guarantee, protects=self.protects)
        return pure(guarantee.epsilon, self.protects, proof=guarantee.proof, assumes=guarantee.assumes)


def _epsilon(name: str, value: float) -> float:
    if not 0.0 < finite(name, value) <= MOST_EPSILON:
        raise InvalidParameter(f"{name} must be above 0 and at most {MOST_EPSILON:g}.")
    return float(value)
