"""The exact sampler of slates: its whole numbers, the margin of its floats, its proposals, and what it draws."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from tacit.mechanisms import SYSTEM_NOISE, ReplayedNoise
from tacit.mechanisms.noise import Noise, NoiseCoins, words64
from tacit.mechanisms.samplers import subsets
from tacit.mechanisms.samplers.subsets import (
    SlateSampler,
    WeightedSubsets,
    WholeKernel,
    determinant,
    kept_of,
    margin,
    proposals,
    shares,
)
from tests.contracts.mechanism import chi_square
from tests.unit.mechanisms.scripted import ScriptedNoise, further, native

ROWS = np.array([[3, 2, 0, 0, 1], [0, 4, 4, 0, 0], [1, 1, 1, 5, 0], [0, 0, -2, 2, 6]])


def kernel_of(rows: Any, sigma: int = 7) -> WholeKernel:
    return WholeKernel(sparse.csr_array(np.asarray(rows, dtype=np.int64)), sigma)


def by_permutations(matrix: list[list[int]]) -> int:
    """Leibniz's formula."""
    total = 0
    for order in permutations(range(len(matrix))):
        swaps = sum(order[i] > order[j] for i in range(len(order)) for j in range(i + 1, len(order)))
        total += (-1) ** swaps * math.prod(row[place] for row, place in zip(matrix, order, strict=True))
    return total


def whole(rows: Any, sigma: int) -> list[list[int]]:
    """The kernel written out, in Python's numbers."""
    columns = [[int(cell) for cell in column] for column in np.asarray(rows).T]
    return [
        [
            sum(a * b for a, b in zip(one, other, strict=True)) + (sigma if i == j else 0)
            for j, other in enumerate(columns)
        ]
        for i, one in enumerate(columns)
    ]


def minor(matrix: list[list[int]], slate: tuple[int, ...]) -> int:
    return by_permutations([[matrix[i][j] for j in slate] for i in slate])


def law(rows: Any, sigma: int, k: int) -> NDArray[np.float64]:
    matrix = whole(rows, sigma)
    weights = [minor(matrix, slate) for slate in combinations(range(len(matrix)), k)]
    return np.array([weight / sum(weights) for weight in weights])


def counts(slates: NDArray[np.int64], items: int) -> NDArray[np.int64]:
    seen = Counter(map(tuple, slates.tolist()))
    cells = list(combinations(range(items), slates.shape[1]))
    assert set(seen) <= set(cells)  # ascending, without repeats
    return np.array([seen[cell] for cell in cells])


def test_determinants_are_exact(rng: np.random.Generator) -> None:
    for k in range(1, 6):
        for size in (3, 1 << 16, 1 << 30):
            rows = rng.integers(-size, size, (k + 1, k))
            matrix = whole(rows, 1)
            assert determinant(matrix) == by_permutations(matrix)


def test_minors_and_diagonals_are_those_of_the_kernel_written_out() -> None:
    kernel, matrix = kernel_of(ROWS), whole(ROWS, 7)
    for k in range(1, 6):
        for slate in combinations(range(5), k):
            assert kernel.minor(np.array(slate)) == minor(matrix, slate)
            assert kernel.hadamard(np.array(slate)) == math.prod(matrix[i][i] for i in slate)
    assert kernel.total == sum(matrix[i][i] - 7 for i in range(5))


@pytest.mark.parametrize("whole_gram", [0, 512], ids=["by slate", "at once"])
@pytest.mark.parametrize("few", [0, 1 << 18], ids=["sparse", "dense"])
@pytest.mark.parametrize("users", [1, 40, 3000])
@pytest.mark.parametrize("size", [50, 1 << 27], ids=["small", "beyond 2^53"])
def test_every_path_gives_the_same_products(
    whole_gram: int, few: int, users: int, size: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subsets, "_WHOLE_GRAM", whole_gram)
    monkeypatch.setattr(subsets, "_FEW", few)
    rows = rng.integers(-size, size, (users, 9)) * (rng.random((users, 9)) < 0.3)
    rows[:, 4] = 0
    kernel = kernel_of(rows)
    slates = np.array([[0, 1, 2], [6, 7, 8], [0, 4, 8], [2, 3, 4]])
    products = (rows.astype(object).T @ rows.astype(object)).astype(object)
    for slate, block in zip(slates, kernel.products(slates), strict=True):
        assert block.tolist() == products[np.ix_(slate, slate)].tolist()
    assert kernel.signal.tolist() == np.diag(products).tolist()


def test_the_largest_sums_stay_whole() -> None:
    """Columns whose products add up to nearly 2^62, where floats are off by hundreds."""
    value = (1 << 30) - 1
    rows = np.full((3, 600), value)
    kernel = kernel_of(rows, sigma=1 << 90)
    assert kernel.products(np.array([[0, 599]]))[0].tolist() == [[3 * value**2] * 2] * 2
    assert kernel.minor(np.array([5, 7])) == (3 * value**2 + (1 << 90)) ** 2 - (3 * value**2) ** 2


def contrived(rng: np.random.Generator) -> list[tuple[WholeKernel, NDArray[np.int64]]]:
    """Kernels from nearly diagonal to nearly singular, each with slates."""
    cases = []
    for k in (1, 2, 5, 10, 16):
        for sigma in (1, 1 << 20, 1 << 32, 1 << 52, 1 << 80):
            for kind in range(3):
                rows = rng.integers(0, 1 << 16, (30, 20)) * (rng.random((30, 20)) < (0.1, 0.5, 1.0)[kind])
                if kind == 2:
                    rows[:, 10:] = rows[:, :10]  # every item twice
                slates = np.array([np.sort(rng.choice(20, k, replace=False)) for _ in range(8)])
                cases.append((kernel_of(rows, sigma), slates))
    return cases


def test_the_shares_in_floats_are_within_their_margin_of_the_truth(rng: np.random.Generator) -> None:
    open_cases = 0
    for kernel, slates in contrived(rng):
        share, known = subsets.shares(kernel, slates)
        for one, sure, slate in zip(share, known, slates, strict=True):
            truth = Fraction(kernel.minor(slate), kernel.hadamard(slate))
            assert 0 < truth <= 1
            open_cases += not sure
            if sure:
                assert abs(Fraction(float(one)) - truth) <= Fraction(margin(slates.shape[1])) / 2
    assert open_cases < 60


def test_the_margin_is_twice_the_proved_bound() -> None:
    for k in (1, 2, 10, 100):
        entry = (k + 1) + 8 + 1  # Cholesky's method, the entries themselves, higher powers: in units of 2^-53
        assert margin(k) >= 2 * (k * k * entry + 4 * k) * 2.0**-53
    assert margin(10) < 1e-12  # and yet next to nothing is left to whole numbers


def test_floats_and_whole_numbers_take_the_same_decisions(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = contrived(rng)
    quick = [kept_of(kernel, slates, ReplayedNoise(i)).tolist() for i, (kernel, slates) in enumerate(cases)]
    monkeypatch.setattr(subsets, "margin", lambda k: 2.0)  # nothing is ever sure
    slow = [kept_of(kernel, slates, ReplayedNoise(i)).tolist() for i, (kernel, slates) in enumerate(cases)]
    assert quick == slow
    assert 100 < sum(map(len, quick)) < 8 * len(cases) - 100


def test_a_tie_is_settled_in_whole_numbers_by_further_bits() -> None:
    kernel, slate = kernel_of(ROWS), np.array([[1, 2, 3]])
    truth = Fraction(kernel.minor(slate[0]), kernel.hadamard(slate[0]))
    first = math.floor(truth * 2**64)
    second = math.floor((truth * 2**64 - first) * 2**64)
    scripts = [
        ([native([first - 1], 8)], True),  # within the margin, but decided by the first 64 bits
        ([native([first + 1], 8)], False),
        ([native([first], 8), further(second - 1)], True),
        ([native([first], 8), further(second + 1)], False),
        ([native([first], 8), further(second), further(0)], True),
        ([native([first], 8), further(second), further(2**64 - 1)], False),
    ]
    for script, accepted in scripts:
        noise = ScriptedNoise(*script)
        assert len(kept_of(kernel, slate, noise)) == accepted
        assert noise.left == 0


def test_the_ends_of_the_margin_are_not_decided_in_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, slate = kernel_of(ROWS), np.array([[1, 2, 3]])
    truth = Fraction(kernel.minor(slate[0]), kernel.hadamard(slate[0]))
    asked: list[int] = []
    exact = WholeKernel.minor
    monkeypatch.setattr(WholeKernel, "minor", lambda self, one: asked.append(1) or exact(self, one))
    for away, settled in ((0.9, 1), (-0.9, 1), (1.5, 0), (-1.5, 0)):
        asked.clear()
        word = math.floor((truth + Fraction(away * margin(3))) * 2**64)
        assert len(kept_of(kernel, slate, ScriptedNoise(native([word], 8)))) == (away < 0)
        assert len(asked) == settled


def test_items_that_no_float_tells_apart_are_decided_exactly() -> None:
    """Two columns alike, each 2^60, with a jitter of 1: the share is about 2^-59, and 0 in floats."""
    rows = np.full((4, 3), 1 << 29)
    rows[:, 2] = 0
    kernel, slate = kernel_of(rows, sigma=1), np.array([[0, 1]])
    truth = Fraction(kernel.minor(slate[0]), kernel.hadamard(slate[0]))
    assert Fraction(1, 2**60) < truth < Fraction(1, 2**58)
    assert not subsets.shares(kernel, slate)[1].any()  # a pivot that is not above 0 proves nothing
    for word, accepted in ((1 << 4, True), (1 << 6, False)):
        noise = ScriptedNoise(native([word], 8))
        assert len(kept_of(kernel, slate, noise)) == accepted


@pytest.mark.parametrize("share", [0.0, 0.999, -0.5])
def test_a_share_that_is_not_known_decides_nothing(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two negative pivots would make a share above 0 that means nothing."""
    kernel, slate = kernel_of(ROWS), np.array([[1, 2, 3]])
    truth = Fraction(kernel.minor(slate[0]), kernel.hadamard(slate[0]))
    monkeypatch.setattr(subsets, "shares", lambda *_: (np.array([share]), np.array([False])))
    for away, accepted in ((-1e-3, True), (1e-3, False)):
        word = math.floor((truth + Fraction(away)) * 2**64)
        assert len(kept_of(kernel, slate, ScriptedNoise(native([word], 8)))) == accepted


@pytest.mark.parametrize(("rows", "sigma"), [(ROWS, 7), (ROWS * 0, 1), (ROWS, 1 << 90), (ROWS << 20, 1)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_proposals_have_their_law(rows: NDArray[np.int64], sigma: int, k: int) -> None:
    kernel = kernel_of(rows, sigma)
    slates = proposals(kernel, k, 40_000, ReplayedNoise(k))
    weights = np.array([float(kernel.hadamard(np.array(slate))) for slate in combinations(range(5), k)])
    assert chi_square(counts(slates, 5), weights / weights.sum()) > 1e-9
    total = float(5 * sigma + kernel.total) ** k
    distinct = math.factorial(k) * weights.sum() / total
    assert len(slates) / 40_000 == pytest.approx(distinct, abs=0.03)


@pytest.mark.parametrize("weights", [[1, 2, 3, 1], [5, 1, 1], [1, 1, 1, 1], [2, 7]])
@pytest.mark.parametrize("k", [1, 2])
def test_weighted_subsets_have_their_law_over_all_tickets(
    weights: list[int], k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number that could be drawn, in every order: the probabilities are equal as fractions."""
    found: Counter[tuple[int, ...]] = Counter()

    def explore(tickets: list[int], chance: Fraction) -> None:
        asked: list[int] = []

        def below(bound: int, noise: Any) -> int:
            asked.append(bound)
            return tickets[len(asked) - 1] if len(asked) <= len(tickets) else 0

        monkeypatch.setattr(subsets, "below", below)
        subset = WeightedSubsets(weights, k).sample(1, SYSTEM_NOISE)[0]
        if len(tickets) == k:
            found[tuple(subset.tolist())] += chance  # type: ignore[assignment]
            return
        for ticket in range(asked[len(tickets)]):
            explore([*tickets, ticket], chance / asked[len(tickets)])

    explore([], Fraction(1))
    products = {
        slate: math.prod(weights[i] for i in slate) for slate in combinations(range(len(weights)), min(k, len(weights)))
    }
    assert found == {slate: Fraction(product, sum(products.values())) for slate, product in products.items()}


@pytest.mark.parametrize("repeats", [0.0, math.inf], ids=["subsets", "independent"])
@pytest.mark.parametrize("gram", [0, 512], ids=["by slate", "at once"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_slates_have_their_law(repeats: float, gram: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subsets, "_REPEATS", repeats)
    monkeypatch.setattr(subsets, "_WHOLE_GRAM", gram)
    slates = SlateSampler(kernel_of(ROWS), k).draw_many(20_000 if repeats else 5_000, ReplayedNoise(5))
    assert chi_square(counts(slates, 5), law(ROWS, 7, k)) > 1e-9


def test_that_test_tells_another_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    slates = SlateSampler(kernel_of(ROWS), 2).draw_many(20_000, ReplayedNoise(5))
    assert chi_square(counts(slates, 5), law(ROWS, 11, 2)) < 1e-9


def test_popular_items_do_not_make_proposals_repeat_for_ever() -> None:
    """Nearly all of the trace is one item's: independent proposals of ten different items would come once in 10^20."""
    rows = np.zeros((2, 100), dtype=np.int64)
    rows[:, 3] = 1 << 29
    slates = SlateSampler(kernel_of(rows, sigma=1 << 16), 10).draw_many(20, ReplayedNoise(1))
    assert (slates == 3).any(axis=1).all()
    assert (np.diff(slates, axis=1) > 0).all()


def test_another_sampler_draws_what_is_left_after_so_many_rejections() -> None:
    """Items 0 and 1 are alike but for the jitter: a proposal of both is kept once in 10^8, and nothing else is proposed."""
    rows = np.array([[1 << 15, 1 << 15]])
    asked: list[int] = []

    def instead(count: int, noise: Noise) -> NDArray[np.int64]:
        asked.append(count)
        return np.tile([0, 1], (count, 1))

    sampler = SlateSampler(kernel_of(rows, sigma=4), 2, most=64, instead=instead)
    assert sampler.draw_many(3, ReplayedNoise(1)).tolist() == [[0, 1]] * 3
    assert asked == [3]


@pytest.mark.parametrize("most", [1, 4, 1000])
def test_slates_have_their_law_whoever_draws_them(most: int) -> None:
    """Kept proposals come first and the rest from another sampler of the same law: a slate of either kind must be as likely."""
    other = SlateSampler(kernel_of(ROWS), 2)
    sampler = SlateSampler(kernel_of(ROWS), 2, most=most, instead=other.draw_many)
    noise = ReplayedNoise(8)
    slates = np.concatenate([sampler.draw_many(4, noise) for _ in range(3_000)])
    assert chi_square(counts(slates, 5), law(ROWS, 7, 2)) > 1e-9
    assert chi_square(counts(slates, 5), law(ROWS, 20, 2)) < 1e-9


def test_a_share_too_small_for_a_float_raises_nothing() -> None:
    rows = sparse.csr_array(np.full((3_000, 60), 8_460, dtype=np.int64))
    with np.errstate(all="raise"):
        share, known = shares(WholeKernel(rows, 9), np.arange(40)[None, :])
        assert not len(kept_of(WholeKernel(rows, 9), np.arange(40)[None, :], ReplayedNoise(1)))
    assert not known[0] or 0.0 <= share[0] < margin(40)


def test_a_batch_gathers_no_more_than_fits(rng: np.random.Generator) -> None:
    kernel = kernel_of(rng.random((3000, 600)) < 0.5, sigma=40)
    assert kernel.batch(10) == pytest.approx((1 << 21) / 15_000, rel=0.05)
    assert kernel_of(ROWS).batch(3) == 1 << 13
    slates = SlateSampler(kernel_of(rng.random((50, 600)) < 0.05, sigma=40), 10).draw_many(300, ReplayedNoise(2))
    assert slates.shape == (300, 10)
    assert (np.diff(slates, axis=1) > 0).all()


def test_noise_coins_lie_strictly_between_0_and_1_and_use_the_noise() -> None:
    ends = NoiseCoins(ScriptedNoise(native([0, 2**64 - 1], 8))).uniforms(2)
    assert 0.0 < ends[0] < 2.0**-52
    assert 1.0 - 2.0**-52 < ends[1] < 1.0
    draws = NoiseCoins(ReplayedNoise(3)).uniforms(1000)
    np.testing.assert_allclose(draws, words64(ReplayedNoise(3), 1000) / 2.0**64, atol=2.0**-51)
