"""The systems end alike: an outcome that carries its guarantee, says how much left whom, and shows nothing private."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.device import Device
from tacit.guarantees import Guarantee
from tacit.ledger import Budget
from tacit.mechanisms import ReplayedNoise
from tacit.server import Listings, PrivateSelection
from tacit.systems import cross_domain, federated_prototypes, multi_selection, private_selection, private_slates
from tacit.systems.transcript import Transcript
from tests.unit.server.small_store import small_store

STORE = small_store()
ITEMS = [str(item) for item in STORE.items.ids[:4]]


def chosen(folder: Path, **own: Any) -> private_selection.BillTranscript:
    shop = PrivateSelection(
        Listings(ITEMS, [1_000_000] * 4, [80_000] * 4), folder / "shop.db", policy="rr", explore=0.0
    )
    with Device(folder / "me.db", STORE, private_scorer=lambda _, items: [0.1] * len(items), **own) as device:
        device.consent()
        return private_selection.simulate(device, shop)


def outcomes(folder: Path) -> dict[str, Any]:
    films = tacit.data.load("synthetic", users=40, items=20)
    two = tacit.data.load("synthetic", users=40, items=12, second_domain=True)
    rows = {name: films.csr()[start::3] for start, name in enumerate("abc")}
    with tacit.Curator(films, ledger=folder / "slates.db", budget=Budget(1)) as curator:
        slates = private_slates.simulate(curator, k=3)
    with tacit.Curator(two, ledger=folder / "two.db", budget=Budget(2, 1e-6)) as curator:
        served = cross_domain.simulate(curator, [{1: 5.0}], k=2)
    with federated_prototypes.simulate(rows, films.catalogue.ids.tolist(), epsilon=2, users=10) as run:
        return {
            "multi-selection": multi_selection.simulate(STORE, np.full(STORE.space.dimension, 0.0)),
            "private selection": chosen(folder),
            "private slates": slates,
            "cross-domain": served,
            "federated prototypes": run,
        }


def test_every_outcome_has_a_guarantee_and_says_how_many_bytes_left(tmp_path: Path) -> None:
    for system, outcome in outcomes(tmp_path).items():
        assert isinstance(outcome.guarantee, Guarantee), system
        assert 0.0 < outcome.guarantee.epsilon < float("inf"), system
        assert outcome.bytes_sent > 0, system
        assert isinstance(outcome, Transcript), system
        assert repr(outcome).startswith(f"{type(outcome).__name__}("), system
        assert f"{outcome.bytes_sent:,} bytes sent" in repr(outcome), system
        assert "5.0" not in repr(outcome), system


def test_a_choice_with_replayed_noise_promises_nothing(tmp_path: Path) -> None:
    assert chosen(tmp_path, noise=ReplayedNoise(1)).guarantee.promises_nothing


def test_a_choice_promises_the_epsilon_of_its_policy(tmp_path: Path) -> None:
    outcome = chosen(tmp_path)
    assert outcome.choice is not None
    assert outcome.guarantee.epsilon == pytest.approx(outcome.choice.policy.epsilon)
    assert outcome.impression is not None
    assert outcome.bytes_sent == len(outcome.request) + len(outcome.impression)
