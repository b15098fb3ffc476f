"""The house rules that no linter knows."""

import ast
import inspect
import re
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tacit.errors
import tacit.mechanisms
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_PROFILE, Release, pure
from tacit.mechanisms.noise import SYSTEM_NOISE, unprotected
from tacit.mechanisms.slates import PreparedSlates
from tacit.messages import LookAlikes, Store, cross_domain, multi_selection, private_selection, private_slates
from tests.releases import release_of
from tools.house import BESIDE, Module, When, find_cycles, find_imports, read_modules

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tacit"
MECHANISMS = [
    value for value in vars(tacit.mechanisms).values() if inspect.isclass(value) and hasattr(value, "release")
]
HEADINGS = ["Protects", "Does not protect", "Why it holds", "Parameters", "Known limits", "Example", "Reference"]


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout, so there is no list of tracked files")
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


@cache
def names_in(path: Path) -> frozenset[str]:
    """Everything that a file imports or reaches by dots, with the names of modules written out."""
    tree = ast.parse(path.read_text())
    aliases: dict[str, str] = {}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {
                (one.asname or one.name.split(".")[0]): (one.name if one.asname else one.name.split(".")[0])
                for one in node.names
            }
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            aliases |= {(one.asname or one.name): f"{node.module}.{one.name}" for one in node.names}
            found |= {f"{node.module}.{one.name}" for one in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            first, *rest = ast.unparse(node).split(".")
            if first in aliases:
                found.add(".".join([aliases[first], *rest]))
    return frozenset(found)


def calls_of(name: str, path: Path) -> int:
    nodes = ast.walk(ast.parse(path.read_text()))
    called = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
    return sum(call == name or call.endswith(f".{name}") for call in called)


def test_there_are_mechanisms_to_check() -> None:
    assert len(MECHANISMS) >= 9


def users_of(*names: str) -> set[str]:
    """The files of src/tacit that import one of these names, or reach it by dots."""
    return {
        path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if not names_in(path).isdisjoint(names)
    }


def files_that_reach(room: str, name: str) -> set[str]:
    """The files of src/tacit that import this name from any module of a room, under whatever name, or reach it by dots."""
    wanted = re.compile(rf"tacit\.{room}\.(.+\.)?{name}")
    return {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if any(wanted.fullmatch(reached) for reached in names_in(path))
    }


def rooms_of(files: set[str]) -> set[str]:
    return {file.split("/")[0] for file in files}


def test_only_mechanisms_make_a_release() -> None:
    assert {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if calls_of("Release", path)} == {
        "guarantees/guarantee.py",
        "mechanisms/noise.py",
    }
    tokens = files_that_reach("(guarantees|mechanisms)", "MECHANISM")  # what a constructor asks for
    assert tokens == {f"mechanisms/{name}.py" for name in ("noise", "slates", "natural_slate", "tempered_slate")}
    callers = files_that_reach("mechanisms", "released")
    assert len(callers) > 10
    assert rooms_of(callers) == {"mechanisms"}


BACK_DOORS = {
    "type.__call__": {"messages/codec.py"},
    "__new__": {"messages/codec.py"},
    "__setstate__": set[str](),
    "__reduce__": set[str](),
    # each of these sets what its own constructor has checked
    "object.__setattr__": {"checks.py", "messages/codec.py", "service/bodies.py"},
}


def back_doors_in(path: Path) -> set[str]:
    """The ways around a constructor that a file uses, and star imports, which would hide one."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Attribute(attr="__new__" | "__setstate__" | "__reduce__" as door):
                found.add(door)
            case ast.Attribute() if ast.unparse(node) in BACK_DOORS:
                found.add(ast.unparse(node))
            case ast.alias(name="Release", asname=str(other)):
                found.add(f"Release as {other}")
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                found.add("*")
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value="MECHANISM"), *_]):
                found.add("MECHANISM")
    return found


def test_no_file_goes_around_a_constructor() -> None:
    users: dict[str, set[str]] = {door: set() for door in BACK_DOORS}
    for path in SOURCE.rglob("*.py"):
        for door in back_doors_in(path):
            users.setdefault(door, set()).add(path.relative_to(SOURCE).as_posix())
    assert users == BACK_DOORS


@pytest.mark.parametrize(
    ("line", "reached"),
    [
        ("from tacit.mechanisms.sums import released as r", "released"),
        ("import tacit.mechanisms.noise as n; n.MECHANISM", "MECHANISM"),
        ("from tacit import guarantees as g; g.guarantee.MECHANISM", "MECHANISM"),
        ("from tacit.messages.private_slates import make as build", "make"),
    ],
)
def test_a_name_is_seen_wherever_it_is_taken_from(tmp_path: Path, line: str, reached: str) -> None:
    (tmp_path / "sly.py").write_text(line)
    names = {name.rsplit(".", 1)[1] for name in names_in(tmp_path / "sly.py") if name.startswith("tacit.")}
    assert reached in names


@pytest.mark.parametrize(
    "line",
    [
        *(
            "type.__call__(Slate, 1)",
            "object.__new__(Slate)",
            "Slate.__new__(Slate)",
            "slate.__setstate__([1])",
            "object.__setattr__(slate, 'k', 1)",
        ),
        *("from tacit.guarantees import *", "from tacit.guarantees import Release as R", "getattr(g, 'MECHANISM')"),
    ],
)
def test_a_way_around_a_constructor_is_seen(tmp_path: Path, line: str) -> None:
    (tmp_path / "sly.py").write_text(line)
    assert back_doors_in(tmp_path / "sly.py")


def test_a_release_cannot_be_made_without_a_mechanism() -> None:
    guarantee = pure(1.0, ONE_PROFILE)
    with pytest.raises(TypeError, match="only a mechanism makes a release"):
        Release(1, guarantee)
    with pytest.raises(TypeError, match="only a mechanism makes a release"):
        replace(release_of(1, guarantee), value=2)
    with pytest.raises(InvalidParameter):
        unprotected(1, guarantee, SYSTEM_NOISE)
    with pytest.raises(TypeError, match="only a mechanism prepares slates"):
        PreparedSlates(3, 1, guarantee, lambda count, _: np.zeros((count, 1), dtype=np.int64))
    with pytest.raises(TypeError, match="cannot be subclassed"):

        class Free(Release[int]):
            def __post_init__(self, maker: object) -> None: ...


RELEASED = (
    *(
        multi_selection.Signal,
        private_selection.Impression,
        private_selection.ShuffledReport,
        private_selection.Engagement,
    ),
    *(private_slates.Slate, private_slates.Popularity, private_slates.Similarity),
    *(cross_domain.TransferModel, cross_domain.Replacements, LookAlikes, Store),
)


def test_only_messages_are_made_of_what_was_released() -> None:
    """Everybody else has ``from_release``, ``from_bytes`` and ``from_json``."""
    callers = files_that_reach("messages", "make")
    assert len(callers) >= 5
    assert rooms_of(callers) == {"messages"}
    for kind in RELEASED:
        makers = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if _constructs(kind, path)}
        assert makers == set(), kind
    nobody = {path.name for path in SOURCE.rglob("*.py") if calls_of("LookAlikes.of_nobody", path)}
    assert nobody == {"look_alikes.py"}  # of public numbers


@pytest.mark.parametrize("kind", RELEASED)
def test_a_message_cannot_be_made_without_a_release(kind: type) -> None:
    with pytest.raises(TypeError, match="cannot be constructed directly"):
        kind()


def test_a_message_takes_nothing_that_only_looks_like_a_release() -> None:
    claim = SimpleNamespace(value=np.array([1]), guarantee=pure(0.0, ONE_PROFILE))
    with pytest.raises(TypeError, match="expected a Release of a mechanism"):
        private_slates.Slate.from_release(claim, np.arange(3), "subset")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "take",
    [
        lambda claim: private_slates.Slate.from_message(claim, np.array([0]), "subset"),
        lambda claim: LookAlikes.joined([claim, claim]),
        lambda claim: Store.with_look_alikes(claim, claim),
    ],
)
def test_nor_anything_that_only_looks_like_a_message(take: Callable[[Any], object]) -> None:
    table = np.zeros((2, 3), dtype=np.float32)
    claim = SimpleNamespace(items=(1, 2), rows=table, sizes=np.ones(2), guarantee=pure(0.0, ONE_PROFILE))
    with pytest.raises(TypeError, match=r"expected .*, not SimpleNamespace"):
        take(claim)


@pytest.mark.parametrize("kind", RELEASED)
def test_a_message_cannot_be_subclassed_elsewhere(kind: type) -> None:
    with pytest.raises(TypeError, match="cannot be subclassed"):
        type(kind)("Free", (kind,), {"__module__": __name__})


def test_a_message_of_a_release_cannot_be_changed() -> None:
    slate = private_slates.Slate.from_release(release_of(np.array([1]), pure(1.0, ONE_PROFILE)), np.arange(3), "subset")
    for changed in ({"items": (2,)}, {"guarantee": pure(0.0, ONE_PROFILE)}):
        with pytest.raises(TypeError, match="cannot be constructed directly"):
            replace(slate, **changed)  # type: ignore[arg-type]


def _constructs(kind: type, path: Path) -> bool:
    return not names_in(path).isdisjoint(
        {f"{kind.__module__}.{kind.__name__}", f"tacit.messages.{kind.__name__}"}
    ) and bool(calls_of(kind.__name__, path))


def test_privacy_code_draws_from_the_operating_system_in_one_place_and_from_nothing_else() -> None:
    for path in [*(SOURCE / "guarantees").rglob("*.py"), *(SOURCE / "mechanisms").rglob("*.py")]:
        names = names_in(path)
        assert not {name for name in names if re.match(r"(numpy\.random|random|secrets|scipy\.stats)(\.|$)", name)}, (
            path
        )
        assert ("os.urandom" in names) == (path.name == "noise.py"), path
        assert not {name for name in names if re.match(r"tacit\.(data|audit|cli)(\.|$)", name)}, (
            path
        )  # also when loaded lazily
        assert calls_of("open", path) == 0, path


def test_that_check_sees_through_other_names(tmp_path: Path) -> None:
    file = tmp_path / "sly.py"
    file.write_text(
        "from numpy import random as r\nimport os as o\nimport tacit\nr.default_rng()\no.urandom(1)\ntacit.data.load('x')\n"
    )
    assert {"numpy.random.default_rng", "os.urandom", "tacit.data.load"} <= names_in(file)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_every_mechanism_has_a_proof_page_with_all_headings(mechanism: type) -> None:
    page = (ROOT / "docs" / "proofs" / f"{mechanism.name}.md").read_text()  # type: ignore[attr-defined]
    missing = [heading for heading in HEADINGS if not re.search(rf"^#+ {heading}\b", page, flags=re.M)]
    assert not missing


def test_every_error_has_a_code_of_its_own_and_a_place_in_the_docs() -> None:
    classes = [c for c in vars(tacit.errors).values() if inspect.isclass(c) and issubclass(c, tacit.errors.TacitError)]
    codes = [c.code for c in classes]
    assert len(set(codes)) == len(codes)
    page = (ROOT / "docs" / "errors.md").read_text()
    assert [c.code for c in classes if c is not tacit.errors.TacitError and f"`{c.code}`" not in page] == []


def test_an_error_shows_its_code_first() -> None:
    assert str(tacit.errors.MixedUnits("no")) == "mixed-units: no"


def test_constraints_are_bare_pins() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)] == []


def test_no_tracked_file_names_a_registry_or_a_place_of_one_machine() -> None:
    hosts = re.compile(r"python" + r"hosted\.|pypi\.org/" + r"simple|registry\.npm" + r"js|deb\.deb" + r"ian")
    places = re.compile(r"(^|[^\w.])/(home|Users|ro" + r"ot|wo" + r"rk)/", flags=re.M)
    for path in tracked():
        text = path.read_text(errors="ignore")
        assert not hosts.search(text), path
        assert not places.search(text), path


def test_every_page_of_the_site_exists() -> None:
    pages = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.M)
    assert len(pages) > 15
    assert [page for page in pages if not (ROOT / "docs" / page).exists()] == []


def test_every_file_that_is_no_program_is_in_the_package() -> None:
    """What a page or an answer is made from has to be there after an installation, too."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["tacit"]
    listed = {file for pattern in told for file in SOURCE.glob(pattern)}
    others = {path for path in tracked() if path.is_relative_to(SOURCE) and path.suffix != ".py"}
    assert others - listed == set()


def cycles_among(modules: dict[str, Module], *counted: When) -> list[list[str]]:
    return find_cycles(find_imports(modules), counted)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Counts imports inside functions and packages that load on demand; in the product's rooms, imports for type checkers too."""
    modules = read_modules()
    product = {name: module for name, module in modules.items() if module.room not in BESIDE}
    assert cycles_among(modules, When.AT_ONCE, When.IN_A_FUNCTION, When.BY_TABLE) == []
    assert cycles_among(product, When.AT_ONCE, When.IN_A_FUNCTION, When.FOR_TYPES) == []


def test_that_check_finds_a_circle_through_a_function() -> None:
    texts = {
        "tacit.a": "import tacit.b",
        "tacit.b": "def late():\n    from tacit.a import x",
        "tacit.c": "import tacit.a",
    }
    modules = {name: Module(name, "room", False, text, ast.parse(text)) for name, text in texts.items()}
    assert cycles_among(modules, When.AT_ONCE) == []
    assert cycles_among(modules, When.AT_ONCE, When.IN_A_FUNCTION) == [["tacit.a", "tacit.b"]]
