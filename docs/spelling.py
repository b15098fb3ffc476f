"""Looks for misspelt words in the pages: python -m docs.spelling [FILE ...]. British; words of our own are in docs/words.txt."""

import re
import sys
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path

from spellchecker import SpellChecker

ROOT = Path(__file__).parents[1]
OWN = ROOT / "docs" / "words.txt"
OTHERS = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "delegate/README.md")
# What is no prose: front matter, code, addresses, tags, targets of links, blocks of the API, and references with their authors.
NO_PROSE = re.compile(
    r"\A---\n.*?\n---\n|^ *```.*?^ *```|``.+?``|`[^`\n]+`|<!--.*?-->|<[^>\n]+>|\]\([^)]*\)|\w+://\S+|^:::[^\n]*$"
    r"|^## Reference$.*?(?=^## |\Z)",
    re.M | re.S,
)
# Runs of letters that stand by themselves; what has a digit, an underscore or a dot inside is a name, not a word.
WORD = re.compile(r"(?<![\w.@/])[A-Za-zÀ-ÿ]+(?:['’][a-z]+)?(?![\w@/]|\.\w)")
# Right in British English too, though an American word stands for another British one.
BRITISH_TOO = frozenset(
    {"biased", "check", "checks", "disk", "disks", "license", "meter", "practice", "program", "programs"}
)


def words(text: str) -> Iterable[tuple[int, str]]:
    """Every word of the prose of a page with the number of its line."""
    prose = NO_PROSE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for number, row in enumerate(prose.split("\n"), 1):
        for found in WORD.finditer(row):
            yield number, found[0].replace("’", "'").removesuffix("'s").removesuffix("'")


def misspelt(text: str) -> list[tuple[int, str]]:
    """The words of a page that no dictionary and no list of ours has, and those that are spelt the American way."""
    return [(number, word) for number, word in words(text) if not _right(word)]


@cache
def _right(word: str) -> bool:
    plain = word.lower()
    if len(word) == 1 or word.isupper() or {word, plain} & _own():  # single letters, and names in capitals such as PLD
        return True
    american, british = _spellings()
    return plain not in american and bool(_dictionary().known([plain, british.get(plain, plain), plain.split("'")[0]]))


@cache
def _dictionary() -> SpellChecker:
    return SpellChecker(language="en")


@cache
def _own() -> frozenset[str]:
    """Words of our own, as they are written there; those without capitals may begin a sentence."""
    return frozenset(OWN.read_text().split())


@cache
def _spellings() -> tuple[frozenset[str], dict[str, str]]:
    """American spellings, and British ones with the American one that the dictionary may have instead; from codespell's list."""
    rows = (files("codespell_lib") / "data" / "dictionary_en-GB_to_en-US.txt").read_text().split("\n")
    british = {one: other.split(",")[0].strip() for one, other in (row.split("->") for row in rows if "->" in row)}
    return frozenset(british.values()) - british.keys() - BRITISH_TOO, british


def pages() -> list[Path]:
    return [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in OTHERS)]


def main(names: list[str]) -> int:
    found = [
        f"{path}:{number}: {word}"
        for path in [Path(name) for name in names] or pages()
        for number, word in misspelt(path.read_text())
    ]
    if found:
        sys.stderr.write("\n".join([*found, f"{len(found)} words are misspelt, or belong into docs/words.txt.\n"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
