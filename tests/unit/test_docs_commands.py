"""Every `tacit ...` that a page shows can be typed: the command and its options exist, and it has all that it needs."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from tacit.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "delegate/README.md")),
]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", flags=re.M | re.S)
NO_SHELL = {"python", "py", "json", "toml", "text"}
# A prompt and variables of the environment may stand before it.
LINE = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(tacit .*)$", flags=re.M)
INLINE = re.compile(r"(?<!`)`(tacit [a-z][^`\n]*)`(?!`)")
COMMENT = re.compile(r"\s{2,}\S.*$")  # what stands apart, after two spaces, explains the command
LACKS = re.compile(r"Missing (argument|option)|requires an argument")
ABSENT = re.compile(r"file '([^']+)' does not exist")
PLACEHOLDER = re.compile(r"\.\.\.|\||[A-Z]{4,}")  # a form of a command, not one to be typed


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shown(page: Path) -> list[str]:
    """The commands in the blocks of a page: what a reader copies."""
    blocks = [block for kind, block in FENCE.findall(page.read_text()) if kind not in NO_SHELL]
    return [line for block in blocks for line in LINE.findall(block)]


def mentioned(page: Path) -> list[str]:
    """The commands inside its sentences, which may lack what everybody knows to add."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    return [one for one in INLINE.findall(text) if not PLACEHOLDER.search(one)]


def complaint(line: str) -> str | None:
    """What is wrong with a command, without running it; None if it can be typed."""
    words = shlex.split(COMMENT.sub("", line), comments=True)[1:]
    for stop in (">", "|", "&&", "2>&1"):
        words = words[: words.index(stop)] if stop in words else words
    command, name = typer.main.get_command(app), "tacit"
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return f"{name} has no command {words[0]}"
        name, command, words = words[0], command.commands[words[0]], words[1:]
    while True:
        try:
            command.make_context(name, list(words))
        except (typer.Exit, typer.Abort):  # --help and --version say their part and stop
            return None
        except typer.TyperException as wrong:
            if missing := ABSENT.search(wrong.format_message()):
                Path(missing[1]).touch()  # a reader has it
                continue
            return wrong.format_message()
        return None


@pytest.mark.parametrize("page", [p for p in PAGES if shown(p)], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_command_in_a_block_can_be_typed(page: Path) -> None:
    assert {line: wrong for line in shown(page) if (wrong := complaint(line))} == {}


@pytest.mark.parametrize("page", [p for p in PAGES if mentioned(p)], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_command_in_a_sentence_exists(page: Path) -> None:
    complaints = {line: wrong for line in mentioned(page) if (wrong := complaint(line))}
    assert {line: wrong for line, wrong in complaints.items() if not LACKS.search(wrong)} == {}


def test_there_are_commands_to_check() -> None:
    assert sum(len(shown(page)) for page in PAGES) > 80
    assert sum(len(mentioned(page)) for page in PAGES) > 80


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("tacit recomend", "no command"),
        ("tacit audit --jsn report.json", "No such option"),
        ("tacit evaluate", "Missing argument"),
        ("tacit ledger show ledger.db ledger.db", "unexpected extra"),
        ("tacit evaluate multi-selection --trials many", "valid integer"),
    ],
)
def test_that_check_sees_what_is_wrong(line: str, wrong: str) -> None:
    assert wrong in (complaint(line) or "nothing")


def test_commands_are_found_with_prompts_comments_and_variables(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```\n$ tacit demo        # all of it\nTACIT_DATA=x tacit data list\n```\nSay `tacit audit top-k`.\n"
    )
    assert [complaint(line) for line in shown(page)] == [None, None]
    assert mentioned(page) == ["tacit audit top-k"]
