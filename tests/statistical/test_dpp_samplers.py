"""The samplers of determinantal point processes by draws: chi-square against enumeration on seven items.

A right sampler is refused once in 10,000 times, a wrong one must be refused beyond doubt. With 20 such tests and free seeds: one
false alarm in 500 runs; nothing is retried.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.models.dpp import laws, projection
from tacit.models.dpp.laws import Coins, RngCoins, choose, log_table
from tacit.models.dpp.projection import projection_samples
from tacit.models.dpp.samplers import DenseSampler, SplitSampler, UnconstrainedSampler, fill
from tests.contracts.mechanism import ALARM, chi_square
from tests.unit.models.subset_laws import all_subsets, dpp_law

pytestmark = pytest.mark.statistical
N = 7
DRAWS = 60_000
REFUSED = 1e-4
SIGMA = 0.4


def rows_of(kind: str) -> np.ndarray:
    rows = np.random.default_rng(11).normal(size=(N, 4))
    if kind == "equal and empty items":
        rows[[2, 5]] = rows[0]
        rows[3] = 0.0
    if kind == "rank 2":
        rows = rows[:, :2] @ np.random.default_rng(12).normal(size=(2, 4))
    if kind == "wide":
        rows = np.random.default_rng(13).normal(size=(N, 12)) * (np.arange(12) < 9)
    return rows


def kernel_of(rows: np.ndarray, sigma: float = SIGMA) -> np.ndarray:
    return sigma * np.eye(N) + rows @ rows.T


def counted(slates: Any, n: int = N) -> np.ndarray:
    """How often each subset was drawn, by the bits of its items."""
    codes = [int(np.bitwise_or.reduce(1 << slate, initial=0)) for slate in slates]
    return np.bincount(codes, minlength=1 << n)


def by_bits(subsets: list[tuple[int, ...]], law: np.ndarray, n: int = N) -> np.ndarray:
    found = np.zeros(1 << n)
    found[[sum(1 << item for item in some) for some in subsets]] = law
    return found


def k_law(kernel: np.ndarray, k: int) -> np.ndarray:
    return by_bits(laws.subsets(N, k), laws.k_dpp_law(kernel, k, exact=True))


def dense(rows: np.ndarray, k: int) -> Any:
    return DenseSampler(kernel_of(rows), k)


def scan(rows: np.ndarray, k: int) -> Any:
    return SplitSampler(rows, SIGMA, k, scan=True)


def proposals(rows: np.ndarray, k: int) -> Any:
    return SplitSampler(rows, SIGMA, k, scan=False)


def held_sparsely(rows: np.ndarray, k: int) -> Any:
    return SplitSampler(sparse.csr_array(rows), SIGMA, k, scan=False)


@pytest.mark.parametrize(
    ("build", "kind", "k"),
    [
        (dense, "plain", 3),
        (scan, "plain", 3),
        (proposals, "plain", 3),
        (proposals, "plain", 1),
        (scan, "wide", 5),
        (proposals, "wide", 5),
        (held_sparsely, "wide", 4),
        (proposals, "rank 2", 4),
        (dense, "equal and empty items", 3),
        (scan, "equal and empty items", 3),
        (proposals, "equal and empty items", 3),
    ],
)
def test_slates_have_the_law_of_the_kernel_and_no_other(
    build: Callable[[np.ndarray, int], Any], kind: str, k: int, rng: np.random.Generator
) -> None:
    rows = rows_of(kind)
    counts = counted(build(rows, k).draw_many(DRAWS, RngCoins(rng)))
    assert counts.sum() == DRAWS
    assert chi_square(counts, k_law(kernel_of(rows), k)) > REFUSED
    assert chi_square(counts, k_law(kernel_of(rows, 2.5 * SIGMA), k)) < ALARM
    assert chi_square(counts, k_law(kernel_of(rows * np.r_[1.2, np.ones(N - 1)][:, None]), k)) < ALARM


def test_slates_one_at_a_time_have_the_same_law(rng: np.random.Generator) -> None:
    rows, coins = rows_of("plain"), RngCoins(rng)
    for scanned in (True, False):
        sampler = SplitSampler(rows, SIGMA, 3, scan=scanned)
        counts = counted([sampler.draw(coins) for _ in range(DRAWS // 30)])
        assert chi_square(counts, k_law(kernel_of(rows), 3)) > REFUSED


@pytest.mark.parametrize("scanned", [True, False])
def test_without_sigma_the_law_is_that_of_the_rows(scanned: bool, rng: np.random.Generator) -> None:
    rows = rows_of("plain")
    counts = counted(SplitSampler(rows, 0.0, 4, scan=scanned).draw_many(DRAWS, RngCoins(rng)))
    assert chi_square(counts, k_law(rows @ rows.T, 4)) > REFUSED
    assert chi_square(counts, k_law(kernel_of(rows, 0.03), 4)) < ALARM


@pytest.mark.parametrize("scanned", [True, False])
def test_subsets_of_any_size_have_the_law_of_the_kernel_and_no_other(scanned: bool, rng: np.random.Generator) -> None:
    rows, coins = rows_of("plain"), RngCoins(rng)
    sampler = UnconstrainedSampler(rows, SIGMA, scan=scanned)
    counts = counted(sampler.draw_many(DRAWS, coins))
    everything = all_subsets(N)
    assert chi_square(counts, by_bits(everything, dpp_law(kernel_of(rows), exact=True))) > REFUSED
    assert chi_square(counts, by_bits(everything, dpp_law(kernel_of(rows, 1.2 * SIGMA)))) < ALARM


def test_more_rounds_of_proposals_do_not_move_the_law(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Two proposals a round: nearly every slate is taken up again, several times, with what it picked before."""
    offer = projection.propose

    def few(vectors: Any, running: Any, chosen: Any, sizes: Any, _: int, coins: Coins) -> Any:
        return offer(vectors, running, chosen, sizes, 2, coins)

    monkeypatch.setattr(projection, "propose", few)
    rows = rows_of("plain")
    counts = counted(SplitSampler(rows, SIGMA, 4, scan=False).draw_many(DRAWS // 2, RngCoins(rng)))
    assert chi_square(counts, k_law(kernel_of(rows), 4)) > REFUSED


@pytest.mark.parametrize("scanned", [True, False])
def test_projections_have_their_law_and_proposals_without_distances_do_not(
    scanned: bool, rng: np.random.Generator
) -> None:
    coins = RngCoins(rng)
    vectors = np.linalg.qr(np.random.default_rng(14).normal(size=(N, 3)))[0].T.copy()
    law = k_law(vectors.T @ vectors, 3)
    if scanned:
        counts = counted(projection_samples(vectors, np.tile(np.arange(3), (DRAWS, 1)), coins))
    else:
        running = projection.running_squares(vectors)
        counts = counted(projection.samples_by_proposal(vectors, running, np.tile(np.arange(3), (DRAWS, 1)), coins))
    assert chi_square(counts, law) > REFUSED
    lengths = np.square(vectors).sum(axis=0)  # a twin that only refuses repeats: items by their lengths alone
    twin = np.argsort(rng.exponential(size=(DRAWS, N)) / lengths, axis=1)[:, :3]
    assert chi_square(counted(twin), law) < ALARM


def test_choice_of_eigenvectors_has_its_law_at_every_size(rng: np.random.Generator) -> None:
    values = np.array([3.0, 0.2, 1.0, 0.5, 2.0, 0.05, 1.0])
    sizes = np.tile([2, 0, 5, 3], DRAWS // 4)
    chosen = choose(log_table(np.log(values), 5), sizes, RngCoins(rng))
    for size in (2, 3, 5):
        counts = counted(row[:size] for row in chosen[sizes == size])
        assert chi_square(counts, k_law(np.diag(values), size)) > REFUSED
        assert chi_square(counts, k_law(np.diag(values * np.r_[2.0, np.ones(6)]), size)) < ALARM


@pytest.mark.parametrize("k", [3, 5])
def test_filling_is_uniform_over_the_rest(k: int, rng: np.random.Generator) -> None:
    items = np.tile(np.array([4, -1]), (DRAWS, 1))
    counts = counted(fill(items, N, k, RngCoins(rng)))
    law = np.array([4 in some for some in laws.subsets(N, k)], dtype=float)
    assert chi_square(counts, by_bits(laws.subsets(N, k), law / law.sum())) > REFUSED
