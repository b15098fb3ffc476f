"""A scorer: the server's model of how much users with given features like items. Any model with this small surface will do."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidModel
from tacit.models.classes import Classes

Progress: TypeAlias = Callable[[int, int], None]  # done, in all

_ROWS = 256  # look-alikes scored at a time


class Scorer(Protocol):
    """Utilities of items for users: finite and at least 0, because greedy choice needs utilities that never fall.

    Items of one class must have equal scores. A model that can go below 0 has to shift itself by the catalogue's minimum.
    """

    @property
    def kind(self) -> str:
        """The name under which it is stored."""

    @property
    def dimension(self) -> int:
        """Of the features."""

    @property
    def classes(self) -> Classes:
        """Which items are the same to this scorer, and get the same score."""

    def score(self, features: NDArray[Any], items: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """users x items, for rows of features and codes of items."""

    def tensors(self) -> dict[str, NDArray[Any]]:
        """What has to be stored to build the same scorer again."""


def class_scores(scorer: Scorer, features: NDArray[Any]) -> NDArray[np.float32]:
    """users x classes, each class scored once through its smallest item; refuses scores that are not finite or below 0."""
    return checked_scores(scorer.score(features, scorer.classes.first), (len(features), len(scorer.classes)))


def checked_scores(scores: NDArray[Any], shape: tuple[int, int]) -> NDArray[np.float32]:
    scores = np.asarray(scores, dtype=np.float32)
    if scores.shape != shape:
        raise InvalidModel(f"the model gave a table of {scores.shape} scores, not of {shape} (users x items).")
    if not np.isfinite(scores).all() or (scores < 0.0).any():
        raise InvalidModel(
            "the model gave a score that is not finite or below 0. Utilities must be at least 0: shift the model by its minimum."
        )
    return scores


def require_usable(scorer: Scorer, look_alikes: NDArray[Any]) -> None:
    """The start-up check: scores of a few look-alikes (or of the origin) for all classes must be usable."""
    sample = look_alikes[:: max(1, len(look_alikes) // 16)] if len(look_alikes) else np.zeros((1, scorer.dimension))
    class_scores(scorer, sample)


def scored_in_parts(
    scorer: Scorer,
    features: NDArray[Any],
    use: Callable[[int, NDArray[np.float32]], None],
    progress: Progress | None = None,
) -> None:
    """Class scores of many users in bounded memory: ``use(first row, scores)`` for each part."""
    for first in range(0, len(features), _ROWS):
        use(first, class_scores(scorer, features[first : first + _ROWS]))
        if progress is not None:
            progress(min(first + _ROWS, len(features)), len(features))
