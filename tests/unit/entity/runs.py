"""Runs with one entity, of every kind, and what it was charged in them."""

from typing import Any

from tacit.entity import Entity
from tacit.mechanisms import SystemNoise

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("grid", {}),
    ("tree", {}),
    ("moments", {"aggregation": "none"}),
    ("moments", {"aggregation": "secure"}),
]


def charges(entity: Entity) -> int:
    return entity.statement().charges


class CountedNoise(SystemNoise):
    """The system's noise, and how often it was asked; it may fail after some draws."""

    def __init__(self, fail_after: int | None = None) -> None:
        super().__init__()
        self.asked, self.fail_after = 0, fail_after

    def draw(self, count: int) -> bytes:
        self.asked += 1
        if self.fail_after is not None and self.asked > self.fail_after:
            raise ArithmeticError("a secret of row 17")
        return super().draw(count)
