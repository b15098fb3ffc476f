"""X-Map as published: its formulas give the printed numbers, its sensitivity is exceeded, and it promises nothing."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from tacit.audit.cases.x_map import COUNTER_EXAMPLES
from tacit.errors import InvalidInput, InvalidParameter
from tacit.mechanisms import ReplayedNoise
from tacit.mechanisms.x_map import (
    CANDIDATES_FROM_RECORDS,
    REASONS,
    PublishedReplacement,
    PublishedSimilarItems,
    centred,
    local_sensitivity,
    printed_sensitivity,
    published_similar_items,
    similarities,
)

TARGET = {  # user: item = value
    2: {3: 4, 4: 2},
    3: {3: 1, 4: 5},
    4: {3: 5, 5: 4, 4: 1},
    5: {3: 2, 5: 1, 4: 4},
    6: {3: 3, 4: 4},
    7: {3: 2, 4: 5, 5: 4},
}


def ratings_of(users: dict[int, dict[int, int]], shape: tuple[int, int]) -> sparse.csr_array:
    cells = [(user, item, float(value)) for user, row in users.items() for item, value in row.items()]
    user, item, value = zip(*cells, strict=True)
    return sparse.csr_array((value, (user, item)), shape=shape)


def rows(*cells: tuple[float, float]) -> sparse.csr_array:
    return sparse.csr_array(np.array(cells, dtype=np.float64))


def slow(z: NDArray[np.float64], stored: NDArray[np.bool_], i: int, j: int) -> float:
    """Theorem 2, term by term."""
    terms = []
    dot, norms = z[:, i] @ z[:, j], math.sqrt((z[:, i] @ z[:, i]) * (z[:, j] @ z[:, j]))
    here = dot / norms if norms else 0.0
    for x in np.flatnonzero(stored[:, i] & stored[:, j]):
        rest = np.delete(z, x, axis=0)
        without = math.sqrt((rest[:, i] @ rest[:, i]) * (rest[:, j] @ rest[:, j]))
        terms += [abs(here)] if without < 1e-9 else [z[x, i] * z[x, j] / without, dot / without - here]
    return max(terms, default=-math.inf)


@pytest.mark.parametrize(
    ("pair", "cosine", "printed", "local"),
    [
        ((3, 4), -0.923581, -0.018515, 0.055065),
        ((3, 5), 0.198137, 0.283382, 0.226476),
        ((4, 5), -0.558799, 0.081228, 0.145715),
    ],
)
def test_printed_and_true_sensitivity_of_eight_users(
    pair: tuple[int, int], cosine: float, printed: float, local: float
) -> None:
    z = centred(ratings_of(TARGET, (8, 6)))
    assert similarities(z, [pair[0]]).cosine[0, pair[1]] == pytest.approx(cosine, abs=5e-7)
    for first, second in (pair, pair[::-1]):
        assert printed_sensitivity(z, first, second) == pytest.approx(printed, abs=5e-7)
        assert local_sensitivity(z, first, second) == pytest.approx(local, abs=5e-7)


@pytest.mark.parametrize(
    ("name", "cosine", "printed", "local"),
    [
        ("one-item-only", 1.0 / 3.0, 0.24254, 0.66667),
        ("negative-products", -0.6, 0.25, 0.4),
        ("dropped-term", 0.72650, 0.11509, 0.27350),
        ("without-absolute-values", -0.85714, -0.14286, 0.08567),
    ],
)
def test_counter_examples_change_by_more_than_is_printed(
    name: str, cosine: float, printed: float, local: float
) -> None:
    others, user, _ = COUNTER_EXAMPLES[name]
    z = rows(*others, user)
    assert similarities(z, [0]).cosine[0, 1] == pytest.approx(cosine, abs=1e-5)
    assert printed_sensitivity(z, 0, 1) == pytest.approx(printed, abs=1e-5)
    assert local_sensitivity(z, 0, 1) == pytest.approx(local, abs=1e-5)
    moved = abs(similarities(z, [0]).cosine[0, 1] - similarities(rows(*others), [0]).cosine[0, 1])
    assert moved == pytest.approx(local, abs=1e-5)
    assert moved > printed


def test_the_fast_sensitivity_equals_the_terms_one_by_one(rng: np.random.Generator) -> None:
    for users in (3, 7, 25):
        stored = rng.random((users, 6)) < 0.5
        values = np.where(stored, rng.integers(1, 6, stored.shape), 0).astype(np.float64)
        user, item = np.nonzero(stored)
        z = centred(sparse.csr_array((values[user, item], (user, item)), shape=stored.shape))
        dense = z.toarray()
        found = similarities(z, np.arange(6))
        both = stored.T.astype(np.int64) @ stored
        for i in range(6):
            for j in range(6):
                if i != j:
                    assert found.raters[i, j] == both[i, j]
                    assert found.sensitivity[i, j] == pytest.approx(slow(dense, stored, i, j), abs=1e-9)


def test_centring_keeps_a_rating_that_equals_its_mean_and_the_callers_table() -> None:
    table = ratings_of({0: {0: 3, 1: 3, 2: 3}}, (2, 3))
    assert centred(table).nnz == 3
    assert not centred(table).toarray().any()
    assert table.data.tolist() == [3.0, 3.0, 3.0]


def test_published_replacement_has_the_probabilities_of_the_report() -> None:
    x_sim = sparse.csr_array(np.array([[0.237541, 0.208902, 0.201423]]))
    spread = sparse.csr_array((np.array([0.9, 0.5, 0.0, -0.4]), np.arange(4), [0, 4]), shape=(1, 4))
    for table, epsilon, law in (
        (x_sim, 0.3, (0.333873, 0.333157, 0.332970)),
        (x_sim, 3.0, (0.338751, 0.331552, 0.329697)),
        (spread, 0.3, (0.262311, 0.254558, 0.245189, 0.237942)),
        (spread, 10.0, (0.661353, 0.243298, 0.069706, 0.025643)),
    ):
        np.testing.assert_allclose(PublishedReplacement(epsilon).laws(table).toarray()[0], law, atol=1e-6)


def test_published_replacement_keeps_the_strongest_and_skips_what_has_no_candidates() -> None:
    data, places = np.array([0.1, -0.9, 0.5, 0.5, 0.2]), np.array([0, 1, 2, 3, 3])
    table = sparse.csr_array((data, places, [0, 4, 4, 5]), shape=(3, 4))
    mechanism = PublishedReplacement(0.3, kept=2)
    assert (mechanism.laws(table).toarray() > 0.0).tolist() == [
        [False, True, True, False],  # the strongly dissimilar item, and of two equals the lower one
        [False] * 4,
        [False, False, False, True],
    ]
    drawn = np.array([mechanism.release(table, ReplayedNoise(seed)).value for seed in range(60)])
    assert set(drawn[:, 0].tolist()) == {1, 2}
    assert set(drawn[:, 1].tolist()) == {-1}
    assert set(drawn[:, 2].tolist()) == {3}
    everything = PublishedReplacement(0.3, kept=None)
    assert {int(everything.release(table, ReplayedNoise(seed)).value[0]) for seed in range(80)} == {0, 1, 2, 3}
    assert PublishedReplacement(1e5).release(table).value[0] in (2, 3)  # so large an epsilon takes the best


def test_what_is_published_promises_nothing_and_says_why() -> None:
    replaced = PublishedReplacement().release(sparse.csr_array(np.array([[0.5]])))
    similar = PublishedSimilarItems(1).release([[0.5, 0.1]], [[0.1, 0.1]])
    assert replaced.guarantee.epsilon == similar.guarantee.epsilon == math.inf
    assert CANDIDATES_FROM_RECORDS in replaced.guarantee.assumes
    assert similar.guarantee.assumes == set(REASONS)
    assert replaced.guarantee.proof == similar.guarantee.proof == "published-x-map"


def test_w_of_the_report_and_its_cap() -> None:
    assert PublishedSimilarItems(2).w(0.6, 0.01, 20) == pytest.approx(0.588610, abs=5e-7)
    assert PublishedSimilarItems(50).w(0.6, 0.01, 1000) == 0.6
    assert PublishedSimilarItems(50).w(99.0, 0.01, 1000) == pytest.approx(32.6777, abs=5e-5)
    assert PublishedSimilarItems(50, lowest=-1.0).w(0.6, 0.01, 1000) == 1.6


def test_exponents_are_raised_to_the_cut_and_divided_by_each_ones_sensitivity() -> None:
    mechanism = PublishedSimilarItems(1, epsilon=0.8, rho=0.5, least=0.01)
    near, reach = np.array([[0.9, 0.1, np.nan, 0.8]]), np.array([[0.02, -1.0, 9.0, 0.05]])
    w = 4.0 * 0.05 / 0.8 * math.log(2.0 / 0.5)  # the largest sensitivity of a candidate; three candidates
    assert w < 0.9
    expected = [0.8 * 0.9 / 0.08, 0.8 * (0.9 - w) / 0.04, -math.inf, 0.8 * 0.8 / 0.2]
    np.testing.assert_allclose(mechanism.exponents(near, reach)[0], expected, rtol=1e-12)
    law = mechanism.first(near, reach)[0]
    np.testing.assert_allclose(law, np.exp(expected) / np.exp(expected).sum(), rtol=1e-12)


def test_draws_are_without_replacement_and_have_the_stated_law() -> None:
    mechanism = PublishedSimilarItems(2, epsilon=40.0)
    near, reach = np.tile([0.9, 0.5, np.nan, 0.2], (20_000, 1)), np.full((20_000, 4), 0.5)
    items = mechanism.release(near, reach, ReplayedNoise(7)).value.items
    assert (items[:, 0] != items[:, 1]).all()
    assert 2 not in items
    weight = np.exp(mechanism.exponents(near[:1], reach[:1])[0])
    for first in (0, 1, 3):
        for second in {0, 1, 3} - {first}:
            chance = weight[first] / weight.sum() * weight[second] / (weight.sum() - weight[first])
            seen = ((items[:, 0] == first) & (items[:, 1] == second)).mean()
            assert abs(seen - chance) < 6.0 * math.sqrt(chance / 20_000)


def test_noise_has_the_published_scale_and_vanishes_where_the_printed_sensitivity_is_negative() -> None:
    mechanism = PublishedSimilarItems(1, epsilon=0.8)
    cosine = mechanism.release(np.full((20_000, 1), 0.3), np.full((20_000, 1), 0.05), ReplayedNoise(3)).value.cosine
    assert np.abs(cosine - 0.3).mean() == pytest.approx(0.05 / 0.4, rel=0.05)
    assert mechanism.release([[0.3]], [[-0.1]]).value.cosine.tolist() == [[0.3]]


def test_fewer_candidates_than_k_leave_places_empty() -> None:
    found = PublishedSimilarItems(3).release([[0.3, np.nan, 0.1], [np.nan] * 3], np.full((2, 3), 0.1)).value
    assert sorted(found.items[0].tolist()) == [-1, 0, 2]
    assert found.items[1].tolist() == [-1, -1, -1]
    assert not found.cosine[found.items < 0].any()


def test_similar_items_of_ratings_leave_out_the_item_itself_and_strangers() -> None:
    table = ratings_of({**TARGET, 0: {0: 5, 1: 1}}, (8, 6))
    found = published_similar_items(table, PublishedSimilarItems(5), [3, 0], ReplayedNoise(1)).value
    assert sorted(found.items[0].tolist()) == [-1, -1, -1, 4, 5]
    assert sorted(found.items[1].tolist()) == [-1, -1, -1, -1, 1]


def test_the_utility_theorems_hold_uncapped_and_fail_capped() -> None:
    mechanism = PublishedSimilarItems(50, least=1e-9)
    near = np.concatenate([np.linspace(0.9, 0.5, 50), np.linspace(0.45, -0.9, 950)])

    def kept(sensitivity: float) -> float:
        items = mechanism.release(
            np.tile(near, (30, 1)), np.full((30, 1000), sensitivity), ReplayedNoise(1)
        ).value.items
        return float((near[items].min(axis=1) >= 0.5 - mechanism.w(0.5, sensitivity, 1000) - 1e-12).mean())

    assert kept(1e-4) == 1.0
    assert kept(1e-3) == 0.0


def test_odd_input_is_refused_for_its_shape() -> None:
    for attempt in (
        lambda: PublishedReplacement().release(np.eye(2)),
        lambda: PublishedSimilarItems().release([[0.1]], [[0.1, 0.2]]),
        lambda: PublishedSimilarItems().release([0.1], [0.1]),
        lambda: similarities(np.eye(2), [0]),
    ):
        with pytest.raises(InvalidInput):
            attempt()
    for wrong in (
        lambda: PublishedReplacement(0.0),
        lambda: PublishedReplacement(kept=0),
        lambda: PublishedSimilarItems(0),
        lambda: PublishedSimilarItems(epsilon=math.nan),
        lambda: PublishedSimilarItems(rho=1.0),
        lambda: PublishedSimilarItems(least=0.0),
    ):
        with pytest.raises(InvalidParameter):
            wrong()
