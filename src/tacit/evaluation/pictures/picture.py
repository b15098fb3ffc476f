"""A picture as a value: its name, its title, and the panels that draw it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tacit.errors import MissingExtra
from tacit.evaluation.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Panel: TypeAlias = Callable[[Result, "Axes"], int]  # draws on axes, says how many lines it drew
LEFT = 0.74  # inches: numbers and the name of an axis


@dataclass(frozen=True)
class Picture:
    """Panels under one title and one legend. ``name`` is that of its file, ``across`` how many panels stand in a row,
    ``left`` the inches left of each for what is written there."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    across: int = 3
    left: float = LEFT


def require_matplotlib() -> None:
    """Says what to install where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as missing:
        raise MissingExtra('plots need matplotlib: pip install "tacit[report]".') from missing
