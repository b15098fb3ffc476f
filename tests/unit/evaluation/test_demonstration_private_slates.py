"""Private slates, shown: a slate from a ledger, routes that are what they say, and a verdict that fits."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tacit.data import HALF_STARS, Catalogue, Ratings, synthetic
from tacit.evaluation.demonstration import private_slates as part
from tacit.evaluation.demonstration.demonstration import Demonstration, Figure, Kind, Skipped, Way
from tacit.evaluation.demonstration.private_slates import DIVERSITY, POPULARITY, demonstrate, verdict


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return synthetic(users=150, items=40, ratings_per_user=15, rng=np.random.default_rng(6))


def test_one_slate_is_charged_and_the_routes_are_compared(ratings: Ratings) -> None:
    shown = demonstrate(ratings)
    assert isinstance(shown, Demonstration)
    slate = shown.released["slate"]
    assert len(slate["items"]) == len(shown.released["titles"]) == part.K
    assert slate["route"] == shown.private.method == "tempered"
    assert slate["guarantee"] == shown.guarantee.to_json()
    assert shown.guarantee.epsilon == shown.private.epsilon == 1.0
    assert "1 charged, 1 epsilon in all" in shown.statement
    ways = {way.method: way for way in shown.ways}
    assert ways["natural"].epsilon == 1.0
    assert 0.0 < ways["published"].epsilon < 0.1  # what is proved of a jitter that large
    uniform, private, plain = (way.figures[POPULARITY] for way in (shown.nothing, shown.private, shown.plain))
    assert 0.0 < uniform.value < private.value <= 1.0
    assert uniform.value < plain.value <= 1.0
    assert private.stderr
    assert plain.stderr is None  # there is one such slate
    assert shown.released["why"].startswith(dict(shown.said)["the route"].removeprefix("tempered: "))
    assert shown.verdict == verdict(shown.ways, shown.private)
    assert Demonstration.from_json(json.loads(json.dumps(shown.to_json(), allow_nan=False))) == shown


def test_without_genres_similarity_is_private_and_diversity_is_not_told(ratings: Ratings) -> None:
    shown = demonstrate(replace(ratings, catalogue=replace(ratings.catalogue, genres=None)))
    assert isinstance(shown, Demonstration)
    assert shown.private.method == "natural"  # nothing public says what is alike
    assert len([way for way in shown.ways if way.method == "natural"]) == 1
    assert all(DIVERSITY not in way.figures for way in shown.ways)


def test_one_item_is_no_choice() -> None:
    starts, items, values = np.array([0, 1], np.int32), np.array([0], np.int32), np.array([5.0], np.float32)
    found = demonstrate(Ratings(starts, items, values, None, np.array([7]), Catalogue(np.array([1])), HALF_STARS))
    assert isinstance(found, Skipped)
    assert "two listed items" in found.reason


def test_the_verdict_says_what_the_table_says() -> None:
    def told(mine: float, plain: float = 0.9) -> str:
        private = Way("tempered", Kind.PRIVATE, 1.0, {POPULARITY: Figure(mine, 0.01)})
        uniform = Way("uniform", Kind.NOTHING, 0.0, {POPULARITY: Figure(0.1, 0.01)})
        greedy = Way("most liked", Kind.PLAIN, float("inf"), {POPULARITY: Figure(plain)})
        return verdict([private, uniform, greedy], private)

    assert "cannot be told from one drawn without data" in told(0.12)
    assert told(0.8).endswith("has 80% of the most liked items' likes; without privacy 90%.")
    assert "with more users" in told(0.3)
