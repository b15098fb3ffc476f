"""One part of the evaluation: what it found, and how each part is run."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from tacit.evaluation.effort import Effort
from tacit.evaluation.result import Claim, Row

Progress = Callable[[str, int, int], None]  # what is being done, done, in all


class Part(NamedTuple):
    """Figures, what they decide, and what was left out or done otherwise than published."""

    rows: tuple[Row, ...] = ()
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()

    def and_(self, other: "Part") -> "Part":
        return Part(self.rows + other.rows, self.claims + other.claims, self.notes + other.notes)


class Run(Protocol):
    """Every part is a function ``run(effort, seed=..., progress=...) -> Part``; equal seeds, equal figures."""

    def __call__(self, effort: Effort, *, seed: int, progress: Progress) -> Part: ...


def untold(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""
