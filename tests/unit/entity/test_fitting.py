"""From the shared model to the local fit: what the gate compares with, and that it can be left out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.entity import Tuning
from tacit.entity import fit as fitting
from tacit.entity.fit import DATA_FREE, FitKind, FitSettings, LocalFit, data_free_items, fit_local, gated_fit
from tests.unit.federated_world import ITEMS, USERS, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, "tree")
    yield made
    made.close()


def model_of(world: World) -> Any:
    run = world.federation()
    world.converse(run)
    world.entity("a").answer(run.outgoing()["a"])
    return run.model


def test_prototypes_are_compared_with_several_releases_of_nobodys_rows(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against one of them, factors that are pure noise would pass as information every second time."""
    model = model_of(world)
    asked, given = list[tuple[Any, ...]](), list[Any]()

    def drawn(mechanism: Any, items: int, entities: int, how: Any, *, noise: Any) -> Any:
        asked.append((items, entities))
        return data_free_items(mechanism, items, entities, how, noise=noise)

    def gated(rows: Any, items: Any, data_free: Any, settings: Any, *, rng: Any) -> LocalFit:
        given.append(data_free)
        return gated_fit(rows, items, data_free, settings, rng=rng)

    monkeypatch.setattr(fitting, "data_free_items", drawn)
    monkeypatch.setattr(fitting, "gated_fit", gated)
    fit = world.entity("a").fit(rng=np.random.default_rng(0))
    assert asked == [(ITEMS, model.contributors)] * 5
    (controls,) = given
    assert len({one.tobytes() for one in controls}) == 5  # each drawn by itself
    alone = [
        gated_fit(world.entity("a").table(), model.factors, one, _settings(world), rng=np.random.default_rng(0))
        for one in controls
    ]
    assert fit.report.scores[DATA_FREE] == pytest.approx(min(one.report.scores[DATA_FREE] for one in alone))
    assert fit.report.scores[DATA_FREE] < max(one.report.scores[DATA_FREE] for one in alone)


def test_without_a_gate_the_shared_factors_are_used_and_nothing_is_drawn(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(world)
    for name in ("data_free_items", "gated_fit"):
        monkeypatch.setattr(fitting, name, lambda *_, **__: pytest.fail("there is no gate"))
    fit = world.entity("a").fit(tuning=Tuning(gate=False), rng=np.random.default_rng(0))
    assert isinstance(fit, LocalFit)
    assert (fit.kind, fit.report) == (FitKind.GLOBAL, None)
    wanted = fit_local(
        world.entity("a").table(), model.factors, FitKind.GLOBAL, _settings(world), rng=np.random.default_rng(9)
    )
    assert np.array_equal(fit.scores(), wanted.scores())
    assert fit.scores().shape == (USERS, ITEMS)


def _settings(world: World) -> FitSettings:
    terms = world.manifest
    return FitSettings(
        value_bound=terms.value_bound or 0.0,
        ridge=terms.ridge,
        regulariser=str(terms.regulariser),
        zeros_observed=bool(terms.zeros_observed),
    )
