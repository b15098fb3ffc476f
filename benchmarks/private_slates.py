"""Private slates: one slate by each sampler against DPPy, and set-up against the matrix products that it cannot do without.

Kernels are B B^T, or sigma I + B B^T, of the same normal rows on both sides. DPPy samples in its own process and environment and
reports its own seconds; it runs on one thread too, in turns with ours. Our coins are the operating system's, its are numpy's.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse

from benchmarks.peer import Peer
from benchmarks.timing import Row, compare
from tacit.mechanisms import NaturalSlate
from tacit.mechanisms.noise import SYSTEM_NOISE, NoiseCoins
from tacit.models.dpp.samplers import SplitSampler
from tacit.models.dpp.tempered import greedy_map

_D, _K, _SEED, _SIGMA = 32, 10, 5, 0.6
_SIZES = {2_000: (None, None), 17_000: (1.5, 8), 100_000: (1.5, 50)}  # items: targets of the scan and of rejection
_LARGEST = 1_000_000
_DENSE = 2_000
_USERS = 5_000
_COINS = NoiseCoins(SYSTEM_NOISE)


def run() -> list[Row]:
    rows: list[Row] = []
    with _Dppy() as dppy:
        for n, (scan, rejection) in _SIZES.items():
            rows += _one_slate(dppy, n, scan, rejection)
        rows += _jittered(dppy)
        rows += _natural(dppy)
    rows += _flat()
    for n in (100_000, _LARGEST):
        rows.append(_set_up(n))
    rows.append(_greedy())
    return rows


class _Dppy(Peer):
    """DPPy in its own environment: it answers one line (a kernel) with the seconds of one slate."""

    script = "dppy_timer.py"

    def timer(self, n: int, sigma: float = 0.0, *, first: bool = False) -> Callable[[], float]:
        ask = {"n": n, "d": _D, "sigma": sigma, "seed": _SEED, "k": _K, "first": first}
        return lambda: self.seconds(ask)


def _rows(n: int) -> np.ndarray:
    return np.random.default_rng(_SEED).normal(size=(n, _D)) / np.sqrt(_D)


def _one_slate(dppy: _Dppy, n: int, scan: float | None, rejection: float | None) -> list[Row]:
    """After set-up, of B B^T: the kernel that DPPy can sample without an n x n matrix."""
    rows = _rows(n)
    work = "seconds per slate after set-up, no jitter"
    many = SplitSampler(rows, 0.0, _K, scan=False)
    return [
        compare(f"slate-rejection-batch-{n}", "DPPy, dual k-DPP", lambda: many.draw_many(100, _COINS), dppy.timer(n),
                per=(100, 1), target=None, timed_peer=True, note=f"{work}; ours makes a hundred in one call"),
    ] + [
        compare(f"slate-{name}-{n}", "DPPy, dual k-DPP", partial(SplitSampler(rows, 0.0, _K, scan=scans).draw, _COINS),
                dppy.timer(n), target=target, timed_peer=True, note=f"{work}; {how}")
        for name, scans, target, how in (
            ("scan", True, scan, "ours passes over the catalogue once for each item"),
            ("rejection", False, rejection, "ours proposes items and accepts or rejects them"),
        )
    ]  # fmt: skip


def _jittered(dppy: _Dppy) -> list[Row]:
    rows = _rows(_DENSE)

    def ours(scan: bool) -> object:
        return SplitSampler(rows, _SIGMA, _K, scan=scan).draw(_COINS)

    return [
        compare(f"first-slate-{name}-{_DENSE}", "DPPy, dense", partial(ours, scan),
                dppy.timer(_DENSE, _SIGMA, first=True), target=target, timed_peer=True, rounds=3,
                note="seconds for the first slate of sigma I + B B^T, set-up included; the peer forms the matrix and its "
                "eigenvectors")
        for name, scan, target in (("scan", True, 100), ("rejection", False, None))
    ]  # fmt: skip


def _natural(dppy: _Dppy) -> list[Row]:
    """Likes of users instead of given rows: what a curator has. The peer's kernel is another, of the same size."""
    # the most liked item has half of the users, each likes about a hundred: as in MovieLens 1M
    liked = 0.5 * (1.0 + np.arange(_DENSE) / 100.0) ** -1.2
    likes = sparse.csr_array((np.random.default_rng(_SEED).random((_USERS, _DENSE)) < liked).astype(np.float64))
    mechanism = NaturalSlate(_DENSE, _K, 1.0)
    prepared = mechanism.prepare(likes)
    return [
        compare(f"natural-slate-first-{_DENSE}", "DPPy, dense", lambda: mechanism.release(likes),
                dppy.timer(_DENSE, _SIGMA, first=True), target=None, timed_peer=True, rounds=3,
                note="seconds for the first slate, set-up included; ours clips records and draws in whole numbers, exactly; the "
                "peer in floats, from a kernel of normal rows"),
        compare(f"natural-slate-{_DENSE}", "DPPy, dense", lambda: prepared.release(),
                dppy.timer(_DENSE, _SIGMA), target=None, timed_peer=True,
                note="seconds per slate after set-up; ours in whole numbers, exactly; the peer in floats, from a kernel of "
                "normal rows"),
        compare(f"natural-slate-batch-{_DENSE}", "DPPy, dense", lambda: prepared.release_many(100),
                dppy.timer(_DENSE, _SIGMA), per=(100, 1), target=None, timed_peer=True,
                note="as above, a hundred slates in one call"),
    ]  # fmt: skip


def _flat() -> list[Row]:
    """Is a slate by rejection as quick from a million items as from 17,000?"""
    small, large = (SplitSampler(_rows(n), _SIGMA, _K, scan=False) for n in (17_000, _LARGEST))
    return [
        compare(f"slate-rejection-{_LARGEST}", "ours at 17,000 items", lambda: large.draw(_COINS),
                lambda: small.draw(_COINS), target=1 / 3, note="seconds per slate after set-up, with jitter; 1 is flat")
    ]  # fmt: skip


def _set_up(n: int) -> Row:
    rows = _rows(n)
    turned = np.linalg.qr(np.random.default_rng(_SEED).normal(size=(_D, _D)))[0]

    def products() -> object:
        return rows.T @ rows, rows @ turned

    return compare(f"set-up-{n}", "B^T B and B W by numpy", lambda: SplitSampler(rows, _SIGMA, _K, scan=False), products,
                   target=1 / 3, rounds=5,
                   note="seconds; the peer is the two matrix products without which no eigenvectors are had: a lower "
                   "bound")  # fmt: skip


def _greedy() -> Row:
    """The textbook step: for every item the determinant of the slate with it."""
    rows = _rows(_DENSE)

    def textbook() -> list[int]:
        chosen: list[int] = []
        for _ in range(_K):
            grown = np.array(
                [_gram(rows[[*chosen, item]]) if item not in chosen else -np.inf for item in range(_DENSE)]
            )
            chosen.append(int(np.argmax(grown)))
        return chosen

    return compare(f"greedy-map-{_DENSE}", "determinants by numpy", lambda: greedy_map((rows, _SIGMA), _K), textbook,
                   target=None, rounds=3, note="seconds for a slate of 10; the peer forms every determinant anew")  # fmt: skip


def _gram(rows: np.ndarray) -> float:
    return float(np.linalg.slogdet(rows @ rows.T + _SIGMA * np.eye(len(rows)))[1])
