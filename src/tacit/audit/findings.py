"""What an audit found, as values: one finding for each claim looked at, one for each broken twin."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tacit.guarantees import Guarantee


class By(StrEnum):
    """How a claim was looked at, strongest first."""

    EXACT = "exact"  # every pair, every output
    DISTRIBUTION = "distribution"  # the draws against the law
    EMPIRICAL = "empirical"  # a lower bound from draws: refutes, never proves


class Measure(StrEnum):
    """What ``loss`` and ``claimed`` count."""

    EPSILON = "epsilon"
    PER_DISTANCE = "epsilon per distance"
    RANGE = "loss range"
    RHO = "rho"
    RENYI = "Renyi divergence"  # of the order that the case names


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim of one mechanism, in one case."""

    name: str
    case: str
    guarantee: Guarantee
    by: By
    measure: Measure
    claimed: float  # what the guarantee says of this measure
    loss: float  # exact, or a lower bound (empirical); of the law that was tested (distribution)
    holds: bool
    tight: bool | None = None  # whether the claim is attained; None where the method cannot tell
    reference: float | None = None  # the loss by an independent formula, where the claim is not attained
    note: str = ""  # why there is slack, which event told, what the law was told apart from
    p_value: float | None = None
    draws: int | None = None
    seconds: float = 0.0  # seconds that the audit took

    @property
    def slack(self) -> float:
        """How much more is claimed than was found."""
        return self.claimed - self.loss

    @property
    def explained(self) -> bool | None:
        """Whether the claim is attained, or its slack is what an independent formula says; None where neither is known."""
        if self.tight is None or self.tight:
            return self.tight
        return self.reference is not None and abs(self.reference - self.loss) <= 1e-9

    def to_json(self) -> dict[str, Any]:
        """The finding as values for JSON."""
        return {
            "name": self.name,
            "case": self.case,
            "claim": {
                "epsilon": number(self.guarantee.epsilon),
                "delta": self.guarantee.delta,
                "unit": str(self.guarantee.protects),
                "measure": self.measure.value,
                "value": number(self.claimed),  # what ``loss`` is to be compared with
            },
            "by": self.by.value,
            "measure": self.measure.value,
            "claimed": number(self.claimed),
            "loss": number(self.loss),
            "holds": self.holds,
            "slack": number(self.slack),
            "tight": self.tight,
            "explained": self.explained,
            "p_value": self.p_value,
            "draws": self.draws,
            "note": self.note,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class TwinFinding:
    """A mechanism broken on purpose, under the same check as the real one: it must not hold."""

    name: str
    of: str
    fault: str
    finding: Finding

    @property
    def caught(self) -> bool:
        """Whether the audit saw that the twin loses more than it claims."""
        return not self.finding.holds

    def to_json(self) -> dict[str, Any]:
        """The finding as values for JSON."""
        found = self.finding.to_json()
        return {
            "name": self.name,
            "of": self.of,
            "caught": self.caught,
            "fault": self.fault,
            **{
                key: found[key]
                for key in ("claim", "by", "measure", "claimed", "loss", "case", "draws", "note", "seconds")
            },
        }


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All findings of one run."""

    mechanisms: tuple[Finding, ...]
    twins: tuple[TwinFinding, ...]

    @property
    def passed(self) -> bool:
        """Whether every claim holds and every broken twin was caught."""
        return all(finding.holds for finding in self.mechanisms) and all(twin.caught for twin in self.twins)

    def to_json(self) -> dict[str, Any]:
        """The report as values for JSON."""
        return {
            "mechanisms": [finding.to_json() for finding in self.mechanisms],
            "twins": [twin.to_json() for twin in self.twins],
            "passed": self.passed,
        }


def number(value: float) -> float | str:
    """A number as JSON can hold it: infinity as "inf"."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
