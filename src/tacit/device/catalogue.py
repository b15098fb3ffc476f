"""Public data from a server, checked before use: the catalogue, the model for offers, and blind tokens.

Catalogue and model are public. The device makes features with them, so it refuses anything that is not exactly as it should be.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidMessage, UnknownName
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.messages import values
from tacit.messages.multi_selection import GRID_BITS, MOST_DIMENSION, ModelKind, Reply
from tacit.messages.private_selection import (
    KEY_DIGITS,
    NONCE_BYTES,
    IssuedToken,
    Offer,
    TokenRequest,
    import_ristretto,
    item_name,
)
from tacit.models.features import GenreProfile
from tacit.models.items import Items
from tacit.models.multi_selection import LinearMap

MOST_BYTES = 1 << 25  # of the catalogue, unpacked: about half a million items
# Items times genres, or items times characters of the longest id: the size of their table in memory.
MOST_CELLS = 1 << 24
_VERSION = 1
_NAMES = ("version", "name", "model", "features", "ids", "titles", "genres")
_FEATURES = ("kind", "dimension", "names", "liked_from", "low", "high", "grid_bits")
_LEAST_ID, _MOST_ID = -(1 << 63), (1 << 63) - 1
_MOST_TITLE = 1000
_SCORER_KINDS = (ModelKind.LINEAR_MAP, ModelKind.LINEAR_MAP_HALF)


@dataclass(frozen=True, eq=False, repr=False)
class RemoteCatalogue:
    """The items of a server, and how ratings become features.

    ``model`` is the version of the server's store; ``genres`` are the names that features are counted by.
    """

    name: str
    model: str
    items: Items
    space: GenreProfile
    genres: tuple[str, ...]

    @classmethod
    def from_json(cls, value: object) -> "RemoteCatalogue":
        """The catalogue that a server sent. Raises InvalidMessage for anything unexpected."""
        members = values.members(value, "a catalogue", _NAMES)
        values.whole(members["version"], "$.version", least=_VERSION, most=_VERSION)
        ids = _read_ids(values.listed(members["ids"], "$.ids"))
        titles = None if members["titles"] is None else _read_titles(members["titles"], len(ids))
        names, liked_from = _read_features(members["features"])
        flags = _read_flags(members["genres"], len(ids), len(names))
        return cls(
            _text(members["name"], "$.name"),
            values.hexadecimal(members["model"], "$.model", least=2),
            Items(ids, titles),
            GenreProfile(flags, liked_from),
            names,
        )

    def __repr__(self) -> str:
        return f"RemoteCatalogue({len(self.items):,} items, {self.space.dimension} features)"


def _read_features(value: object) -> tuple[tuple[str, ...], float]:
    """The names of the genres, and the rating from which an item counts as liked."""
    members = values.members(value, "the features of a catalogue", _FEATURES)
    if members["kind"] != GenreProfile.kind:
        raise InvalidMessage(f"this version makes features of the kind {GenreProfile.kind} only.")
    names = tuple(_text(name, "$.features.names") for name in values.listed(members["names"], "$.features.names"))
    if not 1 <= len(names) <= MOST_DIMENSION // 2 or len(set(names)) < len(names):
        raise InvalidMessage(f"expected 1 to {MOST_DIMENSION // 2:,} different names at $.features.names.")
    values.whole(members["dimension"], "$.features.dimension", least=2 * len(names), most=2 * len(names))
    for side, expected in (("low", GenreProfile.low), ("high", GenreProfile.high)):
        if values.real(members[side], f"$.features.{side}") != expected:
            raise InvalidMessage(f"features of this kind must lie from 0 to 1, at $.features.{side}.")
    values.whole(members["grid_bits"], "$.features.grid_bits", least=GRID_BITS, most=GRID_BITS)
    return names, values.real(members["liked_from"], "$.features.liked_from")


def _read_ids(listed: list[Any]) -> NDArray[Any]:
    """Whole numbers or texts, strictly ascending."""
    if not listed:
        raise InvalidMessage("a catalogue must have at least one item.")
    if isinstance(listed[0], str):
        texts = [item_name(item, "$.ids") for item in listed]
        if len(texts) * max(map(len, texts)) > MOST_CELLS:
            raise InvalidMessage("the ids of this catalogue take too much memory.")
        ids: NDArray[Any] = np.array(texts)
    else:
        ids = np.array([values.whole(item, "$.ids", least=_LEAST_ID, most=_MOST_ID) for item in listed], dtype=np.int64)
    if not np.all(ids[1:] > ids[:-1]):
        raise InvalidMessage("the ids of a catalogue must ascend, without repetition.")
    return ids


def _read_titles(value: object, count: int) -> tuple[str, ...]:
    titles = values.listed(value, "$.titles", length=count)
    return tuple(_text(title, "$.titles", least=0, most=_MOST_TITLE) for title in titles)


def _read_flags(value: object, count: int, genres: int) -> NDArray[np.bool_]:
    rows = values.listed(value, "$.genres", length=count)
    if count * genres > MOST_CELLS:
        raise InvalidMessage(f"a catalogue may have at most {MOST_CELLS:,} pairs of an item and a genre.")
    flags = np.zeros((count, genres), dtype=np.bool_)
    for code, row in enumerate(rows):
        columns = [
            values.whole(genre, "$.genres", least=0, most=genres - 1) for genre in values.listed(row, "$.genres")
        ]
        if len(set(columns)) < len(columns):
            raise InvalidMessage("an item must not have a genre twice, at $.genres.")
        flags[code, columns] = True
    return flags


def _text(value: object, path: str, *, least: int = 1, most: int = 200) -> str:
    """A text without control characters: it may be printed on a terminal."""
    text = values.text(value, path, least=least, most=most)
    if any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in text):
        raise InvalidMessage(f"expected a text without control characters at {path}.")
    return text


class RemoteScorer:
    """A ``PrivateScorer`` that evaluates the server's public model: how good each listed item is at given features.

    The client fetches the whole model before there is an offer, and evaluates it on the device: neither the features nor the
    result leave. Before it has a model, no item has a number and the device uses public scores.
    """

    def __init__(self) -> None:
        self.model: str | None = None  # the version that was learned
        self._rows: dict[str, int] = {}
        self._matrix = np.zeros((0, 1), dtype=np.float32)

    def learn(self, model: str, parts: Sequence[Reply], items: Items, dimension: int) -> None:
        """Takes all parts of a model, or none if one is wrong.

        Each item must be in the catalogue and appear once, so the catalogue bounds the size of the model.
        """
        names: list[str] = []
        for part in parts:
            if part.kind not in _SCORER_KINDS or part.dimension != dimension:
                raise InvalidMessage(
                    f"a model for offers must be a linear map of this catalogue's {dimension} features."
                )
            try:
                names += [str(items.id(items.code_of_number(number))) for number in part.items]  # as offers name them
            except UnknownName:
                raise InvalidMessage("a model for offers has an item that the catalogue does not have.") from None
        rows = {name: row for row, name in enumerate(names)}
        if len(rows) < len(names):
            raise InvalidMessage("a model for offers must not have an item twice.")
        tables = [part.numbers[: len(part.items)].astype(np.float32) for part in parts]
        self._rows, self._matrix, self.model = rows, np.concatenate(tables), model

    def __call__(self, features: NDArray[np.float64], items: tuple[str, ...], /) -> NDArray[np.float64]:
        quality = np.full(len(items), np.nan)
        positions = [position for position, item in enumerate(items) if item in self._rows]
        if positions:
            rows = [self._rows[items[position]] for position in positions]
            quality[positions] = LinearMap(self._matrix[rows].astype(np.float64)).estimate(features)
        return quality

    def __repr__(self) -> str:
        return f"RemoteScorer({len(self._rows):,} items)"


@dataclass(frozen=True, repr=False)
class BlindToken:
    """A nonce that waits for the server's signature. It lives in memory only: after a crash the offer is dropped, unshown."""

    request: TokenRequest
    _nonce: bytes = field(compare=False)
    _client: Any = field(compare=False)
    _key: Any = field(compare=False)

    def finish(self, issued: IssuedToken) -> str:
        """The token, in hexadecimal digits: nonce and output.

        Raises InvalidMessage if the server's proof does not fit the key that the offer publishes.
        """
        evaluated = bytes.fromhex(issued.evaluated)
        try:
            output: bytes = self._client.finalize(import_ristretto().VerifiableOutput.deserialize(evaluated), self._key)
        except ValueError:
            raise InvalidMessage("the issued token was not made with the key that the offer publishes.") from None
        return (self._nonce + output).hex()

    def __repr__(self) -> str:
        return "BlindToken(...)"  # the nonce links offer and report


def blind(offer: Offer, noise: Noise = SYSTEM_NOISE) -> BlindToken:
    """A fresh blind token for one shuffled report, for an offer whose batch has a key.

        token = blind(offer)                      # before anything is chosen, for every offer of a batch alike
        issued = server.issue(token.request)      # the server learns a random point
        report_token = token.finish(issued)       # goes into the ShuffledReport

    The device draws the nonce, so no server can mark it. ``finish`` checks the server's proof against the key in the offer, and
    that key is part of the digest that names the group: a user with a key of their own reports in a group of their own, and no
    guarantee calls that group amplified.
    """
    if offer.batch is None or len(offer.batch.key) != KEY_DIGITS:
        raise InvalidMessage("only offers of a batch with a published key have blind tokens.")
    voprf = import_ristretto()
    try:
        key = voprf.PublicKey.deserialize(bytes.fromhex(offer.batch.key))
    except ValueError:
        raise InvalidMessage("the key that the offer publishes is not a valid key.") from None
    nonce = noise.draw(NONCE_BYTES)
    client, blinded = voprf.Client.blind(nonce)  # with the operating system's entropy
    return BlindToken(TokenRequest(offer.token, blinded.serialize().hex()), nonce, client, key)
