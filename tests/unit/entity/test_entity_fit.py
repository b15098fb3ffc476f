"""What an entity does with a model at home, and what it shows of itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.entity import Entity, federated_prototypes
from tacit.errors import (
    InvalidGuarantee,
    InvalidParameter,
)
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, PrivacyLedger
from tacit.mechanisms import SystemNoise
from tacit.messages.federated_prototypes import public_of
from tests.releases import release_of
from tests.unit.entity.runs import KINDS
from tests.unit.federated_world import ITEMS, USERS, key_of, no_rows, refusal, rows_of


def test_a_fit_needs_a_model(made: Any) -> None:
    world = made("tree")
    with pytest.raises(InvalidParameter, match="no model"):
        world.entity("a").fit()


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_the_fit_scores_every_user_and_item_and_shows_nothing(made: Any, mechanism: str, own: dict[str, Any]) -> None:
    world = made(mechanism, **own)
    run = world.federation()
    world.converse(run)
    fit = world.entity("a").fit(run.outgoing()["a"], rng=np.random.default_rng(0))
    scores = fit.scores()
    assert scores.shape == (USERS, ITEMS)
    assert np.isfinite(scores).all()
    assert fit.report is not None
    assert "0." not in repr(fit) + repr(fit.report)
    assert world.entity("a", again=True).fit(
        run=world.manifest.run, rng=np.random.default_rng(0)
    ).scores() == pytest.approx(scores)


def test_nobodys_rows_can_be_fitted(made: Any) -> None:
    world = made("moments", aggregation="none")
    world.entity("a", np.zeros((0, ITEMS)))
    run = world.federation()
    world.converse(run)
    assert world.entity("a").fit(run.outgoing()["a"]).scores().shape == (0, ITEMS)


def test_a_ledger_without_a_place_of_its_own_needs_a_place_for_the_journal(made: Any, tmp_path: Path) -> None:
    world = made("tree")
    with PrivacyLedger.create(tmp_path / "shared.db") as ledger:
        with pytest.raises(InvalidParameter, match="journal"):
            Entity([], ledger, name="a", key=key_of("a"), coordinator=public_of(world.key), catalogue=world.catalogue)
        with Entity(
            rows_of("a"),
            ledger,
            name="a",
            key=key_of("a"),
            coordinator=public_of(world.key),
            catalogue=world.catalogue,
            budget=Budget(8.0, 1e-6),
            journal=tmp_path / "runs",
        ) as entity:
            assert entity.answer(world.opening()) is not None
        assert ledger.statement("users").charges == 1  # it was not closed with the entity


def test_an_entity_shows_its_name_and_nothing_else(made: Any) -> None:
    assert repr(made("tree").entity("a")) == "Entity('a')"


def test_the_manifest_asks_the_mechanisms_for_what_it_states(made: Any) -> None:
    grid = made("grid", l1_bound=7.0, l2_bound=4.0, dimension=3, depth=4, swaps=5, picked=6, seed=9, trials=2).manifest
    made_grid: Any = federated_prototypes.prototype_mechanism(grid)
    assert (made_grid.bounds.items_each, made_grid.bounds.value_bound) == (8, 5.0)
    assert (made_grid.bounds.l1_bound, made_grid.bounds.l2_bound, made_grid.k) == (7.0, 4.0, 3)
    assert (made_grid.p, made_grid.depth, made_grid.swaps, made_grid.picked) == (3, 4, 5, 6)
    assert (made_grid.seed, made_grid.trials, made_grid.users, made_grid.epsilon) == (9, 2, USERS, 8.0)
    assert tuple(vars(made_grid.shares).values()) == grid.shares
    tree = made("tree", depth=7, lloyd=1, seed=4, delta=1e-7).manifest
    made_tree: Any = federated_prototypes.prototype_mechanism(tree)
    assert (made_tree.depth, made_tree.lloyd, made_tree.seed, made_tree.delta) == (7, 1, 4, 1e-7)
    assert made_tree.epsilon == pytest.approx(8.0, rel=1e-9)


def test_the_noise_of_a_share_is_the_stated_one(made: Any) -> None:
    """Each share of a secure sum carries 1 / honest of the variance; alone, it carries all of it."""
    for own, honest in (
        ({"aggregation": "none"}, 1),
        ({"names": ("a", "b", "c", "d"), "fewest": 4, "colluding": 1}, 3),
    ):
        world = made("moments", **own)
        mechanisms: list[Any] = []
        for name in ("PopularityShare", "GramShare"):
            original = getattr(federated_prototypes, name)

            def kept(*arguments: Any, original: Any = original, mechanisms: list[Any] = mechanisms) -> Any:
                mechanisms.append(original(*arguments))
                return mechanisms[-1]

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(federated_prototypes, name, kept)
                federated_prototypes.upload_of(
                    world.manifest, "popularity" if name[0] == "P" else "gram", np.arange(5), SystemNoise()
                )
        assert [one.honest for one in mechanisms] == [honest, honest]
        assert [one.rho for one in mechanisms] == list(world.manifest.rhos)
        assert mechanisms[1].head == (0, 1, 2, 3, 4)


def test_refusals_have_stable_codes(made: Any) -> None:
    world = made("tree")
    assert refusal(world.entity("a", no_rows).answer, b"x") == "invalid-message"


def test_an_upload_that_promises_less_than_was_charged_is_not_sent() -> None:
    charged, drawn = pure(0.5, ONE_USER), pure(1.0, ONE_USER)
    upload = federated_prototypes.Upload(charged, lambda rows: release_of({"steps": rows}, drawn))
    with pytest.raises(InvalidGuarantee, match="promises more"):
        upload.released(np.zeros(1))  # type: ignore[arg-type]
