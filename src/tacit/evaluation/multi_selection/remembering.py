"""A scorer that remembers what it scored last: algorithms that share draws then share the work of scoring them."""

from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.models.items import Classes
from tacit.models.scorers import Scorer


class Remembering:
    """The scores of another scorer. For the last few tables of features, no class is scored twice."""

    def __init__(self, scorer: Scorer, last: int = 4) -> None:
        self._scorer, self._last = scorer, last
        self._known: OrderedDict[bytes, tuple[NDArray[np.float32], NDArray[np.bool_]]] = OrderedDict()

    @property
    def kind(self) -> str:
        return self._scorer.kind

    @property
    def dimension(self) -> int:
        return self._scorer.dimension

    @property
    def classes(self) -> Classes:
        return self._scorer.classes

    def tensors(self) -> dict[str, NDArray[Any]]:
        return self._scorer.tensors()

    def score(self, features: NDArray[Any], items: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        key = features.tobytes()
        if key not in self._known:
            shape = (len(features), len(self.classes))
            self._known[key] = np.empty(shape, dtype=np.float32), np.zeros(shape[1], dtype=np.bool_)
            if len(self._known) > self._last:
                self._known.popitem(last=False)
        scores, known = self._known[key]
        self._known.move_to_end(key)
        wanted = self.classes.of[items]
        lacking = np.unique(wanted[~known[wanted]])
        if lacking.size:
            scores[:, lacking] = self._scorer.score(features, self.classes.first[lacking])
            known[lacking] = True
        return scores[:, wanted]
