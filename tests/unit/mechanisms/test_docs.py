"""The pages about mechanisms run: every example is executed, every mechanism has a page and a row in the table."""

import doctest
import re
from pathlib import Path

import pytest

import tacit.mechanisms
from tests.contracts.mechanism import HEADINGS, PROOFS

PAGES = sorted(
    PROOFS / f"{name}.md"
    for name in (
        "randomised-response",
        "top-response",
        "exponential",
        "permute-and-flip",
        "noisy-max",
        "envelope",
        "peeling",
        "private-selection",
        "top-k",
        "sparse-vector",
        "vector-laplace",
        "laplace-sum",
        "bounded-counts",
        "gaussian-sum",
        "sampled-gaussian",
        "tree-prototypes",
        "exact-samplers",
        "natural-slate",
        "natural-subset",
        "feature-slate",
        "tempered-slate",
        "gaussian-kernel",
        "popularity-share",
        "gram-share",
        "private-slates",
        "private-partition",
        "local-swaps",
        "sparse-recovery",
        "grid-prototypes",
        "private-replacement",
        "offset-sums",
        "pair-moments",
        "rating-moments",
        "transfer-moments",
        "published-x-map",
    )
)
OVERVIEW = PROOFS.parent / "mechanisms.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_example_of_a_proof_page_runs_as_printed(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for heading in HEADINGS:
        assert f"\n## {heading}" in text, heading
    example = doctest.DocTestParser().get_doctest(text, {}, page.stem, str(page), 0)
    assert example.examples
    report: list[str] = []
    assert doctest.DocTestRunner().run(example, out=report.append).failed == 0, "".join(report)


def test_the_blocks_of_the_overview_run(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", OVERVIEW.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 6
    for block in blocks:
        exec(compile(block, str(OVERVIEW), "exec"), {})
    assert "epsilon = 1; protects one profile" in capsys.readouterr().out


def test_every_mechanism_has_a_proof_page_and_a_row_in_the_overview() -> None:
    overview = OVERVIEW.read_text(encoding="utf-8")
    for public in tacit.mechanisms.__all__:
        kind = getattr(tacit.mechanisms, public)
        if hasattr(kind, "release") and hasattr(kind, "guarantee"):
            assert (PROOFS / f"{kind.name}.md").is_file()
            assert f"[`{public}`](proofs/{kind.name}.md)" in overview
