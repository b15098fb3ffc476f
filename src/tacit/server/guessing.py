"""From a signal to samples of who may have sent it, with their utilities."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import NoLookAlikes
from tacit.models.features import scaled_blocks
from tacit.models.posterior import capped_draws
from tacit.models.scorer import Scorer, class_scores
from tacit.models.tables import Tables
from tacit.server.algorithms import Posterior, Settings


@dataclass(frozen=True, eq=False)
class Guess:
    """One signal under one setting. What is not asked for is not worked out."""

    settings: Settings
    scorer: Scorer
    tables: Tables | None
    signal: NDArray[np.float64]
    eta: float
    work: ModuleType
    rng: np.random.Generator
    inside: Callable[[NDArray[Any]], NDArray[np.float64]] = scaled_blocks  # into the domain of features
    sizes: NDArray[np.float32] | None = None  # how many people each look-alike stands for; None: one each

    @property
    def known(self) -> Tables:
        if self.tables is None:
            raise NoLookAlikes("this store has no look-alikes.")
        return self.tables

    @cached_property
    def distances(self) -> NDArray[np.float32]:
        """L1 from the signal to every look-alike; all alike where the signal is ignored."""
        if self.settings.posterior is Posterior.UNIFORM:
            return np.zeros(len(self.known), dtype=np.float32)
        # Beyond the outermost look-alike a coordinate adds the same to all distances: cutting it there changes no posterior,
        # and keeps single precision precise for signals that lie far out.
        signal = np.clip(self.signal, *self.known.reach).astype(np.float32)
        found: NDArray[np.float32] = self.work.l1_distances(signal, self.known.features)
        return found

    def draws(self, count: int) -> NDArray[np.int64]:
        """Look-alikes drawn with replacement."""
        if self.settings.posterior is Posterior.UNIFORM and self.sizes is None:
            return self.rng.integers(len(self.known), size=count)
        drawn: NDArray[np.int64] = self.work.draw_rows(self._running, self.rng.random(count))
        return drawn

    @cached_property
    def _running(self) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = self.work.running_weights(self._gaps(self.eta), self.eta)
        return sums

    def _gaps(self, eta: float) -> NDArray[np.float32]:
        """Distances of which the weights exp(-gap/eta) are made: size * exp(-d/eta) = exp(-(d - eta ln size)/eta)."""
        if self.sizes is None:
            return self.distances
        gaps: NDArray[np.float32] = (self.distances - eta * np.log(self.sizes, dtype=np.float64)).astype(np.float32)
        return gaps

    def weighted(self, eta: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The look-alikes that hold most of the weight, size * exp(-distance/eta), with their weights."""
        settings = self.settings
        rows, weights = self.work.heavy_rows(
            self._gaps(eta), eta, settings.coverage, settings.most_rows, float(self.rng.random())
        )
        return rows, weights

    def gram(
        self, rows: NDArray[np.int64], weights: NDArray[np.float64], classes: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """X'WX for rows [1, features, utilities of these classes] of look-alikes, in double precision."""
        tables = self.known
        stacked = np.empty((len(rows), 1 + tables.features.shape[1] + len(classes)))
        self.work.stack_rows(
            tables.features, tables.utilities, tables.scale, rows, weights, tables.column_of[classes], stacked
        )
        gram: NDArray[np.float64] = stacked.T @ stacked
        return gram

    def capped(self, count: int) -> NDArray[np.float64]:
        return capped_draws(self.signal, self.eta, count, self.inside, rng=self.rng)

    def scored(self, features: NDArray[Any]) -> NDArray[np.float32]:
        return class_scores(self.scorer, features)
