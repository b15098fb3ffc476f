"""Slates and counts that could fail later are refused before the charge, in the caller's terms."""

import inspect
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.curator import account, plan
from tacit.curator.private_slates.draw import _FIXED, _FREE
from tacit.data.ratings import COUNTS, Ratings, Scale
from tacit.errors import InvalidParameter
from tacit.ledger import Budget
from tacit.mechanisms import NaturalSlate
from tests.releases import message_of
from tests.unit.curator.slates_charged import DELTA, RELEASES, charges, stored
from tests.unit.curator.slates_world import FILMS, curator, ratings, some_ratings


def with_ids(ids: Any, data: Ratings | None = None) -> Ratings:
    data = some_ratings() if data is None else data
    return replace(data, catalogue=replace(data.catalogue, ids=np.array(ids)))


@pytest.mark.parametrize(
    "ids",
    [
        [*(f"a{place:02}" for place in range(FILMS - 1)), "b" * 201],
        ["", *(f"a{place:02}" for place in range(FILMS - 1))],
        [*range(FILMS - 1), 2**53 + 1],
        [-(2**53) - 1, *range(FILMS - 1)],
        [place + 0.5 for place in range(FILMS)],
        [*(f"a{place:02}" for place in range(FILMS - 1)), "b\ud800"],
    ],
    ids=["long", "empty", "large", "small", "float", "surrogate"],
)
def test_ids_that_no_message_carries_are_refused_at_once(tmp_path: Path, ids: list[Any]) -> None:
    with pytest.raises(InvalidParameter, match="ids of items"):
        curator(tmp_path, with_ids(ids))
    assert not (tmp_path / "curator.db").exists()


def test_the_longest_ids_are_carried(tmp_path: Path) -> None:
    for number, ids in enumerate(([*range(FILMS - 1), 2**53], [f"{place:0200}" for place in range(FILMS)])):
        with curator(tmp_path, with_ids(ids), ledger=tmp_path / f"{number}.db") as holder:
            assert holder.slate(FILMS, 0.5, route="natural").items == tuple(ids)
            assert holder.popularity(0.5).items == tuple(ids)


def test_the_id_of_an_unlisted_item_refuses_nothing(tmp_path: Path) -> None:
    data = with_ids([*range(FILMS - 1), 2**60], some_ratings(unlisted=(FILMS - 1,)))
    with curator(tmp_path, data) as holder:
        assert holder.items.tolist() == [*range(FILMS - 1)]


def _longest(message: Any) -> Any:
    """A message of this kind at its longest: every number -2^53, a step of as many digits as may be."""
    steps = np.full(message.steps.shape, -(2**53))
    content = {field.name: getattr(message, field.name) for field in fields(message)}
    return message_of(type(message), **content | {"steps": steps, "step": Fraction(2**1100 - 1, 2**1099)})


@pytest.mark.parametrize("kind", ["popularity", "similarity"])
def test_what_may_be_too_long_to_be_kept_is_refused_before_it_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    data = with_ids([f"{place:02}{'«' * 60}" for place in range(FILMS)])  # longer in JSON than in characters
    with curator(tmp_path, data, budget=DELTA) as holder:
        longest = holder._account.pack(_longest(RELEASES[kind](holder)).to_json())
        kept = stored(holder)[0]
        most = len(kept) - len(kept.split(b"\n", 2)[2]) + len(longest)
        again: Any = {"request_id": "again"}
        monkeypatch.setattr(account, "MOST_BYTES", most - 1)
        with pytest.raises(InvalidParameter, match="`among`"):
            getattr(holder, kind)(0.5, **again)
        assert charges(holder) == 1
        monkeypatch.setattr(account, "MOST_BYTES", most + 2_000)  # not much more is asked for than is needed
        assert len(getattr(holder, kind)(0.5, **again)) == FILMS
        assert len(getattr(holder, kind)(0.5, among=data.catalogue.ids[:6].tolist())) == 6


def test_room_is_asked_for_the_longest_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with curator(tmp_path) as holder:
        promise = NaturalSlate(FILMS, 3, 0.5).guarantee
        longest = len(holder._account.pack({"steps": [-(2**53)] * 10_000}))
        monkeypatch.setattr(account, "MOST_BYTES", longest)
        with pytest.raises(InvalidParameter, match="longer than"):
            holder._account.require_room(holder._slates.likes.id_bytes, 1, 10_000, promise)
        holder._account.require_room(holder._slates.likes.id_bytes, 1, 9_000, promise)


def test_slates_that_may_be_too_long_are_refused_before_they_are_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = ["a", "b", *(f"c{place:0199}" for place in range(FILMS - 2))]
    with curator(tmp_path, with_ids(ids)) as holder:
        monkeypatch.setattr(account, "MOST_BYTES", 4_000)
        holder.slate(3, 0.5, route="natural")
        for route, k in (("natural", 12), ("subset", 3)):  # of a subset the size is drawn
            with pytest.raises(InvalidParameter, match="longer than"):
                holder.slate(k, 0.5, route=route)
        with pytest.raises(InvalidParameter, match="longer than"):
            holder.popularity(0.5)
        assert charges(holder) == 1
        promised = len(holder._account.pack(holder.plan(2, 0.5, route="natural").each.to_json()))
        monkeypatch.setattr(
            account, "MOST_BYTES", promised + account._FRAME + 300
        )  # too little for two of the longest ids
        with pytest.raises(InvalidParameter, match="longer than"):
            holder.slate(2, 0.5, route="natural")
        assert holder.slate(1, 0.5, route="natural", among=["a", "b"]).items in (("a",), ("b",))


def test_more_items_than_a_message_names_are_refused_before_they_are_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "MOST_ITEMS", FILMS - 1)
    with curator(tmp_path) as holder:
        for ask in (
            lambda: holder.popularity(0.5),
            lambda: holder.slate(FILMS, 0.5, route="natural"),
            lambda: holder.slate(3, 0.5, route="subset"),
            lambda: holder.slate(3, 0.5, slates=None),
        ):
            with pytest.raises(InvalidParameter, match="11 items"):
                ask()
        assert charges(holder) == 0
        assert len(holder.slate(FILMS - 1, 0.5, route="natural")) == FILMS - 1


def test_counts_whose_steps_no_message_carries_are_refused_before_they_are_charged(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        for wrong in (0.9e-100, 1.1e100):
            with pytest.raises(InvalidParameter, match="likes_each"):
                holder.popularity(0.5, likes_each=wrong)
        assert charges(holder) == 0
        for right in (1e-100, 1e100):
            assert np.isfinite(holder.popularity(0.5, likes_each=right).counts()).all()


@pytest.mark.parametrize("like", [0.5, 5.5, -1.0])
def test_a_like_is_on_the_scale_of_the_ratings(tmp_path: Path, like: float) -> None:
    with pytest.raises(InvalidParameter, match="scale of these ratings, 1 to 5"):
        curator(tmp_path, like=like)


def test_likes_at_the_ends_of_the_scale_count(tmp_path: Path) -> None:
    table = np.tile([1, 5], (30, FILMS // 2))
    for like, expected in ((1.0, 1.0), (5.0, 0.5)):
        with curator(tmp_path, ratings(table), like=like, ledger=tmp_path / f"{like}.db") as holder:
            assert holder._slates.likes.rows.toarray().mean() == expected
    with curator(tmp_path, replace(ratings(table), scale=COUNTS), like=50.0) as holder:  # counts have no end
        assert holder._slates.likes.rows.nnz == 0
    with pytest.raises(InvalidParameter, match="nothing would be a like"):
        curator(tmp_path, replace(ratings(table), scale=Scale(0.0, 1.0)))


@pytest.mark.parametrize("size", [1.7e308, 1e101, 1e-101, 5e-324])
def test_features_that_floats_cannot_multiply_are_refused(tmp_path: Path, size: float) -> None:
    with pytest.raises(InvalidParameter, match="another unit"):
        curator(tmp_path, features=size * np.eye(FILMS))


@pytest.mark.parametrize("size", [1e100, 1e-100])
def test_features_of_any_other_size_make_slates(tmp_path: Path, size: float) -> None:
    with curator(tmp_path, features=size * np.eye(FILMS)) as holder:
        for route in ("tempered", "feature", "counts", "sparse"):
            assert len(holder.slate(3, 1.0, route=route, threshold=5)) == 3
        assert len(holder.slate(3, 1.0, route="counts", request_id="monday")) == 3
    with curator(tmp_path, features=np.zeros((FILMS, 2)), ledger=tmp_path / "zero.db") as holder:
        assert len(holder.slate(3, 1.0, route="counts")) == 3


def test_nearly_dependent_features_are_refused_in_the_callers_terms(tmp_path: Path) -> None:
    features = np.eye(FILMS)[:, :4].copy()
    features[4:] = np.arange(32).reshape(8, 4) % 5
    features[:, 3] = features[:, 2] + 1e-11 * np.arange(FILMS)
    with curator(tmp_path, features=features) as holder:
        assert holder._slates.likes.rank == 4
        with pytest.raises(InvalidParameter, match="the features are nearly dependent") as refused:
            holder.slate(4, 1.0, route="tempered")
        assert "most_nats" not in str(refused.value)
        assert charges(holder) == 0
        assert len(holder.slate(4, 1.0, route="top-k")) == 4


def test_a_request_for_too_few_items_is_refused_in_the_callers_terms(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        with pytest.raises(InvalidParameter, match="weigh at least 4 items above 0") as refused:
            holder.slate(4, 1.0, route="tempered", request={1: 1.0, 2: 1.0, 3: 1.0})
        assert "add features" not in str(refused.value)
        assert charges(holder) == 0
        assert len(holder.slate(3, 1.0, route="tempered", request={1: 1.0, 2: 1.0, 3: 1.0})) == 3


def test_a_kernel_needs_a_budget_with_a_delta(tmp_path: Path) -> None:
    with curator(tmp_path, budget=Budget(epsilon=1)) as holder:
        with pytest.raises(InvalidParameter, match=r"needs a budget with a delta.*epsilon 1 in all"):
            holder.similarity(0.5)
        assert charges(holder) == 0


@pytest.mark.parametrize("budget", [1.0, "1", [1.0], [], [Budget(1.0), 2], {"epsilon": 1.0}])
def test_a_budget_is_a_budget(tmp_path: Path, budget: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"Budget\(epsilon="):
        curator(tmp_path, budget=budget)


def test_options_are_those_of_a_plan_or_refused_by_name(tmp_path: Path) -> None:
    known = set(inspect.signature(plan).parameters) - {"k", "epsilon", "slates", "similarity", "delta"}
    assert known == {*_FREE, *_FIXED}
    with curator(tmp_path) as holder:
        assert holder.plan(3, most_likes=17).options.most_likes == 17.0
        assert holder.plan(3).options.most_likes is None
        assert len(holder.slate(3, 0.5, most_likes=17)) == 3
        for option in ({"accounting": "basic"}, {"items": 5}, {"rank": 2}, {"size": 3}):
            for ask in (holder.slate, holder.plan):
                with pytest.raises(InvalidParameter, match=next(iter(option))):
                    ask(3, 0.5, **option)  # type: ignore[operator]
        assert charges(holder) == 1
    with curator(tmp_path, most_likes=30, ledger=tmp_path / "b.db") as holder:
        assert holder.plan(3).options.most_likes == 30.0
        assert holder.plan(3, most_likes=17).options.most_likes == 17.0


@pytest.mark.parametrize("wrong", ["", "a\nb", "x" * 101, 7])
def test_ids_are_short_texts(tmp_path: Path, wrong: Any) -> None:
    with curator(tmp_path) as holder:
        for ask in (
            lambda: holder.slate(3, 0.5, request_id=wrong),
            lambda: holder.slate(3, 0.5, slates=None, request_id=wrong),
            lambda: holder.popularity(0.5, request_id=wrong),
        ):
            with pytest.raises(InvalidParameter, match="request_id"):
                ask()
        assert charges(holder) == 0
        longest = "x" * 100
        holder.slate(3, 0.5, request_id=longest)
        holder.popularity(0.5, request_id=longest)
