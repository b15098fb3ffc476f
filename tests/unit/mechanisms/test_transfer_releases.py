"""The release of moments of ratings: noise that fits the sums, sums from elsewhere, and what it promises."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.errors import InvalidInput
from tacit.guarantees import ONE_USER, LossKind
from tacit.guarantees.concentrated import epsilon_of_gaussian
from tacit.mechanisms import (
    RatingMoments,
    ReplayedNoise,
    TotalsOnDemand,
)
from tacit.mechanisms.samplers.integers import GridNoise
from tests.unit.mechanisms.test_rating_bounds import as_csr, odd_cells
from tests.unit.mechanisms.transfer_tables import (
    DELTA,
    ITEMS,
    MOMENTS,
    MU,
    OFFSETS,
    PAIRS,
    PARTS,
    SOURCE,
    TRANSFER,
    few_odd_cells,
)

# --- the release


@pytest.mark.parametrize("mechanism", [*PARTS, TRANSFER], ids=lambda m: f"{m.name} {m.bounds.centre}")
def test_the_guarantee_is_the_gaussian_loss_of_the_whole_release(mechanism: Any) -> None:
    guarantee = mechanism.release(np.full((1, ITEMS), 3.0)).guarantee
    assert guarantee == mechanism.guarantee
    assert guarantee.protects == ONE_USER
    assert (guarantee.loss.kind, guarantee.loss.value) == (LossKind.GAUSSIAN, MU)
    assert (guarantee.epsilon, guarantee.delta) == (epsilon_of_gaussian(MU, DELTA), DELTA)
    assert guarantee.proof == mechanism.name
    assert mechanism.release(np.full((1, ITEMS), 3.0), ReplayedNoise(0)).guarantee.promises_nothing


@pytest.mark.parametrize("mechanism", PARTS[:3], ids=lambda m: m.name)
def test_every_number_gets_fresh_noise_of_its_variance(mechanism: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Fraction, int]] = []

    def noted(law: GridNoise, count: int, noise: Any) -> NDArray[np.int64]:
        asked.append((law.width, count))
        return np.full(count, 1000 * len(asked), dtype=np.int64)

    monkeypatch.setattr(GridNoise, "sample", noted)
    rows = np.array([[1.0, 5.0, math.nan, 2.0, math.nan, 4.0]])
    seen = mechanism.release(rows).value.steps - mechanism.totals(rows)
    if isinstance(mechanism, RatingMoments):
        assert asked == list(zip((law.width for law in mechanism.noise_laws), (21, 6, 6, 3), strict=True))
        assert seen.tolist() == [1000] * 21 + [2000] * 6 + [3000] * 6 + [4000] * 3
    else:
        assert asked == [(mechanism.noise_law.width, mechanism.length)]
        assert seen.tolist() == [1000] * mechanism.length


def test_noisy_numbers_are_read_in_the_units_of_the_ratings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GridNoise, "sample", lambda law, count, noise: np.zeros(count, dtype=np.int64))
    rows = np.array([[1.0, 3.0, math.nan, math.nan, math.nan, math.nan], [math.nan, 4.0, 5.0, 3.0, math.nan, math.nan]])
    offsets = OFFSETS.release(rows).value
    np.testing.assert_allclose(offsets.values, [-1.0, 1.0, 1.0, -1.0, 0.0, 0.0])
    np.testing.assert_allclose(offsets.counts, [1.0, 2.0, 1.0, 1.0, 0.0, 0.0])
    pairs = replace(PAIRS, head=(1, 0)).release(rows).value
    np.testing.assert_allclose(pairs.matrix(), [[0.0, -1.0], [-1.0, 0.0]])
    assert pairs.head.tolist() == [1, 0]
    moments = MOMENTS.release(rows).value
    np.testing.assert_allclose(np.diag(moments.matrix()), [1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    assert (moments.matrix()[2, 3], moments.matrix()[3, 2], moments.matrix()[0, 1]) == (-1.0, -1.0, -1.0)
    np.testing.assert_allclose(moments.values, [-1.0, 1.0, 1.0, -1.0, 0.0, 0.0])
    np.testing.assert_allclose(moments.counts, [1.0, 2.0, 1.0, 1.0, 0.0, 0.0])
    assert moments.users == (1.0, 0.0, 1.0)
    transfer = TRANSFER.release(rows).value
    np.testing.assert_allclose(transfer.offsets.values, offsets.values)
    assert transfer.head.tolist() == [0, 1, 2]
    np.testing.assert_allclose(transfer.matrix(), [[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert transfer.n_source == SOURCE


class Elsewhere:
    """A table in parts, of which only sums are told."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts
        self.asked: list[Any] = []

    def totals(self, of: Any) -> NDArray[np.int64]:
        self.asked.append(of)
        return np.sum([of.totals(part) for part in self.parts], axis=0)


@pytest.mark.parametrize("mechanism", [*PARTS[:3], TRANSFER], ids=lambda m: m.name)
def test_sums_computed_elsewhere_give_the_same_release(mechanism: Any, rng: np.random.Generator) -> None:
    users = few_odd_cells(rng, 20)
    source = Elsewhere([as_csr(users[:9], ITEMS), as_csr(users[9:], ITEMS)])
    assert isinstance(source, TotalsOnDemand)
    assert not isinstance(as_csr(users, ITEMS), TotalsOnDemand)
    here = mechanism.release(as_csr(users, ITEMS), ReplayedNoise(5)).value
    there = mechanism.release(source, ReplayedNoise(5)).value
    if mechanism is TRANSFER:
        np.testing.assert_array_equal(here.offsets.steps, there.offsets.steps)
        here, there = here.pairs, there.pairs
        assert [part.name for part in source.asked] == ["offset-sums", "pair-moments"]
    np.testing.assert_array_equal(here.steps, there.steps)


@pytest.mark.parametrize("mechanism", PARTS[:3], ids=lambda m: m.name)
def test_sums_that_are_kept_elsewhere_stay_without_noise(mechanism: Any) -> None:
    kept = np.zeros(mechanism.length, dtype=np.int64)

    class Kept:
        def totals(self, of: Any) -> Any:
            return kept

    assert mechanism.release(Kept()).value.steps.any()
    assert not kept.any()


@pytest.mark.parametrize("bad", [np.zeros(3, dtype=np.int64), np.zeros(12), np.zeros((2, 6), dtype=np.int64)], ids=str)
def test_totals_of_another_shape_or_kind_are_refused(bad: Any) -> None:
    class Wrong:
        def totals(self, of: Any) -> Any:
            return bad

    with pytest.raises(InvalidInput):
        OFFSETS.release(Wrong())


def test_which_ratings_count_is_drawn_by_the_noise_that_was_given() -> None:
    rows = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 1.5]] * 20)
    drawn = [replace(MOMENTS, most_items=2).totals(rows, ReplayedNoise(seed)) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()
    whole = [replace(MOMENTS, most_items=2).release(rows, ReplayedNoise(seed)).value.steps for seed in (1, 1)]
    np.testing.assert_array_equal(*whole)


@pytest.mark.parametrize("mechanism", [*PARTS[:3], TRANSFER], ids=lambda m: m.name)
def test_a_caller_who_has_numpy_raise_gets_the_same_release(mechanism: Any, rng: np.random.Generator) -> None:
    table = as_csr(odd_cells(rng, 50, ITEMS), ITEMS)

    def steps() -> Any:
        value = mechanism.release(table, ReplayedNoise(9)).value
        return value.pairs.steps if mechanism is TRANSFER else value.steps

    quiet = steps()
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(steps(), quiet)
