"""How much an evaluation tries."""

from enum import StrEnum


class Effort(StrEnum):
    QUICK = "quick"
    DEFAULT = "default"
    FULL = "full"
