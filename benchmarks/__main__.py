"""Runs the benchmarks, prints a table of ratios, writes benchmarks/results.json."""

import argparse
import importlib
import json
import os
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.timing import LOWER

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # ours and theirs on one thread; numpy is loaded later, by the parts
PARTS = (
    "noise", "selection", "ledger", "multi_selection", "private_selection", "private_slates", "federated_prototypes",
    "cross_domain", "loader", "service"
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="run one part")
    only = parser.parse_args().only
    console = Console() if Console().is_terminal else Console(width=140)
    rows = []
    for part in [only] if only else PARTS:
        with console.status(f"benchmarking {part} ..."):
            rows += importlib.import_module(f"benchmarks.{part}").run()
    title = "ratio = theirs / ours unless the note says otherwise"
    table = Table("work", "peer", "ours", "theirs", "ratio", "target", "met", title=title)
    for row in rows:
        target = "" if row["target"] is None else f"{row['target']:g}"
        met = "" if row["target"] is None else "yes" if _met(row) else "NO"
        figures = [f"{row[key]:.3g}" for key in ("ours", "theirs", "ratio")]
        table.add_row(row["name"], row["peer"], *figures, target, met)
    console.print(table)
    path = Path(__file__).with_name("results.json")
    path.write_text(json.dumps(rows, indent=2) + "\n")
    console.print("Written to benchmarks/results.json, with notes and spreads.")


def _met(row: dict[str, Any]) -> bool:
    return bool(row["ratio"] <= row["target"] if LOWER in row["note"] else row["ratio"] >= row["target"])


if __name__ == "__main__":
    main()
