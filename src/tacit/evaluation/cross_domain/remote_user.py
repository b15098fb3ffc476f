"""RemoteUser: users who agree in the source domain, and what they think of target items."""

from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.evaluation.cross_domain.user_based import user_based
from tacit.models.arrays import Floats
from tacit.models.cross_domain.alter_egos import Scale, SimilarItems


def remote_user(
    source: Any,
    target: Any,
    users: Any,
    items: Any,
    scale: Scale,
    *,
    k: int = 50,
    similar: str | SimilarItems = SimilarItems.RATED,
) -> Floats:
    """Predictions of target items for users (rows of both), by the k users in both domains most like them in the source."""
    if source.shape[0] != target.shape[0]:
        raise InvalidParameter("source and target must list the same users, one row for each.")
    both = np.flatnonzero((np.diff(source.indptr) > 0) & (np.diff(target.indptr) > 0))
    people = np.full(source.shape[0], -1, dtype=np.int64)
    people[both] = np.arange(both.size)
    ready = user_based(target[both], source[both])
    return ready.predict(source, users, items, scale, k=k, similar=similar, people=people)
