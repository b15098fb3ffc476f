"""Writes the README's table of results from the figures that tacit ships; `make results` measures them anew before."""

import re
from pathlib import Path

from tacit.evaluation.advice.measured import Measured, measured
from tacit.evaluation.report.markdown import results_table

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"(<!-- results: written by `make results` -->\n).*?(<!-- end of results -->)", flags=re.S)


def block(figures: Measured) -> str:
    """What stands between the marks: the table, and how its figures came about."""
    versions = ", ".join(f"{name} {figures.versions[name]}" for name in ("tacit", "python", "numpy"))
    how = f"Standard errors; {figures.date}, `{figures.command}`, seed {figures.seed}, {versions}."
    return f"\n{results_table(figures.curves)}\n{how}\n\n"


def written(text: str) -> str:
    """A README with the table of today's figures."""
    return BLOCK.sub(lambda found: found[1] + block(measured()) + found[2], text)


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
