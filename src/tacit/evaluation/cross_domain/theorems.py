"""Theorems 2 to 4 of the technical report in figures: what is drawn, and how far one user moves a similarity."""

from collections.abc import Iterator

import numpy as np

from tacit.evaluation.cross_domain import paper
from tacit.evaluation.cross_domain.known import Known
from tacit.evaluation.cross_domain.splits import Floats
from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes.chance import noise_of
from tacit.evaluation.part import Part
from tacit.evaluation.result import Claim, Row
from tacit.mechanisms.x_map import PublishedSimilarItems, centred, local_sensitivity, similarities
from tacit.models.cross_domain.x_sim import x_sim

RUNS = {Effort.QUICK: 40, Effort.DEFAULT: 300, Effort.FULL: 300}
CANDIDATES, K, RHO = 1000, 50, 0.1
ABOVE, PRESENT = "all drawn at least Sim_k - w", "all above Sim_k + w drawn"
W, CAPPED, MEDIAN, BELOW = (
    "w",
    "w is capped",
    "median printed sensitivity",
    "share of pairs that one user moves further",
)
_PAIRS = 400
_SAME = 1e-9
_PNSA = PublishedSimilarItems(K, 0.8, RHO, least=1e-9)  # no floor: sensitivities here are far below the default one


def drawn(effort: Effort, seed: int) -> Part:
    """Theorems 3 and 4 with one common sensitivity, as their proofs take it; 1000 candidates, k = 50."""
    third = np.concatenate([np.linspace(0.9, 0.5, K), np.linspace(0.45, -0.9, CANDIDATES - K)])
    fourth = np.concatenate([np.linspace(0.9, 0.1, K), np.linspace(0.05, -0.9, CANDIDATES - K)])
    rows: list[Row] = []
    for near, metric, scales in ((third, ABOVE, (1e-5, 1e-4, 1e-3, 1e-2)), (fourth, PRESENT, (1e-5, 1e-3))):
        for scale in scales:
            rows += _rows(near, metric, scale, RUNS[effort], seed)
    return Part(tuple(rows), tuple(_claims(rows)))


def _rows(near: Floats, metric: str, scale: float, runs: int, seed: int) -> Iterator[Row]:
    kth = float(near[K - 1])
    w, setting = _PNSA.w(kth, scale, CANDIDATES), {"sensitivity": scale}
    table = np.tile(near, (runs, 1))
    chosen = _PNSA.release(table, np.full(table.shape, scale), noise_of(seed, "PNSA", metric, scale)).value.items
    if metric == ABOVE:
        kept = near[chosen].min(axis=1) >= kth - w
    else:
        wanted = np.flatnonzero(near > kth + w)
        kept = np.array([np.isin(wanted, one).all() for one in chosen])
    share = float(kept.mean())
    yield Row("PNSA", setting, metric, share, float(np.sqrt(share * (1.0 - share) / runs)), runs)
    yield Row("PNSA", setting, f"{W}, {metric}", w)
    yield Row("PNSA", setting, f"{CAPPED}, {metric}", float(w >= kth))


def _claims(rows: list[Row]) -> Iterator[Claim]:
    for theorem, metric in (("Theorem 3", ABOVE), ("Theorem 4", PRESENT)):
        found = [row for row in rows if row.metric == metric]
        capped = {row.setting["sensitivity"]: row.value > 0.0 for row in rows if row.metric == f"{CAPPED}, {metric}"}
        evidence = "; ".join(
            f"SS {row.setting['sensitivity']:g}: {row.value:.3f}{' (capped)' if capped[row.setting['sensitivity']] else ''}"
            for row in found
        )
        free = [row for row in found if not capped[row.setting["sensitivity"]]]
        told = f"{theorem}: with probability at least 1 - rho = {1.0 - RHO:g}, {metric}"
        yield Claim(paper.NAME, told, all(row.value >= 1.0 - RHO for row in found), evidence)
        yield Claim(paper.OURS, f"{told}: while w is not capped", all(row.value >= 1.0 - RHO for row in free), evidence)


def sensitivities(known: Known, seed: int) -> Part:
    """The printed sensitivity of target similarities, and how often one user moves a similarity further than it says."""
    z, world = centred(known.target), known.held.world
    rng = np.random.default_rng([seed, 71])
    items = rng.permutation(known.held.n_target)[: min(known.held.n_target, 120)]
    found = similarities(z, items)
    there = found.raters > 0
    there[np.arange(items.size), items] = False
    if not there.any():
        return Part()
    rows, columns = np.nonzero(there)
    some = rng.permutation(rows.size)[:_PAIRS]
    printed = np.maximum(found.sensitivity[rows[some], columns[some]], 0.0)
    true = np.array([local_sensitivity(z, int(items[rows[one]]), int(columns[one])) for one in some])
    share = float((true > printed + 1e-12).mean())
    median = float(np.median(found.sensitivity[there]))
    setting = {"world": world}
    return Part(
        (
            Row("printed sensitivity", setting, MEDIAN, median, None, int(there.sum())),
            Row("printed sensitivity", setting, BELOW, share, None, some.size),
        ),
        (
            Claim(
                paper.NAME,
                f"{world}: Theorem 2: the similarity-based sensitivity is the most that one user can change a similarity by",
                share == 0.0,
                f"{share:.1%} of {some.size} pairs of target items change by more when one user leaves; median printed "
                f"{median:.4f}",
            ),
        ),
    )


def two_ways(known: Known) -> Part:
    """X-SIM by listing all paths and by integration."""
    listed, integrated = (x_sim(known.legs, way) for way in ("enumerate", "quadrature"))
    apart = abs(listed.values - integrated.values)
    largest = float(apart.max()) if apart.nnz else 0.0
    same = np.array_equal(listed.values.indices, integrated.values.indices)
    claim = f"{known.held.world}: X-SIM by quadrature is X-SIM by listing paths, to {_SAME:g}"
    told = f"largest difference {largest:.2g} over {listed.values.nnz:,} pairs of items"
    return Part(claims=(Claim(paper.OURS, claim, same and largest <= _SAME, told),))
