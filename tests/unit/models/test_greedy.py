"""The greedy slate: hand-checked vectors, a slow version on items, ties between classes, and compiled loops equal to plain ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tacit.models import loops, multi_selection
from tacit.models.items import Classes, classes_of
from tacit.models.tables import build_tables, tops_of

SAMPLES = np.array([[5, 4, 0, 3], [1, 4, 5, 3], [1, 3.5, 5, 4]], dtype=np.float32)
BOTH = pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])


def each_alone(n_items: int) -> Classes:
    """A class for every item: for models that know items by name, not by features."""
    return Classes(np.arange(n_items, dtype=np.int32))


@dataclass
class Fixed:
    """A scorer whose scores are given: features are one-hot, one user each."""

    scores: np.ndarray  # users x items
    classes: Classes
    kind: str = "fixed"

    @property
    def dimension(self) -> int:
        return len(self.scores)

    def score(self, features: np.ndarray, items: np.ndarray) -> np.ndarray:
        return np.asarray(features @ self.scores[:, items], dtype=np.float32)

    def tensors(self) -> dict[str, Any]:
        return {}


def slate_of(scores: np.ndarray, classes: Classes, k: int, t: int, r: int, compiled: bool) -> list[int]:
    """``scores`` are users x classes."""
    work = loops.choose(compiled)
    found, kept, exact, lengths = tops_of(work, scores.astype(np.float32), classes, r)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return multi_selection.from_lists(
        work, (starts, found, kept, exact), np.arange(len(scores)), classes, k, t
    ).tolist()


def slowly(scores: np.ndarray, k: int, t: int, r: int) -> list[int]:
    """Items one by one, straight from the definition. ``scores`` are users x items."""
    cut = np.zeros(scores.shape)
    for row, values in enumerate(scores.astype(np.float32).astype(np.float64)):
        best = sorted(range(len(values)), key=lambda item: (-values[item], item))[:r]
        cut[row, best] = values[best]

    def utility(slate: list[int]) -> float:
        return sum(sum(sorted(row[slate], reverse=True)[:t]) for row in cut)

    def gain(slate: list[int], item: int) -> float:
        bars = [([0.0] * t + sorted(row[slate]))[-t:][0] for row in cut]
        return sum(max(0.0, row[item] - bar) for row, bar in zip(cut, bars, strict=True))

    slate: list[int] = []
    for _ in range(k):
        rest = [item for item in range(scores.shape[1]) if item not in slate]
        gains = {item: gain(slate, item) for item in rest}
        item = max(rest, key=lambda one: (gains[one], -one))
        assert utility([*slate, item]) == pytest.approx(utility(slate) + gains[item])
        if gains[item] <= 1e-12:
            fresh = [one for one in rest if not any((scores[:, one] == scores[:, old]).all() for old in slate)]
            fresh = [one for one in fresh if cut[:, one].sum() > 0.0]
            if not fresh:
                break
            item = max(fresh, key=lambda one: (cut[:, one].sum(), -one))
        slate.append(item)
    return slate


@BOTH
@pytest.mark.parametrize(
    ("k", "t", "r", "expected"),
    [
        (3, 1, 4, [1, 2, 0]),
        (4, 4, 4, [1, 2, 3, 0]),  # t = infinity
        (4, 2, 4, [1, 2, 0, 3]),
        (3, 1, 2, [2, 0, 1]),  # the third has no gain: the largest sum
    ],
)
def test_hand_checked_slates(k: int, t: int, r: int, expected: list[int], compiled: bool) -> None:
    assert slate_of(SAMPLES, each_alone(4), k, t, r, compiled) == expected
    assert slowly(SAMPLES, k, t, r) == expected


@BOTH
def test_the_r_best_items_by_class(compiled: bool) -> None:
    classes = Classes(np.repeat(np.arange(3, dtype=np.int32), [2, 3, 4]))
    found, kept, _, _ = tops_of(loops.choose(compiled), np.array([[3, 5, 4]], dtype=np.float32), classes, 5)
    assert dict(zip(found.tolist(), kept.tolist(), strict=True)) == {1: 3, 2: 2}


@BOTH
def test_members_of_classes_that_tie_interleave_by_item(compiled: bool) -> None:
    classes = Classes(np.array([0, 1, 1, 0, 1, 0], dtype=np.int32))
    found, kept, _, _ = tops_of(loops.choose(compiled), np.array([[5, 5]], dtype=np.float32), classes, 4)
    assert found.tolist() == [0, 1]
    assert kept.tolist() == [2, 2]  # items 0, 1, 2, 3; not the three of one class first


def cases() -> list[tuple[int, int, int, bool]]:
    return [(k, t, r, tied) for k in (2, 5) for t in (1, 2, 5) if t <= k for r in (4, 12, 40) for tied in (False, True)]


@BOTH
@pytest.mark.parametrize(("k", "t", "r", "tied"), cases())
def test_classes_give_the_slate_that_items_give(k: int, t: int, r: int, tied: bool, compiled: bool) -> None:
    rng = np.random.default_rng(17 * k + t + r)
    for _ in range(10):
        classes = classes_of(rng.integers(0, 9, 40)[:, None])
        scores = rng.random((7, len(classes))) * 5
        if tied:  # clipped and coarse: different classes tie exactly
            scores = np.minimum(np.round(scores * 2) / 2, 4.0)
        scores = scores.astype(np.float32)
        assert slate_of(scores, classes, k, t, r, compiled) == slowly(scores[:, classes.of], k, t, r)


def test_counting_one_tied_class_before_the_other_would_be_noticed() -> None:
    """The fault that the interleaving prevents: a twin that keeps whole classes first gives other slates."""
    rng = np.random.default_rng(5)
    different = 0
    for _ in range(40):
        classes = classes_of(rng.integers(0, 9, 60)[:, None])
        scores = np.minimum(np.round(rng.random((7, len(classes))) * 4) + 2, 5.0).astype(np.float32)
        order = np.argsort(-scores, axis=1, kind="stable")
        room = np.full(7, 10)
        whole_first = np.zeros(scores.shape, dtype=np.int64)
        for place in range(len(classes)):
            one = order[:, place]
            whole_first[np.arange(7), one] = np.minimum(room, classes.sizes[one])
            room -= whole_first[np.arange(7), one]
        _, kept, _, lengths = tops_of(loops.choose(False), scores, classes, 10)
        found, _, _, _ = tops_of(loops.choose(False), scores, classes, 10)
        mine = np.zeros(scores.shape, dtype=np.int64)
        mine[np.repeat(np.arange(7), lengths), found] = kept
        different += int((mine != whole_first).any())
    assert different > 10


@BOTH
def test_a_slate_ends_where_nothing_is_left(compiled: bool) -> None:
    assert slate_of(np.array([[2.0, 1.0]]), each_alone(2), 5, 1, 10, compiled) == [0, 1]


def test_a_short_slate_is_filled_with_the_classes_it_lacks() -> None:
    classes = Classes(np.array([0, 0, 1, 2, 3], dtype=np.int32))
    sums = np.array([9.0, 1.0, 3.0, 3.0])
    assert multi_selection.filled(np.array([0]), classes, 4, lambda: sums).tolist() == [0, 3, 4, 2]
    assert multi_selection.filled(np.array([0]), classes, 9, lambda: sums).tolist() == [0, 3, 4, 2]  # all there is


def exactly(scores: np.ndarray, weights: np.ndarray, k: int, t: int) -> list[int]:
    """Weighted greedy on full utilities, straight from the definition. ``scores`` are users x items."""
    slate: list[int] = []
    for _ in range(k):
        bars = np.array([([0.0] * t + sorted(row[slate]))[-t:][0] for row in scores])
        gains = weights @ np.maximum(scores - bars[:, None], 0.0)
        gains[slate] = -1.0
        slate.append(int(np.argmax(gains > gains.max() - 1e-9)))
    return slate


@BOTH
@pytest.mark.parametrize("t", [1, 2])
def test_exact_weights_give_the_slate_of_the_definition(t: int, compiled: bool) -> None:
    rng = np.random.default_rng(8)
    for _ in range(10):
        scores = rng.random((30, 12)) * 5
        tables = build_tables(Fixed(scores, each_alone(12)), np.eye(30), r=12, compiled=compiled)
        weights, rows = rng.random(20), np.sort(rng.permutation(30)[:20])
        read = tables.utilities_of(rows, np.arange(12))
        assert read == pytest.approx(scores[rows], abs=1e-4)
        slate = multi_selection.from_weights(loops.choose(compiled), tables, rows, weights, each_alone(12), 3, t)
        assert slate.tolist() == exactly(read, weights / weights.sum(), 3, t)


@BOTH
def test_exact_weights_take_the_next_member_of_a_class_only_where_two_picks_count(compiled: bool) -> None:
    classes = Classes(np.array([0, 1, 0, 1], dtype=np.int32))
    scores = np.array([[5.0, 4.0, 5.0, 4.0]])
    tables = build_tables(Fixed(scores, classes), np.eye(1), r=4, compiled=compiled)
    work, one = loops.choose(compiled), (np.array([0]), np.ones(1))
    assert multi_selection.from_weights(work, tables, *one, classes, 2, 1).tolist() == [0, 1]
    assert multi_selection.from_weights(work, tables, *one, classes, 2, 2).tolist() == [0, 2]


@BOTH
def test_exactly_tied_columns_are_decided_by_the_smaller_item(compiled: bool) -> None:
    rng = np.random.default_rng(9)
    base = rng.random((200, 6)) * 5
    scores = base[:, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]]  # every item twice
    tables = build_tables(Fixed(scores, each_alone(12)), np.eye(200), r=12, compiled=compiled)
    slate = multi_selection.from_weights(
        loops.choose(compiled), tables, np.arange(200), rng.random(200), each_alone(12), 4, 1
    )
    assert max(slate) < 6
