"""Exact enumeration: the worst loss over all neighbouring inputs and all outputs of a finite mechanism.

A finite mechanism is given by its laws: one row of probabilities for each input, one column for each output. Pairs of
neighbouring inputs are rows of two indices; where none are given every input neighbours every other one (local model).
Every pair is looked at in both directions. The arithmetic is in floats, with an error far below `TOLERANCE`.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidParameter

Laws: TypeAlias = NDArray[np.float64]
Pairs: TypeAlias = NDArray[np.int64]

TOLERANCE = 1e-9  # losses are compared with claims, and with closed forms, to this much

# Renyi orders: 1 is the Kullback-Leibler divergence. D_a / a is continuous in a, falls like 1/a at the end, and is looked at
# every 5 %; between two orders it exceeds the larger neighbour by less than that.
ORDERS: NDArray[np.float64] = np.concatenate([[1.0], 1.0 + np.geomspace(1e-3, 0.05, 5), np.geomspace(1.1, 400.0, 120)])


@dataclass(frozen=True, slots=True)
class Worst:
    """Where the largest loss is: ln P(output | first) / P(output | second)."""

    loss: float
    first: int
    second: int
    output: int


def worst_loss(laws: ArrayLike, pairs: ArrayLike | None = None) -> float:
    """The largest |ln P(y|x) / P(y|x')| over all neighbouring x, x' and all outputs y; infinite where only one can be."""
    return worst_case(laws, pairs).loss


def worst_case(laws: ArrayLike, pairs: ArrayLike | None = None) -> Worst:
    """As ``worst_loss``, with the pair and the output that attain it."""
    checked = _checked(laws)
    chosen = both_ways(len(checked), pairs)
    if chosen.size == 0:
        return Worst(0.0, 0, 0, 0)
    loss = _log_ratios(_logs(checked), chosen)
    pair, output = np.unravel_index(int(np.argmax(loss)), loss.shape)
    first, second = chosen[pair]
    return Worst(max(0.0, float(loss[pair, output])), int(first), int(second), int(output))


def pair_losses(log_laws: NDArray[np.float64], pairs: ArrayLike | None = None) -> NDArray[np.float64]:
    """For every pair, in one direction, the largest ln P(y|x) / P(y|x') over the outputs given, from logarithms.

    The outputs may be a window of an infinite set; that the window holds the largest ratio is then the caller's to show.
    """
    chosen = all_pairs(len(log_laws)) if pairs is None else np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    losses: NDArray[np.float64] = _log_ratios(log_laws, chosen).max(axis=1)
    return losses


def worst_delta(laws: ArrayLike, epsilon: float, pairs: ArrayLike | None = None) -> float:
    """The smallest delta with which ``epsilon`` holds for all pairs: the largest sum of (P(y|x) - e^epsilon P(y|x'))+."""
    checked = _checked(laws)
    chosen = both_ways(len(checked), pairs)
    if chosen.size == 0:
        return 0.0
    excess = checked[chosen[:, 0]] - math.exp(epsilon) * checked[chosen[:, 1]]
    return float(np.maximum(excess, 0.0).sum(axis=1).max())


def epsilon_at(laws: ArrayLike, delta: float, pairs: ArrayLike | None = None) -> float:
    """The smallest epsilon that holds with ``delta`` for all pairs; the worst loss where delta is 0."""
    if delta == 0.0:
        return worst_loss(laws, pairs)
    low, high = 0.0, 1.0
    if worst_delta(laws, 0.0, pairs) <= delta:
        return 0.0
    while worst_delta(laws, high, pairs) > delta:
        high *= 2.0
        if high > 700.0:
            return math.inf
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (low, middle) if worst_delta(laws, middle, pairs) <= delta else (middle, high)
    return high


def loss_range(laws: ArrayLike, pairs: ArrayLike | None = None) -> float:
    """The largest difference, within one pair, between the losses of two outputs (what a bounded-range claim bounds)."""
    checked = _checked(laws)
    chosen = all_pairs(len(checked)) if pairs is None else np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    if chosen.size == 0:
        return 0.0
    logs = _logs(checked)
    first, second = _log_ratios(logs, chosen), _log_ratios(logs, chosen[:, ::-1])
    return float((first.max(axis=1) + second.max(axis=1)).max())


def renyi(p: ArrayLike, q: ArrayLike, order: float) -> NDArray[np.float64]:
    """The Renyi divergence of ``p`` from ``q`` along the last axis; order 1 is the Kullback-Leibler divergence."""
    return _renyi(*_log_pair(np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)), order)


def zcdp(laws: ArrayLike, pairs: ArrayLike | None = None, orders: NDArray[np.float64] = ORDERS) -> float:
    """The largest Renyi divergence over its order, over all pairs and the given orders: the rho that is at least owed."""
    checked = _checked(laws)
    chosen = both_ways(len(checked), pairs)
    if chosen.size == 0:
        return 0.0
    log_p, ratio = _log_pair(checked[chosen[:, 0]], checked[chosen[:, 1]])
    return max(float(_renyi(log_p, ratio, float(order)).max()) / float(order) for order in orders)


def _log_pair(p: NDArray[np.float64], q: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """ln p and ln p/q; where p is 0 the ratio does not matter and is 0, where only q is 0 it is infinite."""
    log_p, log_q = _logs(p), _logs(q)
    return log_p, np.where(p > 0.0, np.where(p > 0.0, log_p, 0.0) - log_q, 0.0)


def _renyi(log_p: NDArray[np.float64], ratio: NDArray[np.float64], order: float) -> NDArray[np.float64]:
    if order == 1.0:
        return np.asarray(np.maximum(np.sum(np.exp(log_p) * ratio, axis=-1), 0.0), dtype=np.float64)
    exponent = log_p + (order - 1.0) * ratio
    top = exponent.max(axis=-1, keepdims=True)
    endless = np.isposinf(top)
    if endless.any():  # an output that only p can give
        exponent, top = np.where(endless, 0.0, exponent), np.where(endless, 0.0, top)
    divergence = (np.log(np.exp(exponent - top).sum(axis=-1)) + top[..., 0]) / (order - 1.0)
    return np.where(endless[..., 0], np.inf, np.maximum(divergence, 0.0))


def all_pairs(inputs: int) -> Pairs:
    """Every ordered pair of different inputs."""
    first, second = np.divmod(np.arange(inputs * inputs), max(inputs, 1))
    different = first != second
    return np.stack([first[different], second[different]], axis=1)


def both_ways(inputs: int, pairs: ArrayLike | None) -> Pairs:
    """Every pair in both directions."""
    if pairs is None:
        return all_pairs(inputs)
    chosen = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    if chosen.size and not (chosen.min() >= 0 and chosen.max() < inputs):
        raise InvalidParameter(f"pairs must name inputs from 0 to {inputs - 1}.")
    return np.concatenate([chosen, chosen[:, ::-1]])


def _log_ratios(logs: NDArray[np.float64], pairs: Pairs) -> NDArray[np.float64]:
    first, second = logs[pairs[:, 0]], logs[pairs[:, 1]]
    never = np.isneginf(first)  # an output that the first cannot give tells nothing in this direction
    return np.where(never, -np.inf, np.where(never, 0.0, first) - second)


def _logs(laws: NDArray[np.float64]) -> NDArray[np.float64]:
    logs: NDArray[np.float64] = np.log(laws, out=np.full(laws.shape, -np.inf), where=laws > 0.0)
    return logs


def _checked(laws: ArrayLike) -> Laws:
    checked = np.asarray(laws, dtype=np.float64)
    if checked.ndim != 2 or checked.size == 0:
        raise InvalidParameter("laws must be a table: one row of probabilities for each input.")
    if not (checked >= 0.0).all():
        raise InvalidParameter("every probability must be a number of at least 0.")
    if not np.allclose(checked.sum(axis=1), 1.0, rtol=0.0, atol=1e-9):
        raise InvalidParameter("the probabilities of every input must add up to 1; is an output missing?")
    return checked
