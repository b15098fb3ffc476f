"""From the summed shares of all entities to what is broadcast: whose sums they are is not known here, and nothing is drawn.

First the popularity, which says whether there is a head of items worth a Gram matrix; then that matrix, as pseudo-rows. All of it
follows from noisy sums, so it costs nothing and may be published.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import positive, whole
from tacit.errors import InvalidMessage, InvalidParameter
from tacit.models.moments import (
    STEPS,
    SharedMoments,
    gram_from,
    head_of,
    noise_sds,
    pseudo_rows,
    seen_items,
    triangle,
)

Shares = Mapping[str, NDArray[np.int64]]  # of each entity, in whole numbers


@dataclass(frozen=True, eq=False)
class HeadChoice:
    """The noisy popularity, and the head of items that it allows: none where it is hardly more than noise."""

    popularity: NDArray[np.float64] = field(repr=False)
    sd: float  # of the noise in it
    seen: int
    head: NDArray[np.int64] = field(repr=False)

    @property
    def informative(self) -> bool:
        """Whether the Gram matrix is asked for. If not, the run ends here and every entity stays with its own rows."""
        return self.head.size > 0


def choose_head(total: ArrayLike, items: int, sd: float) -> HeadChoice:
    """The head, from the sum of the popularity shares in whole numbers; ``sd`` is that of the noise in the sum."""
    steps = _whole_numbers(total, whole("items", items, least=1), "popularity")
    popularity = steps / STEPS
    head = head_of(popularity, sd, items)
    return HeadChoice(
        popularity,
        positive("sd", sd),
        seen_items(popularity, sd),
        np.zeros(0, dtype=np.int64) if head is None else head,
    )


def no_information(choice: HeadChoice, gram_sd: float) -> SharedMoments:
    """What is broadcast where there is no head, or where the second sum never came about: a popularity without pseudo-rows."""
    nobody = np.zeros(0, dtype=np.int64)
    return SharedMoments(
        choice.popularity, nobody, np.zeros((0, 0)), choice.sd, positive("gram_sd", gram_sd), choice.seen
    )


def shared_moments(choice: HeadChoice, total: ArrayLike, gram_sd: float) -> SharedMoments:
    """What is broadcast: the popularity, the head, and the pseudo-rows of the sum of the Gram shares."""
    if not choice.informative:
        return no_information(choice, gram_sd)
    size = choice.head.size
    gram = gram_from(_whole_numbers(total, triangle(size), "Gram"), size)
    rows = pseudo_rows(gram, gram_sd)
    return SharedMoments(choice.popularity, choice.head, rows, choice.sd, gram_sd, choice.seen)


class Moved(NamedTuple):
    """How far the moments move without one entity, each as a part of its size: 0 where it says what the others say."""

    popularity: float  # of the mean share
    head: float  # the part of the head that the others would not have chosen
    rows: float  # of the mean E^T E of the pseudo-rows


def influence(popularity: Shares, gram: Shares, rhos: tuple[float, float]) -> dict[str, Moved]:
    """The moments of all against those of all but one, for shares that are seen and carry all their noise themselves.

    Sums are compared by their means, or everybody would have the influence of being one of n. The noise of a share moves the
    moments too: of entities with few users that is most of it. ``gram`` is about the head that was chosen, whoever is left out;
    it is empty where there was none.
    """
    if len(popularity) < 2:
        raise InvalidParameter("influence compares a model with the one without an entity: at least 2 are needed.")
    mean, head = _mean(popularity), _head(popularity, rhos)
    denoised = _denoised(gram, rhos) if len(gram) > 1 else None
    moved = {}
    for name in sorted(popularity):
        lost = np.setdiff1d(head, _head(popularity, rhos, name)).size
        moved[name] = Moved(
            _part(mean, _mean(popularity, name)),
            lost / head.size if head.size else 0.0,
            _part(denoised, _denoised(gram, rhos, name)) if denoised is not None and name in gram else 0.0,
        )
    return moved


def _total(shares: Shares, without: str | None) -> tuple[NDArray[np.int64], int]:
    kept = [share for name, share in shares.items() if name != without]
    return np.asarray(np.add.reduce(kept, dtype=np.int64)), len(kept)


def _mean(shares: Shares, without: str | None = None) -> NDArray[np.float64]:
    total, count = _total(shares, without)
    return np.asarray(total / (STEPS * count))


def _head(shares: Shares, rhos: tuple[float, float], without: str | None = None) -> NDArray[np.int64]:
    total, count = _total(shares, without)
    return choose_head(total, total.size, noise_sds(*rhos, shares=count)[0]).head


def _denoised(shares: Shares, rhos: tuple[float, float], without: str | None = None) -> NDArray[np.float64]:
    """The mean Gram matrix of the pseudo-rows: their directions and weights, whatever their signs and order."""
    total, count = _total(shares, without)
    size = (math.isqrt(8 * total.size + 1) - 1) // 2
    rows = pseudo_rows(gram_from(total, size), noise_sds(*rhos, shares=count)[1])
    return np.asarray(rows.T @ rows) / count


def _part(whole_one: NDArray[np.float64], without: NDArray[np.float64]) -> float:
    size = float(np.linalg.norm(whole_one))
    return float(np.linalg.norm(whole_one - without)) / size if size > 0.0 else 0.0


def _whole_numbers(total: ArrayLike, length: int, what: str) -> NDArray[np.int64]:
    """Sums that were formed modulo 2^64 are the whole numbers from -2^63 to 2^63 - 1 that they stand for."""
    steps = np.asarray(total)
    if steps.dtype == np.uint64:
        steps = steps.view(np.int64)
    if steps.dtype != np.int64 or steps.shape != (length,):
        raise InvalidMessage(f"the {what} sum must be {length} whole numbers of 64 bits.")
    return steps
