"""ItemKNN-linked: both domains as one set of ratings, and item-based prediction on it. No alter ego is made."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit.errors import InvalidParameter
from tacit.models.arrays import Floats
from tacit.models.cross_domain.alter_egos import AlterEgos, ItemBased, Scale, SimilarItems, checked_pairs, item_based


def union(source: Any, target: Any) -> Any:
    """Users x (source items, then target items), sorted by item; explicit zeros stay ratings."""
    if source.shape[0] != target.shape[0]:
        raise InvalidParameter("source and target must list the same users, one row for each.")
    users = np.concatenate([np.repeat(np.arange(part.shape[0]), np.diff(part.indptr)) for part in (source, target)])
    items = np.concatenate([source.indices, target.indices + source.shape[1]])
    order = np.lexsort((items, users))
    starts = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=source.shape[0]))])
    values = np.concatenate([source.data, target.data]).astype(np.float64)[order]
    return csr_array((values, items[order], starts), shape=(source.shape[0], source.shape[1] + target.shape[1]))


@dataclass(frozen=True, eq=False)
class Linked:
    """Both domains, made ready: `linked` does it."""

    ready: ItemBased
    profiles: AlterEgos
    n_source: int

    def predict(
        self,
        users: Any,
        items: Any,
        scale: Scale,
        *,
        k: int = 50,
        similar: str | SimilarItems = SimilarItems.RATED,
        level: NDArray[Any] | None = None,
        shrink: float = 0.0,
        signed: bool = False,
    ) -> Floats:
        """Predictions of target items (codes from 0) from the users' whole profiles; see `ItemBased.predict`.

        A whole profile holds many items of negative cosine, and on real pairs they do harm: by default they say nothing.
        """
        users, items = checked_pairs(users, items, self.profiles.values.shape[0], self.ready.n_items - self.n_source)
        places = items + self.n_source
        return self.ready.predict(
            self.profiles,
            users,
            places,
            scale,
            k=k,
            similar=similar,
            level=level,
            alpha=0.0,
            shrink=shrink,
            signed=signed,
        )


def linked(source: Any, target: Any, significant: int = 50) -> Linked:
    """Users x source items and users x target items, as one."""
    whole = union(source, target)
    return Linked(item_based(whole, significant), AlterEgos(whole), source.shape[1])
