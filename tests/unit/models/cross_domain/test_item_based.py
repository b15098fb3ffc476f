"""Item-based predictions against the formula read aloud, one prediction at a time."""

from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.models.cross_domain import alter_egos
from tacit.models.cross_domain import alter_egos as module
from tacit.models.cross_domain.alter_egos import MISSING, AlterEgos, item_based
from tests.unit.models.cross_domain.slow_paths import (
    EXAMPLE,
    cosine,
    drawn_ratings,
    matrix,
    predict_by_loops,
    profiles_of,
)

SCALE = (1.0, 5.0)
TARGET = matrix([{item - 3: value for item, value in one.items() if item > 2} for one in EXAMPLE[2:]], 3)


def test_cosines_of_the_worked_example() -> None:
    ready = item_based(TARGET, 0)
    np.testing.assert_allclose(ready.means, [2.8333333, 3.5, 3.0], atol=1e-7)
    similar = ready.cosines(np.array([0, 1, 2]))
    expected = [[0.0, -0.923581, 0.198137], [-0.923581, 0.0, -0.558799], [0.198137, -0.558799, 0.0]]
    np.testing.assert_allclose(similar, expected, atol=5e-7)


@pytest.mark.parametrize("similar", ["static", "rated"])
@pytest.mark.parametrize(("alpha", "expected"), [(0.0, 4.674508), (0.03, 4.670671), (1.0, 4.576927)])
def test_predictions_of_the_worked_example(alpha: float, expected: float, similar: str) -> None:
    profile = AlterEgos(matrix([{0: 5.0, 1: 2.0}], 3), np.array([1, 2]))
    found = item_based(TARGET, 0).predict(profile, [0], [2], SCALE, alpha=alpha, similar=similar)
    assert found == pytest.approx([expected], abs=5e-7)


def world(seed: int = 4) -> tuple[Any, AlterEgos]:
    """Ratings of 14 items, and profiles of 9 other users with times, some missing, one profile empty."""
    rng = np.random.default_rng(seed)
    ratings, profiles = drawn_ratings(rng, 20, 14, 0.4), drawn_ratings(rng, 9, 14, 0.5)
    profiles = matrix([{} if user == 3 else profile for user, profile in enumerate(profiles_of(profiles))], 14)
    times = rng.integers(0, 6, profiles.nnz)
    times[rng.random(times.size) < 0.2] = MISSING
    first = slice(*profiles.indptr[5:7])
    times[first] = MISSING  # a user without any time
    return ratings, AlterEgos(profiles, times)


SETTINGS = [
    {"similar": similar, "k": k, "level": level, "alpha": alpha, "shrink": shrink, "significant": significant}
    for similar, k, level, alpha, shrink, significant in [
        ("static", 50, False, 0.03, 0.0, 0),
        ("static", 3, False, 0.5, 0.0, 4),
        ("rated", 3, False, 0.03, 0.0, 0),
        ("rated", 2, True, 0.5, 0.2, 4),
        ("rated", 50, True, 0.03, 0.2, 50),
        ("static", 5, True, 0.0, 0.2, 0),
    ]
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("timed", [True, False])
def test_all_predictions_equal_loops(settings: dict[str, Any], timed: bool) -> None:
    ratings, egos = world()
    if not timed:
        egos = AlterEgos(egos.values)
    level = np.random.default_rng(1).normal(size=9) * 0.3 if settings["level"] else None
    users, items = (part.ravel() for part in np.meshgrid(np.arange(9), np.arange(14)))
    found = item_based(ratings, settings["significant"]).predict(
        egos,
        users,
        items,
        SCALE,
        level=level,
        **{name: settings[name] for name in ("similar", "k", "alpha", "shrink")},
    )
    profiles, people = profiles_of(egos.values), profiles_of(ratings)
    for place, (user, item) in enumerate(zip(users.tolist(), items.tolist(), strict=True)):
        own = slice(egos.values.indptr[user], egos.values.indptr[user + 1])
        times = (
            None
            if egos.times is None
            else dict(zip(egos.values.indices[own].tolist(), egos.times[own].tolist(), strict=True))
        )
        expected = predict_by_loops(
            people,
            profiles[user],
            times,
            item,
            14,
            **settings | {"level": None if level is None else float(level[user])},
            scale=SCALE,
        )
        assert found[place] == pytest.approx(expected, abs=1e-12)


def test_cosines_with_shrinkage_equal_loops() -> None:
    ratings, _ = world()
    found = item_based(ratings, 7).cosines(np.array([2, 9]))
    for row, i in enumerate((2, 9)):
        expected = [0.0 if i == j else cosine(profiles_of(ratings), i, j, 7) for j in range(14)]
        np.testing.assert_allclose(found[row], expected, atol=1e-13)


@pytest.mark.parametrize("similar", ["static", "rated"])
@pytest.mark.parametrize(("cells", "entries"), [(1, 1), (14 * 3, 5), (1 << 20, 11)])
def test_parts_give_the_same_as_the_whole(
    similar: str, cells: int, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratings, egos = world()
    rng = np.random.default_rng(2)
    users, items = rng.integers(0, 9, 200), rng.integers(0, 14, 200)
    ready = item_based(ratings, 3)
    whole = ready.predict(egos, users, items, SCALE, k=3, similar=similar)
    monkeypatch.setattr(module, "_CELLS", cells)
    monkeypatch.setattr(alter_egos, "_ENTRIES", entries)
    parts = ready.predict(egos, users, items, SCALE, k=3, similar=similar)
    np.testing.assert_allclose(parts, whole, rtol=0.0, atol=1e-13)


def test_an_empty_profile_is_predicted_the_base() -> None:
    ratings, egos = world()
    ready = item_based(ratings)
    level = np.full(9, 0.25)
    np.testing.assert_allclose(ready.predict(egos, [3] * 14, range(14), SCALE), np.clip(ready.means, *SCALE))
    found = ready.predict(egos, [3] * 14, range(14), (1.0, 3.2), level=level)
    np.testing.assert_allclose(found, np.clip(ready.means + 0.25, 1.0, 3.2))


def test_items_nobody_rated_are_predicted_the_mean_of_all() -> None:
    ratings = matrix([{0: 5.0, 1: 2.0}, {0: 4.0, 1: 4.0}], 3)
    assert item_based(ratings).predict(AlterEgos(matrix([{0: 1.0}], 3)), [0], [2], SCALE) == pytest.approx([3.75])


def test_missing_times_have_no_effect_even_with_shrinkage() -> None:
    ratings, egos = world()
    unknown = AlterEgos(egos.values, np.full(egos.values.nnz, MISSING))
    ready = item_based(ratings, 0)
    without = ready.predict(AlterEgos(egos.values), range(9), [4] * 9, SCALE, alpha=1.0, shrink=0.5)
    np.testing.assert_array_equal(ready.predict(unknown, range(9), [4] * 9, SCALE, alpha=1.0, shrink=0.5), without)


def test_without_signs_items_of_negative_cosine_say_nothing() -> None:
    ready = item_based(TARGET, 0)
    profile = AlterEgos(matrix([{0: 5.0, 1: 2.0}], 3))
    for similar in ("static", "rated"):
        found = ready.predict(profile, [0], [2], (0.0, 9.0), signed=False, similar=similar)
        assert found == pytest.approx([3.0 + 5.0 - 17.0 / 6.0], abs=1e-12)  # item 0 alone
        assert ready.predict(profile, [0], [2], SCALE, signed=False, similar=similar).tolist() == [5.0]


def test_people_who_rate_everything_alike_make_nothing_similar() -> None:
    ratings = matrix([{0: 3.3, 1: 3.3, 2: 3.3}, {0: 0.1, 1: 0.1, 2: 0.1}], 3)
    assert not item_based(ratings, 0).cosines(np.arange(3)).any()


def test_repr_shows_sizes_only() -> None:
    assert repr(item_based(TARGET)) == "ItemBased(3 items)"


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"k": 1.5},
        {"alpha": -0.1},
        {"alpha": float("nan")},
        {"shrink": -1.0},
        {"similar": "nearest"},
        {"level": np.zeros(3)},
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    profile = AlterEgos(matrix([{0: 5.0, 1: 2.0}], 3))
    with pytest.raises(InvalidParameter):
        item_based(TARGET).predict(profile, [0], [2], SCALE, **wrong)


@pytest.mark.parametrize(
    ("users", "items"), [([0], [3]), ([0], [-1]), ([1], [0]), ([0, 0], [1]), ([0.0], [1]), ([[0]], [[1]])]
)
def test_unknown_pairs_are_refused(users: Any, items: Any) -> None:
    profile = AlterEgos(matrix([{0: 5.0, 1: 2.0}], 3))
    with pytest.raises(InvalidParameter):
        item_based(TARGET).predict(profile, users, items, SCALE)
    with pytest.raises(InvalidParameter, match="items"):
        item_based(TARGET).predict(AlterEgos(matrix([{0: 5.0}], 2)), [0], [0], SCALE)
    with pytest.raises(InvalidParameter, match="significant"):
        item_based(TARGET, -1)
