"""Whether what stands in a signal is drawn from the stated law: a million numbers, and a test that sees 10 % less noise."""

from fractions import Fraction

import numpy as np
import pytest

from tacit.audit.distribution import lattice_p_value
from tacit.mechanisms import Noise, VectorLaplace
from tacit.mechanisms.samplers import integers
from tacit.messages.multi_selection import Signal

pytestmark = pytest.mark.statistical
ALARM = 1e-9


@pytest.mark.parametrize("eta", [Fraction(1, 10), Fraction(1, 20), Fraction(1, 3)])
def test_a_million_numbers_of_signals_have_the_discrete_laplace_law(eta: Fraction, noise: Noise) -> None:
    mechanism = VectorLaplace(62_500, eta)
    features = np.full(62_500, 0.25)
    drawn = np.concatenate([Signal.from_release(mechanism.release(features, noise), eta).steps for _ in range(16)])
    around = drawn.astype(np.int64) - (1 << 18)
    scale = eta * (1 << 20)
    assert lattice_p_value(around, lambda n: integers.discrete_laplace_cdf(n, scale)) > ALARM
    assert lattice_p_value(around, lambda n: integers.discrete_laplace_cdf(n, scale * 11 / 10)) < ALARM
