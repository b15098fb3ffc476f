"""The signal of multi-selection: what a device released about its user, noisy features on a grid.

On the wire, little-endian: version u16, flags u8, log2 of the grid's step i8, eta as two u32, dimension u16, k u8, t u8, then the
steps as i32: 16 + 4d bytes, whatever the features. There is no user, no clock, and no guarantee: it follows from the header, so
that no sender can claim less loss than there was. In a device's memo the same bytes stand with k = t = 0.
"""

import struct
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep
from tacit.errors import InvalidMessage, InvalidParameter
from tacit.guarantees import Guarantee, Neighbours, Release, metric, nothing
from tacit.guarantees.rounding import up
from tacit.messages import fields

VERSION = 0x5301  # "S" and 1
PROOF = "multi-selection"
DISTANCE = "L1"
SIMULATED = "noise replayed from a seed: for tests and simulation only"
LEAST_ETA = Fraction(1, 1000)
MOST_ETA = Fraction(10)
MOST_STEPS = 1 << 30
MOST_DIMENSION = (1 << 16) - 1
_MOST_U32 = (1 << 32) - 1
_MOST_GRID_BITS = 30
_HEADER = struct.Struct("<HBbIIHBB")
_SIMULATED, _EMPTY = 1, 2
NAMES = ("version", "simulated", "empty", "grid_bits", "eta", "steps")


Eta: TypeAlias = float | str | Decimal | Fraction  # as a person writes it


class GridSteps(Protocol):
    """What a mechanism released: whole numbers, each worth ``step``."""

    @property
    def steps(self) -> NDArray[np.int64]:
        """The released features, in whole grid steps."""

    @property
    def step(self) -> Fraction:
        """The distance of two points of the grid, in the features' unit."""


@dataclass(frozen=True, eq=False, repr=False)
class Signal:
    """A user's features plus noise of scale ``eta``, in steps of 2^-``grid_bits``; or, if ``empty``, nothing about the user.

    On a device it is made by ``from_release`` or ``nothing``, or read back from the memo. ``simulated`` noise promises nothing.
    """

    steps: NDArray[np.signedinteger[Any]]  # kept as int32
    grid_bits: int
    eta: Fraction  # L1 distance for one nat of loss
    simulated: bool = False
    empty: bool = False

    def __post_init__(self) -> None:
        steps = np.asarray(self.steps)
        if steps.ndim != 1 or not 1 <= steps.size <= MOST_DIMENSION or steps.dtype.kind not in "iu":
            raise InvalidMessage(f"a signal has 1 to {MOST_DIMENSION:,} whole numbers of steps.")
        if ((steps > MOST_STEPS) | (steps < -MOST_STEPS)).any():
            raise InvalidMessage("a signal lies within 2^30 steps of 0.")
        if type(self.grid_bits) is not int or not 0 <= self.grid_bits <= _MOST_GRID_BITS:
            raise InvalidMessage(f"the grid of a signal is 2^-0 to 2^-{_MOST_GRID_BITS}.")
        if not isinstance(self.eta, Fraction) or not LEAST_ETA <= self.eta <= MOST_ETA:
            raise InvalidMessage(f"eta must lie from {float(LEAST_ETA)} to {float(MOST_ETA):g}.")
        if max(self.eta.numerator, self.eta.denominator) > _MOST_U32:
            raise InvalidMessage("eta must be a fraction of two numbers below 2^32.")
        if type(self.simulated) is not bool or type(self.empty) is not bool:
            raise InvalidMessage("`simulated` and `empty` are True or False.")
        if self.empty and (self.simulated or steps.any()):
            raise InvalidMessage("a signal that tells nothing has 0 steps everywhere and no noise.")
        steps = steps.astype(np.int32)  # a copy
        steps.flags.writeable = False
        keep(self, steps=steps)

    @classmethod
    def from_release(cls, release: Release[GridSteps], eta: Eta) -> "Signal":
        """The message of a release, and of nothing else. Refuses a release whose guarantee is not the one that eta stands for.

        What lies beyond 2^30 steps is cut to it: a function of the release alone, which costs nothing.
        ``eta`` is an L1 distance of features, for one nat of loss.
        """
        step, promised = release.value.step, release.guarantee
        if step.numerator != 1 or step.denominator.bit_count() != 1:
            raise InvalidParameter("the step of a signal's grid must be 1, 1/2, 1/4, ...")
        steps = np.clip(release.value.steps, -MOST_STEPS, MOST_STEPS)
        signal = cls(steps, step.denominator.bit_length() - 1, exact_eta(eta), simulated=promised.promises_nothing)
        if promised.protects != signal.guarantee.protects or not (
            signal.simulated or replace(promised, proof=PROOF) == signal.guarantee
        ):
            raise InvalidParameter(
                "the release was drawn under another guarantee than this eta, grid and dimension stand for: "
                "a message must not claim another loss than there was."
            )
        return signal

    @classmethod
    def nothing(cls, dimension: int, eta: Eta, grid_bits: int = 20) -> "Signal":
        """Tells nothing about the user: for a device whose budget is spent. The server answers as it would answer anybody.

        ``eta`` is an L1 distance of features, for one nat of loss.
        """
        return cls(np.zeros(dimension, dtype=np.int32), grid_bits, exact_eta(eta), empty=True)

    @property
    def dimension(self) -> int:
        """How many features the signal has."""
        return int(self.steps.size)

    @property
    def values(self) -> NDArray[np.float64]:
        """The noisy features. They may lie outside the domain of features: that is normal."""
        return np.asarray(self.steps * 2.0**-self.grid_bits, dtype=np.float64)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the sender was promised, computed from eta, grid and dimension; the reply is post-processing and adds nothing."""
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

    def to_json(self) -> dict[str, Any]:
        """The signal as values for JSON."""
        return {
            "version": VERSION & 0xFF,
            "simulated": self.simulated,
            "empty": self.empty,
            "grid_bits": self.grid_bits,
            "eta": [self.eta.numerator, self.eta.denominator],
            "steps": self.steps.tolist(),
        }

    @classmethod
    def from_json(cls, value: object) -> "Signal":
        """The signal of such values, checked; InvalidMessage for anything else."""
        found = fields.members(value, "a signal", NAMES)
        fields.whole(found["version"], "$.version", least=VERSION & 0xFF, most=VERSION & 0xFF)
        eta = [
            fields.whole(one, "$.eta", least=1, most=_MOST_U32)
            for one in fields.listed(found["eta"], "$.eta", length=2)
        ]
        steps = [
            fields.whole(one, "$.steps", least=-MOST_STEPS, most=MOST_STEPS)
            for one in fields.listed(found["steps"], "$.steps")
        ]
        return cls(
            np.array(steps, dtype=np.int64),
            fields.whole(found["grid_bits"], "$.grid_bits", least=0, most=_MOST_GRID_BITS),
            _fraction(eta[0], eta[1]),
            fields.truth(found["simulated"], "$.simulated"),
            fields.truth(found["empty"], "$.empty"),
        )


def exact_eta(eta: Eta) -> Fraction:
    """``eta`` as the fraction that was meant: a float is read as the shortest decimal that means it, so that 0.1 is 1/10.

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
    """A signal as it stands on the wire, in a request for ``t`` of ``k`` items; in a memo both are 0."""
    flags = _SIMULATED * signal.simulated | _EMPTY * signal.empty
    eta = signal.eta
    header = _HEADER.pack(VERSION, flags, -signal.grid_bits, eta.numerator, eta.denominator, signal.dimension, k, t)
    return header + signal.steps.astype("<i4").tobytes()


def unpacked(content: bytes) -> tuple[Signal, int, int]:
    """What `packed` wrote: the signal, k and t."""
    if not isinstance(content, bytes) or len(content) < _HEADER.size:
        raise InvalidMessage(f"a signal or request has at least {_HEADER.size} bytes.")
    version, flags, exponent, numerator, denominator, dimension, k, t = _HEADER.unpack_from(content)
    if version != VERSION:
        raise InvalidMessage("this is no signal or request, or one of another version.")
    if flags & ~(_SIMULATED | _EMPTY):
        raise InvalidMessage("a signal or request has a flag that this version does not know.")
    if len(content) != _HEADER.size + 4 * dimension:
        raise InvalidMessage("the length of a signal or request must be 16 bytes and 4 for each of its numbers.")
    steps = np.frombuffer(content, dtype="<i4", offset=_HEADER.size)
    eta = _fraction(numerator, denominator)
    return Signal(steps, -exponent, eta, bool(flags & _SIMULATED), bool(flags & _EMPTY)), k, t


def _fraction(numerator: int, denominator: int) -> Fraction:
    """In lowest terms only: then one signal is one sequence of bytes."""
    if denominator == 0:
        raise InvalidMessage("eta has a denominator of 0.")
    fraction = Fraction(numerator, denominator)
    if fraction.denominator != denominator:
        raise InvalidMessage("eta must be a fraction in lowest terms.")
    return fraction
