"""What the owner of a device allows the servers to ask of it, whatever their offers say. Every limit acts on public data only."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from tacit.checks import finite, keep, member, positive, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_PROFILE, Guarantee, Neighbours, pure
from tacit.ledger import Budget, Period, Terms
from tacit.ledger.names import name
from tacit.mechanisms import Noise
from tacit.messages.private_selection import MOST_EPSILON, Rule

MOST_SERVER = 60  # characters of a server's name
GREEDY = "the privately best item is shown, without noise: the owner of this device said non_private"
PRIVATE_RULES = frozenset(Rule) - {Rule.GREEDY}
_MOST_WINDOW = 82_800  # a display is kept for 24 hours after its offer has expired: an hour to report is left
_DAILY = Budget(10, per=Period.DAY, sliding=True)


@dataclass(frozen=True, slots=True)
class Limits:
    """``budget`` is for each server by itself: a common one would show every server what she does elsewhere. Servers that put
    their answers together add up.

    ``most_epsilon`` is the most that one offer may cost, ``lifetime`` an epsilon for ever beside the budget of a period: a day's
    budget bounds a day, not a life. ``non_private`` allows `greedy`, which promises nothing: the ledger then says so.
    A click is reported with ``click_epsilon`` (None: never), ``click_window`` seconds after its offer has expired.
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
            raise InvalidParameter("the budget of a server is one Budget(epsilon, per=...) without a delta.")
        if type(self.non_private) is not bool:
            raise InvalidParameter("non_private must be True or False.")
        rules = _rules(self.rules)
        if Rule.GREEDY in rules and not self.non_private:
            raise InvalidParameter("'greedy' promises nothing: it needs non_private=True, said openly.")
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
                raise InvalidParameter("the budget is for a lifetime already: leave out `lifetime`.")

    def terms(self, noise: Noise) -> Terms:
        """What is agreed with each server's subject, for good."""
        budgets = [self.budget] if self.lifetime is None else [self.budget, Budget(self.lifetime)]
        return Terms.of(budgets, ONE_PROFILE, unprotected=caveats(noise) + ((GREEDY,) if self.non_private else ()))


@dataclass(frozen=True, slots=True)
class Overall:
    """One budget for all that leaves: signals, choices and clicks, for whatever server, between features within ``radius``.

    The smaller the radius the more signals fit, and the less is promised to features that are further apart. When it is spent,
    every server sees that: what she does at one then shows at the others.
    """

    radius: float  # L1 distance of features
    budget: Budget = field(default_factory=lambda: replace(_DAILY))

    def __post_init__(self) -> None:
        keep(self, radius=positive("radius", self.radius))
        if not isinstance(self.budget, Budget) or self.budget.delta:
            raise InvalidParameter("the overall budget is one Budget(epsilon, per=...) without a delta.")

    @property
    def protects(self) -> Neighbours:
        """Features within the radius, in L1 distance."""
        return Neighbours.features("L1", self.radius)

    def terms(self, noise: Noise, limits: Limits) -> Terms:
        """What is agreed with the ledger for all servers together, for good."""
        unprotected = limits.terms(noise).unprotected
        return Terms.of(self.budget, self.protects, unprotected=unprotected)

    def restated(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee of a choice or click, for features within the radius.

        It bounds the loss between *any* two private states of the device, whatever their features are; so it does between
        those whose features are near each other: the same epsilon, for fewer pairs.
        """
        if guarantee.protects != ONE_PROFILE or not guarantee.is_pure:
            raise InvalidParameter("only a pure guarantee for the whole profile holds between any two feature vectors.")
        if guarantee.promises_nothing:
            return replace(guarantee, protects=self.protects)
        return pure(guarantee.epsilon, self.protects, proof=guarantee.proof, assumes=guarantee.assumes)


def caveats(noise: Noise) -> tuple[str, ...]:
    return () if noise.caveat is None else (noise.caveat,)


def server_name(server: str) -> str:
    """The name the application has for a server; never taken from an offer."""
    return name("the name of a server", server, MOST_SERVER)


def _rules(rules: object) -> frozenset[Rule]:
    if isinstance(rules, str) or not isinstance(rules, Collection):
        raise InvalidParameter("rules are a collection of names, such as {'public', 'rr'}.")
    return frozenset(member("a rule", Rule, rule) for rule in rules)


def _epsilon(what: str, value: float) -> float:
    if not 0.0 < finite(what, value) <= MOST_EPSILON:
        raise InvalidParameter(f"{what} must lie above 0 and be at most {MOST_EPSILON:g}.")
    return float(value)
