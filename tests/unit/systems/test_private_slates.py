"""Private slates through real messages: from the curator to a user, or to a server that makes any number of them."""

import json
from pathlib import Path

import numpy as np

from tacit.ledger import Budget
from tacit.systems.private_slates import simulate
from tests.unit.curator.slates_world import curator


def test_each_slate_is_charged_and_sent(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        outcome = simulate(holder, 4, 1.0, 3, similarity="private")
        assert outcome.plan.route == "natural"
        assert len(outcome.wire) == len(outcome.slates) == 3
        assert [set(json.loads(text)) for text in outcome.wire] == [{"version", "items", "route", "guarantee"}] * 3
        assert all(len(slate) == 4 for slate in outcome.slates)
        assert outcome.guarantee == outcome.plan.each
        assert holder.statement().charges == 3
        assert holder.statement().spent.amount <= 10**9


def test_counts_go_to_a_server_once(tmp_path: Path) -> None:
    with curator(tmp_path, budget=Budget(1.0)) as holder:
        outcome = simulate(holder, 4, 1.0, None, shown=50, drawn=True, rng=np.random.default_rng(1))
        assert len(outcome.wire) == 1
        assert len(outcome.slates) == 50
        assert len({slate.items for slate in outcome.slates}) > 1
        assert outcome.guarantee == outcome.plan.total
        assert holder.statement().charges == 1
        assert "50 slates" in repr(outcome)


def test_a_public_part_of_the_items_goes_with_its_own_features(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        outcome = simulate(holder, 3, 1.0, None, among=[12, 2, 4, 6, 8])
        assert set(outcome.slates[0].items) <= {2, 4, 6, 8, 12}


def test_a_kernel_goes_to_a_server_once(tmp_path: Path) -> None:
    with curator(tmp_path, budget=Budget(2.0, 1e-6), accounting="basic") as holder:
        outcome = simulate(holder, 4, 1.0, None, similarity="private", delta=1e-6, shown=2)
        assert outcome.plan.route == "kernel"
        assert len(outcome.wire) == 1
        assert outcome.slates[0] == outcome.slates[1]
        assert outcome.guarantee.delta == 1e-6
        assert holder.statement().charges == 1
