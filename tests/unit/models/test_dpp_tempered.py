"""Slates of graded kernels: vectors, a referee in exact and multiprecision arithmetic, and what plainer ways get wrong."""

import math
from itertools import combinations

import mpmath
import numpy as np
import pytest
from scipy.linalg import qr

from tacit.errors import InvalidParameter
from tacit.models.dpp.laws import RngCoins, log_table, subsets, weighted_rows
from tacit.models.dpp.tempered import MOST_NATS, TemperedSampler, features_of, one_sided_jacobi

VECTOR_E = np.array(
    [[int(digit) for digit in row] for row in ["1100", "0011", "1010", "0101", "1000", "0111"]], dtype=float
)


def law_of(basis: np.ndarray, log_values: np.ndarray, k: int) -> np.ndarray:
    """What choosing eigenvectors and then the chain rule draw: sum over J of prod_J lambda / e_k times det(V_YJ)^2."""
    chosen = [list(one) for one in combinations(range(basis.shape[1]), k)]
    logs = np.array([log_values[one].sum() for one in chosen])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    slates = subsets(len(basis), k)
    found = [
        sum(weight * np.linalg.det(basis[np.ix_(slate, one)]) ** 2 for weight, one in zip(weights, chosen, strict=True))
        for slate in slates
    ]
    return np.array(found)


def sampled_law(features: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    sampler = TemperedSampler(features, weights, k)
    return law_of(sampler._vectors.T, sampler._log_values, k)


def referee(features: np.ndarray, weights: np.ndarray, k: int) -> tuple[np.ndarray, float]:
    """The law and log e_k, every determinant in 60 digits."""
    with mpmath.workdps(60):
        found = []
        for slate in subsets(len(features), k):
            rows = mpmath.matrix(features[list(slate)].tolist())
            found.append(mpmath.det(rows * rows.T) * mpmath.exp(mpmath.fsum(map(float, weights[list(slate)]))))
        total = mpmath.fsum(found)
        return np.array([float(one / total) for one in found]), float(mpmath.log(total))


def apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).sum() / 2.0)


def graded(seed: int, items: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Integer features of rank 4 or 5 with weights that span 40 nats: popular items are often dependent."""
    rng = np.random.default_rng(seed)
    while True:
        features = rng.integers(-2, 3, (items, 5)).astype(float)
        weights = rng.choice([0.0, 20.0, 40.0], items) if seed % 2 else rng.uniform(0.0, 40.0, items)
        if np.linalg.matrix_rank(features) >= 4:
            return features, weights


def test_vector_d() -> None:
    features = np.linalg.cholesky([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1.0]])
    weights = np.log(2.0) * np.array([3.0, 2.0, 0.0])
    assert np.allclose(sampled_law(features, weights, 2), [2 / 3, 2 / 9, 1 / 9], rtol=0, atol=1e-12)
    # {01}: 2^5 3/4, {02}: 2^3, {12}: 2^2
    assert TemperedSampler(features, weights, 2).log_normaliser == pytest.approx(math.log(36.0), abs=1e-12)


def test_vector_e_at_forty_nats() -> None:
    weights = np.array([40.0] * 4 + [0.0, 0.0])
    law = dict(zip(subsets(6, 4), sampled_law(VECTOR_E, weights, 4), strict=True))
    expected, log_sum = referee(VECTOR_E, weights, 4)
    assert expected[0] == 0.0
    assert law[0, 1, 2, 3] < 1e-14
    eight = [slate for slate in law if len(set(slate) & {0, 1, 2, 3}) == 3]
    true = dict(zip(subsets(6, 4), expected, strict=True))
    assert len(eight) == 8
    assert all(abs(true[slate] - 0.125) < 1e-17 for slate in eight)
    assert all(abs(law[slate] - 0.125) < 1e-12 for slate in eight)
    assert apart(np.array(list(law.values())), expected) < 1e-14
    found = TemperedSampler(VECTOR_E, weights, 4).log_normaliser
    assert found == pytest.approx(log_sum, abs=1e-12)
    assert round(found, 6) == 122.079442


@pytest.mark.parametrize("seed", range(24))
def test_right_at_forty_nats_by_the_referee(seed: int) -> None:
    features, weights = graded(seed)
    law, log_sum = referee(features, weights, 4)
    assert apart(sampled_law(features, weights, 4), law) < 1e-12
    assert TemperedSampler(features, weights, 4).log_normaliser == pytest.approx(log_sum, abs=1e-12)


def test_lost_far_beyond_the_limit() -> None:
    """Why there is one: at 100 nats only the slate of probability 0 is drawn."""
    weights = np.array([100.0] * 4 + [0.0, 0.0])
    assert sampled_law(VECTOR_E, weights, 4)[0] > 0.999
    assert 1e-9 < apart(sampled_law(VECTOR_E, weights * 0.6, 4), referee(VECTOR_E, weights * 0.6, 4)[0]) < 1e-5


def test_plain_eigenvalues_of_the_gram_matrix_fail() -> None:
    features = np.array([[0, -2, -1, 2], [0, 1, 1, 0], [-2, 0, 0, 0], [-1, 0, 0, -1], [3, 0, 3, 3], [0, 0, 0, -2.0]])
    weights = np.array([0.0, 0.0, 40.0, 40.0, 40.0, 0.0])
    law, log_sum = referee(features, weights, 4)
    assert apart(sampled_law(features, weights, 4), law) < 1e-12
    rows, top = weighted_rows(features, weights)
    values, vectors = np.linalg.eigh(rows @ rows.T)
    log_values = np.log(np.maximum(values[-4:], 1e-300))
    assert apart(law_of(vectors[:, -4:], log_values, 4), law) > 0.01
    assert abs(log_table(log_values, 4)[4, -1] + 4 * top - log_sum) > 0.1


def test_unpivoted_qr_fails() -> None:
    """Its first column is small in the most popular row: the reflection adds that row to others, which drown in its rounding."""
    features = np.array([[0, 0, 1, 3], [1, 1, 0, 2], [-2, 0, 0, 1], [1, 0, 2, 0], [-1, 1, 0, -1], [0, 3, 3, 3.0]])
    weights = np.array([40.0, 0.0, 0.0, 0.0, 40.0, 0.0])
    _, log_sum = referee(features, weights, 4)
    rows, top = weighted_rows(features, weights)
    _, r = qr(rows[np.argsort(-weights, kind="stable")], mode="economic")
    plain = log_table(2.0 * np.log(one_sided_jacobi(r.T)[1]), 4)[4, -1] + 4 * top
    assert abs(plain - log_sum) > 1e-9
    assert TemperedSampler(features, weights, 4).log_normaliser == pytest.approx(log_sum, abs=1e-12)


def test_unsorted_rows_fail() -> None:
    features = np.array([[2, 0, 0, -1], [0, 2, 0, 2], [-1, 0, 0, 0], [2, 0, -2, 2], [1, 0, 0, 0], [0, -1, 1, -2.0]])
    weights = np.array([0.0, 20.0, 0.0, 0.0, 20.0, 40.0])
    _, log_sum = referee(features, weights, 4)
    rows, top = weighted_rows(features, weights)
    _, r, _ = qr(rows, mode="economic", pivoting=True)
    plain = log_table(2.0 * np.log(one_sided_jacobi(r.T)[1]), 4)[4, -1] + 4 * top
    assert abs(plain - log_sum) > 1e-9
    assert TemperedSampler(features, weights, 4).log_normaliser == pytest.approx(log_sum, abs=1e-12)


def test_directions_beyond_the_rank_do_not_compete() -> None:
    """A column repeated in another scale adds nothing; taken for a direction, its rounding would stand beside the unpopular."""
    features, weights = graded(3)
    doubled = np.column_stack([features, 0.3 * features @ np.ones(5), features[:, 0] / 7.0])
    stated = referee(doubled, weights, 4)[0]
    assert apart(sampled_law(doubled, weights, 4), stated) < 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_expected_score_rises_with_theta_and_stays_below_the_best_independent_set(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.integers(0, 2, (40, 6)).astype(float)
    scores = np.floor(40.0 * rng.random(40) ** 3)
    thetas = np.linspace(0.0, 1.0, 21)  # up to 40 nats
    expected = [TemperedSampler(features, theta * scores, 4).marginals @ scores for theta in thetas]
    assert np.all(np.diff(expected) >= -1e-9)
    best, taken = 0.0, np.zeros((0, 6))  # greedy is optimal: independent rows are a matroid
    for item in np.argsort(-scores, kind="stable"):
        longer = np.vstack([taken, features[item]])
        if np.linalg.matrix_rank(longer) == len(longer) <= 4:
            best, taken = best + scores[item], longer
    assert expected[-1] <= best + 1e-9
    assert expected[-1] > best - 3.0  # at 40 nats it has nearly arrived there


def test_marginals_are_those_of_the_law() -> None:
    features, weights = graded(2)
    law, _ = referee(features, weights, 4)
    members = np.array([[item in slate for item in range(7)] for slate in subsets(7, 4)])
    marginals = TemperedSampler(features, weights, 4).marginals
    assert np.allclose(marginals, law @ members, rtol=0, atol=1e-12)
    assert marginals.sum() == pytest.approx(4.0)


def test_weights_that_are_all_higher_change_the_normaliser_alone() -> None:
    features, weights = graded(4)
    one, other = TemperedSampler(features, weights, 4), TemperedSampler(features, weights + 1e4, 4)
    assert other.log_normaliser == pytest.approx(one.log_normaliser + 4e4, rel=1e-14)
    assert np.allclose(one.marginals, other.marginals, atol=1e-9)


@pytest.mark.parametrize("scan", [True, False])
def test_slates_are_sets_of_independent_items(scan: bool) -> None:
    sampler = TemperedSampler(VECTOR_E, [40.0] * 4 + [0.0, 0.0], 4, scan=scan)
    drawn = sampler.draw_many(300, RngCoins(np.random.default_rng(5)))
    assert drawn.shape == (300, 4)
    assert np.all(np.diff(drawn, axis=1) > 0)
    assert all(np.linalg.matrix_rank(VECTOR_E[slate]) == 4 for slate in drawn)
    assert len({tuple(slate) for slate in drawn.tolist()}) == 8
    assert sampler.draw(RngCoins(np.random.default_rng(5))).shape == (4,)


def test_zero_rows_duplicates_and_all_items() -> None:
    features = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    law = dict(zip(subsets(4, 2), sampled_law(features, np.zeros(4), 2), strict=True))
    assert law[0, 1] < 1e-15
    assert law[0, 3] < 1e-15
    assert law[0, 2] == pytest.approx(0.5)
    everything = TemperedSampler(np.eye(3), [0.0, 9.0, 1.0], 3)
    assert everything.draw(RngCoins(np.random.default_rng(0))).tolist() == [0, 1, 2]
    assert everything.log_normaliser == pytest.approx(10.0)


def test_wide_features() -> None:
    rng = np.random.default_rng(8)
    features, weights = rng.integers(-1, 2, (5, 9)).astype(float), np.array([40.0, 30.0, 0.0, 10.0, 40.0])
    assert apart(sampled_law(features, weights, 3), referee(features, weights, 3)[0]) < 1e-12


@pytest.mark.parametrize(
    ("features", "weights", "k"),
    [
        (np.eye(3), [0.0, 0.0], 1),
        (np.eye(3), [0.0, 0.0, np.nan], 1),
        (np.eye(3), [0.0, 0.0, np.inf], 1),
        (np.eye(3), np.zeros(3), 0),
        (np.eye(3), np.zeros(3), 4),
        (np.ones((3, 3)), np.zeros(3), 2),
        ([[np.nan]], [0.0], 1),
    ],
)
def test_bad_shapes_are_refused(features: object, weights: object, k: int) -> None:
    with pytest.raises(InvalidParameter):
        TemperedSampler(features, weights, k)  # type: ignore[arg-type]


def test_a_rank_below_k_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="rank"):
        TemperedSampler(np.eye(3), np.zeros(3), 3, rank=2)


def test_repr_shows_sizes_only() -> None:
    assert repr(TemperedSampler(VECTOR_E, np.zeros(6), 4)) == "TemperedSampler(6 items, k = 4)"


def test_features_of_a_kernel_give_it_back() -> None:
    kernel = np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1.0]])
    features, nats = features_of(kernel)
    assert np.allclose(features @ features.T, kernel, atol=1e-15)
    assert nats == MOST_NATS
    assert features_of(VECTOR_E @ VECTOR_E.T)[0].shape == (6, 4)
    for kernel in (np.zeros((2, 2)), np.diag([1.0, 1.0, 1e-15, 0.0])):
        with pytest.raises(InvalidParameter):
            features_of(kernel)


@pytest.mark.parametrize("scale", [1.0, 1e-2, 1e-3])
def test_a_kernel_is_right_up_to_the_nats_it_allows_and_not_far_beyond(scale: float) -> None:
    """Four popular items that depend on each other, two others, and one feature in another scale: a condition up to 10^10."""
    beyond = 0.0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        popular = rng.integers(-2, 3, (4, 3)) @ rng.integers(-2, 3, (3, 4))
        features = np.vstack([popular, rng.integers(-2, 3, (2, 4))]) * np.array([1.0, 1.0, 1.0, scale])
        if np.linalg.matrix_rank(features) < 4:
            continue
        made, nats = features_of(features @ features.T)
        assert scale == 1.0 or nats < MOST_NATS
        weights = nats * np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
        assert apart(sampled_law(made, weights, 4), referee(features, weights, 4)[0]) < 1e-7
        weights *= MOST_NATS / nats
        beyond = max(beyond, apart(sampled_law(made, weights, 4), referee(features, weights, 4)[0]))
    assert beyond > (1e-11 if scale == 1.0 else 1e-6)


def test_jacobi_turns_columns_until_they_are_orthogonal() -> None:
    matrix = np.random.default_rng(0).normal(size=(9, 6)) * 10.0 ** -np.arange(0, 24, 4)
    rotation, values = one_sided_jacobi(matrix)
    turned = matrix @ rotation
    assert np.allclose(rotation.T @ rotation, np.eye(6), atol=1e-14)
    assert np.all(np.diff(values) <= 0.0)
    assert np.allclose(np.linalg.norm(turned, axis=0)[:3], values[:3], rtol=1e-12)
    assert np.allclose(values[:2], np.linalg.svd(matrix, compute_uv=False)[:2], rtol=1e-13)
    with mpmath.workdps(60):  # all of them, down to 1e-20 of the largest
        gram = mpmath.matrix(matrix.tolist()).T * mpmath.matrix(matrix.tolist())
        true = sorted((float(mpmath.sqrt(one)) for one in mpmath.eigsy(gram, eigvals_only=True)), reverse=True)
    assert np.allclose(values, true, rtol=1e-13, atol=0.0)


def test_jacobi_leaves_zeros_and_single_columns_alone() -> None:
    rotation, values = one_sided_jacobi(np.array([[3.0, 0.0, 0.0], [4.0, 0.0, 0.0]]))
    assert values.tolist() == [5.0, 0.0, 0.0]
    assert np.array_equal(np.abs(rotation), np.eye(3))
    assert one_sided_jacobi(np.array([[3.0], [4.0]]))[1].tolist() == [5.0]
    assert one_sided_jacobi(np.full((2, 2), 1e-200))[1] == pytest.approx([2e-200, 0.0], abs=1e-214)
