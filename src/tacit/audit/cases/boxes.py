"""Noisy selections from scores in public boxes, scaled or clipped around centres that differ; also calibrated."""

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audit import boxed_forms, check, domains
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.cases.private_selection import exactly_on, fits_its_law
from tacit.audit.cases.selection import Check
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins import private_selection as broken
from tacit.audit.twins.mislabelled import Mislabelled
from tacit.mechanisms import ClippedScores, ExponentialMechanism, LaplaceNoisyMax, PermuteAndFlip, ScaledScores
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.scores import BoxedScores

_STEPS = 4
_SCALED = ScaledScores(3, steps=_STEPS)
_CLIPPED = ClippedScores((0.0, 0.25, 0.5), 1.0, steps=_STEPS)
_FINE = ClippedScores((0.0, 0.1, 0.2, 0.3), 1.0)
_SLACK = "the others' scores move along; attained as the candidates grow, or once calibrated"
_NOISY: tuple[Any, ...] = (ExponentialMechanism, PermuteAndFlip, LaplaceNoisyMax)


def cases() -> list[Case]:
    found = [
        Case(
            ExponentialMechanism.name,
            By.DISTRIBUTION,
            fits_its_law(ExponentialMechanism(ScaledScores(4), 3.0, calibrated=True)),
        ),
        Case(PermuteAndFlip.name, By.DISTRIBUTION, fits_its_law(PermuteAndFlip(_FINE, 3.0, calibrated=True))),
        Case(ExponentialMechanism.name, By.EXACT, _calibrated_range),
    ]
    for kind in _NOISY:
        for source in (_SCALED, _CLIPPED):
            found.append(Case(kind.name, By.EXACT, _boxed(kind(source, 3.0))))
            if kind is not LaplaceNoisyMax:
                found.append(Case(kind.name, By.EXACT, _boxed(kind(source, 3.0, calibrated=True))))
    return found


def twins() -> list[Twin]:
    found = []
    for kind in _NOISY:
        for word, source, corners in (
            ("scaled", ScaledScores(15, steps=64), [*np.eye(15), *(1.0 - np.eye(15))]),
            ("clipped", _spread(15, steps=64), _corners(_spread(15, steps=64))),
        ):
            name = f"full-rate-{word}-{kind.name}"
            fault = f"noise of scale width/epsilon instead of twice that, on {word} scores"
            run = exactly_on(Mislabelled(name, kind(source, 5.0), kind(source, 2.5).guarantee), corners)
            found.append(Twin(name, kind.name, fault, run))
    wide, half = _spread(15, steps=64), broken.HalfWidth(_spread(15, steps=64).centres, 1.0, steps=64)
    return [
        *found,
        Twin(
            "half-width-as-sensitivity",
            PermuteAndFlip.name,
            "the clip bound, half of the box's width, taken for the sensitivity",
            exactly_on(
                Mislabelled(
                    "half-width-as-sensitivity", PermuteAndFlip(half, 2.5), PermuteAndFlip(wide, 2.5).guarantee
                ),
                _corners(wide),
            ),
        ),
        Twin(
            "calibrated-for-equal-boxes",
            PermuteAndFlip.name,
            "calibrated as if all boxes lay at one place",
            exactly_on(
                Mislabelled(
                    "calibrated-for-equal-boxes",
                    broken.EqualBoxes(_CLIPPED, 3.0),
                    PermuteAndFlip(_CLIPPED, 3.0).guarantee,
                ),
                _corners(_CLIPPED),
            ),
        ),
        Twin(
            "calibrated-for-the-highest-box",
            ExponentialMechanism.name,
            "calibrated for the wrong corner: that of the candidate whose box lies highest",
            exactly_on(
                Mislabelled(
                    "calibrated-for-the-highest-box",
                    broken.HighestBox(_CLIPPED, 3.0),
                    ExponentialMechanism(_CLIPPED, 3.0).guarantee,
                ),
                _corners(_CLIPPED),
            ),
        ),
    ]


def from_outside() -> list[FromOutside]:
    return []  # the mechanisms are looked at from outside in selection.py: once for each


def _spread(k: int, *, steps: int) -> ClippedScores:
    return ClippedScores(tuple(place / (2.0 * k) for place in range(k)), 1.0, steps=steps)


def _corners(source: ClippedScores) -> list[NDArray[np.float64]]:
    """Each candidate at an edge of its box and all others at the other edge: 2k inputs."""
    low = np.array(source.centres) - source.width / 2.0
    own = np.eye(low.size) * source.width
    return [*(low + own), *(low + source.width - own)]


def _box(source: BoxedScores) -> list[NDArray[np.float64]]:
    """Every grid point of the boxes and, for each candidate, a score beyond either edge; scaled ones: of the unit cube."""
    if not isinstance(source, ClippedScores):
        return domains.score_box(len(source.lows), steps=source.sensitivity)
    axes = [
        np.concatenate(
            [[low - 1.0], low + np.linspace(0.0, source.width, source.steps + 1), [low + source.width + 1.0]]
        )
        for low in np.array(source.centres) - source.width / 2.0
    ]
    return [np.array(point) for point in product(*axes)]


def _boxed(mechanism: Any) -> Check:
    """Every input of the boxes against every other, and beyond the edges; the reference looks at their corners alone."""
    source, kind = mechanism.scores, type(mechanism)
    word = "scaled" if isinstance(source, ScaledScores) else "clipped"
    calibrated = getattr(mechanism, "calibrated", False)
    rate = float(mechanism.rate) if hasattr(mechanism, "rate") else 1.0 / float(mechanism.scale)

    def run(noise: Noise, draws: Draws) -> Finding:
        return check.exactly(
            mechanism,
            _box(source),
            case=f"{word}, 3 candidates" + (", calibrated" if calibrated else ""),
            reference=boxed_forms.over_corners(boxed_forms.LAWS[kind.name], source.lows, source.sensitivity, rate),
            note=_SLACK,
        )

    return run


def _calibrated_range(noise: Noise, draws: Draws) -> Finding:
    mechanism = ExponentialMechanism(_CLIPPED, 3.0, calibrated=True)
    return check.exactly(mechanism, _box(_CLIPPED), measure=Measure.RANGE, case="clipped, 3 candidates, calibrated")
