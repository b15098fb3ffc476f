"""Multi-selection at the server: from a signal to a slate of k items and a local model for the device's pick.

Everything here is a function of the released signal, of public data and of the server's own coins: post-processing, which can
change freely without touching what the device was promised.
"""

from dataclasses import fields
from typing import Any

import numpy as np

from tacit.checks import member, whole
from tacit.errors import InvalidModel, InvalidParameter, NoLookAlikes
from tacit.guarantees import Guarantee
from tacit.messages.multi_selection import Reply, Request, Signal
from tacit.messages.store import Store
from tacit.models import loops
from tacit.models.scorer import Progress, require_usable
from tacit.models.tables import Tables, build_tables, tables_version
from tacit.server.algorithms import Algorithm, LocalModel, Settings
from tacit.server.fitting import fitted
from tacit.server.guessing import Guess
from tacit.server.slates import slate

MOST_ITEMS = 255  # of a slate: one byte on the wire


class MultiSelection:
    """Answers signals. Work that is the same for all of them (tables of utilities) is done when it is built.

    ``rng`` is the server's coins for posterior draws: experiment randomness, no privacy hangs on it.
    """

    def __init__(
        self,
        store: Store,
        algorithm: Algorithm | str = Algorithm.EXACT,
        local_model: LocalModel | str = LocalModel.RIDGE,
        *,
        tables: Tables | None = None,
        rng: np.random.Generator | None = None,
        progress: Progress | None = None,
        compiled: bool | None = None,
        **settings: Any,
    ) -> None:
        if not hasattr(store, "scorer"):
            raise InvalidParameter("a server answers from a store: MultiSelection(tacit.fit(ratings)).")
        known = [one.name for one in fields(Settings) if one.name not in ("algorithm", "local_model")]
        if unknown := [name for name in settings if name not in known]:
            raise InvalidParameter(f"there is no setting {unknown[0]!r}; the settings are {', '.join(known)}.")
        self.settings = Settings(
            member("algorithm", Algorithm, algorithm), member("local_model", LocalModel, local_model), **settings
        )
        self.store = store
        self.rng = np.random.default_rng() if rng is None else rng
        self._work = loops.chosen(compiled)
        require_usable(store.scorer, store.look_alikes)
        if self.settings.needs_look_alikes and not len(store.look_alikes):
            raise NoLookAlikes(
                f"{self.settings.algorithm} with {self.settings.local_model} weighs look-alikes, and this store has none. "
                "Fit a store with look-alikes, or choose sat, avg or nopost with pca, network or none."
            )
        self.tables = tables
        if tables is None and len(store.look_alikes):
            self.tables = build_tables(
                store.scorer,
                store.look_alikes,
                r=self.settings.r,
                store_version=store.version,
                progress=progress,
                compiled=compiled,
            )
        elif tables is not None and tables.version != tables_version(
            store.version, min(self.settings.r, len(store.items))
        ):
            raise InvalidModel("these tables were worked out from another store or another r: build them again.")

    @property
    def guarantee(self) -> Guarantee:
        """What the people behind the store were promised (not the device: its signal says that)."""
        return self.store.guarantee

    def __repr__(self) -> str:
        return f"MultiSelection({self.settings.algorithm}, {self.settings.local_model}; {self.store})"

    def answer(self, signal: Signal, k: int = 5, t: int = 1) -> Reply:
        """A slate of ``k`` items and a local model; the slate serves a device that takes its ``t`` best."""
        k, t = whole("k", k, least=1, most=MOST_ITEMS), whole("t", t, least=1, most=MOST_ITEMS)
        if t > k:
            raise InvalidParameter(f"a device cannot take {t} items from a slate of {k}: t must be at most k.")
        Request(signal, k, t).require(dimension=self.store.space.dimension)
        guessed = self.guessed(signal)
        items = slate(guessed, k, t)
        return Reply.of(self.store.items.numbers[items], k, fitted(guessed, items), self.store.space.dimension)

    def answer_bytes(self, request: bytes) -> bytes:
        """The wire form: request bytes in, reply bytes out."""
        asked = Request.from_bytes(request)
        return self.answer(asked.signal, asked.k, asked.t).to_bytes()

    def guessed(self, signal: Signal) -> Guess:
        """The posterior of one signal. One that tells nothing is answered as anybody would be."""
        # Without look-alikes an empty signal stands for a user without ratings: all zeros, which is public too.
        empty = signal.empty and self.tables is not None
        settings = self.settings.without_signal() if empty else self.settings
        store, eta = self.store, float(signal.eta)
        inside, sizes = store.space.inside, store.look_alike_sizes
        return Guess(settings, store.scorer, self.tables, signal.values, eta, self._work, self.rng, inside, sizes)
