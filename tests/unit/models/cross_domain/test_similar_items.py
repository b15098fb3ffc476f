"""The most similar items of each item, whichever way they are found."""

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.models.cross_domain.similar_items import top_similar
from tests.unit.models.cross_domain.slow_similarities import EXAMPLE, random_profiles, slow_best, slow_edges, table
from tests.unit.models.cross_domain.test_similarities import everyway


@everyway
@pytest.mark.parametrize("by", ["signed", "absolute"])
@pytest.mark.parametrize("k", [1, 2, 5, 40])
@pytest.mark.parametrize("least", [0, 1, 3])
def test_they_are_the_head_of_the_sorted_row(way: str, by: str, k: int, least: int) -> None:
    profiles = random_profiles(np.random.default_rng(17), 50, 13, 6, top=2)
    found = top_similar(table(profiles, 14), k, shrink=4, by=by, least_significance=least, way=way)  # type: ignore[arg-type]
    slow = slow_edges(profiles, 14, 4, least)
    assert found.items.shape == found.cosine.shape == found.significance.shape == found.share.shape == (14, k)
    for row in range(14):
        expected = slow_best(slow, row, set(range(14)), k, by)
        held = len(expected)
        assert found.items[row].tolist() == expected + [-1] * (k - held)
        assert found.cosine[row, :held] == pytest.approx([slow[row, item][0] for item in expected], abs=1e-13)
        assert found.significance[row, :held].tolist() == [slow[row, item][1] for item in expected]
        assert found.share[row, :held] == pytest.approx([slow[row, item][2] for item in expected])
        assert not found.cosine[row, held:].any()


@everyway
def test_ties_go_to_lower_items(way: str) -> None:
    """Items 1 to 6 have the same ratings, so that item 0 is as similar to each: the first three win."""
    profiles = [{0: 5, **dict.fromkeys(range(1, 7), 4), 7: 1}, {0: 1, **dict.fromkeys(range(1, 7), 2), 7: 5}]
    found = top_similar(table(profiles, 8), 3, shrink=0, way=way)
    assert found.items[0].tolist() == [1, 2, 3]
    assert found.items[5].tolist() == [0, 1, 2]


def test_similar_items_need_not_agree_unless_asked() -> None:
    ratings = table(EXAMPLE, 6)
    assert 2 in top_similar(ratings, 5, shrink=0).items[0]
    assert 2 not in top_similar(ratings, 5, shrink=0, least_significance=1).items[0]


def test_the_repr_shows_sizes_only_and_bad_parameters_are_refused() -> None:
    ratings = table(EXAMPLE, 6)
    assert repr(top_similar(ratings, 2)) == "TopSimilar(6 items, 2 each)"
    for wrong in ({"k": 0}, {"by": "size"}, {"least_significance": -1}, {"shrink": 1.5}):
        with pytest.raises(InvalidParameter):
            top_similar(ratings, **wrong)
