"""Public lists of the items of two domains, and ratings over them.

A list is what it is by itself: neither what people rated, nor how the ids of rated items are written, changes it, its order or
what is refused. Ratings of items that it does not name are left out before anything is asked of them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.data.catalogue import Catalogue
from tacit.data.pairs import TwoDomains
from tacit.data.ratings import Ratings
from tacit.errors import InvalidData, InvalidParameter

Domains: TypeAlias = TwoDomains | tuple[Ratings, Ratings]  # two sets of ratings share the users whose ids are equal


def both(domains: Domains) -> tuple[Ratings, Ratings]:
    return (domains.source, domains.target) if isinstance(domains, TwoDomains) else domains


def listed(ids: Sequence[Any]) -> Catalogue:
    """A public list of ids, as they are written there, ascending."""
    try:
        each = [] if isinstance(ids, str | bytes) else list(ids)
    except TypeError:  # none of several things at all
        each = []
    numbers = all(isinstance(one, int | np.integer) and not isinstance(one, bool) for one in each)
    texts = all(isinstance(one, str) and not one.endswith("\0") for one in each)  # numpy drops such an end
    if not each or not (numbers or texts):
        raise InvalidParameter(
            "a catalogue is a list of ids, all whole numbers or all texts, at least one; no text ends with a zero character."
        )
    try:
        return Catalogue(np.unique(np.array(each, dtype=np.int64 if numbers else np.str_)))
    except OverflowError:
        raise InvalidParameter(
            "a whole number of a catalogue has no more than 63 bits: write such ids as texts."
        ) from None


def list_of(catalogue: Catalogue) -> Catalogue | None:
    """What a list names of a catalogue; None where there is no list, and its items are known by ratings alone."""
    named = catalogue.listed
    if named.all():
        return catalogue
    return catalogue.select(np.flatnonzero(named).astype(np.int32)) if named.any() else None


def require_apart(domains: Domains) -> None:
    """Refuses an item that both lists name. Where a domain came without a list, what was rated there stands for it: nothing is
    released of it then, unless that is public."""
    first, second = (list_of(part.catalogue) or part.catalogue for part in both(domains))
    if np.isin(first.ids.astype(str), second.ids.astype(str)).any():
        raise InvalidData("an item is in both domains; each must be in one.")


def over(ratings: Ratings, catalogue: Catalogue) -> Ratings:
    """The same ratings over another list of items, rated or not; ratings of items that it does not name are left out.

    Whole numbers and texts meet as texts, 17 and "17". Readers take ids for whole numbers only where every one of them is written
    the usual way, so that a rating is found in the list or not whatever other ratings there are.
    """
    if catalogue is ratings.catalogue:
        return ratings
    known, wanted = _alike(ratings.catalogue.ids, catalogue.ids)
    order = np.argsort(wanted, kind="stable")
    place = order[np.minimum(np.searchsorted(wanted, known, sorter=order), order.size - 1)]
    part = ratings.subset((wanted[place] == known)[ratings.items])
    codes = place.astype(np.int32)[part.items]
    rows = np.lexsort((codes, part.users))  # texts and numbers sort differently
    times = None if part.times is None else part.times[rows]
    return replace(part, items=codes[rows], values=part.values[rows], times=times, catalogue=catalogue)


def over_both(domains: Domains, source: Catalogue, target: Catalogue) -> TwoDomains:
    """Both domains over public lists, which have no item in common; with the same users."""
    first, second = both(domains)
    kept = over(first, source), over(second, target)
    return TwoDomains(*kept) if isinstance(domains, TwoDomains) else TwoDomains.align(*kept)


def _alike(first: NDArray[Any], second: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    if (first.dtype.kind == "U") == (second.dtype.kind == "U"):
        return first, second
    return first.astype(str), second.astype(str)
