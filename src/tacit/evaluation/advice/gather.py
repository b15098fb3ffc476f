"""Puts figures together for `measured.json`, from what `tacit evaluate --json` wrote (one file for each system) or from a report:

python -m tacit.evaluation.advice.gather REPORT.json --out measured.json
python -m tacit.evaluation.advice.gather RESULT.json ... --command "tacit evaluate SYSTEM" --out measured.json
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit.errors import InvalidData
from tacit.evaluation import registry
from tacit.evaluation.advice.measured import Measured, curves_of
from tacit.evaluation.curve import Curve
from tacit.evaluation.result import Result


def gathered(contents: Iterable[Mapping[str, Any]], command: str | None = None, date: str | None = None) -> Measured:
    """Of results (or reports) of one seed. Versions of all are put together; a report knows its command and date by itself."""
    curves: list[Curve] = []
    versions: dict[str, str] = {}
    seeds = set()
    for content in contents:
        is_report = "curves" in content
        curves += curves_of(content) if is_report else registry.curves(Result.from_json(content))
        versions |= content["versions"]
        seeds.add(content["seed"])
        if is_report:
            command, date = command or content["command"], date or content["made"][: len("2026-11-18")]
    if len(seeds) != 1:
        raise InvalidData("figures are put together from results of one seed; these have several, or there are none.")
    if command is None:
        raise InvalidData("results do not know which command made them: say it.")
    today = datetime.now(UTC).date().isoformat()
    return Measured(command, date or today, seeds.pop(), dict(sorted(versions.items())), tuple(curves))


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tacit.evaluation.advice.gather", description=__doc__)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--command", help="the command that made them; a report knows")
    parser.add_argument("--date", help="by default a report's, or today")
    parser.add_argument("--out", required=True, type=Path)
    told = parser.parse_args(words)
    made = gathered((json.loads(one.read_text(encoding="utf-8")) for one in told.results), told.command, told.date)
    told.out.write_text(json.dumps(made.to_json(), indent=1, allow_nan=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
