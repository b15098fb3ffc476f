"""Rounded Gaussian draws against their closed form, and against laws that are a little off."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.audit.distribution import lattice_p_value
from tacit.mechanisms.samplers import integers
from tests.contracts.mechanism import ALARM, chi_square
from tests.unit.mechanisms.reference import rounded_gaussian_tail

pytestmark = pytest.mark.statistical
DRAWS = 200_000


@pytest.mark.parametrize(
    "variance", [Fraction(1, 5), Fraction(1), Fraction(50, 3), Fraction(10**6, 7), Fraction(1 << 62)], ids=str
)
def test_draws_have_the_law_and_no_other(variance: Fraction, noise: Any) -> None:
    draws = integers.sample_rounded_gaussian(variance, DRAWS, noise)

    def fit(other: Fraction) -> float:
        return lattice_p_value(draws, lambda n: rounded_gaussian_tail(-n, other))

    assert fit(variance) > ALARM
    assert fit(variance * Fraction(9, 10)) < ALARM
    assert fit(variance * Fraction(11, 10)) < ALARM


def test_low_digits_are_uniform_and_signs_are_even(noise: Any) -> None:
    draws = integers.sample_rounded_gaussian(Fraction(1 << 62), DRAWS, noise)
    assert chi_square(np.bincount(draws & 255, minlength=256), np.full(256, 1 / 256)) > ALARM
    signs = np.bincount((draws[:-1] > 0).astype(np.int64) * 2 + (draws[1:] > 0), minlength=4)
    assert chi_square(signs, np.full(4, 0.25)) > ALARM


def test_a_small_deviation_rounds_to_zero_as_often_as_it_should(noise: Any) -> None:
    draws = integers.sample_rounded_gaussian(Fraction(1, 16), DRAWS, noise)
    beyond = math.erfc(2.0 / math.sqrt(2.0))
    counts = np.array([(draws == 0).sum(), (draws == 1).sum(), (draws == -1).sum(), (abs(draws) > 1).sum()])
    law = np.array([1.0 - beyond, beyond / 2.0, beyond / 2.0, 0.0])
    far = math.erfc(6.0 / math.sqrt(2.0))
    law[3], law[1], law[2] = far, law[1] - far / 2.0, law[2] - far / 2.0
    assert chi_square(counts.astype(np.int64), law) > ALARM
