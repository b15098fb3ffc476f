"""Laws by enumeration, where weights differ by more than floats can hold."""

import numpy as np
import pytest

from tacit.models.dpp.laws import k_dpp_law, law_of_logs
from tacit.models.dpp.samplers import SplitSampler


@pytest.mark.parametrize("spread", [700.0, 740.0, 800.0, 1e5])  # 740: below the smallest ordinary float, above 0
def test_a_weight_that_underflows_is_no_error_whatever_a_caller_has_set(spread: float) -> None:
    with np.errstate(all="raise"):
        law = law_of_logs(np.array([-spread, 0.0, -np.inf, np.log(3.0)]))
    assert law.sum() == pytest.approx(1.0)
    assert law[[1, 3]] == pytest.approx([0.25, 0.75])
    assert law[0] <= 1e-300
    assert law[2] == 0.0


def test_a_kernel_whose_weights_underflow_has_a_law() -> None:
    with np.errstate(all="raise"):
        law = k_dpp_law(np.eye(3), 1, np.array([0.0, -900.0, 0.0]))
    assert law.tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("sigma", [1e-60, 1e-300])  # to its tenth power: what no signal slot weighs
def test_so_has_the_number_of_signal_slots_for_next_to_no_jitter(sigma: float) -> None:
    rows = np.random.default_rng(1).normal(scale=1e8, size=(30, 12))
    with np.errstate(all="raise"):
        sampler = SplitSampler(rows, sigma, 10)
    assert sampler._law[-1] == pytest.approx(1.0)
    assert np.isfinite(sampler.log_normaliser)
