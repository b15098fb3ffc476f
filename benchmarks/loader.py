"""Reading a file in the layout of MovieLens 25M, against a bare polars read and a CSR matrix of the raw ids.

Run ``python benchmarks/loader.py [ROWS]``. The file is made up, in a temporary folder (about 0.7 GB at 25 million rows).
Each reading happens in a process of its own, the two kinds in turn; the median of three counts. The bare reading codes no
ids, checks nothing and knows no films; ours does all of that and reads ``movies.csv`` too.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

USERS, ITEMS, HIGHEST_ID = 162_541, 62_423, 209_171  # as in MovieLens 25M
REPEATS = 3
SLOWDOWN_ALLOWED, GIGABYTES_ALLOWED = 2.0, 3.0
_USERS_AT_ONCE = 2_000


def run(rows: int = 25_000_000) -> list[dict[str, Any]]:
    """Two results: the time of reading, and its peak memory."""
    from rich.console import Console
    from rich.progress import Progress

    with (
        tempfile.TemporaryDirectory() as place,
        Progress(console=Console(stderr=True), transient=True) as progress,
    ):
        folder = Path(place)
        task = progress.add_task("writing the file", total=rows)
        write_films(folder / "movies.csv")
        for written in write_ratings(folder / "ratings.csv", rows):
            progress.update(task, completed=written)
        task = progress.add_task("reading it", total=2 * REPEATS)
        measured: dict[str, list[dict[str, float]]] = {"bare": [], "ours": []}
        for _ in range(REPEATS):
            for kind, results in measured.items():
                results.append(_in_own_process(kind, folder))
                progress.advance(task)
    return _results(rows, measured)


def write_ratings(path: Path, rows: int) -> Any:
    """Sorted by user, then film, as the real file is; yields the number of rows so far. Memory stays small."""
    import polars as pl

    rng = np.random.default_rng(25)
    activity = rng.lognormal(0.0, 1.2, USERS)
    counts = np.clip(activity / activity.sum() * rows * 1.05, 1, ITEMS // 8).astype(np.int64)
    films = film_ids()
    written, users = 0, iter(np.array_split(np.arange(USERS), -(-USERS // _USERS_AT_ONCE)))
    with path.open("wb") as file:
        file.write(b"userId,movieId,rating,timestamp\n")
        while written < rows:
            block = next(users, None)
            if block is None:
                raise RuntimeError(
                    f"only {written:,} of {rows:,} rows could be drawn; allow more ratings for each user."
                )
            user = np.repeat(block, 2 * counts[block])
            film = (ITEMS * rng.random(user.size) ** 2.5).astype(np.int64)  # a long tail
            pairs = np.unique(user * ITEMS + film)
            order = np.lexsort((rng.random(pairs.size), pairs // ITEMS))
            rank = np.arange(pairs.size) - np.searchsorted(pairs // ITEMS, pairs // ITEMS)
            pairs = np.sort(pairs[order[rank < counts[pairs // ITEMS]]])[: rows - written]
            frame = pl.DataFrame(
                {
                    "user": (pairs // ITEMS + 1).astype(np.int32),
                    "film": films[pairs % ITEMS],
                    "rating": rng.integers(1, 11, pairs.size) / 2,
                    "time": rng.integers(789_652_009, 1_574_327_703, pairs.size),
                }
            )
            frame.write_csv(file, include_header=False, float_precision=1)
            written += pairs.size
            yield written


def write_films(path: Path) -> None:
    lines = [f'{film},"Film, The {film} (1999)",Comedy|Drama' for film in film_ids().tolist()]
    path.write_text("movieId,title,genres\n" + "\n".join(lines) + "\n", encoding="utf-8")


def film_ids() -> Any:
    return np.sort(np.random.default_rng(7).choice(HIGHEST_ID, ITEMS, replace=False) + 1).astype(np.int32)


def read_bare(folder: Path) -> int:
    import polars as pl
    from scipy.sparse import coo_array

    frame = pl.read_csv(folder / "ratings.csv")
    raw = frame["rating"].to_numpy(), (frame["userId"].to_numpy(), frame["movieId"].to_numpy())
    return int(coo_array(raw).tocsr().nnz)


def read_ours(folder: Path) -> int:
    from tacit.data import read_movielens

    return int(read_movielens(folder).csr().nnz)


def _worker(kind: str, folder: Path) -> None:
    import polars  # noqa: F401  the time of imports is not what is measured
    import scipy.sparse  # noqa: F401

    import tacit.data.readers.movielens  # noqa: F401

    start = time.perf_counter()
    entries = read_bare(folder) if kind == "bare" else read_ours(folder)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "gigabytes": _peak_gigabytes(), "entries": entries}))


def _peak_gigabytes() -> float:
    """Of this process alone: ru_maxrss would also remember the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024**2
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**3  # macOS counts bytes


def _in_own_process(kind: str, folder: Path) -> dict[str, float]:
    source = str(Path(__file__).resolve().parent.parent / "src")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, __file__, "--worker", kind, str(folder)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def _results(rows: int, measured: dict[str, list[dict[str, float]]]) -> list[dict[str, Any]]:
    if len({result["entries"] for results in measured.values() for result in results}) != 1:
        raise RuntimeError("the two readings do not hold the same number of ratings.")
    ours, bare = ([result["seconds"] for result in measured[kind]] for kind in ("ours", "bare"))
    peak, bare_peak = (max(result["gigabytes"] for result in measured[kind]) for kind in ("ours", "bare"))
    spread = f"ours {min(ours):.2f} to {max(ours):.2f}, theirs {min(bare):.2f} to {max(bare):.2f}"
    return [
        {
            "name": f"read {rows:,} ratings, MovieLens layout",
            "peer": "polars.read_csv and scipy CSR of raw ids",
            "ours": round(statistics.median(ours), 3),
            "theirs": round(statistics.median(bare), 3),
            "ratio": round(statistics.median(bare) / statistics.median(ours), 3),
            "target": 1 / SLOWDOWN_ALLOWED,
            "note": f"seconds, median of {REPEATS} ({spread}); ratio = theirs / ours, higher is better",
        },
        {
            "name": f"peak memory, {rows:,} ratings",
            "peer": f"the limit of {GIGABYTES_ALLOWED:g} GB",
            "ours": round(peak, 3),
            "theirs": GIGABYTES_ALLOWED,
            "ratio": round(GIGABYTES_ALLOWED / peak, 3),
            "target": 1.0,
            "note": f"GiB, highest of {REPEATS}; the bare reading took {bare_peak:.2f}; ratio = limit / ours, higher is better",
        },
    ]


def main() -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "peer", "ours", "theirs", "ratio", "target", "note")
    for result in run(int(sys.argv[1])) if len(sys.argv) > 1 else run():
        table.add_row(*(str(value) for value in result.values()))
    Console().print(table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        _worker(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
