"""Pictures as PNG files, or as SVG to stand inside a page."""

import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tacit.evaluation.pictures.layout import RC, drawn
from tacit.evaluation.pictures.picture import Picture, require_matplotlib
from tacit.evaluation.pictures.svg import inline
from tacit.evaluation.result import Result

_DPI = 130


@dataclass(frozen=True)
class Drawn:
    """A picture as text of SVG that a page can hold as it is. The title is not within: it is the page's to show."""

    name: str
    title: str
    svg: str


def draw_files(result: Result, pictures: Iterable[Picture], folder: Path) -> list[Path]:
    """A PNG file in ``folder`` for each picture that the result has rows for."""
    require_matplotlib()
    from matplotlib import style

    found = []
    with style.context(["default", RC]):
        for picture in pictures:
            figure = drawn(result, picture, titled=True)
            if figure is not None:
                path = folder / f"{picture.name}.png"
                figure.savefig(path, dpi=_DPI, facecolor="white")
                found.append(path)
    return found


def draw_svgs(result: Result, pictures: Iterable[Picture]) -> list[Drawn]:
    """The text of an SVG element for each picture that the result has rows for; the same text for the same result."""
    require_matplotlib()
    from matplotlib import style

    found = []
    with style.context(["default", RC]):
        for picture in pictures:
            figure = drawn(result, picture, titled=False)
            if figure is not None:
                text = io.StringIO()
                figure.savefig(text, format="svg", metadata={"Date": None})
                prefix = f"{picture.name}-"
                found.append(Drawn(picture.name, picture.title, inline(text.getvalue(), prefix, picture.title)))
    return found
