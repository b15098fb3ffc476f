"""A population as the prior of `auto`: tastes that go together promise nothing, tastes that differ do."""

from pathlib import Path

import numpy as np
import pytest

from tacit.errors import InvalidParameter, NoLookAlikes, UnknownName
from tacit.messages.private_selection import Rule
from tacit.models.private_selection import DRAWS, Spread, Tastes, choose
from tacit.server import Listings, Population, PrivateSelection, listings_of
from tests.unit.models.prior import prior_draws, value
from tests.unit.server.small_store import small_store

ITEMS = ["a", "b", "c", "d"]
PUBLIC = np.array([4.0, 3.9, 3.8, 2.0])
RNG = np.random.default_rng(5)
TOGETHER = PUBLIC + RNG.normal(size=(300, 1))  # everybody has the same order
APART = PUBLIC + RNG.normal(size=(300, 4))


def test_draws_are_the_people_shifted_to_the_public_scores() -> None:
    draws = prior_draws(PUBLIC, Population(ITEMS, APART).tastes(ITEMS))
    assert draws.shape == (4, DRAWS)
    assert draws.mean(axis=1) == pytest.approx(PUBLIC, abs=1e-12)
    people = APART[np.arange(DRAWS) * 300 // DRAWS]
    assert draws - draws.mean(axis=1, keepdims=True) == pytest.approx((people - people.mean(axis=0)).T)


def test_the_value_is_that_of_the_formula() -> None:
    tastes, epsilon = Population(ITEMS, APART).tastes(ITEMS), 1.5
    draws, grown = prior_draws(PUBLIC, tastes), np.exp(1.5)
    for m in range(1, 5):
        best = draws[:m].max(axis=0).mean()
        assert value(PUBLIC, tastes, epsilon)[m - 1, 0] == pytest.approx(
            (PUBLIC[:m].sum() + (grown - 1) * best) / (grown + m - 1)
        )


def test_tastes_that_go_together_are_offered_nothing_to_choose_from() -> None:
    assert choose(PUBLIC, Population(ITEMS, TOGETHER).tastes(ITEMS), 3.0).m == 1
    assert choose(PUBLIC, Population(ITEMS, APART).tastes(ITEMS), 3.0).m == 3
    # a spread of the same size takes them for tastes that differ
    assert choose(PUBLIC, Spread(float(TOGETHER.std(axis=0).mean()), "normal"), 3.0).m > 1


def test_with_bids_tastes_are_probabilities() -> None:
    bids = np.array([2.0, 1.0, 1.0, 0.5])
    chances = np.array([0.05, 0.09, 0.08, 0.1])
    draws = prior_draws(bids * chances, Tastes(np.tile(chances[:, None], DRAWS)), bids=bids)
    assert draws == pytest.approx(np.tile((bids * chances)[:, None], DRAWS))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_stopping_early_finds_what_the_whole_list_would(epsilon: float) -> None:
    rng = np.random.default_rng(8)
    for size in (17, 60, 300):
        public = np.sort(rng.random(size))[::-1]
        tastes = Tastes(public[:, None] + 0.3 * rng.normal(size=(size, DRAWS)))
        whole = value(public, tastes, epsilon)[:, 0]
        found = choose(public, tastes, epsilon)
        assert found.value == pytest.approx(whole.max(), rel=1e-12)
        assert found.m == int((whole >= whole.max() * (1 - 1e-12)).argmax()) + 1


def test_few_people_take_turns() -> None:
    draws = Population(ITEMS, APART[:7]).tastes(ITEMS).table
    assert (draws == APART[np.arange(DRAWS) % 7].T).all()


def test_a_shop_asks_its_population_about_the_candidates_in_their_order(tmp_path: Path) -> None:
    listings = Listings.free(["d", "c", "b", "a"], PUBLIC[::-1])
    shop = PrivateSelection(listings, tmp_path / "shop.db", spread=Population(ITEMS, APART), epsilon=3.0)
    view = shop.view()
    assert view is not None
    assert (view.policy.rule, view.items) == (Rule.RR, ("a", "b", "c"))
    shop = PrivateSelection(listings, tmp_path / "other.db", spread=Population(ITEMS, TOGETHER), epsilon=3.0)
    view = shop.view()
    assert view is not None
    assert (view.policy.rule, view.items) == (Rule.PUBLIC, ("a",))


def test_what_is_no_population_is_refused(tmp_path: Path) -> None:
    for quality in ([[1.0, 2.0]], [[1.0, 2.0, 3.0, np.nan]], np.empty((0, 4)), [1.0, 2.0, 3.0, 4.0]):
        with pytest.raises(InvalidParameter):
            Population(ITEMS, quality)
    with pytest.raises(UnknownName):
        Population(ITEMS, APART).tastes(["a", "e"])
    for items in (["a", "b", "a", "d"], "abcd"):
        with pytest.raises(InvalidParameter, match="once"):
            Population(items, APART)
    with pytest.raises(InvalidParameter):
        choose(PUBLIC, Population(ITEMS, APART).tastes(ITEMS[:3]), 1.0)
    with pytest.raises(InvalidParameter):
        Tastes(np.zeros((4, DRAWS - 1)))


def test_a_stores_items_are_listed_with_what_they_are_worth_to_everybody() -> None:
    store = small_store()
    wanted = store.items.ids[:6].tolist()
    listings, people = listings_of(store, wanted)
    scores = store.scorer.score(store.look_alikes, np.arange(6)).astype(np.float64)
    priced = listings.priced()
    assert dict(zip(priced.items, priced.scores, strict=True)) == pytest.approx(
        dict(zip(map(str, wanted), scores.mean(axis=0), strict=True))
    )
    assert people.tastes([str(wanted[3])]).table[0, :80] == pytest.approx(scores[:, 3])
    assert people.times(0.5).tastes([str(wanted[3])]).table[0, :80] == pytest.approx(scores[:, 3] / 2)


def test_a_store_without_people_or_items_lists_nothing() -> None:
    with pytest.raises(NoLookAlikes):
        listings_of(small_store(look_alikes=0), [100])
    with pytest.raises(InvalidParameter):
        listings_of(small_store(), [])
