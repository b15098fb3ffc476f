"""Natural slates: the worst kernels that a search finds, every small table of records, hostile records, public rules."""

import math
from typing import Any

import numpy as np

from tacit.audit import check, domains, slate_forms
from tacit.audit.cases import Case, Draws, FromOutside, Twin, slate_draws
from tacit.audit.cases.slate_searches import ROOMS, slates_by_search
from tacit.audit.cases.slate_tables import BOTH, HOSTILE, Check, Remembered, over, pairs_of
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins import slates as broken
from tacit.guarantees import Relation
from tacit.mechanisms import NaturalSlate
from tacit.mechanisms.noise import Noise

_NAME = NaturalSlate.name
_ONE = math.log(2.0)  # the epsilon at which the jitter is the bound
_CROWD = 4_000
SMALL_RECORDS = np.array([[0.8, 0.6, 0, 0, 0, 0], [0, 0, 0.25, 0, 0, 0], [0, 0, 0, 0, 0.25, 0]])


def cases() -> list[Case]:
    two, of_two = (Remembered(NaturalSlate(4, 2, _ONE, relation=relation)) for relation in BOTH)
    return [
        *(Case(_NAME, By.EXACT, slates_by_search(relation, x)) for relation in BOTH for x in ROOMS),
        Case(_NAME, By.EXACT, slates_by_search(Relation.ADD_REMOVE, 1.0, Measure.RANGE)),
        Case(_NAME, By.EXACT, _records(NaturalSlate(3, 1, _ONE), users=3)),
        *(Case(_NAME, By.EXACT, _records(NaturalSlate(3, k, 2.0))) for k in (1, 2)),
        *(Case(_NAME, By.EXACT, _records(two, measure)) for measure in (Measure.EPSILON, Measure.RANGE, Measure.RHO)),
        *(Case(_NAME, By.EXACT, _records(of_two, measure)) for measure in (Measure.EPSILON, Measure.RANGE)),
        Case(_NAME, By.EXACT, _hostile(NaturalSlate(3, 1, 1.0), Measure.RANGE)),
        Case(_NAME, By.EXACT, _hostile(NaturalSlate(3, 2, 1.0, relation=Relation.REPLACE))),
        Case(_NAME, By.EXACT, _hostile(NaturalSlate(3, 3, 1.0))),
        *(Case(_NAME, By.EXACT, _redrawn(NaturalSlate(4, 2, 1.0, relation=one, redrawn=True))) for one in BOTH),
        *(Case(_NAME, By.DISTRIBUTION, _draws(sampler)) for sampler in ("exact", "split", "dense")),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    real = NaturalSlate(3, 1, _ONE)
    found = {
        "frobenius-bound-for-k": (
            "k log(1 + D/(sigma sqrt k)) for a change of Frobenius norm D: k = 1 item gains while all others lose",
            _on(broken.over_claimed("frobenius-bound-for-k", 5.0), *broken.FROBENIUS),
        ),
        "spectral-bound-for-k": (
            "k log(1 + D/sigma) for a change of spectral norm D: the same",
            _on(broken.over_claimed("spectral-bound-for-k", 5.0), *broken.SPECTRAL),
        ),
        "jitter-from-the-records": (
            "sigma set by the largest record, which is not cut",
            _on(broken.JitterFromRecords(real), *broken.LARGEST),
        ),
        "cut-to-rank-one": (
            "the sum of the records cut to its largest eigenvector",
            _on(broken.CutToRankOne(real), *broken.RANKS),
        ),
        "normalised-counts": (
            "co-counts divided by the roots of the items' counts",
            _on(broken.NormalisedCounts(NaturalSlate(7, 2, 3.0)), *broken.FIVE_LIKES),
        ),
        "without-jitter": ("no sigma: one user makes slates possible", _records(broken.WithoutJitter(real))),
        "signal-count-released": (
            "tells how many items of the slate the records chose",
            _records(broken.SignalReleased(real)),
        ),
        "signal-items-released": ("tells which", _records(broken.SignalReleased(real, items_too=True))),
        "not-cut": ("records are taken as they are", _hostile(broken.NotCut(NaturalSlate(3, 1, 1.0)), Measure.RANGE)),
        "redrawn-for-nothing": (
            "slates drawn again until a public rule likes them, at the price of one, where users are replaced",
            _redrawn(NaturalSlate(4, 2, 1.0, relation=Relation.REPLACE)),
        ),
    }
    return [
        *(Twin(name, _NAME, fault, run) for name, (fault, run) in found.items()),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(NaturalSlate(4, 2, 1.0, relation=Relation.REPLACE), _empirical)]


def _records(mechanism: Any, measure: Measure = Measure.EPSILON, *, users: int = 2) -> Check:
    """Every table of 0/1 records; from the mechanism's own law."""

    def run(noise: Noise, draws: Draws) -> Finding:
        real = getattr(mechanism, "real", mechanism)
        tables = domains.vote_tables(users, real.items)
        reference, x = None, real.bound / real.sigma
        if real.relation is Relation.ADD_REMOVE and measure is not Measure.RANGE:
            formula = slate_forms.natural_added if measure is Measure.EPSILON else slate_forms.natural_rho
            reference = formula(real.items, real.k, users - 1, x)
        return check.exactly(
            mechanism,
            tables,
            pairs_of(tables, real.relation),
            measure=measure,
            case=f"{real.k} of {real.items} items, records of {users} users, one {real.relation}",
            reference=reference,
            note="attained as " + ("more have the others" if measure is Measure.EPSILON else "epsilon falls to 0"),
        )

    return run


def _hostile(mechanism: Any, measure: Measure = Measure.EPSILON) -> Check:
    """Records that are huge, tiny, negative, infinite or not numbers."""
    real = getattr(mechanism, "real", mechanism)
    return over(mechanism, HOSTILE, f"{real.k} of {real.items} items, hostile records", measure)


def _on(mechanism: Any, *tables: Any) -> Check:
    return lambda noise, draws: check.exactly(mechanism, tables, case="the counterexample")


def _redrawn(mechanism: NaturalSlate) -> Check:
    """Only {0, 1} and {2, 3} pass; very many users like item 3. One who likes item 2 comes to like item 0, or is added."""

    def run(noise: Noise, draws: Draws) -> Finding:
        x, likes = mechanism.bound / mechanism.sigma, np.eye(4)
        many = np.repeat(likes[3:], _CROWD, axis=0)
        tables = [many, *(np.vstack([many, likes[item : item + 1]]) for item in range(4))]
        heavy = 1.0 + _CROWD * x  # the weight of item 3 in units of the jitter
        if mechanism.relation is Relation.ADD_REMOVE:
            pairs = [[0, place] for place in range(1, 5)]
            reference = math.log((1.0 + (1.0 + x) * heavy) / (1.0 + heavy))  # item 2 is added, and {0, 1} is shown
        else:
            pairs = [[one, other] for one in range(1, 5) for other in range(one + 1, 5)]
            reference = math.log((1.0 + x) * (1.0 + (1.0 + x) * heavy) / (1.0 + x + heavy))
        return check.exactly(
            broken.Redrawn(mechanism, ((0, 1), (2, 3))),
            tables,
            pairs,
            case=f"2 of 4 items by a public rule, one {mechanism.relation}",
            reference=reference,
            note="attained as more have the other item",
        )

    return run


def _draws(sampler: Any) -> Check:
    """Three users, two of them with small records: how often their items are shown depends on the jitter."""

    def run(noise: Noise, draws: Draws) -> Finding:
        mechanism = NaturalSlate(6, 3, 3.7, sampler=sampler)
        return slate_draws.fits(mechanism, SMALL_RECORDS, noise, draws.slates, case=f"3 of 6 items, {sampler} sampler")

    return run


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """Two users stay, and one who has item 0 comes to have item 1."""
    likes = np.eye(4)
    tables = (likes[[2, 3, 0]], likes[[2, 3, 1]])
    return slate_draws.from_outside(
        mechanism, tables, noise, draws.batched // 5, case="2 of 4 items, one user replaced"
    )
