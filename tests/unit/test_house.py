"""The house rules that no linter knows."""

import ast
import inspect
import re
import subprocess
from pathlib import Path

import pytest

import tacit.errors
import tacit.mechanisms

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


def calls_of(name: str, path: Path) -> int:
    nodes = ast.walk(ast.parse(path.read_text()))
    return sum(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == name for n in nodes)


def test_there_are_mechanisms_to_check() -> None:
    assert len(MECHANISMS) >= 9


def test_only_mechanisms_make_a_release() -> None:
    makers = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if calls_of("Release", path)}
    assert makers == {"mechanisms/drawn.py"}


@pytest.mark.parametrize("room", ["guarantees", "mechanisms"])
def test_privacy_code_never_touches_an_experiment_generator(room: str) -> None:
    for path in (SOURCE / room).rglob("*.py"):
        code = re.sub(r'""".*?"""', "", path.read_text(), flags=re.S)
        code = re.sub(r"#.*", "", code)
        assert not re.search(r"np\.random|numpy\.random|default_rng|^import random|import secrets", code, flags=re.M), (
            path
        )


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
