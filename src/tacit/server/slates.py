"""From a guess to a slate: which k items to send."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.models import greedy
from tacit.models.tables import tops_of
from tacit.server.algorithms import AVERAGING, Algorithm, Posterior
from tacit.server.diversified import diversified
from tacit.server.guessing import Guess


def slate(guess: Guess, k: int, t: int) -> NDArray[np.int64]:
    """The codes of at most ``k`` items, in the order they were chosen; fewer where no further class of items is left."""
    settings = guess.settings
    if settings.posterior is Posterior.NONE:
        return _ranking(guess, k)
    if settings.algorithm is Algorithm.EXACT:
        return _exact(guess, k, t)
    if settings.algorithm is Algorithm.DPP:
        return diversified(guess, k)  # the slate as a whole counts, whatever t is
    t = k if settings.algorithm in AVERAGING else t  # all k count: the modular utility
    return _sampled(guess, k, t)


def _ranking(guess: Guess, k: int) -> NDArray[np.int64]:
    """The k best items of the signal itself, or of the look-alike nearest to it (the first of several)."""
    user = guess.signal
    if guess.settings.algorithm is Algorithm.NOPOST_REALUSER:
        user = guess.known.features[int(np.argmin(guess.distances))].astype(np.float64)
    classes = guess.scorer.classes
    found, kept, _, _ = tops_of(guess.work, guess.scored(user[None]), classes, min(k, classes.n_items))
    members = [
        classes.members[classes.starts[one] : classes.starts[one] + count]
        for one, count in zip(found.tolist(), kept.tolist(), strict=True)
    ]
    scores = guess.scored(user[None])[0][classes.of[np.concatenate(members)]]
    items = np.concatenate(members).astype(np.int64)
    return items[np.lexsort((items, -scores))]


def _sampled(guess: Guess, k: int, t: int) -> NDArray[np.int64]:
    """Greedy on draws of the posterior, each of which sees its r best items."""
    settings, classes = guess.settings, guess.scorer.classes
    if settings.posterior is Posterior.CAP:
        scores = guess.scored(guess.capped(settings.draws))
        found, kept, exact, lengths = tops_of(guess.work, scores, classes, min(settings.r, classes.n_items))
        starts, rows = np.concatenate([[0], np.cumsum(lengths)]), np.arange(settings.draws)
        chosen = greedy.from_lists(guess.work, (starts, found, kept, exact), rows, classes, k, t)
        return greedy.filled(chosen, classes, k, lambda: scores.sum(axis=0, dtype=np.float64))
    tables, rows = guess.known, guess.draws(settings.draws)
    lists = (tables.starts, tables.listed, tables.kept, tables.exact)
    chosen = greedy.from_lists(guess.work, lists, rows, classes, k, t)
    return greedy.filled(chosen, classes, k, lambda: _sums(guess, rows, np.ones(len(rows))))


def _exact(guess: Guess, k: int, t: int) -> NDArray[np.int64]:
    """Greedy on the posterior's own weights and on full utilities."""
    rows, weights = guess.weighted(guess.eta)
    chosen = greedy.from_weights(guess.work, guess.known, rows, weights, guess.scorer.classes, k, t)
    return greedy.filled(chosen, guess.scorer.classes, k, lambda: _sums(guess, rows, weights))


def _sums(guess: Guess, rows: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
    """The weighted utility of every class, summed over look-alikes."""
    everything = np.arange(len(guess.scorer.classes))
    sums: NDArray[np.float64] = weights @ guess.known.utilities_of(np.asarray(rows), everything)
    return sums
