"""X-Map on released moments: mapping, alter ego and prediction by hand; silent in noise."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.errors import InvalidParameter
from tacit.models.cross_domain.transfer import NO_TRANSFER, TransferSettings
from tacit.models.cross_domain.transfer_models import HonestXMap, honest_x_map

OWN = TransferSettings(centre=None)
NO_NOISE = (0.0, 0.0, 0.0, 0.0)
# items 0 to 2 of the source, 3 to 5 of the target
GRAM = np.array(
    [
        [4.0, 0.0, 0.0, 2.0, 1.0, 0.0],
        [0.0, 9.0, 0.0, 3.0, -3.0, 0.0],
        [0.0, 0.0, 1.0, -0.5, -0.5, 0.0],
        [2.0, 3.0, -0.5, 4.0, 1.0, 2.0],
        [1.0, -3.0, -0.5, 1.0, 4.0, -1.0],
        [0.0, 0.0, 0.0, 2.0, -1.0, 4.0],
    ]
)


def small(k: int = 50, gram: Any = GRAM, sigmas: Any = NO_NOISE) -> HonestXMap:
    return honest_x_map(gram, np.zeros(6), np.full(6, 10.0), sigmas, 3, OWN, k=k)


def test_a_source_item_is_replaced_by_the_most_similar_target_item_above_0() -> None:
    made = small()
    assert made.replacements.tolist() == [0, 0, -1]  # cosines 2/4 against 1/4, 3/6 against -3/6, both below 0
    assert made.similar.tolist() == [[2, 1, -1], [0, 2, -1], [0, 1, -1]]
    assert made.cosines.tolist() == [[0.5, 0.25, 0.0], [0.25, -0.25, 0.0], [0.5, -0.25, 0.0]]
    assert small(k=1).similar.tolist() == [[2], [0], [0]]
    assert small(k=2).similar.tolist() == [[2, 1], [0, 2], [0, 1]]  # of which no place is the item's own


def test_noise_is_added_to_the_diagonal_and_never_below_0() -> None:
    """(4 + 5)(4 + 5) under 5 of noise; and where a noisy diagonal is negative, 5 alone."""
    damaged = GRAM.copy()
    damaged[5, 5] = -100.0
    made = honest_x_map(damaged * 1e3, np.zeros(6), np.full(6, 10.0), (5e3, 0.0, 0.0, 0.0), 3, OWN, edge=1e-6)
    assert made.cosines[0].tolist() == pytest.approx([2 / math.sqrt(9 * 5), 1 / 9, 0.0])


def test_an_alter_ego_holds_means_and_real_ratings_win() -> None:
    made = small()
    values, held = made.alter_egos(csr_array(np.array([[5.0, 2, 4, 0, 0, 0], [5, 2, 4, 1, 0, 3], [0, 0, 4, 0, 0, 0]])))
    assert held.tolist() == [[True, False, False], [True, False, True], [False, False, False]]
    assert values[0, 0] == 3.5
    assert (values[1, 0], values[1, 2]) == (1.0, 3.0)


def test_a_prediction_by_hand() -> None:
    """Ratings 5 and 4 make an alter ego of 4.5 of item 3; a 2 of item 2 has no image. The level is 11/3, and 4.5 is 5/6 above."""
    made = small()
    above = 4.5 - 11 / 3
    moved = np.array([0.0, 0.25 * above / (0.25 + 0.2), 0.5 * above / (0.5 + 0.2)])
    assert made.predict([0, 1, 2], [5.0, 4.0, 2.0]) == pytest.approx(11 / 3 + moved)
    assert made.predict([0, 1, 2], [5.0, 4.0, 2.0], [1]) == pytest.approx([11 / 3])
    assert made.predict([2], [2.0]) == pytest.approx([2.0, 2.0, 2.0])  # an empty alter ego


def test_what_is_dissimilar_moves_the_other_way_by_its_size() -> None:
    """A real 5 of item 5 and a 2 of item 2, which has no image: level 3.5. Items 3 and 4 have cosines 1/2 and -1/4 with item 5."""
    moved = np.array([0.5 * 1.5 / 0.7, -0.25 * 1.5 / 0.45, 0.0])
    assert small().predict([2, 5], [2.0, 5.0]) == pytest.approx(3.5 + moved)


def test_many_users_at_once_get_what_each_gets_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.models.cross_domain.transfer_models._X_MAP_CHUNK", 4)
    rng = np.random.default_rng(9)
    table = np.where(rng.random((11, 6)) < 0.6, rng.integers(1, 6, (11, 6)), 0).astype(float)
    made, users, items = small(), np.repeat(np.arange(11)[::-1], 6), np.tile(np.arange(6), 11)
    for user, item, found in zip(users, items, made.predict_many(csr_array(table), users, items), strict=True):
        rated = np.flatnonzero(table[user])
        assert made.predict(rated, table[user, rated], [item]) == pytest.approx([found], abs=1e-12)


def test_where_only_noise_lies_between_the_domains_nothing_is_replaced() -> None:
    """Strong tastes in either domain; real ratings in the target still tell of what is similar there."""
    rng, taste = np.random.default_rng(11), np.full((6, 6), 400.0)
    taste[:3, 3:], taste[3:, :3] = 0.0, 0.0
    for _ in range(10):
        upper = np.triu(rng.normal(0.0, 20.0, (6, 6)))
        made = small(gram=taste + upper + np.triu(upper, 1).T, sigmas=(20.0, 1.0, 1.0, 1.0))
        assert made.directions > 0
        assert made.crossing == 0
        assert "only averages" in made.remark
        assert set(made.replacements.tolist()) == {-1}
        assert np.array_equal(made.predict([0, 1], [5.0, 1.0]), made.offsets.predict([0, 1], [5.0, 1.0]))
        assert (made.predict([0, 4], [1.0, 5.0]) != made.offsets.predict([0, 4], [1.0, 5.0])).any()
    linked = small(gram=np.full((6, 6), 400.0), sigmas=(20.0, 1.0, 1.0, 1.0))
    assert linked.crossing == 1
    assert min(linked.replacements.tolist()) >= 0


def test_in_noise_nothing_is_mapped() -> None:
    upper = np.triu(np.random.default_rng(10).normal(0.0, 50.0, (6, 6)))
    made = small(gram=GRAM + upper + np.triu(upper, 1).T, sigmas=(50.0, 1.0, 1.0, 1.0))
    assert (made.directions, made.crossing) == (0, 0)
    assert made.remark == NO_TRANSFER
    assert set(made.replacements.tolist()) == {-1}
    assert np.array_equal(made.predict([0, 1], [5.0, 1.0]), made.offsets.predict([0, 1], [5.0, 1.0]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"settings": TransferSettings()},
        {"gram": GRAM[:5, :5]},
        {"gram": GRAM + np.triu(GRAM)},
        {"k": 0},
        {"edge": -1.0},
    ],
)
def test_wrong_moments_are_refused(wrong: dict[str, Any]) -> None:
    right = {"gram": GRAM, "d": np.zeros(6), "n": np.ones(6), "sigmas": NO_NOISE, "n_source": 3, "settings": OWN}
    with pytest.raises(InvalidParameter):
        honest_x_map(**{**right, **wrong})
