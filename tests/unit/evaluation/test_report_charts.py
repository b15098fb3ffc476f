"""Every way of a demonstration is named where no interval reaches."""

from dataclasses import replace
from itertools import pairwise

import pytest

from tacit.evaluation.pictures.layout import RC, drawn
from tacit.evaluation.report.charts import compared
from tacit.evaluation.result import Result
from tests.unit.evaluation.told import demonstration


@pytest.mark.parametrize("name", ["rr", "a method whose name takes two lines"])
def test_names_stand_within_the_picture_left_of_all_intervals_and_apart(name: str) -> None:
    style = pytest.importorskip("matplotlib.style")
    shown = demonstration()
    more = [replace(shown.private, method=f"{name} {place}") for place in range(5)]
    with style.context(["default", RC]):
        figure = drawn(
            Result("private-slates", "", (), (), {}, 0),
            compared(replace(shown, ways=(*shown.ways, *more))),
            titled=False,
        )
        assert figure is not None
        figure.canvas.draw()
        (axes,) = figure.axes
        boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
        assert len(boxes) == len(shown.ways) + len(more)
        assert min(box.x0 for box in boxes) >= 0.0
        assert max(box.x1 for box in boxes) <= axes.get_window_extent().x0
        boxes.sort(key=lambda box: box.y0)
        assert all(one.y1 <= other.y0 for one, other in pairwise(boxes))
