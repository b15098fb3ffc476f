"""The pages about guarantees run from top to bottom, and have their headings."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PROOFS = ["composition", "conversion", "shuffle-amplification"]
HEADINGS = ["Protects", "Does not protect", "Why it holds", "Parameters", "Known limits", "Example", "Reference"]


@pytest.mark.parametrize("page", ["guarantees.md", *(f"proofs/{name}.md" for name in PROOFS)])
def test_examples_run(page, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("name", PROOFS)
def test_proof_pages_have_the_same_headings(name):
    assert (
        re.findall(r"^## (.*)$", (DOCS / "proofs" / f"{name}.md").read_text(encoding="utf-8"), re.MULTILINE) == HEADINGS
    )
