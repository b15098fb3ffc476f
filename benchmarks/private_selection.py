"""Private selection: the policy `auto`, ranking and pricing, durable offers, amplification, and a device's choice.

Each row is a ratio within one run, on one thread. Peers' work differs, and the notes say how. Choices by randomised response and by
permute-and-flip on plain scores are in the part `selection`; here are the mechanisms that private selection adds.
"""

import itertools
import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import opendp.prelude as dp

from benchmarks.selection import _Diffprivlib, _opendp
from benchmarks.timing import Row, compare
from tacit.guarantees import amplification
from tacit.mechanisms import ClippedScores, PermuteAndFlip, ScaledScores, TopResponse
from tacit.messages.private_selection import OfferRequest
from tacit.models.private_selection import Spread, choose
from tacit.server import Listings, PrivateSelection, ranked

_SIZES = (4, 15, 100)
_LISTED = (15, 1_000)
_BATCH = 20_000
_EPSILON = 1.0
_SPREAD = Spread(0.8)
_CONSENT = OfferRequest("", consent=True)


def run() -> list[Row]:
    dp.enable_features("contrib")
    rng = np.random.default_rng(3)
    rows: list[Row] = []
    for k in _SIZES:
        rows += _choice_of_policy(k, rng)
    rows += _choices_on_devices(rng)
    for count in _LISTED:
        rows += _priced(count, rng)
    rows += _offers(rng)
    rows += _amplified()
    return rows


def _auction(k: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Bids in micro-units and probabilities in ppm: log-normal bids, about 7 clicks in 100."""
    bids = (1e6 * rng.lognormal(sigma=0.9, size=k)).astype(np.int64)
    return bids, np.clip((1e6 * rng.beta(2.0, 27.0, size=k)).astype(np.int64), 1, 10**6)


def _choice_of_policy(k: int, rng: np.random.Generator) -> list[Row]:
    """Over a number of auctions in turn: how far down a list it is worth looking depends on its scores, and on epsilon."""
    auctions = []
    for _ in range(16):
        bids, ppm = _auction(k, rng)
        ranking = ranked(bids, ppm)
        auctions.append((np.array(ranking.scores) / 1e12, bids[list(ranking.order)] / 1e6))
    turn, even = itertools.cycle(auctions), np.full(k, 0.07)

    def auto() -> object:
        scores, bids = next(turn)
        return choose(scores, _SPREAD, _EPSILON, bids=bids)

    peer = _opendp(dp.max_divergence(), auctions[0][0])
    note = "seconds to choose m, d = 1, 100 draws of the prior; the peer draws one exact noisy max, which is other work"
    return [
        compare(f"auto-{k}", "OpenDP make_noisy_max", auto, peer, target=2, note=note),
        compare(
            f"auto-{k}, the whole list",
            "OpenDP make_noisy_max",
            lambda: choose(even, _SPREAD, 8.0),
            peer,
            target=None,
            note=f"{note}; equal scores at epsilon 8, where all of them have to be weighed",
        ),
    ]


def _choices_on_devices(rng: np.random.Generator) -> list[Row]:
    rows: list[Row] = []
    with ExitStack() as cleanup:
        peers = None
        if os.environ.get("TACIT_PEERS"):
            peers = cleanup.enter_context(_Diffprivlib())
        else:
            print("no diffprivlib here: its rows are left out (make bench sets it up)", file=sys.stderr)
        for k in _SIZES:
            scores, many = rng.random(k), rng.random((_BATCH, k))
            scaled, clipped = ScaledScores(k), ClippedScores(tuple(rng.random(k).tolist()), 0.5)
            opendp = _opendp(dp.max_divergence(), scores)
            response = TopResponse(k, 1, _EPSILON)
            several = TopResponse(k, min(3, k - 1), _EPSILON)
            flips = {
                "scaled": PermuteAndFlip(scaled, _EPSILON),
                "scaled, calibrated": PermuteAndFlip(scaled, _EPSILON, calibrated=True),
                "clipped, calibrated": PermuteAndFlip(clipped, _EPSILON, calibrated=True),
            }
            rows += [
                compare(f"rr-from-scores-one-{k}", "OpenDP make_noisy_max", lambda m=response, s=scores: m.release(s), opendp,
                        target=10, note="seconds per decision, both exact and both from scores"),
                compare(f"rr-three-best-one-{k}", "OpenDP make_noisy_max", lambda m=several, s=scores: m.release(s), opendp,
                        target=None, note="seconds per decision, both exact and both from scores; d = 3"),
                compare(f"rr-from-scores-batch-{k}", "OpenDP make_noisy_max, looped", lambda m=response, s=many: m.release_many(s),
                        opendp, per=(_BATCH, 1), target=500, note="seconds per decision, both exact and both from scores"),
            ]  # fmt: skip
            rows += [
                compare(f"pf-{how}-one-{k}", "OpenDP make_noisy_max", lambda m=flip, s=scores: m.release(s), opendp, target=2,
                        note="seconds per decision, both exact; ours bounds the scores too")
                for how, flip in flips.items()
            ]  # fmt: skip
            if peers is not None:
                rows += [
                    compare(f"{name}-one-{k}", "diffprivlib PermuteAndFlip", lambda m=mechanism, s=scores: m.release(s),
                            peers.timer("PermuteAndFlip", k), target=target, timed_peer=True,
                            note="seconds per decision; ours exact, the peer in floats, and built anew for each decision")
                    for name, mechanism, target in (("rr-from-scores", response, 4.0), ("pf-scaled", flips["scaled"], 1.0))
                ]  # fmt: skip
    return rows


def _priced(count: int, rng: np.random.Generator) -> list[Row]:
    bids, ppm = _auction(count, rng)
    own_bids, own_ppm = bids.tolist(), ppm.tolist()
    scores = bids * ppm

    def plain() -> object:
        eligible = [place for place in range(count) if own_bids[place] >= 1]
        order = sorted(eligible, key=lambda place: (-own_bids[place] * own_ppm[place], place))
        worth = [own_bids[place] * own_ppm[place] for place in order]
        following = [*worth[1:], 0]
        return [max(after, own_ppm[place]) // 10**6 for place, after in zip(order, following, strict=True)]

    return [
        compare(f"ranked-{count}", "a plain loop in Python", lambda: ranked(bids, ppm, 1), plain, target=None,
                note=f"seconds to rank and price {count:,} eligible listings; the loop checks no input"),
        compare(f"ranked-{count}", "numpy's sort of the scores alone", lambda: ranked(bids, ppm, 1),
                lambda: np.argsort(-scores, kind="stable"), target=None,
                note=f"the peer is a lower bound: one of the steps, for {count:,} listings; below 1 is expected"),
    ]  # fmt: skip


def _offers(rng: np.random.Generator) -> list[Row]:
    """A whole offer, durable, beside a transaction that writes a row of the same size, on the same disk."""
    rows: list[Row] = []
    folder = Path(tempfile.mkdtemp(prefix="tacit-bench-"))
    with ExitStack() as cleanup:
        cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        for count in _LISTED:
            bids, ppm = _auction(count, rng)
            items = [f"item-{place}" for place in range(count)]
            for how, known in (("fixed", ppm), ("by context", lambda _, ppm=ppm: ppm)):
                shop = PrivateSelection(
                    Listings(items, bids, known), folder / f"{count}-{how}.db", spread=_SPREAD, explore=0.0, rng=rng
                )
                cleanup.callback(shop.ledger.close)
                offered = shop.offer(_CONSENT)
                size = 30 * len(offered.candidates) if offered is not None else 0
                bare = _bare(folder / f"{count}-{how}-bare.db", size)
                for _ in range(300):  # a log that still grows is slower to sync
                    shop.offer(_CONSENT)
                    bare()
                name, note = (
                    f"offer-{count}, probabilities {how}",
                    "seconds per durable offer, priced and chosen by `auto`",
                )
                rows.append(
                    compare(
                        name,
                        "a bare SQLite transaction",
                        lambda s=shop: s.offer(_CONSENT),
                        bare,
                        target=None,
                        note=f"{note}; peer: begin, insert as many bytes, commit",
                    )
                )
    return rows


def _bare(path: Path, size: int) -> Callable[[], object]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE offers (id BLOB PRIMARY KEY, content TEXT, expires INTEGER) WITHOUT ROWID")
    content = "x" * size

    def insert() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO offers VALUES (?, ?, ?)", (os.urandom(16), content, 1))
        connection.execute("COMMIT")

    return insert


def _amplified() -> list[Row]:
    """The numerical bound for a million reports: seconds of CPU against one second, and beside the closed form."""
    rows: list[Row] = []
    for epsilon0 in (1.0, 5.0, 8.0):
        for method, k in (("numerical", None), ("blanket", 4)):
            used = [
                _cpu(lambda e=epsilon0, m=method, k=k: amplification.shuffle(e, 10**6, 1e-6, m, k)) for _ in range(3)
            ]
            closed = _cpu(lambda e=epsilon0: amplification.shuffle(e, 10**6, 1e-6, "closed"))
            ours = statistics.median(used)
            note = (
                f"seconds of CPU for the {method} bound of 10^6 reports at delta = 1e-6, against one second; the closed form takes "
                f"{closed:.2g} s and its epsilon is several times as large; rounds {min(used):.3g} to {max(used):.3g}"
            )
            name = f"amplify-{method}-{epsilon0:g}"
            rows.append(
                Row(name=name, peer="one second of CPU", ours=ours, theirs=1.0, ratio=1.0 / ours, target=1, note=note)
            )
    return rows


def _cpu(work: Callable[[], object]) -> float:
    amplification._shuffle.cache_clear()
    start = time.process_time()
    work()
    return time.process_time() - start
