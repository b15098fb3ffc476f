"""Cross-domain at many sizes: time and peak memory from ratings to X-SIM without edges ever being held, and Spark on this machine.

Each size runs in a process of its own, which reports its CPU seconds and its memory. Spark runs where its environment is
(``make spark`` sets up .venv-spark), from the same Parquet file to the same number of replacements; otherwise its row is left out.
TACIT_SPARK_RATINGS says on how many ratings; 0 leaves Spark out.
"""

import contextlib
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
_SPARK_RATINGS, _SPARK_EACH, _SPARK_ITEMS = 20_000_000, 40, 4_000
_SPARK_CAP = 20  # ratings of a user that both engines keep before pairs are formed


def run() -> list[Row]:
    return [*_sizes(), *_spark(int(os.environ.get("TACIT_SPARK_RATINGS", _SPARK_RATINGS)))]


def _sizes() -> list[Row]:
    """Time for each pair of one user's ratings, against the size before; and the memory of the largest."""
    work = "ratings to X-SIM"
    measured = [_in_own_process(size) for size in _SIZES]
    found = []
    for place, mine in enumerate(measured):
        other = measured[max(place - 1, 0)]
        ours, theirs = (1e9 * one["seconds"] / one["steps"] for one in (mine, other))
        found.append(
            Row(name=f"{_SIZES[place]:,} {work}", peer=f"itself at {_SIZES[max(place - 1, 0)]:,} ratings", ours=ours, theirs=theirs,
                ratio=theirs / ours, target=None,
                note=f"nanoseconds for each of {mine['steps']:.3g} pairs (sum of squared profiles); {mine['seconds']:.3g} CPU "
                f"seconds; {int(mine['ratings']):,} ratings of {_ITEMS:,} items; peak {mine['gigabytes']:.2f} GiB, "
                f"{mine['before']:.2f} of them before; ratio = theirs / ours, 1 is proportional to the pairs")
        )  # fmt: skip
    held = measured[-1]["ratings"] * 12 / 1024**3
    found.append(
        Row(name=f"{_SIZES[-1]:,} {work}, peak memory", peer="the ratings alone", ours=measured[-1]["gigabytes"], theirs=held,
            ratio=measured[-1]["gigabytes"] / held, target=None, note=f"GiB of the whole process; {LOWER}")
    )  # fmt: skip
    return found


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


def worker(count: int) -> dict[str, float]:
    from tacit.models.cross_domain.similarities import streamed
    from tacit.models.cross_domain.x_sim import x_sim

    def done(rows: sparse.csr_array) -> object:
        return x_sim(streamed(rows, rows.shape[1] // 2, _KEPT)[1])

    done(table(5_000, items=200))  # compiles what is compiled
    rows = table(count)
    with contextlib.suppress(OSError):  # what making the ratings took is not what is measured
        Path("/proc/self/clear_refs").write_text("5")
    before = _peak_gigabytes()
    start = time.process_time()
    done(rows)
    passed = time.process_time() - start
    each = np.diff(rows.indptr).astype(np.float64)
    return {
        "seconds": passed,
        "gigabytes": _peak_gigabytes(),
        "before": before,
        "ratings": rows.nnz,
        "steps": float(each @ each),
    }


def _in_own_process(count: int) -> dict[str, float]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, "-m", "benchmarks.cross_domain_sizes", str(count)]
    done = subprocess.run(command, cwd=_ROOT, env=os.environ | threads, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def from_file(file: str) -> str:
    """From Parquet to the replacements of source items, as the Spark engine does it; how many there are."""
    import polars as pl

    from tacit.models.cross_domain.alter_egos import replacements
    from tacit.models.cross_domain.similarities import streamed
    from tacit.models.cross_domain.x_sim import x_sim

    columns = pl.read_parquet(file)
    place = columns["user"].to_numpy(), columns["item"].to_numpy()
    rows = sparse.csr_array(sparse.coo_array((columns["value"].to_numpy(), place)))
    n_source = int(columns.filter(pl.col("domain") == "source")["item"].max()) + 1
    found = replacements(x_sim(streamed(rows, n_source, _KEPT, most_each=_SPARK_CAP)[1]))
    return str(np.count_nonzero(found >= 0))


def _spark(count: int) -> list[Row]:
    if count == 0 or not _SPARK.exists():
        return []
    import polars as pl

    with tempfile.TemporaryDirectory() as folder:
        rows = table(count, _SPARK_EACH, _SPARK_ITEMS)
        item, file = rows.indices.astype(np.int64), f"{folder}/ratings.parquet"
        pl.DataFrame({
            "user": np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), "item": item, "value": rows.data,
            "domain": np.where(item < _SPARK_ITEMS // 2, "source", "target"),
        }).write_parquet(file)  # fmt: skip
        own = ["--workers", "2", "--memory", "8g"]
        engine = [str(_SPARK), "-m", "tacit.engines.spark"]
        mine = _wall([[sys.executable, "-m", "benchmarks.cross_domain_sizes", "file", file]])
        other = _wall([
            [*engine, "similarities", file, "--out", f"{folder}/found", "--least", "1", "--most-each", str(_SPARK_CAP), *own],
            [*engine, "x-sim", f"{folder}/found", "--out", f"{folder}/found", *own],
        ])  # fmt: skip
        theirs = pl.read_parquet(f"{folder}/found/replacements/*.parquet").height
        if theirs != int(from_file(file)):
            raise RuntimeError("Spark found another number of replacements.")
        return [
            Row(name=f"{rows.nnz:,} ratings to replacements", peer="our Spark engine, two workers here", ours=mine, theirs=other,
                ratio=other / mine, target=None,
                note=f"seconds of the clock, one round, from a Parquet file, its start included; {_SPARK_ITEMS:,} items, "
                f"about {_SPARK_EACH} ratings a user, of which {_SPARK_CAP} count; ratio = theirs / ours")
        ]  # fmt: skip


def _wall(commands: list[list[str]]) -> float:
    start = time.perf_counter()
    for command in commands:
        subprocess.run(command, cwd=_ROOT, check=True, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    if sys.argv[1] == "file":
        print(from_file(sys.argv[2]))
    else:
        print(json.dumps(worker(int(sys.argv[1]))))
