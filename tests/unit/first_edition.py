"""What version 0.1.0 wrote, and every name by which it is read: a renamed module is a change here, and nowhere else.

How strict a message is was recorded by probes: each puts something else at one place of a message that is read.
"""

import asyncio
import json
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tacit.device.catalogue import RemoteCatalogue
from tacit.engines.flower.__main__ import write_app
from tacit.errors import TacitError
from tacit.guarantees import Guarantee, Neighbours
from tacit.ledger import ImpressionLedger
from tacit.messages import LookAlikes, Store
from tacit.messages import cross_domain as cd
from tacit.messages import federated_prototypes as fp
from tacit.messages import multi_selection as ms
from tacit.messages import private_selection as ps
from tacit.messages import private_slates as sl
from tacit.messages.federated_prototypes.replies import read_reply, read_sender
from tacit.messages.federated_prototypes.secure_sum import MaskedUpload as Masked
from tacit.messages.federated_prototypes.secure_sum import PublicKeys as Keys
from tacit.messages.federated_prototypes.secure_sum import SealedShares as Shares
from tacit.messages.federated_prototypes.secure_sum import UnmaskingShares as Unmask
from tacit.messages.federated_prototypes.secure_sum import pack, unpack
from tacit.messages.private_selection import IssuedToken, TokenRequest
from tacit.models.secure_sum import SumSession
from tacit.service import curator_app, keys, read_settings, server_app, versions
from tests.unit.service.asking import Running, ask
from tests.unit.unsynced import unsynced

__all__ = [
    "IssuedToken",
    "Keys",
    "Masked",
    "Shares",
    "SumSession",
    "TokenRequest",
    "Unmask",
    "cd",
    "fp",
    "keys",
    "ms",
    "pack",
    "ps",
    "read_reply",
    "read_sender",
    "read_settings",
    "server_app",
    "sl",
    "unpack",
    "unsynced",
    "versions",
    "write_app",
]

FIXTURES = Path(__file__).parents[1] / "fixtures" / "first_edition"
IN_JSON: dict[str, Any] = {
    "multi_selection.Signal": ms.Signal,
    "multi_selection.Request": ms.Request,
    "multi_selection.Reply": ms.Reply,
    "private_selection.OfferRequest": ps.OfferRequest,
    "private_selection.Candidate": ps.Candidate,
    "private_selection.BatchTerms": ps.BatchTerms,
    "private_selection.Policy": ps.Policy,
    "private_selection.Offer": ps.Offer,
    "private_selection.Impression": ps.Impression,
    "private_selection.ShuffledReport": ps.ShuffledReport,
    "private_selection.Batch": ps.Batch,
    "private_selection.Engagement": ps.Engagement,
    "private_selection.TokenRequest": TokenRequest,
    "private_selection.IssuedToken": IssuedToken,
    "private_slates.Slate": sl.Slate,
    "private_slates.Popularity": sl.Popularity,
    "private_slates.Similarity": sl.Similarity,
    "federated_prototypes.Member": fp.Member,
    "federated_prototypes.Manifest": fp.Manifest,
    "cross_domain.TransferModel": cd.TransferModel,
    "cross_domain.Replacements": cd.Replacements,
    "guarantees.Guarantee": Guarantee,
    "guarantees.Neighbours": Neighbours,
    "device.RemoteCatalogue": RemoteCatalogue,  # read only: a server writes it
}
IN_BYTES: dict[str, Any] = {
    "multi_selection.Signal": ms.Signal,
    "multi_selection.Request": ms.Request,
    "multi_selection.Reply": ms.Reply,
    "LookAlikes": LookAlikes,
    "Store": Store,
}
GONE = object()


class At:
    """A clock that stands still at a moment (UTC)."""

    def __init__(self, year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> None:
        self._micros = int(datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp()) * 1_000_000

    def __call__(self) -> int:
        return self._micros


def unpacked(name: str, folder: Path) -> Path:
    """A copy of what is in an archive, with its modes."""
    with tarfile.open(FIXTURES / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def require_settled(shop: ImpressionLedger, said: Any) -> None:
    """What was settled, clicked and batched by 0.1.0 is known, and another version of a batch is refused."""
    for token, items, settled in said["settled"]:
        assert (settled, shop.settle(token, tuple(items)).value) == ("ok", "duplicate")
    for token, bit, engaged in said["engaged"]:
        assert (engaged, shop.engage(token, bit).value) == ("ok", "duplicate")
    batch, group, reports, prices, settled = said["batch"]
    pairs = [(token, item) for token, item in reports]
    assert (settled, shop.settle_batch(batch, group, pairs, prices).value) == ("ok", "duplicate")
    assert shop.settle_batch(batch, group, pairs[:-1], prices).value == "conflict"
    assert [total.to_json() for total in shop.items()] == said["items"]
    assert shop.settle("t3", ("b",)).value == "ok"  # offered, and not settled yet


def digest_of(ratings: Any) -> str:
    """Of all that ratings hold, value by value: a file may be written in another way, and must say the same."""
    parts: list[Any] = [ratings.csr().toarray(), ratings.starts, ratings.items, ratings.values, ratings.times]
    parts += [ratings.user_ids, ratings.catalogue.ids, ratings.catalogue.titles, ratings.catalogue.genres]
    parts += [None if ratings.entities is None else ratings.entities.codes]
    told = [None if one is None else np.asarray(one).tolist() for one in parts]
    return sha256(json.dumps(told).encode()).hexdigest()


def recorded(name: str) -> Any:
    return json.loads((FIXTURES / name).read_text(encoding="utf-8"))


def text_of(message: Any) -> str:
    """The JSON text of a message, its members in the order in which they are written."""
    return json.dumps(message.to_json(), ensure_ascii=False, separators=(",", ":"))


def outcome(read: Callable[[Any], Any], value: Any) -> tuple[str, str]:
    """The code of the error that reading raises, its class if it has none; or "read", and the text of what is read."""
    try:
        found = read(value)
    except TacitError as problem:
        return problem.code, ""
    except Exception as problem:
        return type(problem).__name__, ""
    return "read", text_of(found) if hasattr(found, "to_json") else ""


Outcomes = dict[str, Any]


def outcomes(read: Callable[[Any], Any], changed: Iterable[tuple[str, str, Any]]) -> Outcomes:
    """How many probes there are, how most of them end, and at which places others end otherwise, with a digest of what is read."""
    found: dict[str, dict[str, list[str]]] = {}
    texts: dict[str, list[str]] = {}
    for place, probe, value in changed:
        code, text = outcome(read, value)
        found.setdefault(place, {}).setdefault(code, []).append(probe)
        if code == "read":
            texts.setdefault(place, []).append(text)
    tally = Counter({code: 0 for codes in found.values() for code in codes if code != "read"})
    for codes in found.values():
        tally.update({code: len(ended) for code, ended in codes.items() if code != "read"})
    usual = tally.most_common(1)[0][0]
    others: dict[str, Any] = {}
    for place, codes in found.items():
        kept: dict[str, Any] = {code: ended for code, ended in codes.items() if code != usual}
        if place in texts:
            kept["as"] = sha256("\n".join(texts[place]).encode(errors="surrogatepass")).hexdigest()[:12]
        if kept:
            others[place] = kept
    return {"probes": sum(len(one) for codes in found.values() for one in codes.values()), "usual": usual} | others


def openapi_of(name: str) -> Any:
    """The document of the server's application, or the curator's, without the version of the package."""
    app = (
        server_app.create_app(read_settings()) if name == "server" else curator_app.create_app(read_settings(data="x"))
    )
    document = asyncio.run(ask(app, "/openapi.json")).json()
    del document["info"]["version"]
    return document


def running(name: str, folder: Path) -> Running:
    """An application over what is unpacked in a folder: the server's home with its ledger, or the curator's ratings and ledger."""
    common: dict[str, Any] = {"home": folder / "home", "rate": 0.0, "log_requests": False}
    if name == "server":
        return Running(
            server_app.create_app(read_settings(**common, database=str(folder / "shop.db"), click_epsilon=0.5))
        )
    data, ledger = str(folder / "data" / "ratings.parquet"), str(folder / "curator.db")
    return Running(curator_app.create_app(read_settings(**common, data=data, ledger=ledger, subject="people")))


def asked(app: Running, path: str, key: str, body: str) -> list[Any]:
    """Status, type and text of an answer; a body is posted as JSON."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    if body:
        headers["content-type"] = "application/json"
    found = app.ask(path, method="POST" if body else "GET", headers=headers, body=body.encode() if body else None)
    return [found.status, found.headers["content-type"], found.body.decode()]


def comparable(path: str, answer: list[Any]) -> list[Any]:
    """The answer, letter for letter. Only the guarantees of /v1/releases were once written with their keys in another order."""
    status, kind, text = answer
    return [status, kind, json.loads(text) if path == "/v1/releases" else text]


# What is put instead of a value: any of these JSON texts (Python's, with NaN), or a change of the value itself.
TEXTS = (
    *("null", "true", "false", "0", "1", "1.0", "0.5", "-1", "1e300", "1e400", "NaN", "9007199254740993"),
    *("18446744073709551616", '""', '"1"', '"x"', '"\\ud800"', '"a\\nb"', "[]", "[1]", "[null]", "{}"),
)


def _number(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: change(value) if type(value) in (int, float) else GONE


def _text(change: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda value: change(value) if isinstance(value, str) else GONE


def _list(change: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    return lambda value: change(value) if isinstance(value, list) and value else GONE


def _object(change: Callable[[dict[str, Any]], Any]) -> Callable[[Any], Any]:
    return lambda value: change(value) if isinstance(value, dict) else GONE


CHANGES: dict[str, Callable[[Any], Any]] = {
    "v+1": _number(lambda value: value + 1),
    "v-1": _number(lambda value: value - 1),
    "-v": _number(lambda value: -value),
    "float": lambda value: float(value) if type(value) is int and abs(value) < 2**1000 else GONE,
    "int": lambda value: int(value) if type(value) is float else GONE,
    "str": _number(str),
    "v+a": _text(lambda value: value + "a"),
    "v+ab": _text(lambda value: value + "ab"),
    "v[:-1]": _text(lambda value: value[:-1]),
    "v+space": _text(lambda value: value + " "),
    "upper": _text(str.upper),
    "[v]": lambda value: [value],
    "v[1:]": _list(lambda value: value[1:]),
    "v+v[-1]": _list(lambda value: [*value, value[-1]]),
    "v[::-1]": _list(lambda value: value[::-1]),
    "v+null": _list(lambda value: [*value, None]),
    "v+more": _object(lambda value: {**value, "more": None}),
    "pairs": _object(lambda value: [list(pair) for pair in value.items()]),
}
LEFT_OUT = "gone"


def probes(value: Any) -> Iterator[tuple[str, str, Any]]:
    """(place, name of the probe, the changed message) for every place and every probe that changes something there."""
    for place in _places(value):
        old = _at(value, place)
        named = "/".join(str(step) for step in place)
        if place and isinstance(place[-1], str):
            yield named, LEFT_OUT, _put(value, place, GONE)
        for text in TEXTS:
            yield named, text, _put(value, place, json.loads(text))
        for name, change in CHANGES.items():
            new = change(deepcopy(old))
            if new is not GONE:
                yield named, name, _put(value, place, new)


def _places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every member of every object; of a list its first element and its last."""
    yield here
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _places(one, (*here, name))
    elif isinstance(value, list):
        for place in sorted({0, len(value) - 1} & set(range(len(value)))):
            yield from _places(value[place], (*here, place))


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        value = value[step]
    return value


def _put(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    made = deepcopy(value)
    holder = _at(made, place[:-1])
    if new is GONE:
        del holder[place[-1]]
    else:
        holder[place[-1]] = new
    return made


def bent(content: bytes) -> Iterator[tuple[str, str, bytes]]:
    """Bytes that are cut, longer, or have one bit flipped among the first 24, in the middle or at the end."""
    yield "length", "nothing", b""
    yield "length", "one byte less", content[:-1]
    yield "length", "one byte more", content + b"\0"
    yield "length", "half", content[: len(content) // 2]
    for place in sorted({*range(min(24, len(content))), len(content) // 2, len(content) - 1}):
        for bit in (0, 7):
            yield f"byte {place}", f"bit {bit}", _flipped(content, place, bit)


def _flipped(content: bytes, place: int, bit: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]
