"""Vector Laplace with a fraction for its scale: the noise, the law and the guarantee are all of that very number."""

from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.mechanisms import ReplayedNoise, VectorLaplace


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(3, 10), Fraction(1, 3), Fraction(7, 11), Fraction(1000)])
def test_a_fraction_stays_exact(scale: Fraction) -> None:
    mechanism = VectorLaplace(4, scale)
    assert mechanism.noise_law.width == scale * 2**20
    assert Fraction(mechanism.guarantee.epsilon) >= 1 / scale
    assert mechanism.guarantee.epsilon == pytest.approx(float(1 / scale), rel=1e-15)


def test_a_float_is_the_binary_number_that_it_is() -> None:
    assert VectorLaplace(4, 0.1).noise_law.width == Fraction(0.1) * 2**20 != Fraction(1, 10) * 2**20
    assert VectorLaplace(4, 0.5) == VectorLaplace(4, Fraction(1, 2))


def test_both_draw_and_weigh_alike_where_they_are_the_same_number() -> None:
    one, other = VectorLaplace(4, 0.25), VectorLaplace(4, Fraction(1, 4))
    features = [0.1, 0.2, 0.3, 0.4]
    drawn = [mechanism.release(features, ReplayedNoise(3)).value.steps.tolist() for mechanism in (one, other)]
    assert drawn[0] == drawn[1]
    steps = np.array(drawn[0])
    assert one.log_pmf(steps, features) == other.log_pmf(steps, features)


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1, 10), Fraction(10**30)])
def test_fractions_that_are_no_scale_are_refused(scale: Fraction) -> None:
    with pytest.raises(InvalidParameter, match="scale"):
        VectorLaplace(4, scale)
