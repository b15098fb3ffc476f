"""Runs the benchmarks, prints a table of ratios, writes benchmarks/results.json."""

import argparse
import importlib
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

PARTS = ("noise", "selection", "loader")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="run one part")
    only = parser.parse_args().only
    console = Console()
    rows = []
    for part in [only] if only else PARTS:
        with console.status(f"benchmarking {part} ..."):
            rows += importlib.import_module(f"benchmarks.{part}").run()
    title = "ratio = theirs / ours unless the note says otherwise"
    table = Table("work", "peer", "ours", "theirs", "ratio", "target", title=title)
    for row in rows:
        target = "" if row["target"] is None else f"{row['target']:g}"
        table.add_row(
            row["name"], row["peer"], f"{row['ours']:.3g}", f"{row['theirs']:.3g}", f"{row['ratio']:.3g}", target
        )
    console.print(table)
    path = Path(__file__).with_name("results.json")
    path.write_text(json.dumps(rows, indent=2) + "\n")
    console.print(
        f"Written to {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}, with notes and spreads."
    )


if __name__ == "__main__":
    main()
