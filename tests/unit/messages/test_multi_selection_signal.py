"""Signals and requests: exact bytes, what is refused, and that no message claims less loss than there was."""

import json
import struct
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import InvalidMessage, InvalidParameter
from tacit.guarantees import Neighbours, metric, pure
from tacit.guarantees.guarantee import ONE_PROFILE
from tacit.mechanisms import GridVector, ReplayedNoise, VectorLaplace
from tacit.messages.multi_selection import MOST_STEPS, SIMULATED, Request, Signal, exact_eta
from tests.releases import message_of, release_of

TENTH = Fraction(1, 10)
SMALL = message_of(Signal, np.array([1, -2, 70_000]), 20, TENTH)
SECRET = 1_234_567  # a step that must not be seen in any text


def bytes_of(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


# version 01 53 | flags | log2 step -20 = ec | eta 1 / 10 | 3 numbers | k | t | 1, -2, 70000 = 0x11170
BY_HAND = "01 53 00 ec 01 00 00 00 0a 00 00 00 03 00 {k} {t} 01 00 00 00 fe ff ff ff 70 11 01 00"


def test_a_small_request_has_the_bytes_that_were_written_by_hand() -> None:
    assert Request(SMALL, 5, 2).to_bytes() == bytes_of(BY_HAND.format(k="05", t="02"))
    assert SMALL.to_bytes() == bytes_of(BY_HAND.format(k="00", t="00"))


@pytest.mark.parametrize(("flags", "simulated", "empty"), [(1, True, False), (2, False, True)])
def test_each_flag_has_its_bit(flags: int, simulated: bool, empty: bool) -> None:
    signal = message_of(Signal, np.zeros(3, dtype=np.int64), 20, TENTH, simulated, empty)
    assert signal.to_bytes()[2] == flags
    again = Signal.from_bytes(signal.to_bytes())
    assert (again.simulated, again.empty) == (simulated, empty)


def test_a_request_for_38_features_has_168_bytes_whatever_it_says() -> None:
    noisy = Signal.from_release(VectorLaplace(38, TENTH).release([0.0] * 38), TENTH)
    for signal in (noisy, Signal.nothing(38, TENTH), message_of(Signal, np.full(38, MOST_STEPS), 20, Fraction(10))):
        assert len(Request(signal, 5, 1).to_bytes()) == 168
        assert len(signal.to_bytes()) == 168


def test_a_memo_is_no_request_and_a_request_no_memo() -> None:
    with pytest.raises(InvalidMessage):
        Request.from_bytes(SMALL.to_bytes())
    with pytest.raises(InvalidMessage):
        Signal.from_bytes(Request(SMALL).to_bytes())


def test_values_are_steps_times_the_grid() -> None:
    signal = message_of(Signal, np.array([1 << 20, -(1 << 19), 3]), 20, TENTH)
    assert signal.values.tolist() == [1.0, -0.5, 3 / 2**20]
    assert signal.values.dtype == np.float64
    assert signal.dimension == 3


def test_equal_signals_are_equal_values() -> None:
    again = Signal.from_bytes(SMALL.to_bytes())
    assert again == SMALL
    assert len({again, SMALL}) == 1
    assert Request(again) == Request(SMALL)
    assert message_of(Signal, np.array([1, -2, 70_001]), 20, TENTH) != SMALL
    assert SMALL != "a text"


def test_steps_cannot_be_changed_afterwards() -> None:
    raw = np.array([1, 2, 3])
    signal = message_of(Signal, raw, 20, TENTH)
    raw[0] = 9
    assert signal.steps.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        signal.steps[0] = 9


# --- the guarantee


def test_the_guarantee_follows_from_the_header() -> None:
    signal = message_of(Signal, np.zeros(38, dtype=np.int32), 20, Fraction(1, 20))
    assert signal.guarantee.epsilon == 20.0
    assert signal.guarantee.per_distance
    assert signal.guarantee.protects == Neighbours.features("L1")
    assert Fraction(signal.guarantee.rounding) == Fraction(38, 1 << 20)
    assert signal.guarantee.proof == "multi-selection"


def test_the_guarantee_is_rounded_up_where_eta_has_no_float() -> None:
    for eta in (Fraction(3, 10), Fraction(7, 11), Fraction(10, 3)):
        assert Fraction(message_of(Signal, np.zeros(3, dtype=np.int32), 20, eta).guarantee.epsilon) >= 1 / eta


def test_a_signal_that_tells_nothing_costs_nothing() -> None:
    guarantee = Signal.nothing(38, TENTH).guarantee
    assert (guarantee.epsilon, guarantee.rounding, guarantee.per_distance) == (0.0, 0.0, True)


def test_simulated_noise_promises_nothing_and_says_so_on_the_wire() -> None:
    signal = Signal.from_release(VectorLaplace(3, TENTH).release([0.0] * 3, ReplayedNoise(1)), TENTH)
    assert signal.simulated
    again = Signal.from_bytes(signal.to_bytes())
    assert again.guarantee.promises_nothing
    assert again.guarantee.assumes == {SIMULATED}
    assert ReplayedNoise.caveat == SIMULATED  # one wording on both sides of the wall


def test_a_release_becomes_a_signal_with_the_same_promise() -> None:
    for eta in (TENTH, Fraction(3, 10), Fraction(1, 1000), Fraction(10)):
        release = VectorLaplace(38, eta).release([0.0] * 38)
        signal = Signal.from_release(release, eta)
        assert signal.steps.tolist() == release.value.steps.tolist()
        assert replace(release.guarantee, proof="multi-selection") == signal.guarantee


@pytest.mark.parametrize(
    "other",
    [
        VectorLaplace(3, Fraction(1, 20)),  # twice the loss
        VectorLaplace(3, Fraction(1, 5)),
        VectorLaplace(3, Fraction(999_999_999, 10**10)),  # a hair more
    ],
)
def test_a_release_with_another_loss_than_eta_says_is_refused(other: VectorLaplace) -> None:
    with pytest.raises(InvalidParameter, match="another guarantee"):
        Signal.from_release(other.release([0.0] * 3), TENTH)


@pytest.mark.parametrize(
    "guarantee",
    [
        metric(10.0, rounding=3 / 2**20, assumes=frozenset({"a prior"})),
        metric(10.0, rounding=4 / 2**20),
        metric(10.0, distance="L2", rounding=3 / 2**20),
        pure(10.0, ONE_PROFILE),
    ],
    ids=["assumes more", "rounds more", "another distance", "another unit"],
)
def test_a_release_that_promises_something_else_is_refused(guarantee) -> None:
    value = GridVector(np.zeros(3, dtype=np.int64), Fraction(1, 1 << 20))
    with pytest.raises(InvalidParameter):
        Signal.from_release(release_of(value, guarantee), TENTH)


@pytest.mark.parametrize("step", [Fraction(1, 3), Fraction(2, 1), Fraction(3, 4)])
def test_only_grids_of_halves_fit_the_wire(step: Fraction) -> None:
    value = GridVector(np.zeros(3, dtype=np.int64), step)
    with pytest.raises(InvalidParameter, match="1/2"):
        Signal.from_release(release_of(value, metric(10.0)), TENTH)


def test_what_lies_beyond_the_range_is_cut_after_the_noise() -> None:
    eta = Fraction(10)
    release = VectorLaplace(2000, eta, grid_bits=30).release(np.zeros(2000), ReplayedNoise(1))
    assert np.abs(release.value.steps).max() > MOST_STEPS
    signal = Signal.from_release(release, eta)
    assert (signal.steps.max(), signal.steps.min()) == (MOST_STEPS, -MOST_STEPS)
    Request.from_bytes(Request(signal).to_bytes())  # what a device sends is always accepted


# --- what is refused

GOOD = Request(SMALL, 5, 2).to_bytes()


def changed(place: int, layout: str, value: int) -> bytes:
    content = bytearray(GOOD)
    struct.pack_into(layout, content, place, value)
    return bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        GOOD[:15],
        GOOD[:16],
        GOOD[:-1],
        GOOD + b"\0",
        GOOD[:-4],
        changed(0, "<H", 0x5302),  # version
        changed(0, "<H", 0x0153),
        changed(2, "<B", 4),  # an unknown flag
        changed(2, "<B", 2),  # empty, but with steps
        changed(2, "<B", 3),
        changed(3, "<b", 1),  # a grid of twos
        changed(3, "<b", -31),
        changed(3, "<b", -128),
        changed(4, "<I", 0),  # eta = 0
        changed(8, "<I", 0),  # eta = 1/0
        changed(4, "<I", 2),  # 2/10 is not in lowest terms
        changed(4, "<I", 101),  # above 10
        changed(8, "<I", 1001),  # below 1/1000
        changed(8, "<I", 0xFFFFFFFF),
        changed(12, "<H", 0),  # no numbers
        changed(12, "<H", 4),
        changed(14, "<B", 0),  # k < 1
        changed(15, "<B", 0),  # t < 1
        changed(15, "<B", 6),  # t > k
        changed(16, "<i", MOST_STEPS + 1),
        changed(16, "<i", -MOST_STEPS - 1),
        changed(16, "<i", -(1 << 31)),
    ],
)
def test_bytes_that_are_no_request_are_refused(content: bytes) -> None:
    with pytest.raises(InvalidMessage):
        Request.from_bytes(content)


@pytest.mark.parametrize("content", [None, "text", bytearray(GOOD), memoryview(GOOD)])
def test_only_bytes_are_read(content: object) -> None:
    with pytest.raises(InvalidMessage):
        Request.from_bytes(content)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "steps",
    [
        np.array([0.5, 1.0]),  # between grid points
        np.array([1.0, 2.0]),
        np.array([np.nan]),
        np.array([[1, 2]]),
        np.array([], dtype=np.int64),
        np.zeros(1 << 16, dtype=np.int64),
        np.array([1 << 40]),
        np.array([-(1 << 63)]),
        np.array([(1 << 64) - 1], dtype=np.uint64),
        np.array([True]),
        ["1"],
        [10**40],
    ],
)
def test_steps_that_are_no_whole_numbers_within_the_range_are_refused(steps) -> None:
    with pytest.raises(InvalidMessage):
        message_of(Signal, steps, 20, TENTH)


@pytest.mark.parametrize("bits", [-1, 31, 2.0, True, None])
def test_odd_grids_are_refused(bits) -> None:
    with pytest.raises(InvalidMessage):
        message_of(Signal, np.array([1]), bits, TENTH)


@pytest.mark.parametrize("eta", [0.1, Fraction(0), Fraction(-1, 10), Fraction(1, 1001), Fraction(10**10, 10**10 - 1)])
def test_odd_etas_are_refused(eta) -> None:
    with pytest.raises(InvalidMessage):
        message_of(Signal, np.array([1]), 20, eta)


@pytest.mark.parametrize(("k", "t"), [(0, 1), (1, 0), (1, 2), (256, 1), (True, 1), (5.0, 1), (5, None), (-1, -1)])
def test_odd_sizes_of_a_slate_are_refused(k, t) -> None:
    with pytest.raises(InvalidMessage):
        Request(SMALL, k, t)


def test_a_request_without_a_signal_is_refused() -> None:
    with pytest.raises(InvalidMessage):
        Request([1, 2, 3])  # type: ignore[arg-type]


def test_a_server_refuses_what_does_not_fit_it() -> None:
    request = Request(SMALL, 5, 1)
    assert request.require(dimension=3) is request
    with pytest.raises(InvalidMessage, match="38"):
        request.require(dimension=38)
    with pytest.raises(InvalidMessage, match="at most 4"):
        request.require(dimension=3, most_k=4)
    simulated = Request(message_of(Signal, np.array([1, 2, 3]), 20, TENTH, simulated=True))
    assert simulated.require(dimension=3) is simulated
    with pytest.raises(InvalidMessage, match="simulated"):
        simulated.require(dimension=3, simulated=False)


# --- JSON


def test_json_has_the_same_fields_and_comes_back() -> None:
    request = Request(SMALL, 5, 2)
    written = json.loads(json.dumps(request.to_json()))
    assert written == {
        "version": 1,
        "simulated": False,
        "empty": False,
        "grid_bits": 20,
        "eta": [1, 10],
        "steps": [1, -2, 70_000],
        "k": 5,
        "t": 2,
    }
    assert Request.from_json(written) == request
    assert Signal.from_json(SMALL.to_json()) == SMALL


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": True},
        {"simulated": 0},
        {"empty": True},  # with steps
        {"grid_bits": 31},
        {"grid_bits": 20.0},
        {"eta": 0.1},
        {"eta": [1]},
        {"eta": [2, 20]},
        {"eta": [1, 0]},
        {"eta": [1.0, 10]},
        {"eta": [1, 1 << 32]},
        {"steps": []},
        {"steps": "1"},
        {"steps": [0.5]},
        {"steps": [float("nan")]},
        {"steps": [True]},
        {"steps": [MOST_STEPS + 1]},
        {"steps": [10**40]},
        {"k": 0},
        {"t": 6},
        {"t": 0},
        {"k": "5"},
        {"extra": 1},
    ],
    ids=str,
)
def test_json_that_is_no_request_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidMessage):
        Request.from_json({**Request(SMALL, 5, 2).to_json(), **change})


@pytest.mark.parametrize("missing", list(Request(SMALL).to_json()))
def test_every_field_is_needed(missing: str) -> None:
    written = Request(SMALL).to_json()
    del written[missing]
    with pytest.raises(InvalidMessage):
        Request.from_json(written)


@pytest.mark.parametrize("value", [None, [], "text", 5])
def test_json_must_be_an_object(value: object) -> None:
    with pytest.raises(InvalidMessage):
        Request.from_json(value)
    with pytest.raises(InvalidMessage):
        Signal.from_json(value)


# --- nothing is shown


def test_neither_texts_nor_errors_show_the_steps() -> None:
    signal = message_of(Signal, np.array([SECRET, 2, 3]), 20, TENTH)
    assert str(SECRET) not in repr(signal) + str(signal) + repr(Request(signal))
    attempts = [
        lambda: Request(signal).require(dimension=38),
        lambda: message_of(Signal, np.array([SECRET * 10_000, 2]), 20, TENTH),
        lambda: message_of(Signal, np.array([SECRET + 0.5]), 20, TENTH),
        lambda: message_of(Signal, np.array([SECRET]), 20, TENTH, empty=True),
        lambda: Signal.from_json({**signal.to_json(), "steps": [SECRET, 0.5]}),
        lambda: Request.from_bytes(Request(signal).to_bytes()[:-1]),
        lambda: Signal.from_release(VectorLaplace(1, 1.0).release([0.0]), TENTH),
    ]
    for attempt in attempts:
        with pytest.raises((InvalidMessage, InvalidParameter)) as problem:
            attempt()
        assert str(SECRET) not in str(problem.value)
        assert str(SECRET * 10_000) not in str(problem.value)


# --- eta


@pytest.mark.parametrize(
    ("eta", "exact"),
    [
        (0.1, Fraction(1, 10)),
        (0.3, Fraction(3, 10)),
        (1, Fraction(1)),
        (10, Fraction(10)),
        (1e-3, Fraction(1, 1000)),
        ("0.1", Fraction(1, 10)),
        (Decimal("0.05"), Fraction(1, 20)),
        (Fraction(1, 3), Fraction(1, 3)),
        (np.float64(0.1), Fraction(1, 10)),
    ],
)
def test_eta_is_the_decimal_that_was_written(eta, exact: Fraction) -> None:
    assert exact_eta(eta) == exact


@pytest.mark.parametrize(
    "eta",
    [
        0.0,
        -0.1,
        11,
        9e-4,
        float("nan"),
        float("inf"),
        True,
        None,
        "ten",
        "1/0",
        1 / 3,
        np.float32(0.1),
        [0.1],
        Decimal("NaN"),
        "1e-999999999999",
        Decimal("1e999999"),
    ],
)
def test_an_eta_that_the_wire_cannot_say_is_refused(eta) -> None:
    with pytest.raises(InvalidParameter, match="eta"):
        exact_eta(eta)
