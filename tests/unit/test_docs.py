"""Examples in the documentation are run, in the order of the page; of the tutorial the commands of the shell too."""

import code
import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
README, TUTORIAL = ROOT / "README.md", ROOT / "docs" / "tutorial.md"
PASTED = (README, TUTORIAL)  # what a newcomer pastes at a prompt
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.M | re.S)
# A block of Python, or one of the shell; a comment before the latter may say why it is not run.
STEP = re.compile(
    r"^(?:<!-- not run: (?P<why>[^\n]+) -->\n)?```(?P<kind>python|sh)\n(?P<body>.*?)^```", flags=re.M | re.S
)
HEADINGS = [
    "When to use it",
    "Ten lines",
    "What each party sees",
    "What is protected, and what is not",
    "Choosing epsilon",
    "Going further",
]
HOW_TO = ["multi-selection", "private-selection", "private-slates", "federated-prototypes", "cross-domain"]


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text())


def run(block: str, name: str, names: dict[str, object]) -> None:
    """Runs a block in the session ``names``: as a doctest where it has a prompt, otherwise as it stands."""
    if ">>>" in block:
        test = doctest.DocTestParser().get_doctest(block, names, name, name, 0)
        failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False)
        names.update(test.globs)
        assert failed == 0
    else:
        exec(compile(block, name, "exec"), names)


class Prompt(code.InteractiveConsole):
    """A session of Python where somebody pastes: a blank line ends a compound statement, and nothing else does."""

    def paste(self, block: str, name: str) -> None:
        for line in [*block.splitlines(), ""]:  # Enter, at the end
            self.filename = f"{name}: {line}"
            wants_more = self.push(line)
        assert not wants_more, f"{name} ends in the middle of a statement"

    def showtraceback(self) -> None:
        raise

    def showsyntaxerror(self, filename: str | None = None) -> None:
        raise


@pytest.fixture
def prompt(monkeypatch: pytest.MonkeyPatch) -> Prompt:
    monkeypatch.setattr(sys, "displayhook", lambda value: None)  # the usual one leaves `_` behind for other tests
    return Prompt({"__name__": "__console__"})


@pytest.mark.parametrize(
    ("block", "told"),
    [("try:\n    a = 1\nexcept OSError:\n    a = 2\nassert a\n", SyntaxError),
     ("class A:\n    a = 1\n\n    def b(self):\n        return 2\n", SyntaxError),
     ("print(\n", AssertionError), ("assert 0 > 1\n", AssertionError)],
    ids=["no blank line after", "a blank line inside", "unfinished", "fails"],
)  # fmt: skip
def test_a_prompt_refuses_what_python_would(prompt: Prompt, block: str, told: type[Exception]) -> None:
    with pytest.raises(told):
        prompt.paste(block, "a block")


def test_most_pages_have_an_example() -> None:
    assert sum(bool(blocks(page)) for page in PAGES) >= 12


@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p) and p not in PASTED], ids=lambda p: p.relative_to(ROOT).as_posix()
)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__example__"}
    for number, block in enumerate(blocks(page)):
        if needs := [word for word in ("TACIT_DATA",) if f"needs {word}" in block and word not in os.environ]:
            pytest.skip(f"block {number} needs the environment variable {needs[0]}")
        run(block, f"{page.name}[{number}]", names)


def test_the_readme_can_be_pasted_at_a_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prompt: Prompt) -> None:
    monkeypatch.chdir(tmp_path)
    assert blocks(README)
    for number, block in enumerate(blocks(README)):
        prompt.paste(block, f"README.md[{number}]")


def test_the_tutorial_runs_word_by_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prompt: Prompt) -> None:
    """Pasted into one session of Python, in one folder, as a reader does; commands see the files that Python wrote."""
    monkeypatch.chdir(tmp_path)
    ran = 0
    for number, step in enumerate(STEP.finditer(TUTORIAL.read_text())):
        if step["why"]:
            continue
        if step["kind"] == "python":
            prompt.paste(step["body"], f"tutorial.md[{number}]")
            continue
        for command in step["body"].strip().split("\n"):
            assert command.startswith("tacit "), f"{command!r} is not run by this test: say before the block why not"
            call = [sys.executable, "-m", *shlex.split(command, comments=True)]
            done = subprocess.run(call, capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, f"{command}: {done.stderr}"
            assert done.stdout
            ran += 1
    assert ran >= 7


def test_every_block_of_the_tutorial_is_run_or_says_why_not() -> None:
    text = TUTORIAL.read_text()
    assert len(re.findall(r"^```\w", text, flags=re.M)) == len(STEP.findall(text))


@pytest.mark.parametrize("name", HOW_TO)
def test_every_how_to_begins_alike(name: str) -> None:
    page = re.sub(r"^```.*?^```", "", (ROOT / "docs" / f"{name}.md").read_text(), flags=re.M | re.S)
    assert re.findall(r"^## (.*)$", page, flags=re.M) == HEADINGS
