"""The README says things in the order in which a reader asks, and its results are those that tacit ships."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tacit.evaluation import registry
from tacit.evaluation.advice.measured import measured

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


@pytest.fixture(scope="module")
def writing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_results", ROOT / "docs" / "write_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_results_is_what_the_command_writes(writing: ModuleType) -> None:
    text = README.read_text()
    assert writing.written(text) == text
    lines = text[text.index("<!-- results") : text.index("<!-- end of results")].splitlines()
    assert [system for system in registry.SYSTEMS if not any(line.startswith(f"| {system} |") for line in lines)] == []


def test_a_changed_figure_would_be_noticed(writing: ModuleType) -> None:
    text = README.read_text()
    found = re.search(r"\*\*([\d.]+)", text[text.index("<!-- results") :])
    assert found is not None
    assert writing.written(text.replace(found[0], "**0.123456")) == text


def test_sections_come_in_the_order_in_which_a_reader_asks() -> None:
    headings = re.findall(r"^## (.+)$", README.read_text(), flags=re.M)
    assert headings == [
        "Five systems, one notion of a guarantee",
        "What is *not* protected",
        "Install",
        "Service, delegate, command line",
        "Results",
        "Deviations from the papers",
        "Development",
    ]


def test_the_first_example_has_ten_lines_and_prints_its_guarantee() -> None:
    block = re.search(r"^```python\n(.*?)^```\n```\n(.*?)^```", README.read_text(), flags=re.M | re.S)
    assert block is not None
    said = [line for line in block[1].splitlines() if line.strip()]
    assert len(said) <= 11
    assert "print(signal.guarantee)" in said
    assert "epsilon = 10 per unit of L1 distance" in block[2]


def test_measured_figures_say_how_they_came_about() -> None:
    figures = measured()
    assert figures.command.startswith("tacit ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", figures.date)
    assert {curve.system for curve in figures.curves} == set(registry.SYSTEMS)
    assert all(curve.users and curve.items for curve in figures.curves if "simulated" not in curve.world)
