"""The examples and figures of the proof page of private slates, by enumeration; the steps of T1 on random kernels."""

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.guarantees import LossKind, epsilon_each, epsilon_of_rho
from tacit.mechanisms import NaturalSlate
from tacit.mechanisms.slates import (
    natural_epsilon,
    published_epsilon,
    published_sigma_for,
    subset_epsilon,
)
from tacit.models.dpp.laws import k_dpp_law, subsets
from tests.contracts.mechanism import log_ratio
from tests.unit.mechanisms.slate_bounds import frobenius_epsilon
from tests.unit.models.subset_laws import all_subsets, dpp_law

Floats = NDArray[np.float64]


def unit(item: int, n: int, length: float = 1.0) -> Floats:
    return length * np.outer(np.eye(n)[item], np.eye(n)[item])


def renyi(here: Floats, there: Floats, order: float) -> float:
    return math.log(float((here**order * there ** (1 - order)).sum())) / (order - 1)


def elementary(values: Floats, k: int) -> float:
    return math.fsum(math.prod(chosen) for chosen in combinations(values.tolist(), k))


def kernel_pair(rng: np.random.Generator, n: int, sigma: float) -> tuple[Floats, Floats, Floats]:
    """M >= sigma I, and two rows of length at most 1; often far from round, and often on few items."""
    half = rng.normal(size=(n, n)) * rng.choice([0.0, 0.1, 1.0, 30.0], size=n)
    rows = rng.normal(size=(2, n)) * rng.choice([0.0, 1.0], size=(2, n), p=[0.4, 0.6])
    rows /= np.maximum(1e-12, np.linalg.norm(rows, axis=1))[:, None]
    return sigma * np.eye(n) + half @ half.T, rows[0], rows[1]


@pytest.mark.parametrize("x", [0.1, 1.0, 10.0])
def test_steps_of_the_proof_about_replacing_a_user_hold_on_random_kernels(x: float, rng: np.random.Generator) -> None:
    sigma = 1.0 / x
    for _ in range(150):
        n = int(rng.integers(2, 6))
        k = int(rng.integers(1, n))
        m, w, v = kernel_pair(rng, n, sigma)
        values, vectors = np.linalg.eigh(m)  # ascending: the smallest is the first
        whole = elementary(values, k)
        without = np.array([elementary(np.delete(values, i), k - 1) for i in range(n)])
        p = values * without / whole
        assert (np.diff(p) >= -1e-9).all()
        assert (np.diff(p / values) <= 1e-9 * p[0] / values[0]).all()
        assert ((p >= 0.0) & (p <= 1.0 + 1e-9)).all()
        s = (vectors.T @ v) ** 2
        after = elementary(np.linalg.eigvalsh(m + np.outer(v, v)), k)
        assert after / whole == pytest.approx(1.0 + float((s * p / values).sum()), rel=1e-9)  # step 2
        inside = [float(v[y] @ np.linalg.solve(m[np.ix_(y, y)], v[y])) for y in map(list, subsets(n, k))]
        assert max(inside) <= float((s / values).sum()) * (1 + 1e-9)  # step 1
        share = (1 + (s / values).sum()) * (1 + p[0] / values[0]) / (1 + (s * p / values).sum())
        assert share <= (1 + 1 / values[0]) * (1 + 1e-9)  # step 3
        laws = [k_dpp_law(m + np.outer(row, row), k) for row in (w, v)]
        assert log_ratio(*laws) <= math.log1p(x) + 1e-9
        loss = np.log(laws[0]) - np.log(laws[1])
        assert float(np.ptp(loss)) <= 2 * math.log1p(x) + 1e-9
        alone = k_dpp_law(m, k)
        assert float(np.ptp(np.log(laws[0]) - np.log(alone))) <= math.log1p(x) + 1e-9


def test_replacing_a_user_attains_eta_and_a_range_of_twice_eta() -> None:
    for n, k in ((2, 1), (4, 2), (5, 4)):
        m = 0.5 * np.eye(n)
        here, there = k_dpp_law(m + unit(1, n), k), k_dpp_law(m + unit(0, n), k)
        assert log_ratio(here, there) == pytest.approx(math.log(3.0), abs=1e-12)
        assert float(np.ptp(np.log(here) - np.log(there))) == pytest.approx(2 * math.log(3.0), abs=1e-12)


def test_adding_a_user_tends_to_eta() -> None:
    for crowd, least in ((1e2, 0.95), (1e4, 0.999)):
        kernel = np.diag([0.5] + [crowd] * 4)
        loss = log_ratio(k_dpp_law(kernel, 2), k_dpp_law(kernel + unit(0, 5), 2))
        assert least * math.log(3.0) < loss <= math.log(3.0)


def test_one_more_user_of_the_last_item_in_the_worked_example() -> None:
    half = np.array([[1.0, 0], [1, 0], [0, 1], [0, 0]])
    kernel = 0.5 * np.eye(4) + half @ half.T
    assert log_ratio(k_dpp_law(kernel, 2), k_dpp_law(kernel + unit(3, 4), 2)) == pytest.approx(0.652325, abs=1e-6)


def test_a_public_rule_costs_twice_when_a_user_is_replaced_and_nothing_when_one_is_added() -> None:
    sigma = 0.5

    def ruled(kernel: Floats) -> Floats:
        weights = np.array([np.linalg.det(kernel[np.ix_(y, y)]) for y in ([0, 1], [2, 3])])
        return weights / weights.sum()

    base = np.diag([sigma, sigma, sigma, 1e7])
    here, there = ruled(base + unit(2, 4)), ruled(base + unit(0, 4))
    assert log_ratio(here, there) == pytest.approx(2 * math.log(3.0), abs=1e-5)
    assert log_ratio(k_dpp_law(base + unit(2, 4), 2), k_dpp_law(base + unit(0, 4), 2)) <= math.log(3.0) + 1e-9
    for item in range(4):
        assert log_ratio(ruled(base), ruled(base + unit(item, 4))) <= math.log(3.0) + 1e-9


def test_a_kernel_that_is_cut_to_a_rank_breaks_the_bound() -> None:
    def cut(counts: list[float]) -> Floats:
        kept = np.zeros(3)
        kept[np.argmax(counts)] = max(counts)
        return k_dpp_law(np.diag(1.0 + kept), 1)

    assert log_ratio(cut([100.0, 99.5, 1.0]), cut([100.0, 100.5, 1.0])) == pytest.approx(4.62, abs=0.005)
    assert natural_epsilon(1.0, 1.0) == pytest.approx(0.69, abs=0.005)


def test_a_subset_of_any_size_has_a_loss_below_its_range() -> None:
    here, there = dpp_law(np.array([[2.0]])), dpp_law(np.array([[1.0]]))
    loss = np.log(here) - np.log(there)
    assert float(np.abs(loss).max()) == pytest.approx(0.405465, abs=1e-6)
    assert subset_epsilon(1.0, 1.0) == pytest.approx(0.405465, abs=1e-6)
    assert float(np.ptp(loss)) == pytest.approx(math.log(2.0), abs=1e-12)
    worst = max(renyi(here, there, 2.0), renyi(there, here, 2.0))
    assert worst == pytest.approx(0.1178, abs=5e-5)
    by_loss, by_range = 2 * subset_epsilon(1.0, 1.0) ** 2 / 8, 2 * math.log(2.0) ** 2 / 8
    assert (by_loss, by_range) == (pytest.approx(0.0411, abs=5e-5), pytest.approx(0.1201, abs=5e-5))
    assert by_loss < worst <= by_range


@pytest.mark.parametrize(("bound", "sigma"), [(1.0, 1.0), (1.0, 0.1), (4.0, 2.0), (0.5, 3.0)])
def test_both_sides_of_the_bound_on_subsets_are_attained(bound: float, sigma: float) -> None:
    kernel = sigma * np.eye(3)
    here, there = dpp_law(kernel + unit(0, 3, bound)), dpp_law(kernel)
    loss = np.log(here) - np.log(there)
    assert float(np.abs(loss).max()) == pytest.approx(subset_epsilon(bound, sigma), rel=1e-12)
    assert loss[all_subsets(3).index(())] == pytest.approx(-math.log1p(bound / (1 + sigma)), rel=1e-12)
    replaced = dpp_law(kernel + unit(1, 3, bound))
    assert log_ratio(here, replaced) == pytest.approx(math.log1p(bound / sigma), rel=1e-12)


def test_half_as_many_terms_do_not_bound_a_change_of_the_kernel() -> None:
    here, there = np.diag([1.0] + [2.0] * 9), np.diag([5.0] + [1.0] * 9)
    assert np.linalg.norm(there - here) == 5.0
    ratio = float(k_dpp_law(there, 1)[0] / k_dpp_law(here, 1)[0])
    assert ratio == pytest.approx(95 / 14, rel=1e-12)
    assert 1 + 5.0 < ratio < math.exp(frobenius_epsilon(5.0, 1.0, k=1))


def test_renyi_divergences_of_slates_stay_below_an_eighth_of_the_squared_range(rng: np.random.Generator) -> None:
    worst = 0.0
    for _ in range(200):
        n = int(rng.integers(2, 6))
        m, w, _ = kernel_pair(rng, n, 1.0)
        here, there = k_dpp_law(m, 1), k_dpp_law(m + np.outer(w, w), 1)
        for order in (1.5, 2.0, 8.0):
            found = max(renyi(here, there, order), renyi(there, here, order))
            worst = max(worst, found / (order * math.log(2.0) ** 2 / 8))
    assert 0.5 < worst <= 1.0 + 1e-9


def test_figures_of_many_slates_and_of_the_papers_formula() -> None:
    assert epsilon_of_rho(100 * 0.1**2 / 8, 1e-6) == pytest.approx(2.419093, abs=1e-6)
    assert epsilon_each(1000, 1.0, 1e-6, LossKind.BOUNDED_RANGE) == pytest.approx(0.013959, abs=1e-6)
    assert published_sigma_for(1.0, 3_883) == pytest.approx(124.6, abs=0.05)
    assert published_epsilon(1.0, 0.581977, 3_883) == pytest.approx(211.2, abs=0.05)
    published = NaturalSlate.published(3_883, 10, 1.0)
    assert published.guarantee.promises_nothing
    assert published.proved.epsilon == pytest.approx(0.008, abs=5e-6 + 1e-5)
