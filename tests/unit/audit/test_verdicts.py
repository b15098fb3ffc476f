"""Every kind of finding can fail: a verdict that is always "holds" would be worth nothing."""

import numpy as np
import pytest

from tacit.audit import empirical, from_below, sampled
from tacit.guarantees import ONE_PROFILE, Guarantee, pure
from tacit.mechanisms import RandomisedResponse, ReplayedNoise


class Claim:
    name = "claim"

    def __init__(self, epsilon: float) -> None:
        self.guarantee: Guarantee = pure(epsilon, ONE_PROFILE)


@pytest.mark.parametrize(
    ("p_value", "p_value_off", "holds"), [(0.5, 1e-30, True), (1e-12, 1e-30, False), (0.5, 0.4, False)]
)
def test_draws_must_fit_the_law_and_must_not_fit_the_wrong_one(p_value: float, p_value_off: float, holds: bool) -> None:
    assert sampled(Claim(1.0), p_value, p_value_off, loss=1.0, draws=10).holds is holds


def test_a_law_that_loses_more_than_the_claim_fails_however_well_it_is_drawn() -> None:
    assert not sampled(Claim(1.0), 0.5, 1e-30, loss=1.1, draws=10).holds


@pytest.mark.parametrize(("claimed", "holds"), [(2.0, True), (1.0, False)])
def test_a_lower_bound_above_the_claim_refutes_it(claimed: float, holds: bool) -> None:
    mechanism = RandomisedResponse(2, 2.0)
    draws = [mechanism.release_many(np.full(50_000, value), ReplayedNoise(value)).value for value in (0, 1)]
    assert from_below(Claim(claimed), empirical.lower_bound_by_label(*draws)).holds is holds
