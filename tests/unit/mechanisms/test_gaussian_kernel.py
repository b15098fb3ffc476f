"""A noisy kernel: exact sums of outer products, symmetric noise with the right law on and off the diagonal."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse, stats

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, ONE_USER_REPLACED, LossKind, Relation
from tacit.mechanisms import SYSTEM_NOISE, GaussianKernel, GridMatrix, ReplayedNoise
from tacit.mechanisms.samplers.integers import GridNoise
from tacit.mechanisms.slates import MOST_KERNEL_ITEMS as MOST_ITEMS
from tests.contracts.mechanism import ALARM, SECRET, chi_square

SQUARE = 1 << 32  # a row's squared norm in steps
CELLS = 64


def slow_kernel(rows: Any, bound: float = 1.0) -> NDArray[np.object_]:
    """Python's own whole numbers, user by user: cut on the grid, shortened by the root rounded up, multiplied out."""
    items = len(rows[0])
    total = np.zeros((items, items), dtype=object)
    for row in rows:
        cells = [float(cell) if math.isfinite(cell) else 0.0 for cell in row]
        whole = [math.trunc(max(-1.0, min(1.0, cell / math.sqrt(bound))) * (1 << 16)) for cell in cells]
        squares = sum(cell * cell for cell in whole)
        norm = math.isqrt(squares - 1) + 1 if squares else 0
        if norm > 1 << 16:
            whole = [(1 if cell > 0 else -1) * (abs(cell) * (1 << 16) // norm) for cell in whole]
        total += np.outer(np.array(whole, dtype=object), np.array(whole, dtype=object))
    return total


def cost(mechanism: Any, change: Any) -> Fraction:
    """The rho of a change of the matrix, number by number of what is released: the diagonal and what stands above it."""
    on, off = (law.width for law in mechanism.noise_laws)
    return sum(
        (
            Fraction(int(change[i, j])) ** 2 / (2 * (on if i == j else off))
            for i, j in combinations_with_replacement(range(len(change)), 2)
        ),
        Fraction(0),
    )


def changes(rng: np.random.Generator, relation: Relation) -> list[Any]:
    """How far one user moves the exact kernel: rows on one item, spread out, long, short, signed, opposite."""
    rows = [np.array(row) for row in ([1.0, 0, 0], [0, 9.0, 0], [1.0, 1.0, 1.0], [0.6, -0.8, 0.0], [0.01, 0.0, 0.0])]
    rows += [rng.normal(size=3) * 3 for _ in range(30)]
    kernel = GaussianKernel(3, 1.0, 1e-6).totals
    one = [kernel([row]) for row in rows]
    if relation is Relation.ADD_REMOVE:
        return one
    return [here - there for here in one for there in one]


def ranks(draws: NDArray[np.int64], variance: float) -> NDArray[np.int64]:
    """Draws as cells of equal probability; at deviations of millions of steps the sum over a cell is the integral."""
    return np.floor(stats.norm.cdf(draws / math.sqrt(variance)) * CELLS).astype(np.int64).clip(0, CELLS - 1)


def p_value(draws: NDArray[np.int64], variance: Fraction | float) -> float:
    return chi_square(np.bincount(ranks(draws, float(variance)), minlength=CELLS), np.full(CELLS, 1 / CELLS))


def noise_of(mechanism: Any, noise: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The noise on the diagonal and above it, of a table without users."""
    steps = mechanism.release([], noise).value.steps
    return np.diagonal(steps), steps[np.triu_indices(mechanism.items, 1)]


# --- what is added up


@pytest.mark.parametrize("items", [1, 2, 7])
def test_totals_are_the_kernel_of_the_cut_rows_in_whole_numbers(items: int, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(25, items)) * rng.choice([1e-6, 0.3, 1.0, 50.0], size=(25, 1))
    rows[3], rows[4, 0], rows[5, -1] = math.nan, math.inf, -math.inf
    mechanism = GaussianKernel(items, 1.0, 1e-6)
    assert mechanism.totals(rows).tolist() == slow_kernel(rows).tolist()
    assert mechanism.totals(sparse.csr_array(rows)).tolist() == slow_kernel(rows).tolist()
    assert GaussianKernel(items, 1.0, 1e-6, bound=4.0).totals(rows).tolist() == slow_kernel(rows, 4.0).tolist()


def test_blocks_of_rows_make_the_same_matrix(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    rows = (rng.random((40, 11)) < 0.3).astype(np.float64)
    mechanism = GaussianKernel(11, 1.0, 1e-6)
    whole = mechanism.totals(rows)
    for cells in (1, 11, 33, 60):
        monkeypatch.setattr("tacit.mechanisms.slates._CELLS", cells)
        assert (mechanism.totals(rows) == whole).all()
        steps = mechanism.release(rows, ReplayedNoise(3)).value.steps
        assert (steps == steps.T).all()
        assert (mechanism.release([], ReplayedNoise(3)).value.steps + whole == steps).all()
        assert np.unique(np.abs(steps - whole)[np.triu_indices(11)]).size > 60  # every number has noise of its own


def test_one_user_moves_the_matrix_by_her_own_outer_product_and_nobody_elses(rng: np.random.Generator) -> None:
    rows = rng.random((30, 6)) * 2
    mechanism = GaussianKernel(6, 1.0, 1e-6)
    assert (mechanism.totals(rows) - mechanism.totals(rows[1:]) == mechanism.totals(rows[:1])).all()
    assert (mechanism.totals(rows[::-1]) == mechanism.totals(rows)).all()


def test_likes_of_any_number_of_items_weigh_the_same() -> None:
    totals = GaussianKernel(50, 1.0, 1e-6).totals
    for likes in (1, 3, 50):
        trace = int(np.trace(totals([[1.0] * likes + [0.0] * (50 - likes)])))
        assert 0.998 * SQUARE < trace <= SQUARE


# --- what one user can change, and what that costs


@pytest.mark.parametrize("relation", list(Relation))
def test_no_user_costs_more_than_the_stated_rho_and_some_cost_all_of_it(
    relation: Relation, rng: np.random.Generator
) -> None:
    mechanism = GaussianKernel(3, 1.0, 1e-6, relation=relation)
    loss = mechanism.guarantee.loss
    assert loss is not None
    assert loss.kind is LossKind.ZCDP
    costs = [float(cost(mechanism, change)) for change in changes(rng, relation)]
    assert max(costs) <= loss.value * (1 + 1e-15)
    assert max(costs) >= loss.value * (1 - 1e-9)
    # a user who spreads over all items is charged as much as one on a single item, up to the grid
    spread = mechanism.totals([[1.0, 1.0, 1.0]])
    if relation is Relation.ADD_REMOVE:
        assert float(cost(mechanism, spread)) == pytest.approx(loss.value, rel=1e-4)


def test_replacing_a_user_needs_twice_the_variance_and_no_more() -> None:
    added, replaced = (GaussianKernel(3, 1.0, 1e-6, relation=relation) for relation in Relation)
    assert [2 * law.width for law in added.noise_laws] == [law.width for law in replaced.noise_laws]
    apart = added.totals([[1.0, 0.0, 0.0]]) - added.totals([[0.0, 1.0, 0.0]])
    assert cost(replaced, apart) <= Fraction(replaced.rho)
    assert cost(added, apart) == 2 * cost(replaced, apart)  # the broken twin: too little by the factor 2
    assert (added.guarantee.protects, replaced.guarantee.protects) == (ONE_USER, ONE_USER_REPLACED)


class EqualNoise(GaussianKernel):
    """The small variance everywhere: right off the diagonal, half of what the diagonal needs."""

    @property
    def noise_laws(self) -> tuple[GridNoise, GridNoise]:  # type: ignore[override]
        off = GaussianKernel.noise_laws.func(self)[1]  # type: ignore[attr-defined]
        return off, off


class SurplusNoise(GaussianKernel):
    """The large variance everywhere: private, and noisier than it says."""

    @property
    def noise_laws(self) -> tuple[GridNoise, GridNoise]:  # type: ignore[override]
        on = GaussianKernel.noise_laws.func(self)[0]  # type: ignore[attr-defined]
        return on, on


def test_equal_noise_on_and_off_the_diagonal_is_caught() -> None:
    one_item = GaussianKernel(3, 1.0, 1e-6).totals([[1.0, 0.0, 0.0]])
    twin = EqualNoise(3, 1.0, 1e-6)
    assert float(cost(twin, one_item)) > 1.9 * twin.rho
    right = [law.width for law in GaussianKernel(100, 1.0, 1e-6).noise_laws]
    for kind in (GaussianKernel, EqualNoise, SurplusNoise):
        drawn = [noise_of(kind(100, 1.0, 1e-6), ReplayedNoise(seed)) for seed in range(30)]
        found = [np.concatenate([pair[part] for pair in drawn]) for part in (0, 1)]
        worst = min(p_value(draws, variance) for draws, variance in zip(found, right, strict=True))
        assert (worst > ALARM) is (kind is GaussianKernel)


# --- the noise


def test_noise_has_its_law_on_and_off_the_diagonal_and_no_other() -> None:
    mechanism = GaussianKernel(40, 2.0, 1e-6)
    drawn = [noise_of(mechanism, ReplayedNoise(seed)) for seed in range(250)]
    on, off = (np.concatenate([pair[part] for pair in drawn]) for part in (0, 1))
    for draws, variance in zip((on, off), (law.width for law in mechanism.noise_laws), strict=True):
        assert p_value(draws, variance) > ALARM
        for factor in (0.9, 1.1):
            assert p_value(draws, float(variance) * factor**2) < ALARM
        assert abs(draws.mean()) < 6 * math.sqrt(variance / draws.size)  # two in a billion
    assert chi_square(np.bincount(off & 255, minlength=256), np.full(256, 1 / 256)) > ALARM


def test_numbers_of_the_matrix_have_noise_that_is_independent() -> None:
    """Of rows, of neighbours in a row, of an item's diagonal: pairs of cells fill a table evenly."""
    mechanism = GaussianKernel(500, 2.0, 1e-6)
    steps = mechanism.release([], ReplayedNoise(8)).value.steps
    where = np.triu_indices(499, 1)
    place = ranks(steps, float(mechanism.noise_laws[1].width)) // 8
    for other in (place[1:, 1:], place[:-1, 1:]):
        pairs = np.bincount(8 * place[:-1, :-1][where] + other[where], minlength=64)
        assert chi_square(pairs, np.full(64, 1 / 64)) > ALARM


def test_noise_does_not_depend_on_the_users_so_the_expectation_is_the_cut_kernel(rng: np.random.Generator) -> None:
    mechanism = GaussianKernel(9, 1.0, 1e-6)
    rows = rng.normal(size=(12, 9))
    noisy, noise = (mechanism.release(one, ReplayedNoise(2)).value.steps for one in (rows, []))
    assert (noisy - noise == mechanism.totals(rows)).all()


def test_the_law_that_is_stated_is_the_law_of_the_noise() -> None:
    mechanism = GaussianKernel(2, 1.0, 1e-6)
    for law in mechanism.noise_laws:
        deviation = math.sqrt(law.width)
        steps = np.array([0, int(deviation), -2 * int(deviation)])
        expected = stats.norm.pdf(steps / deviation) / deviation
        np.testing.assert_allclose(law.pmf(steps + 7, 7), expected, rtol=1e-6)


# --- what is released, and what is refused


@pytest.mark.parametrize("items", [1, 2, 30])
def test_the_matrix_is_symmetric_and_in_the_units_of_the_rows(items: int) -> None:
    rows = np.tile(np.eye(items)[:1], (5000, 1)) * 3.0
    mechanism = GaussianKernel(items, 8.0, 1e-6, bound=9.0)
    value = mechanism.release(rows, SYSTEM_NOISE).value
    assert isinstance(value, GridMatrix)
    assert value.steps.dtype == np.int64
    assert (value.steps == value.steps.T).all()
    assert value.step == Fraction(9, SQUARE)
    assert value.to_floats()[0, 0] == pytest.approx(45_000.0, abs=9 * 12)
    assert mechanism.noise_laws[0].sd == pytest.approx(math.sqrt(2) * mechanism.noise_laws[1].sd)
    assert mechanism.noise_laws[0].sd == pytest.approx(9 * math.sqrt(1 / (2 * mechanism.rho)), rel=1e-9)


def test_deviation_at_epsilon_one_is_that_of_a_gaussian_sum() -> None:
    assert GaussianKernel(5, 1.0, 1e-6).noise_laws[0].sd == pytest.approx(4.5309, abs=6e-5)
    assert GaussianKernel(5, 1.0, 1e-6, relation=Relation.REPLACE).noise_laws[0].sd == pytest.approx(6.4076, abs=6e-5)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, None, MOST_ITEMS + 1, 10**30])
def test_a_number_of_items_outside_its_public_limits_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameter, match="items must be a whole number"):
        GaussianKernel(bad, 1.0, 1e-6)


def test_a_table_of_another_width_is_refused_and_not_shown() -> None:
    for rows in ([[SECRET]], [[SECRET, 1.0, 2.0]], np.zeros((0, 3))):
        with pytest.raises(InvalidInput) as caught:
            GaussianKernel(2, 1.0, 1e-6).release(rows)
        assert "4242" not in str(caught.value)


def test_an_epsilon_that_needs_more_noise_than_can_be_drawn_is_refused_when_it_is_built() -> None:
    with pytest.raises(InvalidParameter):
        GaussianKernel(2, 1e-9, 1e-15)


def test_the_largest_eigenvalue_of_the_noise_is_that_of_the_proof_page() -> None:
    mechanism = GaussianKernel(400, 1.0, 1e-6)
    noise = mechanism.release([], ReplayedNoise(1)).value.to_floats()
    assert np.linalg.eigvalsh(noise)[-1] == pytest.approx(mechanism.noise_laws[0].sd * math.sqrt(800), rel=0.05)
    assert GaussianKernel(3_883, 1.0, 1e-6).noise_laws[0].sd * math.sqrt(2 * 3_883) == pytest.approx(399, abs=1)
