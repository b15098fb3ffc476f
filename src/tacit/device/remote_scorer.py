"""The server's public model for choosing from offers: how good each listed item is at given features.

It is fetched whole, before there is an offer, and evaluated here: at which features, and what came of it, stays on the device.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidMessage, UnknownName
from tacit.messages.multi_selection import ModelKind, Reply
from tacit.models.items import Items
from tacit.models.local_models import LinearMap

_KINDS = (ModelKind.LINEAR_MAP, ModelKind.LINEAR_MAP_HALF)


class RemoteScorer:
    """A ``PrivateScorer``. Until it has learned a model no item has a number, and public scores stand."""

    def __init__(self) -> None:
        self.model: str | None = None  # the version that was learned
        self._rows: dict[str, int] = {}
        self._matrix = np.zeros((0, 1), dtype=np.float32)

    def learn(self, model: str, parts: Sequence[Reply], items: Items, dimension: int) -> None:
        """All parts or none of them: every item once, and known to the catalogue, which so bounds the size of the whole."""
        names: list[str] = []
        for part in parts:
            if part.kind not in _KINDS or part.dimension != dimension:
                raise InvalidMessage(f"a model for offers is a linear map of this catalogue's {dimension} features.")
            names += _names(part, items)
        rows = {name: row for row, name in enumerate(names)}
        if len(rows) < len(names):
            raise InvalidMessage("a model for offers has every item once.")
        tables = [part.numbers[: len(part.items)].astype(np.float32) for part in parts]
        self._rows, self._matrix, self.model = rows, np.concatenate(tables), model

    def __call__(self, features: NDArray[np.float64], items: tuple[str, ...], /) -> NDArray[np.float64]:
        quality = np.full(len(items), np.nan)
        known = [place for place, item in enumerate(items) if item in self._rows]
        if known:
            rows = [self._rows[items[place]] for place in known]
            quality[known] = LinearMap(self._matrix[rows].astype(np.float64)).estimate(features)
        return quality

    def __repr__(self) -> str:
        return f"RemoteScorer({len(self._rows):,} items)"


def _names(part: Reply, items: Items) -> list[str]:
    """Items as offers name them: by their ids, as texts."""
    try:
        return [str(items.id(items.code_of_number(number))) for number in part.items]
    except UnknownName:
        raise InvalidMessage("a model for offers has an item that the catalogue does not have.") from None
