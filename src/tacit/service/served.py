"""What is served of one version: everything that is the same for all requests is worked out when it is taken up.

A new version is loaded beside the old one, tried, and then put in its place: requests that are under way finish with the old.
"""

import asyncio
from contextlib import suppress
from functools import cached_property
from time import monotonic
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from tacit.errors import InvalidModel
from tacit.guarantees import Guarantee, compose
from tacit.ledger import ImpressionLedger
from tacit.messages.multi_selection import Reply, Signal
from tacit.messages.multi_selection_request import MOST_K
from tacit.messages.private_slates import Popularity
from tacit.messages.store import Store
from tacit.models.features import GenreProfile, unit_rows
from tacit.models.local_models import LinearMap
from tacit.server import MultiSelection, PrivateSelection, PrivateSlates
from tacit.service.bodies import Packed
from tacit.service.disk import put
from tacit.service.listed import Listed, listed_by
from tacit.service.logs import LOG, places_of
from tacit.service.metrics import MODEL, SWAPS
from tacit.service.pacing import Pace
from tacit.service.settings import Settings
from tacit.service.versions import STORE, Version, current, is_demonstration, load_tables, read_version

_OFFERED = 40
# A dozen films: among more, noise puts one that hardly anybody knows and the model praises, and nothing is left to choose.
_SHOWN_OFFERED = 12
GRID_BITS = 20  # of devices' signals; what a device sends says itself


class Served:
    """One version, ready to answer."""

    def __init__(self, version: Version, settings: Settings, ledger: ImpressionLedger) -> None:
        self.version = version
        self.store = Store.load(version.folder / STORE)
        if self.store.version != version.manifest["store"]:
            raise InvalidModel("the store is another one than was published: publish again, or go back a version.")
        people = len(self.store.look_alikes)
        self.pace = Pace.AT_ONCE if people <= _MANY else Pace.IN_TURN if people <= _VERY_MANY else Pace.BESIDE
        self.multi_selection = MultiSelection(
            self.store,
            settings.algorithm,
            settings.local_model,
            tables=load_tables(version, self.store),
        )
        self.slates = self._slates()
        self.greedy_slates: dict[tuple[str, int, float], dict[str, Any]] = {}  # with this version they go
        shows = is_demonstration(version)
        usual = _SHOWN_OFFERED if shows else _OFFERED
        self.listed: Listed = listed_by(self.store, settings.listings, self.liked, settings.offered or usual)
        # Of a demonstration visitors may see what the server counts: public ratings, and nobody's money.
        nobodys = shows and settings.listings is None
        self.counts_in_the_open = nobodys if settings.open_counts is None else settings.open_counts
        self.private_selection = PrivateSelection(
            self.listed.listings,
            ledger,
            policy=settings.policy,
            epsilon=settings.epsilon,
            spread=self.listed.population,
            lasts=settings.offer_seconds,
            click_epsilon=settings.click_epsilon,
            explore=0.0,  # what is explored is estimated in one process's memory: no place for it here
        )

    @cached_property
    def catalogue(self) -> Packed:
        """What a device has to know: items, and how features are made from ratings."""
        space, items = self.store.space, self.store.items
        flags = space.flags if isinstance(space, GenreProfile) else np.zeros((len(items), 0), dtype=np.bool_)
        names = self.version.feature_names or [f"feature {place + 1}" for place in range(flags.shape[1])]
        content = {
            "version": 1,
            "name": self.store.name,
            "model": self.store.version,
            "features": {
                "kind": space.kind,
                "dimension": space.dimension,
                "names": names,
                "liked_from": space.liked_from if isinstance(space, GenreProfile) else None,
                "low": space.low,
                "high": space.high,
                "grid_bits": GRID_BITS,
            },
            "ids": items.ids.tolist(),
            "titles": None if items.titles is None else list(items.titles),
            "genres": [np.flatnonzero(row).tolist() for row in flags],
        }
        return Packed(orjson.dumps(content))

    @cached_property
    def scorer(self) -> tuple[Reply, ...]:
        """The quality of every listed item as a linear map of features, in parts of at most 255 items."""
        codes = self.listed.codes
        numbers, rows = self.store.items.numbers[codes], self.listed.map.matrix
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
    def about(self) -> dict[str, Any]:
        return {
            "version": self.version.name,
            "store": self.store.version,
            "name": self.store.name,
            "items": len(self.store.items),
            "look_alikes": len(self.store.look_alikes),
            "guarantee": self.store.guarantee.to_json(),
            "published": self.version.published,
        }

    @cached_property
    def slates_together(self) -> Guarantee | None:
        """What all releases for slates promise together."""
        found = [one.guarantee for one in self.slates.values()]
        return compose(found) if found else None

    @cached_property
    def rows(self) -> NDArray[np.float64] | None:
        """The genres of each item as a row of length 1; None where there are none."""
        if not isinstance(self.store.space, GenreProfile):
            return None
        return unit_rows(self.store.space.flags)

    @cached_property
    def liked(self) -> dict[int | str, float]:
        """The counts of the release that tells most, by item: the yardstick for all slates."""
        best = max(self.slates.values(), key=lambda one: one.guarantee.epsilon, default=None)
        if best is None or not isinstance(best.release, Popularity):
            return {}
        counts = np.maximum(best.release.counts(), 0.0)
        return dict(zip(best.release.items, counts.tolist(), strict=True))

    def title(self, item: int | str) -> str:
        return self.store.items.title(self.store.items.code(item))

    def try_out(self) -> "Served":
        """One answer of each kind, so that nothing is compiled or found to be wrong when the first request comes."""
        dimension = self.store.space.dimension
        self.multi_selection.answer(Signal.nothing(dimension, "0.1"), 5)
        signal = Signal(np.zeros(dimension, dtype=np.int32), GRID_BITS, Signal.nothing(dimension, "0.1").eta)
        self.multi_selection.answer(signal, 5)
        _ = self.catalogue, self.scorer, self.slates_together, self.liked
        return self

    def _slates(self) -> dict[str, PrivateSlates]:
        found = {}
        for one in self.version.releases:
            if one["kind"] != "popularity":
                continue
            release = self.version.release(one["name"])
            if isinstance(release, Popularity):
                rows = None if self.rows is None else self.rows[self.store.items.codes(release.items)]
                found[one["name"]] = PrivateSlates(release, rows)
        return found


_TRY_AGAIN = 60.0  # seconds
_REFUSED = "a new version could not be taken up; the old one is served on"
_DAMAGED = "the version that is published could not be taken up; what was served before is served on"
_MANY = 10_000  # look-alikes, for whom an answer takes two milliseconds
_VERY_MANY = 250_000  # ... and some twelve


class Shelf:
    """The version that is served now, and the watch for a newer one."""

    def __init__(self, settings: Settings, ledger: ImpressionLedger) -> None:
        self._settings, self._ledger = settings, ledger
        self._noted = settings.home / "served"  # the version that was taken up last
        self._served: Served | None = None

    @property
    def served(self) -> Served | None:
        return self._served

    def load(self) -> None:
        """Takes up the version that is published, if it is another one. What is wrong with it is raised; the old one stays."""
        version = current(self._settings.models_folder)
        if self._served is None or version.name != self._served.version.name:
            self._take_up(version)

    def begin(self) -> None:
        """The first that this process serves: what is published; or, where that cannot be taken up, what was served last.

        A worker that is replaced is to answer as the others do, who were there before the damage.
        """
        try:
            self.load()
        except Exception as problem:
            with suppress(Exception):
                self._take_up(read_version(self._settings.models_folder, self._noted.read_text(encoding="ascii")))
                LOG.error(_DAMAGED, extra={"about": places_of(problem)})
                return
            raise

    def _take_up(self, version: Version) -> None:
        self._served = Served(version, self._settings, self._ledger).try_out()
        with suppress(OSError):  # without it a worker that is replaced waits for a sound version, no more
            put(self._noted, version.name.encode())
        MODEL.set(version.published)
        LOG.info("model", extra={"about": {"version": version.name, "name": self._served.store.name}})

    async def watch(self) -> None:
        """Looks for a new version, for as long as the process runs. One that is refused is told once, and tried again."""
        refused: str | None = None
        again = 0.0
        while True:
            await asyncio.sleep(self._settings.swap_seconds)
            name = ""
            try:
                name = (await asyncio.to_thread(current, self._settings.models_folder)).name
                if self._served is not None and name == self._served.version.name:
                    refused = None  # whatever comes next is looked at afresh
                elif name != refused or monotonic() > again:
                    await asyncio.to_thread(self.load)
                    SWAPS.labels("taken").inc()
            except Exception as problem:  # whatever is wrong with it, the old one answers
                again = monotonic() + _TRY_AGAIN
                if name != refused:
                    SWAPS.labels("refused").inc()
                    LOG.error(_REFUSED, extra={"about": places_of(problem)})
                refused = name
