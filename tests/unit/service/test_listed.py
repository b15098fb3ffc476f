"""What is offered: the most liked items for nothing, or an operator's list; prices, scores and private quality on one scale."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import InvalidData, InvalidParameter, TacitError
from tacit.messages.store import Store
from tacit.models.items import Items
from tacit.server.listings import best_items
from tacit.service.served import items_to_offer
from tacit.service.settings import Settings
from tests.releases import message_of
from tests.unit.server.small_store import small_store

Given = Callable[..., Settings]
HEADER = "item,bid_micros,ppm\n"


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return tmp_path / "listings.csv"


def test_the_most_liked_items_are_offered_by_released_counts(store: Store) -> None:
    ids = store.items.ids.tolist()
    liked = {ids[place]: float(count) for place, count in ((3, 10.0), (7, 30.0), (11, 20.0), (12, 1.0))}
    found = items_to_offer(store, None, liked, 3)
    assert found.listings.items == tuple(str(ids[place]) for place in (7, 11, 3))
    assert found.codes.tolist() == [7, 11, 3]
    assert found.listings.without_money


def test_without_counts_they_are_those_that_are_best_on_average(store: Store) -> None:
    found = items_to_offer(store, None, {}, 5)
    assert found.listings.items == tuple(map(str, best_items(store, 5)))


def test_free_listings_have_one_scale_for_everybody_and_for_her(store: Store) -> None:
    found = items_to_offer(store, None, {}, 4)
    means = store.scorer.score(store.look_alikes, found.codes).mean(axis=0)
    priced = found.listings.priced()
    by_item = dict(zip(priced.items, priced.scores, strict=True))
    assert [by_item[item] for item in found.listings.items] == pytest.approx(means.tolist(), rel=1e-5)
    estimates = np.array([found.map.estimate(person) for person in store.look_alikes])
    assert estimates.mean(axis=0) == pytest.approx(means, rel=1e-3)
    table = found.population.tastes(found.listings.items).table
    assert table.mean(axis=1) == pytest.approx(means, rel=0.1)
    assert set(priced.prices) == {0}


def test_bids_prices_and_private_quality_are_on_one_scale(store: Store, csv: Path) -> None:
    """Her own probability of a click stands to the public one as her utility stands to everybody's."""
    ids = store.items.ids[[5, 2, 9]].tolist()
    csv.write_text(HEADER + "".join(f"{item},{bid},{ppm}\n" for item, bid, ppm in
                                    zip(ids, (2_000_000, 500_000, 1_000_000), (50_000, 80_000, 0), strict=True)))  # fmt: skip
    found = items_to_offer(store, csv, {}, 40)
    assert found.listings.items == tuple(map(str, ids))
    assert found.codes.tolist() == [5, 2, 9]
    assert not found.listings.without_money
    priced = found.listings.priced()
    assert dict(zip(priced.items, priced.scores, strict=True)) == pytest.approx(
        {str(ids[0]): 2.0 * 0.05, str(ids[1]): 0.5 * 0.08, str(ids[2]): 0.0}
    )
    # the mean over everybody of what a device would work out is the public probability
    estimates = np.array([found.map.estimate(person) for person in store.look_alikes])
    assert estimates.mean(axis=0)[:2] == pytest.approx([0.05, 0.08], rel=1e-3)
    assert 0.0 <= estimates.mean(axis=0)[2] <= 2e-6  # never clicked: once in a million times
    assert estimates[:, 0].std() > 1e-4  # but it is hers
    tastes = found.population.tastes(found.listings.items).table
    people = store.scorer.score(store.look_alikes, found.codes).astype(np.float64)
    assert tastes[:, :80] == pytest.approx((people * [0.05, 0.08, 1e-6] / people.mean(axis=0)).T, rel=1e-4)


def test_an_item_may_be_a_text(csv: Path) -> None:
    plain = small_store(20)
    named = message_of(
        Store,
        Items(np.array([f"film-{place:02}" for place in range(20)])), plain.space, plain.scorer, plain.look_alikes,
        plain.model_guarantee, plain.look_alikes_guarantee,
    )  # fmt: skip
    csv.write_text(f"{HEADER}film-07,1,1\n")
    assert items_to_offer(named, csv, {}, 40).listings.items == ("film-07",)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "columns item,bid_micros,ppm"),
        ("item,ppm,bid_micros\n100,1,1\n", "columns"),
        ("item,bid_micros,ppm,extra\n100,1,1,1\n", "columns"),
        (HEADER, "lists no items"),
        (f"{HEADER}100,1\n", "two whole numbers"),
        (f"{HEADER}100,1,1,1\n", "two whole numbers"),
        (f"{HEADER}100,1.5,1\n", "two whole numbers"),
        (f"{HEADER}100,-1,1\n", "two whole numbers"),
        (f"{HEADER}100,1_0,1\n", "two whole numbers"),
        (f"{HEADER}100,,1\n", "two whole numbers"),
        (f"{HEADER}100,1,nan\n", "two whole numbers"),
        (f"{HEADER}100,\u0661,1\n", "two whole numbers"),
        (f"{HEADER}{'1' * 200_000},1,1\n", "two whole numbers"),
        (f"{HEADER}101,1,1\n", "'101', which is not an item"),
        (f"{HEADER}film,1,1\n", "'film', which is not an item"),
    ],
)
def test_a_list_that_cannot_be_read_is_told_in_one_line(store: Store, csv: Path, content: str, told: str) -> None:
    csv.write_text(content)
    with pytest.raises(InvalidData, match=told) as problem:
        items_to_offer(store, csv, {}, 40)
    assert "\n" not in str(problem.value)
    assert str(csv) in str(problem.value)


@pytest.mark.parametrize("rows", ["100,1,1000001\n", f"100,{10**30},1\n", "100,1,1\n100,2,2\n"])
def test_numbers_beyond_their_range_and_items_listed_twice_are_refused(store: Store, csv: Path, rows: str) -> None:
    csv.write_text(HEADER + rows)
    with pytest.raises((InvalidParameter, InvalidData)) as problem:
        items_to_offer(store, csv, {}, 40)
    assert isinstance(problem.value, TacitError)


def test_bytes_that_are_no_text_are_told_too(store: Store, csv: Path) -> None:
    csv.write_bytes(HEADER.encode() + b"\xff,1,1\n")
    with pytest.raises(InvalidData):
        items_to_offer(store, csv, {}, 40)
    with pytest.raises(FileNotFoundError):
        items_to_offer(store, csv.with_name("none.csv"), {}, 40)
