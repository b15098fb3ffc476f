"""Rows become tables, guarantees lines, claims groups."""

import pytest

from tacit.evaluation.report.promises import promises
from tacit.evaluation.report.tables import Cell, all_figures, beside_others
from tacit.evaluation.report.verdicts import Standing, standing, verdicts
from tacit.evaluation.report.words import figure, interval, promise, setting
from tacit.evaluation.result import Claim, Row
from tacit.guarantees import ONE_USER, metric, pure
from tests.unit.evaluation.told import HOSTILE, result


def test_figures_of_others_stand_within_the_cell_of_the_same_method_and_setting() -> None:
    (table,) = beside_others(result().rows)
    assert table.columns == ("method", "epsilon", "popularity")
    assert table.lines == (
        (Cell("tempered slate"), Cell("0.1"), Cell("0.970 ± 0.002", "reference 0.960; paper 0.500")),
    )


def test_all_figures_has_every_row_but_counts_and_shares_for_drawing() -> None:
    tables = all_figures(result().rows)
    methods = {line[0].text for table in tables for line in table.lines}
    assert methods == {"tempered slate", "natural slate", "top-k", "uniform", "alone", HOSTILE}
    assert {name for table in tables for name in table.columns} == {"method", "epsilon", "popularity", "coverage"}


def test_a_figure_that_only_the_paper_has_is_among_all_and_not_beside_ours() -> None:
    alone = [line for table in all_figures(result().rows) for line in table.lines if line[0].text == "alone"]
    assert alone == [(Cell("alone"), Cell("0.1"), Cell("", "paper 0.123"), Cell(""))]


def test_worlds_and_sets_of_settings_have_tables_of_their_own() -> None:
    rows = [
        Row("a", {"world": "w", "k": 1}, "m", 1.0),
        Row("a", {"world": "v", "k": 1}, "m", 2.0),
        Row("a", {"world": "w", "eta": 0.5}, "m", 3.0),
    ]
    assert [(table.title, table.columns) for table in all_figures(rows)] == [
        ("w", ("method", "k", "m")), ("v", ("method", "k", "m")), ("w", ("method", "eta", "m")),
    ]  # fmt: skip


def test_promises_that_differ_by_epsilon_alone_are_one_line_and_nothing_comes_last() -> None:
    kept, nothing = promises(result().guarantees)
    assert kept.holds_for == ("tempered slate",)
    assert kept.epsilons == ("ε = 0.03", "ε = 0.1")
    assert nothing.epsilons == ("nothing is promised",)
    assert nothing.assumes == ("a step has no proof",)


def test_the_papers_claims_come_first_and_agreement_last() -> None:
    found = verdicts(result().claims)
    assert [(one.is_papers, one.held, one.total) for one in found] == [(True, 1, 2), (False, 1, 1), (False, 1, 2)]
    assert [claim.claim for claim in found[-1].listed] == ["far"]


@pytest.mark.parametrize(
    ("holds", "evidence", "expected"),
    [
        (True, "a: -0.01 ± 0.001, shown in 3 of 3", Standing.YES),
        (False, "a: -0.0008 ± 0.0012, shown in 0 of 3 [not shown]", Standing.NOT_SHOWN),
        (
            False,
            "a: -0.01 ± 0.001, shown in 3 of 3; b: +0.001 ± 0.003, shown in 0 of 3 [not shown]",
            Standing.NOT_SHOWN,
        ),
        (False, "a: -0.002 ± 0.001, shown in 3 of 6, contrary at eta=0.2 [not shown]", Standing.NO),
        (False, "a: 0.001 ± 0.003 [not shown]; b: +0.01 ± 0.001, contrary on average [not shown]", Standing.NO),
        (False, "0.2 instead of 0.1", Standing.NO),
    ],
)
def test_a_claim_is_open_where_a_part_is_not_shown_and_none_is_contrary(
    holds: bool, evidence: str, expected: Standing
) -> None:
    claim = Claim("A Paper", "less is more", holds, evidence)
    assert standing(claim) is expected
    (found,) = verdicts([claim])
    assert (found.held, found.unshown, found.total) == (holds, expected is Standing.NOT_SHOWN, 1)


def test_numbers_keep_what_matters() -> None:
    assert [figure(one) for one in (0.0, 0.12345, 1.23456, 12.3456, 1234.5, 1e-5, float("inf"))] == [
        "0.000", "0.123", "1.235", "12.35", "1,234", "1e-05", "∞",
    ]  # fmt: skip
    assert interval(0.5, 0.01) == "0.500 ± 0.010"
    assert interval(0.5, 0.01, "share of all") == "50.0% ± 1.0%"
    assert interval(0.9966, 0.0004, "share of all") == "99.66% ± 0.04%"
    assert interval(0.5, None) == "0.500"
    assert [setting(one) for one in ("inf", 0.5, 1000, "ridge")] == ["∞", "0.5", "1,000", "ridge"]


def test_a_promise_tells_its_unit_of_distance_and_its_delta() -> None:
    assert promise(pure(1.5, ONE_USER)) == "ε = 1.5"
    assert promise(metric(10.0)) == "ε = 10 per unit of L1 distance"
