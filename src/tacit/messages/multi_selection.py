"""The messages of multi-selection.

device -> server  Request  a signal, and the number of items that the device wants
server -> device  Reply    a slate of k items, and a local model to pick from it

Both have a compact binary form and the same fields in JSON. All numbers on the wire are little-endian.

Signal and Request, 16 + 4d bytes for d features: version u16, flags u8, log2 of the grid's step i8, eta as two u32, dimension u16,
k u8, t u8, then the steps as i32. It holds no user, no time and no guarantee: the guarantee follows from the header, so no
sender can claim less loss than there was. A device keeps its signal in the same form, with k = t = 0.

Reply: version u16, kind of model u8 (highest bit: the slate is shorter than k), k u8, dimension u16, components u16, the items'
numbers as k u64, then the model. Its length follows from kind, k, dimension and components alone: a slate that is too short is
filled up with its last item. A reply is post-processing of a signal and costs the user nothing.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from tacit.checks import keep
from tacit.errors import InvalidMessage, InvalidParameter
from tacit.guarantees import Guarantee, Neighbours, Release, metric, nothing
from tacit.guarantees.arithmetic import up
from tacit.messages.codec import Form, Message, Real, ReleaseOnly, Schema, Wire, closed, make, read, schema_of, value_of
from tacit.models.multi_selection import LinearMap, PrincipalComponents

__all__ = [
    "LEAST_ETA",
    "MOST_DIMENSION",
    "MOST_ETA",
    "MOST_K",
    "MOST_STEPS",
    "Eta",
    "GridSteps",
    "LocalModel",
    "ModelKind",
    "Reply",
    "Request",
    "Signal",
    "exact_eta",
]

SIGNAL_VERSION = 0x5301  # "S" and 1
REPLY_VERSION = 0x5201  # "R" and 1
PROOF = "multi-selection"
DISTANCE = "L1"
SIMULATED = "noise replayed from a seed: for tests and simulation only"
GRID_BITS = 20  # steps of about a millionth: far below any noise that protects
LEAST_ETA = Fraction(1, 1000)
MOST_ETA = Fraction(10)
MOST_STEPS = 1 << 30
MOST_DIMENSION = (1 << 16) - 1
MOST_K = 255
_MOST_U16, _MOST_U32, _MOST_U64 = (1 << 16) - 1, (1 << 32) - 1, (1 << 64) - 1
_MOST_GRID_BITS = 30
_SIGNAL_HEADER, _REPLY_HEADER = struct.Struct("<HBbIIHBB"), struct.Struct("<HBBHH")
_SIMULATED, _EMPTY = 1, 2  # flags of a signal
_SHORT = 0x80

Eta: TypeAlias = float | str | Decimal | Fraction  # as you write it
Size: TypeAlias = Annotated[int, Meta(ge=1, le=MOST_K)]


class GridSteps(Protocol):
    """The release of a mechanism: whole numbers, each worth ``step``."""

    @property
    def steps(self) -> NDArray[np.int64]:
        """The released features, in whole grid steps."""

    @property
    def step(self) -> Fraction:
        """The distance of two points of the grid, in the features' unit."""


def _fraction(parts: Iterable[int]) -> Fraction:
    """A fraction in lowest terms, so that one signal is one sequence of bytes."""
    numerator, denominator = parts
    if denominator == 0:
        raise InvalidMessage("eta has a denominator of 0.")
    fraction = Fraction(numerator, denominator)
    if fraction.denominator != denominator:
        raise InvalidMessage("eta must be a fraction in lowest terms.")
    return fraction


_SentEta: TypeAlias = Annotated[
    list[Annotated[int, Meta(ge=1, le=_MOST_U32)]],
    Meta(min_length=2, max_length=2, description="numerator and denominator, in lowest terms"),
]
_SentSteps: TypeAlias = Annotated[
    list[Annotated[int, Meta(ge=-MOST_STEPS, le=MOST_STEPS)]], Meta(min_length=1, max_length=MOST_DIMENSION)
]


@dataclass(frozen=True, eq=False, repr=False)
class Signal(Message, metaclass=ReleaseOnly):
    """A user's features plus noise of scale ``eta``, in steps of 2^-``grid_bits``; or, if ``empty``, nothing about the user.

    A device makes one by ``from_release`` or ``nothing``, or reads it back from its ledger. ``simulated`` noise promises nothing.
    """

    form: ClassVar[Form] = Form(
        "a signal", version=SIGNAL_VERSION & 0xFF, order=("simulated", "empty", "grid_bits", "eta", "steps")
    )

    steps: Annotated[NDArray[np.signedinteger[Any]], Wire(_SentSteps, np.array, np.ndarray.tolist)]  # kept as int32
    grid_bits: Annotated[int, Meta(ge=0, le=_MOST_GRID_BITS)]
    # The L1 distance for one nat of loss.
    eta: Annotated[Fraction, Wire(_SentEta, _fraction, lambda eta: [eta.numerator, eta.denominator])]
    simulated: bool = False
    empty: bool = False

    def _check(self) -> None:
        """Raises InvalidMessage for steps or an eta that a signal cannot have."""
        steps = self.steps
        if steps.ndim != 1 or not 1 <= steps.size <= MOST_DIMENSION or steps.dtype.kind not in "iu":
            raise InvalidMessage(f"a signal has 1 to {MOST_DIMENSION:,} whole numbers of steps.")
        if ((steps > MOST_STEPS) | (steps < -MOST_STEPS)).any():
            raise InvalidMessage("a signal lies within 2^30 steps of 0.")
        if not LEAST_ETA <= self.eta <= MOST_ETA:
            raise InvalidMessage(f"eta must lie from {float(LEAST_ETA)} to {float(MOST_ETA):g}.")
        if max(self.eta.numerator, self.eta.denominator) > _MOST_U32:
            raise InvalidMessage("eta must be a fraction of two numbers below 2^32.")
        if self.empty and (self.simulated or steps.any()):
            raise InvalidMessage("an empty signal has 0 steps everywhere and no noise.")
        steps = steps.astype(np.int32)  # a copy
        steps.flags.writeable = False
        keep(self, steps=steps)

    @classmethod
    def from_release(cls, release: Release[GridSteps], eta: Eta) -> "Signal":
        """The message of a release. ``eta`` is an L1 distance of features, for one nat of loss.

        Raises InvalidParameter if the release was drawn under another guarantee than eta stands for. Steps beyond 2^30 are
        clipped: a function of the release alone, which costs nothing.
        """
        grid, promised = value_of(release), release.guarantee
        step = grid.step
        if step.numerator != 1 or step.denominator.bit_count() != 1:
            raise InvalidParameter("the step of a signal's grid must be 1, 1/2, 1/4, ...")
        steps = np.clip(grid.steps, -MOST_STEPS, MOST_STEPS)
        signal = make(
            cls, steps, step.denominator.bit_length() - 1, exact_eta(eta), simulated=promised.promises_nothing
        )
        if promised.protects != signal.guarantee.protects or not (
            signal.simulated or replace(promised, proof=PROOF) == signal.guarantee
        ):
            raise InvalidParameter(
                "the release was drawn under another guarantee than this eta, grid and dimension stand for. "
                "Pass the eta of the mechanism that drew it."
            )
        return signal

    @classmethod
    def nothing(cls, dimension: int, eta: Eta, grid_bits: int = GRID_BITS) -> "Signal":
        """A signal that says nothing about the user, for a device whose budget is spent.

        ``eta`` is an L1 distance of features, for one nat of loss.
        """
        return make(cls, np.zeros(dimension, dtype=np.int32), grid_bits, exact_eta(eta), empty=True)

    @property
    def dimension(self) -> int:
        """The number of features."""
        return int(self.steps.size)

    @property
    def values(self) -> NDArray[np.float64]:
        """The noisy features. They may lie outside the domain of features: that is normal."""
        return np.asarray(self.steps * 2.0**-self.grid_bits, dtype=np.float64)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The sender's guarantee, computed from eta, grid and dimension. The reply is post-processing and adds nothing."""
        if self.simulated:
            return nothing(Neighbours.features(DISTANCE), SIMULATED, proof=PROOF)
        if self.empty:
            return metric(0.0, distance=DISTANCE, proof=PROOF)
        rounding = up(Fraction(self.dimension, 1 << self.grid_bits))  # a step for each coordinate
        return metric(up(1 / self.eta), distance=DISTANCE, rounding=rounding, proof=PROOF)

    def __eq__(self, other: object) -> bool:
        return self.to_bytes() == other.to_bytes() if isinstance(other, Signal) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __repr__(self) -> str:
        # The steps are released, but they are a stable pseudonym: in a log they would tie together all requests of one device.
        kind = ", tells nothing" if self.empty else ", simulated" if self.simulated else ""
        return f"Signal({self.dimension} numbers, eta = {self.eta}, grid 2^-{self.grid_bits}{kind})"

    def to_bytes(self) -> bytes:
        """The message as a device keeps it."""
        return packed(self, 0, 0)

    @classmethod
    def from_bytes(cls, content: bytes) -> "Signal":
        """The signal of such bytes, checked; InvalidMessage for anything else."""
        signal, k, t = unpacked(content)
        if k or t:
            raise InvalidMessage("this is a request, not a signal: k and t must be 0.")
        return signal


def exact_eta(eta: Eta) -> Fraction:
    """``eta`` as an exact fraction. A float counts as its shortest decimal, so 0.1 is 1/10.

    It is an L1 distance of features, for one nat of loss.
    """
    try:
        if isinstance(eta, bool):
            raise TypeError
        written = eta if isinstance(eta, (str, Decimal, Fraction)) else repr(float(eta))
        if not isinstance(written, Fraction) and "/" not in str(written) and not 0.0 < float(written) < 100.0:
            raise ValueError  # also numbers whose digits would fill the memory
        exact = Fraction(written)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise InvalidParameter(f"eta must be a number from {float(LEAST_ETA)} to {float(MOST_ETA):g}.") from None
    if not LEAST_ETA <= exact <= MOST_ETA:
        raise InvalidParameter(f"eta must be a number from {float(LEAST_ETA)} to {float(MOST_ETA):g}.")
    if max(exact.numerator, exact.denominator) > _MOST_U32:
        raise InvalidParameter("eta must have at most nine decimals, or be a Fraction of two numbers below 2^32.")
    return exact


def packed(signal: Signal, k: int, t: int) -> bytes:
    """The bytes of a signal, in a request for ``t`` of ``k`` items. A device keeps its signal with k = t = 0."""
    flags = _SIMULATED * signal.simulated | _EMPTY * signal.empty
    eta = signal.eta
    header = _SIGNAL_HEADER.pack(
        SIGNAL_VERSION, flags, -signal.grid_bits, eta.numerator, eta.denominator, signal.dimension, k, t
    )
    return header + signal.steps.astype("<i4").tobytes()


def unpacked(content: bytes) -> tuple[Signal, int, int]:
    """The signal, k and t from the bytes that `packed` wrote."""
    if not isinstance(content, bytes) or len(content) < _SIGNAL_HEADER.size:
        raise InvalidMessage(f"a signal or request has at least {_SIGNAL_HEADER.size} bytes.")
    version, flags, exponent, numerator, denominator, dimension, k, t = _SIGNAL_HEADER.unpack_from(content)
    if version != SIGNAL_VERSION:
        raise InvalidMessage("this is not a signal or request of a version that this program knows.")
    if flags & ~(_SIMULATED | _EMPTY):
        raise InvalidMessage("a signal or request has a flag that this version does not know.")
    if len(content) != _SIGNAL_HEADER.size + 4 * dimension:
        raise InvalidMessage("the length of a signal or request must be 16 bytes and 4 for each of its numbers.")
    steps = np.frombuffer(content, dtype="<i4", offset=_SIGNAL_HEADER.size)
    eta = _fraction((numerator, denominator))
    return make(Signal, steps, -exponent, eta, bool(flags & _SIMULATED), bool(flags & _EMPTY)), k, t


@dataclass(frozen=True)
class Request(Message):
    """A signal, the number of items that the slate should have (``k``) and the number that the device will show (``t``).

    In JSON the members of the signal stand beside ``k`` and ``t``.
    """

    form: ClassVar[Form] = Form("a request")

    signal: Signal
    k: Size = 5
    t: Size = 1

    def _check(self) -> None:
        """Raises InvalidMessage if the device would show more items than it asks for."""
        if self.t > self.k:
            raise InvalidMessage(f"a request needs 1 <= t <= k <= {MOST_K}.")

    def require(self, *, dimension: int, most_k: int = MOST_K, simulated: bool = True) -> "Request":
        """This request, if a server with such features can answer it; the error does not show the signal.

        With ``simulated=False`` a server refuses signals of replayed noise: they protect nobody.
        """
        if self.signal.dimension != dimension:
            raise InvalidMessage(
                f"this server's features have {dimension} numbers. Rebuild them with its feature list."
            )
        if self.k > most_k:
            raise InvalidMessage(f"this server offers at most {most_k} items: ask for fewer.")
        if self.signal.simulated and not simulated:
            raise InvalidMessage("this server refuses simulated signals: draw the noise from the operating system.")
        return self

    def to_bytes(self) -> bytes:
        """The request in the compact binary form."""
        return packed(self.signal, self.k, self.t)

    @classmethod
    def from_bytes(cls, content: bytes) -> "Request":
        """The request of such bytes, checked; InvalidMessage for anything else."""
        return cls(*unpacked(content))

    def to_json(self) -> dict[str, Any]:
        """The request as values for JSON."""
        return {**self.signal.to_json(), "k": self.k, "t": self.t}

    @classmethod
    def from_json(cls, value: object) -> "Request":
        """The request of such values, checked; InvalidMessage for anything else."""
        signal = dict(value) if isinstance(value, dict) else {}
        k, t = (read(signal.pop(name, None), Size, "a request", f"$.{name}") for name in ("k", "t"))
        return cls(Signal.from_json(signal), k, t)

    @classmethod
    def schema(cls) -> Schema:
        """The request as JSON Schema."""
        return closed(**Signal.schema()["properties"], k=schema_of(Size), t=schema_of(Size))


LocalModel: TypeAlias = LinearMap | PrincipalComponents


class ModelKind(IntEnum):
    """How the device picks from the slate."""

    NONE = 0  # take the slate's order
    LINEAR_MAP = 1  # k x (1 + d)
    LINEAR_MAP_HALF = 2  # the same in half precision
    PRINCIPAL_COMPONENTS = 3  # (1 + d + k) x components
    NETWORK = 4  # score the slate with the server's own model, which the device has

    @property
    def label(self) -> str:
        """The name of this kind in JSON."""
        return self.name.lower().replace("_", "-")

    @property
    def dtype(self) -> str:
        """The numbers of this kind on the wire: halves or singles, little-endian."""
        return "<f2" if self is ModelKind.LINEAR_MAP_HALF else "<f4"

    def shape(self, k: int, dimension: int, components: int) -> tuple[int, int]:
        """The shape of the model's numbers. ``k`` is the number of items in the slate."""
        if self in (ModelKind.LINEAR_MAP, ModelKind.LINEAR_MAP_HALF):
            return k, 1 + dimension
        return (1 + dimension + k, components) if self is ModelKind.PRINCIPAL_COMPONENTS else (0, 0)


# A reply in JSON: the fields of the wire, with the slate filled up to k items and the numbers in one row.
class _ReplyForm(Struct, forbid_unknown_fields=True):
    version: Literal[1]
    kind: Literal["none", "linear-map", "linear-map-half", "principal-components", "network"]
    short: bool
    k: Size
    dimension: Annotated[int, Meta(ge=1, le=MOST_DIMENSION)]
    components: Annotated[int, Meta(ge=0, le=_MOST_U16)]
    # as texts, because a browser's numbers are exact to 2^53 only
    items: Annotated[list[Annotated[str, Meta(pattern=r"^[0-9]+\Z")]], Meta(min_length=1, max_length=MOST_K)]
    numbers: list[Real]


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
            raise InvalidMessage(f"a reply has 1 to {_MOST_U16:,} principal components, or 0 with any other model.")
        if not 1 <= len(self.items) <= self.k or len(set(self.items)) < len(self.items):
            raise InvalidMessage("a slate has 1 to k items, each once.")
        if not all(0 <= item <= _MOST_U64 for item in self.items):
            raise InvalidMessage("the number of an item has 64 bits.")
        # A number beyond half precision becomes infinite, which the check below refuses.
        with np.errstate(over="ignore"):
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
            return cls(kind, slate, k, dimension, 0, _repeat_last(model.matrix, spare))
        if isinstance(model, PrincipalComponents):
            basis = np.pad(model.basis, ((0, 0), (0, max(0, components - model.basis.shape[1]))))
            return cls(ModelKind.PRINCIPAL_COMPONENTS, slate, k, dimension, basis.shape[1], _repeat_last(basis, spare))
        if model not in ("network", "none"):
            raise InvalidParameter('a reply carries a LinearMap, PrincipalComponents, or the word "network" or "none".')
        return cls(
            ModelKind.NETWORK if model == "network" else ModelKind.NONE, slate, k, dimension, 0, np.zeros((0, 0))
        )

    @staticmethod
    def size(kind: ModelKind, k: int, dimension: int, components: int = 0) -> int:
        """Bytes on the wire."""
        rows, columns = kind.shape(k, dimension, components)
        return _REPLY_HEADER.size + 8 * k + np.dtype(kind.dtype).itemsize * rows * columns

    @property
    def short(self) -> bool:
        """Whether there were fewer than k items to offer."""
        return len(self.items) < self.k

    @cached_property
    def model(self) -> LocalModel | None:
        """The local model of the items; None if the reply has none."""
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
        # No log should hold the slate: it depends on the signal that it answers.
        return f"Reply({len(self.items)} of {self.k} items, {self.kind.name.lower()}, {self.dimension} features)"

    def to_bytes(self) -> bytes:
        """The reply in the compact binary form."""
        kind = self.kind | (_SHORT if self.short else 0)
        header = _REPLY_HEADER.pack(REPLY_VERSION, kind, self.k, self.dimension, self.components)
        return header + np.array(self._filled, dtype="<u8").tobytes() + self.numbers.tobytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Reply":
        """The reply of such bytes, checked; InvalidMessage for anything else."""
        if not isinstance(content, bytes) or len(content) < _REPLY_HEADER.size:
            raise InvalidMessage(f"a reply has at least {_REPLY_HEADER.size} bytes.")
        version, marked, k, dimension, components = _REPLY_HEADER.unpack_from(content)
        if version != REPLY_VERSION:
            raise InvalidMessage("this is not a reply of a version that this program knows.")
        try:
            kind = ModelKind(marked & ~_SHORT)
        except ValueError:
            raise InvalidMessage("a reply has a kind of local model that this version does not know.") from None
        if len(content) != cls.size(kind, k, dimension, components):
            raise InvalidMessage("a reply does not have the length that its kind, k, features and components give it.")
        items = np.frombuffer(content, dtype="<u8", count=k, offset=_REPLY_HEADER.size).tolist()
        numbers = np.frombuffer(content, dtype=kind.dtype, offset=_REPLY_HEADER.size + 8 * k)
        numbers = numbers.reshape(kind.shape(k, dimension, components))
        return cls(kind, _slate(items, bool(marked & _SHORT)), k, dimension, components, numbers)

    def to_json(self) -> dict[str, Any]:
        """The same fields as on the wire; items as texts of digits."""
        return {
            "version": REPLY_VERSION & 0xFF,
            "kind": self.kind.label,
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
        sent: _ReplyForm = read(value, _ReplyForm, "a reply")
        kind = next(kind for kind in ModelKind if kind.label == sent.kind)
        shape = kind.shape(sent.k, sent.dimension, sent.components)
        if len(sent.items) != sent.k or len(sent.numbers) != shape[0] * shape[1]:
            raise InvalidMessage(f"expected {sent.k} texts at $.items and {shape[0] * shape[1]} numbers at $.numbers.")
        items = [int(item) if len(item) <= 20 else _MOST_U64 + 1 for item in sent.items]
        if max(items) > _MOST_U64 or [str(item) for item in items] != sent.items:
            raise InvalidMessage("expected whole numbers of 64 bits, in digits without leading zeros, at $.items.")
        numbers = np.array(sent.numbers, dtype=np.float64).reshape(shape)
        return cls(kind, _slate(items, sent.short), sent.k, sent.dimension, sent.components, numbers)

    @classmethod
    def schema(cls) -> Schema:
        """The reply as JSON Schema."""
        return schema_of(_ReplyForm)

    @property
    def _filled(self) -> tuple[int, ...]:
        return self.items + self.items[-1:] * (self.k - len(self.items))


def _slate(filled: list[int], short: bool) -> tuple[int, ...]:
    """The distinct items of a slate, which was filled up with its last item if it is ``short``."""
    items = tuple(dict.fromkeys(filled))
    repeats = len(filled) - len(items)
    if short != (repeats > 0) or tuple(filled) != items + items[-1:] * repeats:
        raise InvalidMessage("only a slate that is too short may repeat an item: its last one.")
    return items


def _repeat_last(rows: NDArray[Any], times: int) -> NDArray[Any]:
    """``rows`` with ``times`` copies of the last one at the end."""
    return np.concatenate([rows, np.repeat(rows[-1:], times, axis=0)]) if times > 0 else rows
