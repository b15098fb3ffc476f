"""Our own claims, put to the same test."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from tacit.evaluation.multi_selection.deciding import (
    EXACT,
    SAT,
    SAT_RU,
    SEVERAL,
    SINGLE,
    decided,
    pair,
    published,
    share,
    within_band,
)
from tacit.evaluation.multi_selection.losses import D_F, D_I, Case, Losses
from tacit.evaluation.multi_selection.plan import SIZES
from tacit.evaluation.result import Claim

OURS = "tacit"
ORDERED_AT = (0.05, 0.1, 0.2)
PROMISED = 0.35  # by what share exact with ridge is to lower d_f
PROMISED_AT = (0.1, 0.2)


def claims(found: Losses, etas: tuple[float, ...]) -> Iterator[Claim]:
    parts = {
        f"k={k}": {
            f"eta={eta:g}": pair(found, Case(D_I, EXACT, eta, k), Case(D_I, SAT_RU, eta, k))
            for eta in within_band(etas)
        }
        for k in SEVERAL
    }
    yield decided(OURS, "exact has a lower d_i than sat-realuser", parts, found)
    for eta in PROMISED_AT:
        if eta in etas:
            yield _saved(found, eta)
    yield ordering(found, etas)
    gaps = [found.gap(case, case._replace(measure=D_I, local_model="")).value for case in found.cases(D_F)]
    yield Claim(
        OURS, "d_f is never below d_i", min(gaps) >= 0.0, f"the least of {len(gaps)} differences is {min(gaps):.4f}"
    )


def ordering(found: Losses, etas: Iterable[float], what: str = "") -> Claim:
    """nopost > nopost-realuser > sat-realuser k = 1 > 2 > 3 > 5, and sat > sat-realuser: what any sound model must show."""
    at = [eta for eta in etas if eta in ORDERED_AT]
    chain = [*((method, 1) for method in SINGLE), *((SAT_RU, k) for k in SIZES)]
    parts = {
        f"{worse} k={many} > {better} k={few}": {
            f"eta={eta:g}": pair(found, Case(D_I, better, eta, few), Case(D_I, worse, eta, many)) for eta in at
        }
        for (worse, many), (better, few) in pairwise(chain)
    }
    parts |= {
        f"{SAT} > {SAT_RU} k={k}": {
            f"eta={eta:g}": pair(found, Case(D_I, SAT_RU, eta, k), Case(D_I, SAT, eta, k)) for eta in at
        }
        for k in SEVERAL
    }
    return decided(
        OURS, f"d_i falls from nopost to nopost-realuser to sat-realuser k=1, 2, 3, 5, and from sat to sat-realuser{what}",
        parts, found,
    )  # fmt: skip


def _saved(found: Losses, eta: float) -> Claim:
    """The reduction itself must reach what is promised, and the difference must be shown."""
    here, there = Case(D_F, EXACT, eta, 5, "ridge"), published(D_F, SAT_RU, eta, 5)
    saved, apart = found.saved(here, there), found.gap(here, there)
    return Claim(
        OURS,
        f"exact with ridge has a d_f at least {PROMISED:.0%} lower than sat-realuser with pca at k=5, eta={eta:g}",
        saved.value >= PROMISED and apart.below(0.0),
        f"from {found.mean(there).value:.4f} to {found.mean(here).value:.4f}: lower by {share(saved)}; difference {apart}",
    )
