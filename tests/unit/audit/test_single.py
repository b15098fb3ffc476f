"""Decisions drawn one by one: every mechanism that a device draws from, in the code that a device runs."""

from typing import Any

import numpy as np
import pytest

from tacit.audit.cases import Draws, single
from tacit.audit.findings import By
from tacit.audit.suite import SYSTEMS, all_cases, all_twins
from tacit.mechanisms import (
    Envelope,
    ExponentialMechanism,
    LaplaceNoisyMax,
    Peeling,
    PermuteAndFlip,
    RandomisedResponse,
    TopResponse,
)
from tacit.mechanisms.noise import SYSTEM_NOISE

KINDS = (TopResponse, Envelope, ExponentialMechanism, PermuteAndFlip, LaplaceNoisyMax, RandomisedResponse, Peeling)
FEW = Draws(single=1500)
LOOKED_AT = single.looked_at()


@pytest.mark.parametrize(("mechanism", "case"), LOOKED_AT, ids=[f"{one.name}, {case}" for one, case in LOOKED_AT])
def test_a_single_release_has_the_law(mechanism: Any, case: str) -> None:
    found = single.fits_alone(mechanism, case)(SYSTEM_NOISE, Draws())
    assert found.holds
    assert (found.by, found.draws) == (By.DISTRIBUTION, 3000)


def test_the_audit_of_private_selection_draws_every_choice_one_by_one() -> None:
    alone = {one.name for one, _ in LOOKED_AT}
    assert alone == set(SYSTEMS["private-selection"]) - {"laplace-sum", "bounded-counts"}  # those are a curator's
    drawn = [case for case in all_cases() if case.by is By.DISTRIBUTION and case.of in alone]
    assert len(drawn) >= len(LOOKED_AT) + len(alone)  # and many at once


def best(mechanism: Any, raw: Any) -> Any:
    if isinstance(mechanism, RandomisedResponse):
        return raw
    order = np.argsort(-np.asarray(raw), kind="stable")
    return order[: mechanism.slots] if isinstance(mechanism, Peeling) else int(order[0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_mechanism_whose_single_release_is_greedy_while_many_are_right_is_caught(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = kind.release
    monkeypatch.setattr(
        kind,
        "release",
        lambda self, raw, noise=SYSTEM_NOISE: real(self, raw, noise).map(lambda _: best(self, raw)),
    )
    cases = [case for case in single.cases() if case.of == kind.name]
    assert cases
    for case in cases:
        assert not case.run(SYSTEM_NOISE, FEW).holds


def test_the_twin_that_is_greedy_alone_is_caught() -> None:
    (twin,) = [one for one in all_twins() if one.name == "greedy-alone"]
    assert not twin.run(SYSTEM_NOISE, FEW).holds
