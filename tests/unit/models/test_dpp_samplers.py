"""The samplers' arithmetic, by closed forms and by enumeration. Their laws by draws: tests/statistical/test_dpp_samplers.py."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.models.dpp import laws, projection, samplers
from tacit.models.dpp.laws import NONE, RngCoins
from tacit.models.dpp.projection import draw_indices, projection_samples, spectrum
from tacit.models.dpp.samplers import DenseSampler, SplitSampler, UnconstrainedSampler, fill
from tests.unit.models.subset_laws import all_subsets, dpp_law
from tests.unit.models.test_dpp_elementary import Scripted

SMALL = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])


@pytest.fixture
def coins() -> RngCoins:
    return RngCoins(np.random.default_rng(20_240_229))


def odd_rows() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    plain = rng.normal(size=(8, 3))
    doubled = plain.copy()
    doubled[[1, 4]] = doubled[0]
    blank = plain.copy()
    blank[[2, 3, 7]] = 0.0
    graded = np.linalg.qr(rng.normal(size=(8, 4)))[0] * [1.0, 1e-3, 1e-6, 1e-9]
    return {
        "plain": plain,
        "one column": plain[:, :1],
        "rank 2 of 4 columns": plain[:, :2] @ rng.normal(size=(2, 4)),
        "equal columns": plain[:, [0, 0, 1, 1, 1]],
        "equal items": doubled,
        "empty items": blank,
        "no signal": np.zeros((8, 3)),
        "no columns": np.zeros((8, 0)),
        "more columns than items": rng.normal(size=(8, 20)),
        "more columns, rank 3": plain @ rng.normal(size=(3, 20)),
        "square": rng.normal(size=(8, 8)),
        "graded": graded @ np.linalg.qr(rng.normal(size=(4, 4)))[0],
        "tiny": plain * 1e-150,
        "very tiny": plain * 1e-300,
        "huge": plain * 1e150,
        "very huge": plain * 1e300,
    }


ODD = odd_rows()
RANKS = dict.fromkeys(ODD, 3) | {
    "one column": 1,
    "rank 2 of 4 columns": 2,
    "equal columns": 2,
    "no signal": 0,
    "no columns": 0,
    "more columns than items": 8,
    "square": 8,
    "graded": 4,
}


def unit(rows: np.ndarray) -> tuple[np.ndarray, float]:
    """The rows at most 1 in size, and the log of what they were multiplied with."""
    largest = np.abs(rows).max(initial=0.0)
    return (rows / largest, float(np.log(largest))) if largest > 0.0 else (rows, 0.0)


# --- eigenvalues and eigenvectors


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("held", [np.asarray, sparse.csr_array, sparse.coo_matrix])
def test_spectrum_is_that_of_the_kernel(kind: str, held: Callable[[np.ndarray], Any]) -> None:
    logs, vectors = spectrum(held(ODD[kind]))
    rows, scale = unit(ODD[kind])
    assert vectors.shape == (RANKS[kind], 8)
    assert vectors @ vectors.T == pytest.approx(np.eye(RANKS[kind]), abs=1e-12)
    assert (vectors.T * np.exp(logs - 2.0 * scale)) @ vectors == pytest.approx(rows @ rows.T, abs=3e-12)


def test_small_eigenvalues_are_right_beside_large_ones() -> None:
    """A Gram matrix alone would lose squared singular values of 1e-18 to rounding."""
    logs, _ = spectrum(ODD["graded"])
    assert np.sort(logs)[::-1] == pytest.approx(2.0 * np.log([1.0, 1e-3, 1e-6, 1e-9]), abs=1e-6)
    logs, _ = spectrum(ODD["graded"][:4])  # as many columns as items
    exact = np.linalg.svd(ODD["graded"][:4], compute_uv=False)
    assert np.sort(logs)[::-1] == pytest.approx(2.0 * np.log(exact), abs=1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_refused(bad: float) -> None:
    rows = SMALL.copy()
    rows[1, 1] = bad
    for held in (rows, sparse.csr_array(rows)):
        with pytest.raises(InvalidInput):
            SplitSampler(held, 0.5, 2)
    with pytest.raises(InvalidInput):
        DenseSampler(np.array([[1.0, bad], [bad, 1.0]]), 1)


def test_rows_must_be_a_matrix() -> None:
    with pytest.raises(InvalidInput, match="matrix"):
        SplitSampler(np.ones(4), 0.5, 2)
    with pytest.raises(InvalidInput, match="square"):
        DenseSampler(np.ones((3, 2)), 1)


# --- the split


def test_split_of_a_small_kernel() -> None:
    sampler = SplitSampler(SMALL, 0.5, 2)
    assert sampler.log_normaliser == pytest.approx(np.log(8.0), abs=1e-12)
    assert sampler._law == pytest.approx([3 / 16, 9 / 16, 4 / 16], abs=1e-12)
    law = laws.k_dpp_law(0.5 * np.eye(4) + SMALL @ SMALL.T, 2)
    assert law == pytest.approx([0.15625, 0.28125, 0.09375, 0.28125, 0.09375, 0.09375], abs=1e-12)
    more = np.column_stack([SMALL, [0.0, 0.0, 0.0, 1.0]])
    assert laws.k_dpp_law(0.5 * np.eye(4) + more @ more.T, 2) == pytest.approx([0.1] + [0.18] * 5, abs=1e-12)


@pytest.mark.parametrize(("row", "sign"), [([0.3, 0.7], -1.0), ([0.1, 0.2], 0.0)])
def test_a_determinant_that_rounding_makes_negative_or_0_is_a_probability_of_0(row: list[float], sign: float) -> None:
    """Two items alike, whose determinant is 0, beside one that differs from both."""
    kernel = np.eye(3)
    kernel[:2, :2] = np.outer(row, row)
    signs, logs = np.linalg.slogdet(kernel[:2, :2])
    assert signs == sign  # else this is no case of it
    assert (sign == 0.0) == (logs == -np.inf)
    found = laws.log_determinants(kernel, 2)
    assert found[0] == -np.inf
    assert np.isfinite(found[1:]).all()
    squares = np.square(row)
    assert laws.k_dpp_law(kernel, 2) == pytest.approx([0.0, *(squares / squares.sum())], abs=1e-12)
    assert laws.k_dpp_law(kernel, 2)[0] == 0.0
    every = dict(zip(all_subsets(3), dpp_law(kernel).tolist(), strict=True))
    assert every[(0, 1)] == 0.0
    assert np.isfinite(list(every.values())).all()


def log_sum(kernel: np.ndarray, k: int) -> float:
    return float(np.logaddexp.reduce(laws.log_determinants(kernel, k)))


@pytest.mark.parametrize("seed", range(60))
def test_normalisers_are_those_of_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 9)), int(rng.integers(1, 12))
    rows = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, size=(1, d))
    sigma, k = float(10.0 ** rng.uniform(-3, 3)), int(rng.integers(1, n + 1))
    kernel = sigma * np.eye(n) + rows @ rows.T
    expected = log_sum(kernel, k)
    assert SplitSampler(rows, sigma, k).log_normaliser == pytest.approx(expected, abs=1e-10)
    assert DenseSampler(kernel, k).log_normaliser == pytest.approx(expected, abs=1e-8)
    assert UnconstrainedSampler(rows, sigma).log_normaliser == pytest.approx(
        np.linalg.slogdet(np.eye(n) + kernel)[1], abs=1e-10
    )


@pytest.mark.parametrize("seed", range(10))
def test_law_of_signal_slots_is_that_of_enumeration(seed: int) -> None:
    """P(j) is the sum over slates and their subsets S of j items of sigma^(k-j) det(B B^T)_S, normalised."""
    rng = np.random.default_rng(seed)
    rows, sigma, k = rng.normal(size=(6, 4)), 0.7, int(rng.integers(1, 7))
    kernel = rows @ rows.T
    weights = np.zeros(k + 1)
    for slate in laws.subsets(6, k):
        for j in range(min(k, 4) + 1):
            weights[j] += sigma ** (k - j) * np.exp(laws.log_determinants(kernel[np.ix_(slate, slate)], j)).sum()
    assert SplitSampler(rows, sigma, k)._law == pytest.approx(weights / weights.sum(), abs=1e-12)


def test_number_of_signal_slots_is_exact_in_a_large_catalogue() -> None:
    """One eigenvalue g of a million items: P(0) : P(1) = sigma C(n, k) : g C(n-1, k-1) = sigma n : g k."""
    rows = np.zeros((1_000_000, 1))
    rows[5] = 3.0
    law = SplitSampler(rows, 1e-4, 10, scan=True)._law
    assert law[1] / law[0] == pytest.approx(9.0 * 10 / (1e-4 * 1_000_000), rel=1e-13)
    assert law[2:].max() == 0.0


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("scan", [True, False])
@pytest.mark.parametrize("k", [1, 4, 8])
def test_odd_kernels_give_slates(kind: str, scan: bool, k: int, coins: RngCoins) -> None:
    rows = ODD[kind]
    size = float(np.square(unit(rows)[0]).sum() * np.exp(min(2.0 * unit(rows)[1], 600.0)))
    for sigma in (1e-300, 1e-3 * min(max(size, 1e-300), 1e300), 1e300):
        sampler = SplitSampler(rows, sigma, k, scan=scan)
        slates = sampler.draw_many(50, coins)
        assert slates.shape == (50, k)
        assert slates.dtype == np.int64
        assert (np.diff(slates, axis=1) > 0).all()
        assert slates.min() >= 0
        assert slates.max() < 8
        assert np.isfinite(sampler.log_normaliser)
        assert sampler._law.sum() == pytest.approx(1.0)


def test_without_sigma_slots_are_all_signal_and_k_is_at_most_the_rank(coins: RngCoins) -> None:
    for scan in (True, False):
        sampler = SplitSampler(ODD["equal items"], 0.0, 3, scan=scan)
        assert sampler._law.tolist() == [0.0, 0.0, 0.0, 1.0]
        slates = sampler.draw_many(2000, coins)
        assert (np.isin(slates, [0, 1, 4]).sum(axis=1) <= 1).all()  # equal items never stand together
    assert sampler.log_normaliser == pytest.approx(log_sum(ODD["equal items"] @ ODD["equal items"].T, 3), abs=1e-12)
    with pytest.raises(InvalidParameter, match=r"rank of the rows, 3.*sigma above 0"):
        SplitSampler(ODD["equal items"], 0.0, 4)
    with pytest.raises(InvalidParameter, match="rank of the kernel, 3"):
        DenseSampler(ODD["equal items"] @ ODD["equal items"].T, 4)
    with pytest.raises(InvalidParameter, match="rank of the kernel, 0"):
        DenseSampler(np.zeros((3, 3)), 1)
    assert UnconstrainedSampler(np.zeros((5, 2)), 0.0).draw(coins).size == 0


def test_items_without_signal_need_sigma(coins: RngCoins) -> None:
    blank = ODD["empty items"]
    assert not np.isin(SplitSampler(blank, 0.0, 3).draw_many(500, coins), [2, 3, 7]).any()
    assert np.isin(SplitSampler(blank, 1.0, 3).draw_many(500, coins), [2, 3, 7]).any()


@pytest.mark.parametrize("sigma", [-1e-9, np.nan, np.inf, "1"])
def test_sigma_below_0_or_not_finite_is_refused(sigma: Any) -> None:
    with pytest.raises(InvalidParameter, match="sigma"):
        SplitSampler(SMALL, sigma, 2)
    with pytest.raises(InvalidParameter, match="sigma"):
        UnconstrainedSampler(SMALL, sigma)


@pytest.mark.parametrize("k", [0, 5, -1, 2.0, True])
def test_k_outside_the_catalogue_is_refused(k: Any) -> None:
    with pytest.raises(InvalidParameter, match="k must be"):
        SplitSampler(SMALL, 0.5, k)
    with pytest.raises(InvalidParameter, match="k must be"):
        DenseSampler(np.eye(4), k)


def test_no_slates_are_an_empty_table(coins: RngCoins) -> None:
    for sampler in (SplitSampler(SMALL, 0.5, 2), SplitSampler(SMALL, 0.5, 3), DenseSampler(np.eye(4), 2)):
        assert sampler.draw_many(0, coins).shape == (0, sampler.k)


def test_small_catalogues_are_scanned_unless_told_otherwise() -> None:
    assert SplitSampler(SMALL, 0.5, 2)._signal._running is None
    assert SplitSampler(SMALL, 0.5, 2, scan=False)._signal._running is not None
    assert SplitSampler(np.ones((5_000, 1)), 0.5, 2)._signal._running is not None
    assert SplitSampler(np.ones((4_999, 1)), 0.5, 2)._signal._running is None


def test_samplers_do_not_show_what_they_hold() -> None:
    for sampler in (SplitSampler(SMALL * 4242.4242, 0.5, 2), UnconstrainedSampler(SMALL * 4242.4242, 0.5)):
        assert "4242" not in repr(sampler)


# --- the chain rule, the proposals, the filling


def chain_rule(basis: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """The items that these coins draw from orthonormal columns."""
    return projection_samples(basis.T, np.arange(basis.shape[1])[None, :], Scripted(uniforms))[0]


def test_chain_rule_has_its_law_on_a_grid_of_coins() -> None:
    basis = np.linalg.qr(np.random.default_rng(2).normal(size=(4, 2)))[0]
    cells = 60
    middles = (np.arange(cells) + 0.5) / cells
    seen = np.zeros((4, 4))
    for first in middles:
        for second in middles:
            seen[tuple(np.sort(chain_rule(basis, np.array([first, second]))))] += 1.0 / cells**2
    for one, other in laws.subsets(4, 2):
        assert seen[one, other] == pytest.approx(np.linalg.det(basis[[one, other]]) ** 2, abs=2.0 / cells)


def test_chain_rule_never_repeats_an_item_for_what_rounding_leaves_of_it() -> None:
    for seed in range(300):
        basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 3)))[0]
        items = chain_rule(basis, np.full(3, 2.0**-53))  # coins that take the first item with any weight
        assert np.unique(items).size == 3


def test_weighted_never_takes_what_has_no_weight() -> None:
    weights = np.array([0.0, 1.0, 0.0, 3.0, 0.0])
    uniforms = np.array([2.0**-53, 0.2499, 0.2501, 1.0 - 2.0**-53])
    assert draw_indices(np.tile(weights, (4, 1)), uniforms).tolist() == [1, 1, 3, 3]
    assert [int(draw_indices(weights[None, :], np.array([u]))[0]) for u in uniforms] == [1, 1, 3, 3]


@pytest.mark.parametrize("n", [5, 32, 33, 64, 1000])
def test_proposals_follow_the_squares(n: int, coins: RngCoins) -> None:
    """Blocks that end with the catalogue, and one that does not."""
    rng = np.random.default_rng(n)
    vectors = np.linalg.qr(rng.normal(size=(n, 3)))[0].T.copy()
    vectors[1] = 0.0
    vectors[1, n - 1] = 1.0  # all of its mass in the last item
    running = projection.running_squares(vectors)
    assert running[:, -1] == pytest.approx(np.ones(3))
    chosen = np.array([[1, NONE], [0, 2]])
    items = projection.propose(vectors, running, chosen, np.array([1, 2]), 20_000, coins)
    assert (items[0] == n - 1).all()
    law = (vectors[0] ** 2 + vectors[2] ** 2) / 2.0
    seen = np.bincount(items[1], minlength=n) / 20_000
    assert np.abs(np.cumsum(seen) - np.cumsum(law)).max() < 0.025  # Kolmogorov-Smirnov: one false alarm in 10^10


def test_what_was_passed_over_is_not_taken_later() -> None:
    """Item 0 comes twice: refused at the first pick by its coin; accepted later only by its second coin."""
    vectors = np.linalg.qr(np.random.default_rng(4).normal(size=(6, 2)))[0].T.copy()
    chosen, none = np.array([[0, 1]]), np.full((1, 2), NONE, dtype=np.int64)
    picked = projection.accept(vectors, chosen, none, np.array([[0, 3, 0]]), np.array([[2.0, 0.0, 2.0]]))
    assert picked.tolist() == [[3, NONE]]
    picked = projection.accept(vectors, chosen, picked, np.array([[3, 0, 1]]), np.zeros((1, 3)))
    assert picked.tolist() == [[3, 0]]  # never an item twice, whatever the coin


def test_what_an_earlier_round_picked_stays_picked() -> None:
    """Also where it is close to the picks before it, and beside a slate that has picked less."""
    vectors = np.linalg.qr(np.array([[1.0, 0.0, 0.1], [1.0, 1e-3, 0.1], [0.2, 1.0, 0.0], [0.0, 0.3, 1.0]]))[0].T.copy()
    picked = np.array([[0, 1, NONE], [2, NONE, NONE]])
    chosen = np.array([[0, 1, 2], [0, 1, 2]])
    offered = np.array([[0, 0], [2, 2]])
    assert projection.accept(vectors, chosen, picked, offered, np.zeros((2, 2))).tolist() == picked.tolist()


def test_acceptance_is_the_distance_left() -> None:
    """With one row picked, another is accepted for coins up to sin^2 of their angle, and no further."""
    vectors = np.linalg.qr(np.random.default_rng(5).normal(size=(6, 3)))[0].T.copy()
    for other in range(1, 6):
        rows = vectors[:, [0, other]].T
        share = 1.0 - (rows[0] @ rows[1]) ** 2 / ((rows[0] @ rows[0]) * (rows[1] @ rows[1]))
        for coin, taken in ((share * (1 - 1e-9), True), (share * (1 + 1e-9), False)):
            picked = projection.accept(
                vectors, np.array([[0, 1, 2]]), np.array([[0, NONE, NONE]]), np.array([[other]]), np.array([[coin]])
            )
            assert picked.tolist() == [[0, other if taken else NONE, NONE]]


@pytest.mark.parametrize(("n", "k"), [(7, 3), (7, 6), (7, 7), (1, 1), (1000, 10), (1000, 500), (1000, 900)])
def test_filling_keeps_what_is_there_and_repeats_nothing(n: int, k: int, coins: RngCoins) -> None:
    rng = np.random.default_rng(0)
    items = np.full((40, k), NONE, dtype=np.int64)
    for row in items:
        size = int(rng.integers(0, k + 1))
        row[:size] = rng.permutation(n)[:size]
    slates = fill(items, n, k, coins)
    assert slates.shape == (40, k)
    assert (np.diff(slates, axis=1) > 0).all()
    assert slates.min() >= 0
    assert slates.max() < n
    for row, slate in zip(items, slates, strict=True):
        assert set(row[row != NONE].tolist()) <= set(slate.tolist())


@pytest.mark.parametrize("sigma", [1e-6, 0.25, 1.0, 40.0])
def test_items_are_kept_for_coins_below_their_chance_and_for_no_others(sigma: float) -> None:
    chance = sigma / (1.0 + sigma)
    script = Scripted(np.array([chance * (1 - 1e-12), chance * (1 + 1e-12), 2.0**-53, chance * (1 - 1e-12)]))
    assert UnconstrainedSampler(np.zeros((4, 0)), sigma).draw(script).tolist() == [0, 2, 3]


@pytest.mark.parametrize("sigma", [0.0, 0.25, 3.0])
def test_signal_is_taken_for_coins_below_its_chance_and_for_no_others(sigma: float) -> None:
    """One direction, of item 2 alone, with eigenvalue 4: taken with 4 / (1 + sigma + 4). High coins then keep no other item."""
    rows, chance = np.array([[0.0], [0.0], [2.0]]), 4.0 / (5.0 + sigma)
    high = np.full(20, 1.0 - 2.0**-53)
    for coin, found in ((chance * (1 - 1e-12), [2]), (chance * (1 + 1e-12), [])):
        sampler = UnconstrainedSampler(rows, sigma, scan=True)
        assert sampler.draw(Scripted(np.append(coin, high))).tolist() == found


def test_many_slates_are_split_into_parts(monkeypatch: pytest.MonkeyPatch, coins: RngCoins) -> None:
    for module in (projection, samplers):
        monkeypatch.setattr(module, "_CELLS", 1000)
    for scan in (True, False):
        for k in (3, 6):
            slates = SplitSampler(ODD["plain"], 0.1, k, scan=scan).draw_many(300, coins)
            assert (np.diff(slates, axis=1) > 0).all()
            assert slates.min() >= 0
            assert np.unique(slates, axis=0).shape[0] > 5
    assert len(UnconstrainedSampler(ODD["plain"], 0.1).draw_many(300, coins)) == 300
