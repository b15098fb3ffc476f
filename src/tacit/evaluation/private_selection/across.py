"""What is said of display and search together: private data tells more in display, and more candidates should be sent there."""

from collections.abc import Iterator

import numpy as np

from tacit.evaluation.part import Part
from tacit.evaluation.private_selection import paper
from tacit.evaluation.private_selection.measures import CTR
from tacit.evaluation.private_selection.worlds import World
from tacit.evaluation.result import Claim, Row


def across(display: World, search: World, rows: tuple[Row, ...]) -> Part:
    """``rows`` are what both worlds gave so far."""
    return Part((), tuple(_claims(display, search, rows)))


def _claims(display: World, search: World, rows: tuple[Row, ...]) -> Iterator[Claim]:
    apart = [float(np.median(world.apart)) for world in (display, search)]
    yield Claim(
        paper.NAME,
        "the median |private - public| of display is more than twice that of search",
        apart[0] > paper.MORE_APART * apart[1],
        f"{apart[0]:.4f} and {apart[1]:.4f}: the worlds were chosen so",
    )
    best = [
        next(
            row.value
            for row in rows
            if row.metric == "best gamma"
            and row.setting == {"world": world.name, "epsilon": paper.GOOD_EPSILON, "by": CTR}
        )
        for world in (display, search)
    ]
    yield Claim(
        paper.NAME,
        "with rr at epsilon 5 it is better to send more candidates in display than in search",
        best[0] > best[1],
        f"best gamma by CTR: display {best[0]:g}, search {best[1]:g}",
    )
