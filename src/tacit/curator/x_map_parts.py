"""What the systems of the paper have in common, with noise and without: the graph of items, and profiles as rows."""

import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.checks import keep, whole
from tacit.curator.cross_domain_rows import LEAST_RATINGS, one_scale
from tacit.curator.cross_domain_union import union
from tacit.data.catalogue import Catalogue
from tacit.data.clock import MISSING_TIME
from tacit.data.pairs import TwoDomains
from tacit.data.scale import Scale
from tacit.errors import InvalidInput, UnknownName
from tacit.messages.cross_domain_parts import asked_places, known_ratings, place_of
from tacit.models.cross_domain.alter_egos import AlterEgos, alter_egos
from tacit.models.cross_domain.averages import mean_of
from tacit.models.cross_domain.legs import checked_order
from tacit.models.cross_domain.streamed import streamed
from tacit.models.cross_domain.x_sim import XSim, x_sim

NOBODY_IN_BOTH = (
    "nobody rated in both domains, so that no item of the source leads to one of the target: no item has a replacement, and every "
    "prediction is its base: the mean of the item, moved by how high the user rates unless base='item'."
)


@dataclass(frozen=True, slots=True)
class Graph:
    """How items are joined. Public constants: ``significant`` co-raters make a cosine count fully (0: always), ``edges`` are kept
    of each item towards the other domain, ``by`` says which are the best, ``least`` ratings in a domain make a user count there."""

    significant: int = 50
    edges: int = 10
    by: Literal["signed", "absolute"] = "signed"
    least: int = LEAST_RATINGS

    def __post_init__(self) -> None:
        keep(
            self,
            significant=whole("significant", self.significant, least=0),
            edges=whole("edges", self.edges, least=1),
            by=checked_order(self.by),
            least=whole("least", self.least, least=1),
        )

    def x_sim(self, table: sparse.csr_array, n_source: int) -> XSim:
        """X-SIM of all source and target items that a path joins; nothing where nobody rated in both."""
        _, legs = streamed(table, n_source, self.edges, by=self.by, shrink=self.significant)
        return x_sim(legs)


@dataclass(frozen=True, eq=False, repr=False)
class Held:
    """Ratings of both domains as one table, and what is public about them. Private as the ratings are."""

    source: Catalogue
    target: Catalogue
    scale: Scale
    table: sparse.csr_array
    times: NDArray[np.int64] | None

    @classmethod
    def of(cls, domains: TwoDomains, least: int) -> "Held":
        scale = one_scale(domains)
        return cls(domains.source.catalogue, domains.target.catalogue, scale, *union(domains, least))

    @property
    def n_source(self) -> int:
        return len(self.source)

    @cached_property
    def places(self) -> dict[Any, int]:
        """Of every item of both domains in the table."""
        return {item: place for place, item in enumerate([*self.source.ids.tolist(), *self.target.ids.tolist()])}

    @property
    def bounds(self) -> tuple[float, float]:
        return self.scale.low, min(self.scale.high, sys.float_info.max)

    def means(self) -> tuple[float, float]:
        """Of all ratings in the source, and in the target; the middle of the scale where there are none."""
        source, target = self.table[:, : self.n_source], self.table[:, self.n_source :]
        return mean_of(source, self.middle), mean_of(target, self.middle)

    @property
    def middle(self) -> float:
        """Of the scale; its low end where it has no other."""
        return self.scale.low if np.isinf(self.scale.high) else 0.5 * self.scale.low + 0.5 * self.scale.high

    def warn_if_apart(self) -> None:
        """Says once that nothing leads from one domain to the other. It depends on the ratings: not for what promises something."""
        counts = np.diff(self.table.indptr)
        rows = np.repeat(np.arange(counts.size), counts)
        first = np.bincount(rows, weights=self.table.indices < self.n_source, minlength=counts.size)
        if not ((first > 0) & (first < counts)).any():
            warnings.warn(NOBODY_IN_BOTH, UserWarning, stacklevel=6)


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """One served user's own ratings, as a row of the source and one of the target. Items that neither lists are passed over."""

    source: sparse.csr_array
    target: sparse.csr_array
    source_times: NDArray[np.int64] | None
    target_times: NDArray[np.int64] | None

    @classmethod
    def of(cls, profile: Mapping[Any, float], held: Held, times: Mapping[Any, int] | None = None) -> "Profile":
        codes, values = known_ratings(profile, held.places, held.bounds)
        known = None
        if times is not None:
            at = _known_times(times, held)
            known = np.array([at.get(code, MISSING_TIME) for code in codes.tolist()], dtype=np.int64)
        in_source = codes < held.n_source
        source = _row(codes[in_source], values[in_source], len(held.source))
        target = _row(codes[~in_source] - held.n_source, values[~in_source], len(held.target))
        if known is None:
            return cls(source, target, None, None)
        return cls(source, target, known[in_source], known[~in_source])

    def ego(self, replacement: NDArray[np.integer[Any]]) -> AlterEgos:
        """The profile rewritten into the target; what its owner rated there stays, and wins."""
        return alter_egos(
            self.source,
            replacement,
            self.target.shape[1],
            times=self.source_times,
            target=self.target,
            target_times=self.target_times,
        )

    def level(self, means: tuple[float, float]) -> float:
        """How far its owner's ratings lie above the mean of the domain that each is in; 0 without any."""
        above = np.concatenate([self.source.data - means[0], self.target.data - means[1]])
        return float(above.mean()) if above.size else 0.0


def _known_times(times: Mapping[Any, int], held: Held) -> dict[int, int]:
    """By places. An item that is left out has no time."""
    if not isinstance(times, Mapping):
        raise InvalidInput("times must be a mapping from item to a whole number of seconds since 1970.")
    found: dict[int, int] = {}
    for item, time in times.items():
        place = place_of(item, held.places)
        if place is None:
            continue
        if not isinstance(time, int | np.integer) or isinstance(time, bool) or not MISSING_TIME <= time < 2**62:
            raise InvalidInput(
                "every time of a profile must be a whole number of seconds since 1970; one is not. Correct it or leave its item "
                "out."
            )
        found[place] = int(time)
    return found


def _row(codes: NDArray[np.int64], values: NDArray[np.float64], size: int) -> sparse.csr_array:
    return sparse.csr_array((values, codes, np.array([0, codes.size])), shape=(1, size))


def wanted_codes(items: Any, held: Held) -> NDArray[np.int64]:
    """The codes of these target items; of all where none are named."""
    if items is None:
        return np.arange(len(held.target))
    codes = asked_places(items, held.places)[1] - held.n_source
    if (codes < 0).any():
        raise UnknownName("an item that was asked for is in the source: only items of the target are predicted.")
    return codes


def best(predicted: Mapping[Any, float], rated: NDArray[Any], k: int) -> tuple[Any, ...]:
    """The k items of largest prediction that are not ``rated``; of equal ones the first in the catalogue."""
    k, held = whole("k", k, least=1), set(rated.tolist())
    fresh = [item for item in predicted if item not in held]
    return tuple(sorted(fresh, key=lambda item: -predicted[item])[:k])
