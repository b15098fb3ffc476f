"""Whatever a private model says or raises, however small or large the numbers are: a choice, of the same law, and no error."""

import asyncio
import math
import sys
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.audit import distribution
from tacit.device import Device, Limits, private_selection
from tacit.device import private_selection as choosing
from tacit.device.private_selection import guarantee_of, probabilities, select
from tacit.errors import InvalidInput, InvalidParameter
from tacit.ledger import Budget, DisplayLedger
from tacit.mechanisms import PermuteAndFlip, ReplayedNoise
from tacit.messages.private_selection import Bounding, Policy, Rule
from tests.unit.device.offering import FAVOURS_LAST, LIKED, PUBLIC, RR, Taste, offered, selecting
from tests.unit.device.small_world import Clock, CountedNoise

NANO = 10**9
FLOORS = tuple(round(share * 2**32) for share in (0.1, 0.2, 0.05, 0.15))
POLICIES = {
    "rr": Policy(Rule.RR, 4, 2.0),
    "rr of the 2 best": Policy(Rule.RR, 4, 2.0, d=2),
    "envelope": Policy(Rule.ENVELOPE, 4, 2.0, floors=FLOORS),
    "gumbel scaled": Policy(Rule.GUMBEL, 4, 2.0, bounding=Bounding.SCALED),
    "gumbel clipped": Policy(Rule.GUMBEL, 4, 2.0, bounding=Bounding.CLIPPED, width=0.5),
    "pf scaled": Policy(Rule.PF, 4, 2.0, bounding=Bounding.SCALED),
    "pf clipped": Policy(Rule.PF, 4, 2.0, bounding=Bounding.CLIPPED, width=0.5),
    "laplace scaled": Policy(Rule.LAPLACE, 4, 2.0, bounding=Bounding.SCALED),
    "laplace clipped": Policy(Rule.LAPLACE, 4, 2.0, bounding=Bounding.CLIPPED, width=0.5),
    "two slots of rr": Policy(Rule.RR, 4, 2.0, slots=2),
    "two slots of pf": Policy(Rule.PF, 4, 2.0, slots=2, bounding=Bounding.CLIPPED, width=0.5),
    "greedy": Policy(Rule.GREEDY, 4),
}
TINY, LARGEST = math.exp(-708.0), sys.float_info.max
ODD: list[list[Any]] = [
    [5e-324, 0.0, 1e-310, 2e-308],
    [TINY, TINY / 3.0, 1.0, 0.0],
    [TINY, -TINY, 5e-324, -5e-324],
    [LARGEST, -LARGEST, 1.0, 5e-324],
    [math.inf, -math.inf, math.nan, 0.0],
    [math.nan] * 4,
    [10**400, 1.0, -(10**400), 0.5],
    [None, 10**400, None, 1],
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "me.db"


class Panic(BaseException):
    """As a compiled model raises it: no ``Exception``."""


RAISED = [Panic, KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, MemoryError, RecursionError]


@pytest.mark.parametrize("raised", RAISED)
def test_whatever_a_model_raises_the_public_scores_stand_for_it(raised: type[BaseException], place: Path) -> None:
    def fails(features: np.ndarray, items: tuple[str, ...]) -> Any:
        raise raised("private: she has no profile")

    class Answers:
        def __array__(self, *_: object, **__: object) -> Any:
            raise raised("private")

    for number, model in enumerate((fails, lambda *_: Answers(), lambda *_: [Fails(raised)] * 4)):
        with selecting(place, private_scorer=model, noise=First()) as device:
            choice = device.choose(offered(number))
            assert choice is not None
            assert (choice.policy, choice.item) == (RR, LIKED[0])  # the best by its public score
            assert device.statement("server").spent.amount == (number + 1) * NANO


class Fails:
    def __init__(self, raised: type[BaseException]) -> None:
        self.raised = raised

    def __float__(self) -> float:
        raise self.raised


class First(CountedNoise):
    """The first of all numbers: the best."""

    def draw(self, count: int) -> bytes:
        return bytes(count)


@pytest.mark.parametrize("name", POLICIES)
def test_no_setting_of_the_caller_turns_private_numbers_into_errors(name: str) -> None:
    policy = POLICIES[name]
    public = (PUBLIC, (TINY, 5e-324, 0.0, -TINY)) if policy.bounding is not Bounding.CLIPPED else (PUBLIC,)
    for scores, shown in product(ODD, public):
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(select(policy, scores, shown).value) == policy.slots
            if policy.slots == 1 and policy.rule is not Rule.LAPLACE:
                law = probabilities(policy, scores, shown)
        if policy.slots == 1 and policy.rule is not Rule.LAPLACE:
            assert law.sum() == pytest.approx(1.0)


def test_models_that_give_tiny_numbers_or_change_settings_are_answered_alike(place: Path) -> None:
    def loud(features: np.ndarray, items: tuple[str, ...]) -> Any:
        np.seterr(all="raise")
        return np.array([5e-324, TINY, 1e-310, 0.0])

    before = np.geterr()
    private_selection._build_mechanism.cache_clear()
    with np.errstate(all="raise"), selecting(place, private_scorer=loud, limits=Limits(Budget(1e6), 40.0)) as device:
        for number, policy in enumerate(POLICIES.values()):
            assert device.choose(offered(number, policy)) is not None
    assert np.geterr() == before


def test_scores_of_another_shape_or_kind_are_refused_whatever_their_values() -> None:
    for scores in (None, [1.0] * 3, [[1.0] * 4], ["a"] * 4, [1j] * 4, [[1.0], 1.0, 1.0, 1.0], 1.0, []):
        with pytest.raises(InvalidInput):
            select(RR, scores, PUBLIC)  # type: ignore[arg-type]


# --- what a device draws, one offer after the other, has the law of its policy


@pytest.mark.parametrize("name", [name for name in POLICIES if "slots" not in name and "laplace" not in name])
def test_what_select_draws_has_the_law(name: str) -> None:
    policy, scores = POLICIES[name], [0.1, 0.35, 0.3, 0.0]
    drawn = np.array([select(policy, scores, PUBLIC).value[0] for _ in range(1500)])
    assert distribution.p_value(np.bincount(drawn, minlength=4), probabilities(policy, scores, PUBLIC)) > 1e-9
    if policy.rule is not Rule.GREEDY:  # and that check has teeth
        greedy = np.bincount(np.full(1500, 1), minlength=4)
        assert distribution.p_value(greedy, probabilities(policy, scores, PUBLIC)) < 1e-9


def test_what_a_device_chooses_has_the_law(place: Path) -> None:
    with selecting(place, limits=Limits(Budget(1e6))) as device:
        found = [device.choose(offered(number)) for number in range(400)]
    counts = np.bincount([LIKED.index(one.item) for one in found if one is not None], minlength=4)
    law = probabilities(RR, [FAVOURS_LAST[item] for item in LIKED], PUBLIC)
    assert distribution.p_value(counts, law) > 1e-9
    assert distribution.p_value(np.array([0, 0, 0, 400]), law) < 1e-9


# --- policies with odd numbers: no fill before anything is charged, or a choice


EPSILONS = (5e-324, 1e-320, 1e-300, 1e-17, 2.0**-36, 1e-9, 1e-3, 1.0, 39.999, 40.0)
WIDTHS = (5e-324, 1e-300, 1e-12, 0.3, 1e9, 1e300, LARGEST)
SHOWN = (
    (0.4, 0.3, 0.2, 0.1),
    (0.0,) * 4,
    (1e15, 1.0, -1.0, -1e15),
    (3e-324, 0.0, 0.0, -5e-324),
    (1e9, 1.1, 1.0, 0.0),
)


def odd_policies() -> list[Policy]:
    found = []
    for epsilon, slots in product(EPSILONS, (1, 3)):
        for rule in (Rule.PF, Rule.GUMBEL, Rule.LAPLACE):
            found.append(Policy(rule, 4, epsilon, slots=slots, bounding=Bounding.SCALED))
            found += [Policy(rule, 4, epsilon, slots=slots, bounding=Bounding.CLIPPED, width=width) for width in WIDTHS]
        found.append(Policy(Rule.RR, 4, epsilon, slots=slots))
    return found


def followed(policy: Policy, public: tuple[float, ...]) -> bool:
    """Whether a mechanism can follow it; then it does, whatever the scores are."""
    try:
        guarantee_of(policy, public)
    except InvalidParameter:
        return False
    assert len(select(policy, (TINY, 1.0, 5e-324, LARGEST), public).value) == policy.slots
    return True


def test_no_policy_makes_a_device_fail_or_charges_for_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "LEAST_EPSILON", 0.0)  # all of them get through to the mechanisms
    charges = 0
    with selecting(place, limits=Limits(Budget(1e6), 40.0)) as device:
        for number, (policy, public) in enumerate(product(odd_policies(), SHOWN)):
            if number % 2:
                continue
            expected = followed(policy, public)
            if number % 7 == 0 or policy.epsilon == 5e-324:  # each is a few transactions
                assert (device.choose(offered(number, policy, public=public)) is not None) == expected
                charges += expected
        assert device.statement("server").charges == charges > 100


def test_what_a_mechanism_cannot_do_is_no_fill_before_anything_is_charged(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Policy(Rule.PF, 4, 0.987, bounding=Bounding.SCALED)
    for number, problem in enumerate((ZeroDivisionError, OverflowError, ValueError, InvalidParameter("odd"))):
        private_selection._build_mechanism.cache_clear()
        taste = Taste(FAVOURS_LAST)

        def fails(self: PermuteAndFlip, problem: Any = problem) -> float:
            raise problem

        with monkeypatch.context() as patch, selecting(place, private_scorer=taste) as device:
            patch.setattr(PermuteAndFlip, "_rate", property(fails))
            assert device.choose(offered(number, policy)) is None
            assert (taste.asked, device.statement("server").charges) == ([], 0)
    private_selection._build_mechanism.cache_clear()


def test_looking_whether_it_can_be_done_takes_nothing_of_the_noise() -> None:
    private_selection._build_mechanism.cache_clear()
    first = select(RR, [0.1, 0.2, 0.3, 0.4], PUBLIC, ReplayedNoise(7)).value
    assert select(RR, [0.1, 0.2, 0.3, 0.4], PUBLIC, ReplayedNoise(7)).value == first
    noise = CountedNoise()
    private_selection._build_mechanism.cache_clear()
    guarantee_of(RR, PUBLIC)
    select(Policy(Rule.PUBLIC, 4), None, PUBLIC, noise)
    assert noise.draws == 0


def test_offers_that_cost_next_to_nothing_are_answered_publicly(place: Path) -> None:
    """Charges are kept for good: at a billionth each, a budget of ten would hold ten thousand million."""
    taste = Taste(FAVOURS_LAST)
    with selecting(place, private_scorer=taste) as device:
        for number, epsilon in enumerate((1e-9, 1e-6, math.nextafter(1e-3, 0.0))):
            choice = device.choose(offered(number, Policy(Rule.RR, 4, epsilon)))
            assert choice is not None
            assert (choice.policy.rule, choice.item) == (Rule.PUBLIC, LIKED[0])
        assert (taste.asked, device.statement("server").charges) == ([], 0)
        choice = device.choose(offered(9, Policy(Rule.RR, 4, 1e-3)))
        assert choice is not None
        assert choice.policy.rule is Rule.RR


def rows_left(device: Device) -> int:
    with device._state.displays._store.read() as reader:
        return next(iter(reader.stream("SELECT count(*) FROM displays")))[0]


def test_what_has_lapsed_is_forgotten_by_choosing_at_most_once_an_hour(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, calls, real = Clock(2026, 11, 16, 12), [], DisplayLedger.forget
    monkeypatch.setattr(DisplayLedger, "forget", lambda self: calls.append(clock.at) or real(self))  # type: ignore[func-returns-value]
    with selecting(place, clock=clock, limits=Limits(Budget(1e6))) as device:
        for number in range(20):
            device.choose(offered(number))
        assert (len(calls), rows_left(device)) == (1, 40)  # a claim and a display each
        clock.set(2026, 11, 16, 12, 59)
        device.choose(None)
        assert len(calls) == 1
        clock.set(2026, 11, 17, 14)
        device.choose("no offer")
        assert (len(calls), rows_left(device)) == (2, 0)
        clock.set(2026, 11, 17, 13)  # set back
        device.choose(None)
        assert len(calls) == 3
