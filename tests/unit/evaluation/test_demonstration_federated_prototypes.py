"""Federated prototypes, shown: real runs, figures that follow from them, and a verdict that says what they say."""

import json

import pytest

from tacit.data import load_ratings
from tacit.evaluation.demonstration import federated_prototypes as part
from tacit.evaluation.demonstration.demonstration import GAIN, Demonstration, Figure, Kind, Skipped, Way
from tacit.evaluation.demonstration.federated_prototypes import NDCG, demonstrate, verdict


def way(method: str, epsilon: float, gain: float, error: float = 0.001) -> Way:
    return Way(method, Kind.PRIVATE, epsilon, {NDCG: Figure(0.1), GAIN: Figure(gain, error)})


def test_two_runs_end_with_a_model_and_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "ENTITIES", 4)
    monkeypatch.setattr(part, "EPSILONS", (0.01, 16.0))  # one that can tell nothing, and one that must
    ratings = load_ratings("synthetic")
    heard: list[str] = []
    shown = demonstrate(ratings, status=heard.append)
    assert isinstance(shown, Demonstration)
    assert [what for what in heard if "at epsilon 0.01" in what]
    released = shown.released
    assert released["entities"] == 4
    assert [one["epsilon"] for one in released["guarantees"]] == [0.01, 16.0]
    assert shown.guarantee.epsilon == 16.0
    assert "only the sum of the shares is seen" in shown.guarantee.assumes
    assert "unmask-gram" in released["stages"]
    assert len(set(released["sent"].values())) == 1  # who has more users does not send more
    assert f"{max(released['sent'].values()):,} bytes" in shown.left
    assert "2 charged" in shown.statement
    assert "in the run at epsilon 16:" in shown.statement
    assert "in the run at epsilon 16" in shown.left
    assert dict(shown.said)["the runs"] == "one at epsilon 0.01 and one at 16, each with ledgers of its own"
    ways = {(one.method, one.epsilon): one for one in shown.ways}
    own, nothing, much = ways["individual", 0.0], ways["federated", 0.01], ways["federated", 16.0]
    assert (shown.private, shown.nothing, shown.plain.method) == (much, own, "one place")
    assert 0.0 < own.figures[NDCG].value < 1.0
    assert nothing.figures[NDCG] == own.figures[NDCG]
    assert "no information" in nothing.remark
    assert much.gain.is_shown
    assert much.gain.value == pytest.approx(much.figures[NDCG].value - own.figures[NDCG].value)
    assert much.gain.value > max(ways["data-free", 0.0].gain.value, ways["constant", 16.0].gain.value)
    assert all(one.figures[NDCG].stderr for one in shown.ways)
    assert shown.verdict == verdict(shown.ways, ratings.n_users)
    assert Demonstration.from_json(json.loads(json.dumps(shown.to_json(), allow_nan=False))) == shown


def test_few_users_are_not_federated_and_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "FEWEST_USERS", 400)
    found = demonstrate(load_ratings("synthetic"))
    assert isinstance(found, Skipped)
    assert "3 entities of 400 users" in found.reason


def test_the_verdict_says_what_the_table_says() -> None:
    own = way("individual", 0.0, 0.0, 0.0)
    controls = [way("data-free", 0.0, 0.0), way("constant", 4.0, 0.002)]
    gained = verdict([own, way("federated", 1.0, 0.0), way("federated", 4.0, 0.01), *controls], 671)
    assert "Entities gain 0.010 at epsilon 4" in gained
    assert "at epsilon 1 there are too few users" in gained
    assert "too few" not in verdict([own, way("federated", 4.0, 0.01), *controls], 671)
    assert "chance" in verdict([own, way("federated", 4.0, 0.0019), *controls], 671)
    assert "chance" in verdict([own, way("federated", 4.0, -0.01), *controls], 671)
    assert "chance" in verdict([own, way("federated", 4.0, 0.0, 0.0)], 671)
    assert "told nothing" in verdict([own, way("federated", 4.0, 0.003), way("constant", 4.0, 0.004)], 671)
