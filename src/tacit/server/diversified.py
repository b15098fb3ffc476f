"""The slate as a determinant: items that are good for whoever may have sent the signal, and unlike each other.

P(Y) is proportional to e^{alpha sum of q over Y} det S_Y: q is an item's expected utility under the posterior, S how alike two
items are by their public vectors (genres, factors). The likeliest slate by greedy choice, or one that is drawn: a device sends the
same signal for a whole slot of its calendar, and gets another slate each time. All this is a function of the released signal, of
public data and of the server's coins: post-processing, which costs the user nothing and leaves the device's guarantee as it was.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidModel
from tacit.models.dpp.coins import RngCoins
from tacit.models.dpp.greedy import greedy_map
from tacit.models.dpp.kernels import rank_of
from tacit.models.dpp.tempered import MOST_NATS, TemperedSampler
from tacit.models.greedy import filled
from tacit.models.scorer import Scorer
from tacit.server.guessing import Guess

OWN = 0.1  # share of an item's similarity that it has with itself alone: no item is quite the combination of others
VECTORS = ("flags", "factors", "vectors")  # what scorers call the public vectors of their items


def diversified(guess: Guess, k: int) -> NDArray[np.int64]:
    """The codes of ``k`` items of different classes, in the order they were chosen (drawn ones: the best on average first).

    Fewer than k only where there are fewer classes. Candidates are classes that are among the r best of some look-alike.
    """
    tables, classes, settings = guess.known, guess.scorer.classes, guess.settings
    candidates = tables.columns[: tables.candidates]
    quality = expected_utilities(guess)
    rows = class_vectors(guess.scorer)[candidates]
    weights = settings.alpha * quality
    size = min(k, len(candidates))
    if settings.sampled:
        chosen = _drawn(rows, weights, size, guess)
        chosen = chosen[np.argsort(-quality[chosen], kind="stable")]
    else:
        chosen = greedy_map((np.sqrt(1.0 - OWN) * rows, OWN), size, log_weights=weights)
    items = classes.first[candidates[chosen]].astype(np.int64)
    return filled(items, classes, k, lambda: _everywhere(guess))


def expected_utilities(guess: Guess) -> NDArray[np.float64]:
    """The mean utility of each candidate under the posterior."""
    tables = guess.known
    rows, weights = guess.weighted(guess.eta)
    table = tables.utilities[rows, : tables.candidates]
    expected: NDArray[np.float64] = (weights / weights.sum()) @ table * np.float64(tables.scale)
    return expected


def class_vectors(scorer: Scorer) -> NDArray[np.float64]:
    """classes x d, of length 1: the angle between two is how alike they are. An item without any genre is like none."""
    tensors = scorer.tensors()
    name = next((name for name in VECTORS if name in tensors), None)
    if name is None:
        raise InvalidModel(
            f"dpp compares items by their public vectors, and this scorer ({scorer.kind}) stores none: choose exact."
        )
    vectors = np.asarray(tensors[name][scorer.classes.first], dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float64] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0.0)
    return unit


def _drawn(rows: NDArray[np.float64], weights: NDArray[np.float64], size: int, guess: Guess) -> NDArray[np.int64]:
    """One slate of the law without own shares, which has a small basis; no more items than the vectors have directions.

    An item more than 40 nats below the best counts as one that is 40 below.
    """
    rank = rank_of(rows)
    if not rank:
        return np.zeros(0, dtype=np.int64)
    weights = np.maximum(weights, weights.max() - MOST_NATS)
    return TemperedSampler(rows, weights, min(size, rank), rank=rank).draw(RngCoins(guess.rng))


def _everywhere(guess: Guess) -> NDArray[np.float64]:
    rows, weights = guess.weighted(guess.eta)
    everything = np.arange(len(guess.scorer.classes))
    sums: NDArray[np.float64] = weights @ guess.known.utilities_of(rows, everything)
    return sums
