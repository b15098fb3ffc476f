"""An entity: the same bytes for the same message, a stated cost, what leaves and what is fitted at home."""

from typing import Any

import pytest

from tacit.guarantees import LossKind, rho_for
from tacit.ledger import PrivacyLedger
from tests.unit.entity.runs import KINDS, charges


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_the_same_message_gets_the_same_bytes_also_after_a_restart(
    made: Any, mechanism: str, own: dict[str, Any]
) -> None:
    world = made(mechanism, **own)
    first = world.entity("a").answer(world.opening())
    assert world.entity("a").answer(world.opening()) == first
    assert world.entity("a", again=True).answer(world.opening()) == first
    assert charges(world.entity("a")) == (0 if own.get("aggregation") == "secure" else 1)


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_a_whole_run_costs_epsilon_and_nothing_more(made: Any, mechanism: str, own: dict[str, Any]) -> None:
    """The budget is exactly the run's epsilon; in rho the stages add up to what it allows, to 12 digits."""
    world = made(mechanism, **own)
    run = world.federation()
    world.converse(run)
    statement = world.entity("a").statement()
    (window,) = statement.windows
    assert window.left.amount <= 1  # a unit of 10^-12, or of 10^-9 epsilon
    assert statement.charges == (2 if mechanism == "moments" else 1)
    if mechanism == "grid":
        assert (statement.promised.epsilon, statement.spent.amount) == (8.0, 8 * 10**9)
    else:
        assert abs(statement.spent.amount - rho_for(8.0, 1e-6) * 1e12) <= 1.0


@pytest.mark.parametrize("part", [0.15, 0.4])
def test_the_two_uploads_are_two_charges_of_the_stated_parts(made: Any, part: float) -> None:
    world = made("moments", part=part)
    charged = []
    original = PrivacyLedger.release
    with pytest.MonkeyPatch.context() as patch:

        def release(self: Any, subject: str, release_id: str, guarantee: Any, draw: Any) -> bytes:
            if subject == "users":
                charged.append((release_id.split()[-1], guarantee))
            return original(self, subject, release_id, guarantee, draw)

        patch.setattr(PrivacyLedger, "release", release)
        run = world.federation()
        world.converse(run)
    mine = dict(charged)
    assert set(mine) == {"popularity", "gram"}
    for stage, rho in zip(("popularity", "gram"), world.manifest.rhos, strict=True):
        assert (mine[stage].loss.kind, mine[stage].loss.value) == (LossKind.ZCDP, rho)
        assert "only the sum of the shares is seen" in mine[stage].assumes
