"""Messages that nobody should send: random, mutated, truncated, absurd. Each gets its problem, and the worker lives on."""

import json
import struct
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.service.conftest import Running
from tests.integration.service.talking import (
    BINARY,
    IMPRESSIONS,
    JSON,
    MULTI_SELECTION,
    OFFERS,
    PROBLEM,
    impression,
    offer_from,
    outcome_of,
    request_of,
    require_problem,
)

ENGAGEMENTS = "/v1/private-selection/engagements"
FEW = settings(max_examples=150, deadline=None, derandomize=True, database=None)
REFUSED = {400, 413, 415, 422}
VALID: dict[str, dict[str, Any]] = {
    MULTI_SELECTION: request_of().to_json(),
    OFFERS: {"version": 1, "context": "", "consent": 1},
    IMPRESSIONS: impression("0" * 32, "31"),
    ENGAGEMENTS: {"version": 1, "token": "0" * 32, "bit": 1, "epsilon": 1.0},
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def client(running: Running) -> Iterator[httpx.Client]:
    workers = running.service.workers()
    with running.client() as client:
        yield client
    assert running.service.workers() == workers, "a worker died, and another one took its place"


def sent(client: httpx.Client, path: str, content: bytes, kind: str = JSON) -> httpx.Response:
    """The answer, which is a message or a problem and never an error of the server's own."""
    answer = client.post(path, content=content, headers={"Content-Type": kind})
    assert answer.status_code in {200, 204} | REFUSED, (answer.status_code, content[:200])
    if answer.status_code in REFUSED:
        assert answer.headers["content-type"] == PROBLEM
        assert answer.json()["status"] == answer.status_code
    return answer


@FEW
@given(content=st.binary(max_size=400))
def test_random_bytes_are_no_message(client: httpx.Client, content: bytes) -> None:
    assert sent(client, MULTI_SELECTION, content, BINARY).status_code == 422
    assert sent(client, MULTI_SELECTION, content, JSON).status_code in REFUSED


@FEW
@given(data=st.data())
def test_a_message_with_some_bytes_changed_is_answered_or_refused(client: httpx.Client, data: st.DataObject) -> None:
    content = bytearray(request_of(3).to_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, 20) | st.integers(0, len(content) - 1))  # most of them in the header
        content[place] = data.draw(st.integers(0, 255))
    sent(client, MULTI_SELECTION, bytes(content), BINARY)


@FEW
@given(
    header=st.tuples(
        st.sampled_from([0x5301, 0x5302, 0]),
        st.integers(0, 255),
        st.integers(-128, 127),
        st.integers(0, 2**32 - 1) | st.integers(0, 3),
        st.integers(0, 2**32 - 1) | st.integers(0, 3),
        st.sampled_from([0, 1, 37, 38, 39, 65_535]),
        st.integers(0, 255),
        st.integers(0, 255),
    ),
    body=st.sampled_from([0, 1, 38, 39, 65_535]),
)
def test_a_header_with_any_numbers_is_answered_or_refused(
    client: httpx.Client, header: tuple[int, ...], body: int
) -> None:
    sent(client, MULTI_SELECTION, struct.pack("<HBbIIHBB", *header) + bytes(4 * body), BINARY)


def test_a_message_that_is_cut_or_too_long_is_refused_at_every_length(client: httpx.Client) -> None:
    whole = request_of(4).to_bytes()
    for length in (*range(0, len(whole), 7), len(whole) - 1):
        require_problem(sent(client, MULTI_SELECTION, whole[:length], BINARY), 422, "invalid-message")
    require_problem(sent(client, MULTI_SELECTION, whole + b"\0", BINARY), 422, "invalid-message")
    assert sent(client, MULTI_SELECTION, whole, BINARY).status_code == 200


def test_a_huge_number_of_features_is_refused_before_anything_is_worked_out(client: httpx.Client) -> None:
    huge = request_of(5, dimension=65_535)
    for content, kind in ((huge.to_bytes(), BINARY), (json.dumps(huge.to_json()).encode(), JSON)):
        problem = require_problem(sent(client, MULTI_SELECTION, content, kind), 422, "invalid-message")
        assert "38 numbers" in problem["detail"]


@FEW
@given(path=st.sampled_from(sorted(VALID)), value=VALUES)
def test_any_other_json_is_refused(client: httpx.Client, path: str, value: object) -> None:
    content = json.dumps(value).encode()  # also NaN and infinities, which are no JSON
    assert sent(client, path, content).status_code in REFUSED


@FEW
@given(path=st.sampled_from(sorted(VALID)), data=st.data())
def test_json_with_a_member_of_another_kind_is_answered_or_refused(
    client: httpx.Client, path: str, data: st.DataObject
) -> None:
    message = dict(VALID[path])
    name = data.draw(st.sampled_from(sorted(message)))
    if data.draw(st.booleans()):
        message[name] = data.draw(VALUES)
        sent(client, path, json.dumps(message).encode())
    else:
        del message[name]
        assert sent(client, path, json.dumps(message).encode()).status_code == 422


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"[" * 100_000,
        b"[" * 900 + b"]" * 900,
        b'{"a":' * 1000 + b"1" + b"}" * 1000,
        b'{"version":1,"context":"\\ud800","consent":0}',
        b'{"version":1,"context":"\xed\xa0\x80","consent":0}',
        b'{"version":1,"context":"\xff","consent":0}',
        b'{"version":1,"context":"\x00","consent":0}',
        b'{"version":NaN,"context":"","consent":0}',
        b'{"version":1,"context":"","consent":Infinity}',
        b'{"version":1e400,"context":"","consent":0}',
        b'{"version":1.0,"context":"","consent":0}',
        b'{"version":true,"context":"","consent":0}',
        b'{"version":1,"context":"","consent":2}',
        b'{"version":1,"version":2,"context":"","consent":0}',
        b'{"version":1,"context":"","consent":0,"__proto__":{}}',
        b'{"version":1,"context":"","consent":' + b"9" * 5000 + b"}",
        b"\xef\xbb\xbf" + b'{"version":1,"context":"","consent":0}',
        b'{"version":1,"context":"","consent":0} {}',
    ],
    ids=lambda content: content[:45].decode("latin-1"),
)
def test_odd_json_is_refused_and_not_shown(client: httpx.Client, content: bytes) -> None:
    answer = sent(client, OFFERS, content)
    assert answer.status_code in (400, 422)
    assert len(answer.content) < 400


def test_a_name_that_stands_twice_cannot_be_counted_twice(client: httpx.Client) -> None:
    """Readers differ in which of the two they take: whichever it is, the token stands for one report."""
    offer = offer_from(client)
    first, second = offer.items[:2]
    content = f'{{"version":1,"token":"{offer.token}","items":["{first}"],"items":["{second}"]}}'.encode()
    answer = sent(client, IMPRESSIONS, content)
    counted = answer.status_code == 200 and answer.json()["outcome"] == "ok"
    later = [outcome_of(client, offer.token, item) for item in (first, second)]
    assert later == ["conflict", "duplicate"] if counted else sorted(later) == ["conflict", "ok"]
