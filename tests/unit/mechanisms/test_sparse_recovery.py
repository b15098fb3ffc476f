"""Sparse noisy means: each step's law, what one user moves, and the faults of noisier papers."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, LossKind
from tacit.mechanisms import SYSTEM_NOISE, GumbelTopK, ProfileBounds, ReplayedNoise, SparseRecovery
from tacit.mechanisms.inputs import VALUE_STEPS as STEPS
from tacit.mechanisms.sparse_recovery import ColumnSums
from tests.contracts.mechanism import ALARM, chi_square, log_ratio


def make(
    items: int = 4, each: int = 2, picked: int = 2, value_bound: float = 1.0, k: int = 2, **more: Any
) -> SparseRecovery:
    shares = {"count": 0.25, "select": 0.25, "values": 0.5} | {
        n: more.pop(n) for n in ("count", "select", "values") if n in more
    }
    least = more.pop("least_users", 1.0)
    return SparseRecovery(ProfileBounds(items, each, value_bound, **more), k, picked, **shares, least_users=least)


def test_one_pick_and_two_have_the_law_of_peeling() -> None:
    one = make(value_bound=5.0, picked=1, select=0.5).selection
    sums = np.array([9, 2, 3, 0]) * STEPS // 5  # 9 = nine fifths of the largest value
    assert one.pmf(sums)[0] == pytest.approx(0.407836, abs=2e-6)
    two = make(items=3, picked=2, select=2.0).selection  # unit Gumbel noise on sums of (2, 1, 0)
    law = dict(zip(two.outcomes(3), two.pmf(np.array([2, 1, 0]) * STEPS), strict=True))
    assert law[0, 1] + law[1, 0] == pytest.approx(0.701886, abs=1e-6)
    assert law[0, 2] + law[2, 0] == pytest.approx(0.244728, abs=1e-6)
    assert law[1, 2] + law[2, 1] == pytest.approx(0.053385, abs=1e-6)


def picks_loss(mechanism: GumbelTopK, rows: list[list[int]]) -> float:
    """The worst loss over all ordered picks, between sums and the same with one more row, or less."""
    totals = [np.array(total) * STEPS for total in ([0, 0, 0, 0, 0], [3, 1, 0, 2, 2], [0, 5, 5, 0, 9])]
    moves = [np.array(row) * STEPS for row in rows]
    return max(log_ratio(mechanism.pmf(total), mechanism.pmf(total + move)) for total in totals for move in moves)


@pytest.mark.parametrize("picked", [1, 2, 3])
def test_the_choice_of_items_keeps_its_claim_and_twins_are_caught(picked: int) -> None:
    up = [[1, 0, 0, 0, 0], [1, 1, 1, 0, 0], [0, 1, 1, 1, 1], [1, 1, 1, 1, 1]]
    both = [[1, -1, -1, -1, -1], [-1, 1, 1, 1, 1], [1, 1, -1, -1, -1]]
    kept = make(items=5, each=5, picked=picked, select=1.0).selection
    assert 0.5 < picks_loss(kept, up) <= 1.0
    signed = make(items=5, each=5, picked=picked, select=1.0, signed=True).selection
    assert signed.rate == kept.rate / 2
    assert 0.5 < picks_loss(signed, both) <= 1.0
    assert picks_loss(kept, both) > 1.05  # signed rows at the scale of rows that only add
    assert picks_loss(GumbelTopK(ColumnSums(), picked, 2.0), up) > 1.05  # twice the rate


@pytest.mark.parametrize("each", [5, 9, 100, 5000])
def test_the_noise_of_values_grows_with_all_that_one_user_moves(each: int) -> None:
    mechanism = make(items=6000, each=each, picked=5000, values=0.5)
    row = np.zeros((1, 6000))
    row[0, :each] = 1.0
    moved = int(mechanism.bounds.bounded(row, SYSTEM_NOISE).sum())  # in L1, all of it in picked items
    assert moved == each * STEPS
    assert mechanism.value_scale == Fraction(moved) / Fraction(1, 2)


def test_noise_scales_are_public_and_carry_what_one_user_moves() -> None:
    assert make().count_scale == 4
    assert make(each=2, picked=3, values=0.5).value_scale == 2 * STEPS / Fraction(1, 2)
    assert make(each=3, picked=1, values=0.5).value_scale == STEPS / Fraction(1, 2)
    assert make(each=3, picked=3, values=0.5, l1_bound=1.5).value_scale == 3 * STEPS
    assert make(picked=4, values=0.5, select=0.25).value_scale == 2 * STEPS / Fraction(
        3, 4
    )  # nothing to select: it joins


def test_sizes_and_values_keep_their_claims_for_every_move_of_one_user() -> None:
    mechanism = make(each=2, picked=2, count=0.3, values=0.5)
    window = np.arange(-400, 400)
    assert log_ratio(mechanism.size_pmf(window, 7), mechanism.size_pmf(window, 8)) == pytest.approx(0.3)
    # one user moves the two sums by a and b steps, a + b at most the L1 bound: losses add
    steps = np.arange(-8 * STEPS, 8 * STEPS, STEPS // 16)
    for move in ([STEPS, STEPS], [STEPS, 0], [STEPS // 2, STEPS // 3]):
        loss = sum(log_ratio(mechanism.value_pmf(steps, 0), mechanism.value_pmf(steps, m)) for m in move)
        assert loss <= 0.5 + 1e-9
    assert sum(log_ratio(mechanism.value_pmf(steps, 0), mechanism.value_pmf(steps, STEPS)) for _ in range(2)) > 0.499


def test_noise_whose_scale_knows_the_number_of_users_is_caught() -> None:
    # means with Laplace noise of scale s/(epsilon n): one more user at the mean changes the density there by s ln((n + 1)/n)
    def density(at: float, mean: float, users: int, items: int, epsilon: float) -> float:
        scale = 2 * items / (epsilon * users)
        return items * (-math.log(2 * scale) - abs(at - mean) / scale)

    loss = abs(density(0.5, 0.5, 12, 165, 0.1) - density(0.5, 0.5, 13, 165, 0.1))
    assert loss == pytest.approx(165 * math.log(13 / 12))
    assert loss > 13.0
    few, many = make(items=165, each=165, picked=165), make(items=165, each=165, picked=165, least_users=12.0)
    assert few.value_scale == many.value_scale  # no number of users is in it


def test_prototypes_are_sums_over_noisy_sizes_at_the_items_picked() -> None:
    mechanism = make(items=5, each=5, picked=2, value_bound=4.0, k=3, count=1e5, select=1e6, values=1e9)
    rows = np.array([[4.0, 1.0, 0.0, 0.0, 2.0], [4.0, 0.0, 0.0, 0.0, 3.0], [0.0, 3.0, 1.0, 0.0, 0.0]])
    found = mechanism.release(rows, [0, 0, 2]).value
    assert found.sizes.tolist() == [2.0, 0.0, 1.0]
    assert found.centres[0] == pytest.approx([4.0, math.nan, math.nan, math.nan, 2.5], nan_ok=True, abs=1e-3)
    assert found.centres[2] == pytest.approx([math.nan, 3.0, 1.0, math.nan, math.nan], nan_ok=True, abs=1e-3)
    assert (~np.isnan(found.centres)).sum(axis=1).tolist() == [2, 2, 2]  # also of the empty cluster
    assert found.count == 3
    assert found.filled(-1.0)[0].tolist()[1:4] == [-1.0] * 3


def test_sums_are_divided_by_no_less_than_the_public_limit() -> None:
    mechanism = make(items=2, each=2, picked=2, value_bound=4.0, k=1, count=1e5, values=1e9, least_users=8.0)
    assert mechanism.release([[4.0, 2.0]], [0]).value.centres == pytest.approx(np.array([[0.5, 0.25]]), abs=1e-3)


def test_sums_are_divided_by_the_noisy_sizes_and_never_by_the_true_ones() -> None:
    mechanism = make(items=1, each=1, picked=1, k=50, count=0.05, values=1e9)
    found = mechanism.release(np.full((50_000, 1), 0.5), np.repeat(np.arange(50), 1000)).value
    assert len(set(found.sizes.tolist())) > 10
    assert found.centres[:, 0] * found.sizes == pytest.approx(np.full(50, 500.0), rel=1e-3)


def test_values_are_clipped_to_the_range_of_the_rows() -> None:
    for signed, low in ((False, 0.0), (True, -1.0)):
        mechanism = make(items=50, each=1, picked=50, k=4, count=1.0, values=0.01, select=0.01, signed=signed)
        centres = mechanism.release(np.zeros((0, 50)), np.zeros(0, dtype=np.int64)).value.centres
        assert (centres.min(), centres.max()) == (low, 1.0)


def noisy_sums(mechanism: SparseRecovery, rows: Any, draws: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sizes, and sums in steps of the first item, where nothing is cut off."""
    noise, sizes, sums = ReplayedNoise(8), [], []
    for _ in range(draws):
        found = mechanism.release(rows, np.zeros(len(rows), dtype=np.int64), noise).value
        sizes.append(int(found.sizes[0]))
        sums.append(round(float(found.centres[0, 0]) * mechanism.least_users / float(mechanism.bounds.step)))
    return np.array(sizes), np.array(sums)


def test_released_numbers_have_the_stated_laws() -> None:
    rows = np.full((3, 1), 0.5)
    mechanism = make(items=1, each=1, picked=1, k=1, count=0.5, select=0.5, values=1.5, least_users=1e6, signed=True)
    sizes, sums = noisy_sums(mechanism, rows, 1_000)
    cells = np.arange(-12, 18)
    law = mechanism.size_pmf(cells, 3)
    counts = np.array([(sizes == cell).sum() for cell in cells])
    assert chi_square(np.append(counts, 1_000 - counts.sum()), np.append(law, 1 - law.sum())) > ALARM
    scale = float(mechanism.value_scale)
    edges = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]) * scale
    cumulative = np.where(edges < 0, 0.5 * np.exp(edges / scale), 1 - 0.5 * np.exp(-edges / scale))
    shares = np.diff(np.concatenate([[0.0], cumulative, [1.0]]))
    counts = np.histogram(sums - 1.5 * STEPS, bins=np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    assert chi_square(counts, shares) > ALARM
    assert mechanism.value_scale == STEPS / Fraction(2)


def test_rows_are_bounded_inside() -> None:
    mechanism = make(items=3, each=2, picked=3, k=1, count=1e5, values=1e9)
    centres = mechanism.release([[9.0, math.nan, -4.0]], [0]).value.centres
    assert centres[0] == pytest.approx([1.0, 0.0, 0.0], abs=1e-3)
    crowded = mechanism.release([[1.0, 1.0, 1.0]], [0]).value.centres
    assert crowded.sum() == pytest.approx(2.0, abs=1e-3)


def test_a_cluster_that_there_is_not_counts_as_one_that_there_is() -> None:
    mechanism = make(k=2, count=1e5, values=1e9, select=1e9)
    assert mechanism.release([[1.0, 0, 0, 0], [1.0, 0, 0, 0]], [-5, 9]).value.sizes.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"picked": 0},
        {"picked": 5},
        {"count": 0.0},
        {"select": math.nan},
        {"values": -1.0},
        {"least_users": 0.0},
    ],
)
def test_parameters_outside_their_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        make(**wrong)


def test_clusters_of_another_shape_are_refused() -> None:
    for clusters in ([0], [0.0, 1.0], [[0, 1]]):
        with pytest.raises(InvalidInput):
            make().release(np.zeros((2, 4)), clusters)


def test_guarantee_adds_the_three_steps() -> None:
    guarantee = make().release(np.zeros((2, 4)), [0, 1], SYSTEM_NOISE).guarantee
    assert guarantee.is_pure
    assert (guarantee.epsilon, guarantee.protects) == (1.0, ONE_USER)
    assert guarantee.loss is not None
    assert guarantee.loss.kind is LossKind.ZCDP
    assert guarantee.loss.value == pytest.approx(0.25**2 / 2 + 0.25**2 / (8 * 2) + 0.5**2 / 2)
    whole = make(picked=4).guarantee
    assert whole.loss is not None
    assert (whole.epsilon, whole.loss.value) == (1.0, pytest.approx(0.25**2 / 2 + 0.75**2 / 2))
