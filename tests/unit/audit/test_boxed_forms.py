"""The independent laws over boxes agree with the mechanisms', and their corners with other closed forms."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.audit import boxed_forms, closed_forms
from tacit.audit.distribution import off_by
from tacit.mechanisms import (
    ClippedScores,
    ExponentialMechanism,
    LaplaceNoisyMax,
    Peeling,
    PermuteAndFlip,
    ScaledScores,
    TopResponse,
)

KINDS = (ExponentialMechanism, PermuteAndFlip, LaplaceNoisyMax)
FORMS = {
    "exponential": closed_forms.exponential,
    "permute-and-flip": closed_forms.permute_and_flip,
    "noisy-max": closed_forms.noisy_max,
}


@pytest.mark.parametrize("kind", KINDS)
def test_laws_agree_with_the_mechanisms(kind: Any, rng: np.random.Generator) -> None:
    source = ClippedScores((0.0, 0.4, 0.1), 1.0, steps=5)
    for _ in range(20):
        raw = rng.uniform(-1.0, 1.5, 3)
        law = boxed_forms.LAWS[kind.name](source.integers(raw).tolist(), 3.0 / 10.0)
        np.testing.assert_allclose(kind(source, 3.0).pmf(raw), law, rtol=1e-9)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("candidates", [2, 3, 6])
def test_equal_boxes_lose_what_other_closed_forms_say(name: str, candidates: int) -> None:
    found = boxed_forms.over_corners(boxed_forms.LAWS[name], (0,) * candidates, 4, 0.3)
    assert found == pytest.approx(FORMS[name]((-4, 4), candidates, 0.3), abs=1e-9)


def test_peeled_picks_of_one_box_lose_what_top_k_loses() -> None:
    inputs = [np.array(bits) for bits in np.ndindex(2, 2, 2, 2)]
    found = boxed_forms.over_peeled(boxed_forms.exponential, inputs, lambda scores: [int(s) for s in scores], 2, 0.7)
    assert found == pytest.approx(closed_forms.top_k((-1, 1), 4, 2, 0.7), abs=1e-9)


def test_an_epsilon_is_moved_through_the_rule_that_it_belongs_to() -> None:
    peeled = Peeling(TopResponse(4, 1, 2.0), 2)
    assert off_by(peeled, 2.0) == Peeling(TopResponse(4, 1, 4.0), 2)
    calibrated = PermuteAndFlip(ScaledScores(4), 2.0, calibrated=True)
    assert off_by(calibrated, 1.5) == PermuteAndFlip(ScaledScores(4), 3.0, calibrated=True)
    assert off_by(calibrated, 1.5).rate > calibrated.rate * Fraction(6, 5)
