"""What a device refuses to ask with, before any charge and any noise."""

from pathlib import Path

import numpy as np
import pytest

from tacit.device import Device
from tacit.errors import (
    InvalidFeatures,
    InvalidMessage,
    InvalidParameter,
    LedgerUnavailable,
)
from tacit.ledger import Budget
from tests.unit.device.small_world import BUDGET, SHOP, Clock, CountedNoise, Shop, opened

# --- what is refused, before any noise


@pytest.mark.parametrize(("k", "t"), [(0, 1), (5, 6), (300, 1), (5, 0), (True, 1), (5, 1.0), (None, 1)])
def test_odd_slates_are_refused_before_charge_and_noise(k, t, place: Path) -> None:
    noise = CountedNoise()
    with opened(place, noise=noise) as device:
        with pytest.raises(InvalidMessage):
            device.request(k, t)
        assert (noise.draws, device.statement().charges) == (0, 0)
        assert (device.request(7, 2).k, device.request(7, 2).t) == (7, 2)


class Counted:
    """A feature space that counts how often it sees a profile, and fails where it is told to."""

    def __init__(self) -> None:
        self.seen, self.fails = 0, False

    def __getattr__(self, name: str) -> object:
        return getattr(SHOP.space, name)

    def of(self, items: np.ndarray, values: np.ndarray) -> np.ndarray:
        self.seen += 1
        if self.fails:
            raise np.linalg.LinAlgError
        return SHOP.space.of(items, values)


def test_the_profile_is_looked_at_once_for_each_fresh_signal_and_never_else(place: Path) -> None:
    clock, space = Clock(2026, 11, 1), Counted()
    with Device(place, Shop(SHOP.items, space), budget=Budget(25), clock=clock) as device:  # type: ignore[arg-type]
        first = device.ask(0.1)
        space.fails = True
        assert device.ask(0.1) == first  # the memo, although another signal would fit
        assert space.seen == 1
        space.fails = False
        clock.set(2026, 12, 1)
        second = device.ask(0.1)
        assert space.seen == 2
        space.fails = True
        clock.set(2027, 1, 1)
        assert device.ask(0.1) == second  # spent: an older signal
        assert device.ask(0.125).empty  # spent: none
        assert space.seen == 2
        with pytest.raises(InvalidFeatures) as problem:
            device.ask(0.2)  # would be fresh
        assert problem.value.__context__ is None
        assert (space.seen, device.statement().charges) == (3, 2)


class Bad:
    """A feature space that gives features outside its domain."""

    def __init__(self, features: list[float]) -> None:
        self.features = features

    def __getattr__(self, name: str) -> object:
        return getattr(SHOP.space, name)

    def of(self, items: object, values: object) -> np.ndarray:
        return np.array(self.features)


@pytest.mark.parametrize(
    "features",
    [
        [1.0, 0, 0, 0, 0, 0, 0],
        [1.0, 0, 0, 0, 0, 0, 0, 0, 0],
        [float("nan")] + [0.0] * 7,
        [float("inf")] + [0.0] * 7,
        [0.77] + [0.0] * 7,
        [1.77, -0.77] + [0.0] * 6,
        [0.77, 0.230002] + [0.0] * 6,
    ],
    ids=["too few", "too many", "nan", "inf", "not normalised", "outside", "a little too much"],
)
def test_features_outside_the_domain_are_refused_before_charge_and_noise(features: list[float], place: Path) -> None:
    noise = CountedNoise()
    with Device(place, Shop(SHOP.items, Bad(features)), budget=BUDGET, noise=noise, clock=Clock()) as device:  # type: ignore[arg-type]
        with pytest.raises(InvalidFeatures) as problem:
            device.ask()
        assert "77" not in str(problem.value)
        assert (noise.draws, device.statement().charges) == (0, 0)


@pytest.mark.parametrize("eta", [0, 9e-4, 11, float("nan"), 1 / 3, None])
def test_odd_etas_are_refused_before_charge_and_noise(eta, place: Path) -> None:
    noise = CountedNoise()
    with opened(place, noise=noise, budget=Budget(10_000)) as device:
        with pytest.raises(InvalidParameter):
            device.ask(eta)
        assert (noise.draws, device.statement().charges) == (0, 0)


def test_a_profile_without_ratings_or_with_one_block_is_in_the_domain(place: Path) -> None:
    with opened(place, budget=Budget(2000)) as device:
        assert np.abs(device.ask(0.001).values).max() < 0.05  # all zeros, and noise
    with opened(place, budget=Budget(2000)) as device:
        device.rate({21: 1})
        values = device.ask(0.002).values
        assert np.abs(values - [0, 0, 0, 0, 0, 0, 1, 0]).max() < 0.1


@pytest.mark.parametrize(
    "options",
    [
        {"refresh": "week"},
        {"per_period": 0},
        {"per_period": 1.5},
        {"refresh": "lifetime", "per_period": 2},
        {"budget": 10},
        {"budget": [BUDGET]},
    ],
    ids=str,
)
def test_odd_options_are_refused_and_leave_no_file(options: dict[str, object], place: Path) -> None:
    with pytest.raises(InvalidParameter):
        opened(place, **options)
    assert not place.exists()


def test_a_clock_beyond_all_calendars_draws_nothing(place: Path) -> None:
    clock = Clock()
    noise = CountedNoise()
    with opened(place, clock=clock, noise=noise) as device:
        for at in (-1, 2**62):
            clock.at = at
            with pytest.raises(LedgerUnavailable):
                device.ask()
        assert noise.draws == 0
