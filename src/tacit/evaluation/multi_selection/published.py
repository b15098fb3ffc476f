"""The claims of the paper, put to the test."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from tacit.evaluation.multi_selection import paper
from tacit.evaluation.multi_selection.deciding import (
    BAND_NAME,
    IG_SIG,
    SAT,
    SAT_RU,
    SEVERAL,
    SINGLE,
    Pairs,
    decided,
    pair,
    published,
    share,
    within_band,
)
from tacit.evaluation.multi_selection.losses import D_F, D_I, Case, Losses
from tacit.evaluation.multi_selection.plan import DRAWS, DRAWS_TRIED, Q1_ETA, SIZES
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import Estimate

SMALL, LARGE = 0.01, 0.2
RIVALS = (*SINGLE, "avg", "avg-realuser", SAT, SAT_RU)
_LEFT_OVER = 0.1  # saturated: what more draws still gain is less than this share of what was gained before


def claims(found: Losses, etas: tuple[float, ...], rows: Iterable[Row]) -> Iterator[Claim]:
    """All that can be decided with these etas; ``rows`` may hold the share of clusters within 0.2."""
    band = within_band(etas)
    for measure in (D_I, D_F):
        yield _falling(found, measure, etas)
    for measure in (D_I, D_F):
        yield from _rising(found, measure, band)
    for measure in (D_I, D_F):
        statement = f"sat-realuser has the lowest {measure} of the published algorithms that use the signal {BAND_NAME}"
        yield decided(paper.NAME, statement, _against_rivals(found, measure, SAT_RU, band), found)
    if SMALL in etas:
        yield decided(
            paper.NAME, f"sat has the lowest d_i at eta={SMALL:g}", _against_rivals(found, D_I, SAT, (SMALL,)), found
        )
    for measure in (D_I, D_F):
        for eta in band:
            pairs = {
                f"k={k}": pair(found, published(measure, SAT_RU, eta, k), published(measure, IG_SIG, None, k))
                for k in SEVERAL
            }
            yield decided(
                paper.NAME,
                f"sat-realuser has a lower {measure} than ig-sig at eta={eta:g}",
                {"k=" + ", ".join(map(str, SEVERAL)): pairs},
                found,
            )
    yield from _more_draws(found)
    yield from _saturation(found)
    if LARGE in etas:
        yield _kept(found, LARGE)
    yield from _neighbourhood(rows)


def _falling(found: Losses, measure: str, etas: tuple[float, ...]) -> Claim:
    parts = {
        f"{before} to {k}": {
            f"eta={eta:g}": pair(found, published(measure, SAT_RU, eta, k), published(measure, SAT_RU, eta, before))
            for eta in etas
        }
        for before, k in pairwise(SIZES)
    }
    return decided(paper.NAME, f"{measure} of sat-realuser falls with k", parts, found)


def _rising(found: Losses, measure: str, band: tuple[float, ...]) -> Iterator[Claim]:
    parts = {
        f"{low:g} to {high:g}": {
            f"k={k}": pair(found, published(measure, SAT_RU, low, k), published(measure, SAT_RU, high, k))
            for k in SEVERAL
        }
        for low, high in pairwise(band)
    }
    if parts:
        yield decided(paper.NAME, f"{measure} of sat-realuser rises with eta {BAND_NAME}", parts, found)


def _against_rivals(found: Losses, measure: str, method: str, etas: tuple[float, ...]) -> dict[str, Pairs]:
    """Slates of one size; in d_f the methods without a posterior have no local model and stand with their one answer."""

    def rival_k(rival: str, k: int) -> int:
        return 1 if measure == D_F and rival in SINGLE else k

    return {
        f"against {rival}": {
            f"eta={eta:g} k={k}": pair(
                found, published(measure, method, eta, k), published(measure, rival, eta, rival_k(rival, k))
            )
            for eta in etas
            for k in SEVERAL
        }
        for rival in RIVALS
        if rival != method
    }


def _more_draws(found: Losses) -> Iterator[Claim]:
    """Up to 25: beyond, the paper itself sees no more."""
    tried = [draws for draws in DRAWS_TRIED if draws <= DRAWS]
    cases = [Case(D_I, SAT_RU, Q1_ETA, k, draws=draws) for k in SEVERAL for draws in tried]
    if not all(case in found for case in cases):
        return
    parts = {
        f"{few} to {many}": {
            f"k={k}": pair(found, Case(D_I, SAT_RU, Q1_ETA, k, draws=many), Case(D_I, SAT_RU, Q1_ETA, k, draws=few))
            for k in SEVERAL
        }
        for few, many in pairwise(tried)
    }
    yield decided(
        paper.NAME, f"d_i of sat-realuser falls with the draws (q1) up to {DRAWS} at eta={Q1_ETA:g}", parts, found
    )


def _saturation(found: Losses) -> Iterator[Claim]:
    """From 25 draws on hardly anything is gained: less than a tenth of what 25 gain over 1, even 2 errors further."""
    first, enough, last = DRAWS_TRIED[0], DRAWS, DRAWS_TRIED[-1]
    told, holds = [], True
    for k in SEVERAL:
        one, middle, many = (Case(D_I, SAT_RU, Q1_ETA, k, draws=draws) for draws in (first, enough, last))
        if not (one in found and middle in found and many in found):
            return
        gained, left = found.gap(one, middle), found.gap(middle, many)
        holds &= gained.above(0.0) and left.below(_LEFT_OVER * gained.value)
        told.append(f"k={k}: {first} to {enough} draws gain {gained}, {enough} to {last} gain {left}")
    statement = f"more than {enough} draws (q1) gain hardly anything at eta={Q1_ETA:g}, k <= {SEVERAL[-1]}"
    yield Claim(paper.NAME, statement, holds, "; ".join(told))


def _kept(found: Losses, eta: float) -> Claim:
    several, alone = published(D_F, SAT_RU, eta, 5), Case(D_I, "nopost", eta, 1)
    kept, apart = found.kept(several), found.gap(several, alone)
    return Claim(
        paper.NAME,
        f"at eta={eta:g} multi-selection keeps {paper.KEPT:.0%} of the best utility, more than a single answer does",
        not kept.below(paper.KEPT) and apart.below(0.0),
        f"sat-realuser k=5 with pca keeps {share(kept)} (paper: about {paper.KEPT:.0%}), nopost {share(found.kept(alone))} "
        f"(paper: about {paper.KEPT_ALONE:.0%}), ig-sig k=5 with pca {share(found.kept(published(D_F, IG_SIG, None, 5)))}; "
        f"difference {apart}",
    )


def _neighbourhood(rows: Iterable[Row]) -> Iterator[Claim]:
    for row in rows:
        if row.metric == "clusters within" and not row.is_papers and row.setting["size"] == 5:
            expected = paper.CLUSTERS_WITHIN[5]
            found = Estimate(row.value, row.stderr or 0.0, row.n)
            yield Claim(
                paper.NAME,
                f"{expected:.0%} of clusters of 5 users lie within a distance of {paper.CLUSTER_RADIUS:g}",
                not found.below(expected),
                f"{share(found)} of {row.n:,} clusters do",
            )
