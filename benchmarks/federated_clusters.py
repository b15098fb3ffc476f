"""Private clustering against diffprivlib at the same epsilon: mean squared loss, and seconds.

Gaussian blobs in the unit cube, 20,000 points, 8 centres. By reading its source, diffprivlib 0.6.6 swaps the shares of counts and
coordinates and so spends (1 + d e) / (d + e) times its epsilon, e = (4 d .225^2)^(1/3): 1.21 times at 10 numbers, 2.66 at 100.
"Fair" runs it at epsilon divided by that. It is pure epsilon; `tree` has delta = 1e-6 besides.
"""

import statistics
import time

import numpy as np

from benchmarks.federated_points import blobs, loss
from benchmarks.peer import Peer
from benchmarks.timing import LOWER, Row
from tacit.mechanisms import GridPrototypes, ProfileBounds, TreePrototypes
from tacit.mechanisms.inputs import FeatureBox

_N, _K, _SEEDS, _DELTA = 20_000, 8, 5, 1e-6
_MIDDLE = 0.5  # of the cube: public
_DIMENSIONS, _EPSILONS = (10, 100), (0.1, 1.0, 10.0)
_TREE = {0.1: 0.6, 1.0: 0.6, 10.0: 0.9}  # most loss, as a part of diffprivlib's as it is
_GRID = {10: None, 100: 1.3}


def run(peers: Peer) -> list[Row]:
    return [row for d in _DIMENSIONS for epsilon in _EPSILONS for row in _one(peers, d, epsilon)]


def spent(d: int) -> float:
    """What diffprivlib spends for each epsilon that it states."""
    part = float((4.0 * d * 0.225**2) ** (1.0 / 3.0))
    return (1.0 + d * part) / (d + part)


def _one(peers: Peer, d: int, epsilon: float) -> list[Row]:
    tree = TreePrototypes(FeatureBox.cube(d), _K, epsilon, _DELTA)
    grid = GridPrototypes(ProfileBounds(d, d, _MIDDLE, signed=True), _K, epsilon, _N)
    losses: dict[str, list[float]] = {name: [] for name in ("tree", "grid", "as it is", "fair")}
    seconds: dict[str, list[float]] = {name: [] for name in losses}
    for seed in range(-1, _SEEDS):  # the first warms up
        points = blobs(_N, d, _K, max(seed, 0))
        ask = {"work": "k-means", "n": _N, "d": d, "k": _K, "seed": max(seed, 0)}
        # `tree` moves its box to the public centre by itself
        for name, mechanism, centre in (("tree", tree, 0.0), ("grid", grid, _MIDDLE)):
            start = time.perf_counter()
            centres = mechanism.release(points - centre).value.centres + centre
            passed = time.perf_counter() - start
            known = centres[~np.isnan(centres).all(axis=1)]
            _keep(losses, seconds, name, seed, loss(points, np.nan_to_num(known, nan=_MIDDLE)), passed)
        for name, stated in (("as it is", epsilon), ("fair", epsilon / spent(d))):
            answer = peers.answer(ask | {"epsilon": stated})
            _keep(losses, seconds, name, seed, answer["loss"], answer["seconds"])
    rows = []
    for name, most, faster in (("tree", _TREE[epsilon], 1 / 0.6), ("grid", _GRID[d], 1 / 1.5)):
        work = f"clusters-{name}, d={d}, epsilon={epsilon:g}"
        for kind, target in (("as it is", most), ("fair", None)):
            rows.append(_row(work + ", loss", kind, losses[name], losses[kind], target, LOWER))
        rows.append(
            _row(work, "as it is", seconds[name], seconds["as it is"], faster, "seconds; ratio = theirs / ours")
        )
    return rows


def _keep(losses: dict[str, list[float]], seconds: dict[str, list[float]], name: str, seed: int, *pair: float) -> None:
    if seed >= 0:
        losses[name].append(pair[0])
        seconds[name].append(pair[1])


def _row(name: str, kind: str, ours: list[float], theirs: list[float], target: float | None, how: str) -> Row:
    lower = how is LOWER
    middle = statistics.mean if lower else statistics.median
    mine, other = middle(ours), middle(theirs)
    single = sorted(a / b if lower else b / a for a, b in zip(ours, theirs, strict=True))
    note = f"{_SEEDS} seeds, {single[0]:.3g} to {single[-1]:.3g}; {how}"
    if lower:
        note = f"mean squared distance; {note}"
    ratio = mine / other if lower else other / mine
    return Row(
        name=name, peer=f"diffprivlib KMeans, {kind}", ours=mine, theirs=other, ratio=ratio, target=target, note=note
    )
