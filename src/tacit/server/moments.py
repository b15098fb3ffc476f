"""From the summed shares of all entities to what is broadcast: whose sums they are is not known here, and nothing is drawn.

First the popularity, which says whether there is a head of items worth a Gram matrix; then that matrix, as pseudo-rows. All of it
follows from noisy sums, so it costs nothing and may be published.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import positive, whole
from tacit.errors import InvalidMessage
from tacit.models.moments import STEPS, SharedMoments, gram_from, head_of, pseudo_rows, seen_items, triangle


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


def _whole_numbers(total: ArrayLike, length: int, what: str) -> NDArray[np.int64]:
    """Sums that were formed modulo 2^64 are the whole numbers from -2^63 to 2^63 - 1 that they stand for."""
    steps = np.asarray(total)
    if steps.dtype == np.uint64:
        steps = steps.view(np.int64)
    if steps.dtype != np.int64 or steps.shape != (length,):
        raise InvalidMessage(f"the {what} sum must be {length} whole numbers of 64 bits.")
    return steps
