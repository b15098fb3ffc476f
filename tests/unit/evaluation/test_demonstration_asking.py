"""Multi-selection and private selection, shown with one store: what left is in the messages, and figures follow from users."""

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tacit.data import Ratings, synthetic
from tacit.evaluation.demonstration import fitted as fitting
from tacit.evaluation.demonstration import multi_selection, private_selection
from tacit.evaluation.demonstration.demonstration import GAIN, Demonstration, Figure, Kind, Way
from tacit.evaluation.demonstration.fitted import Fitted, fitted
from tacit.evaluation.demonstration.multi_selection import KEPT
from tacit.evaluation.demonstration.private_selection import STARS
from tacit.messages.multi_selection import Signal


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return synthetic(users=120, items=60, ratings_per_user=25, rng=np.random.default_rng(5))


@pytest.fixture(scope="module")
def store(ratings: Ratings) -> Fitted:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "find_spec", lambda name: None)  # factors: the network has to be compiled first
        found = fitted(ratings)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def asked(store: Fitted) -> Demonstration:
    return multi_selection.demonstrate(store)


@pytest.fixture(scope="module")
def billed(store: Fitted) -> Demonstration:
    return private_selection.demonstrate(store)


def test_who_asks_did_not_train_the_store(ratings: Ratings, store: Fitted) -> None:
    assert store.shown not in store.asking
    assert store.counts.sum() + len(store.ratings) <= len(ratings)  # items with few ratings are not listed
    assert (store.ratings.counts[list(store.asking)] >= 5).all()
    assert len(store.features()) == len(store.asking) >= 10


def test_too_few_users_have_no_store(ratings: Ratings) -> None:
    assert fitted(ratings.select_users(np.arange(ratings.n_users) < 6)) is None


def test_the_signal_left_and_the_pick_did_not(asked: Demonstration) -> None:
    assert set(asked.released) == {"signal", "slate", "store"}
    signal = Signal.from_json(asked.released["signal"])
    assert not asked.released["signal"]["simulated"]
    assert signal.guarantee == asked.guarantee
    assert asked.guarantee.epsilon == pytest.approx(10.0)
    assert f"{len(asked.released['signal']['steps'])} numbers" in asked.left
    assert dict(asked.said)["picked at home"] in asked.released["slate"]
    assert len(asked.released["slate"]) == 5
    assert "spent" in asked.statement


def test_a_server_that_is_told_everything_keeps_all_and_the_others_less(asked: Demonstration) -> None:
    kept = {way.method: way.figures[KEPT].value for way in asked.ways}
    assert kept["all told"] == pytest.approx(1.0)
    assert all(value <= 1.0 + 1e-12 for value in kept.values())
    assert min(kept.values()) < 1.0
    assert (asked.private.method, asked.plain.method, asked.nothing.method) == ("exact", "all told", "ig-sig")
    assert asked.nothing.epsilon == 0.0
    assert GAIN not in asked.nothing.figures
    assert asked.private.gain.value == pytest.approx(kept["exact"] - kept["ig-sig"])
    assert all(way.figures[KEPT].stderr is not None for way in asked.ways)
    assert asked.verdict == multi_selection.verdict(asked.ways)


def test_what_was_shown_was_counted_and_billed_exactly(billed: Demonstration) -> None:
    released = billed.released
    assert released["settled"] == ["ok"] * private_selection.OFFERS
    assert released["impressions"] == private_selection.OFFERS
    assert released["impression"]["items"][0] in {one["item"] for one in released["offer"]["candidates"]}
    assert f"{len(json.dumps(released['impression'], separators=(',', ':')))} bytes" in billed.left
    assert billed.guarantee.epsilon == pytest.approx(released["offer"]["policy"]["epsilon"])
    assert billed.each == "impression"
    assert billed.left.startswith("for each impression ")
    assert float(billed.left.split("epsilon ")[1].removesuffix(" each")) >= billed.guarantee.epsilon


def test_policies_lie_between_the_same_for_all_and_the_best_for_each(billed: Demonstration) -> None:
    stars = {(way.method, way.epsilon): way.figures[STARS].value for way in billed.ways}
    best, same = stars["greedy", float("inf")], stars["public", 0.0]
    assert best == max(stars.values())
    assert best > same
    assert billed.private.figures[STARS].value <= best
    assert stars["rr", 1.0] < stars["rr", 3.0]
    assert all(way.figures[STARS].stderr for way in billed.ways)
    assert billed.plain.gain.value == pytest.approx(best - same)
    assert billed.verdict == private_selection.verdict(billed.ways, billed.private)


def test_both_survive_their_json(asked: Demonstration, billed: Demonstration) -> None:
    for shown in (asked, billed):
        assert Demonstration.from_json(json.loads(json.dumps(shown.to_json(), allow_nan=False))) == shown


def test_without_genres_the_most_rated_items_are_offered(store: Fitted) -> None:
    catalogue = replace(store.ratings.catalogue, genres=None)
    bare = store._replace(ratings=replace(store.ratings, catalogue=catalogue))
    items = private_selection._items(bare)
    counts = dict(zip(store.store.items.ids.tolist(), store.counts.tolist(), strict=True))
    assert len(items) == private_selection.ITEMS
    assert min(counts[item] for item in items) >= max(count for item, count in counts.items() if item not in items)


def way(method: str, kind: Kind, epsilon: float, figures: Mapping[str, Figure]) -> Way:
    return Way(method, kind, epsilon, figures)


def test_the_verdict_on_a_signal_says_what_the_table_says() -> None:
    def told(gain: float) -> str:
        figures = {KEPT: Figure(0.97, 0.002), GAIN: Figure(gain, 0.002)}
        return multi_selection.verdict([way("exact", Kind.PRIVATE, 10.0, figures)])

    assert "0.5% more than by ig-sig" in told(0.005)
    assert "is worth its epsilon" in told(0.005)
    assert "less than by ig-sig" in told(-0.005)
    assert "up to chance" in told(0.003)
    assert "not worth its epsilon" in told(-0.003)


def test_the_verdict_on_a_private_choice_says_what_the_table_says() -> None:
    def told(epsilon: float, gain: float, published: float = 4.1, most: float = 0.1) -> str:
        private = way("auto", Kind.PRIVATE, epsilon, {STARS: Figure(4.2 + gain), GAIN: Figure(gain, 0.01)})
        ways = [
            private,
            way("rr", Kind.PRIVATE, 3.0, {STARS: Figure(published)}),
            way("public", Kind.NOTHING, 0.0, {STARS: Figure(4.2)}),
            way("greedy", Kind.PLAIN, float("inf"), {STARS: Figure(4.2 + most), GAIN: Figure(most, 0.01)}),
        ]
        return private_selection.verdict(ways, private)

    assert "shows all the same item" in told(0.0, 0.0)
    assert "gains 0.050 stars over the same item for everybody, 50% of" in told(3.0, 0.05)
    assert "% of" not in told(3.0, 0.05, most=0.0)
    assert "could be told from chance" in told(3.0, 0.019)
    assert "could be told from chance" in told(3.0, -0.05)
    assert "it would lose 0.100" in told(3.0, 0.05)
    assert "it would lose" not in told(3.0, 0.05, published=4.21)
