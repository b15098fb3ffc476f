"""One step as a black box: who is in the sample and what noise is added, together, against the law that was enumerated."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.contracts.mechanism import ALARM, chi_square
from tests.unit.mechanisms.test_sampled_gaussian import SampledGaussianCase

pytestmark = pytest.mark.statistical

CASE, DRAWS = SampledGaussianCase(), 8_000  # one call each; the audit looks at noise and coins alone, with 100,000
RAW = np.array([[4], [4], [-1]])


def test_releases_have_the_law_of_a_step_and_no_other(noise: Any) -> None:
    mechanism = CASE.make(2.0)
    counts = np.bincount(CASE.outcomes(mechanism, RAW, noise, DRAWS), minlength=CASE.outputs.size)
    assert chi_square(counts, CASE.law(mechanism, RAW)) > ALARM
    for epsilon in (1.4, 3.0):  # noise that is off by a fifth or more
        assert chi_square(counts, CASE.law(CASE.make(epsilon), RAW)) < ALARM
    for rate in (0.15, 0.35):
        wrong = replace(mechanism, rate=rate)
        object.__setattr__(wrong, "noise_law", mechanism.noise_law)  # the same noise, other coins
        assert chi_square(counts, CASE.law(wrong, RAW)) < ALARM
