"""Mapped tables: the same as those that are read, shared, never written to, and refused where they are damaged."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidModel
from tacit.models.tables import Tables, build_tables
from tacit.server.multi_selection import MultiSelection
from tests.unit.server.small_store import random_features, signal_of, small_store

STORE = small_store()
TABLES = build_tables(STORE.scorer, STORE.look_alikes, store_version=STORE.version)
NAMES = [name for name in Tables.__dataclass_fields__ if name not in ("version", "r", "scale")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    TABLES.save(tmp_path / "tables.safetensors")
    return tmp_path / "tables.safetensors"


def load(file: Path, *, mapped: bool = True) -> Tables:
    return Tables.load(file, TABLES.version, mapped=mapped)


def test_mapped_tables_equal_those_that_are_read(file: Path) -> None:
    mapped, plain = load(file), load(file, mapped=False)
    assert (mapped.version, mapped.r, mapped.scale) == (plain.version, plain.r, plain.scale)
    for name in NAMES:
        one, other = getattr(mapped, name), getattr(plain, name)
        assert (one.dtype, one.shape) == (other.dtype, other.shape), name
        assert np.array_equal(one, other), name
    assert mapped.bytes == plain.bytes


@pytest.mark.parametrize("compiled", [False, None])
def test_they_answer_the_same(file: Path, compiled: bool | None) -> None:
    signal = signal_of(random_features(1, seed=4)[0])
    answers = [
        MultiSelection(STORE, "exact", "ridge", tables=tables, compiled=compiled).answer(signal)
        for tables in (TABLES, load(file), load(file, mapped=False))
    ]
    assert answers[0] == answers[1] == answers[2]


def test_they_stay_in_the_file_and_take_no_memory_of_their_own(file: Path) -> None:
    mapped = load(file)
    for name in NAMES:
        base = getattr(mapped, name)
        while isinstance(base.base, np.ndarray):
            base = base.base
        assert isinstance(base, np.memmap), name
    assert not isinstance(load(file, mapped=False).utilities.base, np.memmap)


def test_the_pages_of_the_file_cannot_be_changed_through_them(file: Path) -> None:
    before, mapped = file.read_bytes(), load(file)
    mapped.utilities[:] = 0
    mapped.features[:] = -1.0
    del mapped
    assert file.read_bytes() == before
    assert np.array_equal(load(file).utilities, TABLES.utilities)


def test_a_file_that_was_replaced_or_deleted_does_not_touch_those_who_have_it_open(file: Path) -> None:
    mapped = load(file)
    other = file.with_name("other")
    other.write_bytes(b"\0" * 100)
    os.replace(other, file)
    assert np.array_equal(mapped.utilities, TABLES.utilities)
    file.unlink()
    assert np.array_equal(mapped.exact, TABLES.exact)


def parts_of(content: bytes) -> tuple[dict[str, Any], bytes]:
    start = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:start]), content[start:]


def joined(header: object, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def with_header(**changes: Any) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        header, data = parts_of(content)
        return joined(header | changes, data)

    return change


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"short",
        lambda content: content[:-1],
        lambda content: content[: len(content) // 2],
        lambda content: b"\xff" * 8 + content[8:],
        lambda content: b"\0" * 8 + content[8:],
        lambda content: joined([], b""),
        lambda content: joined({}, b""),
        lambda content: joined({"__metadata__": None}, b""),
        lambda content: joined({"__metadata__": {"tables": "[]"}}, b""),
        lambda content: joined({"__metadata__": {"tables": "{}"}}, b""),
        with_header(__metadata__={}),
        with_header(features={"dtype": "F64", "shape": [80, 10], "data_offsets": [0, 6400]}),
        with_header(features={"dtype": "F32", "shape": [80, 11], "data_offsets": [0, 3200]}),
        with_header(features={"dtype": "F32", "shape": [80, 10], "data_offsets": [-3200, -1]}),
        with_header(features={"dtype": "F32", "shape": [80, 10], "data_offsets": [10**12, 10**12 + 3200]}),
        with_header(features={"dtype": "F32", "shape": [80, 10]}),
        with_header(features=None),
        with_header(surplus={"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}),
        with_header(scale={"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}),
    ],
)
def test_what_is_not_whole_is_refused_when_it_is_opened(file: Path, damage: Callable[[bytes], bytes]) -> None:
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(InvalidModel, match="build them again"):
        load(file)


@pytest.mark.parametrize("name", [*NAMES, "scale"])
def test_one_changed_byte_of_any_array_is_found(file: Path, name: str) -> None:
    content = file.read_bytes()
    header, data = parts_of(content)
    place = len(content) - len(data) + header[name]["data_offsets"][0]
    file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with pytest.raises(InvalidModel, match="build them again"):
        load(file)


def test_tables_of_another_model_and_missing_ones_are_told_apart(file: Path) -> None:
    with pytest.raises(InvalidModel, match="another model"):
        Tables.load(file, "other/r=60", mapped=True)
    with pytest.raises(FileNotFoundError):
        load(file.with_name("none"))
