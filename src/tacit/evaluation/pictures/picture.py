"""A picture as a value: its name, its title, and the panels that draw it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tacit.errors import MissingExtra
from tacit.evaluation.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Panel: TypeAlias = Callable[[Result, "Axes"], int]  # draws on axes, says how many lines it drew


@dataclass(frozen=True)
class Picture:
    """Panels under one title and one legend. ``name`` is that of its file, ``across`` how many panels stand in a row."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    across: int = 3


def require_matplotlib() -> None:
    """Says what to install where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as missing:
        raise MissingExtra('plots need matplotlib: pip install "tacit[report]".') from missing
