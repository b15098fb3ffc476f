"""The table of a result: one layout for every system; what is published stands in brackets, and nothing is taken for a style."""

import io

from rich.console import Console

from tacit.cli.results import print_result
from tacit.evaluation.result import Claim, Result, Row


def shown(*rows: Row, claims: tuple[Claim, ...] = (), width: int = 160) -> str:
    out = io.StringIO()
    print_result(Console(file=out, width=width), Result("a-system", "data", rows, claims, {}, 1, ("a [note]",)))
    return out.getvalue()


def test_each_metric_is_a_column_and_the_published_figure_stands_in_brackets() -> None:
    text = shown(
        Row("ours", {"world": "w", "epsilon": 1.0}, "RMSE", 0.91234, 0.0031, 10),
        Row("ours", {"world": "w", "epsilon": 1.0}, "recall", 12.3),
        Row("paper:ours", {"world": "w", "epsilon": 1.0}, "RMSE", 0.9),
        Row("reference:untried", {"world": "w", "epsilon": 1.0}, "RMSE", 0.5),
    )
    head, line = (row.split() for row in text.splitlines() if "RMSE" in row or "ours" in row)
    assert head == ["method", "epsilon", "RMSE", "recall"]
    assert line == ["ours", "1", "0.9123", "±0.0031", "(0.9000)", "12.300"]
    assert "untried" not in text


def test_more_levels_of_privacy_than_metrics_become_columns_in_the_order_of_their_size() -> None:
    levels = (10.0, 0.5, "inf", 2.0)
    text = shown(
        *(Row("ours", {"epsilon": level}, "CTR lift", 0.1, 0.02) for level in levels),
        Row("public", {}, "CTR lift", 0.05),
    )
    head = next(line for line in text.splitlines() if "method" in line)
    assert head.split() == ["method", "epsilon", "0.5", "epsilon", "2", "epsilon", "10", "epsilon", "inf"]
    assert next(line for line in text.splitlines() if "public" in line).split() == ["public", *["5.0%"] * 4]
    assert "10.0% ±2.0%" in text


def test_where_there_is_no_room_for_errors_the_largest_is_in_the_title() -> None:
    rows = [Row("ours", {"epsilon": float(level)}, "regret", 0.2, 0.01 * level) for level in range(1, 9)]
    text = shown(*rows)
    assert "standard errors up to 0.0800" in text
    assert "±" not in text


def test_a_paired_difference_colours_its_cell_and_is_not_shown_itself() -> None:
    out = io.StringIO()
    rows = (
        Row("better", {"k": 5}, "d_f", 0.1, 0.01),
        Row("better", {"k": 5}, "d_f against ig-sig", -0.3, 0.1),
        Row("worse", {"k": 5}, "d_f", 0.9, 0.01),
        Row("worse", {"k": 5}, "d_f against ig-sig", 0.3, 0.1),
        Row("equal", {"k": 5}, "d_f", 0.4, 0.01),
        Row("equal", {"k": 5}, "d_f against ig-sig", 0.1, 0.1),
    )
    console = Console(file=out, width=120, force_terminal=True, color_system="standard", legacy_windows=False)
    print_result(console, Result("a-system", "data", rows, (), {}, 1))
    lines = {
        name: next(line for line in out.getvalue().splitlines() if name in line)
        for name in ("better", "worse", "equal")
    }
    assert "\x1b[32m" in lines["better"]
    assert "\x1b[31m" in lines["worse"]
    assert "\x1b[3" not in lines["equal"]
    assert "lower than ig-sig" in out.getvalue()


def test_distributions_counts_and_sweeps_are_left_to_figures_and_json() -> None:
    text = shown(
        Row("ours", {"at": 0.5}, "candidates, cumulative", 0.3),
        Row("data", {"of": "users"}, "count", 1234.0),
        Row("ours", {"k": 5, "draws": 100}, "d_i", 0.7),
        Row("ours", {"k": 5, "draws": 25}, "d_i", 0.6),
    )
    assert "1,234 users" in text
    assert "cumulative" not in text
    assert "0.7" not in text
    assert "0.6000" in text


def test_claims_are_grouped_by_who_stated_them_and_agreement_is_counted() -> None:
    claims = (
        Claim("A Paper", "[red] is a colour", True, "[none]"),
        Claim("the same paper: unverified", "maybe", False, "so"),
        Claim("tacit", "more", True, "so"),
        Claim("tacit, against ig-sig", "less", False, "so"),
        Claim("reference figures", "near", True, "0.1"),
        Claim("reference figures", "far", False, "0.9"),
    )
    text = shown(claims=claims)
    for title in (
        "The paper's claims: 1 of 1 hold",
        "The paper's claims, unverified: 0 of 1 hold",
        "Beyond the paper: 1 of 1 hold",
        "Beyond the paper, against ig-sig: 0 of 1 hold",
        "1 of 2 figures are within the reference's tolerance",
        "Outside the reference's tolerance",
        "[red] is a colour",
        "a [note]",
    ):
        assert title in text
    assert "near" not in text
    assert "far" in text
