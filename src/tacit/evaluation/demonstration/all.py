"""All five systems on one set of ratings, in the order of the house plan."""

from collections.abc import Callable, Collection, Iterator

from tacit.data import Ratings
from tacit.evaluation.demonstration import (
    cross_domain,
    federated_prototypes,
    fitted,
    multi_selection,
    private_selection,
    private_slates,
)
from tacit.evaluation.demonstration.demonstration import Demonstration, Skipped, Status

_ASKING = (multi_selection, private_selection)
_SUMMING = (federated_prototypes, cross_domain, private_slates)
SYSTEMS = tuple(part.SYSTEM for part in (*_ASKING, *_SUMMING))
# of who is asked, and of the fits
SEEDS = {part.SYSTEM: fitted.SEED for part in _ASKING} | {part.SYSTEM: part.SEED for part in _SUMMING}
Progress = Callable[[str, str], None]  # the system, and what is being done


def untold(system: str, what: str) -> None:
    """Progress that nobody watches."""


def demonstrations(
    ratings: Ratings, progress: Progress = untold, systems: Collection[str] = SYSTEMS
) -> Iterator[Demonstration | Skipped]:
    """One after the other; private selection offers items of the store that multi-selection is shown with."""
    asking = [part for part in _ASKING if part.SYSTEM in systems]
    store = fitted.fitted(ratings, status=_status(progress, asking[0].SYSTEM)) if asking else None
    for asks in asking:
        if store is None:
            yield Skipped(asks.SYSTEM, fitted.NEEDED)
        else:
            yield asks.demonstrate(store, status=_status(progress, asks.SYSTEM))
    for sums in _SUMMING:
        if sums.SYSTEM in systems:
            yield sums.demonstrate(ratings, status=_status(progress, sums.SYSTEM))


def _status(progress: Progress, system: str) -> Status:
    return lambda what: progress(system, what)
