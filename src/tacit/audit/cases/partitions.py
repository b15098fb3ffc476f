"""A private partition: every outcome of one dimension and few levels, lines of points and the same with one more."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, distribution, empirical, exact
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.prototypes import OccupiedFirst, OccupiedOnly
from tacit.mechanisms import PrivatePartition
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.partition import HALF_SIDE

_NAME = PrivatePartition.name
_LINES: tuple[tuple[int, ...], ...] = ((), (5,) * 3, (5,) * 8, (-5,) * 3 + (40_000,) * 8, (-HALF_SIDE, HALF_SIDE))
_MORE = (-HALF_SIDE, -20_000, 5, 40_000, HALF_SIDE)
_OFF = 1.25  # the threshold is a whole number: an epsilon ten percent off moves few coins
_SIZES = ((1, 2000), (2, 1), (2, 2000), (3, 1), (3, 2))  # levels, cap


def cases() -> list[Case]:
    return [
        *(Case(_NAME, By.EXACT, _enumerated(PrivatePartition(1, d, 1.0, beta=0.3, cap=cap))) for d, cap in _SIZES),
        Case(_NAME, By.DISTRIBUTION, _sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    real = PrivatePartition(1, 2, 1.0, beta=0.3, cap=1)
    return [
        Twin(
            OccupiedFirst.name,
            _NAME,
            "the cap keeps the fullest cubes",
            lambda noise, draws: _lost(OccupiedFirst(real)),
        ),
        Twin(
            OccupiedOnly.name,
            _NAME,
            "cubes without a point are never kept, as in the published program",
            lambda noise, draws: _lost(OccupiedOnly(real)),
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(PrivatePartition(1, 1, 2.0, beta=0.3), _empirical)]


def _column(line: tuple[int, ...]) -> NDArray[np.int64]:
    return np.array(line, dtype=np.int64).reshape(-1, 1)


def _enumerated(mechanism: PrivatePartition) -> Any:
    def run(noise: Noise, draws: Draws) -> Finding:
        lines = [line for line in _LINES for line in (line, *((*line, point) for point in _MORE))]
        group = 1 + len(_MORE)
        pairs = [(start, start + one) for start in range(0, len(lines), group) for one in range(1, group)]
        levels = f"{mechanism.depth} level{'s' if mechanism.depth > 1 else ''}"
        case = f"one dimension, {levels}, at most {mechanism.cap:,} cubes, one point added"
        return check.exactly(mechanism, [_column(line) for line in lines], np.array(pairs), case=case)

    return run


def _lost(twin: OccupiedFirst | OccupiedOnly) -> Finding:
    worst = 0.0
    for line in _LINES:
        here = twin.law(list(line))
        for point in _MORE:
            there = twin.law([*line, point])
            outcomes = sorted(set(here) | set(there))
            worst = max(worst, exact.worst_loss([[law.get(one, 0.0) for one in outcomes] for law in (here, there)]))
    return check.judged(twin, "one dimension, 2 levels, at most 1 cube, one point added", Measure.EPSILON, worst)


def _sampler(noise: Noise, draws: Draws) -> Finding:
    """Ten points of three places: which cubes are kept at either level, against the law."""
    mechanism, line = PrivatePartition(1, 2, 3.0, beta=0.6), (5,) * 2 + (-40_000,) * 3 + (50_000,) * 2
    points, quarter = _column(line), HALF_SIDE // 2
    places = {outcome: place for place, outcome in enumerate(mechanism.outcomes())}
    counts = np.zeros(len(places), dtype=np.int64)
    for _ in range(draws.single // 2):
        found = mechanism.release(points, noise).value[1:, 0].tolist()
        halves = tuple((one,) for one in found if abs(one) == quarter)
        counts[places[(halves, tuple((one,) for one in found if abs(one) != quarter))]] += 1

    def fit(law: PrivatePartition) -> float:
        return distribution.p_value(counts, law.pmf(points))

    wrong = PrivatePartition(1, 2, 3.0 * _OFF, beta=0.6)
    loss = exact.worst_loss([mechanism.pmf(points), mechanism.pmf(_column((*line, 5)))])
    return check.sampled(
        mechanism,
        fit(mechanism),
        fit(wrong),
        loss=loss,
        draws=int(counts.sum()),
        case="one dimension, 2 levels",
        off="25 %",
    )


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """One point on the right, then two: is the right half kept? The threshold lies between."""
    points = [_column((5,) * users) for users in (1, 2)]
    first, second = (
        np.array([int((mechanism.release(at, noise).value > 0).any()) for _ in range(draws.single // 2)])
        for at in points
    )
    bound = empirical.lower_bound_by_label(first, second)
    return check.from_below(mechanism, bound, case="one point, then two")
