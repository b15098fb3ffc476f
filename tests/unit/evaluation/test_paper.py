"""The paper's figures, spot-checked against its tables."""

import pytest

from tacit.evaluation.multi_selection import paper


@pytest.mark.parametrize(
    ("method", "eta", "k", "printed"),
    [
        ("nopost", 0.05, 1, 0.2622),
        ("nopost", 0.2, 1, 0.4236),
        ("nopost-realuser", 0.15, 1, 0.3548),
        ("sat", 0.01, 5, 0.0077),
        ("sat", 0.2, 3, 0.1788),
        ("sat-realuser", 0.03, 2, 0.0644),
        ("sat-realuser", 0.1, 5, 0.0476),
        ("sat-realuser", 0.2, 5, 0.0673),
    ],
)
def test_tables_1_and_4(method: str, eta: float, k: int, printed: float) -> None:
    assert paper.d_i(method, eta, k) == printed


@pytest.mark.parametrize(
    ("method", "eta", "k", "printed"),
    [
        ("nopost", 0.1, 1, 0.385),
        ("nopost-realuser", 0.2, 1, 0.39),
        ("sat", 0.05, 2, 0.192),
        ("sat", 0.2, 5, 0.286),
        ("sat-realuser", 0.03, 3, 0.121),
        ("sat-realuser", 0.1, 5, 0.143),
        ("sat-realuser", 0.2, 2, 0.198),
        ("ig-sig", 0.1, 2, 0.233),
        ("ig-sig", 0.2, 5, 0.177),
    ],
)
def test_tables_2_and_5(method: str, eta: float, k: int, printed: float) -> None:
    assert paper.d_f(method, eta, k) == printed


def test_what_is_not_printed_is_not_made_up() -> None:
    assert paper.d_f("sat-realuser", 0.01, 5) is None
    assert paper.d_i("avg", 0.1, 5) is None
    assert paper.d_i("nopost", 0.1, 2) is None


def test_every_printed_figure_is_a_row_of_the_paper() -> None:
    rows = list(paper.rows())
    assert all(row.method.startswith("paper:") and row.stderr is None for row in rows)
    assert len([row for row in rows if row.metric == "d_i"]) == 6 * 8
    assert len([row for row in rows if row.metric == "d_f"]) == 5 * 8 + 3
    assert [row.value for row in rows if row.metric == "clusters within"] == [0.75, 0.45, 0.24]
    assert [row.value for row in rows if row.metric == "best utility"] == [4.51]
    assert [row.value for row in rows if row.metric == "duplication"] == [0.27]
    assert [row.value for row in rows if row.metric == "neighbour difference"] == [0.25]


def test_in_the_paper_itself_d_f_of_sat_realuser_does_not_fall_with_k_everywhere() -> None:
    assert paper.d_f("sat-realuser", 0.03, 3) > paper.d_f("sat-realuser", 0.03, 2)  # type: ignore[operator]
