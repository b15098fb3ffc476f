"""Ratings as columns: one row for each (user, item), sorted by user, then item.

This order makes the rows a CSR matrix without a copy, a user's profile a slice, and two ratings of one pair impossible. Beside
`Ratings` this module has its parts: the `Scale` of the values, the `Entities` that hold the users, the `Provenance`, and a
`Description`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite, keep, positive
from tacit.data.catalogue import (
    Catalogue,
    Codes,
    Ids,
    UserId,
    checked_code,
    code_of,
    codes_allowed,
    lock_arrays,
    read_only,
)
from tacit.errors import InvalidData, InvalidParameter, UnknownName

# The time of a rating is in whole seconds since 1970. A rating without a known time sorts before all others.
MISSING_TIME = int(np.iinfo(np.int64).min)
_CHUNK = 1 << 20  # fits the cache, so that the check of 25 million ratings needs no extra memory
_TOLERANCE = 1e-3  # of a step; ratings are float32


@dataclass(frozen=True, slots=True)
class Scale:
    """The allowed values of a rating: ``low`` to ``high``, in steps of ``step`` if set. ``high`` may be infinite, as for counts."""

    low: float  # the lowest rating, in stars or counts
    high: float  # the highest rating, in the same unit
    step: float | None = None

    def __post_init__(self) -> None:
        finite("the low end of the scale", self.low)
        if self.high != math.inf:
            finite("the high end of the scale", self.high)
        if not self.low < self.high:
            raise InvalidParameter(
                f"the low end of the scale must be below its high end: {self.low:g} is not below {self.high:g}."
            )
        if self.step is not None:
            steps = (self.high - self.low) / positive("the step of the scale", self.step)
            if math.isfinite(steps) and abs(steps - round(steps)) > _TOLERANCE:
                raise InvalidParameter(f"steps of {self.step:g} do not lead from {self.low:g} to {self.high:g}.")

    def __str__(self) -> str:
        reach = f"{self.low:g} or more" if self.high == math.inf else f"{self.low:g} to {self.high:g}"
        return reach if self.step is None else f"{reach} in steps of {self.step:g}"

    def first_outside(self, values: NDArray[np.float32]) -> int | None:
        """The index of the first value that is not on the scale, or None. NaN is never on it."""
        for start in range(0, values.size, _CHUNK):
            chunk = values[start : start + _CHUNK]
            fits = (chunk >= self.low) & (chunk <= self.high) & (chunk < math.inf)
            if self.step is not None:
                steps = (chunk - np.float32(self.low)) / np.float32(self.step)
                with np.errstate(invalid="ignore"):  # infinite values already do not fit
                    fits &= np.abs(steps - np.rint(steps)) <= _TOLERANCE
            if not fits.all():
                return start + int(np.argmin(fits))
        return None

    def nearest(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """The nearest value on the scale for each value."""
        moved = np.clip(values, self.low, self.high)
        if self.step is not None:
            moved = self.low + np.rint((moved - self.low) / self.step) * self.step
        return np.clip(moved, self.low, self.high).astype(np.float32)

    def without_step(self) -> "Scale":
        """The same range, with any number within it allowed."""
        return Scale(self.low, self.high)


STARS = Scale(1.0, 5.0, 1.0)
HALF_STARS = Scale(0.5, 5.0, 0.5)
COUNTS = Scale(1.0, math.inf, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Entities:
    """The organisation that holds each user: a hospital, a region, a ZIP digit. ``codes[user]`` is an index into ``names``."""

    kind: str  # "hospital", "region", "ZIP digit"
    names: tuple[str, ...]
    codes: Codes

    def __post_init__(self) -> None:
        if self.codes.size and not 0 <= int(self.codes.min()) <= int(self.codes.max()) < len(self.names):
            raise InvalidData(f"every user must belong to one of the {len(self.names)} entities.")
        keep(self, codes=read_only(self.codes.astype(np.int32, copy=False)))

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Entities({len(self):,} of kind {self.kind!r})"

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of users of each entity."""
        return np.bincount(self.codes, minlength=len(self)).astype(np.int64)

    def select(self, users: NDArray[Any]) -> "Entities":
        """The entities of these users, by their codes, in that order."""
        return Entities(self.kind, self.names, self.codes[users])

    @classmethod
    def from_labels(cls, kind: str, labels: Sequence[str]) -> "Entities":
        """Entities from one label for each user, in ascending order of name."""
        names, codes = np.unique(np.asarray(labels, dtype=str), return_inverse=True)
        return cls(kind, tuple(str(name) for name in names), codes.astype(np.int32))


@dataclass(frozen=True, slots=True)
class Provenance:
    """The source of data, their licence, and how to cite them."""

    source: str = "unknown"
    licence: str = "unknown: ask its owner before passing it on"
    citation: str = ""


UNKNOWN = Provenance()


_HARPER = 'F. M. Harper and J. A. Konstan, "The MovieLens Datasets: History and Context", ACM TiiS 5(4), 2015'

MOVIELENS = Provenance(
    "GroupLens, MovieLens", "research use, no commercial use, no redistribution without permission", _HARPER
)
MOVIELENS_LATEST = Provenance(
    "GroupLens, MovieLens latest", "research use, no commercial use; may be redistributed on these terms", _HARPER
)
AMAZON = Provenance(
    "Amazon reviews, a subset in two domains",
    "none stated: for evaluation only, do not redistribute",
    'J. Ni, J. Li, J. McAuley, "Justifying Recommendations using Distantly-Labeled Reviews", EMNLP-IJCNLP 2019',
)
OPEN_BANDIT = Provenance(
    "ZOZO, Open Bandit Dataset",
    "its repository is Apache-2.0; no separate licence of the data was found",
    'Y. Saito et al., "Open Bandit Dataset and Pipeline", arXiv:2008.07146',
)
EICU = Provenance(
    "eICU Collaborative Research Database, open demo",
    "Open Database License (ODbL) 1.0",
    'T. J. Pollard et al., "The eICU Collaborative Research Database", Scientific Data 5, 180178, 2018',
)
GENERATED = Provenance("generated by tacit", "none needed: nobody in it is real")


@dataclass(frozen=True, eq=False, repr=False)
class Ratings:
    """Ratings of items by users. They are private: ``repr`` shows sizes, never content. The arrays are read-only."""

    starts: NDArray[np.int32]  # the rows of user c are starts[c] to starts[c + 1]
    items: Codes
    values: NDArray[np.float32]
    times: NDArray[np.int64] | None  # seconds since 1970, MISSING_TIME where unknown
    user_ids: Ids
    catalogue: Catalogue
    scale: Scale
    name: str = "ratings"
    provenance: Provenance = UNKNOWN
    entities: Entities | None = None

    def __post_init__(self) -> None:
        _check_shape(self)
        lock_arrays(self)

    def __len__(self) -> int:
        return int(self.items.size)

    def __repr__(self) -> str:
        return f"Ratings({self.name!r}: {len(self):,} ratings, {self.n_users:,} users, {self.n_items:,} items)"

    @property
    def n_users(self) -> int:
        """The number of users, with or without ratings."""
        return int(self.user_ids.size)

    @property
    def n_items(self) -> int:
        """The number of items in the catalogue, rated or not."""
        return len(self.catalogue)

    @cached_property
    def users(self) -> Codes:
        """The user code of each row."""
        return read_only(np.repeat(np.arange(self.n_users, dtype=np.int32), self.counts))

    @property
    def counts(self) -> NDArray[np.int32]:
        """The number of ratings of each user."""
        return np.diff(self.starts)

    @property
    def item_counts(self) -> NDArray[np.int64]:
        """The number of ratings of each item."""
        return np.bincount(self.items, minlength=self.n_items).astype(np.int64)

    def csr(self) -> Any:
        """Users x items as a read-only ``scipy.sparse.csr_array`` on the same memory."""
        from scipy.sparse import csr_array

        matrix = csr_array((self.values, self.items, self.starts), shape=(self.n_users, self.n_items), copy=False)
        matrix.has_canonical_format = True  # sorted, no repeats: saves scipy a pass over the rows
        return matrix

    def rows_of(self, user: int) -> slice:
        """The rows of the user with this code: ``ratings.items[ratings.rows_of(user)]``."""
        user = checked_code("user", user, self.n_users)
        return slice(int(self.starts[user]), int(self.starts[user + 1]))

    def user_id(self, code: int) -> UserId:
        """The id of a user, as in the file, by their code (0 to the number of users less 1)."""
        return UserId(self.user_ids[checked_code("user", code, self.n_users)].item())

    def user_code(self, user: UserId) -> int:
        """The code of a user id. Raises ``UnknownName``, without the id in its text, if there is no such user."""
        code = code_of(self.user_ids, user)
        if code is None:
            raise UnknownName(f"no such user among the {self.n_users:,} of {self.name!r}.")
        return code

    def subset(self, rows: NDArray[np.bool_]) -> "Ratings":
        """The rows where the mask is true. All users, items and their codes stay, even without a rating."""
        if not isinstance(rows, np.ndarray) or rows.shape != (len(self),) or rows.dtype != np.bool_:
            raise InvalidParameter(f"rows must be an array of {len(self):,} true-or-false values, one for each rating.")
        kept = np.concatenate([np.zeros(1, dtype=np.int32), np.cumsum(rows, dtype=np.int32)])
        times = None if self.times is None else self.times[rows]
        return replace(self, starts=kept[self.starts], items=self.items[rows], values=self.values[rows], times=times)

    def select_users(self, users: NDArray[np.bool_] | NDArray[np.integer[Any]]) -> "Ratings":
        """The ratings of these users (a mask, or codes), with new user codes in the old order. Items and their codes stay."""
        kept = _user_mask(users, self.n_users)
        chosen = self.subset(np.repeat(kept, self.counts))
        ends = np.concatenate([np.zeros(1, dtype=np.int32), chosen.starts[1:][kept]])
        entities = None if self.entities is None else self.entities.select(kept)
        return replace(chosen, starts=ends, user_ids=self.user_ids[kept], entities=entities)

    def compact(self, least: int = 1) -> "Ratings":
        """Drops users with fewer than ``least`` ratings, then items without ratings, and assigns new codes.

        Returns the same object if nothing is dropped.
        """
        enough = self.counts >= least
        kept = self if enough.all() else self.select_users(enough)
        rated = kept.item_counts > 0
        if rated.all():
            return kept
        new_codes = np.cumsum(rated, dtype=np.int32) - np.int32(1)
        catalogue = kept.catalogue.select(np.flatnonzero(rated).astype(np.int32))
        return replace(kept, items=new_codes[kept.items], catalogue=catalogue)

    def by_entity(self) -> Iterator[tuple[str, "Ratings"]]:
        """Each entity's name with the ratings of its users. All parts share the items and their codes."""
        if self.entities is None:
            raise InvalidParameter(f"{self.name!r} has no entities; add them with with_entities().")
        for code, name in enumerate(self.entities.names):
            part = self.select_users(self.entities.codes == code)
            yield name, replace(part, name=f"{self.name}, {self.entities.kind} {name}")

    def with_entities(self, entities: Entities | None) -> "Ratings":
        """The same ratings with these entities for their users, or without entities for None."""
        return replace(self, entities=entities)

    def describe(self) -> "Description":
        """Exact sizes and averages, for the holder of the data. Do not release them."""
        rated = int(np.count_nonzero(self.item_counts))
        times = None if self.times is None else self.times[self.times != MISSING_TIME]
        return Description(
            name=self.name,
            ratings=len(self),
            users=self.n_users,
            items=self.n_items,
            rated_items=rated,
            density=len(self) / max(1, self.n_users * rated),
            mean=float(self.values.mean(dtype=np.float64)) if len(self) else None,
            median_per_user=float(np.median(self.counts)) if self.n_users else None,
            scale=str(self.scale),
            first_time=_day(times.min()) if times is not None and times.size else None,
            last_time=_day(times.max()) if times is not None and times.size else None,
            missing_times=0 if times is None else len(self) - int(times.size),
            genres=len(self.catalogue.vocabulary),
            entities=None if self.entities is None else f"{len(self.entities)} of kind {self.entities.kind}",
            source=self.provenance.source,
            licence=self.provenance.licence,
            citation=self.provenance.citation,
        )


def _day(seconds: np.int64) -> str | None:
    try:
        return datetime.fromtimestamp(int(seconds), tz=UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return None  # outside the calendar: the file has counters instead of times


def _user_mask(users: object, n_users: int) -> NDArray[np.bool_]:
    """A mask of users from a mask or from codes. Raises InvalidParameter for an unknown code."""
    if isinstance(users, np.ndarray) and users.dtype == np.bool_ and users.shape == (n_users,):
        return users
    if not isinstance(users, np.ndarray) or users.ndim != 1 or users.dtype.kind not in "iu":
        raise InvalidParameter(f"users must be an array of user codes, or of {n_users:,} true-or-false values.")
    if users.size and not 0 <= int(users.min()) <= int(users.max()) < n_users:
        raise InvalidParameter(f"unknown user code; {codes_allowed(n_users)}.")
    mask = np.zeros(n_users, dtype=np.bool_)
    mask[users] = True
    return mask


def _check_shape(ratings: Ratings) -> None:
    starts, items, times, entities = ratings.starts, ratings.items, ratings.times, ratings.entities
    if (
        starts.shape != (ratings.n_users + 1,)
        or starts[0] != 0
        or starts[-1] != items.size
        or np.any(starts[1:] < starts[:-1])
    ):
        raise InvalidData(f"starts must rise from 0 to {items.size}, one entry for each user and one more.")
    if ratings.values.shape != items.shape or (times is not None and times.shape != items.shape):
        raise InvalidData("items, values and times must be columns of one length.")
    if starts.dtype != np.int32 or items.dtype != np.int32 or ratings.values.dtype != np.float32:
        raise InvalidData("starts and items must be int32, values float32.")
    if items.size and not 0 <= int(items.min()) <= int(items.max()) < len(ratings.catalogue):
        raise InvalidData("every item code must be the code of an item in the catalogue.")
    rises = items[1:] > items[:-1]
    rises[starts[(starts > 0) & (starts < items.size)] - 1] = True  # the first row of a user may have any item
    if not rises.all():
        raise InvalidData("the rows of a user must be sorted by item, each item once.")
    if entities is not None and entities.codes.shape != (ratings.n_users,):
        raise InvalidData(f"entities must name one entity for each of the {ratings.n_users:,} users.")


@dataclass(frozen=True, slots=True)
class Description:
    """Exact sizes and averages, for the holder of the data only: they are not differentially private."""

    name: str
    ratings: int
    users: int
    items: int
    rated_items: int
    density: float  # share of the (user, rated item) pairs that have a rating
    mean: float | None
    median_per_user: float | None
    scale: str
    first_time: str | None
    last_time: str | None
    missing_times: int
    genres: int
    entities: str | None
    source: str
    licence: str
    citation: str

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON."""
        return asdict(self)


def generator(rng: object) -> np.random.Generator:
    """``rng`` if it is a numpy Generator. Experiments draw from a Generator that you pass, never from a seed."""
    if not isinstance(rng, np.random.Generator):
        raise InvalidParameter(
            f"rng must be a numpy Generator, such as np.random.default_rng(1), not {type(rng).__name__}."
        )
    return rng
