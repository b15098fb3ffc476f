"""Selection: every vector of scores in a small box, every small table of votes; exponential, permute-and-flip, noisy max, top-k."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, closed_forms, distribution, domains, empirical, exact
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.closed_forms import Leads
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.mislabelled import Mislabelled
from tacit.guarantees import Relation
from tacit.mechanisms import (
    ExponentialMechanism,
    GumbelTopK,
    LaplaceNoisyMax,
    PermuteAndFlip,
    ProfileScores,
    VoteTotals,
)
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.scores import ScoreSource

_STEPS = 2
_USERS = 3
_VOTED = 3  # candidates in tables of votes
_DRAWN = 6  # candidates where a release is seen from outside: with few the loss is far below the claim
_FRACTIONS = (0.0, 0.4, 0.5, 1.0)  # votes in halves; what lies between is rounded down
_PICKS = 2
_PROFILES = ProfileScores(0.0, 1.0, steps=_STEPS)
_VOTES = VoteTotals()
_REPLACED = VoteTotals(relation=Relation.REPLACE)
_HALVES = VoteTotals(steps=2)
_HALVES_REPLACED = VoteTotals(steps=2, relation=Relation.REPLACE)

Check: TypeAlias = Callable[[Noise, Draws], Finding]


def _top_k(scores: ScoreSource, epsilon: float) -> GumbelTopK:
    return GumbelTopK(scores, _PICKS, epsilon)


_MADE: dict[str, Callable[[ScoreSource, float], Any]] = {
    ExponentialMechanism.name: ExponentialMechanism,
    PermuteAndFlip.name: PermuteAndFlip,
    LaplaceNoisyMax.name: LaplaceNoisyMax,
    GumbelTopK.name: _top_k,
}
_FORMULAS: dict[str, Callable[[Leads, int, float], float]] = {
    ExponentialMechanism.name: closed_forms.exponential,
    PermuteAndFlip.name: closed_forms.permute_and_flip,
    LaplaceNoisyMax.name: closed_forms.noisy_max,
    GumbelTopK.name: lambda leads, candidates, rate: closed_forms.top_k(leads, candidates, _PICKS, rate / _PICKS),
}
_WHY = {
    ExponentialMechanism.name: "the normaliser moves along; attained as the candidates, or the lead, grow",
    PermuteAndFlip.name: "attained as the candidates grow",
    LaplaceNoisyMax.name: "attained as the lead grows",
    GumbelTopK.name: "the normalisers move along; attained as the candidates, or the lead, grow",
}

_RULES = {
    PermuteAndFlip.name: "epsilon^2/2, as for any pure claim; attained by 2 candidates as epsilon falls to 0",
    LaplaceNoisyMax.name: "epsilon^2/2, as for any pure claim",
    GumbelTopK.name: "the picks' epsilon^2/8 added up",
}


def cases() -> list[Case]:
    found = []
    for name, make in _MADE.items():
        found += [
            Case(name, By.EXACT, _profiles(make(_PROFILES, 1.0), 3, 1.0)),
            Case(name, By.EXACT, _profiles(make(_PROFILES, 4.0), 4, 4.0)),
            Case(name, By.EXACT, _votes(make(_VOTES, 1.0), (_USERS - 1, _USERS), 1.0)),
            Case(name, By.EXACT, _votes(make(_REPLACED, 1.0), (_USERS - 2, _USERS), 0.5)),
            Case(name, By.EXACT, _fractional_votes(make(_HALVES, 1.0), (2, 4), 0.5)),
            Case(name, By.EXACT, _fractional_votes(make(_HALVES_REPLACED, 1.0), (0, 4), 0.25)),
            Case(name, By.EXACT, _rho(make(_PROFILES, 1.0), 3)),
            Case(name, By.DISTRIBUTION, _sampler(name)),
        ]
    found += [
        *(look.case() for look in from_outside()),
        Case(ExponentialMechanism.name, By.EXACT, _range),
        Case(LaplaceNoisyMax.name, By.EXACT, _long_lead),
    ]
    return found


def twins() -> list[Twin]:
    full_rate = "noise as if all scores moved the same way"
    return [
        *(
            Twin(f"full-rate-{name}", name, full_rate, _corners(_full_rate(name, 2.5, steps=64), 15))
            for name in (ExponentialMechanism.name, PermuteAndFlip.name, LaplaceNoisyMax.name)
        ),
        Twin(
            "full-rate-drawn",
            ExponentialMechanism.name,
            full_rate + ", seen from outside",
            lambda noise, draws: _empirical(_full_rate(ExponentialMechanism.name, 1.0, steps=_STEPS), noise, draws),
            By.EMPIRICAL,
        ),
        *(
            Twin(
                f"{name}-priced-as-exponential",
                name,
                "charged epsilon^2/8 of zCDP, which only the exponential mechanism may (as in opendp#2911)",
                _rho(
                    Mislabelled(
                        f"{name}-priced-as-exponential",
                        _MADE[name](_PROFILES, 0.2),
                        ExponentialMechanism(_PROFILES, 0.2).guarantee,
                    ),
                    candidates,
                ),
            )
            for name, candidates in ((PermuteAndFlip.name, 2), (LaplaceNoisyMax.name, 4))
        ),
        Twin(
            "one-shot-top-k",
            GumbelTopK.name,
            "one Gumbel draw and the top three at the rate of a single pick",
            lambda noise, draws: check.exactly(
                _one_shot(), domains.score_box(5, steps=1), case="5 candidates, 3 picks"
            ),
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(make(_PROFILES, 1.0), _empirical) for make in _MADE.values()]


def _full_rate(name: str, epsilon: float, *, steps: int) -> Mislabelled:
    make, scores = _MADE[name], ProfileScores(0.0, 1.0, steps=steps)
    return Mislabelled(f"full-rate-{name}", make(scores, 2.0 * epsilon), make(scores, epsilon).guarantee)


def _one_shot() -> Mislabelled:
    scores = ProfileScores(0.0, 1.0, steps=1)
    return Mislabelled("one-shot-top-k", GumbelTopK(scores, 3, 9.0), GumbelTopK(scores, 3, 3.0).guarantee)


def _profiles(mechanism: check.Finite, candidates: int, epsilon: float) -> Check:
    def run(noise: Noise, draws: Draws) -> Finding:
        return check.exactly(
            mechanism,
            domains.score_box(candidates, steps=_STEPS),
            case=f"profiles, {candidates} candidates",
            reference=_FORMULAS[mechanism.name]((-_STEPS, _STEPS), candidates, epsilon / (2 * _STEPS)),
            note=_WHY[mechanism.name],
        )

    return run


def _votes(mechanism: Any, leads: Leads, rate: float) -> Check:
    def run(noise: Noise, draws: Draws) -> Finding:
        tables = domains.vote_tables(_USERS, _VOTED)
        relation = mechanism.scores.relation
        pairs = domains.added_or_removed(tables) if relation is Relation.ADD_REMOVE else domains.replaced(tables)
        return check.exactly(
            mechanism,
            tables,
            pairs,
            case=f"votes of {_USERS} users, one {relation}",
            reference=_FORMULAS[mechanism.name](leads, _VOTED, rate),
            note=_WHY[mechanism.name],
        )

    return run


def _fractional_votes(mechanism: Any, leads: Leads, rate: float) -> Check:
    """Two users with votes of halves, and between them, for two candidates."""

    def run(noise: Noise, draws: Draws) -> Finding:
        tables = domains.tables(list(product(_FRACTIONS, repeat=2)), 2)
        relation = mechanism.scores.relation
        pairs = domains.added_or_removed(tables) if relation is Relation.ADD_REMOVE else domains.replaced(tables)
        return check.exactly(
            mechanism,
            tables,
            pairs,
            case=f"votes in halves of 2 users, one {relation}",
            reference=_FORMULAS[mechanism.name](leads, 2, rate),
            note=_WHY[mechanism.name],
        )

    return run


def _rho(mechanism: check.Finite, candidates: int) -> Check:
    """The rho that is spent against the rho that follows from the claim by a general rule, which need not be attained."""

    def run(noise: Noise, draws: Draws) -> Finding:
        inputs = domains.score_box(candidates, steps=_STEPS)
        found = check.exactly(mechanism, inputs, measure=Measure.RHO, case=f"profiles, {candidates} candidates")
        if mechanism.name == ExponentialMechanism.name:
            reference = closed_forms.exponential_rho(candidates, mechanism.guarantee.epsilon / 2.0)
            return replace(found, reference=reference, note="attained as epsilon falls to 0")
        return replace(found, tight=None, note=_RULES.get(mechanism.name, ""))

    return run


def _range(noise: Noise, draws: Draws) -> Finding:
    mechanism = ExponentialMechanism(_PROFILES, 1.0)
    return check.exactly(
        mechanism, domains.score_box(3, steps=_STEPS), measure=Measure.RANGE, case="profiles, 3 candidates"
    )


def _long_lead(noise: Noise, draws: Draws) -> Finding:
    votes = np.tile([0.0, 1.0], (501, 1))
    return check.exactly(
        LaplaceNoisyMax(_VOTES, 1.0),
        [votes, votes[1:]],
        case="votes, a lead of 500 or 501",
        reference=closed_forms.noisy_max_of_two(500, 1.0),
        note=_WHY[LaplaceNoisyMax.name],
    )


def _corners(mechanism: check.Finite, candidates: int) -> Check:
    """One candidate at the top and the others at the bottom, and the reverse: enough to refute, for many candidates."""
    top = np.eye(candidates)
    inputs = [*top, *(1.0 - top)]
    return lambda noise, draws: check.exactly(mechanism, inputs, case=f"profiles, {candidates} candidates, corners")


def _sampler(name: str) -> Check:
    # the law of noisy max is a sum over the grid: a coarse one for it, the default one for the others
    scores = ProfileScores(0.0, 1.0, steps=10) if name == LaplaceNoisyMax.name else ProfileScores(0.0, 1.0)
    mechanism, raw = _MADE[name](scores, 6.0 if name == GumbelTopK.name else 3.0), np.array([0.0, 0.1, 0.9, 1.0])

    def run(noise: Noise, draws: Draws) -> Finding:
        drawn = labels(mechanism.release_many(np.tile(raw, (draws.batched, 1)), noise).value, raw.size)
        outcomes = labels(np.array(list(permutations(range(raw.size), _picks(mechanism)))), raw.size)
        counts = distribution.counts_of(np.searchsorted(outcomes, drawn), outcomes.size)
        return check.sampled(
            mechanism,
            distribution.p_value(counts, mechanism.pmf(raw)) if np.isin(drawn, outcomes).all() else 0.0,
            distribution.p_value(counts, distribution.off_by(mechanism).pmf(raw)),
            loss=exact.worst_loss(np.stack([mechanism.pmf(row) for row in domains.score_box(raw.size, steps=1)])),
            draws=draws.batched,
            case=f"profiles, {raw.size} candidates",
        )

    return run


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    inputs = domains.score_box(_DRAWN, steps=1)  # the corners, where the worst pair is
    worst = exact.worst_case(np.stack([mechanism.pmf(raw) for raw in inputs]))
    first, second = (
        labels(mechanism.release_many(np.tile(inputs[place], (draws.batched, 1)), noise).value, _DRAWN)
        for place in (worst.first, worst.second)
    )
    bound = empirical.lower_bound_by_label(first, second)
    return check.from_below(mechanism, bound, case=f"profiles, {_DRAWN} candidates, the worst pair")


def _picks(mechanism: object) -> int:
    return mechanism.k if isinstance(mechanism, GumbelTopK) else 1


def labels(drawn: NDArray[np.int64], candidates: int) -> NDArray[np.int64]:
    """One whole number for every output; ordered selections are read as digits."""
    columns: Sequence[NDArray[np.int64]] = [drawn] if drawn.ndim == 1 else list(drawn.T)
    label = np.zeros(drawn.shape[0], dtype=np.int64)
    for column in columns:
        label = label * candidates + column
    return label
