"""Figures 3 to 5 against slow versions on items, one by one."""

from types import SimpleNamespace

import numpy as np
import pytest

from tacit.evaluation.multi_selection import neighbourhood
from tacit.evaluation.multi_selection.neighbourhood import cumulative, neighbour_rows
from tacit.evaluation.result import Row
from tests.unit.evaluation.tiny_world import tiny_store, tiny_users

STORE = tiny_store(items=40)
USERS = tiny_users(30)
PEOPLE = SimpleNamespace(features=USERS, ratings=SimpleNamespace(n_users=30))


def slow_top(user: int) -> list[int]:
    scores = STORE.scorer.score(USERS[user][None], np.arange(40))[0]
    return sorted(range(40), key=lambda item: (-scores[item], item))[:5]


def slow_nearest(user: int) -> list[int]:
    apart = np.abs(USERS - USERS[user]).sum(axis=1)
    return sorted(range(30), key=lambda other: (other != user, apart[other]))[:5]


def rows(notes: list[str]) -> dict[str, Row]:
    found = neighbour_rows(PEOPLE, STORE.scorer, notes, rng=np.random.default_rng(1))  # type: ignore[arg-type]
    return {row.metric: row for row in found if row.setting.get("size", 5) == 5}


def test_far_users_are_paired_with_their_nearest_and_it_is_said() -> None:
    notes: list[str] = []
    found = rows(notes)
    assert "only 0 of 30 users" in notes[0]
    expected = []
    for user in range(30):
        near = slow_nearest(user)[1]
        scores = STORE.scorer.score(USERS[user][None], np.arange(40))[0]
        expected.append(scores[slow_top(user)].mean() - scores[slow_top(near)].mean())
    assert found["neighbour difference"].value == pytest.approx(np.mean(expected), abs=1e-6)
    assert min(expected) >= 0.0


def test_near_users_are_paired_within_the_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbourhood, "_FEWEST_PAIRS", 1)
    monkeypatch.setattr(neighbourhood.paper, "NEIGHBOUR_DISTANCE", 2.0)
    notes: list[str] = []
    found = rows(notes)
    assert not notes
    assert 0.0 < found["neighbour distance"].value <= 2.0
    assert found["neighbour distance"].n < 30


def test_duplication_is_of_items() -> None:
    expected = [1.0 - len({item for one in slow_nearest(user) for item in slow_top(one)}) / 25.0 for user in range(30)]
    assert rows([])["duplication"].value == pytest.approx(np.mean(expected))
    assert 0.0 < np.mean(expected) < 0.8


def test_twins_have_everything_in_common() -> None:
    twins = SimpleNamespace(features=np.repeat(USERS[:6], 5, axis=0), ratings=SimpleNamespace(n_users=30))
    notes: list[str] = []
    found = {row.metric: row for row in neighbour_rows(twins, STORE.scorer, notes, rng=np.random.default_rng(1))}  # type: ignore[arg-type]
    assert found["duplication"].value == pytest.approx(1.0 - 5.0 / 25.0)
    assert found["neighbour difference"].value == pytest.approx(0.0, abs=1e-6)


def test_clusters_within_a_radius_are_counted() -> None:
    twins = SimpleNamespace(features=np.repeat(USERS[:6], 5, axis=0), ratings=SimpleNamespace(n_users=30))
    found = list(neighbour_rows(twins, STORE.scorer, [], rng=np.random.default_rng(1)))  # type: ignore[arg-type]
    within = {row.setting["size"]: row.value for row in found if row.metric == "clusters within"}
    assert within == {5: 1.0, 10: 0.0, 15: 0.0}


def test_a_cumulative_share_ends_at_one() -> None:
    found = list(cumulative("users", "x", np.array([0.0, 1.0, 1.0, 4.0])))
    assert [row.value for row in found][-1] == 1.0
    assert found[0].value == 0.25
    assert found[10].setting["at"] == 1.0
    assert found[10].value == 0.75
