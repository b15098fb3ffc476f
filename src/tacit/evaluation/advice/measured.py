"""The measured figures that come with the package. They are put together by `tacit.evaluation.advice.gather`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from tacit.errors import InvalidData
from tacit.evaluation.curve import Curve

_FILE = "measured.json"


@dataclass(frozen=True, slots=True)
class Measured:
    """Curves of evaluations, and how they came about."""

    command: str
    date: str
    seed: int
    versions: Mapping[str, str]
    curves: tuple[Curve, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "command": self.command, "date": self.date, "seed": self.seed, "versions": dict(self.versions),
            "curves": [one.to_json() for one in self.curves],
        }  # fmt: skip


def measured() -> Measured:
    """The figures that were measured for this version of the package."""
    found = json.loads(files("tacit.evaluation.advice").joinpath(_FILE).read_text(encoding="utf-8"))
    return Measured(found["command"], found["date"], found["seed"], found["versions"], curves_of(found))


def curves_of(content: object) -> tuple[Curve, ...]:
    """The curves under the key "curves" of a report's JSON, or of the file above."""
    try:
        return tuple(Curve.from_json(one) for one in content["curves"])  # type: ignore[index]
    except (KeyError, TypeError, ValueError):
        raise InvalidData(
            'a report needs the key "curves" with a list of curves, as `tacit report --json` writes it.'
        ) from None


def curves_in(file: Path) -> tuple[Curve, ...]:
    """Those of a report that somebody made on data of their own."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        raise InvalidData(f"{file} is no JSON.") from None
    return curves_of(content)
