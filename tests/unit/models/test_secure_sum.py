"""The arithmetic of secure sums: which plans are safe, shares, masks, parcels."""

import os
from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from tacit.errors import InvalidMessage, InvalidParameter
from tacit.models.secure_sum import (
    PARCEL_EXTRA,
    PRIME,
    SHARE_BYTES,
    SumPlan,
    SumSession,
    add_own_mask,
    add_pair_mask,
    add_stream,
    bound,
    check_public,
    combine,
    commitment,
    evaluate,
    least_fewest,
    mask_key,
    new_private,
    open_parcel,
    pair_key,
    parcel_context,
    parcel_key,
    public_of,
    safe,
    seal,
    seed_commitment,
    share_commitment,
    split,
    weights,
)
from tests.unit.server.secure_runs import as_bytes, check_looks_uniform, polynomial

SYSTEM = os.urandom
NAMES = tuple(f"e{place:02d}" for place in range(20))


# Plans


@pytest.mark.parametrize(
    ("entities", "colluding", "least"),
    [(3, 1, 3), (4, 1, 3), (5, 1, 4), (6, 1, 5), (8, 1, 6), (10, 1, 8), (10, 3, 8), (10, 4, 9), (20, 2, 17)],
)
def test_the_smallest_safe_fewest(entities: int, colluding: int, least: int) -> None:
    assert least_fewest(entities, colluding) == least
    assert SumPlan(NAMES[:entities], least, colluding).threshold == least
    with pytest.raises(InvalidParameter, match=f"fewest must be from {least} to {entities}"):
        SumPlan(NAMES[:entities], least - 1, colluding)


def test_of_144_hospitals_eleven_may_be_missing() -> None:
    assert least_fewest(144, 1) == 133


def test_a_safe_plan_has_room_for_one_total_and_two_honest_entities() -> None:
    for entities, colluding in product(range(1, 60), range(1, 12)):
        for fewest in range(entities + 1):
            if safe(entities, fewest, colluding):
                assert 2 * fewest > entities + colluding
                assert fewest - colluding >= 2
        assert not safe(entities, colluding + 1, colluding)  # one honest entity would be seen alone
    assert not safe(2, 2, 1)
    assert safe(3, 3, 1)


def attackable(entities: int, fewest: int, colluding: int, honest: int, missing: int) -> bool:
    """Whether stories exist that give a total over ``honest`` entities that do not collude, ``missing`` others being called lost.

    A whole program over what the server tells each entity v that does not collude: has[v, j], that j has shared; lost[v, j], that j
    has dropped out since. All who collude are always there. The first ``honest`` entities are the total, the next are the lost.
    """
    count = entities - colluding
    has, lost = np.arange(count**2).reshape(count, count), np.arange(count**2, 2 * count**2).reshape(count, count)
    rows, low, high = [], [], []

    def demand(terms: dict[int, int], least: float, most: float) -> None:
        row = np.zeros(2 * count**2)
        row[list(terms)] = list(terms.values())
        rows.append(row)
        low.append(least)
        high.append(most)

    for v in range(count):
        demand({has[v, v]: 1}, 1, 1)
        demand({lost[v, v]: 1}, 0, 0)
        demand({**dict.fromkeys(has[v], 1), **dict.fromkeys(lost[v], -1)}, fewest - colluding, np.inf)
        for j in range(count):
            demand({has[v, j]: 1, lost[v, j]: -1}, 0, np.inf)  # only who has shared can be lost
        if v < honest:  # its masks are with the total, with the lost, and with nobody else
            for j in range(honest + missing, count):
                demand({has[v, j]: 1}, 0, 0)
    for j in range(honest, honest + missing):
        demand(
            dict.fromkeys(lost[:, j], 1), fewest - colluding, np.inf
        )  # shares of its masking key, with the colluders' own
    for j in range(honest):
        demand(
            {**dict.fromkeys(has[:, j], 1), **dict.fromkeys(lost[:, j], -1)}, fewest - colluding, np.inf
        )  # and of seeds
    found = milp(
        np.zeros(2 * count**2),
        constraints=LinearConstraint(np.array(rows), low, high),
        integrality=np.ones(2 * count**2),
        bounds=Bounds(0, 1),
    )
    assert found.status in (0, 2)  # solved, or shown to have no solution
    return bool(found.status == 0)


@pytest.mark.parametrize("colluding", [1, 2])
@pytest.mark.parametrize("entities", range(4, 11))
def test_a_plan_is_safe_exactly_if_no_stories_of_the_server_give_too_small_a_total(
    entities: int, colluding: int
) -> None:
    for fewest in range((entities + colluding) // 2 + 1, entities):
        if fewest - colluding < 2:
            continue
        attacks = [
            (honest, missing)
            for honest in range(1, fewest - colluding)
            for missing in range(entities - colluding - honest + 1)
            if attackable(entities, fewest, colluding, honest, missing)
        ]
        assert (not attacks) == safe(entities, fewest, colluding), (fewest, attacks)


def test_a_total_of_enough_is_no_attack() -> None:
    """The program of the test above finds the honest story."""
    assert attackable(8, 6, 1, 7, 0)
    assert attackable(8, 6, 1, 5, 2)


@pytest.mark.parametrize(
    ("names", "fewest", "colluding", "reason"),
    [
        (("b", "a", "c"), 3, 1, "sorted"),
        (("a", "a", "c"), 3, 1, "each of them once"),
        (("", "a", "c"), 3, 1, "texts"),
        (("a", "b"), 2, 1, "at least 3 must take part"),  # each knows its own: nothing is hidden from the other
        (("a", "b", "c"), 3, 2, "at least 4 must take part"),
        (("a", "b", "c"), 3, 0, "colluding must be a whole number at least 1"),
        (("a", "b", "c"), 4, 1, "fewest must be a whole number from 1 to 3"),
        (("a", "b", "c"), 2, 1, "fewest must be from 3 to 3"),
        (("a", "b", "c"), 2.0, 1, "fewest must be a whole number"),
        (NAMES[:10], 5, 1, "fewest must be from 8 to 10"),
        (NAMES[:10], 1, 1, "fewest must be from 8 to 10"),
    ],
)
def test_plans_that_are_none(names: tuple[str, ...], fewest: int, colluding: int, reason: str) -> None:
    with pytest.raises(InvalidParameter, match=reason):
        SumPlan(names, fewest, colluding)


def test_sessions_that_are_none() -> None:
    keys = {name: bytes([place]) * 32 for place, name in enumerate("abc")}
    assert SumSession("0a" * 32, dict(reversed(keys.items())), 3, 1).names == ("a", "b", "c")
    for run in ("0a" * 31, "0A" * 32, "", 5):
        with pytest.raises(InvalidParameter, match="64 hexadecimal digits"):
            SumSession(run, keys, 3, 1)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="of its own"):  # one entity under two names would count twice
        SumSession("0a" * 32, {**keys, "c": keys["a"]}, 3, 1)
    with pytest.raises(InvalidParameter, match="32 bytes"):
        SumSession("0a" * 32, {**keys, "c": b"short"}, 3, 1)
    for uploads in ((), ("a", "a"), ("",)):
        with pytest.raises(InvalidParameter, match="uploads"):
            SumSession("0a" * 32, keys, 3, 1, uploads)


# Shares


def test_the_modulus_is_prime() -> None:
    value = 4  # Lucas and Lehmer's test of 2^521 - 1
    for _ in range(521 - 2):
        value = (value * value - 2) % PRIME
    assert value == 0


def test_any_threshold_of_shares_gives_the_secret_and_one_fewer_or_a_wrong_one_does_not() -> None:
    for secret in (bytes(32), b"\xff" * 32, new_private()):
        shares = dict(enumerate(split(secret, 4, 6), start=1))
        assert all(len(share) == SHARE_BYTES for share in shares.values())
        for holders in combinations(shares, 4):
            assert combine({at: shares[at] for at in holders}) == secret
            false = {at: shares[at] for at in holders}
            false[holders[0]] = (int.from_bytes(shares[holders[0]], "big") ^ 1).to_bytes(SHARE_BYTES, "big")
            assert combine(false) != secret
        for holders in combinations(shares, 3):
            assert combine({at: shares[at] for at in holders}) != secret


def test_fewer_shares_than_the_threshold_are_uniform_whatever_the_secret() -> None:
    """By enumeration of all polynomials of degree 2 modulo 7."""
    for holders in combinations(range(1, 6), 2):
        laws = []
        for secret in range(7):
            polynomials = ([secret, *rest] for rest in product(range(7), repeat=2))
            laws.append(Counter(tuple(evaluate(one, at, 7) for at in holders) for one in polynomials))
        assert all(law == laws[0] for law in laws)
        assert set(laws[0].values()) == {1}
        assert len(laws[0]) == 49
    assert sum(w * evaluate([3, 5, 6], at, 7) for w, at in zip(weights((1, 3, 4), 7), (1, 3, 4), strict=True)) % 7 == 3


def test_coefficients_are_drawn_anew_and_over_the_whole_field() -> None:
    """The share at 1 minus the secret is the coefficient, at a threshold of 2: uniform below 2^521 - 1."""
    drawn = [int.from_bytes(split(bytes(32), 2, 1)[0], "big") for _ in range(2000)]
    assert len(set(drawn)) == 2000
    assert max(drawn) < PRIME
    for bit in (0, 260, 519, 520):
        assert abs(sum(value >> bit & 1 for value in drawn) - 1000) < 6.5 * 500**0.5  # sd 22.4


@pytest.mark.parametrize(("threshold", "count"), [(2, 3), (3, 3), (4, 6), (9, 10)])
def test_a_secret_lies_on_a_polynomial_of_full_degree_whose_coefficients_are_draws_of_their_own(
    threshold: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With any of them 0, equal or computed from others, fewer than the threshold would give the secret."""
    drawn: list[bytes] = []

    def recorded(size: int) -> bytes:
        drawn.append(SYSTEM(size))
        return drawn[-1]

    monkeypatch.setattr(os, "urandom", recorded)
    secret = bytes(range(32))
    for _ in range(20):
        drawn.clear()
        shares = dict(enumerate(split(secret, threshold, count), start=1))
        constant, *rest = polynomial(shares, threshold)
        assert constant == int.from_bytes(secret, "big")
        assert len(rest) == len(set(rest)) == threshold - 1
        assert all(rest)
        assert [len(one) for one in drawn] == [SHARE_BYTES] * (threshold - 1)
        assert Counter(rest) == Counter(int.from_bytes(one, "big") >> 7 for one in drawn)  # 521 of 528 bits


def test_coefficients_look_uniform_and_independent_in_every_bit() -> None:
    runs = [dict(enumerate(split(bytes(32), 4, 4), start=1)) for _ in range(400)]
    check_looks_uniform([as_bytes(polynomial(shares, 4)[1:]) for shares in runs], bits=521)
    # ... and so do any three shares, of a secret of zeros as of one of ones
    for secret, three in ((bytes(32), (0, 1, 2)), (b"\xff" * 32, (0, 2, 3))):
        dealt = [split(secret, 4, 4) for _ in range(400)]
        check_looks_uniform([[shares[at] for at in three] for shares in dealt], bits=521)


# Masks, keys, parcels


def test_private_keys_and_seeds_are_random_in_every_bit() -> None:
    drawn = [(new_private(), new_private()) for _ in range(400)]
    check_looks_uniform(drawn, bits=256)
    check_looks_uniform(
        [[first[at : at + 1] for at in range(32)] for first, _ in drawn], bits=8
    )  # no byte repeats another


def test_nonces_are_random_in_every_bit() -> None:
    check_looks_uniform([[seal(bytes(32), b"", b"")[: PARCEL_EXTRA - 16]] for _ in range(400)], bits=96)


FIELD = 2**255 - 19
ORDER_8 = 325606250916557431795983626356110631294008115727848805560023387167927233504
SMALL = [value.to_bytes(32, "little") for value in (0, 1, FIELD - 1, FIELD, FIELD + 1, ORDER_8)]


def test_two_entities_agree_on_a_key_for_one_purpose_only() -> None:
    first, second, third = new_private(), new_private(), new_private()
    key = pair_key(first, public_of(second), "mask", "run", "popularity")
    assert key == pair_key(second, public_of(first), "mask", "run", "popularity")
    others = [
        pair_key(first, public_of(third), "mask", "run", "popularity"),
        pair_key(first, public_of(second), "mask", "run", "gram"),
        pair_key(first, public_of(second), "mask", "ru", "npopularity"),
        pair_key(first, public_of(second), "parcel", "run", "popularity"),
    ]
    assert len({key, *others}) == 5


@pytest.mark.parametrize("point", SMALL)
def test_points_of_small_order_are_refused(point: bytes) -> None:
    with pytest.raises(InvalidMessage, match="agreed"):
        pair_key(new_private(), point, "mask")
    with pytest.raises(InvalidMessage, match="agreed"):
        check_public(point)


def test_keys_and_streams_are_those_of_the_standards() -> None:
    bob = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")  # RFC 7748, 6.1
    assert public_of(bob).hex() == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    vector = np.zeros(8, dtype=np.uint64)
    add_stream(vector, bytes(32))  # RFC 8439, A.1, vector 1: the key stream of a key of zeros
    assert (
        vector.astype("<u8")
        .tobytes()
        .hex()
        .startswith("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")
    )


@pytest.mark.parametrize("cells", [0, 1, 7, 131_071, 131_072, 131_073, 300_000])
def test_a_mask_that_is_added_and_taken_off_leaves_nothing_and_is_one_stream(cells: int) -> None:
    key = mask_key(new_private(), "own mask")
    vector = np.arange(cells, dtype=np.uint64)
    add_stream(vector, key)
    if cells > 1:
        assert (vector != np.arange(cells, dtype=np.uint64)).mean() > 0.5
    longer = np.zeros(cells + 10, dtype=np.uint64)
    add_stream(longer, key)
    assert (vector - np.arange(cells, dtype=np.uint64) == longer[:cells]).all()
    assert len(np.unique(longer)) == cells + 10  # no chunk comes again
    add_stream(vector, key, subtract=True)
    assert (vector == np.arange(cells, dtype=np.uint64)).all()


def test_what_one_of_a_pair_adds_the_other_takes_off() -> None:
    session = SumSession("0a" * 32, {name: bytes([place]) * 32 for place, name in enumerate("abc")}, 3, 1)
    first, second = new_private(), new_private()
    sums = np.zeros(9, dtype=np.uint64)
    add_pair_mask(session, sums, "gram", "a", "b", first, public_of(second))
    assert sums.all()
    add_pair_mask(session, sums, "gram", "b", "a", second, public_of(first))
    assert not sums.any()


def test_the_same_secrets_give_others_in_another_run_upload_or_pair() -> None:
    """No secret is used twice; if one were, run, upload and names would still keep the uses apart."""
    keys = {name: bytes([place]) * 32 for place, name in enumerate("abc")}
    runs = [SumSession(run * 32, keys, 3, 1) for run in ("0a", "0b")]
    first, second = new_private(), public_of(new_private())
    found: list[bytes] = []
    for session, upload, (one, other) in product(runs, ("popularity", "gram"), combinations("abc", 2)):
        pair = np.zeros(4, dtype=np.uint64)
        add_pair_mask(session, pair, upload, one, other, first, second)
        found.append(pair.tobytes())
        found += [
            share_commitment(session, upload, kind, *names, first)
            for kind in (0, 1)
            for names in (one + other, other + one)
        ]
    for session, names in product(runs, ("ab", "ba", "ac")):
        found += [parcel_key(session, first, second, *names), parcel_context(session, *names, b"")]
    for session, upload, name in product(runs, ("popularity", "gram"), "abc"):
        own = np.zeros(4, dtype=np.uint64)
        add_own_mask(session, own, upload, name, first)
        found += [own.tobytes(), seed_commitment(session, upload, name, first)]
    found += [bytes.fromhex(session.digest(names)) for session in runs for names in ("a", "ab", "abc")]
    assert len(set(found)) == len(found)


def test_parcels_open_for_whom_and_for_what_they_were_sealed() -> None:
    session = SumSession("0a" * 32, {name: bytes([place]) * 32 for place, name in enumerate("abc")}, 3, 1)
    first, second = new_private(), new_private()
    key = parcel_key(session, first, public_of(second), "a", "b")
    assert key == parcel_key(session, second, public_of(first), "a", "b")
    assert key != parcel_key(session, first, public_of(second), "b", "a")  # a parcel cannot be sent back as an answer
    context = parcel_context(session, "a", "b", b"commitments")
    parcel = seal(key, b"shares", context)
    assert parcel != seal(key, b"shares", context)  # a nonce of its own
    assert len(parcel) == len(b"shares") + PARCEL_EXTRA
    assert open_parcel(key, parcel, context) == b"shares"
    changed = bytearray(parcel)
    changed[-1] ^= 1
    for wrong in (
        (new_private(), parcel, context),
        (key, bytes(changed), context),
        (key, parcel, parcel_context(session, "a", "b", b"other commitments")),
        (key, parcel, parcel_context(session, "a", "c", b"commitments")),
        (key, b"", context),
        (key, parcel[:20], context),
    ):
        with pytest.raises(InvalidMessage, match="does not open"):
            open_parcel(*wrong)


def test_no_two_purposes_have_the_same_bytes() -> None:
    assert bound("a", "bc") != bound("ab", "c")
    assert bound("a", "b", "") != bound("a", "b")
    assert commitment(b"s", "a", "b") != commitment(b"bs", "a")
    assert commitment(b"s", "a") != commitment(b"t", "a")
    assert len(commitment(b"s", "a")) == 32
