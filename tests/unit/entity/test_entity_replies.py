"""What leaves an entity: of a size that public numbers decide, within bounds, masked."""

from typing import Any

import numpy as np
import pytest

from tacit.ledger import PrivacyLedger
from tacit.messages.federated_prototypes import open_frame
from tests.unit.entity.runs import KINDS
from tests.unit.federated_world import ITEMS, USERS, rows_of

# --- what leaves ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
@pytest.mark.parametrize("rows", ["nobody", "one", "odd", "many"])
def test_the_size_of_a_reply_follows_from_public_numbers_alone(
    made: Any, mechanism: str, own: dict[str, Any], rows: str
) -> None:
    world = made(mechanism, **own)
    odd = rows_of("a")
    odd[0], odd[1, 3], odd[2], odd[3, 3] = np.nan, np.inf, -4.0, 1e300
    given = {
        "nobody": np.zeros((0, ITEMS)),
        "one": np.eye(1, ITEMS),
        "odd": odd,
        "many": np.ones((300, ITEMS)),
    }[rows]
    usual = world.entity("b").answer(world.opening())
    reply = world.entity("a", given).answer(world.opening())
    assert len(reply) == len(usual)
    assert world.federation().accept(reply).status == "accepted"


def test_a_reply_names_no_user_and_no_number_of_users(made: Any) -> None:
    world = made("grid")
    rows = {f"patient-{user}": {"item-1": 1.0} for user in range(USERS)}
    reply = world.entity("a", rows).answer(world.opening())
    assert b"patient" not in reply
    assert open_frame(reply).header["entry"] == f"fp/1 {world.manifest.run} ca978112ca1bbdca prototypes"  # of "a"


def test_prototypes_are_cut_to_the_bounds(made: Any) -> None:
    world = made("tree", epsilon=1.0)
    reply = open_frame(world.entity("a").answer(world.opening()))
    assert 0.0 <= reply.arrays["values"].min() <= reply.arrays["values"].max() <= 5.0
    assert reply.arrays["values"].shape == (3, ITEMS)


def test_more_prototypes_than_candidates_are_allowed(made: Any) -> None:
    world = made("grid", k=30, epsilon=0.1)
    assert world.federation().accept(world.entity("a", rows_of("a", 2)).answer(world.opening())).status == "accepted"


def test_a_projection_beyond_62_dimensions_works(made: Any) -> None:
    world = made("grid", dimension=70)
    assert world.federation().accept(world.entity("a").answer(world.opening())).status == "accepted"


def test_several_trials_cost_the_same(made: Any) -> None:
    world = made("grid", trials=3)
    entity = world.entity("a")
    assert entity.answer(world.opening()) is not None
    assert entity.statement().spent.amount == 8 * 10**9


def test_the_share_is_the_ledgers_and_the_mask_hides_it(made: Any) -> None:
    """What leaves under secure aggregation is not what was released; without it, it is."""
    world = made("moments", aggregation="none")
    reply = open_frame(world.entity("a").answer(world.opening()))
    with PrivacyLedger.open(world.folder / "a.db") as ledger:
        (kept,) = ledger.stored("users")
    assert kept.content.endswith(reply.arrays["steps"].tobytes())
    world = made("moments")
    run = world.federation()
    world.converse(run, until="popularity")
    reply = open_frame(world.entity("a").answer(run.outgoing()["a"]))
    with PrivacyLedger.open(world.folder / "a.db") as ledger:
        (kept,) = ledger.stored("users")
    share = kept.content[-8 * ITEMS :]
    assert share not in reply.arrays["body"].tobytes()
