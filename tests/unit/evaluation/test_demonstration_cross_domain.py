"""Cross-domain, shown: real releases of a real ledger, figures that follow from them, and a verdict that fits."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tacit.data import Ratings, load_ratings
from tacit.evaluation.demonstration import cross_domain as part
from tacit.evaluation.demonstration.cross_domain import ERROR, _divided, demonstrate, verdict
from tacit.evaluation.demonstration.demonstration import GAIN, Demonstration, Figure, Kind, Skipped, Way
from tacit.models.cross_domain.transfer import NO_TRANSFER


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return load_ratings("synthetic")


def way(method: str, epsilon: float, error: float, gain: float = 0.0, spread: float = 0.001) -> Way:
    kind = Kind.PLAIN if epsilon == float("inf") else Kind.PRIVATE if epsilon else Kind.NOTHING
    return Way(method, kind, epsilon, {ERROR: Figure(error), GAIN: Figure(gain, spread)})


def test_what_the_asked_users_rated_in_the_target_is_not_there_to_be_released(ratings: Ratings) -> None:
    world = _divided(ratings)
    assert world is not None
    counts = world.known.target.counts
    assert world.held.asked.size > 100
    assert (counts[world.held.asked] == 0).all()
    assert world.held.hidden.nnz + len(world.known.target) + len(world.known.source) == len(ratings)
    assert world.own.nnz == world.known.source.counts[world.held.asked].sum()


def test_two_releases_are_charged_and_what_is_shown_follows_from_them(
    ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "EPSILONS", (0.01, 64.0))  # one that can tell nothing, and one that must
    shown = demonstrate(ratings)
    assert isinstance(shown, Demonstration)
    assert [one["epsilon"] for one in shown.released["guarantees"]] == pytest.approx([0.01, 64.0])
    assert (shown.guarantee.epsilon, shown.guarantee.delta) == (pytest.approx(64.0), 1e-6)
    assert "2 charged, 64.01 epsilon in all" in shown.statement
    assert "the one at epsilon 0.01 shown beside it 64.01 epsilon were charged" in shown.left
    assert shown.released["source"] + shown.released["target"] == ratings.n_items
    ways = {(one.method, one.epsilon): one for one in shown.ways}
    own, nothing, much = ways["own mean", 0.0], ways["moments", 0.01], ways["moments", 64.0]
    assert (shown.private, shown.nothing) == (much, own)
    assert nothing.gain.value < 0.5 * much.gain.value
    assert much.gain.value > 4.0 * (much.gain.stderr or 0.0) > 0.0
    assert much.gain.value == pytest.approx(own.figures[ERROR].value - much.figures[ERROR].value)
    assert all(one.figures[ERROR].stderr for one in shown.ways)
    plain = [one for one in shown.ways if one.kind is Kind.PLAIN]
    assert {one.method for one in plain} == {"item average", "offsets", "NX-Map"}
    assert shown.plain.figures[ERROR].value == min(one.figures[ERROR].value for one in plain)
    said = dict(shown.said)
    world = _divided(ratings)
    assert world is not None
    served = said["is shown"].removesuffix(" (worked out on her own side)").split("; ")
    assert len(served) == len(set(served)) == part.K
    assert set(served) <= set(world.known.target.catalogue.titles or ())
    assert said["at epsilon 64"] == shown.released["remarks"][1]
    assert shown.verdict == verdict(shown.ways, ratings.n_users)
    assert Demonstration.from_json(json.loads(json.dumps(shown.to_json(), allow_nan=False))) == shown


def test_that_no_taste_was_carried_over_is_told(ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "EPSILONS", (0.001,))
    monkeypatch.setattr(part, "order_of_magnitude", lambda users: 1)  # no head at all
    shown = demonstrate(ratings)
    assert isinstance(shown, Demonstration)
    assert NO_TRANSFER in shown.released["remarks"][0]
    assert "averages only" in shown.private.remark
    assert "beside" not in shown.left  # one release only


def test_items_without_genres_are_dealt_out_in_turn(ratings: Ratings) -> None:
    bare = replace(ratings, catalogue=replace(ratings.catalogue, genres=None))
    world = _divided(bare)
    assert world is not None
    assert world.known.source.catalogue.ids.tolist() == bare.catalogue.ids[::2].tolist()


def test_few_users_are_not_shown_and_the_reason_is_told(ratings: Ratings) -> None:
    few = ratings.select_users(np.arange(ratings.n_users) < 5)
    for world in (few, ratings.subset(ratings.items == 0)):
        found = demonstrate(world)
        assert isinstance(found, Skipped)
        assert "ratings in each half" in found.reason


def test_the_verdict_says_what_the_table_says() -> None:
    inf = float("inf")
    rest = [way("own mean", 0.0, 0.75), way("item average", inf, 0.72), way("NX-Map", inf, 0.7)]
    both = verdict([*rest, way("moments", 2.0, 0.74, 0.01), way("moments", 8.0, 0.72, 0.03)], 671)
    assert both.startswith("Better than a user's own mean at epsilon 2 and 8.")
    assert "At 8 it is 0.020 stars worse" in both
    one = verdict([*rest, way("moments", 2.0, 0.749, 0.0019), way("moments", 8.0, 0.69, 0.06)], 671)
    assert "at epsilon 8; at 2 not by more than chance" in one
    assert "At 8 it is no worse than" in one
    assert "not worth its budget" in verdict([*rest, way("moments", 2.0, 0.8, -0.05), way("moments", 8.0, 0.75)], 671)
    assert "not worth its budget" in verdict([*rest, way("moments", 8.0, 0.75, 0.0, 0.0)], 671)
