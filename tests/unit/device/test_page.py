"""The proof page has the headings of all proof pages."""

import re

from tests.unit.test_house import HEADINGS, ROOT


def test_the_proof_page_has_its_headings_in_order() -> None:
    page = (ROOT / "docs" / "proofs" / "multi-selection.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", page, flags=re.M) == HEADINGS
