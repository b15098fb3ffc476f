"""The messages of secure sums: what is written is read, and nothing else is."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InvalidMessage
from tacit.messages.federated_prototypes.frame import open_frame, sign
from tacit.messages.federated_prototypes.secure_sum import (
    MaskedUpload,
    PublicKeys,
    SealedShares,
    UnmaskingShares,
    pack,
    unpack,
)
from tacit.models.secure_sum import SHARE_BYTES, SumSession, new_private, public_of
from tests.unit.server.secure_runs import key_of, names, session_of

THREE = names(3)
SESSION = session_of(3, 3)
KEY = key_of("e00")
KEYS = PublicKeys("e00", public_of(b"s" * 32), (public_of(b"a" * 32), public_of(b"b" * 32)), (b"c" * 32, b"d" * 32))
SHARES = SealedShares("e00", {name: bytes([place]) * SESSION.parcel_bytes for place, name in enumerate(THREE)})
MASKED = MaskedUpload("e00", "gram", np.array([0, 1, 2**64 - 1], dtype=np.uint64))
UNMASK = UnmaskingShares("e00", "gram", {name: bytes([place]) * SHARE_BYTES for place, name in enumerate(THREE)})
MESSAGES: dict[str, tuple[bytes, Callable[[SumSession, bytes], Any]]] = {
    "keys": (KEYS.signed(SESSION, KEY), PublicKeys.read),
    "shares": (SHARES.signed(SESSION, KEY), lambda session, data: SealedShares.read(session, data, THREE)),
    "masked": (
        MASKED.signed(SESSION, KEY, THREE),
        lambda session, data: MaskedUpload.read(session, data, "gram", THREE, 3),
    ),
    "unmask": (
        UNMASK.signed(SESSION, KEY, THREE),
        lambda session, data: UnmaskingShares.read(session, data, "gram", THREE, THREE),
    ),
}
each = pytest.mark.parametrize("kind", MESSAGES)


def test_what_was_written_is_read() -> None:
    assert PublicKeys.read(SESSION, MESSAGES["keys"][0]) == KEYS
    assert SealedShares.read(SESSION, MESSAGES["shares"][0], reversed(THREE)) == SHARES
    masked = MaskedUpload.read(SESSION, MESSAGES["masked"][0], "gram", THREE, 3)
    assert (masked.entity, masked.upload, masked.values.tolist()) == ("e00", "gram", [0, 1, 2**64 - 1])
    assert UnmaskingShares.read(SESSION, MESSAGES["unmask"][0], "gram", THREE, THREE) == UNMASK


@each
def test_other_kinds_runs_and_signers_are_refused(kind: str) -> None:
    data, read = MESSAGES[kind]
    for other in MESSAGES:
        if other != kind:
            with pytest.raises(InvalidMessage):
                read(SESSION, MESSAGES[other][0])
    with pytest.raises(InvalidMessage, match="run"):
        read(session_of(3, 3, run="77" * 32), data)
    frame = open_frame(data)
    for signer in ("e01", "server"):
        with pytest.raises(InvalidMessage, match="signature"):
            read(SESSION, sign(key_of(signer), frame.header, frame.arrays))
    with pytest.raises(InvalidMessage, match="not an entity of this run"):
        read(SESSION, sign(key_of("e09"), {**frame.header, "entity": "e09"}, frame.arrays))
    with pytest.raises(InvalidMessage, match="signature"):  # in the name of another
        read(SESSION, sign(KEY, {**frame.header, "entity": "e01"}, frame.arrays))


@each
def test_a_member_that_is_missing_unknown_or_of_another_kind_is_refused(kind: str) -> None:
    data, read = MESSAGES[kind]
    frame = open_frame(data)
    headers: list[Mapping[str, Any]] = [{**frame.header, "more": 1}]
    for name in frame.header:
        headers.append({key: value for key, value in frame.header.items() if key != name})
        headers += [{**frame.header, name: wrong} for wrong in (None, 1, [], {}, "x", ["x"], "00" * 32)]
    for header in headers:
        with pytest.raises(InvalidMessage):
            read(SESSION, sign(KEY, header, frame.arrays))
    extra = {**frame.arrays, "more": np.zeros(1, dtype=np.uint8)}
    with pytest.raises(InvalidMessage):
        read(SESSION, sign(KEY, frame.header, extra))
    if frame.arrays:
        with pytest.raises(InvalidMessage):
            read(SESSION, sign(KEY, frame.header))
        cut = {name: values[:-1] for name, values in frame.arrays.items()}
        with pytest.raises(InvalidMessage):
            read(SESSION, sign(KEY, frame.header, cut))


@each
def test_any_changed_byte_is_noticed(kind: str) -> None:
    data, read = MESSAGES[kind]
    for place in range(0, len(data), max(1, len(data) // 97)):
        changed = bytearray(data)
        changed[place] ^= 1
        with pytest.raises(InvalidMessage):
            read(SESSION, bytes(changed))
    for length in range(0, len(data), max(1, len(data) // 41)):
        with pytest.raises(InvalidMessage):
            read(SESSION, data[:length])


def test_messages_are_read_for_one_purpose_only() -> None:
    with pytest.raises(InvalidMessage, match="not for the entities"):
        SealedShares.read(SESSION, MESSAGES["shares"][0], THREE[:2])
    with pytest.raises(InvalidMessage, match="upload"):
        MaskedUpload.read(SESSION, MESSAGES["masked"][0], "popularity", THREE, 3)
    with pytest.raises(InvalidMessage, match="sharers"):
        MaskedUpload.read(SESSION, MESSAGES["masked"][0], "gram", THREE[:2], 3)
    with pytest.raises(InvalidMessage, match="shape"):
        MaskedUpload.read(SESSION, MESSAGES["masked"][0], "gram", THREE, 4)
    with pytest.raises(InvalidMessage, match="upload"):
        UnmaskingShares.read(SESSION, MESSAGES["unmask"][0], "popularity", THREE, THREE)
    with pytest.raises(InvalidMessage, match="survivors"):
        UnmaskingShares.read(SESSION, MESSAGES["unmask"][0], "gram", THREE[:2], THREE)
    with pytest.raises(InvalidMessage, match="shape"):
        UnmaskingShares.read(SESSION, MESSAGES["unmask"][0], "gram", THREE, THREE[:2])


def test_a_key_for_two_purposes_or_none_is_refused() -> None:
    masking = KEYS.masking
    for keys in (
        PublicKeys("e00", masking[0], masking, KEYS.commitments),
        PublicKeys("e00", KEYS.sealing, (masking[0], masking[0]), KEYS.commitments),
        PublicKeys("e00", KEYS.sealing, masking[:1], KEYS.commitments),
        PublicKeys("e00", KEYS.sealing, masking, (*KEYS.commitments, b"e" * 32)),
        PublicKeys("e00", bytes(32), masking, KEYS.commitments),
        PublicKeys("e00", KEYS.sealing, (masking[0], bytes(32)), KEYS.commitments),
    ):
        with pytest.raises(InvalidMessage):
            PublicKeys.read(SESSION, keys.signed(SESSION, KEY))


def test_messages_show_no_shares() -> None:
    assert "parcels" not in repr(SHARES)
    assert "shares" not in repr(UNMASK)
    assert "values" not in repr(MASKED)


@given(st.dictionaries(st.text(max_size=5), st.binary(max_size=20), max_size=6))
def test_packed_names_come_back(parts: dict[str, bytes]) -> None:
    parts = {
        name: part for name, part in parts.items() if json.dumps(name).isascii() and "\\ud" not in json.dumps(name)
    }
    assert unpack(pack(parts)) == parts


@given(st.binary(max_size=60))
def test_bytes_that_are_no_packed_names_are_refused_and_nothing_else_happens(data: bytes) -> None:
    try:
        parts = unpack(data)
    except InvalidMessage:
        return
    assert pack(parts) == data


def test_names_out_of_order_or_twice_are_refused() -> None:
    one, two = pack({"a": b"x"}), pack({"b": b""})
    assert unpack(one + two) == {"a": b"x", "b": b""}
    for data in (two + one, one + one, one[:-1], one + b"\0", one + pack({"b": b""})[:5], b"\1\0\0\0\xff\0\0\0\0"):
        with pytest.raises(InvalidMessage):
            unpack(data)


def test_private_keys_stay_out_of_messages() -> None:
    private = new_private()
    data = PublicKeys("e00", public_of(private), KEYS.masking, KEYS.commitments).signed(SESSION, KEY)
    assert private not in data
    assert private.hex().encode() not in data
