"""Cross-domain: similarities against scikit-learn, paths between items, noisy moments; then sizes and Spark.

CPU seconds, all on one thread and in turns. Ratings: MovieLens
100K and 1M where TACIT_DATA holds them; otherwise their rows are left out, and the notes of the made-up ones say so.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import cosine_similarity

from benchmarks import cross_domain_sizes
from benchmarks.timing import Row
from tacit.data import load
from tacit.errors import TacitError
from tacit.mechanisms import PairMoments, RatingBounds
from tacit.models.cross_domain.edges import centred
from tacit.models.cross_domain.similarities import Leg, Legs, edges_of, layers, pruned, streamed
from tacit.models.cross_domain.x_sim import x_sim

_KEPT = 10
_SKLEARN = {"ml-100k": 1 / 4, "ml-1m": 1 / 3}
_DENSE, _MOMENTS = 1 / 2.5, 1 / 3
_HEAD = 1_058


def run() -> list[Row]:
    found: list[Row] = []
    for name in _SKLEARN:
        try:
            ratings = sparse.csr_array(load(name).compact().csr(), dtype=np.float64)
        except TacitError:
            continue
        found += _similarities(name, ratings)
        found += _paths(name, *_halves(ratings))
        found += _moments(name, ratings)
    return [*found, *(_quadrature(kept) for kept in (5, 8)), *cross_domain_sizes.run()]


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def turns(
    name: str,
    peer: str,
    ours: Callable[[], float],
    theirs: Callable[[], float],
    *,
    target: float | None,
    note: str,
    rounds: int = 5,
) -> Row:
    """Both give their own seconds; the first turn of each is not counted."""
    ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    mine, other = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratios = sorted(b / a for a, b in pairs)
    spread = f"ratio of CPU times, higher is better, rounds {ratios[0]:.3g} to {ratios[-1]:.3g}"
    return Row(
        name=name, peer=peer, ours=mine, theirs=other, ratio=other / mine, target=target, note=f"{note}; {spread}"
    )


def _similarities(name: str, ratings: sparse.csr_array) -> list[Row]:
    table = centred(ratings)
    rows = table.table(table.values)
    columns = rows.T.tocsr()
    peer, theirs = "scikit-learn cosine_similarity", lambda: cpu(lambda: cosine_similarity(columns, dense_output=False))
    _same(ratings, columns)

    note = (
        f"{ratings.nnz:,} ratings; ours centres the ratings and gives s, S and its share, the peer one cosine of rows that are "
        "centred already"
    )
    kinds: list[tuple[str, str, float | None]] = [
        ("compiled", "all edges", _SKLEARN[name]), ("dense", "all edges", _DENSE), ("plain", "all edges", None),
    ]  # fmt: skip
    found = []
    for way, what, target in kinds:
        work = lambda way=way: cpu(lambda: edges_of(ratings, method=way))  # noqa: E731
        found.append(turns(f"{name}, {what}, {way}", peer, work, theirs, target=target, note=note, rounds=3))
    return found


def _same(ratings: sparse.csr_array, columns: Any) -> None:
    """The cosines compared are the same numbers, or the times mean nothing."""
    edges = edges_of(ratings, shrink=0)
    theirs = sparse.csr_array(cosine_similarity(columns, dense_output=False))
    if not np.allclose(edges.cosine, theirs[edges.rows, edges.items], rtol=0.0, atol=1e-12):
        raise RuntimeError("the peer's cosines are not ours.")


def _halves(ratings: sparse.csr_array) -> tuple[sparse.csr_array, int]:
    """Items of even codes as the source, of odd ones as the target."""
    n = ratings.shape[1]
    order = np.argsort(np.arange(n) % 2, kind="stable")
    rows = sparse.csr_array(ratings[:, order])
    rows.sort_indices()
    return rows, (n + 1) // 2


def _paths(name: str, ratings: sparse.csr_array, n_source: int) -> list[Row]:
    edges = edges_of(ratings)

    def extended() -> object:
        return x_sim(pruned(edges, layers(edges, n_source), n_source, _KEPT))

    def at_once() -> object:
        return x_sim(streamed(ratings, n_source, _KEPT)[1])

    note = f"items of even and of odd codes as two domains, {_KEPT} edges kept"
    return [
        turns(f"{name}, layers, pruning and X-SIM", "our similarities", lambda: cpu(extended),
              lambda: cpu(lambda: edges_of(ratings)), target=1.0, note=note, rounds=3),
        turns(f"{name}, streamed and X-SIM", "the same by all edges", lambda: cpu(at_once),
              lambda: cpu(lambda: (edges_of(ratings), extended())), target=None, note=note, rounds=3),
    ]  # fmt: skip


def _quadrature(kept: int) -> Row:
    """Legs of 200 far, 200 near and 100 bridge items on each side, drawn at random: the paths are many and the items few."""
    rng = np.random.default_rng(4)

    def leg(outer: int, count: int, inner: int) -> Leg:
        second = np.concatenate([np.sort(rng.permutation(100)[:kept]) for _ in range(count)]) + inner
        cosine, share = rng.uniform(-1.0, 1.0, second.size), rng.uniform(0.01, 0.5, second.size)
        first = np.repeat(np.arange(outer, outer + count), kept)
        return Leg(first.astype(np.int32), second.astype(np.int32), cosine, rng.integers(1, 20, second.size), share)

    legs = Legs(
        1_000, 500, leg(300, 200, 100), leg(100, 200, 0), leg(0, 100, 500), leg(600, 200, 500), leg(800, 200, 600)
    )
    listed, integrated = x_sim(legs, "enumerate"), x_sim(legs, "quadrature")
    apart = float(np.abs(listed.values - integrated.values).max())
    chains = 100 + 200 * kept + 200 * kept**2
    return turns(f"X-SIM by quadrature, {chains * kept * chains // 100:,} paths", "by listing the paths",
                 lambda: cpu(lambda: x_sim(legs, "quadrature")), lambda: cpu(lambda: x_sim(legs, "enumerate")), target=None,
                 rounds=3, note=f"made-up legs of 1,000 items, {kept} edges kept; largest difference {apart:.1g}")  # fmt: skip


def _moments(name: str, ratings: sparse.csr_array) -> list[Row]:
    """The release in whole numbers with its noise, against the one product in floats without which there are no moments."""
    raters = np.diff(ratings.tocsc().indptr)
    head = np.sort(np.argsort(-raters, kind="stable")[:_HEAD])
    mechanism = PairMoments(ratings.shape[1], tuple(head.tolist()), RatingBounds(1.0, 5.0), 0.448, 1e-6)
    table = centred(ratings)
    full = table.table(table.values)[:, head].toarray()
    note = f"{ratings.shape[0]:,} users; exact noise on {head.size * (head.size - 1) // 2:,} numbers"

    def product(rows: Any) -> Callable[[], float]:
        return lambda: cpu(lambda: rows.T @ rows)

    return [
        turns(f"{name}, pair moments of {head.size} items", f"Z^T Z by numpy, {kind.__name__}",
              lambda: cpu(lambda: mechanism.release(ratings)), product(full.astype(kind)),
              target=target, rounds=3, note=note)
        for kind, target in ((np.float32, _MOMENTS), (np.float64, None))
    ]  # fmt: skip
