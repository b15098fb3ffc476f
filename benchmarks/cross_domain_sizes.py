"""Cross-domain at many sizes: time and peak memory from ratings to X-SIM without edges ever being held, and Spark on this machine.

Each size runs in a process of its own, which reports its CPU seconds and its memory. Spark runs where its environment is
(``make spark`` sets up .venv-spark), from the same Parquet file to the same replacements; otherwise its row is left out.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.loader import _peak_gigabytes
from benchmarks.timing import LOWER, Row

_ITEMS = 60_000
_SIZES = (100_000, 1_000_000, 5_000_000, 20_000_000)
_EACH, _MOST = 140, 2_000  # ratings of a user on average, and at most
_KEPT = 10
_ROOT = Path(__file__).resolve().parent.parent
_SPARK = _ROOT / ".venv-spark" / "bin" / "python"
_SPARK_RATINGS, _SPARK_EACH = 2_000_000, 40


def run() -> list[Row]:
    measured = {size: _in_own_process(size) for size in _SIZES}
    found = []
    for smaller, size in zip((None, *_SIZES), _SIZES, strict=False):
        mine = measured[size]
        peer = "itself" if smaller is None else f"itself at {smaller:,} ratings"
        other = mine if smaller is None else measured[smaller]
        note = (
            f"nanoseconds for each of {mine['steps']:.3g} pairs of a user's ratings (sum of squares); {mine['seconds']:.3g} CPU "
            f"seconds, {mine['paths']:.2g} of them for X-SIM; {int(mine['ratings']):,} ratings of {_ITEMS:,} items; peak "
            f"{mine['gigabytes']:.2f} GiB, {mine['before']:.2f} of them before; layers {mine['layers']}; ratio = theirs / ours, "
            "1 is proportional to the pairs"
        )
        ours, theirs = (1e9 * one["seconds"] / one["steps"] for one in (mine, other))
        name = f"{size:,} ratings to X-SIM"
        found.append(Row(name=name, peer=peer, ours=ours, theirs=theirs, ratio=theirs / ours, target=None, note=note))
    largest = measured[_SIZES[-1]]
    held = largest["ratings"] * 12 / 1024**3
    found.append(
        Row(name=f"{_SIZES[-1]:,} ratings to X-SIM, peak memory", peer="the ratings alone", ours=largest["gigabytes"], theirs=held,
            ratio=largest["gigabytes"] / held, target=None, note=f"GiB of the whole process; {LOWER}")
    )  # fmt: skip
    return [*found, *_spark(_SPARK_RATINGS)]


def table(count: int, each: int = _EACH, items: int = _ITEMS) -> sparse.csr_array:
    """Made-up ratings of two domains of equal size, a long tail of items in each; of ten users three rate in both."""
    rng = np.random.default_rng(8)
    users, half = max(1, count // each), items // 2
    sizes = np.clip(rng.lognormal(np.log(1.08 * each) - 0.5, 1.0, users), 5, _MOST).astype(np.int64)
    popular = np.cumsum((20.0 + np.arange(half)) ** -0.8)
    user = np.repeat(np.arange(users), sizes)
    item = rng.permutation(half)[np.searchsorted(popular, rng.random(user.size) * popular[-1])]
    kind = rng.choice(3, size=users, p=[0.35, 0.35, 0.3])[user]
    item += half * np.where(kind == 2, rng.random(user.size) < 0.5, kind == 1)
    cells = np.unique(user * items + item)
    starts = np.searchsorted(cells, np.arange(users + 1) * items)
    values = rng.integers(1, 6, cells.size).astype(np.float64)
    return sparse.csr_array((values, (cells % items).astype(np.int32), starts), shape=(users, items))


def worker(count: int) -> dict[str, object]:
    from tacit.models.cross_domain.streamed import streamed
    from tacit.models.cross_domain.x_sim import x_sim

    streamed(table(5_000, items=200), 100)  # compiles what is compiled
    rows = table(count)
    before = _peak_gigabytes()
    start = time.process_time()
    layers, legs = streamed(rows, _ITEMS // 2, _KEPT)
    middle = time.process_time()
    x_sim(legs)
    end = time.process_time()
    counts = np.diff(rows.indptr).astype(np.float64)
    return {"seconds": end - start, "paths": end - middle, "gigabytes": _peak_gigabytes(), "before": before,
            "ratings": rows.nnz, "steps": float(counts @ counts), "layers": np.bincount(layers, minlength=4).tolist()}  # fmt: skip


def _in_own_process(count: int) -> dict[str, float]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, "-m", "benchmarks.cross_domain_sizes", "size", str(count)]
    done = subprocess.run(command, cwd=_ROOT, env=os.environ | threads, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def from_file(file: str) -> None:
    """From Parquet to the replacements of source items, as the Spark engine does it."""
    import polars as pl

    from tacit.models.cross_domain.alter_egos import replacements
    from tacit.models.cross_domain.streamed import streamed
    from tacit.models.cross_domain.x_sim import x_sim

    columns = pl.read_parquet(file)
    user, item = columns["user"].to_numpy(), columns["item"].to_numpy()
    rows = sparse.csr_array(sparse.coo_array((columns["value"].to_numpy(), (user, item))))
    found = replacements(x_sim(streamed(rows, _ITEMS // 2)[1]))
    print(json.dumps({"mapped": int((found >= 0).sum())}))


def _spark(count: int) -> list[Row]:
    if not _SPARK.exists():
        return []
    import polars as pl

    with tempfile.TemporaryDirectory() as folder:
        rows = table(count, _SPARK_EACH)
        item = rows.indices.astype(np.int64)
        pl.DataFrame({
            "user": np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), "item": item, "value": rows.data,
            "domain": np.where(item < _ITEMS // 2, "source", "target"),
        }).write_parquet(f"{folder}/ratings.parquet")  # fmt: skip
        one = [sys.executable, "-m", "benchmarks.cross_domain_sizes", "file", f"{folder}/ratings.parquet"]
        own = ["--workers", "1", "--memory", "6g", "--checkpoints", f"{folder}/checkpoints"]
        engine = [str(_SPARK), "-m", "tacit.engines.spark"]
        spark = [
            [*engine, "similarities", f"{folder}/ratings.parquet", "--out", f"{folder}/found", "--least", "1", *own],
            [*engine, "x-sim", f"{folder}/found", "--out", f"{folder}/found", *own],
        ]
        mine, other = _wall([one]), _wall(spark)
        return [
            Row(name=f"{rows.nnz:,} ratings to replacements", peer="our Spark engine, one worker", ours=mine, theirs=other,
                ratio=other / mine, target=None,
                note=f"seconds of the clock, one round, from a Parquet file, start of the process included; {_ITEMS:,} items, "
                f"{_SPARK_EACH} ratings a user; ratio = theirs / ours")
        ]  # fmt: skip


def _wall(commands: list[list[str]]) -> float:
    start = time.perf_counter()
    for command in commands:
        subprocess.run(command, cwd=_ROOT, check=True, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    if sys.argv[1] == "file":
        from_file(sys.argv[2])
    else:
        print(json.dumps(worker(int(sys.argv[2]))))
