"""Offers that are not what they should be: no fill, and never an error."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tacit.device import Limits, private_selection
from tacit.device.private_selection import MOST_AHEAD, MOST_BYTES
from tacit.messages.private_selection import Policy, Rule
from tests.unit.device.choices import chosen, spent
from tests.unit.device.offering import EXPIRES, FAVOURS_LAST, LIKED, RR, Taste, offered, selecting
from tests.unit.device.small_world import Clock, CountedNoise

# --- bad offers are no fill, and never an error


def sent(**changes: Any) -> dict[str, Any]:
    return offered().to_json() | changes


def with_candidate(**changes: Any) -> dict[str, Any]:
    rows = offered().to_json()["candidates"]
    return sent(candidates=[rows[0] | changes, *rows[1:]])


def with_policy(**changes: Any) -> dict[str, Any]:
    return sent(policy=RR.to_json() | changes)


BAD: dict[str, Any] = {
    "nothing": None,
    "empty text": "",
    "no JSON": "{",
    "no UTF-8": b"\xff\xfe\x00",
    "a number": 7,
    "a list": [],
    "deep": "[" * 200_000,
    "deep object": '{"a":' * 100_000,
    "oversized": json.dumps(sent()) + " " * MOST_BYTES,
    "many digits": '{"version": ' + "9" * 5000 + "}",
    "a name twice": json.dumps(sent())[:-1] + ', "token": "' + "0" * 32 + '"}',
    "NaN": json.dumps(with_candidate(public_score=math.nan)),
    "infinite public score": with_candidate(public_score=math.inf),
    "negative bid": with_candidate(bid=-1),
    "bid as float": with_candidate(bid=1.0),
    "duplicate item": with_candidate(item=LIKED[1]),
    "not falling": with_candidate(public_score=0.0),
    "price": with_candidate(price=1),
    "no candidates": sent(candidates=[]),
    "one candidate too few": sent(candidates=sent()["candidates"][1:]),
    "other m": with_policy(m=3),
    "m of a fraction": with_policy(m=4.0),
    "epsilon 0": with_policy(epsilon=0),
    "epsilon below 0": with_policy(epsilon=-1),
    "epsilon NaN": with_policy(epsilon=math.nan),
    "epsilon infinite": with_policy(epsilon=math.inf),
    "epsilon beyond": with_policy(epsilon=1e300),
    "unknown rule": with_policy(id="best"),
    "noise without bound": with_policy(id="pf"),
    "d beyond m": with_policy(d=5),
    "slots beyond m": with_policy(slots=5),
    "envelope without floors": with_policy(id="envelope"),
    "non_private in the policy": with_policy(non_private=True),
    "non_private in the offer": sent(non_private=True),
    "other version": sent(version=2),
    "short token": sent(token="00"),
    "expired": sent(expires=EXPIRES - 3600),
    "expired long ago": sent(expires=0),
    "expires too late": sent(expires=EXPIRES - 3600 + MOST_AHEAD + 1),
    "expires in a century": sent(expires=EXPIRES + 100 * 366 * 86_400),
    "too many": sent(candidates=sent()["candidates"] * 2501),
    "unusable boxes": with_policy(id="pf", bounding="clipped", width=1e-300),
    "undrawable noise": with_policy(id="laplace", bounding="scaled", epsilon=1e-300),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_offer_is_no_fill(name: str, place: Path) -> None:
    taste, noise = Taste(FAVOURS_LAST), CountedNoise()
    with selecting(place, private_scorer=taste, noise=noise, limits=Limits(non_private=True)) as device:
        offer = BAD[name]
        assert device.choose(offer) is None
        if isinstance(offer, dict):
            assert device.choose(json.dumps(offer)) is None
        assert (taste.asked, noise.draws, spent(device), device.pending()) == ([], 0, 0, [])


def test_offers_come_as_objects_texts_bytes_or_parsed(place: Path) -> None:
    with selecting(place) as device:
        text = json.dumps(offered().to_json())
        first = device.choose(text)
        assert first is not None
        assert [device.choose(one) for one in (text.encode(), json.loads(text), offered())] == [first] * 3


def test_an_offer_is_good_until_the_second_it_expires(place: Path) -> None:
    clock = Clock()
    with selecting(place, clock=clock) as device:
        clock.at = EXPIRES * 1_000_000 - 1
        first = chosen(device)
        clock.at += 1
        assert device.choose(offered(2)) is None
        assert device.choose(offered()) == first  # it was made in time


def kept_for(place: Path, ahead: int, most: int | None = None) -> int | None:
    """For how many seconds a device keeps what it chose from an offer that expires so far ahead; None: it kept nothing."""
    clock = Clock()
    expires = clock.at // 1_000_000 + ahead
    with pytest.MonkeyPatch.context() as patch, selecting(place, clock=clock) as device:
        if most is not None:
            patch.setattr(private_selection, "MOST_AHEAD", most)
        choice = device.choose(offered(expires=expires))
        return None if choice is None else choice.expires - clock.at // 1_000_000


def test_no_server_makes_a_device_keep_rows_for_longer_than_a_month(tmp_path: Path) -> None:
    assert kept_for(tmp_path / "a.db", MOST_AHEAD) == MOST_AHEAD == 31 * 86_400
    assert kept_for(tmp_path / "b.db", MOST_AHEAD + 1) is None
    # and that check has teeth: a device without the bound would keep it for a century
    assert kept_for(tmp_path / "twin.db", 100 * 366 * 86_400, most=10**11) == 100 * 366 * 86_400


def test_a_choice_that_was_made_is_repeated_whatever_the_clock_says_then(place: Path) -> None:
    clock = Clock(2026, 11, 16, 12)
    with selecting(place, clock=clock) as device:
        first = chosen(device)
        clock.set(2026, 9, 1)  # set back: the offer now seems to expire in eleven weeks
        assert device.choose(offered()) == first
        assert device.choose(offered(2)) is None


def test_one_candidate_is_shown_and_costs_nothing(place: Path) -> None:
    with selecting(place) as device:
        assert chosen(device, 1, Policy(Rule.RR, 1, 1.0)).items == LIKED[:1]
        assert spent(device) == 0
