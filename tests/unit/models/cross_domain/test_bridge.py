"""The bridge: against the formula written out in full, in a planted world, and in noise."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.errors import InvalidParameter
from tacit.models.cross_domain.transfer import NO_TRANSFER, TransferSettings
from tacit.models.cross_domain.transfer_models import Bridge, bridge, per_domain

OWN = TransferSettings(centre=None)
SIGMAS = (2.0, 1.0, 3.0, 0.5)


def planted(users: int = 2_000, items: int = 24, seed: int = 7) -> tuple[Any, Any]:
    """Users x items, centred by own means, of two tastes; half of the users are in both domains. And the tables' mask."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(users, 2)) @ rng.normal(size=(2, items)) * 0.6
    rated = rng.random((users, items)) < 0.6
    rated[: users // 4, items // 2 :] = False
    rated[users // 4 : users // 2, : items // 2] = False
    values = np.clip(3.0 + truth + 0.4 * rng.normal(size=truth.shape), 1.0, 5.0)
    mean = np.where(rated, values, 0.0).sum(axis=1) / np.maximum(rated.sum(axis=1), 1)
    return np.where(rated, values - mean[:, None], 0.0), np.where(rated, values, 0.0)


def released(centred: Any, sigma: float = 0.0, seed: int = 8) -> tuple[Any, Any, Any, Any]:
    upper = np.triu(np.random.default_rng(seed).normal(0.0, sigma, (24, 24)))
    rated = centred != 0.0
    source, target = rated[:, :12].any(axis=1), rated[:, 12:].any(axis=1)
    users = [(source & ~target).sum(), (~source & target).sum(), (source & target).sum()]
    gram = centred.T @ centred
    gram = np.triu(gram) + np.triu(gram, 1).T + upper + np.triu(upper, 1).T
    return gram, centred.sum(axis=0), rated.sum(axis=0), users


def test_it_is_the_regression_that_its_formula_says() -> None:
    gram, d, n, users = released(planted()[0], sigma=2.0)
    n[15] = 1  # below its noise, which is 3
    made = bridge(gram, d, n, users, SIGMAS, 12, OWN)
    u_s, u_t, u_b = users[0] + users[2], users[1] + users[2], users[2]
    of_source = gram[:12, :12] * u_b / u_s - u_b * np.outer(d[:12], d[:12]) / u_s**2
    of_target = gram[12:, 12:] * u_b / u_t - u_b * np.outer(d[12:], d[12:]) / u_t**2
    across = gram[:12, 12:] - u_b * np.outer(d[:12], d[12:]) / u_s / u_t
    e, v = np.linalg.eigh(of_source)
    keep = e > 3.0 * 2.0 * u_b / u_s * math.sqrt(12)
    f, w = np.linalg.eigh(of_target)
    given = w[:, f > 3.0 * 2.0 * u_b / u_t * math.sqrt(12)]
    ridge = 2.0 * max(0.1 * np.median(e[keep]), 2.0 * u_b / u_s)
    whole = v[:, keep] @ np.diag(1.0 / (e[keep] + ridge)) @ v[:, keep].T @ across @ given @ given.T
    assert made.weights @ made.loadings.T == pytest.approx(whole / (np.maximum(n[12:], 3.0) / u_t), rel=1e-8, abs=1e-12)
    assert made.directions == given.shape[1] > 0


def test_where_noise_sets_the_ridge_it_is_scaled_as_its_block_is() -> None:
    """One item in each domain, noise 2; one of four users of the source is in both: 16 / 4 = 4 inside the source, noise 2 / 4.

    So the ridge is 2 max(.4, .5) = 1, and 10 between the domains weighs 10 / (4 + 1) = 2.
    """
    made = bridge([[16.0, 10.0], [10.0, 20.0]], [0.0, 0.0], [9.0, 1.0], [3.0, 0.0, 1.0], (2.0, 0.0, 0.0, 0.0), 1, OWN)
    assert made.weights @ made.loadings.T == pytest.approx(2.0)


def test_the_edge_is_scaled_as_its_block_is() -> None:
    """So much noise that the second direction of the target stands above the edge of the scaled block, and would not unscaled."""
    gram, d, n, users = released(planted()[0])
    u_t, u_b = users[1] + users[2], users[2]
    second = np.linalg.eigvalsh(gram[12:, 12:] * u_b / u_t - u_b * np.outer(d[12:], d[12:]) / u_t**2)[-2]
    sigma = second / (3.0 * math.sqrt(12) * math.sqrt(u_b / u_t))
    assert bridge(gram, d, n, users, (sigma, 1.0, 1.0, 1.0), 12, OWN).directions == 2


def test_a_prediction_moves_by_the_bounded_profile_through_the_bridge() -> None:
    gram, d, n, users = released(planted()[0])
    made = bridge(gram, d, n, users, SIGMAS, 12, OWN)
    items, values = np.arange(10), np.array([5.0, 1, 5, 1, 5, 1, 5, 1, 5, 1])
    left = values - made.offsets.expected[items]
    left = np.clip(left - left.mean(), -2.0, 2.0)
    left *= min(1.0, 4.0 / np.linalg.norm(left))
    assert np.linalg.norm(left) == pytest.approx(4.0)  # ten ratings far apart reach the bound
    moved = np.clip(left @ made.weights[:10] @ made.loadings.T, -1.5, 1.5)
    base = made.offsets.predict(items, values)
    assert made.predict(items, values) == pytest.approx(np.clip(base + moved, 1.0, 5.0), abs=1e-12)
    assert np.array_equal(made.predict(items, values, [3, 4]), made.offsets.predict(items, values, [3, 4]))


def test_it_tells_more_than_offsets_in_a_planted_world_and_nothing_in_noise() -> None:
    centred, values = planted()
    made = bridge(*released(centred, sigma=3.0), (3.0, 1.0, 1.0, 1.0), 12, OWN)
    hidden = values[-200:].copy()
    hidden[:, 12:] = 0.0
    users, items = np.nonzero(values[-200:, 12:])
    truth = values[-200:, 12:][users, items]
    told = np.abs(made.predict_many(csr_array(hidden), users, items + 12) - truth).mean()
    untold = np.abs(made.offsets.predict_many(csr_array(hidden), users, items + 12) - truth).mean()
    assert told < 0.85 * untold
    assert 1 <= made.crossing <= made.directions
    silent = bridge(*released(centred, sigma=1e4), (1e4, 1.0, 1.0, 1.0), 12, OWN)
    assert (silent.directions, silent.crossing) == (0, 0)
    assert silent.remark == NO_TRANSFER
    assert np.array_equal(silent.predict([0, 1], [5.0, 1.0]), silent.offsets.predict([0, 1], [5.0, 1.0]))


def test_where_only_noise_lies_between_the_domains_nothing_is_carried_over_it() -> None:
    """Nobody in both: either domain has its tastes, and the block between them is noise."""
    centred = planted()[0]
    centred[::2, :12], centred[1::2, 12:] = 0.0, 0.0
    for seed in range(10):
        made = bridge(*released(centred, sigma=3.0, seed=seed), (3.0, 1.0, 1.0, 1.0), 12, OWN)
        assert made.directions > 0
        assert made.crossing == 0
        assert "only averages" in made.remark
        assert np.array_equal(made.predict([0, 1], [5.0, 1.0]), made.offsets.predict([0, 1], [5.0, 1.0]))


def test_noisy_counts_of_users_never_divide_by_0() -> None:
    assert per_domain([-5.0, -7.0, -2.0], 3.0) == (3.0, 3.0, 3.0)
    assert per_domain([10.0, 20.0, 0.2], 0.0) == (1.0, 11.0, 21.0)
    made = bridge(np.zeros((2, 2)), [0.0, 0.0], [-4.0, -4.0], [-9.0, -9.0, -9.0], SIGMAS, 1, OWN)
    assert made.directions == 0
    assert np.isfinite(made.predict([0], [5.0])).all()


@pytest.mark.parametrize("source", [0, 2])
def test_a_domain_without_items_has_no_direction(source: int) -> None:
    made = bridge(np.full((2, 2), 1e6), [0.0, 0.0], [9.0, 9.0], [5.0, 5.0, 5.0], SIGMAS, source, OWN)
    assert isinstance(made, Bridge)
    assert made.directions == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"settings": TransferSettings()},  # of ratings centred by a constant
        {"gram": np.zeros((3, 3))},
        {"gram": np.array([[0.0, 1.0], [2.0, 0.0]])},
        {"users": [1.0, 2.0]},
        {"users": [1.0, 2.0, math.nan]},
        {"sigmas": (1.0, 1.0, -1.0, 1.0)},
        {"edge": 0.0},
        {"most": 0},
    ],
)
def test_wrong_moments_are_refused(wrong: dict[str, Any]) -> None:
    right = {
        "gram": np.zeros((2, 2)), "d": [0.0, 0.0], "n": [1.0, 1.0], "users": [1.0, 1.0, 1.0], "sigmas": SIGMAS, "n_source": 1,
        "settings": OWN,
    }  # fmt: skip
    with pytest.raises(InvalidParameter):
        bridge(**{**right, **wrong})
