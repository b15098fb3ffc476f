"""What the holder of some ratings wants to know at a glance."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.data.clock import MISSING_TIME

if TYPE_CHECKING:
    from tacit.data.ratings import Ratings


@dataclass(frozen=True, slots=True)
class Description:
    """Exact sizes and averages: not private, for the holder's eyes."""

    name: str
    ratings: int
    users: int
    items: int
    rated_items: int
    density: float  # share of user x rated item pairs that have a rating
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
        """The same by name, for JSON."""
        return asdict(self)


def describe(ratings: "Ratings") -> Description:
    rated = int(np.count_nonzero(ratings.item_counts))
    times = None if ratings.times is None else ratings.times[ratings.times != MISSING_TIME]
    entities = ratings.entities
    return Description(
        name=ratings.name,
        ratings=len(ratings),
        users=ratings.n_users,
        items=ratings.n_items,
        rated_items=rated,
        density=len(ratings) / max(1, ratings.n_users * rated),
        mean=float(ratings.values.mean(dtype=np.float64)) if len(ratings) else None,
        median_per_user=float(np.median(ratings.counts)) if ratings.n_users else None,
        scale=str(ratings.scale),
        first_time=_day(times.min()) if times is not None and times.size else None,
        last_time=_day(times.max()) if times is not None and times.size else None,
        missing_times=0 if times is None else len(ratings) - int(times.size),
        genres=len(ratings.catalogue.vocabulary),
        entities=None if entities is None else f"{len(entities)} of kind {entities.kind}",
        source=ratings.provenance.source,
        licence=ratings.provenance.licence,
        citation=ratings.provenance.citation,
    )


def _day(seconds: np.int64) -> str | None:
    try:
        return datetime.fromtimestamp(int(seconds), tz=UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return None  # beyond the calendar: a counter rather than a clock
