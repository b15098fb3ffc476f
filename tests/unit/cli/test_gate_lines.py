"""What was taken, what held-out cells say and what the controls say are three things, told apart."""

import math
from typing import Any

import numpy as np
import pytest

from tacit.cli.entity import gate_lines
from tacit.entity.fit import BlendedFit, BlendReport, BlendSettings, FitKind, GateReport, LocalFit
from tacit.models.moments import item_ridge


def blended(report: BlendReport | None) -> BlendedFit:
    return BlendedFit(item_ridge(np.eye(3), 1.0), None, BlendSettings(), report=report)


def local(report: GateReport) -> LocalFit:
    return LocalFit(report.chosen, np.ones((1, 1)), np.ones((1, 1)), np.ones(1), 5.0, report)


def test_a_blend_that_was_kept_although_the_controls_do_as_well_is_told_as_kept() -> None:
    means = {"local": 0.2109, "blend": 0.2077, "data-free": 0.2109, "constant": 0.2098}
    private, taken, held_out, controls = gate_lines(blended(BlendReport(means, -0.0032, 0.004, 120)))
    assert "private" in private
    assert taken == "  taken: the blend of your own rows with the shared model"
    assert held_out.endswith("120 users): own rows 0.2109, blend 0.2077; blend less own rows -0.0032 ± 0.0040")
    assert controls.endswith(
        "noise without data 0.2109, constant 0.2098; not both beaten by the blend: the release shows no effect here"
    )


def test_own_rows_that_were_taken_although_the_release_tells_something_are_told_as_taken() -> None:
    means = {"local": 0.3, "blend": 0.25, "data-free": 0.2, "constant": 0.2}
    _, taken, _, controls = gate_lines(blended(BlendReport(means, -0.05, 0.01, 9)))
    assert taken == "  taken: your own rows alone"
    assert controls.endswith("; beaten by the blend")


def test_a_release_that_says_itself_that_it_tells_nothing_was_not_tested() -> None:
    _, taken, held_out = gate_lines(blended(None))
    assert taken == "  taken: your own rows alone"
    assert "no information at this budget" in held_out


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        (FitKind.LOCAL, "your own rows alone"),
        (FitKind.BLEND, "the blend of your own rows"),
        (FitKind.GLOBAL, "the shared factors"),
    ],
)
@pytest.mark.parametrize("informative", [True, False])
def test_prototypes_are_told_in_the_same_way(chosen: FitKind, told: str, informative: bool) -> None:
    scores = {"local": 1.0, "blend": 1.1, "global": 1.2, "data-free": 1.3 if informative else 1.15, "constant": 1.4}
    _, taken, held_out, controls = gate_lines(local(GateReport("RMSE", scores, chosen, 1)))
    assert taken.startswith(f"  taken: {told}")
    assert (
        held_out == "  held out (RMSE, lower is better; 1 cell): own rows 1.0000, blend 1.1000, shared factors 1.2000"
    )
    assert ("not both" in controls) is not informative
    assert "shared factors" in controls


@pytest.mark.parametrize("fit", [
    blended(BlendReport(dict.fromkeys(("local", "blend", "data-free", "constant"), math.nan), math.nan, math.nan, 0)),
    local(GateReport("RMSE", dict.fromkeys(("local", "blend", "global", "data-free", "constant"), math.nan), FitKind.GLOBAL, 0)),
])  # fmt: skip
def test_where_nothing_could_be_held_out_no_figures_are_told(fit: Any) -> None:
    _, taken, held_out = gate_lines(fit)
    assert "shared" in taken
    assert "nan" not in held_out
    assert "nothing could be" in held_out
