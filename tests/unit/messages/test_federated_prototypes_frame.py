"""The signed frame: one way to write it, nothing but InvalidMessage for what is none, and not a bit that can be changed."""

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidMessage, InvalidParameter, MissingExtra
from tacit.messages.federated_prototypes.frame import (
    MAGIC,
    MOST_HEADER,
    SIGNATURE_BYTES,
    canonical_bytes,
    open_frame,
    public_of,
    sign,
)

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
ARRAYS = {"x": np.arange(6, dtype=np.uint64).reshape(2, 3), "y": np.array([1.5, -2.0], dtype=np.float32)}
DATA = sign(KEY, {"kind": "test", "number": 1.5}, ARRAYS)
START = len(MAGIC) + SIGNATURE_BYTES


def framed(header: bytes, rest: bytes = b"") -> bytes:
    """A frame with any header, unsigned."""
    return MAGIC + bytes(SIGNATURE_BYTES) + len(header).to_bytes(4, "little") + header + rest


def test_what_was_signed_is_read_again() -> None:
    frame = open_frame(DATA)
    frame.verify(public_of(KEY))
    assert frame.header == {"kind": "test", "number": 1.5}
    assert {name: values.tolist() for name, values in frame.arrays.items()} == {
        "x": [[0, 1, 2], [3, 4, 5]],
        "y": [1.5, -2.0],
    }
    assert frame.arrays["x"].dtype == np.uint64


def test_the_same_content_is_the_same_bytes_whatever_the_order_of_its_members() -> None:
    assert sign(KEY, {"number": 1.5, "kind": "test"}, ARRAYS) == DATA


def test_the_signature_is_the_one_of_the_standard() -> None:
    """RFC 8032, section 7.1, test 1: the key, and its public key."""
    secret = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    assert public_of(secret).hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


def test_another_key_has_not_signed_it() -> None:
    with pytest.raises(InvalidMessage, match="signature"):
        open_frame(DATA).verify(public_of(OTHER))


def test_no_single_bit_can_be_changed() -> None:
    for place in range(len(DATA)):
        for bit in (0, 5):
            changed = bytearray(DATA)
            changed[place] ^= 1 << bit
            with pytest.raises(InvalidMessage):
                open_frame(bytes(changed)).verify(public_of(KEY))


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_refused_by_the_one_error(data: bytes) -> None:
    for tried in (data, MAGIC + data, framed(data), DATA + data + b"x", DATA[: len(data)]):
        with pytest.raises(InvalidMessage):
            open_frame(tried)


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda one: st.lists(one, max_size=4)
    )
)
def test_any_description_of_arrays_is_read_or_refused(listed: object) -> None:
    try:
        header = canonical_bytes({"arrays": listed})
    except ValueError:
        return
    if listed == []:
        assert open_frame(framed(header)).arrays == {}
        return
    with pytest.raises(InvalidMessage):
        open_frame(framed(header, b"12345678"))


@pytest.mark.parametrize(
    "header",
    [
        b'{"arrays": []}',  # a space
        b'{"b":1,"arrays":[]}',  # another order
        b'{"arrays":[],"arrays":[]}',  # twice
        b'{"arrays":[],"x":NaN}',
        b'{"arrays":[],"x":1e999}',
        b'{"arrays":[],"x":1.0e0}',
        b'{"arrays":[],"x":"\xc3\xa9"}',
        b'{"arrays":[],"x":' + b"[" * 500 + b"]" * 500 + b"}",
        b'{"arrays":[],"x":' + b"9" * 5000 + b"}",
        b"[]",
        b"{}",
        b"",
    ],
)
def test_a_header_has_one_way_to_be_written(header: bytes) -> None:
    with pytest.raises(InvalidMessage):
        open_frame(framed(header))


@pytest.mark.parametrize(
    "listed",
    [
        [["x", "u8", [2]]],  # longer than what follows
        [["x", "u8", [0]]],  # shorter
        [["x", "u8", [2**32, 2**32]]],
        [["x", "u8", [-1]]],
        [["x", "u8", [1.0]]],
        [["x", "u8", [True]]],
        [["x", "O", [1]]],
        [["x", "f2", [4]]],
        [["x", "u8", [1, 1, 1]]],
        [["x", "u8", []]],
        [["x", "u4", [1]], ["x", "u4", [1]]],
        [["", "u8", [1]]],
        [["x", "u8"]],
        [["x", ["u8"], [1]]],
    ],
)
def test_arrays_fill_the_message_exactly(listed: object) -> None:
    with pytest.raises(InvalidMessage):
        open_frame(framed(canonical_bytes({"arrays": listed}), bytes(8)))


def test_a_frame_is_never_longer_than_is_asked_for() -> None:
    with pytest.raises(InvalidMessage, match="at most 10"):
        open_frame(DATA, 10)
    with pytest.raises(InvalidMessage):
        open_frame(framed(json.dumps({"arrays": [], "x": "x" * MOST_HEADER}).encode()))


def test_a_key_is_32_bytes_and_never_shown() -> None:
    for key in (b"short", KEY + b"x", "text"):
        with pytest.raises(InvalidParameter) as caught:
            sign(key, {})  # type: ignore[arg-type]
        assert "short" not in str(caught.value)


@pytest.mark.parametrize("values", [np.array(["x"]), np.array(1.0), np.array([1 + 2j]), np.array([object()])])
def test_only_plain_numbers_are_carried(values: np.ndarray) -> None:
    with pytest.raises(InvalidParameter):
        sign(KEY, {}, {"x": values})


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    for call in (lambda: sign(KEY, {}), lambda: public_of(KEY), lambda: open_frame(DATA).verify(bytes(32))):
        with pytest.raises(MissingExtra, match=r"tacit\[federated\]"):
            call()


def test_what_no_frame_carries_is_not_signed_and_not_opened() -> None:
    with pytest.raises(InvalidParameter, match="own member"):
        sign(bytes(32), {"kind": "step", "arrays": []})
    with pytest.raises(InvalidParameter, match="at most"):
        sign(bytes(32), {"kind": "x" * 10_000_000})
    for content in (None, "text", 7, [1, 2]):
        with pytest.raises(InvalidMessage, match="is bytes"):
            open_frame(content)  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage, match="arrays"):
        open_frame(sign(bytes(32), {"kind": "step"}, {f"a{number}": np.zeros(1) for number in range(100)}))
