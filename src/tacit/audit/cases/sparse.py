"""Sparse vector: every vector of scores in a small box, every small table of votes, every transcript."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, closed_forms, distribution, domains, empirical, exact
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding
from tacit.audit.twins.sparse import NeverStops, NoThresholdNoise, NotScaledByHits
from tacit.guarantees import Relation
from tacit.mechanisms import ProfileScores, SparseVector, VoteTotals
from tacit.mechanisms.noise import Noise

_NAME = SparseVector.name
_PROFILES = ProfileScores(0.0, 1.0, steps=1)
_USERS = 3
_WHY = "attained as the queries grow: at 100 queries to 1e-9"


def cases() -> list[Case]:
    return [
        Case(_NAME, By.EXACT, lambda noise, draws: _profiles(8, 1)),
        Case(_NAME, By.EXACT, lambda noise, draws: _profiles(6, 2)),
        Case(_NAME, By.EXACT, lambda noise, draws: _votes(Relation.ADD_REMOVE)),
        Case(_NAME, By.EXACT, lambda noise, draws: _votes(Relation.REPLACE)),
        Case(_NAME, By.DISTRIBUTION, _sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    inputs = domains.score_box(6, steps=1)
    exactly = [
        Twin(
            mechanism.name,
            _NAME,
            fault,
            lambda noise, draws, mechanism=mechanism: check.exactly(mechanism, inputs, case="profiles, 6 queries"),  # type: ignore[misc]
        )
        for mechanism, fault in (
            (NoThresholdNoise(_PROFILES, 1, 1.0, 1), "no noise on the threshold"),
            (NotScaledByHits(_PROFILES, 1, 1.0, 3), "three hits with the noise of one"),
            (NeverStops(_PROFILES, 1, 1.0, 1), "answers on after the last hit that was paid for"),
        )
    ]
    return exactly + [look.twin() for look in from_outside()]


def from_outside() -> list[FromOutside]:
    return [FromOutside(SparseVector(_PROFILES, 1, 2.0, 1), _empirical)]


def _profiles(queries: int, hits: int) -> Finding:
    mechanism = SparseVector(_PROFILES, 1, 1.0, hits)
    return check.exactly(
        mechanism,
        domains.score_box(queries, steps=1),
        case=f"profiles, {queries} queries, hits: {hits}",
        reference=closed_forms.sparse_vector(queries, hits, 1, mechanism.scales, [((0, 1), (1, 0))]),
        note=_WHY,
    )


def _votes(relation: Relation) -> Finding:
    mechanism = SparseVector(VoteTotals(relation=relation), 2, 1.0, 1)
    tables = domains.vote_tables(_USERS, 3)
    others = range(_USERS)  # the votes of all but the one user who is added, or replaced
    if relation is Relation.ADD_REMOVE:
        pairs = domains.added_or_removed(tables)
        corners = [((missed, hit), (missed + 1, hit)) for missed in others for hit in others]
        corners += [((missed, hit), (missed, hit + 1)) for missed in others for hit in others]
    else:  # her vote may leave one score for another
        pairs = domains.replaced(tables)
        corners = [((missed, hit + 1), (missed + 1, hit)) for missed in others for hit in others]
    return check.exactly(
        mechanism,
        tables,
        pairs,
        case=f"votes of {_USERS} users, one {relation}",
        reference=closed_forms.sparse_vector(3, 1, mechanism.threshold, mechanism.scales, corners),
        note=_WHY,
    )


def _sampler(noise: Noise, draws: Draws) -> Finding:
    scores = ProfileScores(0.0, 1.0, steps=4)
    mechanism = SparseVector(scores, 3, 20.0, 2)
    raw = np.array([0.0, 0.0, 0.0, 1.0, 1.0])
    outcomes = mechanism.outcomes(raw.size)
    place = {outcome: index for index, outcome in enumerate(outcomes)}
    drawn = np.array([place[mechanism.release(raw, noise).value] for _ in range(draws.transcripts)])
    counts = distribution.counts_of(drawn, len(outcomes))
    return check.sampled(
        mechanism,
        distribution.p_value(counts, mechanism.pmf(raw)),
        distribution.p_value(counts, distribution.off_by(mechanism).pmf(raw)),
        loss=exact.worst_loss(np.stack([mechanism.pmf(row) for row in domains.score_box(raw.size, steps=1)])),
        draws=draws.transcripts,
        case=f"profiles, {raw.size} queries, hits: 2",
    )


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    def drawn(raw: list[float]) -> NDArray[np.int64]:
        return np.array([_label(mechanism.release(raw, noise).value) for _ in range(draws.single)])

    bound = empirical.lower_bound_by_label(drawn([0.0, 0.0, 1.0]), drawn([1.0, 1.0, 0.0]))
    return check.from_below(mechanism, bound, case="profiles, 3 queries")


def _label(answers: tuple[bool, ...]) -> int:
    """The answers as binary digits after a leading 1, so that transcripts of all lengths differ."""
    label = 1
    for answer in answers:
        label = 2 * label + answer
    return label
