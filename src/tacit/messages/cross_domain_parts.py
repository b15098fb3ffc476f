"""What the messages of cross-domain have in common: profiles as their owner writes them, catalogues, files."""

import json
import math
import os
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidInput, InvalidMessage, UnknownName
from tacit.guarantees import Guarantee, LossKind, delta_of_gaussian, epsilon_of_rho
from tacit.messages import fields
from tacit.messages.private_slates_parts import Item, checked_guarantee, checked_items

LARGEST = 1e6  # of a number on a scale
MOST = (
    1e13  # of any other: above the square of LARGEST, and products of such numbers added up over all items stay finite
)
_MOST_BYTES = 1 << 29
_DIGITS = 18  # of a whole number that is an id
_ROUNDED = 1e-9  # how far a claim may be from another, as each was rounded by itself; relative


def of_format(value: object, what: str, names: Collection[str], version: str) -> dict[str, Any]:
    found = fields.members(value, what, names)
    if found["format"] != version:
        raise InvalidMessage(f"expected {version!r} at $.format: this is another message, or of another version.")
    return found


def checked_catalogues(source: object, target: object) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Public ids of both domains, each of them once, in one domain."""
    first, second = checked_items(source, least=1), checked_items(target, least=1)
    checked_items(first + second)
    return first, second


def checked_scale(value: object) -> tuple[float, float]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise InvalidMessage("expected two numbers at $.scale.")
    low, high = (fields.real(one, "$.scale") for one in value)
    if not -LARGEST <= low < high <= LARGEST:
        raise InvalidMessage(f"expected a scale that rises, within {LARGEST:g} of 0, at $.scale.")
    return low, high


def checked_promise(value: object, *, gaussian: bool = False) -> Guarantee:
    """A guarantee whose epsilon and delta follow from the loss beside them: a smaller epsilon is a promise that nobody proved.

    Without a delta a Gaussian loss promises no epsilon at all, a range is at most epsilon, and a rho is a further fact about an
    epsilon: no more than its square by 2. Where a release is ``gaussian`` any promise comes with such a loss, or it could not be
    checked.
    """
    promise = checked_guarantee(value)
    kind = None if promise.loss is None else promise.loss.kind
    if gaussian and kind is not LossKind.GAUSSIAN and not promise.promises_nothing:
        raise InvalidMessage("expected a gaussian loss, from which epsilon follows, at $.guarantee.loss.")
    if promise.loss is not None:
        epsilon, delta, size = promise.epsilon, promise.delta, promise.loss.value
        follows = True
        if kind is LossKind.GAUSSIAN:  # above 0: what depends on nobody needs no noise
            follows = size > 0.0 and delta > 0.0 and delta_of_gaussian(size, epsilon) <= delta * (1.0 + _ROUNDED)
        elif kind is LossKind.BOUNDED_RANGE:
            follows = size <= epsilon * (1.0 + _ROUNDED)
        elif kind is LossKind.ZCDP and delta > 0.0 and size > 0.0:
            follows = epsilon_of_rho(size, delta) <= epsilon * (1.0 + _ROUNDED)
        elif kind is LossKind.ZCDP:
            follows = 2.0 * size <= epsilon * epsilon * (1.0 + _ROUNDED)
        if not follows:
            raise InvalidMessage("expected an epsilon that follows from delta and the loss at $.guarantee.")
    return promise


def known_ratings(
    profile: Mapping[Any, Any], places: Mapping[Any, int], scale: tuple[float, float]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The places of the profile's known items, ascending, and their ratings. Unknown items are passed over; no value is shown.

    17 and "17" are one item (`place_of`), so that a profile that was JSON in between is the same one.
    """
    if not isinstance(profile, Mapping):
        raise InvalidInput("a profile must be a mapping from item to rating.")
    found = [(place_of(item, places), value) for item, value in profile.items()]
    known = sorted(((place, value) for place, value in found if place is not None), key=lambda one: one[0])
    if len({place for place, _ in known}) < len(known):
        raise InvalidInput(
            "a profile has two ratings of one item, by its number and by the same number as text: keep one."
        )
    values = [_number(value) for _, value in known]
    if not all(scale[0] <= value <= scale[1] for value in values):  # written so that NaN fails too
        raise InvalidInput(
            f"every rating of a profile must be a number on the scale, from {scale[0]:g} to {scale[1]:g}; one is not. Correct it "
            "or leave its item out."
        )
    return np.array([place for place, _ in known], dtype=np.int64), np.array(values, dtype=np.float64)


def asked_places(items: Iterable[Any], places: Mapping[Any, int]) -> tuple[list[Any], NDArray[np.int64]]:
    """Items that predictions are asked of, as they were named, and their places."""
    if isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
        raise InvalidInput("items must be a list of ids, also where it is a single one: [17].")
    names = list(items)
    found = [place_of(name, places) for name in names]
    if None in found:
        raise UnknownName("an item that was asked for is in neither catalogue: ask for items that are listed.")
    return names, np.array(found, dtype=np.int64)


def numbers(value: object, path: str, *, length: int, most: float = MOST) -> NDArray[np.float64]:
    """A list of so many finite numbers, none beyond ``most`` on either side of 0."""
    found = fields.listed(value, path, length=length)
    array = np.array([fields.real(one, path) for one in found], dtype=np.float64)
    if array.size and float(np.abs(array).max()) > most:
        raise InvalidMessage(f"expected numbers within {most:g} of 0 at {path}.")
    return array


def table(value: object, path: str, *, rows: int, columns: int) -> NDArray[np.float64]:
    found = fields.listed(value, path, length=rows)
    return np.array([numbers(row, path, length=columns) for row in found], dtype=np.float64).reshape(rows, columns)


def places(value: object, path: str, *, length: int, least: int, most: int) -> NDArray[np.int64]:
    found = fields.listed(value, path, length=length)
    return np.array([fields.whole(one, path, least=least, most=most) for one in found], dtype=np.int64)


def save(path: str | Path, value: dict[str, Any]) -> Path:
    """One file, whole or not at all, readable by its owner only."""
    path = Path(path)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(value, file, allow_nan=False, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
    return path


def load(path: str | Path) -> object:
    """The JSON of a file; a file that is missing or locked away is the system's error, and says so."""
    with Path(path).open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise InvalidMessage(f"expected a file of at most {_MOST_BYTES:,} bytes.")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidMessage("this is no message of tacit, or it is cut off.") from None


def place_of(item: object, places: Mapping[Any, int]) -> int | None:
    """The place of an id, also where it is a whole number here and the same number as text there; "017" is another."""
    if not is_id(item):
        return None
    if item in places:
        return places[item]
    if not isinstance(item, str):
        return places.get(str(item))
    digits = item.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS and str(int(item)) == item
    return places.get(int(item)) if plain else None


def is_id(item: object) -> bool:
    return isinstance(item, (int, str, np.integer)) and not isinstance(item, bool)


def _number(value: object) -> float:
    """NaN where it is no number."""
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    return math.nan
