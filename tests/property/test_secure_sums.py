"""Secure sums over any sequence of drop-outs, restarts and repeated messages: the plain sum, or a refusal."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.entity.secure_sum import SecureParty
from tacit.errors import TooFewEntities
from tacit.models.secure_sum import least_fewest
from tests.unit.server.secure_runs import World, names, session_of

STAGES = ("keys", "shares", "masked", "unmask", "never")


def restored(party: SecureParty) -> SecureParty:
    return SecureParty.from_bytes(party.to_bytes(), party.session, party.key)


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, int, list[str], bool, int]:
    entities = draw(st.integers(3, 9))
    fewest = draw(st.integers(least_fewest(entities, 1), entities))
    # Most stay, or hardly a run would come to its end.
    leaves = st.sampled_from(STAGES + ("never",) * 8)
    return (
        entities,
        fewest,
        draw(st.lists(leaves, min_size=entities, max_size=entities)),
        draw(st.booleans()),
        draw(st.integers(0, 9)),
    )


@settings(max_examples=40, deadline=None)
@given(runs())
def test_whoever_drops_out_when_the_total_is_that_of_the_survivors_or_there_is_none(
    run: tuple[int, int, list[str], bool, int],
) -> None:
    entities, fewest, leaves, restarts, cells = run
    last = dict(zip(names(entities), leaves, strict=True))

    def still(stage: str) -> list[str]:
        return [name for name in last if STAGES.index(last[name]) > STAGES.index(stage)]

    world = World(session_of(entities, fewest), between=restored if restarts else lambda party: party)
    sums, upload = world.sums, "gram"
    try:
        for name in still("keys"):
            sums.add_keys(world.step(name).keys_message)
        keys = sums.close_keys()
        for name in still("shares"):
            sums.add_shares(world.step(name).shares_message(keys))
        parcels = sums.close_shares()
        for name in parcels:
            world.step(name).receive(parcels[name])
        world.mask(upload, still("masked"), cells)
        survivors = sums.close_upload(upload)
        for name in still("unmask"):
            message = world.step(name).unmask(survivors, upload)
            sums.add_unmask(message, upload)
            assert not sums.add_unmask(message, upload)
        total = sums.total(upload)
    except TooFewEntities:
        assert len(still("unmask")) < fewest
        return
    assert len(still("unmask")) >= fewest
    assert survivors == tuple(still("masked"))
    assert np.array_equal(total, world.plain(upload, survivors))
