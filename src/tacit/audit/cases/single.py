"""Decisions that are drawn one by one, as a device draws them: other code than many at once, under the same law."""

from typing import Any

import numpy as np

from tacit.audit import check, distribution, domains, exact
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.cases.selection import Check, labels
from tacit.audit.findings import By, Finding
from tacit.audit.twins.private_selection import GreedyAlone
from tacit.mechanisms import (
    ClippedScores,
    Envelope,
    ExponentialMechanism,
    LaplaceNoisyMax,
    Peeling,
    PermuteAndFlip,
    ProfileScores,
    RandomisedResponse,
    ScaledScores,
    TopResponse,
)
from tacit.mechanisms.noise import Noise

_CANDIDATES = 4
_RAW = np.array([0.0, 0.1, 0.9, 0.7])
_VALUE = 3  # of randomised response
_CENTRES = (0.0, 0.1, 0.2, 0.3)
_OFF = 1.5  # so few draws tell half as much again from epsilon, and not a tenth more
_FLOORS = tuple(round(share * 2**32) for share in (0.1, 0.2, 0.05, 0.15))


def cases() -> list[Case]:
    return [Case(mechanism.name, By.DISTRIBUTION, fits_alone(mechanism, case)) for mechanism, case in looked_at()]


def twins() -> list[Twin]:
    twin = GreedyAlone(TopResponse(_CANDIDATES, 1, 2.0))
    fault = "draws many decisions from its law, and shows the best where one is asked for"
    return [Twin(twin.name, TopResponse.name, fault, fits_alone(twin, "rr"), By.DISTRIBUTION)]


def from_outside() -> list[FromOutside]:
    return []


def looked_at() -> list[tuple[Any, str]]:
    """Every mechanism that a policy or a click may name, in every form that has code of its own."""
    found: list[tuple[Any, str]] = [
        (RandomisedResponse(_CANDIDATES, 2.0), "values"),
        (TopResponse(_CANDIDATES, 1, 2.0), "the best"),
        (TopResponse(_CANDIDATES, 2, 2.0), "the 2 best"),
        (Envelope(_FLOORS, 2.0), "floors"),
        (Peeling(TopResponse(_CANDIDATES, 1, 4.0), 2), "2 slots of top response"),
        (
            Peeling(PermuteAndFlip(ClippedScores(_CENTRES, 1.0), 6.0, calibrated=True), 2),
            "2 slots of permute-and-flip",
        ),
    ]
    for kind in (ExponentialMechanism, PermuteAndFlip):
        found += [
            (kind(ProfileScores(0.0, 1.0), 3.0), "profiles"),
            (kind(ScaledScores(_CANDIDATES), 3.0, calibrated=True), "scaled, calibrated"),
            (kind(ClippedScores(_CENTRES, 1.0), 3.0, calibrated=True), "clipped, calibrated"),
        ]
    found += [  # its law is a sum over the grid: coarse ones
        (LaplaceNoisyMax(ProfileScores(0.0, 1.0, steps=10), 3.0), "profiles"),
        (LaplaceNoisyMax(ScaledScores(_CANDIDATES, steps=10), 3.0), "scaled"),
        (LaplaceNoisyMax(ClippedScores(_CENTRES, 1.0, steps=10), 3.0), "clipped"),
    ]
    return found


def fits_alone(mechanism: Any, case: str) -> Check:
    """Draws of one decision each against the law."""
    of_values = isinstance(mechanism, RandomisedResponse)
    raw, inputs = (_VALUE, range(_CANDIDATES)) if of_values else (_RAW, domains.score_box(_CANDIDATES, steps=1))
    peels = isinstance(mechanism, Peeling)

    def run(noise: Noise, draws: Draws) -> Finding:
        drawn = labels(np.array([mechanism.release(raw, noise).value for _ in range(draws.single)]), _CANDIDATES)
        ordered = mechanism.outcomes() if peels else [(item,) for item in range(_CANDIDATES)]
        outcomes = labels(np.array(ordered), _CANDIDATES)
        counts = distribution.counts_of(np.searchsorted(outcomes, drawn), outcomes.size + 1)[:-1]
        real = getattr(mechanism, "real", mechanism)
        return check.sampled(
            mechanism,
            distribution.p_value(counts, mechanism.pmf(raw)) if np.isin(drawn, outcomes).all() else 0.0,
            distribution.p_value(counts, distribution.off_by(real, _OFF).pmf(raw)),
            loss=exact.worst_loss(np.stack([mechanism.pmf(one) for one in inputs])),
            draws=draws.single,
            case=f"one by one, {case}",
            off="50 %",
        )

    return run
