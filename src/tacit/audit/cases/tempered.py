"""Tempered slates: every small table of votes, long leads, hostile votes; the public range at its ends."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from tacit.audit import check, domains, slate_forms
from tacit.audit.cases import Case, Draws, FromOutside, Twin, slate_draws
from tacit.audit.cases.slate_tables import BOTH, Check, Remembered, pairs_of
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins import tempered as broken
from tacit.audit.twins.mislabelled import Mislabelled
from tacit.guarantees import Relation
from tacit.mechanisms import TemperedSlate
from tacit.mechanisms.noise import Noise

_NAME = TemperedSlate.name
_ITEMS = 3
_UNRELATED = np.eye(_ITEMS)
_RELATED = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [2.0, 0.0, -1.0]])  # 4 items, 3 features
_LEAD = 36  # votes: e^-36 of slack is left
_VOTES = (-3.0, 0.99, 7.0, math.nan)


def cases() -> list[Case]:
    one, two = (Remembered(TemperedSlate(_UNRELATED, k, 1.0, high=3.0)) for k in (1, 2))
    return [
        *(Case(_NAME, By.EXACT, _votes(mechanism, users=3)) for mechanism in (one, two)),
        Case(_NAME, By.EXACT, _votes(TemperedSlate(_UNRELATED, 2, 1.0, high=3.0, relation=Relation.REPLACE))),
        Case(
            _NAME, By.EXACT, _votes(TemperedSlate(_UNRELATED, 2, 1.0, low=1.0, high=2.0))
        ),  # where it is cut at both ends
        *(Case(_NAME, By.EXACT, _votes(one, measure, users=3)) for measure in (Measure.RANGE, Measure.RHO)),
        *(Case(_NAME, By.EXACT, _lead(k, each, relation)) for k, each, relation in product((1, 2), (None, 1), BOTH)),
        *(Case(_NAME, By.EXACT, _hostile(relation)) for relation in BOTH),
        Case(_NAME, By.DISTRIBUTION, _draws),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    real = TemperedSlate(_UNRELATED, 1, 1.0, high=3.0)
    pair = TemperedSlate(_UNRELATED, 2, 1.0, high=40.0)
    replaced = TemperedSlate(_UNRELATED, 1, 1.0, high=40.0, relation=Relation.REPLACE)
    as_added = Mislabelled("replaced-as-if-added", replace(replaced, relation=Relation.ADD_REMOVE), replaced.guarantee)
    votes = np.repeat([[1.0, 0.0, 0.0]], 30, axis=0)
    return [
        Twin(
            "replaced-as-if-added",
            _NAME,
            "the weight of a vote for users added, where they are replaced",
            lambda noise, draws: check.exactly(
                as_added, [votes, np.vstack([votes[1:], [[0.0, 1.0, 0.0]]])], case="a lead of 30 votes, one replaced"
            ),
        ),
        Twin(
            "range-from-the-votes",
            _NAME,
            "the highest total seen taken for the end of the range, and the weight of a vote set by it",
            _votes(broken.RangeFromVotes(real)),
        ),
        Twin(
            "votes-each-from-the-votes",
            _NAME,
            "the most items that anybody voted for taken for the most that anybody may",
            lambda noise, draws: check.exactly(
                broken.VotesEachFromVotes(pair),
                [votes, np.vstack([votes, [[0.0, 1.0, 1.0]]])],
                case="a second item voted for",
            ),
        ),
        Twin("votes-not-cut", _NAME, "votes are taken as they are", _hostile_over(broken.VotesNotCut(real), 3)),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(TemperedSlate(_UNRELATED, 1, 1.0, high=1.0, relation=Relation.REPLACE), _empirical)]


def _votes(mechanism: Any, measure: Measure = Measure.EPSILON, *, users: int = 2) -> Check:
    """Every table of 0/1 votes for three unrelated items."""

    def run(noise: Noise, draws: Draws) -> Finding:
        real = getattr(mechanism, "real", mechanism)
        tables = domains.vote_tables(users, _ITEMS)
        pairs = pairs_of(tables, real.relation)
        return check.exactly(
            mechanism,
            tables,
            pairs,
            measure=measure,
            case=f"{real.k} of {_ITEMS} items in [{real.low:g}, {real.high:g}], votes of {users} users, one {real.relation}",
            reference=_reference(real, tables, pairs, measure),
            note="attained as a lead grows" if measure is Measure.EPSILON else "attained as epsilon falls to 0",
        )

    return run


def _reference(real: TemperedSlate, tables: list[domains.Table], pairs: Any, measure: Measure) -> float | None:
    totals = [np.clip(table.sum(axis=0), real.low, real.high) for table in tables]
    theta = real.epsilon / real.k / (1 if real.relation is Relation.ADD_REMOVE else 2)
    different = {(tuple(totals[one].tolist()), tuple(totals[other].tolist())) for one, other in pairs.tolist()}
    if measure is Measure.EPSILON:
        return slate_forms.tempered(_ITEMS, real.k, sorted(different), theta)
    if measure is Measure.RHO:  # one item: the items that gained a vote, against those that did not
        return slate_forms.two_point_rho(slate_forms.tempered_chances(sorted(different), theta), theta)
    return None


def _lead(k: int, each: int | None, relation: Relation) -> Check:
    """Four related items, two of them far ahead; a user votes for the others, or moves her votes to them."""

    def run(noise: Noise, draws: Draws) -> Finding:
        most = k if each is None else 1
        mechanism = TemperedSlate(
            _RELATED,
            k,
            most * (1.0 if relation is Relation.ADD_REMOVE else 2.0),
            high=40.0,
            items_each=each,
            relation=relation,
        )
        ahead, behind = np.array([[1.0, 1.0, 0.0, 0.0]]), np.array([[0.0, 0.0, 1.0, 1.0]])
        if most < 2:  # one vote each: all for one item, or for another
            ahead, behind = np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([[0.0, 0.0, 1.0, 0.0]])
        crowd = np.repeat(ahead, _LEAD, axis=0)
        first = crowd if relation is Relation.ADD_REMOVE else np.vstack([crowd, ahead])
        limit = "" if each is None else f", {each} vote each"
        if k == 2 and each == 1:  # two must be ahead for two to be shown: half of the crowd votes for each
            second = np.array([[0.0, 1.0, 0.0, 0.0]])
            crowd = np.vstack([crowd, np.repeat(second, _LEAD, axis=0)])
            first = crowd if relation is Relation.ADD_REMOVE else np.vstack([crowd, ahead])
        return check.exactly(
            mechanism,
            [first, np.vstack([crowd, behind])],
            case=f"{k} of 4 related items, a lead of {_LEAD}{limit}, one {relation}",
        )

    return run


def _hostile(relation: Relation) -> Check:
    moves = 1 if relation is Relation.ADD_REMOVE else 2
    return _hostile_over(TemperedSlate(np.eye(2), 1, 1.0 * moves, high=2.0, relation=relation), 2)


def _hostile_over(mechanism: Any, items: int) -> Check:
    """Votes below 0, above 1, infinite or not numbers: two users, of whom one is added, or one is replaced."""

    def run(noise: Noise, draws: Draws) -> Finding:
        real = getattr(mechanism, "real", mechanism)
        tables = domains.tables(list(product(_VOTES, repeat=items)), 2 if items == 2 else 1)  # users
        pairs = pairs_of(tables, real.relation)
        theta = real.theta
        cut = [np.where(np.isfinite(table), np.floor(np.clip(table, 0.0, 1.0)), 0.0).sum(axis=0) for table in tables]
        different = {(tuple(cut[one].tolist()), tuple(cut[other].tolist())) for one, other in pairs.tolist()}
        return check.exactly(
            mechanism,
            tables,
            pairs,
            case=f"1 of {items} items, hostile votes, one {real.relation}",
            reference=slate_forms.tempered(items, 1, sorted(different), theta),
            note="attained as a lead grows",
        )

    return run


def _draws(noise: Noise, draws: Draws) -> Finding:
    """Items with more votes have shorter features, so that all slates compete: how votes weigh then shows."""
    votes = np.array([[1.0, 1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0, 0.0]])
    directions = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [2.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
    mechanism = TemperedSlate(directions * np.exp(-votes.sum(axis=0))[:, None], 2, 4.0, high=3.0)
    return slate_draws.fits(mechanism, votes, noise, draws.slates, case="2 of 5 related items")


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    tables = (np.array([[1.0, 1.0, 0.0]]), np.array([[0.0, 0.0, 1.0]]))
    return slate_draws.from_outside(mechanism, tables, noise, draws.single, case="1 of 3 items, one user replaced")
