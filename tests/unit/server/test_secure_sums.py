"""The coordinator of a secure sum: right totals, drop-outs at every stage, and nothing for a server that lies."""

from itertools import combinations

import numpy as np
import pytest

from tacit.entity.secure_sum import SecureParty
from tacit.errors import Conflict, InconsistentShares, InvalidMessage, InvalidParameter, TooFewEntities
from tacit.messages.federated_prototypes.secure_sum import MaskedUpload, SealedShares, UnmaskingShares
from tacit.models.secure_sum import SHARE_BYTES, split
from tacit.server.secure_sums import SecureSums
from tests.unit.server.secure_runs import Liar, World, key_of, names, session_of, unsafe_session

EIGHT = names(8)
FIRST, SECOND = "popularity", "gram"


@pytest.fixture
def world() -> World:
    """Eight entities of which six must stay."""
    return World(session_of(8, 6)).ready()


def test_totals_are_the_plain_sums_modulo_2_to_the_64(world: World) -> None:
    for upload, cells in ((FIRST, 50), (SECOND, 131_072 + 3)):  # the second is longer than a chunk of the mask
        assert world.upload(upload, EIGHT, cells) == tuple(EIGHT)
        total = world.unmask(upload, EIGHT)
        assert total.dtype == np.int64
        assert (total == world.plain(upload, EIGHT)).all()


def test_small_signed_sums_come_back_as_they_are() -> None:
    world = World(session_of(3, 3)).ready()
    for name, value in zip(world.session.names, (-5, 2, 1), strict=True):
        world.sums.add_masked(world.parties[name].masked(np.array([value]), FIRST), FIRST, 1)
    assert world.unmask(FIRST, world.session.names).tolist() == [-2]


def test_who_never_sends_keys_or_shares_is_left_out() -> None:
    world = World(session_of(8, 6))
    world.keys(EIGHT[1:])
    world.share(EIGHT[2:])
    world.receive()
    assert world.upload(FIRST, EIGHT[2:]) == tuple(EIGHT[2:])
    assert (world.unmask(FIRST, EIGHT[2:]) == world.plain(FIRST, EIGHT[2:])).all()


@pytest.mark.parametrize("gone", [["e00"], ["e07"], ["e03", "e04"]])
def test_who_drops_out_before_masking_is_taken_out_of_the_masks_of_others(world: World, gone: list[str]) -> None:
    left = [name for name in EIGHT if name not in gone]
    assert world.upload(FIRST, left) == tuple(left)
    assert (world.unmask(FIRST, left) == world.plain(FIRST, left)).all()


def test_who_drops_out_after_masking_stays_in_the_sum(world: World) -> None:
    world.upload(FIRST, EIGHT)
    assert (world.unmask(FIRST, EIGHT[2:]) == world.plain(FIRST, EIGHT)).all()


def test_one_drops_out_before_masking_and_another_after(world: World) -> None:
    world.upload(FIRST, EIGHT[1:])
    assert (world.unmask(FIRST, EIGHT[1:7]) == world.plain(FIRST, EIGHT[1:])).all()


def test_who_missed_the_first_upload_may_send_the_second(world: World) -> None:
    world.upload(FIRST, EIGHT[:6])
    world.unmask(FIRST, EIGHT[:6])
    world.upload(SECOND, EIGHT[1:])
    assert (world.unmask(SECOND, EIGHT[1:]) == world.plain(SECOND, EIGHT[1:])).all()


def test_a_total_needs_as_many_answers_as_must_stay_and_waits_for_them(world: World) -> None:
    survivors = world.upload(FIRST, EIGHT)
    for name in EIGHT[:5]:
        world.sums.add_unmask(world.parties[name].unmask(survivors, FIRST), FIRST)
    with pytest.raises(TooFewEntities, match="5 entities helped to unmask the popularity, and 6 are needed"):
        world.sums.total(FIRST)
    assert (world.unmask(FIRST, EIGHT[5:6]) == world.plain(FIRST, EIGHT)).all()


def test_too_few_at_any_stage_end_the_run_before_anything_is_unmasked() -> None:
    sums, world = SecureSums(session_of(8, 6)), World(session_of(8, 6))
    for name in EIGHT[:5]:
        sums.add_keys(world.parties[name].keys_message)
    with pytest.raises(TooFewEntities, match="5 entities sent their keys, and 6 are needed"):
        sums.close_keys()
    world.keys()
    for name in EIGHT[:5]:
        world.sums.add_shares(world.parties[name].shares_message(world.sums.close_keys()))
    with pytest.raises(TooFewEntities, match="sent their shares"):
        world.sums.close_shares()
    ready = World(session_of(8, 6)).ready()
    ready.mask(FIRST, EIGHT[:5])
    with pytest.raises(TooFewEntities, match="sent their popularity"):
        ready.sums.close_upload(FIRST)
    with pytest.raises(InvalidMessage, match="not closed"):
        ready.sums.total(FIRST)
    with pytest.raises(
        InvalidMessage, match="fewer than 6"
    ):  # and if the server asked all the same, nobody would answer
        ready.parties["e00"].unmask(EIGHT[:5], FIRST)


def test_a_false_share_is_recognised_and_the_others_suffice(world: World) -> None:
    survivors = world.upload(FIRST, EIGHT[1:])
    honest = UnmaskingShares.read(world.session, world.parties["e01"].unmask(survivors, FIRST), FIRST, survivors, EIGHT)
    for dealer in ("e00", "e01", "e05"):  # a key share of the one who is gone, seed shares of others
        share = bytearray(honest.shares[dealer])
        share[-1] ^= 1
        false = UnmaskingShares("e01", FIRST, {**honest.shares, dealer: bytes(share)})
        with pytest.raises(InvalidMessage, match=f"e01 gave shares of {dealer} that are not"):
            world.sums.add_unmask(false.signed(world.session, key_of("e01"), survivors), FIRST)
    assert (world.unmask(FIRST, EIGHT[2:]) == world.plain(FIRST, EIGHT[1:])).all()


def test_a_share_of_the_other_kind_is_not_taken(world: World) -> None:
    survivors = world.upload(FIRST, EIGHT[1:])
    party = world.parties["e01"]
    both = {dealer: party._share(dealer, 0, 0 if dealer == "e00" else 1) for dealer in EIGHT}
    with pytest.raises(InvalidMessage, match="e00, e01, e02 and 5 others"):
        world.sums.add_unmask(UnmaskingShares("e01", FIRST, both).signed(world.session, party.key, survivors), FIRST)


@pytest.mark.parametrize("gone", [(), ("e00",)])
def test_shares_dealt_of_another_secret_give_no_total(monkeypatch: pytest.MonkeyPatch, gone: tuple[str, ...]) -> None:
    """An entity deals, seals and commits to shares of other secrets than those it uses."""
    world = World(session_of(8, 6))
    world.keys()
    with monkeypatch.context() as patch:
        patch.setattr("tacit.entity.secure_sum.split", lambda secret, *sizes: split(bytes(32), *sizes))
        false = world.parties["e00"].shares_message(world.sums.close_keys())
    world.sums.add_shares(false)
    world.share(EIGHT[1:])
    world.receive()
    left = [name for name in EIGHT if name not in gone]
    world.upload(FIRST, left)
    with pytest.raises(InconsistentShares, match="that e00 dealt do not give the secret") as caught:
        world.unmask(FIRST, left)
    assert caught.value.code == "inconsistent-shares"


def test_shares_that_lie_on_no_polynomial_give_no_total(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(session_of(8, 6))
    world.keys()
    with monkeypatch.context() as patch:
        patch.setattr("tacit.entity.secure_sum.split", lambda *_: [bytes([place]) * SHARE_BYTES for place in range(8)])
        false = world.parties["e04"].shares_message(world.sums.close_keys())
    world.sums.add_shares(false)
    world.share([name for name in EIGHT if name != "e04"])
    world.receive()
    world.upload(FIRST, EIGHT)
    with pytest.raises(InconsistentShares, match="e04"):
        world.unmask(FIRST, EIGHT)


def test_a_message_that_comes_again_changes_nothing_and_another_one_is_refused(world: World) -> None:
    sent = world.mask(FIRST, EIGHT)
    assert not world.sums.add_masked(sent["e00"], FIRST, 50)
    other = MaskedUpload("e00", FIRST, np.zeros(50, dtype=np.uint64)).signed(world.session, key_of("e00"), EIGHT)
    with pytest.raises(Conflict):
        world.sums.add_masked(other, FIRST, 50)
    assert not world.sums.add_keys(world.parties["e00"].keys_message)
    assert not world.sums.add_shares(world.parties["e00"].sent_shares)
    with pytest.raises(Conflict):
        world.sums.add_keys(SecureParty.start(world.session, "e00", key_of("e00")).keys_message)
    parcels = dict.fromkeys(EIGHT, bytes(world.session.parcel_bytes))
    with pytest.raises(Conflict):
        world.sums.add_shares(SealedShares("e00", parcels).signed(world.session, key_of("e00")))
    survivors = world.sums.close_upload(FIRST)
    reply = world.parties["e00"].unmask(survivors, FIRST)
    assert world.sums.add_unmask(reply, FIRST)
    assert not world.sums.add_unmask(reply, FIRST)
    assert (world.unmask(FIRST, EIGHT[1:]) == world.plain(FIRST, EIGHT)).all()


def test_late_messages_are_refused(world: World) -> None:
    late = world.parties["e07"].masked(np.zeros(50, dtype=np.int64), FIRST)
    survivors = world.upload(FIRST, EIGHT[:7])
    with pytest.raises(InvalidMessage, match="too late"):
        world.sums.add_masked(late, FIRST, 50)
    with pytest.raises(InvalidMessage, match="leave out this entity"):
        world.parties["e07"].unmask(survivors, FIRST)
    without = World(session_of(8, 6))
    without.keys(EIGHT[:7])
    with pytest.raises(InvalidMessage, match="too late"):
        without.sums.add_keys(without.parties["e07"].keys_message)
    without.share(EIGHT[:6])
    with pytest.raises(InvalidMessage, match="too late"):
        without.sums.add_shares(without.parties["e06"].shares_message(without.sums.close_keys()))
    without.receive()
    outsider = MaskedUpload("e06", FIRST, np.zeros(50, dtype=np.uint64)).signed(
        without.session, key_of("e06"), EIGHT[:6]
    )
    with pytest.raises(InvalidMessage, match="dropped out"):
        without.sums.add_masked(outsider, FIRST, 50)


def test_who_is_lost_takes_no_part_in_later_stages(world: World) -> None:
    survivors = world.upload(FIRST, EIGHT[1:])
    party = world.parties["e00"]  # breaks the rules of an entity
    shares = {dealer: party._share(dealer, 0, 0 if dealer in survivors else 1) for dealer in EIGHT}
    with pytest.raises(InvalidMessage, match="dropped out"):
        world.sums.add_unmask(UnmaskingShares("e00", FIRST, shares).signed(world.session, party.key, survivors), FIRST)
    without = World(session_of(8, 6))
    without.keys(EIGHT[1:])
    parcels = dict.fromkeys(EIGHT[1:], bytes(without.session.parcel_bytes))
    with pytest.raises(InvalidMessage, match="dropped out"):
        without.sums.add_shares(SealedShares("e00", parcels).signed(without.session, key_of("e00")))


def test_messages_of_another_run_upload_kind_or_signer_are_refused(world: World) -> None:
    elsewhere = World(session_of(8, 6, run="00" * 32)).ready()
    with pytest.raises(InvalidMessage, match="run"):
        world.sums.add_masked(elsewhere.mask(FIRST, ["e00"])["e00"], FIRST, 50)
    with pytest.raises(InvalidMessage, match="upload"):
        world.sums.add_masked(world.mask(SECOND, ["e00"])["e00"], FIRST, 50)
    with pytest.raises(InvalidMessage):
        world.sums.add_masked(world.parties["e00"].keys_message, FIRST, 50)
    stolen = MaskedUpload("e00", FIRST, np.zeros(50, dtype=np.uint64)).signed(world.session, key_of("e01"), EIGHT)
    with pytest.raises(InvalidMessage, match="signature"):
        world.sums.add_masked(stolen, FIRST, 50)
    with pytest.raises(InvalidMessage, match="shape"):
        world.sums.add_masked(world.parties["e00"].masked(np.zeros(49, dtype=np.int64), FIRST), FIRST, 50)
    with pytest.raises(InvalidParameter, match="unknown upload; known uploads: popularity, gram"):
        world.sums.add_masked(b"", "other", 50)


def test_masks_against_other_entities_than_the_sharers_are_refused(world: World) -> None:
    other = MaskedUpload("e00", FIRST, np.zeros(50, dtype=np.uint64)).signed(world.session, key_of("e00"), EIGHT[:7])
    with pytest.raises(InvalidMessage, match="sharers"):
        world.sums.add_masked(other, FIRST, 50)


def test_the_same_messages_in_another_order_give_the_same(world: World) -> None:
    sent = world.mask(FIRST, EIGHT[1:])
    total = world.unmask(FIRST, EIGHT[1:])
    again = SecureSums(world.session)
    for name in reversed(EIGHT):
        again.add_keys(world.parties[name].keys_message)
    again.close_keys()
    for name in reversed(EIGHT):
        again.add_shares(world.parties[name].sent_shares)
    again.close_shares()
    for name in reversed(EIGHT[1:]):
        again.add_masked(sent[name], FIRST, 50)
    survivors = again.close_upload(FIRST)
    for name in EIGHT[1:7]:  # and with the help of others
        again.add_unmask(world.parties[name].unmask(survivors, FIRST), FIRST)
    assert (again.total(FIRST) == total).all()


def test_what_is_given_cannot_be_changed_from_outside(world: World) -> None:
    world.upload(FIRST, EIGHT)
    total = world.unmask(FIRST, EIGHT)
    total[:] = 0
    assert (world.sums.total(FIRST) == world.plain(FIRST, EIGHT)).all()


# A server that lies about who is left


def liar(world: World, colluders: tuple[str, ...] = ("e00",)) -> Liar:
    told = Liar(world, FIRST, world.mask(FIRST, world.session.names), colluders)
    told.bribe()
    return told


def test_a_server_that_says_the_truth_learns_the_total_and_no_smaller_sum(world: World) -> None:
    server = liar(world)
    for name in EIGHT[1:]:
        server.tell(name, EIGHT)
    assert (server.sum_of(EIGHT) == world.plain(FIRST, EIGHT)).all()  # type: ignore[union-attr]
    smaller = [group for size in range(1, 8) for group in combinations(EIGHT, size)]
    # Without those who collude it knows what they know: their vectors, too.
    assert [group for group in smaller if server.sum_of(group) is not None] == [tuple(EIGHT[1:])]


def test_two_stories_give_no_second_total(world: World) -> None:
    server = liar(world)
    for name in EIGHT[1:]:
        server.tell(name, EIGHT)
    for name in EIGHT[2:]:
        with pytest.raises(Conflict):
            server.tell(name, [one for one in EIGHT if one != "e01"])
    without = [one for one in EIGHT if one != "e01"]
    assert server.sum_of(without) is None


def in_two_groups(world: World) -> Liar:
    """Tells e01 to e04 that all are left, the others that e01 is not."""
    server = liar(world)
    for name in EIGHT[1:]:
        server.tell(name, [one for one in EIGHT if one != "e01"] if name > "e04" else EIGHT)
    return server


def test_two_stories_to_two_groups_give_no_total_at_all(world: World) -> None:
    server = in_two_groups(world)
    groups = [group for size in range(1, 9) for group in combinations(EIGHT, size)]
    assert [group for group in groups if server.sum_of(group) is not None] == []


def test_with_too_low_a_threshold_two_groups_unmask_one_entity_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: 2 * 4 <= 8 + 1."""
    world = World(unsafe_session(monkeypatch, 8, 4)).ready()
    server = in_two_groups(world)
    whole, rest = server.sum_of(EIGHT), server.sum_of([one for one in EIGHT if one != "e01"])
    assert whole is not None
    assert rest is not None
    assert (whole - rest == world.vectors[FIRST]["e01"]).all()


def test_an_entity_that_forgets_what_it_answered_lets_a_server_unmask_one_alone(world: World) -> None:
    """The broken twin of the rule above: the difference of two totals is one entity's vector."""
    server = liar(world)
    remembered = {name: party.to_bytes() for name, party in world.parties.items()}
    for name in EIGHT[1:]:
        server.tell(name, EIGHT)
    whole = server.sum_of(EIGHT)
    for name in EIGHT[2:]:
        world.parties[name] = SecureParty.from_bytes(remembered[name], world.session, key_of(name))
        server.tell(name, [one for one in EIGHT if one != "e01"])
    rest = server.sum_of([one for one in EIGHT if one != "e01"])
    assert whole is not None
    assert rest is not None
    assert (whole - rest == world.vectors[FIRST]["e01"]).all()


def test_too_low_a_fewest_lets_a_server_unmask_too_small_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven entities of which five must stay: 2 * 5 > 7 + 1, and yet. Each is told two drop-outs of the server's choice."""
    with pytest.raises(InvalidParameter, match="fewest must be from 6 to 7"):
        session_of(7, 5)
    world = World(unsafe_session(monkeypatch, 7, 5)).ready()
    server = liar(world)
    told = {  # every one of e01, e02, e03 is called missing by four of those who do not collude
        "e01": ("e02", "e03"),
        "e02": ("e01", "e03"),
        "e03": ("e01", "e02"),
        "e04": ("e01", "e02"),
        "e05": ("e02", "e03"),
        "e06": ("e01", "e03"),
    }
    for name, missing in told.items():
        server.tell(name, [one for one in world.session.names if one not in missing])
    small = server.sum_of(["e04", "e05", "e06"])  # of four honest entities or more, it should be
    assert small is not None
    assert (small == world.plain(FIRST, ["e04", "e05", "e06"])).all()


# A colluder with two sets of keys, an entity whose shares are kept from the others, three entities


def two_faced(world: World, others: list[str]) -> Liar:
    """e00 signs two `keys` messages. The server shows ``others`` the second, and passes on the parcels that go with each."""
    first, twin = world.parties["e00"], SecureParty.start(world.session, "e00", key_of("e00"))
    keys = world.keys()
    shown = {name: {**keys, "e00": twin.keys_message} if name in others else keys for name in EIGHT}
    sent = {name: world.parties[name].shares_message(shown[name]) for name in EIGHT}
    for message in sent.values():
        assert world.sums.add_shares(message)
    parcels = world.sums.close_shares()
    second = SealedShares.read(world.session, twin.shares_message({**keys, "e00": twin.keys_message}), EIGHT).parcels
    for name in EIGHT[1:]:
        mine = second[name] if name in others else parcels[name]["e00"]
        world.parties[name].receive({**parcels[name], "e00": mine})
    # Each face opens the parcels that were sealed for it; together they hold one share of each secret, as everybody does.
    for face, dealers in ((first, {*EIGHT} - {*others}), (twin, others)):
        face.held = {dealer: face._open(dealer, parcels["e00"][dealer]) for dealer in dealers}
        with pytest.raises(InvalidMessage, match="does not open"):
            face.receive(parcels["e00"])
    first.held.update(twin.held)
    server = Liar(world, FIRST, world.mask(FIRST, EIGHT), ("e00",), twins=(twin,))
    server.bribe()
    assert {len(shares) for shares in server.shares.values()} == {1}
    return server


@pytest.mark.parametrize("others", [["e07"], ["e05", "e06", "e07"]])
def test_two_sets_of_keys_of_a_colluder_show_no_smaller_sum(others: list[str]) -> None:
    world = World(session_of(8, 6))
    server = two_faced(world, others)
    for name in EIGHT[1:]:
        server.tell(name, EIGHT)
    assert (server.sum_of(EIGHT[1:]) == world.plain(FIRST, EIGHT[1:])).all()  # type: ignore[union-attr]
    for group in (group for size in range(1, 7) for group in combinations(EIGHT[1:], size)):
        assert server.sum_of(group) is None


def test_a_server_that_showed_two_sets_of_keys_spoils_its_own_total() -> None:
    """The masks between both groups and e00 do not cancel. Six helpers suffice, and nothing else warns who lied by itself."""
    world = World(session_of(8, 6))
    two_faced(world, ["e07"])
    assert (world.unmask(FIRST, EIGHT[:7]) != world.plain(FIRST, EIGHT)).all()


def test_who_saw_the_second_set_of_keys_is_no_help_with_the_first() -> None:
    """The shares it holds are not those that the first set's owner is committed to."""
    world = World(session_of(8, 6))
    two_faced(world, ["e05", "e06", "e07"])
    survivors = world.sums.close_upload(FIRST)
    for name in EIGHT[:5]:
        assert world.sums.add_unmask(world.parties[name].unmask(survivors, FIRST), FIRST)
    for name in EIGHT[5:]:
        with pytest.raises(InvalidMessage, match=f"{name} gave shares of e00 that are not those it was dealt"):
            world.sums.add_unmask(world.parties[name].unmask(survivors, FIRST), FIRST)
    with pytest.raises(TooFewEntities, match="5 entities helped"):
        world.sums.total(FIRST)


def test_an_entity_whose_shares_are_kept_from_the_others_is_in_no_sum() -> None:
    """It gets everybody's parcels, its own too, and uploads; the others were told that it has not shared."""
    world = World(session_of(8, 6))
    world.keys()
    for name, parcels in world.share().items():
        world.parties[name].receive(parcels if name == "e07" else {one: parcels[one] for one in EIGHT[:7]})
    masked = {name: world.parties[name].masked(np.full(50, 1 + at), FIRST) for at, name in enumerate(EIGHT)}
    with pytest.raises(InvalidMessage, match="sharers"):  # an honest coordinator would not take one of these
        world.sums.add_masked(masked["e00"], FIRST, 50)
    server = Liar(world, FIRST, masked, ("e00",))
    world.parties["e00"].held["e07"] = world.parties["e00"]._open("e07", world.sums.close_shares()["e00"]["e07"])
    server.bribe()
    for name in EIGHT[1:7]:
        server.tell(name, EIGHT[:7])
    server.tell("e07", EIGHT)
    assert len(server.shares["e07", 0]) == 2  # its own and the colluder's, of six
    assert server.secret("e07", 0) is None
    assert server.secret("e07", 1) is None
    assert all(server.secret(name, 0) is not None for name in EIGHT[1:7])


def test_three_entities_show_one_of_them_the_sum_of_the_two_others_and_lose_nobody() -> None:
    world = World(session_of(3, 3)).ready()
    three = world.session.names
    server = Liar(world, FIRST, world.mask(FIRST, three), ("e00",))
    server.bribe()
    for name in three[1:]:
        with pytest.raises(InvalidMessage, match="fewer than 3"):
            server.tell(name, [name, "e00"])
        server.tell(name, three)
    assert (server.sum_of(three[1:]) == world.plain(FIRST, three[1:])).all()  # type: ignore[union-attr]
    assert server.sum_of(["e01"]) is None
    assert server.sum_of(["e02"]) is None


def test_masked_uploads_say_nothing_about_what_is_under_them(world: World) -> None:
    """Zeros from everybody, 64,000 cells: bits, bytes and differences between entities are those of uniform numbers."""
    cells = 64_000
    vectors = [
        MaskedUpload.read(
            world.session, world.parties[name].masked(np.zeros(cells, dtype=np.int64), FIRST), FIRST, EIGHT, cells
        ).values
        for name in EIGHT
    ]
    for values in [*vectors, vectors[0] - vectors[1], vectors[0] + vectors[1]]:
        counts = np.bincount(values.view(np.uint8), minlength=256)
        statistic = ((counts - 2000.0) ** 2 / 2000.0).sum()  # chi-square, 255 degrees of freedom: sd 22.6
        assert 255 - 8 * 22.6 < statistic < 255 + 8 * 22.6
        bits = np.unpackbits(values.view(np.uint8)).mean()
        assert abs(bits - 0.5) < 6.5 * 0.5 / (64 * cells) ** 0.5
    assert len({values.tobytes() for values in vectors}) == 8
