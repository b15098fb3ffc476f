"""One charge, one answer: what could fail later is refused before the charge, and what fails all the same is never drawn again."""

import inspect
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.curator import Curator, plan, slate_account
from tacit.curator.curator import REQUESTED
from tacit.curator.fit import RATED_AT_ALL
from tacit.curator.slate_once import _drawn, seed_of
from tacit.curator.slate_request import _FIXED, _FREE
from tacit.data.ratings import Ratings
from tacit.data.scale import COUNTS, Scale
from tacit.errors import Conflict, InvalidMessage, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Release
from tacit.ledger import Budget, PrivacyLedger, privacy
from tacit.mechanisms import GaussianKernel, NaturalSlate
from tacit.messages.private_slates import Popularity, Similarity, Slate
from tacit.models.dpp.coins import RngCoins
from tacit.systems.private_slates import simulate
from tests.unit.curator.slates_world import FILMS, GENRES, CountedNoise, curator, ratings, some_ratings

DELTA = Budget(100.0, 1e-6)
RELEASES: dict[str, Callable[[Curator], object]] = {
    "slate": lambda holder: holder.slate(3, 0.5, route="natural", request_id="monday"),
    "popularity": lambda holder: holder.popularity(0.5),
    "similarity": lambda holder: holder.similarity(0.5, 1e-7),
    "counts": lambda holder: holder.slate(3, 0.5, slates=None, request_id="monday"),
}
EVERY = tuple(range(FILMS))  # without a list of films: all are known by ratings alone


class BrokenNoise:
    """Noise that ends in an error which tells how often it was asked for."""

    caveat = None

    def __init__(self) -> None:
        self.draws = 0

    def draw(self, count: int) -> bytes:
        self.draws += 1
        raise ValueError(f"draw number {self.draws} of {count} bytes")


def with_ids(ids: Any, data: Ratings | None = None) -> Ratings:
    data = some_ratings() if data is None else data
    return replace(data, catalogue=replace(data.catalogue, ids=np.array(ids)))


def charges(holder: Curator) -> int:
    return holder.statement().charges


def stored(holder: Curator) -> list[bytes]:
    return [one.content for one in holder.ledger.stored("users of films")]


# ---- an error after the charge


@pytest.mark.parametrize("kind", RELEASES)
def test_an_error_while_drawing_uses_the_id_up_and_tells_nothing(tmp_path: Path, kind: str) -> None:
    told = set()
    noise = BrokenNoise()
    with curator(tmp_path, budget=DELTA, noise=noise) as holder:
        for _ in range(3):
            with pytest.raises(Conflict) as refused:
                RELEASES[kind](holder)
            told.add(str(refused.value))
            assert refused.value.__cause__ is None
            assert refused.value.__context__ is None
        assert noise.draws == 1  # the id never draws again
        assert charges(holder) == 1
        assert [content.split(b"\n")[2] for content in stored(holder)] == [b"null"]
    sound = CountedNoise()
    with curator(tmp_path, budget=DELTA, noise=sound) as holder:  # nor does it in another process, with better noise
        with pytest.raises(Conflict) as refused:
            RELEASES[kind](holder)
        told.add(str(refused.value))
        assert sound.draws == 0
        assert charges(holder) == 1
        assert len(holder.slate(3, 0.5, route="natural", request_id="tuesday")) == 3  # another id does
    assert len(told) == 1
    assert not re.search(r"\d", told.pop())


@pytest.mark.parametrize(
    ("kind", "message"), [("slate", Slate), ("popularity", Popularity), ("similarity", Similarity)]
)
def test_a_message_that_refuses_what_was_drawn_uses_the_id_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, message: type
) -> None:
    drawn = []

    def refuse(release: Release[Any], *_: object) -> None:
        drawn.append(release)
        raise InvalidMessage("this tells what was drawn")

    noise = CountedNoise()
    with curator(tmp_path, budget=DELTA, noise=noise) as holder:
        with monkeypatch.context() as patched:
            patched.setattr(message, "from_release", refuse)
            for _ in range(2):
                with pytest.raises(Conflict):
                    RELEASES[kind](holder)
        draws = noise.draws
        with pytest.raises(Conflict):
            RELEASES[kind](holder)
        assert noise.draws == draws
        assert len(drawn) == 1


def test_what_is_too_long_to_be_kept_uses_the_id_up_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with curator(tmp_path) as holder:
        monkeypatch.setattr(holder._account, "require_room", lambda *_: None)
        monkeypatch.setattr(slate_account, "MOST_BYTES", 300)  # room for the digests and no more
        for _ in range(2):
            with pytest.raises(Conflict, match="used up"):
                holder.popularity(1.0)
        monkeypatch.undo()
        with pytest.raises(Conflict, match="used up"):
            holder.popularity(1.0)
        assert charges(holder) == 1


def test_what_is_exactly_as_long_as_may_be_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with curator(tmp_path) as holder:
        promise = NaturalSlate(FILMS, 3, 0.5).guarantee
        found = holder._account.release("a", "b", promise, lambda: b'"' + b"x" * 98 + b'"')
        (content,) = stored(holder)
        monkeypatch.setattr(slate_account, "MOST_BYTES", len(content))
        assert holder._account.release("c", "b", promise, lambda: b'"' + b"x" * 98 + b'"') == found
        with pytest.raises(Conflict, match="used up"):
            holder._account.release("d", "b", promise, lambda: b'"' + b"x" * 99 + b'"')


def test_an_id_that_is_used_up_is_still_not_anothers(tmp_path: Path) -> None:
    with curator(tmp_path, noise=BrokenNoise()) as holder:
        for k in (3, 4):
            with pytest.raises(Conflict, match="used up" if k == 3 else "of another kind"):
                holder.slate(k, 0.5, route="natural", request_id="monday")


def test_what_a_caller_has_set_in_numpy_makes_no_error_of_a_draw(tmp_path: Path) -> None:
    def draw() -> bytes:
        return b'"%d"' % int(np.isinf(np.ones(1) / np.zeros(1))[0])

    with curator(tmp_path) as holder, np.errstate(all="raise"):
        assert holder._account.release("a", "b", NaturalSlate(FILMS, 3, 0.5).guarantee, draw) == "1"


def test_the_refusal_of_a_long_release_does_not_say_how_long_it_is(tmp_path: Path) -> None:
    told = set()
    with PrivacyLedger.create(tmp_path / "ledger.db") as ledger:
        for more in (1, 2):
            with pytest.raises(InvalidParameter, match="at most 16,777,216 bytes") as refused:
                ledger.keep("people", "a", bytes(privacy.MOST_BYTES + more))
            told.add(str(refused.value))
    assert len(told) == 1


# ---- refused before the charge


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
    return replace(message, steps=steps, step=Fraction(2**1100 - 1, 2**1099))


@pytest.mark.parametrize("kind", ["popularity", "similarity"])
def test_what_may_be_too_long_to_be_kept_is_refused_before_it_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    data = with_ids([f"{place:02}{'«' * 60}" for place in range(FILMS)])  # longer in JSON than in characters
    with curator(tmp_path, data, budget=DELTA) as holder:
        longest = holder._account.packed(_longest(RELEASES[kind](holder)).to_json())
        kept = stored(holder)[0]
        most = len(kept) - len(kept.split(b"\n", 2)[2]) + len(longest)
        again: Any = {"request_id": "again"}
        monkeypatch.setattr(slate_account, "MOST_BYTES", most - 1)
        with pytest.raises(InvalidParameter, match="`among`"):
            getattr(holder, kind)(0.5, **again)
        assert charges(holder) == 1
        monkeypatch.setattr(slate_account, "MOST_BYTES", most + 2_000)  # not much more is asked for than is needed
        assert len(getattr(holder, kind)(0.5, **again)) == FILMS
        assert len(getattr(holder, kind)(0.5, among=data.catalogue.ids[:6].tolist())) == 6


def test_room_is_asked_for_the_longest_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with curator(tmp_path) as holder:
        promise = NaturalSlate(FILMS, 3, 0.5).guarantee
        longest = len(holder._account.packed({"steps": [-(2**53)] * 10_000}))
        monkeypatch.setattr(slate_account, "MOST_BYTES", longest)
        with pytest.raises(InvalidParameter, match="longer than"):
            holder._account.require_room(holder._likes.id_bytes, 1, 10_000, promise)
        holder._account.require_room(holder._likes.id_bytes, 1, 9_000, promise)


def test_slates_that_may_be_too_long_are_refused_before_they_are_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = ["a", "b", *(f"c{place:0199}" for place in range(FILMS - 2))]
    with curator(tmp_path, with_ids(ids)) as holder:
        monkeypatch.setattr(slate_account, "MOST_BYTES", 4_000)
        holder.slate(3, 0.5, route="natural")
        for route, k in (("natural", 12), ("subset", 3)):  # of a subset the size is drawn
            with pytest.raises(InvalidParameter, match="longer than"):
                holder.slate(k, 0.5, route=route)
        with pytest.raises(InvalidParameter, match="longer than"):
            holder.popularity(0.5)
        assert charges(holder) == 1
        promised = len(holder._account.packed(holder.plan(2, 0.5, route="natural").each.to_json()))
        monkeypatch.setattr(
            slate_account, "MOST_BYTES", promised + slate_account._FRAME + 300
        )  # too little for two of the longest ids
        with pytest.raises(InvalidParameter, match="longer than"):
            holder.slate(2, 0.5, route="natural")
        assert holder.slate(1, 0.5, route="natural", among=["a", "b"]).items in (("a",), ("b",))


def test_more_items_than_a_message_names_are_refused_before_they_are_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slate_account, "MOST_ITEMS", FILMS - 1)
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
            assert holder._likes.rows.toarray().mean() == expected
    with curator(tmp_path, replace(ratings(table), scale=COUNTS), like=50.0) as holder:  # counts have no end
        assert holder._likes.rows.nnz == 0
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
        assert holder._likes.rank == 4
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
    with curator(tmp_path, budget=None) as holder:
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


# ---- what an id stands for


@pytest.mark.parametrize("accounting", ["basic", "zcdp"])
def test_counts_are_charged_once_whoever_asks_first(tmp_path: Path, accounting: str) -> None:
    noise = CountedNoise()
    with curator(tmp_path, budget=Budget(1.0, 1e-6), accounting=accounting, noise=noise) as holder:
        counts = holder.popularity(0.5)
        drawn = noise.draws
        slate = holder.slate(3, 0.5, slates=None)
        assert slate.guarantee == counts.guarantee
        assert holder.slate(4, 0.5, slates=None, request_id="monday").guarantee == counts.guarantee
        assert noise.draws == drawn
        assert charges(holder) == 1
        assert counts.guarantee.epsilon == holder.plan(3, 0.5, None).epsilon
        if accounting == "basic":  # counts have no delta: with another one they are the same
            assert holder.popularity(0.5, delta=1e-7) == counts
            assert holder.slate(3, 0.5, slates=None, delta=1e-7) == slate
            assert charges(holder) == 1


def test_counts_cost_what_is_asked_for_by_the_budgets_own_accounting(tmp_path: Path) -> None:
    with curator(tmp_path, budget=Budget(1.0, 1e-6)) as holder:
        counts = holder.popularity(1.0)
        assert counts.guarantee.delta == 0.0
        assert counts.guarantee.epsilon == pytest.approx(0.2207, abs=1e-4)
        assert 0.99 < holder.statement().promised.epsilon <= 1.0
        assert holder.statement().promised.delta == 1e-6
    with curator(tmp_path, budget=Budget(1.0, 1e-6), accounting="basic", ledger=tmp_path / "basic.db") as holder:
        assert holder.popularity(1.0).guarantee.epsilon == 1.0


def test_another_like_is_another_release(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        holder.slate(3, 0.5, route="natural", request_id="monday")
        counts = holder.popularity(50.0)
    with curator(tmp_path, like=1.0) as holder:
        with pytest.raises(Conflict):
            holder.slate(3, 0.5, route="natural", request_id="monday")
        assert charges(holder) == 2
        assert holder.popularity(25.0).counts().sum() > 1.3 * counts.counts().sum()
        with pytest.raises(Conflict):
            holder.popularity(50.0, request_id=_id_of(holder, "popularity"))
        assert charges(holder) == 3


def _id_of(holder: Curator, kind: str) -> str:
    """The id of the first release of a kind, as a request_id."""
    return [one.release_id for one in holder.ledger.stored("users of films") if one.release_id.startswith(kind)][
        -1
    ].split(" ")[1]


def test_other_features_are_another_slate_and_the_same_counts(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        holder.slate(3, 0.5, route="feature", request_id="monday")
        counts = holder.popularity(0.5)
    for features in (np.eye(FILMS), np.eye(FILMS)[::-1].copy(), np.ones((FILMS, len(GENRES)))):
        with curator(tmp_path, features=features) as holder:
            with pytest.raises(Conflict):
                holder.slate(3, 0.5, route="feature", request_id="monday")
            assert holder.popularity(0.5) == counts  # features play no part in them
            assert charges(holder) == 2


def test_every_option_is_a_part_of_what_an_id_stands_for(tmp_path: Path) -> None:
    options: list[dict[str, Any]] = [
        {"route": "tempered", "most_likes": 20},
        {"route": "two-stage", "candidates": 6},
        {"route": "sparse", "threshold": 10},
        {"route": "natural", "sampler": "split"},
    ]
    other: list[dict[str, Any]] = [{"most_likes": 21}, {"candidates": 7}, {"threshold": 11}, {"sampler": "exact"}]
    with curator(tmp_path) as holder:
        for first, second in zip(options, other, strict=True):
            asked = {"k": 3, "epsilon": 0.5, "request_id": first["route"], **first}
            slate = holder.slate(**asked)
            with pytest.raises(Conflict):
                holder.slate(**{**asked, **second})
            assert holder.slate(**asked) == slate
        assert charges(holder) == 4


def test_releases_of_other_items_and_other_epsilons_are_told_apart(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        released = [holder.popularity(0.5 + step / 64) for step in range(20)]  # 16 digits to begin a digest with
        assert len({one.guarantee.epsilon for one in released}) == 20
        parts = [holder.popularity(0.5, among=[film, film + 1]) for film in range(1, 6)]
        assert [one.items for one in parts] == [(film, film + 1) for film in range(1, 6)]
        holder.popularity(0.5, likes_each=3.0)
        assert charges(holder) == 26
        holder.popularity(0.5, among=[1, 2], request_id="x")
        with pytest.raises(Conflict):
            holder.popularity(0.5, among=[1, 3], request_id="x")
        with pytest.raises(Conflict):
            holder.popularity(0.5, among=[1, 2], request_id="x", likes_each=3.0)


def test_kernels_of_other_deltas_are_told_apart(tmp_path: Path) -> None:
    with curator(tmp_path, budget=DELTA) as holder:
        assert holder.similarity(0.5, 1e-7) != holder.similarity(0.5, 1e-8)
        assert charges(holder) == 2


# ---- slates of their own from one release


def test_each_id_has_its_own_slate_from_the_counts(tmp_path: Path) -> None:
    noise = CountedNoise()
    with curator(tmp_path, noise=noise) as holder:
        greedy = holder.slate(4, 50.0, slates=None)
        drawn = noise.draws
        slates = {week: holder.slate(4, 50.0, slates=None, request_id=f"week {week}") for week in range(40)}
        assert len({slate.items for slate in slates.values()}) > 20
        assert all(len(set(slate.items)) == 4 and slate.guarantee == greedy.guarantee for slate in slates.values())
        assert all(list(slate.items) == sorted(slate.items) and slate.route == "counts" for slate in slates.values())
        assert holder.slate(4, 50.0, slates=None) == greedy
        assert noise.draws == drawn
        assert charges(holder) == 1
    with curator(tmp_path) as holder:  # another process, the same slates
        assert all(
            holder.slate(4, 50.0, slates=None, request_id=f"week {week}") == slate for week, slate in slates.items()
        )
    films = Counter(film for slate in slates.values() for film in slate.items)
    assert sum(films[film] for film in range(1, 5)) > 2 * sum(films[film] for film in range(FILMS - 3, FILMS + 1))


def test_each_id_has_its_own_slate_from_a_kernel(tmp_path: Path) -> None:
    with curator(tmp_path, budget=DELTA) as holder:
        asked: dict[str, Any] = {"k": 4, "epsilon": 10.0, "slates": None, "similarity": "private"}
        slates = [holder.slate(**asked, request_id=f"week {week}") for week in range(20)]
        assert len({slate.items for slate in slates}) > 5
        assert slates[3] == holder.slate(**asked, request_id="week 3")
        assert all(len(set(slate.items)) == 4 for slate in slates)
        assert charges(holder) == 1


def test_slates_of_an_id_may_have_more_items_than_features_have_directions(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        assert holder._likes.rank < 9
        slates = [holder.slate(9, 5.0, slates=None, request_id=f"week {week}") for week in range(20)]
        assert all(len(set(slate.items)) == 9 for slate in slates)
        assert len({slate.items for slate in slates}) > 5
        assert len(holder.slate(FILMS, 5.0, slates=None, request_id="all")) == FILMS


def test_without_features_items_are_drawn_by_their_quality(tmp_path: Path) -> None:
    data = ratings(np.full((2, 20), 5))
    bare = replace(data, catalogue=replace(data.catalogue, genres=None, vocabulary=()))
    with curator(tmp_path, bare) as holder:
        counts, coins = np.array([10.0, 5.0, *[-3.0] * 18]), RngCoins(np.random.default_rng(1))
        drawn = Counter(_drawn(counts, holder._likes, 1, coins).item() for _ in range(4_000))
        expected = np.exp([3.0, 1.5, *[0.0] * 18])
        assert [drawn[item] / 4_000 for item in range(20)] == pytest.approx(expected / expected.sum(), abs=0.03)
        assert len(holder.slate(2, 1.0, route="counts", request_id="monday")) == 2


def test_the_slate_of_an_id_hangs_on_the_release_too(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        seeds = {
            seed_of(holder._account, holder.plan(3, epsilon, None, among=among), holder._part(among), week)
            for epsilon in (0.5, 1.0)
            for among in (None, [1, 2, 3, 4, 5, 6])
            for week in ("week 1", "week 2")
        }
        assert len(seeds) == 8
        assert seed_of(holder._account, holder.plan(3, 0.5, None), holder._likes, None) is None


# ---- what is promised


def test_what_is_assumed_of_the_list_of_items_is_said_by_every_release(tmp_path: Path) -> None:
    with curator(tmp_path, some_ratings(unlisted=EVERY), budget=DELTA) as holder:
        part = [2, 4, 6, 8, 10]
        wishes = dict.fromkeys(range(2, FILMS + 1), 1.0)
        for among in (None, part):
            for guarantee in (
                holder.slate(3, 0.5, route="natural", among=among).guarantee,
                holder.popularity(0.5, among=among).guarantee,
                holder.similarity(0.5, 1e-7, among=among).guarantee,
                holder.slate(3, 0.5, slates=None, among=among).guarantee,
            ):
                assert RATED_AT_ALL in guarantee.assumes
                assert REQUESTED not in guarantee.assumes
            asked = holder.slate(3, 0.5, route="natural", among=among, request=wishes).guarantee
            assert {RATED_AT_ALL, REQUESTED} <= asked.assumes


def test_a_request_among_a_part_weighs_the_items_of_that_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    prepare = NaturalSlate.prepare

    def noted(self: NaturalSlate, rows: Any, **options: Any) -> Any:
        seen.append(options.get("request"))
        return prepare(self, rows, **options)

    monkeypatch.setattr(NaturalSlate, "prepare", noted)
    with curator(tmp_path) as holder:
        wishes = {1: 0.9, 5: 0.25, 9: 0.5, 12: 1.0}
        holder.slate(2, 0.5, route="natural", request=wishes, among=[12, 5, 9, 7])
    assert seen[0].tolist() == [0.25, 0.0, 0.5, 1.0]


def test_a_release_with_a_larger_delta_than_was_charged_does_not_leave(tmp_path: Path) -> None:
    charged = GaussianKernel(3, 0.5, 1e-7).guarantee
    with curator(tmp_path, budget=DELTA) as holder:
        plain = Guarantee(0.5, ONE_USER, delta=1e-7)
        for promised in (charged, plain):
            with pytest.raises(InvalidParameter, match="promises less"):
                holder._account.stated(Release(None, replace(promised, delta=2e-7)), promised)
        assert holder._account.stated(Release(None, Guarantee(0.5, ONE_USER, delta=1e-8)), plain).guarantee == plain


def test_the_delta_of_several_budgets_is_the_least(tmp_path: Path) -> None:
    budgets = [Budget(1.0, 1e-4), Budget(0.5, 1e-7, per="day"), Budget(0.7, 1e-5, per="month")]  # type: ignore[arg-type]
    with curator(tmp_path, budget=budgets) as holder:
        assert holder._account.delta == 1e-7
        assert holder.plan(3, 0.5, 10, similarity="private").delta == 1e-7


def test_slates_are_not_counted_by_pld(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="not by 'pld'"):
        curator(tmp_path, budget=Budget(1.0, 1e-6), accounting="pld")
    with PrivacyLedger.create(tmp_path / "ledger.db") as ledger:
        each = NaturalSlate(FILMS, 3, 0.1).guarantee
        ledger.enrol("users of films", Budget(1.0, 1e-6), protects=ONE_USER, accounting="pld", each=each)
        with pytest.raises(InvalidParameter, match="not by 'pld'"):
            curator(tmp_path, ledger=ledger, budget=None)


def test_only_so_many_set_ups_are_kept(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        for step in range(40):
            holder.slate(3, 0.5 + step / 64, route="natural")
            assert 1 <= len(holder._ready) <= 16
            holder.plan(2, 0.5, among=[1 + step % FILMS, 1 + (step * 5 + 2) % FILMS, 1 + (step // 2 + 6) % FILMS])
            assert 1 <= len(holder._parts) <= 16


def test_a_server_gets_the_counts_that_were_planned(tmp_path: Path) -> None:
    for delta in (None, 1e-7):
        with curator(tmp_path, budget=Budget(1.0, 1e-6), ledger=tmp_path / f"{delta}.db") as holder:
            options = {} if delta is None else {"delta": delta}
            outcome = simulate(holder, 3, 0.5, None, **options)
            assert outcome.guarantee == outcome.plan.each
            assert holder.slate(3, 0.5, slates=None, **options).guarantee == outcome.guarantee
            assert charges(holder) == 1
