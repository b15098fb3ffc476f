"""What an entity charges: before anything is drawn, only what fits as a whole, once, also after an error."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.entity import federated_prototypes
from tacit.errors import (
    BudgetExhausted,
    Conflict,
    GuaranteeRefused,
    InvalidInput,
)
from tacit.guarantees import rho_for
from tacit.ledger import Accounting, Budget, PrivacyLedger
from tacit.mechanisms import ReplayedNoise
from tests.unit.entity.runs import KINDS, CountedNoise, charges
from tests.unit.federated_world import ITEMS, no_rows

OPEN = [one for one in KINDS if one[1].get("aggregation") != "secure"]  # the first message is answered with a release


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_a_budget_that_is_too_small_refuses_and_sends_nothing(made: Any, mechanism: str, own: dict[str, Any]) -> None:
    world = made(mechanism, **own)
    noise = CountedNoise()
    budget = Budget(7.99, 0.0 if mechanism == "grid" else 1e-6)
    entity = world.entity("a", no_rows, budget=budget, noise=noise)
    with pytest.raises(BudgetExhausted):
        entity.answer(world.opening())
    assert (charges(entity), noise.asked) == (0, 0)
    assert not (world.folder / "a.db.runs").exists()


def test_a_second_run_is_refused_when_the_first_has_spent_the_budget(made: Any) -> None:
    world = made("tree")
    entity = world.entity("a")
    entity.answer(world.opening())
    again = replace(world.manifest, title="once more").signed(world.key)
    with pytest.raises(BudgetExhausted):
        entity.answer(again)
    assert charges(entity) == 1


def test_a_second_run_is_refused_before_its_first_charge(made: Any) -> None:
    """What is left counts, not the budget: the first upload of the second run alone would fit."""
    world = made("moments", aggregation="none")
    allowed = rho_for(8.0, 1e-6)
    entity = world.entity("a", budget=Budget(9.5, 1e-6))  # one run and the popularity of another
    assert 1.15 * allowed < rho_for(9.5, 1e-6) < 2.0 * allowed
    run = world.federation()
    world.converse(run)
    noise = CountedNoise()
    entity = world.entity("a", no_rows, again=True, budget=Budget(9.5, 1e-6), noise=noise)
    second = replace(world.manifest, title="once more")
    with pytest.raises(BudgetExhausted, match="Nothing was charged") as caught:
        entity.answer(second.signed(world.key))
    assert (charges(entity), noise.asked) == (2, 0)
    assert not (world.folder / "a.db.runs" / second.run).exists()
    assert float(caught.value.left) == pytest.approx(rho_for(9.5, 1e-6) - allowed)


@pytest.mark.parametrize("stage", ["prototypes", "popularity"])
def test_a_delta_that_does_not_fit_is_refused_before_the_first_charge(made: Any, stage: str) -> None:
    """Accounting 'basic' adds up delta too: there is epsilon enough, and of delta less than the run needs."""
    world = made("tree") if stage == "prototypes" else made("moments", aggregation="none")
    few = 0.9e-6 if stage == "prototypes" else 1.9e-6  # the two uploads have a delta of 1e-6 each
    entity = world.entity("a", no_rows, budget=Budget(100.0, few), accounting="basic")
    with pytest.raises(BudgetExhausted, match="delta") as caught:
        entity.answer(world.opening())
    assert (charges(entity), caught.value.measure) == (0, "delta")
    assert not (world.folder / "a.db.runs").exists()
    enough = world.entity("b", budget=Budget(100.0, 2.1e-6), accounting="basic")
    assert enough.answer(world.opening()) is not None


def test_a_run_of_which_the_second_upload_would_not_fit_is_not_begun(made: Any) -> None:
    world = made("moments", aggregation="none")
    entity = world.entity("a", no_rows, budget=Budget(4.0, 1e-6))  # the popularity alone would fit
    with pytest.raises(BudgetExhausted, match="Nothing was charged"):
        entity.answer(world.opening())
    assert charges(entity) == 0


def test_the_charge_is_on_the_disk_before_anything_is_drawn(made: Any) -> None:
    world = made("moments", aggregation="none")
    seen = []

    class Watching(CountedNoise):
        def draw(self, count: int) -> bytes:
            if not seen:
                with PrivacyLedger.open(world.folder / "a.db") as ledger:
                    seen.append(ledger.statement("users").charges)
            return super().draw(count)

    world.entity("a", noise=Watching()).answer(world.opening())
    assert seen == [1]


@pytest.mark.parametrize(("mechanism", "own"), OPEN, ids=str)
def test_an_error_after_the_first_draw_leaves_the_budget_spent_and_tells_nothing(
    made: Any, mechanism: str, own: dict[str, Any]
) -> None:
    world = made(mechanism, **own)
    entity = world.entity("a", noise=CountedNoise(fail_after=1))
    with pytest.raises(Conflict) as caught:
        entity.answer(world.opening())
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert charges(entity) == 1
    # Nor is anything drawn when it is asked again, with good noise.
    noise = CountedNoise()
    entity = world.entity("a", again=True, noise=noise)
    with pytest.raises(Conflict):
        entity.answer(world.opening())
    assert (noise.asked, charges(entity)) == (0, 1)


@pytest.mark.parametrize("stage", ["popularity", "gram"])
def test_an_error_after_the_first_draw_puts_an_entity_out_of_a_secure_run(made: Any, stage: str) -> None:
    """The charge stands, nothing is sent, and nothing is drawn when it is asked again; the run goes on without it."""
    world = made("moments", names=("a", "b", "c", "d"), fewest=3)
    run = world.federation()
    world.converse(run, until=stage)
    sent, spent = run.outgoing()["a"], charges(world.entity("a"))
    entity = world.entity("a", again=True, noise=CountedNoise(fail_after=1))
    with pytest.raises(Conflict) as caught:
        entity.answer(sent)
    assert "secret" not in str(caught.value)
    assert (caught.value.__cause__, charges(entity)) == (None, spent + 1)
    noise = CountedNoise()
    entity = world.entity("a", again=True, noise=noise)
    with pytest.raises(Conflict, match="used up"):
        entity.answer(sent)
    assert (noise.asked, charges(entity)) == (0, spent + 1)
    assert not (world.folder / "a.db.runs" / world.manifest.run / stage).exists()
    world.converse(run, silent=("a",))
    assert run.model is not None
    assert run.model.contributors == 3


@pytest.mark.parametrize(("mechanism", "own"), OPEN, ids=str)
def test_what_a_caller_has_set_for_numpy_makes_no_error_of_a_draw(
    made: Any, mechanism: str, own: dict[str, Any]
) -> None:
    """An underflow while rows are read must not use the stage up: it would tell of the rows."""
    world = made(mechanism, **own)
    original = federated_prototypes.upload_of

    def underflows(*arguments: Any) -> Any:
        upload = original(*arguments)
        return replace(upload, draw=lambda rows: (np.float64(1e-300) * np.full(2, 1e-300), upload.draw(rows))[1])

    with pytest.MonkeyPatch.context() as patch, np.errstate(all="raise"):
        patch.setattr("tacit.entity.federated_prototypes.upload_of", underflows)
        entity = world.entity("a")
        entity._rows.table()  # the caller's own settings hold there
        assert entity.answer(world.opening()) is not None


def test_a_process_that_dies_while_drawing_draws_again_for_the_same_charge(made: Any) -> None:
    world = made("tree")

    class Killed(CountedNoise):
        def draw(self, count: int) -> bytes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.entity("a", noise=Killed()).answer(world.opening())
    entity = world.entity("a", again=True)
    assert charges(entity) == 1
    assert entity.answer(world.opening()) is not None
    assert charges(entity) == 1


def test_rows_of_the_wrong_shape_are_found_out_before_the_charge(made: Any) -> None:
    world = made("tree")
    entity = world.entity("a", np.zeros((3, ITEMS + 1)))
    with pytest.raises(InvalidInput):
        entity.answer(world.opening())
    assert charges(entity) == 0


def test_terms_are_agreed_once(made: Any) -> None:
    world = made("tree")
    world.entity("a", budget=Budget(8.0, 1e-6))
    with pytest.raises(Conflict):
        world.entity("a", again=True, budget=Budget(9.0, 1e-6))
    assert world.entity("a", budget=None).statement().terms.budgets == (Budget(8.0, 1e-6),)
    assert world.entity("a").statement().terms.accounting is Accounting.ZCDP


def test_replayed_noise_promises_nothing_and_is_refused(made: Any) -> None:
    world = made("tree")
    entity = world.entity("a", no_rows, noise=ReplayedNoise(1))
    with pytest.raises(GuaranteeRefused):
        entity.answer(world.opening())
    assert charges(entity) == 0
