"""What an evaluation found, as values: one row for each figure, one claim for each statement that was put to the test."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any, TypeAlias

from tacit.evaluation.statistics import Estimate
from tacit.guarantees import Guarantee

PAPER = "paper:"  # before the name of a method: the figure is the paper's own
REFERENCE = "reference:"  # the same of a figure that others found, by another implementation
COUNT, DATA = "count", "data"  # the metric and the method of rows that tell how large a world is
Setting: TypeAlias = Mapping[str, int | float | str]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``stderr`` is None where none is known; ``n`` is how many users or trials were averaged, 0 if unknown."""

    method: str
    setting: Setting
    metric: str
    value: float
    stderr: float | None = None
    n: int = 0

    @classmethod
    def of(cls, method: str, metric: str, found: Estimate, **setting: int | float | str) -> "Row":
        """A figure that was estimated, with its standard error where there is one."""
        return cls(method, setting, metric, found.value, found.stderr if math.isfinite(found.stderr) else None, found.n)

    @property
    def is_papers(self) -> bool:
        """Whether the figure is the paper's own."""
        return self.method.startswith(PAPER)

    def to_json(self) -> dict[str, Any]:
        """What was measured, as JSON."""
        return {
            "method": self.method,
            "setting": dict(self.setting),
            "metric": self.metric,
            "value": self.value,
            "stderr": self.stderr,
            "n": self.n,
        }


def sizes(counts: Mapping[str, int], **setting: int | float | str) -> Iterator[Row]:
    """How large a world is: a row for each count, such as of users or of items."""
    for name, count in counts.items():
        yield Row(DATA, {**setting, "of": name}, COUNT, float(count))


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement, whether the figures bear it out, and the figures. ``paper`` says who stated it."""

    paper: str
    claim: str
    holds: bool
    evidence: str

    def to_json(self) -> dict[str, Any]:
        """What was measured, as JSON."""
        return {"paper": self.paper, "claim": self.claim, "holds": self.holds, "evidence": self.evidence}


@dataclass(frozen=True)
class Result:
    """All that one evaluation found. The same shape for every system."""

    system: str
    data: str
    rows: tuple[Row, ...]
    claims: tuple[Claim, ...]
    guarantees: Mapping[str, Guarantee]
    seed: int
    notes: tuple[str, ...] = ()  # what was left out or done otherwise than published, in words
    versions: Mapping[str, str] = field(default_factory=lambda: versions_of())

    def select(self, metric: str, method: str | None = None, **setting: int | float | str) -> list[Row]:
        """The rows of a metric, of a method if one is named, whose setting has these values."""
        return [
            row
            for row in self.rows
            if row.metric == metric
            and (method is None or row.method == method)
            and all(name in row.setting and row.setting[name] == value for name, value in setting.items())
        ]

    def find(self, metric: str, method: str, **setting: int | float | str) -> Row | None:
        """The one row with exactly this setting."""
        return next((row for row in self.select(metric, method, **setting) if len(row.setting) == len(setting)), None)

    def to_json(self) -> dict[str, Any]:
        """The value as JSON; `from_json` reads it."""
        return {
            "system": self.system,
            "data": self.data,
            "rows": [row.to_json() for row in self.rows],
            "claims": [claim.to_json() for claim in self.claims],
            "guarantees": {name: guarantee.to_json() for name, guarantee in self.guarantees.items()},
            "versions": dict(self.versions),
            "seed": self.seed,
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Result":
        """What `to_json` wrote."""
        return cls(
            value["system"],
            value["data"],
            tuple(Row(**row) for row in value["rows"]),
            tuple(Claim(**claim) for claim in value["claims"]),
            {name: Guarantee.from_json(one) for name, one in value["guarantees"].items()},
            value["seed"],
            tuple(value["notes"]),
            value["versions"],
        )


def versions_of(*packages: str) -> dict[str, str]:
    """tacit, Python, numpy, and further packages that are installed."""
    found = {"tacit": version("tacit"), "python": python_version()}
    for package in ("numpy", *packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
