"""Writes the measured curves that tacit ships, and the table of results in the README, from the JSON twin of a report.

tacit report --json report.json && python docs/write_results.py report.json
"""

import json
import re
import sys
from pathlib import Path

from tacit.evaluation.advice.measured import FILE, Measured

from tacit.evaluation.report.markdown import results_table

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"(<!-- results: written by `make results` -->\n).*?(<!-- end of results -->)", flags=re.S)


def block(measured: Measured) -> str:
    """What stands between the marks: the table, and how it was made."""
    versions = ", ".join(
        f"{name} {version}" for name, version in measured.versions.items() if name in ("tacit", "numpy")
    )
    how = f"{measured.date}, `{measured.command}`, seed {measured.seed}, {versions}."
    return f"\n{results_table(measured.curves)}\n{how}\n\n"


if __name__ == "__main__":
    FILE.write_text(
        json.dumps(Measured.of_report(json.loads(Path(sys.argv[1]).read_text())).to_json(), indent=1) + "\n"
    )
    text = README.read_text()
    README.write_text(BLOCK.sub(lambda found: found[1] + block(Measured.load(FILE)) + found[2], text))
