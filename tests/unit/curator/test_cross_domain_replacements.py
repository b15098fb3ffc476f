"""Mode 'prs_valid': one draw for each of a public list, among a public list, all of them under one guarantee."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.curator.cross_domain.domains import ReleaseRequest
from tacit.curator.cross_domain.x_map import NOT_THE_RECOMMENDER, affordable
from tacit.errors import InvalidParameter, UnknownName
from tacit.guarantees import epsilon_of_rho, rho_of
from tacit.ledger import Accounting, Budget
from tacit.mechanisms.x_map import PUBLIC_LISTS
from tacit.messages.cross_domain import Replacements
from tests.unit.curator.cross_domain_world import BY_HAND, curator, small, world

BY_HAND_GRAPH = {"least": 1, "significant": 0}
MUCH = Budget(1e9, 1e-4)


def drawn(folder: Path, data: Any = None, epsilon: float = 1e8, **options: Any) -> Replacements:
    with curator(folder, data, budget=MUCH, ledger=folder / f"{epsilon}{sorted(options)}.db") as holder:
        return holder.release(epsilon, mode="prs_valid", **options)


def test_with_much_epsilon_an_item_is_replaced_by_the_most_similar_one(tmp_path: Path) -> None:
    table = drawn(tmp_path, **BY_HAND_GRAPH)
    assert (table.source, table.target) == ((0, 1, 2), (3, 4, 5))
    assert (table.replacement(0), table.replacement(1)) == (3, 3)  # .237541 and .070796: the largest above 0, by hand
    assert table.alter_ego({0: 5.0, 1: 4.0})[3] == 4.5


def test_lists_may_be_parts_in_any_order(tmp_path: Path) -> None:
    table = drawn(tmp_path, sources=[1, 0, 1], candidates=[5, 4], **BY_HAND_GRAPH)
    assert (table.source, table.target) == ((0, 1), (4, 5))
    assert (table.replacement(0), table.replacement(1)) == (4, 5)  # of .208902 .201423; of -.348613 .047604
    with pytest.raises(UnknownName):
        drawn(tmp_path, sources=[99])
    with pytest.raises(UnknownName):
        drawn(tmp_path, candidates=[0])  # an item of the source
    as_texts = drawn(tmp_path, sources=["1", 0, 1], candidates=np.array(["5", "4"]), **BY_HAND_GRAPH)
    assert as_texts == table
    for unknown in ("01", "3", True, None, 0.5):
        with pytest.raises(UnknownName):
            drawn(tmp_path, sources=[unknown])
    for wrong in ("01", b"\x00\x01", 1, np.array(1)):  # not the items 0 and 1
        with pytest.raises(InvalidParameter, match="`sources` must be a list of items"):
            drawn(tmp_path, sources=wrong)
    with pytest.raises(InvalidParameter, match="`candidates` must name at least one"):
        drawn(tmp_path, candidates=[])


def test_who_has_too_few_ratings_in_a_domain_has_no_part_in_it(tmp_path: Path) -> None:
    """Two readers of items 0 and 1 like 4 as they like 0; six who rated 0 alone in the source like 3 so."""
    table = np.array([[5, 1, 0, 1, 5], [1, 5, 0, 5, 1], *[[5, 0, 0, 5, 1], [1, 0, 0, 1, 5]] * 3])
    for least, found in ((1, 3), (2, 4)):
        assert drawn(tmp_path, small(table), sources=[0], significant=0, least=least).replacement(0) == found


def test_with_little_epsilon_every_candidate_may_come(tmp_path: Path) -> None:
    with curator(tmp_path, world(60, 12), budget=MUCH) as holder:
        tables = [holder.release(1e-3, mode="prs_valid", request_id=str(place)).chosen for place in range(40)]
    seen = np.bincount(np.ravel(tables), minlength=12)
    assert seen.min() > 0
    assert seen.max() < 3 * seen.mean()


def test_what_is_promised_covers_all_draws_and_not_the_recommender(tmp_path: Path) -> None:
    with curator(tmp_path, world(60, 12)) as holder:
        promise = holder.release(2.0, 1e-6, mode="prs_valid").guarantee
    assert (promise.epsilon, promise.delta, promise.proof) == (2.0, 1e-6, "private-replacement")
    assert {PUBLIC_LISTS, NOT_THE_RECOMMENDER} <= promise.assumes


@pytest.mark.parametrize("draws", [1, 2, 12, 500])
def test_draws_never_cost_more_than_was_asked_for(draws: int) -> None:
    asked = ReleaseRequest(2.0, 1e-6)
    alone = affordable(10, draws, asked, Accounting.BASIC)
    assert alone.guarantee.epsilon <= 2.0
    among = affordable(10, draws, asked, Accounting.ZCDP)
    assert epsilon_of_rho(rho_of(among.guarantee), 1e-6) <= 2.0
    assert epsilon_of_rho(rho_of(among.guarantee), 1e-6) > 1.99  # and hardly less
    assert among.each <= alone.each
    if (
        draws >= 12
    ):  # enough of them for a delta to pay: what is promised is what was asked for, and no larger epsilon without one
        assert (round(among.guarantee.epsilon, 9), among.guarantee.delta) == (2.0, 1e-6)


def test_a_spec_of_fifty_draws() -> None:
    """(1, 1e-6) and 50 draws: about .0529 each by the simple conversion, a little more by the tight one."""
    assert 0.0529 <= affordable(10, 50, ReleaseRequest(1.0, 1e-6), Accounting.BASIC).each < 0.07


def test_unlisted_items_have_no_part_in_it(tmp_path: Path) -> None:
    hidden = np.array([False, True, False])
    table = drawn(tmp_path, small(rated_only=hidden), **BY_HAND)
    assert (table.source, table.target) == ((0, 2), (3, 5))
