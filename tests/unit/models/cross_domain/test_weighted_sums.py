"""The k largest of many lists at once."""

import numpy as np
import pytest

from tacit.models.cross_domain import alter_egos
from tacit.models.cross_domain.alter_egos import entries_of_rows, k_best, k_best_of_rows, weighted_mean


def test_k_best_of_each_group_with_ties_to_the_lower_item() -> None:
    group = np.array([4, 4, 4, 0, 0, 4, 0, 7])
    other = np.array([9, 3, 5, 1, 2, 1, 0, 6])
    similar = np.array([0.5, 0.5 + 1e-15, 0.9, -0.1, -0.3, 0.2, -0.3, 0.0])
    assert k_best(group, other, similar, 2).tolist() == [1, 2, 3, 6, 7]
    assert k_best(group, other, similar, 1).tolist() == [2, 3, 7]
    assert k_best(group, other, similar, 4).tolist() == list(range(8))
    assert k_best(group[:0], other[:0], similar[:0], 1).tolist() == []


@pytest.mark.parametrize("k", [1, 2, 5, 30])
def test_tables_and_lists_keep_the_same(k: int) -> None:
    rng = np.random.default_rng(k)
    table = rng.integers(-3, 4, size=(12, 9)) / 3.0  # many ties, some 0
    rows, columns = np.nonzero(table)
    kept = k_best(rows, columns, table[rows, columns], k)
    expected = np.zeros_like(table)
    expected[rows[kept], columns[kept]] = table[rows[kept], columns[kept]]
    np.testing.assert_array_equal(k_best_of_rows(table.copy(), k), expected)


def test_a_weighted_mean_is_shrunk_and_0_where_nothing_is_summed() -> None:
    found = weighted_mean(np.array([0, 0, 2]), np.array([0.5, -1.0, 0.5]), np.array([1.0, 2.0, 4.0]), 4, 0.5)
    assert found.tolist() == [-0.75, 0.0, 2.0, 0.0]


@pytest.mark.parametrize("entries", [1, 4, 100])
def test_runs_hold_every_entry_of_every_wanted_row(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alter_egos, "_ENTRIES", entries)
    indptr, wanted = np.array([0, 3, 3, 5]), np.array([2, 0, 1, 0])
    found = [
        (run.start + int(pair), int(place))
        for run, part in entries_of_rows(indptr, wanted)
        for pair, place in zip(part.pair, part.position, strict=True)
    ]
    assert found == [(0, 3), (0, 4), (1, 0), (1, 1), (1, 2), (3, 0), (3, 1), (3, 2)]
    if entries == 4:
        assert max(len(part.pair) for _, part in entries_of_rows(indptr, wanted)) <= 4
