"""The reply of an entity: read as a whole or refused as a whole, with a code; its size follows from public numbers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.messages.federated_prototypes import Code, Manifest, Refused, Reply, open_frame, sign
from tacit.messages.federated_prototypes.replies import entry_of, most_bytes, read_reply, read_sender
from tests.unit.federated_world import ITEMS, World, key_of, resigned

Arrays = dict[str, NDArray[Any]]


def sparse_arrays(manifest: Manifest) -> Arrays:
    k, picked = manifest.k or 0, manifest.picked or 0
    index = np.tile(np.arange(picked, dtype=np.uint32) * 2, (k, 1))
    return {
        "sizes": np.linspace(-1.0, 20.0, k).astype(np.float32),
        "index": index,
        "values": np.full((k, picked), 2.5, dtype=np.float32),
    }


def dense_arrays(manifest: Manifest) -> Arrays:
    k = manifest.k or 0
    return {"sizes": np.ones(k, dtype=np.float32), "values": np.full((k, ITEMS), 1.0, dtype=np.float32)}


GRID = World(Path(), "grid", receivers=("z",)).manifest
TREE = World(Path(), "tree").manifest
OPEN = World(Path(), "moments", aggregation="none").manifest
GOOD = Reply("prototypes", "a", entry_of(GRID, "prototypes", "a"), sparse_arrays(GRID)).signed(key_of("a"), GRID)


def code_of(data: bytes, manifest: Manifest = GRID) -> str:
    try:
        frame, _, _ = read_sender(data, manifest)
        read_reply(frame, manifest)
    except Refused as refusal:
        return refusal.reason.value
    return "accepted"


def changed(header: dict[str, Any] | None = None, **arrays: Any) -> bytes:
    return resigned(GOOD, key_of("a"), header, arrays or None)


def test_a_good_reply_is_read_as_it_was_written() -> None:
    frame, sender, stage = read_sender(GOOD, GRID)
    reply = read_reply(frame, GRID)
    assert (sender, stage, reply.sender, reply.stage) == ("a", "prototypes", "a", "prototypes")
    for name, values in sparse_arrays(GRID).items():
        assert np.array_equal(reply.arrays[name], values)


def test_what_a_reply_says_is_this_and_nothing_else() -> None:
    """No number of users, no loss, no time."""
    frame = open_frame(GOOD)
    expected = {"kind", "version", "run", "catalogue", "stage", "from", "mechanism", "epsilon", "delta", "entry"}
    assert set(frame.header) == expected
    assert set(frame.arrays) == {"sizes", "index", "values"}


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ({"version": "fp/2"}, Code.UNKNOWN_VERSION),
        ({"version": 1}, Code.UNKNOWN_VERSION),
        ({"run": "0" * 64}, Code.OTHER_RUN),
        ({"run": None}, Code.OTHER_RUN),
        ({"catalogue": "0" * 64}, Code.WRONG_CATALOGUE),
        ({"from": "nobody"}, Code.UNKNOWN_ENTITY),
        ({"from": ["a"]}, Code.UNKNOWN_ENTITY),
        ({"from": "b"}, Code.WRONG_SIGNATURE),  # another's name
        ({"stage": "gram"}, Code.UNKNOWN_STAGE),
        ({"stage": None}, Code.UNKNOWN_STAGE),
        ({"stage": ["prototypes"]}, Code.UNKNOWN_STAGE),
        ({"kind": "step"}, Code.MALFORMED),
        ({"users": 40}, Code.MALFORMED),
        ({"mechanism": "tree"}, Code.WRONG_TERMS),
        ({"epsilon": 1.0}, Code.WRONG_TERMS),
        ({"epsilon": 8}, Code.WRONG_TERMS),  # not the number that was stated
        ({"delta": 1e-6}, Code.WRONG_TERMS),
        ({"entry": ""}, Code.WRONG_TERMS),
        ({"entry": "another"}, Code.WRONG_TERMS),
    ],
    ids=str,
)
def test_a_header_that_is_not_of_this_run_is_refused(header: dict[str, Any], code: Code) -> None:
    assert code_of(changed(header)) == code.value


def with_value(name: str, place: tuple[int, ...], value: float) -> NDArray[Any]:
    arrays = sparse_arrays(GRID)[name].copy()
    arrays[place] = value
    return arrays


@pytest.mark.parametrize(
    ("arrays", "code"),
    [
        ({"sizes": np.ones(4, dtype=np.float32)}, Code.WRONG_SHAPE),
        ({"sizes": np.ones(3, dtype=np.float64)}, Code.WRONG_SHAPE),
        ({"values": np.ones((3, 7), dtype=np.float32)}, Code.WRONG_SHAPE),
        ({"values": np.ones((8, 3), dtype=np.float32)}, Code.WRONG_SHAPE),
        ({"values": np.ones(24, dtype=np.float32)}, Code.WRONG_SHAPE),
        ({"index": np.zeros((3, 8), dtype=np.uint64)}, Code.WRONG_SHAPE),
        ({"more": np.ones(1, dtype=np.float32)}, Code.WRONG_SHAPE),
        ({"values": with_value("values", (0, 0), np.nan)}, Code.NOT_FINITE),
        ({"values": with_value("values", (2, 7), np.inf)}, Code.NOT_FINITE),
        ({"sizes": with_value("sizes", (1,), np.nan)}, Code.NOT_FINITE),
        ({"sizes": with_value("sizes", (1,), -np.inf)}, Code.NOT_FINITE),
        ({"index": with_value("index", (0, 7), ITEMS)}, Code.INDEX_RANGE),
        ({"index": with_value("index", (1, 7), 2**32 - 1)}, Code.INDEX_RANGE),
        ({"index": with_value("index", (0, 1), 0)}, Code.INDEX_REPEATED),
        ({"index": with_value("index", (0, 1), 9)}, Code.INDEX_REPEATED),  # out of order: a second way to write it
        ({"values": with_value("values", (0, 0), -1e-6)}, Code.VALUE_RANGE),
        ({"values": with_value("values", (0, 0), 5.001)}, Code.VALUE_RANGE),
    ],
    ids=str,
)
def test_prototypes_that_no_entity_could_have_released_are_refused(arrays: Arrays, code: Code) -> None:
    assert code_of(changed(**arrays)) == code.value


def test_the_value_bound_itself_and_negative_sizes_are_allowed() -> None:
    assert code_of(changed(values=with_value("values", (0, 0), 5.0))) == "accepted"
    assert code_of(changed(sizes=with_value("sizes", (0,), -40.0))) == "accepted"


def test_a_value_bound_that_floats_round_up_is_allowed_too() -> None:
    bound = 0.1  # as float32 it is larger
    manifest = replace(GRID, value_bound=bound)
    arrays = {**sparse_arrays(manifest), "values": np.full((3, 8), bound, dtype=np.float32)}
    reply = Reply("prototypes", "a", entry_of(manifest, "prototypes", "a"), arrays)
    assert code_of(reply.signed(key_of("a"), manifest), manifest) == "accepted"


def test_a_receiver_sends_nothing() -> None:
    reply = Reply("prototypes", "z", entry_of(GRID, "prototypes", "z"), sparse_arrays(GRID))
    assert code_of(reply.signed(key_of("z"), GRID)) == Code.RECEIVER.value


def test_the_form_follows_from_the_manifest() -> None:
    dense = Reply("prototypes", "a", entry_of(TREE, "prototypes", "a"), dense_arrays(TREE)).signed(key_of("a"), TREE)
    assert code_of(dense, TREE) == "accepted"
    everything = replace(GRID, picked=ITEMS)
    dense = Reply("prototypes", "a", entry_of(everything, "prototypes", "a"), dense_arrays(everything))
    assert code_of(dense.signed(key_of("a"), everything), everything) == "accepted"
    assert code_of(changed(values=np.ones((3, ITEMS), dtype=np.float32))) == Code.WRONG_SHAPE.value


def test_shares_are_whole_numbers_of_the_stated_length() -> None:
    for steps, code in (
        (np.zeros(ITEMS, dtype=np.int64), "accepted"),
        (np.zeros(ITEMS + 1, dtype=np.int64), "wrong-shape"),
        (np.zeros(ITEMS), "wrong-shape"),
        (np.zeros(ITEMS, dtype=np.uint64), "wrong-shape"),
    ):
        reply = Reply("popularity", "a", entry_of(OPEN, "popularity", "a"), {"steps": steps})
        assert code_of(reply.signed(key_of("a"), OPEN), OPEN) == code


def test_sizes_are_those_of_the_paper() -> None:
    """Sparse 8 k s + 4 k bytes, dense 4 k m + 4 k, beside a header of a few hundred."""
    for manifest, arrays, expected in (
        (GRID, sparse_arrays(GRID), 8 * 3 * 8 + 12),
        (TREE, dense_arrays(TREE), 12 * ITEMS + 12),
    ):
        data = Reply("prototypes", "a", entry_of(manifest, "prototypes", "a"), arrays).signed(key_of("a"), manifest)
        assert sum(values.nbytes for values in arrays.values()) == expected
        assert expected < len(data) < expected + 1000
        assert len(data) <= most_bytes(manifest, "prototypes")


def test_a_reply_that_is_too_long_is_not_even_parsed() -> None:
    assert code_of(GOOD + bytes(100_000)) == Code.MALFORMED.value
    assert code_of(sign(key_of("a"), {"x": "y" * 100_000})) == Code.MALFORMED.value


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_get_a_code_and_nothing_is_raised(data: bytes) -> None:
    assert code_of(data) == Code.MALFORMED.value
    assert code_of(GOOD[: len(data)]) == Code.MALFORMED.value


def test_no_flipped_bit_passes() -> None:
    seen = set()
    for place in range(len(GOOD)):
        for bit in (place % 8, (place + 3) % 8):
            flipped = bytearray(GOOD)
            flipped[place] ^= 1 << bit
            seen.add(code_of(bytes(flipped)))
    assert "accepted" not in seen
    assert {Code.MALFORMED.value, Code.WRONG_SIGNATURE.value} <= seen


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=3), one, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(open_frame(GOOD).header)), ANY)
def test_an_entity_that_signs_nonsense_gets_a_code(name: str, value: object) -> None:
    """A member that holds anything at all, under a good signature."""
    original = open_frame(GOOD).header[name]
    same = value == original and type(value) is type(original)
    assert (code_of(changed({name: value})) == "accepted") == same


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["sizes", "index", "values"]),
    st.sampled_from(["u1", "u4", "u8", "i8", "f4", "f8"]),
    st.lists(st.integers(0, 9), min_size=1, max_size=2),
    st.binary(min_size=1, max_size=16),
)
def test_so_does_one_that_signs_any_array(name: str, kind: str, shape: list[int], seed: bytes) -> None:
    count = int(np.prod(shape))
    values = np.frombuffer((seed * (8 * count + 1))[: count * int(kind[1:])], dtype=kind).reshape(shape)
    assert code_of(changed(**{name: values})) in {*Code, "accepted"}
