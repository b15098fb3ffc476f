"""Examples in the documentation are run, in the order of the page."""

import doctest
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.M | re.S)


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text())


def test_most_pages_have_an_example() -> None:
    assert sum(bool(blocks(page)) for page in PAGES) >= 12


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__example__"}
    for number, block in enumerate(blocks(page)):
        if needs := [word for word in ("TACIT_DATA",) if f"needs {word}" in block and word not in os.environ]:
            pytest.skip(f"block {number} needs the environment variable {needs[0]}")
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, names, f"{page.name}[{number}]", str(page), 0)
            failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False)
            names.update(test.globs)
            assert failed == 0
        else:
            exec(compile(block, f"{page.name}[{number}]", "exec"), names)
