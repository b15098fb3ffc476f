"""Each method of the comparison with so much epsilon that noise is gone: what is left must be what the method is about."""

import numpy as np
import pytest

import tacit.data
from tacit.evaluation.effort import Effort
from tacit.evaluation.part import untold
from tacit.evaluation.private_slates import drawn, names, preselected, released
from tacit.evaluation.private_slates.baselines import baselines
from tacit.evaluation.private_slates.films import Films, Items, films
from tacit.evaluation.private_slates.stability import best_independent
from tacit.evaluation.private_slates.tries import INF, K, noise_of, rng_of

LOUD = 5000.0


@pytest.fixture(scope="module")
def world() -> Films:
    return films(tacit.data.synthetic(users=300, items=130, rng=np.random.default_rng(5)), rng=np.random.default_rng(1))


def most_liked(world: Films, count: int) -> Items:
    return np.sort(np.argsort(-world.counts, kind="stable")[:count])


def test_baselines(world: Films) -> None:
    found = {one.method: one for one in baselines(world, 200, 1)}
    np.testing.assert_array_equal(found[names.TOP].slates, [most_liked(world, K)])
    rows = world.contributions.toarray()
    kernel, chosen = rows.T @ rows, list[int]()
    for _ in range(K):  # the slow and obvious way
        gains = [
            -np.inf if i in chosen else np.linalg.slogdet(kernel[np.ix_([*chosen, i], [*chosen, i])])[1]
            for i in range(130)
        ]
        chosen.append(int(np.argmax(gains)))
    np.testing.assert_array_equal(found[names.GREEDY].slates, [sorted(chosen)])
    liked = world.counts[found[names.K_DPP].slates].mean()
    assert world.counts.mean() < liked < world.counts[most_liked(world, K)].mean()
    assert abs(world.counts[found[names.UNIFORM].slates].mean() - world.counts.mean()) < 0.1 * world.counts.mean()
    assert found[names.K_DPP].guarantee is None
    assert found[names.TOP].epsilon == INF


def test_gumbel_takes_the_most_liked(world: Films, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn, "GUMBEL_EPSILONS", (LOUD,))
    (one,) = drawn.gumbel(world, 3, 1)
    liked = np.sort(world.counts)[::-1][:K].sum()
    assert (world.counts[one.slates].sum(axis=1) == liked).all()


def test_tempered_slates_near_the_cap_have_nearly_the_best_independent_score(world: Films) -> None:
    *_, one = drawn.tempered(world, 40, 1)
    assert one.epsilon == drawn.capped(world)
    best = world.counts[best_independent(world.genres, world.counts.astype(float), K)].sum()
    shares = world.counts[one.slates].sum(axis=1) / best
    assert 0.85 < shares.mean() <= 1.0
    assert shares.max() <= 1.0
    for slate in one.slates:
        assert np.linalg.matrix_rank(world.genres[slate]) == K


def test_slates_that_find_their_range_are_as_good_at_every_large_epsilon(world: Films) -> None:
    best = world.counts[best_independent(world.genres, world.counts.astype(float), K)].sum()
    found = {one.epsilon: one for one in drawn.searched(world, 30, 1)}
    assert found.keys() == set(drawn.SEARCHED_EPSILONS)
    shares = {epsilon: world.counts[one.slates].sum(axis=1).mean() / best for epsilon, one in found.items()}
    assert shares[0.1] < shares[1.0] < shares[3.0] < 1.0
    assert shares[3.0] > 0.85
    for epsilon, one in found.items():
        assert one.guarantee is not None
        assert one.guarantee.epsilon == epsilon
        assert np.linalg.matrix_rank(world.genres[one.slates[0]]) == K


def test_more_epsilon_makes_natural_slates_more_popular_and_less_by_the_published_bound(world: Films) -> None:
    liked = {(one.method, one.epsilon): world.counts[one.slates].mean() for one in drawn.natural(world, 400, 1)}
    assert liked[names.NATURAL, 0.1] < liked[names.NATURAL, 3.0]
    assert liked[names.PUBLISHED, 0.1] < liked[names.NATURAL, 3.0]
    assert liked[names.PUBLISHED, 3.0] < liked[names.NATURAL, 3.0]


def test_two_stages_stay_among_the_candidates(world: Films, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preselected, "EPSILONS", (LOUD,))
    monkeypatch.setattr(preselected, "CANDIDATES", 14)
    (one,) = preselected.two_stage(world, 6, 1)
    assert world.counts[one.slates].min() >= np.sort(world.counts)[::-1][13]
    assert len(np.unique(one.slates, axis=0)) > 1  # of which the second stage draws
    assert one.guarantee is not None
    assert one.guarantee.epsilon == pytest.approx(LOUD)


def test_sparse_vector_finds_films_above_the_threshold_in_every_order(
    world: Films, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preselected, "EPSILONS", (LOUD,))
    monkeypatch.setattr(preselected, "HITS", 15)
    (one,) = preselected.sparse_vector(world, 20, 1)
    threshold = round(preselected.THRESHOLD * world.users)
    above = np.flatnonzero(world.counts >= threshold)
    assert 15 < above.size < 130
    # 15 films may have genres of a rank below 10; what fills the slate then are candidates too
    assert (world.counts[one.slates] >= threshold).all()
    assert np.unique(one.slates).size > 15  # another order, other films


def test_laplace_counts_without_noise_are_the_counts_of_some_likes(
    world: Films, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(released, "LAPLACE_EPSILONS", (1e6,))
    (one,) = released.laplace(world, 2, 1)
    cut = released.some_likes(world, released.LIKES_EACH, rng=rng_of(1, names.LAPLACE))
    counts = np.asarray(cut.sum(axis=0)).ravel()
    np.testing.assert_array_equal(one.slates, [np.sort(released.by_quality(world, counts))] * 2)
    kernel = world.genres @ world.genres.T * np.exp(3.0 * np.add.outer(counts, counts) / counts.max())
    assert released.by_quality(world, counts)[0] == np.argmax(np.diagonal(kernel))
    first = released.by_quality(world, counts)[:2]
    pairs = [np.linalg.det(kernel[np.ix_([first[0], i], [first[0], i])]) for i in range(130)]
    assert first[1] == np.argmax(pairs)


def test_a_kernel_with_little_noise_is_the_kernel_of_co_likes(world: Films, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(released, "KERNEL_EPSILONS", (1e8,))
    monkeypatch.setattr(released, "K_DPP_EPSILON", 1e8)
    greedy, drawn_slates = released.noisy_kernels(world, Effort.QUICK, 200, 1, untold)
    known = {one.method: one for one in baselines(world, 200, 1)}
    np.testing.assert_array_equal(greedy.slates, np.repeat(known[names.GREEDY].slates, 2, axis=0))
    apart = world.counts[drawn_slates.slates].mean() / world.counts[known[names.K_DPP].slates].mean()
    assert 0.9 < apart < 1.1
    assert drawn_slates.groups is not None
    assert drawn_slates.groups.tolist() == [0] * 200 + [1] * 200


def test_no_two_methods_epsilons_or_seeds_share_their_noise() -> None:
    drawn_bytes = {
        noise_of(seed, method, epsilon).draw(8)
        for seed in (1, 2)
        for method in (names.NATURAL, names.PUBLISHED)
        for epsilon in (0.1, 1.0, INF)
    }
    assert len(drawn_bytes) == 12
    assert rng_of(1, names.SPARSE).random() != rng_of(1, names.LAPLACE).random()
    assert noise_of(1, "m", 0.1).draw(8) == noise_of(1, "m", 0.1).draw(8)
