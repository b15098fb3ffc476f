"""How much an evaluation tries."""

from enum import StrEnum


class Effort(StrEnum):
    """A minute or two for a system, some minutes, or all of it."""

    QUICK = "quick"
    DEFAULT = "default"
    FULL = "full"
