"""All that a report tells, as a value: the page and its JSON twin are both made from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tacit.audit import AuditReport
from tacit.evaluation.curve import Curve
from tacit.evaluation.demonstration.demonstration import Demonstration
from tacit.evaluation.effort import Effort
from tacit.evaluation.registry import curves
from tacit.evaluation.report.machine import machine
from tacit.evaluation.result import Result, versions_of

PACKAGES = ("scipy", "polars", "jax", "numba", "scikit-learn", "dp-accounting", "matplotlib")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


@dataclass(frozen=True)
class Report:
    """``command`` is what was typed. ``skipped``: what could not be shown or measured, and why, by system."""

    title: str
    demonstrations: tuple[Demonstration, ...] = ()
    results: tuple[Result, ...] = ()
    audit: AuditReport | None = None
    seed: int = 1
    effort: Effort = Effort.DEFAULT
    command: str = ""
    skipped: Mapping[str, str] = field(default_factory=dict)
    made: str = field(default_factory=_now)
    versions: Mapping[str, str] = field(default_factory=lambda: versions_of(*PACKAGES))
    machine: Mapping[str, str] = field(default_factory=machine)

    @property
    def curves(self) -> tuple[Curve, ...]:
        """Privacy against utility in every world of every result."""
        return tuple(curve for result in self.results for curve in curves(result))

    def to_json(self) -> dict[str, Any]:
        """The twin of the page: all of it for machines."""
        return {
            "title": self.title,
            "made": self.made,
            "command": self.command,
            "effort": str(self.effort),
            "seed": self.seed,
            "versions": dict(self.versions),
            "machine": dict(self.machine),
            "curves": [curve.to_json() for curve in self.curves],
            "demonstrations": [one.to_json() for one in self.demonstrations],
            "results": [result.to_json() for result in self.results],
            "skipped": dict(self.skipped),
            "audit": None if self.audit is None else self.audit.to_json(),
        }
