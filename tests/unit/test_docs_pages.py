"""What the site promises of itself: links that lead somewhere, words spelt right, one name for one thing, all of the API."""

import ast
import importlib
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import tacit
from docs import glossary_links, spelling
from docs.pictures.draw import PICTURES

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
BESIDE = [ROOT / name for name in spelling.OTHERS]
LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FACADES = ("multi_selection", "private_selection", "private_slates", "federated_prototypes", "cross_domain")
ROOMS = (
    *(
        "guarantees",
        "mechanisms",
        "ledger",
        "audit",
        "device",
        "entity",
        "curator",
        "server",
        "shuffler",
        "data",
        "systems",
        "evaluation",
    ),
    *(f"messages.{name}" for name in FACADES),
    "curator.training",
    "curator.private_training",
    "models.secure_sum",
)
BY_MODULE = ("engines", "messages", "models", "models.cross_domain", "models.dpp", "service")  # too many for one list
# Words that mean something which has another name here. Only those that mean nothing else; the rest is for a reader's eye.
NOT_OURS = {
    r"privacy levels?": "guarantee",
    r"privacy parameters?": "epsilon, delta",
    r"adjacent (?:inputs?|data ?sets?|databases?|profiles?)": "neighbours",
    r"centroids?": "prototype, centre",
    r"silos?": "entity",
    r"recs": "slate",
    r"noiser": "mechanism",
    r"surrogate models?": "local model",
    r"customers?": "user",
    r"accountants?": "ledger, accounting",
    r"random[ _]states?": "noise, rng",
    r"domain [AB]": "source, target",
}
OTHERS_WORDS = {"glossary.md", "peers.md"}  # they tell what things are called elsewhere


def prose(text: str) -> str:
    return spelling.NO_PROSE.sub(" ", text)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site both make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    heads = [re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", head) for head in re.findall(r"^#+ (.*)$", text, flags=re.M)]
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def links(page: Path) -> list[str]:
    text = re.sub(r"^ *```.*?^ *```|`[^`\n]+`", "", page.read_text(), flags=re.M | re.S)
    return [first or second for first, second in LINK.findall(text)]


def broken(page: Path) -> list[str]:
    """Links of a page that lead to no file, to no heading, or to no proper address. Nothing is fetched."""
    found = []
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            good = parts.scheme == "https" and re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc) is not None
        else:
            target = (page.parent / parts.path).resolve() if parts.path else page
            good = target.exists() and (not parts.fragment or parts.fragment in anchors(target))
        found += [] if good else [link]
    return found


@pytest.mark.parametrize("page", BESIDE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_beside_the_site_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


@pytest.mark.parametrize("page", DOCS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_to_other_places_are_proper_addresses(page: Path) -> None:
    assert [link for link in broken(page) if "//" in link] == []


def test_that_check_sees_a_broken_link(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A heading, with `code`\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](gone.md) [b](there.md#a-heading-with-code) [c](there.md#none) [d](http://x) ![e](no.png) `[f](g)`\n"
    )
    assert broken(page) == ["gone.md", "there.md#none", "http://x", "no.png"]


@pytest.mark.parametrize("page", [*DOCS, *BESIDE], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_words_are_spelt_right(page: Path) -> None:
    assert spelling.misspelt(page.read_text()) == []


def test_a_misspelling_is_caught_and_so_is_an_american_one() -> None:
    page = "# Garantees\n\nThe neighbors of a [prototipe](prototypes.md) are colored.\n\n```\nnot prosse\n```\n"
    assert spelling.misspelt(page) == [(1, "Garantees"), (3, "neighbors"), (3, "prototipe"), (3, "colored")]
    assert spelling.misspelt("The neighbours of a randomised prototype are coloured, `kode` and all.\n") == []


def test_the_list_of_our_own_words_is_sorted_and_has_no_word_too_many() -> None:
    own = spelling.OWN.read_text().split("\n")[:-1]
    assert own == sorted(set(own), key=lambda word: (word.lower(), word))
    used = {word for page in [*DOCS, *BESIDE] for _, word in spelling.words(page.read_text())}
    assert [word for word in own if word not in used | {one.lower() for one in used}] == []


def test_every_term_that_pages_link_to_is_in_the_glossary() -> None:
    heads = re.findall(r"^### (.*)$", (ROOT / "docs" / "glossary.md").read_text(), flags=re.M)
    assert sorted(glossary_links.TERMS) == sorted(head.replace(" ", "-") for head in heads)


def test_the_first_use_of_a_term_is_linked_and_only_in_prose() -> None:
    text = "# A slate\n\nSay `slate` to a [slate](x.md): slates, and a slate.\n\n```\nslate\n```\n| slate |\nA local model."
    assert glossary_links.linked(text, "glossary.md") == text.replace(
        ": slates,", ": [slates](glossary.md#slate){.term},"
    ).replace("local model.", "[local model](glossary.md#local-model){.term}.")


def test_main_pages_use_most_terms() -> None:
    main = [page for page in DOCS if glossary_links.MAIN.fullmatch(page.relative_to(ROOT / "docs").as_posix())]
    assert len(main) >= 12
    linked = "".join(glossary_links.linked(page.read_text(), "glossary.md") for page in main)
    assert (
        sum(f"glossary.md#{term})" in linked for term in glossary_links.TERMS) >= 38
    )  # the others stand in links of their own


@pytest.mark.parametrize(
    "page", [p for p in [*DOCS, *BESIDE] if p.name not in OTHERS_WORDS], ids=lambda p: p.relative_to(ROOT).as_posix()
)
def test_one_thing_has_one_name_in_the_pages(page: Path) -> None:
    assert {
        ours: found
        for word, ours in NOT_OURS.items()
        if (found := re.search(rf"(?i)\b{word}\b", prose(page.read_text())))
    } == {}


def test_one_thing_has_one_name_in_public_docstrings() -> None:
    wrong = []
    for path in (ROOT / "src" / "tacit").rglob("*.py"):
        nodes = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        ]
        text = "\n".join(re.sub(r"``.*?``", "", ast.get_docstring(node) or "") for node in nodes)
        wrong += [f"{path.name}: {ours}" for word, ours in NOT_OURS.items() if re.search(rf"(?i)\b{word}\b", text)]
    assert wrong == []


def test_that_check_sees_another_name() -> None:
    assert [ours for word, ours in NOT_OURS.items() if re.search(rf"(?i)\b{word}\b", "A Centroid of customers")] == [
        "prototype, centre",
        "user",
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_the_api_has_every_public_name_of_a_room(room: str) -> None:
    page = (ROOT / "docs" / "api" / f"{room.split('.')[0]}.md").read_text()
    listed = re.findall(rf"^::: tacit\.{re.escape(room)}\.(\w+)$", page, flags=re.M)
    assert sorted(listed) == sorted(importlib.import_module(f"tacit.{room}").__all__)


def test_the_api_begins_with_what_tacit_itself_has() -> None:
    listed = re.findall(r"^::: tacit\.(\w+)$", (ROOT / "docs" / "api.md").read_text(), flags=re.M)
    rooms = {
        name for name in tacit.__all__ if any((ROOT / "src" / "tacit" / room).exists() for room in (name, f"{name}.py"))
    }
    assert set(listed) == set(tacit.__all__) - rooms - {"__version__"}


def test_every_room_with_public_names_has_a_page_of_the_api() -> None:
    inner = [path for path in (ROOT / "src" / "tacit").glob("*/**/__init__.py") if "__all__" in path.read_text()]
    rooms = {".".join(path.parent.relative_to(ROOT / "src" / "tacit").parts) for path in inner}
    assert {room for room in rooms if not room.startswith("evaluation.")} <= {*ROOMS, *BY_MODULE}


@pytest.mark.parametrize("room", BY_MODULE)
def test_a_page_by_modules_has_the_module_of_every_name(room: str) -> None:
    pages = "".join((ROOT / "docs" / "api" / f"{page}.md").read_text() for page in ("messages", "models", "systems"))
    listed = re.findall(r"^::: ([\w.]+)$", pages, flags=re.M)
    for name in importlib.import_module(f"tacit.{room}").__all__:
        found = getattr(importlib.import_module(f"tacit.{room}"), name)
        place = f"{found.__module__}." if hasattr(found, "__module__") else f"{found.__name__}."
        assert any(f"{one}.".startswith(place) for one in listed), name


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_tacit_works_out(name: str) -> None:
    assert (ROOT / "docs" / "pictures" / name).read_text() == PICTURES[name]()


def test_every_picture_is_shown_somewhere_and_needs_nothing_from_elsewhere() -> None:
    pages = "".join(page.read_text() for page in DOCS)
    for picture in (ROOT / "docs" / "pictures").glob("*.svg"):
        assert f"pictures/{picture.name})" in pages
        text = picture.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|<script|@import|url\(", text)
        assert "prefers-color-scheme: dark" in text
