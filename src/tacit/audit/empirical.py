"""Empirical lower bounds on the privacy loss of a black box, for what cannot be enumerated.

A sampler is run on two neighbouring inputs; an event is chosen on a first part of the draws and counted on the rest. The
Clopper-Pearson bounds on its two probabilities then bound epsilon from below, with confidence 1 - 1e-9. An audit refutes
and never proves: a bound above the claim is a fault (but once in 10^9 audits), a bound below it is no evidence of privacy.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.checks import probability
from tacit.errors import InvalidParameter

MISTRUST = 1e-9  # how often a bound may exceed the true loss
_SHARE_TO_CHOOSE = 0.2
_THRESHOLDS = 64


@dataclass(frozen=True, slots=True)
class LowerBound:
    """With confidence 1 - ``mistrust`` the loss is at least ``epsilon``; ``event`` says where it was seen."""

    epsilon: float  # nats; at least so much is lost, but for chance
    event: str
    draws: int
    mistrust: float = MISTRUST


def clopper_pearson(hits: int, draws: int, mistrust: float) -> tuple[float, float]:
    """Bounds (low, high) on a probability, each missed with probability at most ``mistrust``."""
    if not 0 <= hits <= draws or draws == 0:
        raise InvalidParameter("hits must lie between 0 and the number of draws, which must be above 0.")
    low, high = _bounds(np.array([hits]), draws, probability("mistrust", mistrust))
    return float(low[0]), float(high[0])


def epsilon_of_counts(
    hits: int, draws: int, other_hits: int, other_draws: int, *, delta: float = 0.0, mistrust: float = MISTRUST
) -> float:
    """A lower bound on epsilon from one event fixed beforehand: P(event | x) <= e^epsilon P(event | x') + delta."""
    low, _ = clopper_pearson(hits, draws, mistrust / 2.0)
    _, high = clopper_pearson(other_hits, other_draws, mistrust / 2.0)
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def lower_bound_by_label(
    first: NDArray[np.int64], second: NDArray[np.int64], *, delta: float = 0.0, mistrust: float = MISTRUST
) -> LowerBound:
    """From draws that are labels. Events: sets of labels, those that speak most for one input first.

    Epsilon is in nats, ``delta`` a probability; ``mistrust`` is the chance that the bound is above the true loss.
    """
    first, second = np.asarray(first), np.asarray(second)
    labels = np.unique(np.concatenate([_to_choose(first), _to_choose(second)]))  # the rest must not shape the events
    one, two = _codes(first, labels), _codes(second, labels)
    events = _likely_sets(one, two, labels.size + 1)
    names = [f"one of {int(event.sum())} of {labels.size + 1} cells" for event in events]
    return _lower_bound(events[:, one], events[:, two], names, delta, mistrust)


def lower_bound_by_threshold(
    first: NDArray[np.float64], second: NDArray[np.float64], *, delta: float = 0.0, mistrust: float = MISTRUST
) -> LowerBound:
    """From draws of a number, for instance of a statistic of the output. Events: at most, or above, a threshold.

    Epsilon is in nats, ``delta`` a probability; ``mistrust`` is the chance that the bound is above the true loss.
    """
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    chosen = np.concatenate([_to_choose(first), _to_choose(second)])
    thresholds = np.unique(np.quantile(chosen, np.arange(1, _THRESHOLDS) / _THRESHOLDS))
    names = [f"at most {threshold:.6g}" for threshold in thresholds] + [
        f"above {threshold:.6g}" for threshold in thresholds
    ]
    at_first, at_second = first <= thresholds[:, None], second <= thresholds[:, None]
    return _lower_bound(
        np.concatenate([at_first, ~at_first]), np.concatenate([at_second, ~at_second]), names, delta, mistrust
    )


def _lower_bound(
    first: NDArray[np.bool_], second: NDArray[np.bool_], names: list[str], delta: float, mistrust: float
) -> LowerBound:
    """Events x draws for both inputs. The best event and direction on the first part, its bound on the rest."""
    draws = first.shape[1] + second.shape[1]
    if min(first.shape[1], second.shape[1]) < 10 or not names:
        raise InvalidParameter("an empirical bound needs at least ten draws of each input.")
    one, two = _size_to_choose(first.shape[1]), _size_to_choose(second.shape[1])
    # judged by bounds as for twice the draws: a plain ratio, or more trust in few draws, would choose too rare an event
    lows, highs = zip(
        _bounds(2 * first[:, :one].sum(axis=1), 2 * one, mistrust / 2.0),
        _bounds(2 * second[:, :two].sum(axis=1), 2 * two, mistrust / 2.0),
        strict=True,
    )
    guesses = np.concatenate([(lows[0] - delta) / highs[1], (lows[1] - delta) / highs[0]])
    event = int(np.argmax(guesses)) % len(names)
    forwards = int(np.argmax(guesses)) < len(names)
    rest, other_rest = first[event, one:], second[event, two:]
    if not forwards:
        rest, other_rest = other_rest, rest
    epsilon = epsilon_of_counts(
        int(rest.sum()), rest.size, int(other_rest.sum()), other_rest.size, delta=delta, mistrust=mistrust
    )
    return LowerBound(epsilon, names[event], draws, mistrust)


def _bounds(hits: NDArray[np.int64], draws: int, mistrust: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Clopper-Pearson: the quantiles of two beta laws, from the upper tail where they are close to 1."""
    from scipy.special import betainccinv, betaincinv

    low = np.where(hits == 0, 0.0, betaincinv(np.maximum(hits, 1), draws - hits + 1, mistrust))
    high = np.where(hits == draws, 1.0, betainccinv(hits + 1, np.maximum(draws - hits, 1), mistrust))
    return low, high


def _likely_sets(first: NDArray[np.int64], second: NDArray[np.int64], labels: int) -> NDArray[np.bool_]:
    """Sets of labels: those most in favour of the first input, growing, and their complements. Seen in the first part only."""
    seen = np.bincount(_to_choose(first), minlength=labels) + 0.5
    other = np.bincount(_to_choose(second), minlength=labels) + 0.5
    rank = np.empty(labels, dtype=np.int64)
    rank[np.argsort(-np.log(seen / other), kind="stable")] = np.arange(labels)
    sizes = np.unique(np.linspace(1, max(1, labels - 1), _THRESHOLDS).astype(np.int64))
    events = rank < sizes[:, None]
    return np.concatenate([events, ~events])


def _codes(draws: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of every draw among the labels; a label not known gets a place of its own, after them."""
    place = np.searchsorted(labels, draws)
    known = labels[np.minimum(place, labels.size - 1)] == draws
    return np.where(known, place, labels.size)


def _size_to_choose(draws: int) -> int:
    return max(1, int(draws * _SHARE_TO_CHOOSE))


def _to_choose(draws: NDArray[np.generic]) -> NDArray[np.generic]:
    return draws[: _size_to_choose(draws.size)]
