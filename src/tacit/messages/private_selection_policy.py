"""A policy: how a device is to choose among the candidates of an offer. A function of public data only.

Whatever an offer says, the device works out for itself what a policy costs (``cost``), and applies its own limits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tacit.checks import keep
from tacit.errors import InvalidMessage
from tacit.messages import fields

VERSION = 1
MOST_EPSILON = 40.0  # beyond it a sampler lies but once in 10^17: say openly that nothing is promised
MOST_CANDIDATES = 10_000
MOST_SLOTS = 100
FLOOR_BITS = 32  # the floors of an envelope are whole numbers of 2^-32
NAMES = ("version", "id", "epsilon", "m", "d", "slots", "bounding", "width", "floors")


class Rule(StrEnum):
    """Which item is chosen. The first three cost nothing to state: `public` and `uniform` are private, `greedy` is not."""

    PUBLIC = "public"  # the publicly best
    UNIFORM = "uniform"  # any candidate, all alike: the server's own exploration
    GREEDY = "greedy"  # the privately best: promises nothing
    RR = "rr"  # the d privately best each e^epsilon times as likely as every other
    GUMBEL = "gumbel"  # the exponential mechanism
    PF = "pf"  # permute-and-flip
    LAPLACE = "laplace"  # noisy max with Laplace noise
    ENVELOPE = "envelope"  # public floors, each raised up to e^epsilon times for the privately best


NOISY = frozenset({Rule.GUMBEL, Rule.PF, Rule.LAPLACE})  # they add noise to scores, which must therefore be bounded
FREE = frozenset({Rule.PUBLIC, Rule.UNIFORM})


class Bounding(StrEnum):
    """How private scores are bounded before noise is added."""

    NONE = "none"
    SCALED = "scaled"  # (s - min) / (max - min)
    CLIPPED = "clipped"  # to the public score +- width/2


@dataclass(frozen=True, slots=True)
class Policy:
    """``m`` candidates are offered, the best first; ``slots`` of them are shown, one after the other, for epsilon in all."""

    rule: Rule
    m: int
    epsilon: float = 0.0  # nats
    d: int = 1
    slots: int = 1
    bounding: Bounding = Bounding.NONE
    width: float | None = None  # of the boxes of clipped scores, the full width
    floors: tuple[int, ...] | None = None  # of an envelope, one for each candidate, in 2^-32

    def __post_init__(self) -> None:
        try:
            keep(self, rule=Rule(self.rule), bounding=Bounding(self.bounding))
        except ValueError:
            raise InvalidMessage(f"a policy is one of {', '.join(Rule)}, its scores {', '.join(Bounding)}.") from None
        fields.whole(self.m, "$.policy.m", least=1, most=MOST_CANDIDATES)
        fields.whole(self.slots, "$.policy.slots", least=1, most=min(MOST_SLOTS, self.m))
        fields.whole(self.d, "$.policy.d", least=1, most=self.m)
        keep(self, epsilon=fields.real(self.epsilon, "$.policy.epsilon"))
        free = self.rule in FREE or self.rule is Rule.GREEDY
        if free != (self.epsilon == 0.0) or not 0.0 <= self.epsilon <= MOST_EPSILON:
            raise InvalidMessage(
                f"epsilon lies above 0 and is at most {MOST_EPSILON:g}; it is 0 for public, uniform and greedy, and only there."
            )
        if self.d > 1 and (self.rule is not Rule.RR or self.slots > 1):
            raise InvalidMessage("only rr with one slot has a d above 1.")
        if (self.rule in NOISY) != (self.bounding is not Bounding.NONE):
            raise InvalidMessage("gumbel, pf and laplace need scores that are scaled or clipped, and only they do.")
        if (self.bounding is Bounding.CLIPPED) != (self.width is not None):
            raise InvalidMessage("clipped scores, and only they, have a width.")
        if self.width is not None:
            keep(self, width=fields.real(self.width, "$.policy.width"))
            if not self.width > 0.0:
                raise InvalidMessage("the width of clipped scores must be above 0.")
        if (self.rule is Rule.ENVELOPE) != (self.floors is not None):
            raise InvalidMessage("an envelope, and only that, has floors.")
        if self.floors is not None:
            self._check_floors(self.floors)

    @property
    def cost(self) -> float:
        """The epsilon of one selection, from the policy alone: infinite where nothing is promised."""
        if self.rule is Rule.GREEDY:
            return math.inf if self.m > 1 else 0.0
        if self.rule in FREE or self.m == 1 or (self.rule is Rule.RR and self.d == self.m):
            return 0.0  # the choice does not depend on anything private
        return self.epsilon

    def without_cost(self) -> "Policy":
        """What is done instead where a limit forbids this policy: the public ranking."""
        return Policy(Rule.PUBLIC, self.m, slots=self.slots)

    def _check_floors(self, floors: Sequence[int]) -> None:
        checked = tuple(
            fields.whole(floor, "$.policy.floors", least=1, most=1 << FLOOR_BITS)
            for floor in fields.listed(list(floors), "$.policy.floors", length=self.m)
        )
        total = sum(checked)
        if self.slots != 1 or total > 1 << FLOOR_BITS or total * math.exp(self.epsilon) < 1 << FLOOR_BITS:
            raise InvalidMessage(
                "the floors of an envelope add up to at most 1, and to at least e^-epsilon; it has one slot."
            )
        keep(self, floors=checked)

    def to_json(self) -> dict[str, Any]:
        """The policy as values for JSON."""
        return {
            "version": VERSION,
            "id": self.rule.value,
            "epsilon": self.epsilon,
            "m": self.m,
            "d": self.d,
            "slots": self.slots,
            "bounding": self.bounding.value,
            "width": self.width,
            "floors": None if self.floors is None else list(self.floors),
        }

    @classmethod
    def from_json(cls, value: object) -> "Policy":
        """The policy of such values, checked; InvalidMessage for anything else."""
        found = fields.members(value, "a policy", NAMES)
        fields.whole(found["version"], "$.policy.version", least=VERSION, most=VERSION)
        floors = found["floors"]
        if floors is not None:
            floors = tuple(fields.listed(floors, "$.policy.floors"))
        rule, bounding = (fields.text(found[name], f"$.policy.{name}") for name in ("id", "bounding"))
        width = None if found["width"] is None else fields.real(found["width"], "$.policy.width")
        return cls(
            rule,  # type: ignore[arg-type]  # made right there
            found["m"],
            fields.real(found["epsilon"], "$.policy.epsilon"),
            found["d"],
            found["slots"],
            bounding,  # type: ignore[arg-type]
            width,
            floors,
        )
