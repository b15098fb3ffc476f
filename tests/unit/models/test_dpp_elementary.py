"""Elementary symmetric polynomials and the choice of eigenvectors, the laws by enumeration, and the coins."""

from itertools import combinations
from math import comb, log, prod

import numpy as np
import pytest

from tacit.models.dpp import laws
from tacit.models.dpp.laws import NONE, RngCoins, choose, from_words, log_table
from tests.unit.models.subset_laws import all_subsets, dpp_law


class Scripted:
    """Coins that were thrown before."""

    def __init__(self, uniforms: np.ndarray) -> None:
        self._rest = np.asarray(uniforms, dtype=np.float64).ravel()

    def uniforms(self, count: int) -> np.ndarray:
        assert count <= self._rest.size
        found, self._rest = self._rest[:count], self._rest[count:]
        return found


def slowly(values: np.ndarray, k: int) -> float:
    return sum(prod(some) for some in combinations([float(value) for value in values], k))


# --- coins


def test_uniform_numbers_lie_strictly_between_0_and_1_at_both_ends() -> None:
    ends = from_words(np.array([0, (1 << 64) - 1], dtype=np.uint64))
    assert ends.tolist() == [2.0**-53, 1.0 - 2.0**-53]


def test_coins_of_a_generator_are_its_words() -> None:
    words = np.random.default_rng(3).integers(0, 1 << 64, size=50, dtype=np.uint64)
    assert (RngCoins(np.random.default_rng(3)).uniforms(50) == from_words(words)).all()
    assert np.unique(from_words(words)).size == 50


# --- polynomials


@pytest.mark.parametrize("seed", range(5))
def test_polynomials_are_those_of_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.exponential(size=9) * 10.0 ** rng.integers(-3, 4, size=9)
    table = log_table(np.log(values), 9)
    for r in range(10):
        for i in range(r, 10):
            assert table[r, i] == pytest.approx(log(slowly(values[:i], r)), abs=1e-13)
        assert (table[r, :r] == -np.inf).all()


def test_no_value_overflows_or_vanishes() -> None:
    found = log_table(np.full(1000, 5000.0), 300)[:, -1]  # e^5000 overflows: e_300 = C(1000, 300) e^(5000 * 300)
    assert found[300] == pytest.approx(300 * 5000.0 + log(comb(1000, 300)), rel=1e-14)
    assert log_table(np.array([-1e4, -1e4, 1e4]), 3)[:, -1].tolist() == pytest.approx(
        [0.0, 1e4, log(2.0), -1e4], abs=1e-10
    )


def test_values_of_0_count_for_nothing_and_too_few_values_give_0() -> None:
    logs = np.array([-np.inf, log(2.0), -np.inf, log(3.0)])
    assert np.exp(log_table(logs, 3)[:, -1]) == pytest.approx([1.0, 5.0, 6.0, 0.0])
    assert log_table(np.zeros(0), 2)[:, -1].tolist() == [0.0, -np.inf, -np.inf]


# --- the choice


def test_choice_has_its_law_on_a_grid_of_coins() -> None:
    """Every pair of 400 x 400 coins once: the shares are the probabilities, up to the width of a cell."""
    values = np.array([0.5, 0.0, 2.0, 1.0, 0.1])
    cells = 400
    middles = (np.arange(cells) + 0.5) / cells
    with np.errstate(divide="ignore"):
        table = log_table(np.log(values), 2)
    second, first = np.meshgrid(middles, middles, indexing="ij")
    chosen = choose(table, np.full(cells**2, 2), Scripted(np.stack([second.ravel(), first.ravel()])))
    pairs, counts = np.unique(chosen, axis=0, return_counts=True)
    seen = {tuple(pair): count / cells**2 for pair, count in zip(pairs.tolist(), counts, strict=True)}
    law = {pair: values[list(pair)].prod() / slowly(values, 2) for pair in combinations(range(5), 2)}
    for pair, probability in law.items():
        assert seen.get(pair, 0.0) == pytest.approx(probability, abs=2.0 / cells)
    assert all(law[pair] > 0.0 for pair in seen)


def test_choices_of_different_sizes_keep_their_rows() -> None:
    table = log_table(np.zeros(6), 4)
    sizes = np.array([0, 4, 1, 3, 0, 2, 4])
    chosen = choose(table, sizes, RngCoins(np.random.default_rng(0)))
    assert chosen.shape == (7, 4)
    for row, size in zip(chosen, sizes, strict=True):
        assert (row[size:] == NONE).all()
        assert (np.diff(row[:size]) > 0).all()
        assert ((row[:size] >= 0) & (row[:size] < 6)).all()


def test_choice_at_the_ends_of_the_coins_and_of_nothing() -> None:
    table = log_table(np.log([1.0, 2.0, 4.0]), 3)
    for uniform in (2.0**-53, 1.0 - 2.0**-53):
        assert choose(table, np.array([3]), Scripted(np.full(3, uniform))).tolist() == [[0, 1, 2]]
    assert choose(table, np.zeros(0, dtype=np.int64), Scripted(np.zeros(0))).shape == (0, 0)
    assert choose(table, np.zeros(2, dtype=np.int64), Scripted(np.zeros(0))).shape == (2, 0)


# --- laws by enumeration


def test_laws_of_a_small_kernel() -> None:
    kernel = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    for exact in (False, True):
        assert laws.k_dpp_law(kernel, 2, exact=exact) == pytest.approx([3 / 7, 2 / 7, 2 / 7], abs=1e-12)
        assert dpp_law(kernel, exact=exact) == pytest.approx(np.array([1, 2, 2, 1, 3, 2, 2, 3]) / 16, abs=1e-12)
    assert laws.subsets(3, 2) == [(0, 1), (0, 2), (1, 2)]
    assert all_subsets(3) == [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]


def test_weights_multiply_the_determinants() -> None:
    kernel = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    law = laws.k_dpp_law(kernel, 2, np.log(2.0) * np.array([3.0, 2.0, 0.0]))
    assert law == pytest.approx([2 / 3, 2 / 9, 1 / 9], abs=1e-12)


def test_exact_determinants_of_0_stay_0_under_any_weight() -> None:
    features = np.array(
        [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 0], [0, 1, 1, 1]], dtype=float
    )
    law = laws.k_dpp_law(features @ features.T, 4, np.array([400.0] * 4 + [0.0] * 2), exact=True)
    assert law[0] == 0.0  # the first four rows are dependent
    three = [place for place, some in enumerate(laws.subsets(6, 4)) if len(set(some) & {0, 1, 2, 3}) == 3]
    assert law[three] == pytest.approx(np.full(8, 1 / 8), abs=1e-15)


def test_determinants_agree_with_exact_ones_and_neither_overflows() -> None:
    rows = np.random.default_rng(1).normal(size=(6, 6))
    kernel = rows @ rows.T
    for k in range(7):
        expected = laws.log_determinants(kernel, k, exact=True)
        assert laws.log_determinants(kernel, k) == pytest.approx(expected, abs=1e-9)
        assert laws.log_determinants(kernel * 2.0**900, k) == pytest.approx(expected + 900 * k * log(2.0), rel=1e-12)
