import math

import numpy as np

from tacit.audit import domains


def test_a_score_box_holds_every_corner_and_every_step() -> None:
    box = domains.score_box(3, steps=2)
    assert len(box) == 27
    assert {tuple(row) for row in box} >= {(0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0.5, 0.0, 1.0)}


def test_vote_tables_are_counted_right() -> None:
    tables = domains.vote_tables(3, 2)
    assert len(tables) == 1 + 4 + 16 + 64
    assert tables[0].shape == (0, 2)


def test_neighbours_by_removal_differ_by_one_row() -> None:
    tables = domains.vote_tables(2, 2)
    pairs = domains.added_or_removed(tables)
    sizes = {abs(len(tables[a]) - len(tables[b])) for a, b in pairs}
    assert sizes == {1}
    # each of 16 tables of two users loses either one; where both rows are alike that is one pair; and 4 lose their only one
    assert len(pairs) == 16 * 2 - 4 + 4


def test_neighbours_by_replacement_differ_in_exactly_one_row() -> None:
    tables = domains.vote_tables(2, 2)
    pairs = domains.replaced(tables)
    for first, second in pairs:
        assert np.sum((tables[first] != tables[second]).any(axis=1)) == 1
    assert len(pairs) == 4 * 3 // 2 + 2 * 4 * (4 * 3 // 2)


def test_rows_with_nan_have_neighbours_too() -> None:
    tables = domains.tables([(math.nan, 1.0), (0.0, 0.0)], 2)
    assert len(domains.added_or_removed(tables)) == 2 + (2 * 4 - 2)
