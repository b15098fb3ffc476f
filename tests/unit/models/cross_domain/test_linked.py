"""Item kNN on both domains as one."""

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.evaluation.cross_domain.linked import linked, union
from tests.unit.models.cross_domain.slow_paths import drawn_ratings, matrix, predict_by_loops, profiles_of

SCALE = (1.0, 5.0)


def test_a_union_holds_source_items_first_and_keeps_zeros() -> None:
    source, target = matrix([{0: 0.0, 2: 4.0}, {}], 3), matrix([{1: 3.0}, {0: 0.0}], 2)
    both = union(source, target)
    assert profiles_of(both) == [{0: 0.0, 2: 4.0, 4: 3.0}, {3: 0.0}]
    assert both.shape == (2, 5)
    with pytest.raises(InvalidParameter, match="same users"):
        union(source, matrix([{}], 2))


@pytest.mark.parametrize(("shrink", "user_base"), [(0.0, False), (0.2, True)])
def test_predictions_equal_loops_on_the_union(shrink: float, user_base: bool) -> None:
    rng = np.random.default_rng(6)
    source, target = drawn_ratings(rng, 30, 8, 0.5), drawn_ratings(rng, 30, 6, 0.4)
    level = rng.normal(size=30) * 0.2 if user_base else None
    users, items = (part.ravel() for part in np.meshgrid(np.arange(5), np.arange(6)))
    found = linked(source, target, 6).predict(users, items, SCALE, k=4, level=level, shrink=shrink, signed=True)
    people = profiles_of(union(source, target))
    for place, (user, item) in enumerate(zip(users.tolist(), items.tolist(), strict=True)):
        expected = predict_by_loops(
            people,
            people[user],
            None,
            item + 8,
            14,
            k=4,
            similar="rated",
            level=None if level is None else float(level[user]),
            alpha=0.0,
            shrink=shrink,
            significant=6,
            scale=SCALE,
        )
        assert found[place] == pytest.approx(expected, abs=1e-12)


def test_items_of_negative_cosine_say_nothing_by_default() -> None:
    # item 0 and the target item are rated alike, item 1 the other way round
    source = matrix([{0: 5.0, 1: 1.0}, {0: 1.0, 1: 5.0}, {0: 4.0, 1: 4.5}], 2)
    target = matrix([{0: 4.0}, {0: 2.0}, {}], 1)
    ready = linked(source, target, 0)
    plain, signed = ready.predict([2], [0], (-9.0, 9.0)), ready.predict([2], [0], (-9.0, 9.0), signed=True)
    assert plain == pytest.approx([3.0 + 4.0 - 10.0 / 3.0])
    assert signed[0] < plain[0]


def test_items_of_the_source_cannot_be_asked_for() -> None:
    ready = linked(matrix([{0: 5.0, 1: 2.0}], 2), matrix([{0: 1.0}], 1))
    with pytest.raises(InvalidParameter, match="items"):
        ready.predict([0], [1], SCALE)
