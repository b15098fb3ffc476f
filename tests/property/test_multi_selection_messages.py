"""Laws of multi-selection's messages: what is sent comes back, what is damaged is refused, no loss is understated."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidMessage
from tacit.mechanisms import VectorLaplace
from tacit.messages.multi_selection import LEAST_ETA, MOST_ETA, MOST_STEPS, ModelKind, Reply, Request, Signal
from tacit.models.multi_selection import LinearMap, PrincipalComponents
from tests.releases import message_of

steps = st.lists(st.integers(-MOST_STEPS, MOST_STEPS), min_size=1, max_size=40)
etas = st.fractions(LEAST_ETA, MOST_ETA, max_denominator=4 * 10**8)  # the numerator then has 32 bits too
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def signals(draw: st.DrawFn) -> Signal:
    eta, bits = draw(etas), draw(st.integers(0, 30))
    if draw(st.booleans()):
        return Signal.nothing(draw(st.integers(1, 40)), eta, bits)
    return message_of(Signal, np.array(draw(steps)), bits, eta, simulated=draw(st.booleans()))


@st.composite
def requests(draw: st.DrawFn) -> Request:
    k = draw(st.integers(1, 255))
    return Request(draw(signals()), k, draw(st.integers(1, k)))


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    k, dimension = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    items = draw(st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=k, unique=True))
    kind = draw(st.sampled_from(ModelKind))
    if kind in (ModelKind.NONE, ModelKind.NETWORK):
        return Reply.of(items, k, "none" if kind is ModelKind.NONE else "network", dimension)
    half = kind is ModelKind.LINEAR_MAP_HALF
    numbers = st.floats(-60_000, 60_000) if half else floats
    columns = draw(st.integers(1, 4)) if kind is ModelKind.PRINCIPAL_COMPONENTS else 1 + dimension
    rows = len(items) + (1 + dimension if kind is ModelKind.PRINCIPAL_COMPONENTS else 0)
    table = np.array(draw(st.lists(numbers, min_size=rows * columns, max_size=rows * columns))).reshape(rows, columns)
    if kind is ModelKind.PRINCIPAL_COMPONENTS:
        model = PrincipalComponents(table, len(items))
        return Reply.of(items, k, model, dimension, components=draw(st.integers(0, 5)))
    return Reply.of(items, k, LinearMap(table), dimension, half=half)


@settings(deadline=None)
@given(requests())
def test_a_request_comes_back_as_it_was_sent(request: Request) -> None:
    content = request.to_bytes()
    assert len(content) == 16 + 4 * request.signal.dimension
    for again in (Request.from_bytes(content), Request.from_json(json.loads(json.dumps(request.to_json())))):
        assert again == request
        assert again.to_bytes() == content
        assert again.signal.guarantee == request.signal.guarantee
    assert Signal.from_bytes(request.signal.to_bytes()) == request.signal


@settings(deadline=None)
@given(replies())
def test_a_reply_comes_back_as_it_was_sent(reply: Reply) -> None:
    content = reply.to_bytes()
    assert len(content) == Reply.size(reply.kind, reply.k, reply.dimension, reply.components)
    for again in (Reply.from_bytes(content), Reply.from_json(json.loads(json.dumps(reply.to_json())))):
        assert again == reply
        assert again.to_bytes() == content


@settings(deadline=None)
@given(st.one_of(requests(), replies()), st.data())
def test_a_part_of_a_message_is_no_message(message: Request | Reply, data: st.DataObject) -> None:
    content = message.to_bytes()
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(InvalidMessage):
        type(message).from_bytes(content[:cut])
    with pytest.raises(InvalidMessage):
        type(message).from_bytes(content + data.draw(st.binary(min_size=1, max_size=8)))


@settings(deadline=None)
@given(st.one_of(requests(), replies()), st.data())
def test_a_changed_byte_is_refused_or_is_another_message(message: Request | Reply, data: st.DataObject) -> None:
    """Never any other error, and never two sequences of bytes for one message."""
    content = bytearray(message.to_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    try:
        other = type(message).from_bytes(bytes(content))
    except InvalidMessage:
        return
    assert other != message
    assert other.to_bytes() == bytes(content)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_noise_on_the_line_is_no_message(content: bytes) -> None:
    for kind in (Request, Reply, Signal):
        try:
            read = kind.from_bytes(content)
        except InvalidMessage:
            continue
        assert read.to_bytes() == content


def json_values() -> st.SearchStrategy[object]:
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=3)
    )


@settings(deadline=None)
@given(st.one_of(requests(), replies()), st.data())
def test_a_changed_field_of_json_is_refused_or_is_another_message(
    message: Request | Reply, data: st.DataObject
) -> None:
    written = message.to_json()
    name = data.draw(st.sampled_from(sorted(written)))
    written[name] = data.draw(json_values())
    try:
        other = type(message).from_json(written)
    except InvalidMessage:
        return
    assert type(message).from_bytes(other.to_bytes()) == other


@settings(deadline=None)
@given(signals())
def test_what_a_message_promises_is_never_less_than_what_eta_costs(signal: Signal) -> None:
    guarantee = signal.guarantee
    if signal.empty:
        assert guarantee.epsilon == 0.0
        assert not signal.steps.any()
    elif signal.simulated:
        assert guarantee.promises_nothing
    else:
        assert Fraction(guarantee.epsilon) >= 1 / signal.eta
        assert Fraction(guarantee.rounding) >= Fraction(signal.dimension, 1 << signal.grid_bits)


@st.composite
def points(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Two grid vectors within 0 to 16, and an output."""
    size = draw(st.integers(1, 6))
    grid, wide = st.integers(0, 16), st.integers(-60, 60)
    return tuple(draw(st.lists(values, min_size=size, max_size=size)) for values in (grid, grid, wide))  # type: ignore[return-value]


@settings(deadline=None)
@given(points(), st.fractions(Fraction(1, 20), MOST_ETA, max_denominator=100))
def test_the_loss_is_at_most_the_grid_distance_over_eta_and_reaches_it(
    points: tuple[list[int], list[int], list[int]], eta: Fraction
) -> None:
    """ln P(y|z) - ln P(y|z') <= g |z - z'| / eta, with equality for y beyond both wherever they differ."""
    here, there, output = (np.array(point) for point in points)
    mechanism = VectorLaplace(len(here), eta, grid_bits=4)
    bound = float(Fraction(int(np.abs(here - there).sum()), 16) / eta)

    def loss(steps: np.ndarray) -> float:
        return float(mechanism.log_pmf(steps, here / 16) - mechanism.log_pmf(steps, there / 16))

    assert loss(output) <= bound + 1e-9
    beyond = np.where(here >= there, np.maximum(here, there) + 3, np.minimum(here, there) - 3)
    assert loss(beyond) == pytest.approx(bound, abs=1e-9)
    signal = message_of(Signal, beyond, 4, eta)
    assert loss(beyond) <= signal.guarantee.epsilon * float(np.abs(here - there).sum()) / 16 + 1e-9


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.lists(st.floats(0, 1), min_size=6, max_size=6), etas)
def test_the_promise_on_the_wire_covers_features_between_grid_points(
    here: list[float], other: list[float], eta: Fraction
) -> None:
    assume(eta >= Fraction(1, 20))
    there = other[: len(here)]
    mechanism = VectorLaplace(len(here), eta, grid_bits=3)
    signal = Signal.from_release(mechanism.release(here), eta)
    distance = float(np.abs(np.array(here) - there).sum())
    output = np.where(np.array(here) >= there, 40, -40)  # beyond both
    loss = float(mechanism.log_pmf(output, here) - mechanism.log_pmf(output, there))
    assert loss <= signal.guarantee.epsilon * (distance + signal.guarantee.rounding) + 1e-9
