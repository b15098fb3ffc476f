"""Directions of taste: found where they are planted, not found in noise; a posterior by hand; what must not change a prediction."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.errors import InvalidParameter
from tacit.models.cross_domain.transfer import NO_TRANSFER, OF_WHAT, Offsets, TransferSettings, remark_on
from tacit.models.cross_domain.transfer_models import FactorPosterior, factor_posterior

SETTINGS = TransferSettings(centre=3.0, taste=0.2)


class World(NamedTuple):
    ratings: csr_array
    truth: np.ndarray[Any, Any]  # users x items, without the noise of a rating
    n_source: int


def planted(users: int = 3_000, items: int = 40, seed: int = 3) -> World:
    """Two tastes that mean the same in both domains; the first half of the items is the source."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(items, 2)) * 0.7
    truth = 3.0 + rng.normal(size=(users, 2)) @ factors.T
    rated = rng.random((users, items)) < np.linspace(0.2, 0.6, items)
    values = np.clip(truth + 0.5 * rng.normal(size=truth.shape), 1.0, 5.0)
    return World(csr_array(np.where(rated, values, 0.0)), truth, items // 2)


def moments(ratings: csr_array, settings: TransferSettings = SETTINGS) -> tuple[Any, Any, Any]:
    """(d, n, G) without noise and without bounds on users."""
    rated = csr_array((np.ones(ratings.nnz), ratings.indices, ratings.indptr), shape=ratings.shape)
    centred = csr_array((ratings.data - settings.rest, ratings.indices, ratings.indptr), shape=ratings.shape)
    return centred.sum(axis=0), rated.sum(axis=0), (centred.T @ centred).toarray()


def noisy(matrix: Any, sigma: float, seed: int = 4) -> Any:
    upper = np.triu(np.random.default_rng(seed).normal(0.0, sigma, matrix.shape), 1)
    return matrix + upper + upper.T


def model(world: World, sigma: float = 0.0, settings: TransferSettings = SETTINGS, seed: int = 4) -> FactorPosterior:
    d, n, gram = moments(world.ratings)
    return factor_posterior(
        d, n, 1.0, 1.0, np.arange(d.size), noisy(gram, sigma, seed), sigma, world.n_source, settings
    )


def test_a_planted_world_of_two_tastes_is_recovered() -> None:
    world = planted()
    made = model(world, sigma=30.0)
    assert (made.directions, made.crossing) == (2, 2)
    assert made.remark == f"2 directions stand above the noise; 2 are seen in both domains. {OF_WHAT}"
    source = world.ratings.copy()
    source.data[source.indices >= world.n_source] = 0.0
    source.eliminate_zeros()
    users = np.repeat(np.arange(400), 20)
    items = np.tile(np.arange(20, 40), 400)
    told = np.abs(made.predict_many(source, users, items) - np.clip(world.truth[users, items], 1, 5)).mean()
    untold = np.abs(made.offsets.predict_many(source, users, items) - np.clip(world.truth[users, items], 1, 5)).mean()
    assert told < 0.6 * untold  # most of what offsets miss


def test_in_noise_there_is_no_direction_and_it_says_so() -> None:
    rng = np.random.default_rng(5)
    for seed in range(20):
        made = factor_posterior(
            rng.normal(0, 9, 80), 50 + rng.normal(0, 9, 80), 9.0, 9.0, np.arange(80), noisy(np.zeros((80, 80)), 7.0, seed), 7.0,
            40, TransferSettings(edge=1.15),
        )  # fmt: skip
        assert (made.directions, made.crossing) == (0, 0)
        assert made.remark == NO_TRANSFER
        assert np.array_equal(made.predict([0, 3], [5.0, 1.0]), made.offsets.predict([0, 3], [5.0, 1.0]))


def apart(ratings: csr_array, n_source: int) -> csr_array:
    """Every user's ratings in one domain only, by turns."""
    users = np.repeat(np.arange(ratings.shape[0]), np.diff(ratings.indptr))
    kept = (ratings.indices < n_source) == (users % 2 == 0)
    return csr_array((ratings.data[kept], (users[kept], ratings.indices[kept])), shape=ratings.shape)


@pytest.mark.parametrize("sigma", [5.0, 15.0, 40.0])
def test_without_anybody_in_both_domains_no_direction_crosses_and_that_is_said(sigma: float) -> None:
    """The same two tastes in both domains, as strong in each: eigenvectors come out mixed, and still nothing links them."""
    world = planted()
    alone = World(apart(world.ratings, world.n_source), world.truth, world.n_source)
    for seed in range(10):
        made = model(alone, sigma, seed=seed)
        assert made.directions >= 2
        assert made.crossing == 0
        assert made.remark == remark_on(made.directions, 0)
        assert "only averages" in made.remark
        in_source = np.square(made.loadings[:20]).sum(axis=0)
        in_target = np.square(made.loadings[20:]).sum(axis=0)
        assert (np.minimum(in_source, in_target) <= 1e-12 * np.maximum(in_source, in_target)).all()
        told = made.predict([0, 3, 7], [5.0, 1.0, 4.0])
        assert told == pytest.approx(made.offsets.predict([0, 3, 7], [5.0, 1.0, 4.0]), abs=1e-6)
        inside = made.predict([0, 3, 7], [5.0, 1.0, 4.0], np.arange(20))
        assert np.abs(inside - made.offsets.predict([0, 3, 7], [5.0, 1.0, 4.0], np.arange(20))).max() > 0.05


def test_a_link_that_few_make_is_seen_and_used() -> None:
    """One user in eight rated in both domains."""
    world = planted()
    table = apart(world.ratings, world.n_source).toarray()
    table[::8] = world.ratings.toarray()[::8]
    made = model(World(csr_array(table), world.truth, world.n_source), sigma=10.0)
    assert 1 <= made.crossing <= made.directions
    assert (made.predict([0, 3], [5.0, 1.0]) != made.offsets.predict([0, 3], [5.0, 1.0])).any()


def test_no_more_directions_cross_than_are_used() -> None:
    made = model(planted(), settings=replace(SETTINGS, most_directions=1))
    assert (made.directions, made.crossing) == (1, 1)
    assert made.remark == f"One direction stands above the noise and is seen in both domains. {OF_WHAT}"


def test_directions_inside_a_domain_are_looked_along_from_two_deviations_on() -> None:
    """4 + 4 items, sigma 1: the noise inside a domain ends at 2 sqrt 4 = 4. The strongest directions of both are linked by 3.7,
    above the noise of a 1 x 1 block, 3.5, and below that of 2 x 1, 3.91: a second direction above 4 hides the link."""
    signs = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2.0  # orthonormal rows

    def inside(first: float, second: float) -> Any:
        rest = -(first + second) / 2.0  # eigenvalues that add up to 0: no diagonal
        return (signs.T * [first, second, rest, rest]) @ signs

    across = 3.7 * np.outer(signs[0], signs[0])
    for second, found in ((4.0 - 1e-6, 1), (4.0 + 1e-6, 0)):
        for source, target in ((second, -4.0), (-4.0, second)):
            gram = np.block([[inside(12.0, source), across], [across.T, inside(12.0, target)]])
            made = factor_posterior(
                np.zeros(8), np.ones(8), 1.0, 1.0, np.arange(8), gram, 1.0, 4, replace(SETTINGS, edge=1.0)
            )
            assert made.crossing == found
            in_both = np.abs(made.loadings[:4]).max(axis=0) * np.abs(made.loadings[4:]).max(axis=0) > 1e-6
            assert in_both.any() == (found > 0)


def test_an_eigenvalue_counts_above_the_edge_and_not_below() -> None:
    """One spike b b^T in 4 items has the eigenvalue |b|^2 without its diagonal: 2.1 sigma sqrt 4 = 4.2 sigma decides."""
    gram = np.ones((4, 4)) * 5.0  # eigenvalue 15 off the diagonal
    settings = TransferSettings(edge=1.05)
    for sigma, found in ((15 / 4.2 - 1e-6, 1), (15 / 4.2 + 1e-6, 0)):
        made = factor_posterior(np.zeros(4), np.ones(4), 1.0, 1.0, np.arange(4), gram, sigma, 4, settings)
        assert made.directions == found
        assert made.crossing == 0  # all of it lies in the source


def test_loadings_and_a_posterior_by_hand() -> None:
    """Four items alike, eigenvalue 15, sigma 3: shrunk to sqrt(225 - 144) = 9, c^2 = 18 / 24; s_i = 1.

    h = .2 * (3/4)^2 = .1125, every loading sqrt(h v). Of a rating e above its expectation:
    L e / (L^2 k + v (1 - h)), where e is what is left of it without the mean of all. All four are of the source.
    """
    settings = replace(SETTINGS, level_ratings=0.0)
    gram, vary = np.full((4, 4), 5.0), np.array([1.0, -1.0, 1.0, -1.0])
    gram = np.outer(vary, vary) * gram
    made = factor_posterior(np.zeros(4), np.full(4, 7.0), 1.0, 1.0, np.arange(4), gram, 3.0, 4, settings)
    share, v = 0.2 * 0.75**2, 0.73
    assert np.abs(made.loadings[:, 0]) == pytest.approx([math.sqrt(share * v)] * 4)
    assert made.noise == pytest.approx(v * (1.0 - share))
    # ratings 4 and 2: level 0, left 1 and -1, so L^T e = 2 |L|, L^T L = 2 L^2
    weight = share * v * 2.0 / (2.0 * share * v + v * (1.0 - share))
    assert made.predict([0, 1], [4.0, 2.0], [2, 3]) == pytest.approx([3.0 + weight, 3.0 - weight])


def test_loadings_are_what_their_formula_says() -> None:
    """Written out again, for unequal directions and items: one of them has a count below its noise."""
    world, sigma = planted(600), 15.0
    d, n, gram = moments(world.ratings)
    head = np.arange(1, 40, 2)
    n[3] = 5.0
    gram = noisy(gram[np.ix_(head, head)], sigma)
    made = factor_posterior(d, n, 2.0, 90.0, head, gram, sigma, 20, replace(SETTINGS, taste=0.1))
    values, vectors = np.linalg.eigh(gram - np.diag(np.diag(gram)))
    kept = [place for place in range(20)[::-1] if values[place] > 1.05 * 2 * sigma * math.sqrt(20)]
    strength = np.sqrt(values[kept] ** 2 - 4 * 20 * sigma**2)
    seen = np.maximum(n[head], 90.0)
    plain = vectors[:, kept] * np.sqrt(strength) / (seen / seen.mean() + 0.2)[:, None]
    share = 0.1 * (np.square(2.0 * strength / (values[kept] + strength))).sum()
    plain *= math.sqrt(share * 0.73 / np.average(np.square(plain).sum(axis=1), weights=seen))
    assert 0.0 < share < 0.5
    assert len(kept) == made.directions >= 2
    assert np.abs(made.loadings) == pytest.approx(np.abs(plain), rel=1e-8)
    assert made.noise == pytest.approx(0.73 * (1.0 - share))


def test_what_taste_adds_is_cut_to_its_reach() -> None:
    made = model(planted(400), settings=replace(SETTINGS, reach=0.1))
    plain, rated = made.offsets, planted(400).ratings
    users, items = np.repeat(np.arange(50), 20), np.tile(np.arange(20, 40), 50)
    moved = made.predict_many(rated, users, items) - plain.predict_many(rated, users, items)
    assert 0.09 < np.abs(moved).max() <= 0.1 + 1e-12


def test_the_diagonal_and_the_signs_of_eigenvectors_do_not_matter() -> None:
    world = planted(500)
    d, n, gram = moments(world.ratings)
    head = np.arange(40)
    one = factor_posterior(d, n, 1.0, 1.0, head, gram, 5.0, 20, SETTINGS)
    other = factor_posterior(d, n, 1.0, 1.0, head, gram + np.diag(np.arange(40) * 1e5), 5.0, 20, SETTINGS)
    assert np.array_equal(one.loadings, other.loadings)
    turned = replace(one, loadings=one.loadings * np.where(np.arange(one.directions) % 2, 1.0, -1.0))
    assert turned.predict([0, 5], [5.0, 2.0]) == pytest.approx(one.predict([0, 5], [5.0, 2.0]), abs=1e-12)


def test_another_order_of_items_gives_the_same_predictions() -> None:
    world = planted(500)
    d, n, gram = moments(world.ratings)
    rng = np.random.default_rng(6)
    order = np.concatenate([rng.permutation(20), 20 + rng.permutation(20)])
    one = factor_posterior(d, n, 1.0, 1.0, np.arange(40), gram, 5.0, 20, SETTINGS)
    other = factor_posterior(d[order], n[order], 1.0, 1.0, np.arange(40), gram[np.ix_(order, order)], 5.0, 20, SETTINGS)
    place = np.argsort(order)
    assert other.predict(place[[2, 7, 11]], [5.0, 1.0, 4.0])[place[20:] - 20] == pytest.approx(
        one.predict([2, 7, 11], [5.0, 1.0, 4.0]), abs=1e-9
    )


def test_another_scale_gives_the_same_predictions_on_it() -> None:
    """r -> 25 r: d and its noise times 25, G times 625; n as it was."""
    world = planted(500)
    d, n, gram = moments(world.ratings)
    stars, hundred = TransferSettings(), TransferSettings.for_scale(25.0, 125.0)
    one = factor_posterior(d, n, 2.0, 3.0, np.arange(40), gram, 5.0, 20, stars)
    other = factor_posterior(25.0 * d, n, 50.0, 3.0, np.arange(40), 625.0 * gram, 3_125.0, 20, hundred)
    assert one.directions == other.directions > 0
    assert other.predict([2, 7], [125.0, 25.0]) == pytest.approx(25.0 * one.predict([2, 7], [5.0, 1.0]), rel=1e-9)


def test_items_off_the_head_are_predicted_by_their_offsets_and_their_ratings_still_set_the_level() -> None:
    world = planted(500)
    d, n, gram = moments(world.ratings)
    head = np.array([0, 3, 5, 21, 30, 33])
    made = factor_posterior(d, n, 1.0, 1.0, head, gram[np.ix_(head, head)], 1.0, 20, SETTINGS)
    assert made.directions > 0
    moved = made.predict([0, 3], [5.0, 1.0]) != made.offsets.predict([0, 3], [5.0, 1.0])
    assert (np.flatnonzero(moved) + 20).tolist() == [21, 30, 33]
    assert (made.predict([0, 3, 4], [5.0, 1.0, 5.0]) != made.predict([0, 3], [5.0, 1.0])).all()


def test_many_users_at_once_get_what_each_gets_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.models.cross_domain.transfer_models._CHUNK", 7)  # several stretches of users
    world = planted(60)
    made, table = model(world), world.ratings.toarray()
    users, items = np.repeat(np.arange(60)[::-1], 3), np.tile([1, 25, 39], 60)
    together = made.predict_many(world.ratings, users, items)
    for user, item, found in zip(users, items, together, strict=True):
        rated = np.flatnonzero(table[user])
        assert made.predict(rated, table[user, rated], [item]) == pytest.approx([found], abs=1e-12)


def test_fewer_directions_than_are_there_may_be_asked_for() -> None:
    assert model(planted(500), settings=replace(SETTINGS, most_directions=1)).directions == 1


def test_no_item_is_explained_beyond_the_variance_of_a_rating() -> None:
    """An item hardly rated, with a large number of noise: its loadings are cut, so that every posterior can be solved for."""
    gram = np.full((6, 6), 50.0)
    gram[0, :], gram[:, 0] = 900.0, 900.0
    seen = np.array([1.0, 1e4, 1e4, 1e4, 1e4, 1e4])
    made = factor_posterior(np.zeros(6), seen, 1.0, 1.0, np.arange(6), gram, 1.0, 3, TransferSettings(taste=0.9))
    norms = np.square(made.loadings).sum(axis=1)
    assert norms[0] == pytest.approx(0.73)
    assert norms.max() <= 0.73 + 1e-12


def test_a_head_of_none_or_one_has_no_pairs() -> None:
    for size in (0, 1):
        made = factor_posterior(
            [1.0, 2.0], [5.0, 5.0], 1.0, 1.0, np.arange(size), np.zeros((size, size)), 1.0, 1, SETTINGS
        )
        assert made.directions == 0
        assert isinstance(made.offsets, Offsets)


@pytest.mark.parametrize(
    "wrong",
    [
        {"head": [1, 0]},
        {"head": [0, 0]},
        {"head": [0, 2]},
        {"head": [-1, 0]},
        {"gram": np.zeros((3, 3))},
        {"gram": np.array([[0.0, 1.0], [2.0, 0.0]])},
        {"gram": np.full((2, 2), math.nan)},
        {"sigma_gram": -1.0},
        {"n_source": 5},
    ],
)
def test_wrong_moments_are_refused(wrong: dict[str, Any]) -> None:
    right = {
        "d": [0.0, 0.0], "n": [1.0, 1.0], "sigma_d": 1.0, "sigma_n": 1.0, "head": [0, 1], "gram": np.zeros((2, 2)),
        "sigma_gram": 1.0, "n_source": 1, "settings": SETTINGS,
    }  # fmt: skip
    with pytest.raises(InvalidParameter):
        factor_posterior(**{**right, **wrong})
