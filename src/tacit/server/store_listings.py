"""A store as something to offer from: how good its items are to everybody, and how far people's tastes lie from that.

Both are worked out from the store's look-alikes, so what is told of them is what the store's guarantee says of its people.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter, NoLookAlikes
from tacit.messages.store import Store
from tacit.models.scorer import checked_scores
from tacit.server.listings import Listings
from tacit.server.population import Population

_PEOPLE = 2000  # look-alikes that are asked, evenly: more would not change a mean that anybody could see


def listings_of(store: Store, items: Sequence[int | str]) -> tuple[Listings, Population]:
    """These items, by id or title, with their mean utility as public quality, and the people it is the mean of.

    A device that scores by the same store's model (``Device(..., scorer=store.scorer)``) has its private quality on this scale.
    """
    if isinstance(items, str) or not len(items):
        raise InvalidParameter("name the items to offer, by their ids or titles: at least one.")
    people = store.look_alikes
    if not len(people):
        raise NoLookAlikes(
            "without look-alikes a store does not know what is good for everybody: give Listings instead."
        )
    people = people[_evenly(store)]
    codes = store.items.codes(items)
    scores = checked_scores(store.scorer.score(people, codes), (len(people), len(codes))).astype(np.float64)
    names = [str(store.items.id(int(code))) for code in codes]
    return Listings.free(names, scores.mean(axis=0)), Population(names, scores)


def _evenly(store: Store) -> NDArray[np.int64]:
    """The look-alikes who are asked: of many every so manieth, where they have sizes each as often as its size says."""
    count, sizes = len(store.look_alikes), store.look_alike_sizes
    if sizes is None:
        return np.arange(0, count, -(-count // _PEOPLE))
    running = np.cumsum(sizes, dtype=np.float64)
    asked: NDArray[np.int64] = np.searchsorted(running, (np.arange(_PEOPLE) + 0.5) / _PEOPLE * running[-1])
    return asked
