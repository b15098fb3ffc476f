"""Offsets and levels: by hand on a few numbers; what noise, other scales and other orders of users do to them."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.errors import InvalidParameter
from tacit.models.cross_domain.transfer import TransferSettings, offsets

OWN = TransferSettings(centre=None)


def test_an_offset_is_the_posterior_mean_of_noisy_sums() -> None:
    """d n t / (n^2 t + sigma_d^2 + v n), n at least sigma_n; t = .12, v = .73."""
    made = offsets([30.0, -8.0, 1.0], [50.0, 20.0, -3.0], 3.0, 6.0, 2, OWN)
    by_hand = [
        30 * 50 * 0.12 / (2500 * 0.12 + 9 + 36.5),
        -8 * 20 * 0.12 / (400 * 0.12 + 9 + 14.6),
        1 * 6 * 0.12 / (36 * 0.12 + 9 + 4.38),
    ]
    assert made.values == pytest.approx(by_hand, rel=1e-12)
    assert made.means == (OWN.rest, OWN.rest)


def test_around_a_constant_the_means_of_the_domains_are_read_from_the_sums() -> None:
    """Source: 1.0 above 3.8 in 10 of n; target: 0.5 below. What is left is around those, with the noise of n on top."""
    settings = TransferSettings(centre=3.8)
    made = offsets([8.0, 2.0, -4.0, -1.0], [6.0, 4.0, 5.0, 5.0], 2.0, 1.0, 2, settings)
    assert made.means == pytest.approx((4.8, 3.3))
    left, seen, mean = np.array([2.0, -2.0, -1.5, 1.5]), np.array([6.0, 4, 5, 5]), np.array([1.0, 1, -0.5, -0.5])
    assert made.values == pytest.approx(left * seen * 0.12 / (seen**2 * 0.12 + 4.0 + mean**2 + 0.73 * seen), rel=1e-12)
    assert made.expected == pytest.approx(made.values + np.array([4.8, 4.8, 3.3, 3.3]))


def test_levels_and_predictions_by_hand() -> None:
    """Ratings 5 and 3 of source items: 5 - 3.8 - .5 = .7 and 3 - 3.8 + .5 = -.3; mean .2, times 2 / (2 + 3), times .5."""
    settings = TransferSettings(centre=3.8, level_share=0.5)
    made = offsets([0.0] * 3, [1.0] * 3, 1.0, 1.0, 2, settings)
    made = type(made)(2, np.array([0.5, -0.5, 0.25]), (3.8, 4.0), made.share, made.few, 1.0, 5.0)
    assert made.predict([0, 1], [5.0, 3.0]) == pytest.approx([4.0 + 0.25 + 0.5 * 0.2 * 2 / 5])
    assert made.predict([], []) == pytest.approx([4.25])
    assert made.predict([1], [5.0], [0]) == pytest.approx([3.8 + 0.5 + 0.5 * 1.7 / 4])
    assert made.directions == 0
    assert "averages" in made.remark


def test_centred_by_own_means_the_level_is_the_mean_of_what_is_left() -> None:
    made = offsets([30.0, -8.0, 1.0], [50.0, 20.0, 9.0], 3.0, 6.0, 2, TransferSettings(centre=None, level_share=0.2))
    level = np.mean([4.0 - made.values[0], 2.0 - made.values[1]])
    assert made.predict([0, 1], [4.0, 2.0]) == pytest.approx([level + made.values[2]])


def test_what_is_left_of_a_row_has_mean_0_and_an_offset_is_no_wider_than_the_scale() -> None:
    made = offsets([1e9, -1e9, 0.0], [100.0] * 3, 1.0, 1.0, 2, OWN)
    assert made.values.tolist() == [4.0, -4.0, 0.0]
    _, left = made.levels(csr_array(np.array([[5.0, 1.0, 3.0], [0.0, 2.0, 0.0]])))
    before = np.array([5.0, 1.0, 3.0]) - made.expected
    assert left.toarray()[0] == pytest.approx(before - before.mean())
    assert left.toarray()[1] == pytest.approx([0.0, 0.0, 0.0])


def test_predictions_stay_on_the_scale() -> None:
    made = offsets([900.0, -900.0], [100.0, 100.0], 1.0, 1.0, 0, TransferSettings(centre=None))
    assert made.predict([0], [5.0]).min() >= 1.0
    assert made.predict([1], [5.0]).max() <= 5.0


def test_many_users_at_once_get_what_each_gets_alone() -> None:
    rng = np.random.default_rng(1)
    table = np.where(rng.random((20, 9)) < 0.4, rng.integers(1, 6, (20, 9)), 0).astype(float)
    table[3] = 0.0
    made = offsets(rng.normal(size=9) * 9, rng.random(9) * 40, 2.0, 3.0, 5, TransferSettings())
    users, items = rng.integers(0, 20, 200), rng.integers(0, 9, 200)
    together = made.predict_many(csr_array(table), users, items)
    for user, item, found in zip(users, items, together, strict=True):
        rated = np.flatnonzero(table[user])
        assert made.predict(rated, table[user, rated], [item]) == pytest.approx([found], abs=1e-12)


def test_a_rating_of_0_is_a_rating() -> None:
    made = offsets([0.0, 0.0], [9.0, 9.0], 1.0, 1.0, 1, TransferSettings.for_scale(0.0, 4.0))
    stored = csr_array((np.array([0.0]), np.array([0]), np.array([0, 1])), shape=(1, 2))
    nothing = csr_array((1, 2))
    assert made.predict_many(stored, [0], [1])[0] < made.predict_many(nothing, [0], [1])[0]


def test_without_any_ratings_or_noise_nothing_is_divided_by_0() -> None:
    made = offsets([0.0, 0.0], [0.0, 0.0], 0.0, 0.0, 1, TransferSettings())
    assert made.values.tolist() == [0.0, 0.0]
    assert made.means == (3.8, 3.8)


def test_pure_noise_gives_small_offsets_and_means_within_the_clip() -> None:
    rng = np.random.default_rng(2)
    made = offsets(rng.normal(0, 50, 400), rng.normal(0, 100, 400), 50.0, 100.0, 200, TransferSettings())
    assert np.sqrt(np.square(made.values).mean()) < 0.2  # offsets themselves have a deviation of .35
    assert all(1.8 <= mean <= 5.8 for mean in made.means)


@pytest.mark.parametrize(
    "wrong",
    [
        {"d": [1.0]},
        {"n": [[1.0, 2.0]]},
        {"d": [1.0, math.nan]},
        {"n": [1.0, math.inf]},
        {"sigma_d": -1.0},
        {"sigma_n": math.nan},
        {"n_source": 3},
        {"n_source": -1},
    ],
)
def test_wrong_sums_are_refused(wrong: dict[str, Any]) -> None:
    right = {"d": [1.0, 2.0], "n": [1.0, 2.0], "sigma_d": 1.0, "sigma_n": 1.0, "n_source": 1, "settings": OWN}
    with pytest.raises(InvalidParameter):
        offsets(**{**right, **wrong})


@pytest.mark.parametrize(
    ("items", "values", "wanted"),
    [
        ([0, 0], [1.0, 2.0], None),
        ([0], [1.0, 2.0], None),
        ([2], [1.0], None),
        ([-1], [1.0], None),
        ([0.0], [1.0], None),
        ([0], [math.nan], None),
        ([0], [1.0], [2]),
        ([0], [1.0], [[1]]),
    ],
)
def test_wrong_profiles_are_refused(items: Any, values: Any, wanted: Any) -> None:
    made = offsets([1.0, 2.0], [1.0, 2.0], 1.0, 1.0, 1, OWN)
    with pytest.raises(InvalidParameter):
        made.predict(items, values, wanted)


def test_pairs_must_fit_the_table() -> None:
    made = offsets([1.0, 2.0], [1.0, 2.0], 1.0, 1.0, 1, OWN)
    for users, items, columns in (([0], [0, 1], 2), ([1], [0], 2), ([0], [0], 3)):
        with pytest.raises(InvalidParameter):
            made.predict_many(csr_array((1, columns)), users, items)
