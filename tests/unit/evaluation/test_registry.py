"""The registry: what each evaluation is given, and that nothing is imported before it is asked for."""

import subprocess
import sys
from typing import Any

import pytest

from tacit.errors import InvalidParameter, UnknownName
from tacit.evaluation import cross_domain, multi_selection, private_selection, registry
from tacit.evaluation.result import Result


def untold(what: str, done: int, total: int) -> None:
    """Nobody listens."""


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any, dict[str, Any]]]:
    """How evaluations were called; they find nothing."""
    calls: list[tuple[Any, Any, dict[str, Any]]] = []

    def evaluate(data: object, effort: object, **options: Any) -> Result:
        calls.append((data, effort, options))
        return Result("some", str(data), (), (), {}, options["seed"])

    for module in (multi_selection, private_selection, cross_domain):
        monkeypatch.setattr(module, "evaluate", evaluate)
    return calls


def test_each_evaluation_is_given_what_it_takes(called: list[tuple[Any, Any, dict[str, Any]]]) -> None:
    registry.evaluate("multi-selection", None, "quick", seed=3, workers=2, progress=untold, trials=5, look_alikes=None)
    registry.evaluate("private-selection", None, "full", seed=4, workers=2)
    registry.evaluate("private-selection", "display")
    assert registry.evaluate("cross-domain", None, "quick", trials=None).seed == 1
    assert called == [
        ("movielens-small", "quick", {"seed": 3, "progress": untold, "trials": 5, "workers": 2}),
        ("all", "full", {"seed": 4, "progress": None}),  # workers are of no use there
        ("display", "default", {"seed": 1, "progress": None}),
        (None, "quick", {"seed": 1, "progress": None}),
    ]


def test_workers_are_as_many_as_processors_unless_said(
    called: list[tuple[Any, Any, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    registry.evaluate("multi-selection")
    assert called[0][2]["workers"] == 7


def test_what_is_not_known_is_refused_with_what_is() -> None:
    with pytest.raises(UnknownName, match=f"known: {', '.join(registry.SYSTEMS)}"):
        registry.evaluate("selection")
    with pytest.raises(UnknownName, match="known: "):
        registry.pictures("selection", Result("selection", "", (), (), {}, 1))
    with pytest.raises(InvalidParameter, match="cross-domain has no option trials; it belongs to multi-selection"):
        registry.evaluate("cross-domain", trials=3)


def test_options_tell_whose_they_are() -> None:
    assert registry.having("workers") == ["multi-selection", "federated-prototypes"]
    assert registry.having("trials") == registry.having("look_alikes") == ["multi-selection"]


def test_every_system_has_pictures_with_names_of_their_own() -> None:
    for system in registry.SYSTEMS:
        names = [picture.name for picture in registry.pictures(system, Result(system, "data", (), (), {}, 1))]
        assert len(names) == len(set(names)) >= 6


def test_the_registry_is_light() -> None:
    heavy = "{'numpy', 'matplotlib', 'tacit.evaluation.result', 'tacit.evaluation.multi_selection'}"
    words = f"import sys, tacit.evaluation.registry; print(sorted({heavy} & set(sys.modules)))"
    without = f"import sys, tacit; print(sorted({heavy} & set(sys.modules)))"
    told = [
        subprocess.run([sys.executable, "-c", one], capture_output=True, text=True, check=True).stdout
        for one in (words, without)
    ]
    assert told[0] == told[1]
