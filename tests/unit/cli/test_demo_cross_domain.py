"""The transfer that `tacit demo` shows: real releases of a real ledger, figures that follow from them, and a verdict that fits."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from tacit.cli import demo_cross_domain as shown_part
from tacit.cli.demo import _carried
from tacit.cli.demo_cross_domain import Way, _divided, show, verdict
from tacit.data import Ratings, load_ratings
from tacit.models.cross_domain.transfer import NO_TRANSFER


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return load_ratings("synthetic")


def way(method: str, epsilon: float, error: float, gain: float = 0.0, spread: float = 0.001) -> Way:
    return Way(method, epsilon, error, gain, spread, "")


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
    monkeypatch.setattr(shown_part, "EPSILONS", (0.01, 64.0))  # one that can tell nothing, and one that must
    console = Console(record=True, width=400, file=io.StringIO())
    shown = show(ratings, console)
    assert shown is not None
    assert [guarantee.epsilon for guarantee in shown.guarantees] == pytest.approx([0.01, 64.0])
    assert all(guarantee.delta == 1e-6 for guarantee in shown.guarantees)
    assert "2 charged, 64.01 epsilon in all" in shown.statement
    assert shown.source + shown.target == ratings.n_items
    ways = {(one.method, one.epsilon): one for one in shown.ways}
    own, nothing, much = ways["own mean", 0.0], ways["moments", 0.01], ways["moments", 64.0]
    assert own.gain == own.gain_error == 0.0
    assert nothing.gain <= 2.0 * nothing.gain_error
    assert much.gain > 4.0 * much.gain_error > 0.0
    assert much.gain == pytest.approx(own.error - much.error)
    assert {one.method for one in shown.ways if one.epsilon == float("inf")} == {
        "item average", "user mean + item offset", "NX-Map",
    }  # fmt: skip
    assert len(shown.served) == len(set(shown.served)) == 5
    world = _divided(ratings)
    assert world is not None
    assert set(shown.served) <= set(world.known.target.catalogue.titles or ())
    assert set(shown.liked) <= set(world.known.source.catalogue.titles or ())
    assert len(shown.remarks) == 2
    printed = console.export_text()
    assert all(remark in printed for remark in shown.remarks)
    assert str(shown.guarantees[0]) in printed
    assert shown.verdict == verdict(shown.ways, ratings.n_users)
    written = json.loads(json.dumps(_carried(shown), allow_nan=False))
    assert written["ways"][-1]["epsilon"] == "inf"
    assert written["guarantees"][1]["epsilon"] == pytest.approx(64.0)


def test_that_no_taste_was_carried_over_is_told(ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_part, "EPSILONS", (0.001,))
    monkeypatch.setattr("tacit.evaluation.cross_domain.moments.order_of_magnitude", lambda users: 1)  # no head at all
    shown = show(ratings, Console(quiet=True))
    assert shown is not None
    assert NO_TRANSFER in shown.remarks[0]
    assert "averages only" in next(one.remark for one in shown.ways if one.method == "moments")


def test_items_without_genres_are_dealt_out_in_turn(ratings: Ratings) -> None:
    bare = replace(ratings, catalogue=replace(ratings.catalogue, genres=None))
    world = _divided(bare)
    assert world is not None
    assert world.known.source.catalogue.ids.tolist() == bare.catalogue.ids[::2].tolist()


def test_few_users_are_not_shown(ratings: Ratings) -> None:
    few = ratings.select_users(np.arange(ratings.n_users) < 5)
    assert show(few, Console(quiet=True)) is None
    assert show(ratings.subset(ratings.items == 0), Console(quiet=True)) is None


def test_the_verdict_says_what_the_table_says() -> None:
    rest = [
        way("own mean", 0.0, 0.75, 0.0, 0.0),
        way("item average", float("inf"), 0.72),
        way("NX-Map", float("inf"), 0.7),
    ]
    both = verdict([*rest, way("moments", 2.0, 0.74, 0.01), way("moments", 8.0, 0.72, 0.03)], 671)
    assert both.startswith("Better than a user's own mean at epsilon 2 and 8.")
    assert "NX-Map, errs by 0.700; the release at epsilon 8 errs by 0.020 more" in both
    one = verdict([*rest, way("moments", 2.0, 0.749, 0.0019), way("moments", 8.0, 0.69, 0.06)], 671)
    assert "at epsilon 8; at 2 not by more than chance" in one
    assert "epsilon 8 is level with it or better" in one
    assert "not worth its budget" in verdict([*rest, way("moments", 2.0, 0.8, -0.05), way("moments", 8.0, 0.75)], 671)
    assert "not worth its budget" in verdict([*rest, way("moments", 8.0, 0.75, 0.0, 0.0)], 671)
