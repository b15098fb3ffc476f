"""An entity in a secure sum: what it refuses, whatever the coordinator says."""

import json
from collections.abc import Callable
from dataclasses import fields
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tacit.entity.secure_sum import SecureParty
from tacit.errors import Conflict, InvalidData, InvalidMessage, InvalidParameter
from tacit.messages.federated_prototypes.secure_sum import MaskedUpload, PublicKeys, SealedShares, UnmaskingShares
from tacit.models.secure_sum import KEY, SEED, add_own_mask, add_pair_mask, combine
from tests.unit.server.secure_runs import World, as_bytes, check_looks_uniform, key_of, names, polynomial, session_of

FIVE = names(5)
FIRST, SECOND = "popularity", "gram"


@pytest.fixture
def world() -> World:
    """Five entities of which four must stay."""
    return World(session_of(5, 4))


def uploaded(world: World) -> SecureParty:
    world.ready().mask(FIRST, FIVE)
    return world.parties["e00"]


def test_every_run_and_entity_has_secrets_of_its_own() -> None:
    parties = [SecureParty.start(session_of(5, 4), name, key_of(name)) for name in (*FIVE, *FIVE)]
    secrets = [one for party in parties for one in (party.sealing, *party.masking, *party.seeds)]
    assert len(set(secrets)) == len(secrets) == 50


def test_secrets_of_a_run_are_random_and_independent_in_every_bit() -> None:
    parties = [SecureParty.start(session_of(3, 3), "e00", key_of("e00")) for _ in range(300)]
    check_looks_uniform([[party.sealing, *party.masking, *party.seeds] for party in parties], bits=256)


def test_an_entity_that_is_not_of_the_roster_cannot_start() -> None:
    for name, key in (("e09", key_of("e09")), ("e00", key_of("e01"))):
        with pytest.raises(InvalidParameter, match="the roster has another key"):
            SecureParty.start(session_of(5, 4), name, key)


def test_a_party_shows_nothing_of_itself(world: World) -> None:
    assert repr(uploaded(world)) == "SecureParty('e00', ...)"


def test_every_step_gives_the_same_bytes_again(world: World) -> None:
    keys = world.keys()
    party = world.parties["e00"]
    assert party.keys_message == keys["e00"]
    world.share()
    assert party.shares_message(keys) == party.sent_shares
    world.receive()
    parcels = world.sums.close_shares()["e00"]
    party.receive(parcels)
    vector = np.arange(5)
    assert party.masked(vector, FIRST) == party.masked(vector.copy(), FIRST)
    assert vector.tolist() == [0, 1, 2, 3, 4]
    assert party.unmask(FIVE, FIRST) == party.unmask(reversed(FIVE), FIRST)


def test_what_was_fixed_stays_so(world: World) -> None:
    party = uploaded(world)
    keys, parcels = world.sums.close_keys(), world.sums.close_shares()["e00"]
    with pytest.raises(Conflict, match="other keys"):
        party.shares_message({name: keys[name] for name in FIVE[:4]})
    other = SecureParty.start(world.session, "e04", key_of("e04")).keys_message  # the same entities, one with new keys
    with pytest.raises(Conflict, match="other keys"):
        party.shares_message({**keys, "e04": other})
    with pytest.raises(Conflict, match="other shares"):
        party.receive({name: parcels[name] for name in FIVE[:4]})
    with pytest.raises(Conflict, match="masks are used once"):
        party.masked(np.zeros(50, dtype=np.int64), FIRST)
    party.unmask(FIVE, FIRST)
    with pytest.raises(Conflict, match="other survivors"):
        party.unmask(FIVE[:4], FIRST)
    party.masked(np.zeros(50, dtype=np.int64), SECOND)  # the second upload is a matter of its own
    party.unmask(FIVE[:4], SECOND)


def test_a_refused_request_fixes_nothing(world: World) -> None:
    world.keys()
    party, keys = world.parties["e00"], world.sums.close_keys()
    before = party.to_bytes()
    with pytest.raises(InvalidMessage):
        party.shares_message({name: keys[name] for name in FIVE[:3]})
    assert party.to_bytes() == before
    world.share()
    before = party.to_bytes()
    parcels = world.sums.close_shares()["e00"]
    with pytest.raises(InvalidMessage):
        party.receive({**parcels, "e04": bytes(len(parcels["e04"]))})
    assert party.to_bytes() == before
    world.receive()
    world.mask(FIRST, FIVE)
    before = party.to_bytes()
    for names_told in (FIVE[1:], FIVE[:3], [*FIVE, "e00"], [*FIVE, "e05"]):
        with pytest.raises(InvalidMessage):
            party.unmask(names_told, FIRST)
    assert party.to_bytes() == before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda keys: {name: keys[name] for name in FIVE[:3]}, "fewer than 4 entities"),
        (lambda keys: {name: keys[name] for name in FIVE[1:]}, "leave out this entity"),
        (lambda keys: {**keys, "e01": keys["e02"]}, "another name"),
        (lambda keys: {**keys, "e09": keys["e01"]}, "another name"),
        (lambda keys: {**keys, "e01": b"no frame"}, "not a message"),
    ],
)
def test_keys_of_too_few_strangers_or_twice_are_refused(
    world: World, change: Callable[[dict[str, bytes]], dict[str, bytes]], reason: str
) -> None:
    with pytest.raises(InvalidMessage, match=reason):
        world.parties["e00"].shares_message(change(world.keys()))


def test_the_server_cannot_put_its_own_keys_in_place_of_others(world: World) -> None:
    keys = world.keys()
    mine = SecureParty.start(world.session, "e01", key_of("e01"))
    forged = mine._keys().signed(world.session, b"the server's own key".ljust(32))
    with pytest.raises(InvalidMessage, match="signature"):
        world.parties["e00"].shares_message({**keys, "e01": forged})
    again = SecureParty.start(world.session, "e00", key_of("e00")).keys_message  # an entity that lost its state
    with pytest.raises(InvalidMessage, match="not those that it sent"):
        world.parties["e00"].shares_message({**keys, "e00": again})
    elsewhere = World(session_of(5, 4, run="11" * 32)).keys()
    with pytest.raises(InvalidMessage, match="run"):
        world.parties["e00"].shares_message({**keys, "e01": elsewhere["e01"]})


def test_a_key_that_everybody_knows_the_result_of_is_refused(world: World) -> None:
    keys, own = world.keys(), world.parties["e01"]._keys()
    for bad in (
        PublicKeys("e01", bytes(32), own.masking, own.commitments),
        PublicKeys("e01", own.sealing, (bytes(32), own.masking[1]), own.commitments),
    ):
        told = {**keys, "e01": bad.signed(world.session, key_of("e01"))}
        with pytest.raises(InvalidMessage, match="agreed"):
            world.parties["e00"].shares_message(told)


def test_parcels_are_opened_only_as_they_were_sealed_for_this_entity(world: World) -> None:
    world.keys()
    parcels = world.share()
    party, mine = world.parties["e00"], parcels["e00"]
    for wrong in (
        {**mine, "e01": parcels["e02"]["e01"]},  # for another
        {**mine, "e01": mine["e02"]},  # from another
        {**mine, "e01": parcels["e01"]["e00"]},  # this entity's own, sent back
        {**mine, "e01": mine["e01"][:-1]},
        {**mine, "e01": bytes([mine["e01"][0] ^ 1]) + mine["e01"][1:]},  # other commitments
        {**mine, "e01": mine["e01"][:-1] + bytes([mine["e01"][-1] ^ 1])},
        {name: mine[name] for name in FIVE[:3]},
        {name: mine[name] for name in FIVE[1:]},
        {**mine, "e09": mine["e01"]},
    ):
        with pytest.raises(InvalidMessage):
            party.receive(wrong)
    party.receive(mine)


def test_shares_that_differ_from_what_their_dealer_is_committed_to_are_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.keys()
    with monkeypatch.context() as patch:
        patch.setattr(SecureParty, "_commitments", lambda *_: bytes(4 * 32))
        false = world.parties["e01"].shares_message(world.sums.close_keys())
    world.sums.add_shares(false)
    world.share([name for name in FIVE if name != "e01"])
    with pytest.raises(InvalidMessage, match="the shares of e01 are not those that it is committed to"):
        world.receive()


def test_nothing_is_masked_before_it_is_known_with_whom(world: World) -> None:
    world.keys()
    world.share()
    with pytest.raises(InvalidParameter, match="receive the shares"):
        world.parties["e00"].masked(np.zeros(3, dtype=np.int64), FIRST)


@pytest.mark.parametrize("vector", [np.zeros(3), np.zeros(3, dtype=np.int32), np.zeros((2, 2), dtype=np.int64), [1.5]])
def test_only_whole_numbers_of_64_bits_are_masked(world: World, vector: Any) -> None:
    with pytest.raises(InvalidParameter, match="whole numbers of 64 bits"):
        world.ready().parties["e00"].masked(vector, FIRST)


def test_uploads_that_the_run_does_not_have_are_refused(world: World) -> None:
    party = uploaded(world)
    with pytest.raises(InvalidParameter, match="known uploads: popularity, gram"):
        party.masked(np.zeros(3, dtype=np.int64), "third")
    with pytest.raises(InvalidParameter, match="known uploads: popularity, gram"):
        party.unmask(FIVE, "third")


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (FIVE[1:], "leave out this entity"),
        (FIVE[:3], "fewer than 4"),
        ([*FIVE, "e05"], "cannot have any"),
        ([*FIVE[:3], "e02"], "twice"),
        ([], "leave out"),
    ],
)
def test_survivors_that_break_a_rule_get_no_answer(world: World, told: list[str], reason: str) -> None:
    with pytest.raises(InvalidMessage, match=reason):
        uploaded(world).unmask(told, FIRST)


def test_survivors_are_among_those_who_shared(world: World) -> None:
    world.keys()
    world.share(FIVE[:4])
    world.receive()
    world.mask(FIRST, FIVE[:4])
    with pytest.raises(InvalidMessage, match="cannot have any in this stage"):
        world.parties["e00"].unmask(FIVE, FIRST)


def test_an_upload_is_not_unmasked_before_it_was_sent(world: World) -> None:
    party = uploaded(world)
    with pytest.raises(InvalidMessage, match="has not sent"):
        party.unmask(FIVE, SECOND)


def test_an_answer_holds_one_share_of_each_and_of_the_right_kind(world: World) -> None:
    party = uploaded(world)
    answer = UnmaskingShares.read(world.session, party.unmask(FIVE[:4], FIRST), FIRST, FIVE[:4], FIVE)
    for dealer in FIVE:
        kind = KEY if dealer == "e04" else SEED
        assert answer.shares[dealer] == party._share(dealer, 0, kind)
        others = {party._share(dealer, place, one) for place in (0, 1) for one in (SEED, KEY)} - {answer.shares[dealer]}
        assert len(others) == 3
        assert not any(other in answer.signed(world.session, party.key, FIVE[:4]) for other in others)


def test_secrets_are_dealt_so_that_the_fewest_give_them_back_and_one_less_do_not(world: World) -> None:
    dealer = world.ready().parties["e03"]
    for place, secrets in enumerate(zip(dealer.seeds, dealer.masking, strict=True)):
        for kind, secret in zip((SEED, KEY), secrets, strict=True):
            shares = {at: world.parties[name]._share("e03", place, kind) for at, name in enumerate(FIVE, start=1)}
            for count, gives in ((3, False), (4, True)):
                for holders in combinations(shares, count):
                    assert (combine({at: shares[at] for at in holders}) == secret) == gives


def dealt(world: World, dealer: str) -> dict[tuple[int, int], list[int]]:
    """By upload and kind: the polynomial that the shares in the parcels of one dealer lie on."""
    plan = world.session.plan
    return {
        (place, kind): polynomial(
            {plan.index(name): world.parties[name]._share(dealer, place, kind) for name in plan.names}, plan.threshold
        )
        for place in (0, 1)
        for kind in (SEED, KEY)
    }


def test_each_secret_is_dealt_on_a_polynomial_of_its_own(world: World) -> None:
    """On one polynomial for two secrets, whoever holds one share of each would know their difference."""
    world.ready()
    drawn: list[int] = []
    for dealer in FIVE:
        party, found = world.parties[dealer], dealt(world, dealer)
        for place, kind in found:
            secret = (party.seeds, party.masking)[kind][place]
            assert found[place, kind][0] == int.from_bytes(secret, "big")
            assert len(found[place, kind]) == world.session.plan.threshold
            drawn += found[place, kind][1:]
    assert len(set(drawn)) == len(drawn) == 5 * 4 * 3
    assert all(drawn)


def test_what_is_dealt_looks_uniform_and_independent_across_secrets_and_uploads() -> None:
    """Three of three entities: four polynomials of two coefficients each, of one dealer in 250 runs."""
    session, rows = session_of(3, 3), []
    for _ in range(250):
        world = World(session)
        keys = {name: party.keys_message for name, party in world.parties.items()}
        sent = SealedShares.read(session, world.parties["e01"].shares_message(keys), session.names).parcels
        for name, party in world.parties.items():
            party.peers = world.parties["e01"].peers
            party.held = {"e01": party._open("e01", sent[name])}
        rows.append(as_bytes(one for found in dealt(world, "e01").values() for one in found[1:]))
    assert len({one for row in rows for one in row}) == 250 * 8
    check_looks_uniform(rows, bits=521)


def test_each_upload_has_masks_of_its_own(world: World) -> None:
    """Were they the same, the difference of two masked uploads would be that of what is under them."""
    party, zeros = world.ready().parties["e00"], np.zeros(50, dtype=np.int64)
    values = [
        MaskedUpload.read(world.session, party.masked(zeros, one), one, FIVE, 50).values for one in (FIRST, SECOND)
    ]
    assert (values[0] != values[1]).all()


def test_masks_with_every_other_and_of_its_own_lie_on_an_upload(world: World) -> None:
    """All but one of the masks taken off, the rest still hides everything: for each of the five masks."""
    party = world.ready().parties["e02"]
    masked = MaskedUpload.read(world.session, party.masked(np.zeros(50, dtype=np.int64), FIRST), FIRST, FIVE, 50).values
    for kept in FIVE:
        rest = masked.copy()
        if kept != "e02":
            add_own_mask(world.session, rest, FIRST, "e02", party.seeds[0], subtract=True)
        for other in set(FIVE) - {kept, "e02"}:
            public = party.peers[other].masking[0]
            add_pair_mask(world.session, rest, FIRST, "e02", other, party.masking[0], public, subtract=True)
        assert rest.all()
        if kept == "e02":
            add_own_mask(world.session, rest, FIRST, "e02", party.seeds[0], subtract=True)
        else:
            public = party.peers[kept].masking[0]
            add_pair_mask(world.session, rest, FIRST, "e02", kept, party.masking[0], public, subtract=True)
        assert not rest.any()


# State


def restored(party: SecureParty) -> SecureParty:
    return SecureParty.from_bytes(party.to_bytes(), party.session, party.key)


def test_a_run_goes_on_after_a_restart_at_every_step() -> None:
    world = World(session_of(5, 4), between=restored)
    world.keys()
    world.share()
    world.receive()
    for upload, left in ((FIRST, FIVE), (SECOND, FIVE[1:])):
        world.upload(upload, left)
        assert (world.unmask(upload, left) == world.plain(upload, left)).all()


def test_rules_hold_after_a_restart_at_any_upload(world: World) -> None:
    """Also of the uploads before, and as often as it restarts."""
    party, zeros = world.ready().parties["e00"], np.zeros(50, dtype=np.int64)
    told = {FIRST: FIVE, SECOND: FIVE[:4]}
    answers: dict[str, bytes] = {}
    for upload in (FIRST, SECOND):
        vector = np.arange(50) + len(upload)
        sent = party.masked(vector, upload)
        party = restored(party)
        with pytest.raises(Conflict, match="masks are used once"):
            party.masked(zeros, upload)
        assert party.masked(vector, upload) == sent
        answers[upload] = party.unmask(told[upload], upload)
        for _ in range(2):
            party = restored(party)
            for before, answer in answers.items():
                # The first that is asked after a restart: an answer as before would fix the survivors anew.
                for other in (FIVE, FIVE[:4], [*FIVE[:3], "e04"]):
                    if other != told[before]:
                        with pytest.raises(Conflict, match="other survivors"):
                            restored(party).unmask(other, before)
                with pytest.raises(Conflict, match="masks are used once"):
                    restored(party).masked(zeros, before)
                assert restored(party).unmask(told[before], before) == answer


def test_nothing_of_a_state_is_lost_at_any_step(world: World) -> None:
    def check(party: SecureParty) -> SecureParty:
        again = restored(party)
        for one in fields(SecureParty):
            assert getattr(again, one.name) == getattr(party, one.name), one.name
        assert again.to_bytes() == party.to_bytes()
        return again

    world.between = check
    world.ready()
    for upload in (FIRST, SECOND):
        world.upload(upload, FIVE)
        world.unmask(upload, FIVE)
    party = check(world.parties["e00"])
    assert set(party.answered) == set(party.uploaded) == {FIRST, SECOND}


def test_keys_stay_fixed_after_a_restart(world: World) -> None:
    party = uploaded(world)
    again = restored(party)
    with pytest.raises(Conflict, match="other keys"):
        again.shares_message({name: world.sums.close_keys()[name] for name in FIVE[:4]})
    assert again.shares_message(world.sums.close_keys()) == party.sent_shares


def test_the_key_of_signatures_is_not_in_the_state(world: World) -> None:
    state = uploaded(world).to_bytes()
    assert key_of("e00") not in state
    assert key_of("e00").hex().encode() not in state


def test_a_state_that_cannot_be_used_is_refused(world: World) -> None:
    party = uploaded(world)
    state = party.to_bytes()
    with pytest.raises(InvalidData, match="another run"):
        SecureParty.from_bytes(state, session_of(5, 4, run="22" * 32), party.key)
    with pytest.raises(InvalidParameter, match="another key"):
        SecureParty.from_bytes(state, party.session, key_of("e01"))
    stored: dict[str, Any] = json.loads(state)
    broken = [state[:-1], b"", b"[]", b"\xff", b"null"]
    broken += [json.dumps({k: v for k, v in stored.items() if k != name}).encode() for name in stored]
    broken += [json.dumps({**stored, name: "x"}).encode() for name in stored if name not in ("me",)]
    broken += [json.dumps({**stored, "more": 1}).encode()]
    for one in broken:
        with pytest.raises(InvalidData):
            SecureParty.from_bytes(one, party.session, party.key)
