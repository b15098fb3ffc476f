"""Randomised response: every value against every other."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.audit import check, distribution, empirical, exact
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding
from tacit.audit.twins.responses import BitVectorResponse, TotalTruth
from tacit.mechanisms import RandomisedResponse
from tacit.mechanisms.noise import Noise

_NAME = RandomisedResponse.name


def cases() -> list[Case]:
    return [
        *(
            Case(_NAME, By.EXACT, _exact(RandomisedResponse(k, epsilon)))
            for k, epsilon in ((2, 1.0), (5, 1.0), (16, 4.0))
        ),
        Case(_NAME, By.DISTRIBUTION, _sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    return [
        Twin(
            BitVectorResponse.name,
            _NAME,
            "a vector of bits of which the last is never flipped (as in opendp#2708)",
            lambda noise, draws: check.exactly(BitVectorResponse(4, 1.0, flipped=3), range(16), case="4 bits"),
        ),
        Twin(
            TotalTruth.name,
            _NAME,
            "lies by redrawing from all values, the true one among them",
            lambda noise, draws: check.exactly(TotalTruth(5, 1.0), range(5), case="5 values"),
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(RandomisedResponse(2, 1.0), _empirical)]


def _exact(mechanism: RandomisedResponse) -> Callable[[Noise, Draws], Finding]:
    return lambda noise, draws: check.exactly(mechanism, range(mechanism.k), case=f"{mechanism.k} values")


def _sampler(noise: Noise, draws: Draws) -> Finding:
    mechanism = RandomisedResponse(5, 2.0)
    drawn = mechanism.release_many(np.full(draws.batched, 3), noise).value
    counts = distribution.counts_of(drawn, mechanism.k)
    return check.sampled(
        mechanism,
        distribution.p_value(counts, mechanism.pmf(3)),
        distribution.p_value(counts, distribution.off_by(mechanism).pmf(3)),
        loss=exact.worst_loss(np.stack([mechanism.pmf(value) for value in range(mechanism.k)])),
        draws=draws.batched,
        case="5 values",
    )


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    first, second = (mechanism.release_many(np.full(draws.batched, value), noise).value for value in (0, 1))
    return check.from_below(mechanism, empirical.lower_bound_by_label(first, second), case="2 values")
