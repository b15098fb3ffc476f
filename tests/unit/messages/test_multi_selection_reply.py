"""Replies: exact bytes, lengths that say nothing, short slates, and what a hostile server may not send."""

import json
import struct

import numpy as np
import pytest

from tacit.errors import InvalidMessage, InvalidParameter
from tacit.messages.multi_selection import ModelKind, Reply
from tacit.models.multi_selection import LinearMap, PrincipalComponents

MAP = LinearMap(np.array([[1.0, 0.5, -2.0], [0.25, 3.0, 4.0]]))


def small() -> Reply:
    return Reply.of([7, 300], 2, MAP, 2)


def bytes_of(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


def components(k: int, dimension: int, columns: int, rng: np.random.Generator) -> PrincipalComponents:
    return PrincipalComponents(rng.normal(size=(1 + dimension + k, columns)), k)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_a_small_reply_has_the_bytes_that_were_written_by_hand() -> None:
    # version 01 52 | linear map | k = 2 | 2 features | no components | items 7, 300 | six floats
    assert small().to_bytes() == bytes_of(
        "01 52 01 02 02 00 00 00"
        "07 00 00 00 00 00 00 00 2c 01 00 00 00 00 00 00"
        "00 00 80 3f 00 00 00 3f 00 00 00 c0 00 00 80 3e 00 00 40 40 00 00 80 40"
    )


def test_a_short_slate_has_the_bytes_that_were_written_by_hand() -> None:
    reply = Reply.of([7], 2, LinearMap(MAP.matrix[:1]), 2, half=True)
    # the highest bit of the kind says that the slate is short; its last item and row stand again
    assert reply.to_bytes() == bytes_of(
        "01 52 82 02 02 00 00 0007 00 00 00 00 00 00 00 07 00 00 00 00 00 00 0000 3c 00 38 00 c0 00 3c 00 38 00 c0"
    )


@pytest.mark.parametrize(
    ("kind", "k", "size"),
    [
        (ModelKind.LINEAR_MAP, 5, 828),
        (ModelKind.LINEAR_MAP_HALF, 5, 828 - 390),
        (ModelKind.PRINCIPAL_COMPONENTS, 5, 48 + 3520),
        (ModelKind.NONE, 5, 48),
        (ModelKind.NETWORK, 5, 48),
        (ModelKind.LINEAR_MAP, 1, 16 + 156),
    ],
)
def test_lengths_are_those_of_the_specification(kind: ModelKind, k: int, size: int) -> None:
    assert Reply.size(kind, k, 38, 20 if kind is ModelKind.PRINCIPAL_COMPONENTS else 0) == size


def replies(k: int, offered: int, rng: np.random.Generator) -> list[Reply]:
    items = rng.permutation(10_000)[:offered].tolist()
    matrix = LinearMap(rng.normal(size=(offered, 39)))
    return [
        Reply.of(items, k, matrix, 38),
        Reply.of(items, k, matrix, 38, half=True),
        Reply.of(items, k, components(offered, 38, 20, rng), 38),
        Reply.of(items, k, components(offered, 38, 7, rng), 38, components=20),
        Reply.of(items, k, "network", 38),
        Reply.of(items, k, "none", 38),
    ]


@pytest.mark.parametrize("offered", [1, 2, 5])
def test_lengths_do_not_depend_on_how_many_items_or_components_there_were(
    offered: int, rng: np.random.Generator
) -> None:
    for reply, full in zip(replies(5, offered, rng), replies(5, 5, rng), strict=True):
        assert len(reply.to_bytes()) == len(full.to_bytes()) == Reply.size(full.kind, 5, 38, full.components)
        assert reply.short == (offered < 5)


@pytest.mark.parametrize("offered", [1, 4, 5])
def test_replies_come_back_from_bytes_and_from_json(offered: int, rng: np.random.Generator) -> None:
    for reply in replies(5, offered, rng):
        for again in (
            Reply.from_bytes(reply.to_bytes()),
            Reply.from_json(json.loads(json.dumps(reply.to_json()))),
        ):
            assert again == reply
            assert again.to_bytes() == reply.to_bytes()
            assert (again.items, again.k, again.short) == (reply.items, reply.k, reply.short)
            assert len({again, reply}) == 1


def test_models_come_back_for_the_items_that_there_are(rng: np.random.Generator) -> None:
    features = rng.random(38)
    for offered in (3, 5):
        items = list(range(offered))
        matrix = LinearMap(rng.normal(size=(offered, 39)))
        found = Reply.from_bytes(Reply.of(items, 5, matrix, 38).to_bytes()).model
        assert isinstance(found, LinearMap)
        np.testing.assert_allclose(found.estimate(features), matrix.estimate(features), atol=1e-5)
        half = Reply.from_bytes(Reply.of(items, 5, matrix, 38, half=True).to_bytes()).model
        assert isinstance(half, LinearMap)
        np.testing.assert_allclose(half.estimate(features), matrix.estimate(features), atol=0.05)
        sent = components(offered, 38, 7, rng)
        padded = Reply.from_bytes(Reply.of(items, 5, sent, 38, components=20).to_bytes()).model
        assert isinstance(padded, PrincipalComponents)
        assert padded.basis.shape == (1 + 38 + offered, 20)
        np.testing.assert_allclose(padded.estimate(features), sent.estimate(features), atol=1e-4)
    assert Reply.of([1], 1, "network", 38).model is None
    assert Reply.of([1], 1, "none", 38).model is None


# --- what is refused

GOOD = small().to_bytes()


def changed(place: int, layout: str, value: float) -> bytes:
    content = bytearray(GOOD)
    struct.pack_into(layout, content, place, value)
    return bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        GOOD[:7],
        GOOD[:8],
        GOOD[:-1],
        GOOD + b"\0",
        changed(0, "<H", 0x5301),  # a request's version
        changed(2, "<B", 9),  # an unknown kind
        changed(2, "<B", 0x81),  # short, but it is not
        changed(2, "<B", 0),  # no model, but there is one
        changed(2, "<B", 3),  # components, but none are counted
        changed(3, "<B", 0),  # k = 0
        changed(3, "<B", 3),
        changed(4, "<H", 0),  # no features
        changed(4, "<H", 3),
        changed(6, "<H", 1),  # components of a linear map
        changed(16, "<Q", 7),  # an item twice
        changed(24, "<f", float("nan")),
        changed(24, "<f", float("inf")),
        changed(24, "<f", float("-inf")),
    ],
)
def test_bytes_that_are_no_reply_are_refused(content: bytes) -> None:
    with pytest.raises(InvalidMessage):
        Reply.from_bytes(content)


def test_only_bytes_are_read() -> None:
    for content in (None, "text", bytearray(GOOD)):
        with pytest.raises(InvalidMessage):
            Reply.from_bytes(content)  # type: ignore[arg-type]


def test_repeats_stand_at_the_end_and_are_of_the_last_item() -> None:
    def packed(items: list[int], rows: list[float], kind: int = 0x81) -> bytes:
        header = struct.pack("<HBBHH", 0x5201, kind, len(items), 1, 0)
        return header + struct.pack(f"<{len(items)}Q", *items) + struct.pack(f"<{2 * len(rows)}f", *np.repeat(rows, 2))

    assert Reply.from_bytes(packed([1, 2, 2], [5.0, 6.0, 6.0])).items == (1, 2)
    for items, rows in (
        ([1, 1, 2], [5.0, 5.0, 6.0]),
        ([1, 2, 1], [5.0, 6.0, 5.0]),
        ([1, 2, 2], [5.0, 6.0, 7.0]),  # the row of a repeat says something else
        ([1, 2, 3], [5.0, 6.0, 7.0]),
    ):
        with pytest.raises(InvalidMessage):
            Reply.from_bytes(packed(items, rows))
    with pytest.raises(InvalidMessage):
        Reply.from_bytes(packed([1, 2, 2], [5.0, 6.0, 6.0], kind=1))  # repeats without the flag
    assert Reply.from_bytes(packed([1, 2, 2], [], kind=0x80)).items == (1, 2)
    for items in ([1, 1, 2], [1, 2, 1], [1, 2, 3], [1, 2, 2, 1]):  # also where there is no model to compare
        with pytest.raises(InvalidMessage):
            Reply.from_bytes(packed(items, [], kind=0x80))


@pytest.mark.parametrize(
    ("items", "k", "model", "dimension"),
    [
        ([], 2, "none", 2),
        ([1, 1], 2, "none", 2),
        ([1, 2, 3], 2, "none", 2),
        ([-1], 2, "none", 2),
        ([1 << 64], 2, "none", 2),
        ([1], 256, "none", 2),
        ([1], 0, "none", 2),
        ([1], 1, "none", 0),
        ([1], 1, "none", 1 << 16),
        ([1], 2, MAP, 2),  # two rows for one item
        ([1, 2], 2, MAP, 3),
        ([1, 2], 2, LinearMap(np.full((2, 3), np.nan)), 2),
        ([1, 2], 2, LinearMap(np.full((2, 3), 1e39)), 2),  # beyond single precision
        ([1, 2], 2, PrincipalComponents(np.zeros((5, 0)), 2), 2),
        ([1, 2], 2, PrincipalComponents(np.zeros((4, 3)), 2), 2),
    ],
)
def test_a_server_cannot_make_a_reply_that_a_device_would_refuse(items, k, model, dimension) -> None:
    with pytest.raises(InvalidMessage):
        Reply.of(items, k, model, dimension)


def test_what_does_not_fit_half_precision_is_refused() -> None:
    big = LinearMap(np.full((1, 3), 70_000.0))
    Reply.of([1], 1, big, 2)
    with pytest.raises(InvalidMessage, match="finite"):
        Reply.of([1], 1, big, 2, half=True)


def test_an_unknown_word_for_a_model_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        Reply.of([1], 1, "tower", 2)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"kind": "tower"},
        {"kind": 1},
        {"kind": "none"},  # with numbers
        {"short": True},
        {"short": 0},
        {"k": 3},
        {"k": 0},
        {"dimension": 3},
        {"dimension": True},
        {"components": 1},
        {"items": [7, 300]},  # numbers: a browser would round large ones
        {"items": ["7", "7"]},
        {"items": ["7", "007"]},
        {"items": ["7", "-1"]},
        {"items": ["7", str(1 << 64)]},
        {"items": ["7", "٣"]},
        {"items": ["7"]},
        {"numbers": []},
        {"numbers": [1.0] * 5 + [None]},
        {"numbers": [1.0] * 5 + [float("nan")]},
        {"numbers": [1.0] * 5 + [10**400]},
        {"numbers": [1.0] * 5 + [True]},
        {"extra": 1},
    ],
    ids=str,
)
def test_json_that_is_no_reply_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidMessage):
        Reply.from_json({**small().to_json(), **change})


def test_large_item_numbers_survive_json() -> None:
    reply = Reply.of([(1 << 64) - 1, 0], 2, "none", 2)
    assert Reply.from_json(json.loads(json.dumps(reply.to_json()))).items == ((1 << 64) - 1, 0)


def test_its_text_shows_sizes_only() -> None:
    assert repr(small()) == "Reply(2 of 2 items, linear_map, 2 features)"
    with pytest.raises(ValueError, match="read-only"):
        small().numbers[0, 0] = 1.0
