"""The federation that `tacit demo` shows: real runs, figures that follow from them, and a verdict that says what they say."""

import json

import pytest
from rich.console import Console

from tacit.cli import demo_federated_prototypes as shown_part
from tacit.cli.demo import _federated
from tacit.cli.demo_federated_prototypes import Way, show, verdict
from tacit.data import load_ratings


def way(method: str, epsilon: float, gain: float, error: float = 0.001) -> Way:
    return Way(method, epsilon, 0.1, 0.1, gain, error, 671, "")


def test_two_runs_end_with_a_model_and_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_part, "ENTITIES", 4)
    monkeypatch.setattr(shown_part, "EPSILONS", (0.01, 16.0))  # one that can tell nothing, and one that must
    shown = show(load_ratings("synthetic"), Console(quiet=True))
    assert shown is not None
    assert shown.entities == 4
    assert [guarantee.epsilon for guarantee in shown.guarantees] == [0.01, 16.0]
    assert all("only the sum of the shares is seen" in guarantee.assumes for guarantee in shown.guarantees)
    assert "unmask-gram" in shown.stages
    assert len(set(shown.sent.values())) == 1  # who has more users does not send more
    assert "2 charged" in shown.statement
    ways = {(one.method, one.epsilon): one for one in shown.ways}
    own = ways["individual", 0.0]
    assert own.gain == own.gain_error == 0.0
    assert 0.0 < own.ndcg < 1.0
    nothing, much = ways["federated", 0.01], ways["federated", 16.0]
    assert (nothing.recall, nothing.ndcg) == (own.recall, own.ndcg)
    assert "no information" in nothing.remark
    assert much.gain > 2.0 * much.gain_error > 0.0
    assert much.gain == pytest.approx(much.ndcg - own.ndcg)
    assert much.gain > max(ways["data-free", 0.0].gain, ways["constant", 0.0].gain)
    assert len({one.users for one in shown.ways}) == 1
    assert shown.verdict == verdict(shown.ways)
    written = json.loads(json.dumps(_federated(shown), allow_nan=False))
    assert written["ways"][-1]["epsilon"] == "inf"
    assert written["guarantees"][1]["epsilon"] == 16.0


def test_few_users_are_not_federated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_part, "FEWEST_USERS", 400)
    assert show(load_ratings("synthetic"), Console(quiet=True)) is None


def test_the_verdict_says_what_the_table_says() -> None:
    own = way("individual", 0.0, 0.0, 0.0)
    controls = [way("data-free", 0.0, 0.0), way("constant", 0.0, 0.002)]
    assert "Entities gain at epsilon 4" in verdict(
        [own, way("federated", 1.0, 0.0), way("federated", 4.0, 0.01), *controls]
    )
    assert "chance" in verdict([own, way("federated", 4.0, 0.0019), *controls])
    assert "chance" in verdict([own, way("federated", 4.0, -0.01), *controls])
    assert "chance" in verdict([own, way("federated", 4.0, 0.0, 0.0)])
    assert "told nothing" in verdict([own, way("federated", 4.0, 0.003), way("constant", 0.0, 0.004)])
