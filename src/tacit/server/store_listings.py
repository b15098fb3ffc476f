"""A store as something to offer from: how good its items are to everybody, and how far people's tastes lie from that.

Both are worked out from the store's look-alikes, so what is told of them is what the store's guarantee says of its people.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter, NoLookAlikes
from tacit.messages.store import Store
from tacit.models.local_models import LinearMap, fit_ridge
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
    people = _asked(store)
    codes = store.items.codes(items)
    scores = _scores(store, people, codes)
    names = [str(store.items.id(int(code))) for code in codes]
    return Listings.free(names, scores.mean(axis=0)), Population(names, scores)


def quality_map(store: Store, items: Sequence[int | str]) -> LinearMap:
    """How good these items are to whoever has given features: the store's model, flattened to one row of numbers for each.

    For devices that choose from offers and do not hold the whole model. It tells of the store's people what the listings tell.
    """
    people = _asked(store)
    return fit_ridge(people, _scores(store, people, store.items.codes(items)), np.ones(len(people)))


def best_items(store: Store, most: int) -> list[int | str]:
    """The ids of the items that are best on average to the store's people; of items that are alike to its model, one."""
    people = _asked(store)
    firsts = store.scorer.classes.first
    means = _scores(store, people, firsts).mean(axis=0)
    return [store.items.id(int(firsts[place])) for place in np.argsort(-means, kind="stable")[:most]]


def _asked(store: Store) -> NDArray[np.float32]:
    people = store.look_alikes
    if not len(people):
        raise NoLookAlikes(
            "without look-alikes a store does not know what is good for everybody: give Listings instead."
        )
    return people[_evenly(store)]


def _scores(store: Store, people: NDArray[np.float32], codes: NDArray[Any]) -> NDArray[np.float64]:
    return checked_scores(store.scorer.score(people, codes), (len(people), len(codes))).astype(np.float64)


def _evenly(store: Store) -> NDArray[np.int64]:
    """The look-alikes who are asked: of many every so manieth, where they have sizes each as often as its size says."""
    count, sizes = len(store.look_alikes), store.look_alike_sizes
    if sizes is None:
        return np.arange(0, count, -(-count // _PEOPLE))
    running = np.cumsum(sizes, dtype=np.float64)
    asked: NDArray[np.int64] = np.searchsorted(running, (np.arange(_PEOPLE) + 0.5) / _PEOPLE * running[-1])
    return asked
