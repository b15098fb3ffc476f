"""The reply of multi-selection, from server to device: a slate of k items, and a local model to pick from it.

On the wire, little-endian: version u16, model kind u8 (highest bit: the slate is shorter than k), k u8, dimension u16, components
u16, the items' numbers as k u64, then the model. The length follows from kind, k, dimension and components alone; a slate that is
too short is filled up with its last item. Everything in it is post-processing of a signal: it can cost the user nothing.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep
from tacit.errors import InvalidMessage, InvalidParameter
from tacit.messages import fields
from tacit.messages.multi_selection_request import MOST_K
from tacit.messages.multi_selection_signal import MOST_DIMENSION
from tacit.models.local_models import LinearMap, PrincipalComponents

VERSION = 0x5201  # "R" and 1
_HEADER = struct.Struct("<HBBHH")
_SHORT = 0x80
_MOST_U16, _MOST_U64 = (1 << 16) - 1, (1 << 64) - 1
_FIELDS = ("version", "kind", "short", "k", "dimension", "components", "items", "numbers")

LocalModel: TypeAlias = LinearMap | PrincipalComponents


class ModelKind(IntEnum):
    """How the device is to pick."""

    NONE = 0  # take the slate's order
    LINEAR_MAP = 1  # k x (1 + d)
    LINEAR_MAP_HALF = 2  # the same in half precision
    PRINCIPAL_COMPONENTS = 3  # (1 + d + k) x components
    NETWORK = 4  # score the slate with the server's own model, which the device has

    @property
    def dtype(self) -> str:
        """The numbers of this kind on the wire: halves or singles, little-endian."""
        return "<f2" if self is ModelKind.LINEAR_MAP_HALF else "<f4"

    def shape(self, k: int, dimension: int, components: int) -> tuple[int, int]:
        """Of the numbers that are sent along.

        ``k`` is the number of items in the slate.
        """
        if self in (ModelKind.LINEAR_MAP, ModelKind.LINEAR_MAP_HALF):
            return k, 1 + dimension
        return (1 + dimension + k, components) if self is ModelKind.PRINCIPAL_COMPONENTS else (0, 0)


@dataclass(frozen=True, eq=False, repr=False)
class Reply:
    """``items`` are the numbers of distinct items, best first as the server sees it; at most ``k``, and usually k of them."""

    kind: ModelKind
    items: tuple[int, ...]
    k: int
    dimension: int
    components: int  # 0 unless the model is principal components
    numbers: NDArray[np.floating[Any]]  # the model as it is sent, filled up to k items

    def __post_init__(self) -> None:
        if not isinstance(self.kind, ModelKind):
            raise InvalidMessage("a reply has one of the known kinds of local model.")
        if not 1 <= self.k <= MOST_K or not 1 <= self.dimension <= MOST_DIMENSION:
            raise InvalidMessage(f"a reply has 1 to {MOST_K} items and 1 to {MOST_DIMENSION:,} features.")
        least, most = (1, _MOST_U16) if self.kind is ModelKind.PRINCIPAL_COMPONENTS else (0, 0)
        if not least <= self.components <= most:
            raise InvalidMessage(f"principal components are 1 to {_MOST_U16:,}; no other model has any.")
        if not 1 <= len(self.items) <= self.k or len(set(self.items)) < len(self.items):
            raise InvalidMessage("a slate has 1 to k items, none of them twice.")
        if not all(0 <= item <= _MOST_U64 for item in self.items):
            raise InvalidMessage("the number of an item has 64 bits.")
        with np.errstate(over="ignore"):  # what does not fit half precision becomes infinite, and is refused
            numbers = np.array(self.numbers, dtype=self.kind.dtype)
        if numbers.shape != self.kind.shape(self.k, self.dimension, self.components):
            raise InvalidMessage(
                "the local model does not have the size that its kind, k, features and components give it."
            )
        if not np.isfinite(numbers).all():
            raise InvalidMessage("a number of the local model is not finite.")
        spare = self.k - len(self.items)
        if spare and numbers.size and (numbers[-spare:] != numbers[-spare - 1]).any():
            raise InvalidMessage("a slate that is too short is filled up with its last item.")
        numbers.flags.writeable = False
        keep(self, numbers=numbers)

    @classmethod
    def of(
        cls,
        items: Iterable[int],
        k: int,
        model: LocalModel | str,
        dimension: int,
        *,
        half: bool = False,
        components: int = 0,
    ) -> "Reply":
        """The reply with these item numbers, filled up to k of them, and this model, or the word "network" or "none".

        ``half`` sends a linear map in half precision. Principal components are filled up with zeros to ``components`` columns.
        """
        slate = tuple(int(item) for item in items)
        spare = k - len(slate)
        if isinstance(model, LinearMap):
            kind = ModelKind.LINEAR_MAP_HALF if half else ModelKind.LINEAR_MAP
            return cls(kind, slate, k, dimension, 0, _repeated(model.matrix, spare))
        if isinstance(model, PrincipalComponents):
            basis = np.pad(model.basis, ((0, 0), (0, max(0, components - model.basis.shape[1]))))
            return cls(ModelKind.PRINCIPAL_COMPONENTS, slate, k, dimension, basis.shape[1], _repeated(basis, spare))
        if model not in ("network", "none"):
            raise InvalidParameter('a reply carries a LinearMap, PrincipalComponents, or the word "network" or "none".')
        return cls(
            ModelKind.NETWORK if model == "network" else ModelKind.NONE, slate, k, dimension, 0, np.zeros((0, 0))
        )

    @staticmethod
    def size(kind: ModelKind, k: int, dimension: int, components: int = 0) -> int:
        """Bytes on the wire."""
        rows, columns = kind.shape(k, dimension, components)
        return _HEADER.size + 8 * k + np.dtype(kind.dtype).itemsize * rows * columns

    @property
    def short(self) -> bool:
        """Whether there were fewer than k items to offer."""
        return len(self.items) < self.k

    @cached_property
    def model(self) -> LocalModel | None:
        """The local model of the items; None where there is none in the reply."""
        used = len(self.numbers) - (self.k - len(self.items))
        if self.kind in (ModelKind.LINEAR_MAP, ModelKind.LINEAR_MAP_HALF):
            return LinearMap(self.numbers[:used].astype(np.float64))
        if self.kind is ModelKind.PRINCIPAL_COMPONENTS:
            return PrincipalComponents(self.numbers[:used].astype(np.float64), len(self.items))
        return None

    def __eq__(self, other: object) -> bool:
        return self.to_bytes() == other.to_bytes() if isinstance(other, Reply) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __repr__(self) -> str:
        # The slate itself tells of the signal it answers: not for logs.
        return f"Reply({len(self.items)} of {self.k} items, {self.kind.name.lower()}, {self.dimension} features)"

    def to_bytes(self) -> bytes:
        """The reply in the compact binary form."""
        kind = self.kind | (_SHORT if self.short else 0)
        header = _HEADER.pack(VERSION, kind, self.k, self.dimension, self.components)
        return header + np.array(self._filled, dtype="<u8").tobytes() + self.numbers.tobytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Reply":
        """The reply of such bytes, checked; InvalidMessage for anything else."""
        if not isinstance(content, bytes) or len(content) < _HEADER.size:
            raise InvalidMessage(f"a reply has at least {_HEADER.size} bytes.")
        version, marked, k, dimension, components = _HEADER.unpack_from(content)
        if version != VERSION:
            raise InvalidMessage("this is no reply, or one of another version.")
        kind = _kind(marked & ~_SHORT)
        if len(content) != cls.size(kind, k, dimension, components):
            raise InvalidMessage("a reply does not have the length that its kind, k, features and components give it.")
        items = np.frombuffer(content, dtype="<u8", count=k, offset=_HEADER.size).tolist()
        numbers = np.frombuffer(content, dtype=kind.dtype, offset=_HEADER.size + 8 * k)
        numbers = numbers.reshape(kind.shape(k, dimension, components))
        return cls(kind, _slate(items, bool(marked & _SHORT)), k, dimension, components, numbers)

    def to_json(self) -> dict[str, Any]:
        """The same fields as on the wire; items as texts of digits."""
        return {
            "version": VERSION & 0xFF,
            "kind": self.kind.name.lower().replace("_", "-"),
            "short": self.short,
            "k": self.k,
            "dimension": self.dimension,
            "components": self.components,
            "items": [str(item) for item in self._filled],
            "numbers": self.numbers.astype(np.float64).reshape(-1).tolist(),
        }

    @classmethod
    def from_json(cls, value: object) -> "Reply":
        """The reply of such values, checked; InvalidMessage for anything else."""
        found = fields.members(value, "a reply", _FIELDS)
        fields.whole(found["version"], "$.version", least=VERSION & 0xFF, most=VERSION & 0xFF)
        kind = next((one for one in ModelKind if one.name.lower().replace("_", "-") == found["kind"]), None)
        if kind is None:
            raise InvalidMessage("expected the name of a local model at $.kind.")
        k = fields.whole(found["k"], "$.k", least=1, most=MOST_K)
        dimension = fields.whole(found["dimension"], "$.dimension", least=1, most=MOST_DIMENSION)
        components = fields.whole(found["components"], "$.components", least=0, most=_MOST_U16)
        shape = kind.shape(k, dimension, components)
        items = [
            fields.number_in_text(item, "$.items", most=_MOST_U64)
            for item in fields.listed(found["items"], "$.items", length=k)
        ]
        listed = fields.listed(found["numbers"], "$.numbers", length=shape[0] * shape[1])
        numbers = np.array([fields.real(one, "$.numbers") for one in listed], dtype=np.float64).reshape(shape)
        slate = _slate(items, fields.truth(found["short"], "$.short"))
        return cls(kind, slate, k, dimension, components, numbers)

    @property
    def _filled(self) -> tuple[int, ...]:
        return self.items + self.items[-1:] * (self.k - len(self.items))


def _kind(code: int) -> ModelKind:
    try:
        return ModelKind(code)
    except ValueError:
        raise InvalidMessage("a reply has a kind of local model that this version does not know.") from None


def _slate(filled: list[int], short: bool) -> tuple[int, ...]:
    """The items of a slate that was filled up with its last one, if it says so."""
    items = tuple(dict.fromkeys(filled))
    repeats = len(filled) - len(items)
    if short != (repeats > 0) or tuple(filled) != items + items[-1:] * repeats:
        raise InvalidMessage(
            "an item may stand twice in a slate only where a short one is filled up with its last item."
        )
    return items


def _repeated(rows: NDArray[Any], times: int) -> NDArray[Any]:
    """``rows`` with the last one ``times`` more."""
    return np.concatenate([rows, np.repeat(rows[-1:], times, axis=0)]) if times > 0 else rows
