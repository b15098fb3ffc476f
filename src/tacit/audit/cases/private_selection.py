"""Selection on a device: top response, envelope, peeling. Noisy selections from scores in public boxes: boxes.py."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audit import boxed_forms, check, distribution, domains, empirical, exact
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.cases.selection import Check, labels
from tacit.audit.findings import By, Finding
from tacit.audit.twins import private_selection as broken
from tacit.audit.twins.mislabelled import Mislabelled
from tacit.mechanisms import (
    ClippedScores,
    Envelope,
    ExponentialMechanism,
    LaplaceNoisyMax,
    Peeling,
    PermuteAndFlip,
    ScaledScores,
    TopResponse,
)
from tacit.mechanisms.noise import Noise

_FLOORS = tuple(round(share * 2**32) for share in (0.1, 0.2, 0.05, 0.15))
_FINE = ClippedScores((0.0, 0.1, 0.2, 0.3), 1.0)
_NOISY: tuple[Any, ...] = (ExponentialMechanism, PermuteAndFlip, LaplaceNoisyMax)


def cases() -> list[Case]:
    found = [
        *(
            Case(TopResponse.name, By.EXACT, _whole_box(TopResponse(m, d, epsilon), m))
            for m, d, epsilon in ((4, 1, 1.0), (4, 2, 1.0), (5, 3, 4.0), (4, 4, 1.0))
        ),
        Case(TopResponse.name, By.DISTRIBUTION, fits_its_law(TopResponse(4, 2, 2.0))),
        Case(Envelope.name, By.EXACT, _whole_box(Envelope(_FLOORS, 2.0), 4)),
        Case(Envelope.name, By.EXACT, _little_to_give),
        Case(Envelope.name, By.DISTRIBUTION, fits_its_law(Envelope(_FLOORS, 2.0))),
        Case(Peeling.name, By.EXACT, _whole_box(Peeling(TopResponse(4, 1, 2.0), 2), 4, case="2 slots of top response")),
        Case(Peeling.name, By.EXACT, _whole_box(Peeling(TopResponse(5, 2, 3.0), 3), 5, case="3 slots of top response")),
        *(Case(Peeling.name, By.EXACT, _peeled(kind)) for kind in _NOISY),
        Case(Peeling.name, By.DISTRIBUTION, fits_its_law(Peeling(PermuteAndFlip(_FINE, 6.0, calibrated=True), 2))),
    ]
    found += [look.case() for look in from_outside()]
    return found


def twins() -> list[Twin]:
    found = []
    top = TopResponse(4, 2, 1.0)
    for twin, fault, inputs in (
        (
            broken.NormalisedForOne(top),
            "rr(m, d) normalised as if one candidate were the best",
            domains.score_box(4, steps=1),
        ),
        (broken.PrivateFilter(top), "leaves candidates out on private grounds", domains.score_box(4, steps=2)),
        (broken.PrivateAbstention(top), "reports nothing where nothing is liked", domains.score_box(4, steps=1)),
        (
            broken.FreshOnResend(top),
            "a new draw when a report is sent again, charged once",
            domains.score_box(4, steps=1),
        ),
    ):
        found.append(Twin(twin.name, TopResponse.name, fault, exactly_on(twin, inputs)))
    raised = Mislabelled("raised-too-far", Envelope(_FLOORS, 3.0), Envelope(_FLOORS, 2.0).guarantee)
    return [
        *found,
        Twin(
            "raised-too-far",
            Envelope.name,
            "raises the best above e^epsilon times its floor",
            exactly_on(raised, domains.score_box(4, steps=1)),
        ),
        Twin(
            broken.FloorsFromScores.name,
            Envelope.name,
            "floors that depend on the scores",
            exactly_on(broken.FloorsFromScores(_FLOORS, 2.0), domains.score_box(4, steps=1)),
        ),
        Twin(
            "one-shot-slots",
            Peeling.name,
            "one noisy draw and the top three, at the rate of a single pick",
            exactly_on(_one_shot(), domains.score_box(5, steps=1)),
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [
        FromOutside(TopResponse(4, 2, 1.0), _empirical),
        FromOutside(Envelope(_FLOORS, 1.0), _empirical),
        FromOutside(Peeling(TopResponse(4, 1, 1.0), 2), _empirical),
    ]


def _one_shot() -> Mislabelled:
    scores = ClippedScores((0.5,) * 5, 1.0, steps=1)
    runs, claims = (Peeling(ExponentialMechanism(scores, epsilon), 3) for epsilon in (9.0, 3.0))
    return Mislabelled("one-shot-slots", runs, claims.guarantee)


def exactly_on(mechanism: check.Finite, inputs: Sequence[NDArray[np.float64]]) -> Check:
    """Every one of these inputs against every other."""
    return lambda noise, draws: check.exactly(
        mechanism, inputs, case=f"{inputs[0].size} candidates, {len(inputs)} inputs"
    )


def _whole_box(mechanism: check.Finite, m: int, *, case: str = "") -> Check:
    """Every vector of three scores, all ties among them."""
    return lambda noise, draws: check.exactly(
        mechanism, domains.score_box(m, steps=2), case=case or f"profiles, {m} candidates"
    )


def _little_to_give(noise: Noise, draws: Draws) -> Finding:
    """An epsilon so large that all there is goes to one candidate: the loss is ln((1 - the others' floors) / its own)."""
    mechanism = Envelope(_FLOORS[:3], 4.0)
    rest = 2**32 - sum(mechanism.floors)
    return check.exactly(
        mechanism,
        domains.score_box(3, steps=2),
        case="profiles, 3 candidates, high floors",
        reference=max(math.log((rest + floor) / floor) for floor in mechanism.floors),
        note="the floors leave less than it takes to raise one of them e^epsilon times",
    )


def _peeled(kind: Any) -> Check:
    """Two slots of three candidates whose scores are scaled anew for the second: the reference scales in its own way."""
    steps = 2
    mechanism = Peeling(kind(ScaledScores(3, steps=steps), 3.0), 2)
    inputs = domains.score_box(3, steps=steps)

    def scaled(scores: Sequence[float]) -> list[int]:
        low, high = min(scores), max(scores)
        return [steps if high == low else int((score - low) / (high - low) * steps) for score in scores]

    def run(noise: Noise, draws: Draws) -> Finding:
        return check.exactly(
            mechanism,
            inputs,
            case=f"2 slots of {kind.name}, scaled",
            reference=boxed_forms.over_peeled(boxed_forms.LAWS[kind.name], inputs, scaled, 2, 3.0 / 2 / (2 * steps)),
            note="no two profiles are at the worst corners of both picks",
        )

    return run


def fits_its_law(mechanism: Any) -> Check:
    """Draws of one selection, or of several in order, against the law."""
    raw = np.array([0.0, 0.1, 0.9, 0.7])

    def run(noise: Noise, draws: Draws) -> Finding:
        drawn = labels(mechanism.release_many(np.tile(raw, (draws.batched, 1)), noise).value, raw.size)
        outcomes = labels(np.array(_outcomes(mechanism, raw.size)), raw.size)
        counts = distribution.counts_of(np.searchsorted(outcomes, drawn), outcomes.size)
        return check.sampled(
            mechanism,
            distribution.p_value(counts, mechanism.pmf(raw)) if np.isin(drawn, outcomes).all() else 0.0,
            distribution.p_value(counts, distribution.off_by(mechanism).pmf(raw)),
            loss=exact.worst_loss(np.stack([mechanism.pmf(row) for row in domains.score_box(raw.size, steps=1)])),
            draws=draws.batched,
            case=f"{raw.size} candidates",
        )

    return run


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    inputs = domains.score_box(4, steps=2)
    worst = exact.worst_case(np.stack([mechanism.pmf(raw) for raw in inputs]))
    first, second = (
        labels(mechanism.release_many(np.tile(inputs[place], (draws.batched, 1)), noise).value, 4)
        for place in (worst.first, worst.second)
    )
    bound = empirical.lower_bound_by_label(first, second)
    return check.from_below(mechanism, bound, case="4 candidates, the worst pair")


def _outcomes(mechanism: Any, candidates: int) -> list[tuple[int, ...]]:
    return mechanism.outcomes() if isinstance(mechanism, Peeling) else [(item,) for item in range(candidates)]
