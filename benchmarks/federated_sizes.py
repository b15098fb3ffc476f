"""Large entities, and sums: time for each user at n and at half of it, peak memory, secure sums, moments.

Each large release happens in a process of its own, which reports its seconds and how far its memory rose above the rows.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.loader import _peak_gigabytes
from benchmarks.timing import LOWER, Row, compare
from tacit.entity.secure_sum import SecureParty
from tacit.messages.federated_prototypes.frame import public_of
from tacit.models.secure_sum import SumSession
from tacit.server.secure_sums import SecureSums

_WORLDS = {"counts": (100_000, 500), "drugs": (190_000, 457)}
_LINEAR = 1 / 1.5  # of the time for each user, from half of the users to all
_ENTITIES, _FEWEST = 10, 8
_HEAD = 900
_RHO, _DELTA = 0.1, 1e-6


def run(ratings: sparse.csr_array, world: str) -> list[Row]:
    rows = [row for name in _WORLDS for mechanism in ("tree", "grid") for row in _large(name, mechanism)]
    return [*rows, *_secure(), _moments(ratings, world)]


def table(world: str, users: int, items: int) -> sparse.csr_array:
    """``counts``: Poisson counts of lognormal rates, most cells not 0. ``drugs``: some 20 marks for each user."""
    rng = np.random.default_rng(3)
    if world == "drugs":
        popular = (1.0 + np.arange(items) / 10.0) ** -1.3
        chance = np.minimum(20.0 * popular / popular.sum(), 0.9)
        return sparse.csr_array((rng.random((users, items), dtype=np.float32) < chance).astype(np.float32))
    taste = rng.normal(size=(items, 16)).astype(np.float32) / 4.0
    blocks = [
        sparse.csr_array(
            rng.poisson(np.exp(rng.normal(size=(min(5_000, users - first), 16)) @ taste.T)).astype(np.float32)
        )
        for first in range(0, users, 5_000)
    ]
    return sparse.csr_array(sparse.vstack(blocks, format="csr"))


def worker(world: str, mechanism: str, users: int) -> dict[str, float]:
    from tacit.mechanisms import GridPrototypes, ProfileBounds, TreePrototypes

    items = _WORLDS[world][1]
    bounds = ProfileBounds(items, items, 30.0) if world == "counts" else ProfileBounds(items, 40, 1.0)
    made: Any = (
        TreePrototypes(bounds, 50, 1.0, _DELTA) if mechanism == "tree" else GridPrototypes(bounds, 50, 1.0, 100_000)
    )
    made.release(table(world, 1_000, items))  # compiles what is compiled
    rows = table(world, users, items)
    before = _resident_gigabytes()
    start = time.perf_counter()
    made.release(rows)
    passed = time.perf_counter() - start
    return {"seconds": passed, "gigabytes": _peak_gigabytes(), "before": before, "cells": rows.nnz}


def _large(world: str, mechanism: str) -> list[Row]:
    users, items = _WORLDS[world]
    half, full = (_in_own_process(world, mechanism, count) for count in (users // 2, users))
    name, kind = (
        f"{mechanism}-{users}x{items}",
        f"{world}, k=50, epsilon 1, {int(full['cells']):,} cells that are not 0",
    )
    dense = users * items * 8 / 1024**3
    mine, other = full["seconds"] / users, half["seconds"] / (users // 2)
    return [
        Row(name=name, peer="itself, half of the users", ours=mine, theirs=other, ratio=other / mine, target=_LINEAR,
            note=f"seconds for each user, {full['seconds']:.1f} s in all; {kind}; ratio = theirs / ours, 1 is linear"),
        Row(name=f"{name}, peak memory", peer="the rows as a full table of floats", ours=full["gigabytes"], theirs=dense,
            ratio=full["gigabytes"] / dense, target=None,
            note=f"GiB of the whole process, {full['before']:.2f} of them with the rows before the release; {kind}; {LOWER}"),
    ]  # fmt: skip


def _resident_gigabytes() -> float:
    status = Path("/proc/self/status")
    if not status.exists():
        return _peak_gigabytes()
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024**2


def _in_own_process(world: str, mechanism: str, users: int) -> dict[str, float]:
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-m", "benchmarks.federated_sizes", world, mechanism, str(users)]
    done = subprocess.run(command, cwd=root, env=dict(os.environ), check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _secure() -> list[Row]:
    cells = {"popularity": 3_706, "gram": _HEAD * (_HEAD + 1) // 2}
    rng = np.random.default_rng(2)
    names = [f"entity {place}" for place in range(_ENTITIES)]
    keys = {name: rng.bytes(32) for name in names}
    vectors = {
        upload: {name: rng.integers(-(2**40), 2**40, count) for name in names} for upload, count in cells.items()
    }
    session = SumSession("5e" * 32, {name: public_of(key) for name, key in keys.items()}, _FEWEST, 1)

    def plain() -> object:
        return [np.sum(list(one.values()), axis=0) for one in vectors.values()]

    def secure(gone: int) -> None:
        sums = SecureSums(session)
        parties = {name: SecureParty.start(session, name, key) for name, key in keys.items()}
        for party in parties.values():
            sums.add_keys(party.keys_message)
        known = sums.close_keys()
        for party in parties.values():
            sums.add_shares(party.shares_message(known))
        for name, parcels in sums.close_shares().items():
            parties[name].receive(parcels)
        for upload, count in cells.items():
            for name in names[gone:]:
                sums.add_masked(parties[name].masked(vectors[upload][name], upload), upload, count)
            left = sums.close_upload(upload)
            for name in left:
                sums.add_unmask(parties[name].unmask(left, upload), upload)
            total = sums.total(upload)
            if not np.array_equal(total, np.sum([vectors[upload][name] for name in names[gone:]], axis=0)):
                raise RuntimeError("a secure sum is not the sum.")

    note = (
        f"seconds of all {_ENTITIES} entities and the coordinator together, {sum(cells.values()):,} numbers each; the peer adds "
        "the same vectors in the open, which no privacy can undercut"
    )
    return [
        compare(f"secure-sum, {gone} dropped out", "numpy's sum in the open", lambda gone=gone: secure(gone), plain,
                target=None, rounds=3, note=note)
        for gone in (0, _ENTITIES - _FEWEST)
    ]  # fmt: skip


def _moments(ratings: sparse.csr_array, world: str) -> Row:
    from tacit.mechanisms import GramShare, PopularityShare

    items = ratings.shape[1]
    head = tuple(np.sort(np.argsort(-np.diff(ratings.tocsc().indptr), kind="stable")[: min(_HEAD, items)]).tolist())
    popularity, gram = PopularityShare(items, _RHO, _DELTA), GramShare(items, head, _RHO, _DELTA)
    marks = sparse.csr_array(ratings.sign())
    part = marks[:, np.array(head)]

    return compare("moments", "scipy's X^T X on the head", lambda: (popularity.release(ratings), gram.release(ratings)),
                   lambda: (part.T @ part).toarray(), target=None, rounds=3,
                   note=f"seconds; {world}, head of {len(head)}; ours are both uploads in whole numbers with their noise, the "
                   "peer the one product in floats without which there is no Gram matrix: a lower bound")  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(worker(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
