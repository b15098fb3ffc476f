"""The curator: charged before anything is drawn, drawn once for each id, never beyond the budget, never an unlisted item."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.curator import Route
from tacit.curator.fit import RATED_AT_ALL
from tacit.errors import (
    BudgetExhausted,
    Conflict,
    GuaranteeRefused,
)
from tacit.guarantees import ONE_USER
from tacit.ledger import Budget, price
from tacit.mechanisms import ReplayedNoise, TemperedSlate
from tests.unit.curator.slates_charged import OPTIONS, charges
from tests.unit.curator.slates_world import FILMS, CountedNoise, FailingNoise, curator, ratings, some_ratings

DRAWN = [one for one in Route if one not in (Route.COUNTS, Route.KERNEL, Route.PUBLISHED)]


def test_the_line_of_the_front_page_works_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    films = tacit.data.load("movielens-small")
    slate = tacit.Curator(films, ledger="curator.db", budget=tacit.Budget(epsilon=1)).slate(k=10, epsilon=0.1)
    assert len(set(slate.items)) == 10
    assert set(slate.items) <= set(films.catalogue.ids.tolist())
    assert slate.guarantee.epsilon == 0.1
    assert slate.guarantee.protects == ONE_USER
    assert RATED_AT_ALL in slate.guarantee.assumes  # these ratings came without a list of films
    assert slate.route == "tempered"


@pytest.mark.parametrize("route", DRAWN)
def test_every_route_draws_a_slate_of_listed_items_and_charges_what_it_promises(tmp_path: Path, route: Route) -> None:
    options = OPTIONS.get(route, {})
    with curator(tmp_path) as holder:
        made = holder.plan(5, 1.0, route=route, **options)
        slate = holder.slate(5, 1.0, route=route, **options)
        assert slate.guarantee == made.each
        assert slate.route == route.value
        assert list(slate.items) == sorted(set(slate.items))  # in the order of the catalogue, which says nothing
        assert set(slate.items) <= set(range(1, FILMS + 1))
        if route is not Route.SUBSET:
            assert len(slate) == 5
        statement = holder.statement()
        assert statement.charges == 1
        assert statement.spent == price(made.each, statement.terms)
        assert statement.promised.protects == ONE_USER


@pytest.mark.parametrize("route", [*DRAWN, Route.COUNTS, Route.KERNEL])
def test_an_item_that_is_known_only_by_a_rating_is_in_no_slate(tmp_path: Path, route: Route) -> None:
    table = np.full((60, FILMS), 5)  # everybody likes all, the unlisted ones too
    with curator(tmp_path, ratings(table, unlisted=(0, 3)), budget=Budget(1000, 1e-3), accounting="basic") as holder:
        options = {**OPTIONS.get(route, {}), "delta": 1e-6} if route is Route.KERNEL else OPTIONS.get(route, {})
        assert holder.items.tolist() == [2, 3, *range(5, FILMS + 1)]
        for _ in range(5):
            slate = holder.slate(5, 0.5, route=route, **options)
            assert not set(slate.items) & {1, 4}
        assert RATED_AT_ALL not in slate.guarantee.assumes


def test_who_rates_an_unlisted_item_changes_nothing_that_is_public(tmp_path: Path) -> None:
    table = np.full((3, FILMS), 5)
    without = ratings(table * (np.arange(FILMS) != 3), unlisted=(3,))
    with (
        curator(tmp_path, ratings(table, unlisted=(3,)), ledger=tmp_path / "a.db") as one,
        curator(tmp_path, without, ledger=tmp_path / "b.db") as other,
    ):
        assert one.plan() == other.plan()
        assert one.items.tolist() == other.items.tolist()
        assert one.features is not None
        assert other.features is not None
        assert np.array_equal(one.features, other.features)
        assert np.array_equal(one._slates.likes.rows.toarray(), other._slates.likes.rows.toarray())


def test_a_crash_between_charge_and_slate_loses_budget_and_nothing_else(tmp_path: Path) -> None:
    with curator(tmp_path, noise=FailingNoise()) as holder:
        with pytest.raises(KeyboardInterrupt):
            holder.slate(3, 0.5, request_id="monday")
        assert holder.statement().spent.amount == 500_000_000  # the charge is there, and nothing was kept
        assert list(holder.ledger.stored("users of films")) == []
    with curator(tmp_path) as holder:
        first = holder.slate(3, 0.5, request_id="monday")
        assert charges(holder) == 1
        assert holder.slate(3, 0.5, request_id="monday") == first


def test_the_same_request_gets_the_same_slate_for_one_charge(tmp_path: Path) -> None:
    noise = CountedNoise()
    with curator(tmp_path, noise=noise) as holder:
        first = holder.slate(3, 0.01, request_id="monday")
        drawn = noise.draws
        assert [holder.slate(3, 0.01, request_id="monday") for _ in range(20)] == [first] * 20
        assert noise.draws == drawn
        assert charges(holder) == 1
        others = {holder.slate(3, 0.01, request_id=f"day {day}").items for day in range(20)}
        assert charges(holder) == 21
        assert len(others) > 1
        holder.slate(3, 0.01)
        holder.slate(3, 0.01)
        assert charges(holder) == 23  # without an id every call is a new slate


def test_another_process_gets_the_same_slate(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        first = holder.slate(4, 0.01, request_id="monday")
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from slates_world import curator; holder = curator(Path(sys.argv[1]))\n"
        "print(*holder.slate(4, 0.01, request_id='monday').items, holder.statement().charges)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == [*map(str, first.items), "1"]


def test_beyond_the_budget_nothing_is_drawn_and_no_rating_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = CountedNoise()
    with curator(tmp_path, noise=noise, budget=Budget(1.0)) as holder:
        for _ in range(2):
            holder.slate(3, 0.5)
        drawn = noise.draws
        read: list[object] = []
        monkeypatch.setattr(TemperedSlate, "prepare", lambda self, rows: read.append(rows))
        with pytest.raises(BudgetExhausted):
            holder.slate(3, 0.25)
        with pytest.raises(BudgetExhausted):
            holder.popularity(0.25)
        assert noise.draws == drawn
        assert read == []
        assert charges(holder) == 2


def test_many_slates_are_charged_by_the_range_of_their_losses(tmp_path: Path) -> None:
    budget = Budget(2.41909, 1e-6)
    with curator(tmp_path, budget=budget) as holder:
        assert holder.statement().terms.accounting == "zcdp"
        made = holder.plan(3, budget.epsilon, 100, similarity="private")
        assert made.epsilon == pytest.approx(0.1, rel=1e-5)
        for _ in range(100):
            holder.slate(3, budget.epsilon, slates=100, similarity="private")
        promised = holder.statement().promised
        assert 2.4190 < promised.epsilon <= 2.4191
        assert promised.delta == 1e-6
        with pytest.raises(BudgetExhausted):
            holder.slate(3, budget.epsilon, slates=100, similarity="private")


def test_slates_of_all_kinds_add_up_in_one_account(tmp_path: Path) -> None:
    with curator(tmp_path, budget=Budget(5.0)) as holder:
        for route in DRAWN:
            holder.slate(3, 0.25, route=route, **OPTIONS.get(route, {}))
        holder.popularity(0.5)
        assert holder.statement().spent.amount == 250_000_000 * len(DRAWN) + 500_000_000
        assert holder.statement().promised.epsilon == pytest.approx(0.25 * len(DRAWN) + 0.5)


def test_an_id_that_stood_for_another_slate_is_refused(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        holder.slate(3, 0.5, request_id="monday", route="natural")
        for other in ({"k": 4}, {"route": "feature"}, {"epsilon": 0.25}, {"among": [1, 2, 3, 4, 5]}):
            with pytest.raises(Conflict):
                holder.slate(**{"k": 3, "epsilon": 0.5, "request_id": "monday", "route": "natural", **other})
        with pytest.raises(Conflict):
            holder.slate(3, 0.5, request_id="monday", route="natural", request={1: 1.0})
        assert charges(holder) == 1


def test_replayed_noise_is_refused_unless_it_is_named(tmp_path: Path) -> None:
    with curator(tmp_path, noise=ReplayedNoise(1)) as holder:
        with pytest.raises(GuaranteeRefused):
            holder.slate(3, 0.5)
        with pytest.raises(GuaranteeRefused):
            holder.popularity(0.5)
        assert charges(holder) == 0
    options = {"unprotected": [ReplayedNoise.caveat], "ledger": tmp_path / "simulated.db"}
    with curator(tmp_path, noise=ReplayedNoise(1), **options) as holder:
        slate = holder.slate(3, 0.5)
        assert slate.guarantee.promises_nothing
        assert slate.guarantee.assumes == {ReplayedNoise.caveat}
        assert holder.popularity(0.5).guarantee.promises_nothing


def test_the_published_bound_is_refused_unless_it_is_named(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        with pytest.raises(GuaranteeRefused):
            holder.slate(3, 1.0, route="published")
        assert charges(holder) == 0
    with curator(tmp_path, ledger=tmp_path / "named.db", unprotected=["published"]) as holder:
        slate = holder.slate(3, 1.0, route="published")
        assert len(slate) == 3
        assert slate.guarantee.promises_nothing
        assert holder.statement().spent.unprotected == 1
        holder.slate(3, 1.0, route="natural")  # what promises something is charged as ever
        assert holder.statement().spent.amount == 10**9
    with (
        curator(
            tmp_path, some_ratings(), ledger=tmp_path / "replayed.db", unprotected=["published"], noise=ReplayedNoise(1)
        ) as holder,
        pytest.raises(GuaranteeRefused),
    ):
        holder.slate(3, 1.0, route="published")


def test_counts_are_released_once_and_slates_from_them_are_free(tmp_path: Path) -> None:
    noise = CountedNoise()
    with curator(tmp_path, noise=noise, budget=Budget(50.0)) as holder:
        popularity = holder.popularity(50.0)
        drawn = noise.draws
        assert holder.popularity(50.0) == popularity
        assert noise.draws == drawn
        slates = [holder.slate(4, 50.0, slates=None) for _ in range(3)]
        assert slates[0] == slates[1] == slates[2]
        assert slates[0].guarantee == popularity.guarantee
        assert slates[0].route == "counts"
        assert noise.draws == drawn
        assert charges(holder) == 1
        # 12 likes at most of each of 40 people, scale 0.4: the counts are nearly true
        true = np.asarray(holder._slates.likes.rows.sum(axis=0)).ravel()
        assert np.abs(popularity.counts() - true).max() < 12
    with curator(tmp_path, budget=Budget(50.0)) as holder:
        assert holder.popularity(50.0) == popularity
        with pytest.raises(BudgetExhausted):
            holder.popularity(50.0, request_id="next month")


def test_likes_beyond_those_that_count_are_cut_in_equal_shares(tmp_path: Path) -> None:
    table = np.full((1, FILMS), 5)
    with curator(tmp_path, ratings(table), budget=Budget(10**6)) as holder:
        counts = holder.popularity(10**6, likes_each=3.0).counts()
        assert np.abs(counts - 3 / FILMS).max() < 1e-3


def test_a_kernel_is_released_once_too(tmp_path: Path) -> None:
    with curator(tmp_path, budget=Budget(3.0, 1e-5)) as holder:
        similarity = holder.similarity(2.0, 1e-6)
        assert similarity == holder.similarity(2.0, 1e-6)
        assert similarity.guarantee.delta == 1e-6
        assert charges(holder) == 1
        slate = holder.slate(4, 0.5, slates=None, similarity="private")
        assert slate.route == "kernel"
        assert len(slate) == 4
        assert slate.guarantee.delta == 1e-5
        assert charges(holder) == 2
