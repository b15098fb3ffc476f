"""Sampled Gaussian sums: the contract, the bound in whole numbers, and who is in a sample."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tacit.audit import exact
from tacit.errors import InvalidInput
from tacit.mechanisms import Noise, ReplayedNoise, RowsOnDemand, SampledGaussian
from tacit.mechanisms.sampled_gaussian import epsilon_of_sampled
from tests.contracts.mechanism import SECRET, MechanismCase, MechanismContract
from tests.unit.mechanisms.sum_cases import narrowed

STEPS = 1 << 20


class SampledGaussianCase(MechanismCase):
    """One step on a lattice whose bound is four steps; the loss is the epsilon that the true law has at delta."""

    epsilon = 1.0
    delta = 1e-4
    rate = Fraction(1, 4)
    outputs = np.arange(-90, 91)

    def make(self, epsilon: float) -> Any:
        return SampledGaussian(1, epsilon, self.delta, self.rate, 1, grid_bits=2)

    def twin(self) -> Any:
        class HalfTheNoise(SampledGaussian):
            noise_law = property(lambda self: narrowed(super(HalfTheNoise, self).noise_law, 4))  # type: ignore[assignment]

        return HalfTheNoise(1, self.epsilon, self.delta, self.rate, 1, grid_bits=2)

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        tables = [np.zeros((0, 1), dtype=np.int64), np.array([[3]]), np.array([[-4], [2]])]
        rows = [np.array([[cell]]) for cell in (4, -4, 1, 1 << 60, -(1 << 63))]
        return [(table, np.concatenate([table, row])) for table in tables for row in rows]

    def law(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        return np.asarray(mechanism.pmf(self.outputs, raw))

    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        """Subset by subset, cell by cell, with the normaliser summed out."""
        cells = [max(-4, min(4, int(cell))) for cell in np.asarray(raw).ravel()]
        spread = 2.0 * float(mechanism.noise_law.width)
        total = math.fsum(math.exp(-(n * n) / spread) for n in range(-400, 401))
        law = [0.0] * self.outputs.size
        for taken in product((0, 1), repeat=len(cells)):
            chance = float(self.rate) ** sum(taken) * (1.0 - float(self.rate)) ** (len(cells) - sum(taken))
            centre = sum(cell for cell, is_in in zip(cells, taken, strict=True) if is_in)
            for place, output in enumerate(self.outputs.tolist()):
                law[place] += chance * math.exp(-((output - centre) ** 2) / spread) / total
        return np.array(law)

    def worst_loss(self, mechanism: Any) -> float:
        return max(
            exact.epsilon_at([self.law(mechanism, one), self.law(mechanism, other)], self.delta)
            for one, other in self.pairs()
        )

    def documented_loss(self) -> float:
        return self.worst_loss(
            self.make(self.epsilon)
        )  # the slack is that of the conversion; tests/unit/audit has its size

    def outcomes(self, mechanism: Any, raw: Any, noise: Any, draws: int) -> NDArray[np.int64]:
        return np.array([mechanism.release(raw, noise).value.steps[0] - self.outputs[0] for _ in range(draws)])

    def bad_parameters(self) -> Sequence[Callable[[], object]]:
        def made(**changed: Any) -> Callable[[], object]:
            usual = {"dimension": 1, "epsilon": 1.0, "delta": 1e-6, "rate": Fraction(1, 4), "steps": 10}
            return lambda: SampledGaussian(**{**usual, **changed})

        return [
            *(made(dimension=bad) for bad in (0, -1, 1.5, True, None, (1 << 22) + 1)),
            *(made(delta=bad) for bad in (0.0, 1.0, -0.1, math.nan, None, True)),
            *(made(rate=bad) for bad in (0, 1.5, -1, math.nan, None, True, "1/2")),
            *(made(steps=bad) for bad in (0, -1, 1.5, None, True, 10**9)),
            *(made(bound=bad) for bad in (0.0, -1.0, math.inf, math.nan, None)),
            *(made(grid_bits=bad) for bad in (-1, 21, 1.5)),
            made(epsilon=1e-6),
        ]

    def bad_inputs(self) -> Sequence[Any]:
        return [[SECRET], [[SECRET]], [[4242, 1]], [[[4242]]], 4242, [[1], [4242, 2]], [["4242"]], [[4242 + 0j]], None]


class TestSampledGaussian(SampledGaussianCase, MechanismContract):
    pass


TABLES = hnp.arrays(
    np.int64,
    st.tuples(st.integers(0, 4), st.just(5)),
    elements=st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-2 * STEPS, 2 * STEPS), st.just(STEPS)),
)


@settings(deadline=None)
@given(TABLES, st.integers(0, 20))
def test_no_row_is_longer_than_the_bound_in_whole_numbers(table: NDArray[np.int64], bits: int) -> None:
    mechanism = SampledGaussian(5, 1.0, 1e-6, Fraction(1, 4), 1, grid_bits=bits)
    for row, image in zip(table.tolist(), mechanism.cut(table).tolist(), strict=True):
        assert sum(cell * cell for cell in image) <= 1 << (2 * bits)
        assert all(abs(after) <= abs(before) and after * before >= 0 for before, after in zip(row, image, strict=True))
        if sum(cell * cell for cell in row) <= 1 << (2 * bits):
            assert image == row


@settings(deadline=None)
@given(TABLES)
def test_the_image_of_a_row_depends_on_that_row_alone(table: NDArray[np.int64]) -> None:
    mechanism = SampledGaussian(5, 1.0, 1e-6, Fraction(1, 4), 1)
    alone = [mechanism.cut(row[None, :])[0].tolist() for row in table]
    assert mechanism.cut(table).tolist() == alone


@settings(deadline=None)
@given(TABLES, hnp.arrays(np.int64, 5, elements=st.integers(-(1 << 63), (1 << 63) - 1)))
def test_a_monstrous_row_moves_the_sum_by_at_most_the_bound(table: NDArray[np.int64], row: NDArray[np.int64]) -> None:
    everyone = SampledGaussian(5, 1.0, 1e-6, 1.0, 1)  # type: ignore[arg-type]
    without = everyone.release(table, ReplayedNoise(3)).value.steps
    with_her = everyone.release(np.vstack([table, row]), ReplayedNoise(3)).value.steps
    assert sum(int(cell) ** 2 for cell in with_her - without) <= STEPS**2


def test_a_long_row_keeps_nearly_all_of_the_bound() -> None:
    mechanism = SampledGaussian(2, 1.0, 1e-6, Fraction(1), 1)
    assert mechanism.cut([[3 << 30, -(4 << 30)]]).tolist() == [[741454, -741454]]  # cells are cut first, then the row
    assert mechanism.cut([[STEPS, STEPS // 2]]).tolist() == [[937874, 468937]]  # 2^21 / sqrt(5)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_rows_of_every_whole_type_are_taken_at_their_value(kind: Any) -> None:
    mechanism = SampledGaussian(1, 1.0, 1e-6, Fraction(1), 1)
    top, low = int(np.iinfo(kind).max), int(np.iinfo(kind).min)
    wanted = [[min(STEPS, top)], [max(-STEPS, low)], [7]]
    assert mechanism.cut(np.array([[top], [low], [7]], dtype=kind)).tolist() == wanted


def test_many_rows_are_cut_in_parts_that_change_nothing(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    from tacit.mechanisms import sampled_gaussian

    mechanism = SampledGaussian(3, 1.0, 1e-6, Fraction(1), 1)
    table = rng.integers(-2 * STEPS, 2 * STEPS, (50, 3))
    whole = mechanism.cut(table)
    monkeypatch.setattr(sampled_gaussian, "_CELLS", 7)
    assert np.array_equal(mechanism.cut(table), whole)


class OnDemand:
    """Rows that are looked up, in parts of two; remembers who was asked for."""

    def __init__(self, table: NDArray[np.int64]) -> None:
        self.table, self.asked = table, np.array([], dtype=np.int64)

    @property
    def n_users(self) -> int:
        return len(self.table)

    def of(self, users: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        self.asked = users
        for first in range(0, users.size, 2):
            yield self.table[users[first : first + 2]]


def test_rows_on_demand_give_the_same_release_and_only_the_sample_is_asked_for(rng: np.random.Generator) -> None:
    mechanism = SampledGaussian(3, 1.0, 1e-6, Fraction(1, 4), 10)
    demanded = OnDemand(rng.integers(-STEPS, STEPS, (200, 3)))
    assert isinstance(demanded, RowsOnDemand)
    lazy = mechanism.release(demanded, ReplayedNoise(5)).value.steps
    assert np.array_equal(lazy, mechanism.release(demanded.table, ReplayedNoise(5)).value.steps)
    assert np.array_equal(demanded.asked, mechanism.sample(200, ReplayedNoise(5)))
    assert 20 < demanded.asked.size < 80


def test_samples_are_drawn_anew_at_every_step() -> None:
    mechanism, noise = SampledGaussian(1, 1.0, 1e-6, Fraction(1, 2), 10), ReplayedNoise(9)
    samples = {mechanism.sample(64, noise).tobytes() for _ in range(20)}
    assert len(samples) == 20


def test_everybody_or_nobody_can_be_in_a_sample() -> None:
    assert SampledGaussian(1, 1.0, 1e-6, Fraction(1), 1).sample(5).tolist() == [0, 1, 2, 3, 4]
    assert SampledGaussian(1, 1.0, 1e-6, Fraction(1, 2), 1).sample(0).size == 0
    assert SampledGaussian(2, 1.0, 1e-6, Fraction(1, 2), 1).release([]).value.steps.shape == (2,)


def test_the_release_is_worth_the_bound(rng: np.random.Generator) -> None:
    mechanism = SampledGaussian(2, 500.0, 1e-6, Fraction(1), 1, bound=0.03)
    rows = np.full((50_000, 2), [STEPS // 2, -STEPS // 4])
    found = mechanism.release(rows).value.to_floats()
    assert found == pytest.approx([50_000 * 0.015, -50_000 * 0.0075], abs=0.5)


def test_the_guarantee_is_that_of_all_steps_and_the_noise_keeps_it() -> None:
    one, many = (SampledGaussian(1, 2.0, 1e-6, Fraction(1, 16), steps) for steps in (1, 500))
    assert one.guarantee.epsilon == many.guarantee.epsilon == 2.0
    assert many.noise_multiplier > 1.5 * one.noise_multiplier
    for mechanism in (one, many):
        spent = epsilon_of_sampled(mechanism.noise_multiplier, mechanism.rate, mechanism.steps, mechanism.delta)
        assert 2.0 * (1 - 1e-6) < spent <= 2.0
        assert mechanism.noise_law.width == (Fraction(mechanism.noise_multiplier) * STEPS) ** 2


@pytest.mark.parametrize("rate", [Fraction(1, 7), Fraction(1, 2), Fraction(1)])
def test_leaving_is_no_worse_than_joining_at_any_whole_order(rate: Fraction) -> None:
    """The pairing of x with u - x in the proof, on a lattice of two dimensions and a row that is not along an axis."""
    mechanism = SampledGaussian(2, 3.0, 1e-3, rate, 1, grid_bits=2)
    reach = 70
    window = np.array(list(product(range(-reach, reach + 1), repeat=2)))
    without, with_her = (mechanism.pmf(window, rows) for rows in (np.zeros((0, 2), dtype=np.int64), [[2, -3]]))
    for order in (2.0, 3.0, 5.0, 9.0):
        joins, leaves = (float(exact.renyi(*pair, order)) for pair in ((with_her, without), (without, with_her)))
        assert leaves <= joins * (1 + 1e-9)
        assert joins <= mechanism.renyi(int(order))
        assert (leaves == pytest.approx(joins, rel=1e-9)) == (rate == 1)  # with everybody in, both are the same


@pytest.mark.parametrize(
    "wrong", [lambda rows: rows * 0.5, lambda rows: np.repeat(rows, 2, axis=0), lambda rows: rows[1:]]
)
def test_a_source_of_wrong_too_many_or_too_few_rows_is_refused(wrong: Callable[[Any], Any]) -> None:
    class Wrong(OnDemand):
        def of(self, users: NDArray[np.int64]) -> Iterator[Any]:
            yield wrong(self.table[users])

    with pytest.raises(InvalidInput):
        SampledGaussian(3, 1.0, 1e-6, Fraction(1), 1).release(Wrong(np.ones((4, 3), dtype=np.int64)))


def test_noise_does_not_depend_on_the_rows() -> None:
    def steps(rows: Any, noise: Noise) -> NDArray[np.int64]:
        return SampledGaussian(4, 1.0, 1e-6, Fraction(1), 1).release(rows, noise).value.steps

    first, second = np.array([[1, 2, 3, 4]]), np.array([[5, 0, -9, 2], [7, 7, 7, 7]])
    for seed in range(5):
        moved = steps(second, ReplayedNoise(seed)) - steps(first, ReplayedNoise(seed))
        assert moved.tolist() == [11, 5, -5, 5]
