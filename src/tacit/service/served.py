"""The version that a service serves. Loading it computes everything that is the same for all requests.

A new version is loaded and tested beside the old one, and then takes its place. Requests in progress finish with the old
version.
"""

import asyncio
import csv
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidData, InvalidModel, TacitError
from tacit.files import OWNER_ONLY, replace
from tacit.guarantees import Guarantee, compose
from tacit.ledger import ImpressionLedger
from tacit.messages.multi_selection import GRID_BITS, MOST_K, Reply, Signal
from tacit.messages.private_slates import Popularity
from tacit.messages.store import Store
from tacit.models.features import GenreProfile, unit_rows
from tacit.models.multi_selection import LinearMap
from tacit.server import Listings, MultiSelection, Population, PrivateSelection, PrivateSlates, listings_of
from tacit.server.listings import best_items, quality_map
from tacit.service.bodies import (
    CatalogueBody,
    ModelBody,
    Packed,
    PublishedRelease,
    ReleasesBody,
    ServedSlateBody,
    json_bytes,
)
from tacit.service.settings import Settings
from tacit.service.telemetry import LOG, MODEL, SWAPS, places_of
from tacit.service.versions import STORE, Version, current, is_demonstration, load_tables, read_version

_COLUMNS = ["item", "bid_micros", "ppm"]
_PPM = 1e6
_OFFERED = 40
# With more films, noise often picks one that the model rates highly and hardly anybody knows.
_OFFERED_IN_DEMONSTRATION = 12
_RETRY = 60.0  # seconds
_REFUSED = "a new version could not be loaded; the old one keeps answering"
_DAMAGED = "the published version could not be loaded; the one served before keeps answering"
_MANY = 10_000  # look-alikes: an answer takes about two milliseconds
_VERY_MANY = 250_000  # about twelve milliseconds


class Pace(Enum):
    """The duration of a piece of work, which decides where it runs."""

    AT_ONCE = "up to about two milliseconds: at once, on the event loop"
    IN_TURN = "some milliseconds: on the event loop, one in each round"
    BESIDE = "longer: in a thread beside the event loop, one after the other"


class Shelf:
    """Holds the version that is served now, watches for newer ones and swaps them in while requests go on."""

    def __init__(self, settings: Settings, ledger: ImpressionLedger) -> None:
        self._settings, self._ledger = settings, ledger
        self._note = settings.home / "served"  # the name of the version that was swapped in last
        self._served: ServedVersion | None = None

    @property
    def served(self) -> "ServedVersion | None":
        """The version that answers; None before the first one is loaded."""
        return self._served

    def load(self) -> None:
        """Loads the published version if it is a new one. Raises an error if that fails; the old version then stays."""
        version = current(self._settings.models_folder)
        if self._served is None or version.name != self._served.version.name:
            self._swap_in(version)

    def begin(self) -> None:
        """Loads the first version of this process: the published one or, if that is damaged, the one served last.

        A worker that replaces another then answers like those that loaded their version before the damage.
        """
        try:
            self.load()
        except Exception as problem:
            with suppress(Exception):
                self._swap_in(read_version(self._settings.models_folder, self._note.read_text(encoding="ascii")))
                LOG.error(_DAMAGED, extra={"about": places_of(problem)})
                return
            raise

    def _swap_in(self, version: Version) -> None:
        self._served = ServedVersion(version, self._settings, self._ledger).warm_up()
        with suppress(OSError):  # without the note, a replaced worker only waits for a sound version
            replace(self._note, version.name.encode(), mode=OWNER_ONLY, inherit_owner=True)
        MODEL.set(version.published)
        LOG.info("model", extra={"about": {"version": version.name, "name": self._served.store.name}})

    async def watch(self) -> None:
        """Looks for new versions as long as the process runs. It logs a failing version once, and tries it again later."""
        failed: str | None = None
        retry_at = 0.0
        while True:
            await asyncio.sleep(self._settings.swap_seconds)
            name = ""
            try:
                name = (await asyncio.to_thread(current, self._settings.models_folder)).name
                if self._served is not None and name == self._served.version.name:
                    failed = None
                elif name != failed or monotonic() > retry_at:
                    await asyncio.to_thread(self.load)
                    SWAPS.labels("taken").inc()
            except Exception as problem:  # the old version keeps answering
                retry_at = monotonic() + _RETRY
                if name != failed:
                    SWAPS.labels("refused").inc()
                    LOG.error(_REFUSED, extra={"about": places_of(problem)})
                failed = name


class ServedVersion:
    """One published version, loaded and ready to answer."""

    def __init__(self, version: Version, settings: Settings, ledger: ImpressionLedger) -> None:
        self.version = version
        self.store = Store.load(version.folder / STORE)
        if self.store.version != version.manifest["store"]:
            raise InvalidModel(
                "the store is not the one that was published. Publish again, or go back to an older version."
            )
        size = len(self.store.look_alikes)
        self.pace = Pace.AT_ONCE if size <= _MANY else Pace.IN_TURN if size <= _VERY_MANY else Pace.BESIDE
        self.multi_selection = MultiSelection(
            self.store,
            settings.algorithm,
            settings.local_model,
            tables=load_tables(version, self.store),
        )
        self.slates = self._slates()
        self.greedy_slates: dict[tuple[str, int, float], ServedSlateBody] = {}  # dropped with this version
        demonstration = is_demonstration(version)
        offered = settings.offered or (_OFFERED_IN_DEMONSTRATION if demonstration else _OFFERED)
        self.offered = items_to_offer(self.store, settings.listings, self.liked, offered)
        # Visitors of a demonstration may see its counts: they come from public ratings, and nobody pays for impressions.
        is_harmless = demonstration and settings.listings is None
        self.shows_counts = is_harmless if settings.open_counts is None else settings.open_counts
        self.private_selection = PrivateSelection(
            self.offered.listings,
            ledger,
            policy=settings.policy,
            epsilon=settings.epsilon,
            spread=self.offered.population,
            lasts=settings.offer_seconds,
            click_epsilon=settings.click_epsilon,
            explore=0.0,  # its estimates live in the memory of one process
        )

    @cached_property
    def catalogue(self) -> Packed:
        """The public facts that a device needs: the items, and how to compute features from ratings."""
        space, items = self.store.space, self.store.items
        flags = space.flags if isinstance(space, GenreProfile) else np.zeros((len(items), 0), dtype=np.bool_)
        names = self.version.feature_names or [f"feature {number + 1}" for number in range(flags.shape[1])]
        features = {
            "kind": space.kind,
            "dimension": space.dimension,
            "names": names,
            "liked_from": space.liked_from if isinstance(space, GenreProfile) else None,
            "low": space.low,
            "high": space.high,
            "grid_bits": GRID_BITS,
        }
        content = CatalogueBody(
            version=1,
            name=self.store.name,
            model=self.store.version,
            features=features,
            ids=items.ids.tolist(),
            titles=None if items.titles is None else list(items.titles),
            genres=[np.flatnonzero(row).tolist() for row in flags],
        )
        return Packed(json_bytes(content))

    @cached_property
    def scorer(self) -> tuple[Reply, ...]:
        """The quality of every offered item as a linear map of features, in parts of at most 255 items."""
        codes = self.offered.codes
        numbers, rows = self.store.items.numbers[codes], self.offered.map.matrix
        return tuple(
            Reply.of(
                numbers[first : first + MOST_K].tolist(),
                len(codes[first : first + MOST_K]),
                LinearMap(rows[first : first + MOST_K]),
                self.store.space.dimension,
            )
            for first in range(0, len(codes), MOST_K)
        )

    @cached_property
    def about(self) -> ModelBody:
        """The version that answers, and its guarantee for the people whose ratings it was fitted to."""
        return ModelBody(
            version=self.version.name,
            store=self.store.version,
            name=self.store.name,
            items=len(self.store.items),
            look_alikes=len(self.store.look_alikes),
            guarantee=self.store.guarantee,
            published=self.version.published,
        )

    @cached_property
    def releases(self) -> ReleasesBody:
        """All releases of the version, with their guarantees."""
        return ReleasesBody(
            [
                PublishedRelease(entry["name"], entry["kind"], Guarantee.from_json(entry["guarantee"]))
                for entry in self.version.releases
            ]
        )

    @cached_property
    def slates_together(self) -> Guarantee | None:
        """The guarantee of all releases for slates together."""
        guarantees = [slates.guarantee for slates in self.slates.values()]
        return compose(guarantees) if guarantees else None

    @cached_property
    def rows(self) -> NDArray[np.float64] | None:
        """The genres of each item as a row of length 1; None if the model has no genres."""
        if not isinstance(self.store.space, GenreProfile):
            return None
        return unit_rows(self.store.space.flags)

    @cached_property
    def liked(self) -> dict[int | str, float]:
        """The counts of the release with the largest epsilon, by item. All slates are compared with them."""
        best = max(self.slates.values(), key=lambda slates: slates.guarantee.epsilon, default=None)
        if best is None or not isinstance(best.release, Popularity):
            return {}
        counts = np.maximum(best.release.counts(), 0.0)
        return dict(zip(best.release.items, counts.tolist(), strict=True))

    def title(self, item: int | str) -> str:
        """The title of an item. Raises UnknownName for an item of another version."""
        return self.store.items.title(self.store.items.code(item))

    def warm_up(self) -> "ServedVersion":
        """Computes one answer of each kind: that compiles code before the first request, and finds faults before the swap."""
        dimension = self.store.space.dimension
        silent = Signal.nothing(dimension, "0.1")
        for signal in (silent, Signal.from_json({**silent.to_json(), "empty": False})):
            self.multi_selection.answer(signal, 5)
        _ = self.catalogue, self.scorer, self.slates_together, self.liked
        return self

    def _slates(self) -> dict[str, PrivateSlates]:
        slates = {}
        for entry in self.version.releases:
            if entry["kind"] == "popularity":
                release = cast(Popularity, self.version.release(entry["name"]))
                rows = None if self.rows is None else self.rows[self.store.items.codes(release.items)]
                slates[entry["name"]] = PrivateSlates(release, rows)
        return slates


@dataclass(frozen=True)
class OfferedItems:
    """The items that private selection offers.

    ``population`` weighs the choices of the rule `auto`. ``map`` is the linear map with which a device scores the items.
    """

    listings: Listings
    population: Population
    codes: NDArray[np.int32]
    map: LinearMap


def items_to_offer(store: Store, listings: Path | None, liked: Mapping[int | str, float], offered: int) -> OfferedItems:
    """The operator's list with bids. Without a list, the ``offered`` most liked items, free of charge.

    ``liked`` are released counts. Without counts, the model's best-rated items are offered.
    """
    if listings is not None:
        return _items_with_bids(store, listings)
    ids = sorted(liked, key=lambda item: -liked[item])[:offered] or best_items(store, offered)
    free, people = listings_of(store, ids)
    return OfferedItems(free, people, store.items.codes(ids), quality_map(store, ids))


def _items_with_bids(store: Store, file: Path) -> OfferedItems:
    """Reads a CSV with a bid and a public click probability for each item.

    The click probability of one user is the public one, times the model's rating for them over its mean rating.
    """
    names, bids, ppm = _read_bids(file)
    ids = [_id(store, name, file) for name in names]
    free, people = listings_of(store, ids)
    priced = free.priced()
    means = dict(zip(priced.items, priced.scores.tolist(), strict=True))
    items = [str(id) for id in ids]
    least = 1.0 / _PPM  # factors must be above 0, so an item without clicks counts as one in a million
    factors = np.array([max(rate, 1) / _PPM / max(means[item], least) for item, rate in zip(items, ppm, strict=True)])
    own = LinearMap(quality_map(store, ids).matrix * factors[:, None])
    return OfferedItems(Listings(items, bids, ppm), people.times(factors), store.items.codes(ids), own)


def _read_bids(file: Path) -> tuple[list[str], list[int], list[int]]:
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            rows = csv.DictReader(lines)
            if rows.fieldnames != _COLUMNS:
                raise InvalidData(f"{file} must have the columns {','.join(_COLUMNS)}.")
            listings = []
            for row in rows:
                if None in row or None in row.values():  # a cell too many or too few
                    raise ValueError
                listings.append((row["item"], _whole(row["bid_micros"]), _whole(row["ppm"])))
    except TacitError:
        raise
    except (ValueError, csv.Error):
        raise InvalidData(f"{file}: each row must have an item and two whole numbers, in millionths.") from None
    if not listings:
        raise InvalidData(f"{file} lists no items.")
    names, bids, ppm = zip(*listings, strict=True)
    return list(names), list(bids), list(ppm)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError
    return int(text)


def code_of(store: Store, id: str) -> int:
    """The code of an item whose id is written as text. Raises UnknownName or ValueError if the model has no such item."""
    return store.items.code(int(id) if store.items.ids.dtype.kind in "iu" else id)


def _id(store: Store, name: str, file: Path) -> int | str:
    try:
        return store.items.id(code_of(store, name))
    except (TacitError, ValueError):
        raise InvalidData(f"{file} lists {name!r}, which is not an item of the model.") from None
