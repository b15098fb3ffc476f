"""The seven invariants that carry the proof of private selection, one or more tests for each, and broken twins that fail them."""

import json
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.device import Choice, Device, Limits, Overall
from tacit.device.profile import Profile
from tacit.ledger import Budget, PrivacyLedger
from tacit.messages.private_selection import BatchTerms, Bounding, Impression, Offer, Policy, Rule
from tests.unit.device.offering import ANY, EXPIRES, LIKED, Taste, offered, selecting, token
from tests.unit.device.small_world import SHOP, Clock, CountedNoise

EPSILON = 1.0
RR3 = Policy(Rule.RR, 3, EPSILON)
ITEMS = LIKED[:3]
BEST = math.floor(2**32 * math.e)  # the weight of the privately best; each other one weighs 2^32
STRATA = {0: BEST, BEST: 1 << 32, BEST + (1 << 32): 1 << 32}  # one draw that leads to each answer, and how many do


class Scripted:
    """Noise that gives one number, as often as it is asked for bits."""

    caveat = None

    def __init__(self, number: int) -> None:
        self.number = number

    def draw(self, count: int) -> bytes:
        bits = (sum(STRATA.values()) - 1).bit_length()
        return (self.number << (8 * count - bits)).to_bytes(count, "big")


def law_of(open_device: Callable[..., Device], place: Path, taste: Any) -> dict[str | None, float]:
    """The exact probability of everything that a device may answer to one offer, in this private state."""
    law: dict[str | None, float] = {}
    for number, (draw, weight) in enumerate(STRATA.items()):
        with open_device(place / f"{number}.db", noise=Scripted(draw), private_scorer=taste) as device:
            device.consent()
            choice = device.choose(offered(policy=RR3))
            answer = None if choice is None else device.shown(choice).items[0]
        law[answer] = law.get(answer, 0.0) + weight / sum(STRATA.values())
    return law


def worst_loss(laws: list[dict[str | None, float]]) -> float:
    """The largest log-ratio of any answer between any two states; infinite where an answer is possible in one of them only."""
    answers = {answer for law in laws for answer in law}
    worst = 0.0
    for answer in answers:
        seen = [law.get(answer, 0.0) for law in laws]
        worst = max(worst, math.inf if min(seen) == 0.0 else math.log(max(seen) / min(seen)))
    return worst


class History:
    """A private state: what she likes, what she has seen too often, what she has blocked. It acts through the score."""

    def __init__(
        self, liked: Mapping[str, Any], seen: frozenset[str] = frozenset(), blocked: frozenset[str] = frozenset()
    ) -> None:
        self.liked, self.seen, self.blocked = liked, seen, blocked

    def __call__(self, features: np.ndarray, items: tuple[str, ...]) -> list[Any]:
        return [
            -math.inf if i in self.blocked else self.liked.get(i, math.nan) - 10.0 * (i in self.seen) for i in items
        ]


class Breaks:
    def __call__(self, features: np.ndarray, items: tuple[str, ...]) -> list[Any]:
        raise RuntimeError("private: she has no profile")


STATES: list[Any] = [
    *(History(dict(zip(ITEMS, liked, strict=True))) for liked in ((0.9, 0.1, 0.1), (0.1, 0.9, 0.2), (0.0, 0.1, 0.9))),
    History(dict.fromkeys(ITEMS, 0.5), seen=frozenset(ITEMS[:1])),
    History(dict.fromkeys(ITEMS, 0.5), blocked=frozenset(ITEMS[:2])),
    History(dict.fromkeys(ITEMS, 0.5), blocked=frozenset(ITEMS)),
    History({}),
    Breaks(),
]


def opening(kind: type[Device]) -> Callable[..., Device]:
    return lambda place, **options: kind(place, SHOP, clock=Clock(), **options)


def laws_of(kind: type[Device], tmp_path: Path) -> list[dict[str | None, float]]:
    found = []
    for number, state in enumerate(STATES):
        (tmp_path / str(number)).mkdir()
        found.append(law_of(opening(kind), tmp_path / str(number), state))
    return found


def test_i2_every_candidate_keeps_its_floor_whatever_she_has_seen_or_blocked(tmp_path: Path) -> None:
    laws = laws_of(Device, tmp_path)
    floor = (1 << 32) / sum(STRATA.values())
    for law in laws:
        assert set(law) == set(ITEMS)
        assert min(law.values()) == pytest.approx(floor)
    assert worst_loss(laws) == pytest.approx(EPSILON, abs=1e-9)
    assert worst_loss(laws) <= EPSILON
    assert len({tuple(sorted(law.items(), key=str)) for law in laws}) == 3  # and her taste has its say


class Abstains(Device):
    """A broken twin: shows nothing where she blocked everything."""

    def choose(self, offer: Any, server: str = "server", **options: Any) -> Choice | None:
        state = self._private_selection._scorer
        blocked = isinstance(state, History) and state.blocked >= set(ITEMS)
        return None if blocked else super().choose(offer, server, **options)


class LeavesOut(Device):
    """A broken twin: a hard frequency cap."""

    def choose(self, offer: Any, server: str = "server", **options: Any) -> Choice | None:
        state = self._private_selection._scorer
        if isinstance(state, History) and state.seen:
            kept = tuple(one for one in offer.candidates if one.item not in state.seen)
            offer = replace(offer, candidates=kept, policy=replace(offer.policy, m=len(kept)))
        return super().choose(offer, server, **options)


class FailsOpenly(Device):
    """A broken twin: no fill where the private model fails."""

    def choose(self, offer: Any, server: str = "server", **options: Any) -> Choice | None:
        return None if isinstance(self._private_selection._scorer, Breaks) else super().choose(offer, server, **options)


@pytest.mark.parametrize("twin", [Abstains, LeavesOut, FailsOpenly])
def test_i2_that_check_catches_devices_that_filter_abstain_or_fail_on_private_grounds(twin, tmp_path: Path) -> None:
    assert worst_loss(laws_of(twin, tmp_path)) == math.inf


# --- I1: what is offered, and what is asked for, does not depend on anything private


def test_i1_requests_say_context_and_consent_whatever_the_profile_is(tmp_path: Path) -> None:
    sent = set()
    for number, ratings in enumerate(({}, {2: 5.0}, {21: 1.0, 3: 4.0})):
        with selecting(tmp_path / f"{number}.db") as device:
            device.rate(ratings)
            sent.add(json.dumps(device.offer_request("sport").to_json()))
            device.choose(offered())
            sent.add(json.dumps(device.offer_request("sport").to_json()))
    assert sent == {'{"version": 1, "context": "sport", "consent": 1}'}


def test_i1_the_policy_that_is_applied_follows_from_public_data_only(tmp_path: Path) -> None:
    applied = set()
    for number, taste in enumerate(STATES):
        with selecting(tmp_path / f"{number}.db", private_scorer=taste) as device:
            offers = [offered(n, Policy(Rule.RR, 3, 0.3 * (n % 4 + 1)), items=ITEMS) for n in range(25)]
            applied.add(tuple(device.choose(offer).policy for offer in offers))  # type: ignore[union-attr]
    (one,) = applied
    assert {policy.rule for policy in one} == {Rule.RR, Rule.PUBLIC}


# --- I3: one draw for each token, whatever happens


def test_i3_a_repeated_token_gets_the_stored_item_before_anything_private_is_touched(tmp_path: Path) -> None:
    taste, noise = Taste({"5": 1.0}), CountedNoise()
    place = tmp_path / "me.db"
    with selecting(place, private_scorer=taste, noise=noise) as device:
        first = device.choose(offered())
        draws, asked = noise.draws, len(taste.asked)
        assert (draws >= 1, asked) == (True, 1)
        for _ in range(20):
            assert device.choose(offered()) == first
        taste.numbers = {"21": 1.0}
        other = offered(items=("50", "13", "8", "5"))  # the same token for something else
        assert device.choose(other) == first
    with selecting(place, private_scorer=taste, noise=noise) as device:  # after a restart
        assert device.choose(offered()) == first
        device.revoke()
        assert device.choose(offered()) == first
        assert (noise.draws, len(taste.asked)) == (draws, asked)
        assert device.statement("server").charges == 1


def test_i3_a_failed_transmission_repeats_the_same_report(tmp_path: Path) -> None:
    place = tmp_path / "me.db"
    with selecting(place) as device:
        sent = device.shown(device.choose(offered()))  # type: ignore[arg-type]
        assert [device.shown(device.choose(offered())) for _ in range(5)] == [sent] * 5  # type: ignore[arg-type]
        assert device.pending() == [sent]
    with selecting(place) as device:
        assert device.pending() == [sent]
        device.settled(sent, "ok")
        assert device.pending() == []
        assert device.shown(device.choose(offered())) == sent  # type: ignore[arg-type]
        assert device.pending() == []


class RemembersNothing(Device):
    """A broken twin: every repetition is a new draw."""

    calls = 100

    def choose(self, offer: Any, server: str = "server", **options: Any) -> Choice | None:
        type(self).calls += 1
        choice = super().choose(replace(offer, token=token(self.calls)), server, **options)
        return None if choice is None else replace(choice, token=offer.token)


def answers(kind: type[Device], place: Path) -> set[tuple[str, ...]]:
    """All that one token is answered with, in forty attempts and ten lives of the device."""
    seen = set()
    for _ in range(10):
        with kind(place, SHOP, clock=Clock(), private_scorer=Taste(), limits=Limits(budget=Budget(1000))) as device:
            device.consent()
            seen |= {device.choose(offered()).items for _ in range(4)}  # type: ignore[union-attr]
    return seen


def test_i3_one_token_has_one_answer_and_that_check_catches_a_device_that_forgets(tmp_path: Path) -> None:
    assert len(answers(Device, tmp_path / "me.db")) == 1
    assert len(answers(RemembersNothing, tmp_path / "twin.db")) > 1


def test_i3_a_token_that_outlived_its_display_is_not_drawn_for_again(tmp_path: Path) -> None:
    """The display is forgotten a day after it expired; the charge is not, or else a server would get two answers for one."""
    clock, taste = Clock(), Taste({"5": 1.0})
    with selecting(tmp_path / "me.db", clock=clock, private_scorer=taste) as device:
        device.shown(device.choose(offered()))  # type: ignore[arg-type]
        clock.set(2026, 11, 18)
        assert device.pending() == []  # forgets
        assert device.choose(offered(expires=EXPIRES + 10 * 86_400)) is None
        assert len(taste.asked) == 1
        assert device.statement("server").charges == 1


# --- I4: nothing else leaves


def test_i4_what_leaves_is_token_and_item_of_the_same_size_however_it_was_chosen(tmp_path: Path) -> None:
    """No consent, personalised, out of budget, explored: the messages differ in the item alone."""
    items = ("aa", "bb", "cc", "dd")
    seen = []
    for number, (consents, policy) in enumerate(
        product((True, False), (Policy(Rule.RR, 4, 1.0), Policy(Rule.UNIFORM, 4), Policy(Rule.RR, 4, 9.0)))
    ):
        with Device(
            tmp_path / f"{number}.db", SHOP, clock=Clock(), private_scorer=Taste(dict.fromkeys(items, 1.0))
        ) as device:
            if consents:
                device.consent()
            choice = device.choose(offered(1, policy, items=items))
            assert choice is not None
            seen.append(device.shown(choice).to_json())
    assert {tuple(one) for one in seen} == {("version", "token", "items")}
    assert len({len(json.dumps(one)) for one in seen}) == 1
    assert {one["token"] for one in seen} == {token(1)}
    assert [field.name for field in fields(Impression)] == ["token", "items"]


def test_i4_nothing_is_logged_printed_or_shown_in_texts(tmp_path: Path, caplog, capfd) -> None:
    secret = 0.1234567
    caplog.set_level(logging.DEBUG)
    with selecting(tmp_path / "me.db", private_scorer=Taste({"5": secret, "21": math.nan})) as device:
        choice = device.choose(offered(1))
        assert choice is not None
        device.shown(choice)
        device.note_click(choice)
        texts = [repr(device), repr(choice), str(choice), repr(device._state), repr(device._private_selection)]
        device.choose("{")
    out, err = capfd.readouterr()
    assert (caplog.records, out, err) == ([], "", "")
    for text in texts:
        assert "12345" not in text
        assert "items=" not in text
        assert choice.token not in text
    content = b"".join(path.read_bytes() for path in tmp_path.glob("me.db*"))
    assert b"1234567" not in content
    assert secret.hex().encode() not in content


def test_i4_all_candidates_are_scored_in_one_call_whatever_the_draw_is(tmp_path: Path) -> None:
    taste = Taste({"5": 1.0})
    with selecting(tmp_path / "me.db", private_scorer=taste) as device:
        for number in range(5):
            device.choose(offered(number))
    assert taste.asked == [LIKED] * 5


# --- I5: the device has no price in an offer, and a group's prices cannot be chosen by it


def test_i5_offers_hold_no_price_unless_one_for_all_of_a_batch(tmp_path: Path) -> None:
    assert set(offered().to_json()["candidates"][0]) == {"item", "bid", "public_score"}
    terms = BatchTerms("monday", (4, 3, 2, 1))
    groups = set()
    for number, taste in enumerate(({"5": 1.0}, {"21": 1.0}, {})):
        with selecting(tmp_path / f"{number}.db", private_scorer=Taste(taste)) as device:
            choice = device.choose(offered(batch=terms))
            assert choice is not None
            groups.add(choice.group)
    assert groups == {offered(batch=terms).group_under(offered().policy)}


# --- I6: private models are given, never made here


def test_i6_the_device_trains_nothing_and_asks_the_given_model_with_features_and_items_only(tmp_path: Path) -> None:
    asked = []

    def model(features: np.ndarray, items: tuple[str, ...]) -> np.ndarray:
        asked.append((features.tolist(), items))
        return np.zeros(len(items))

    with selecting(tmp_path / "me.db", private_scorer=model) as device:
        device.rate({2: 5.0, 21: 1.0})
        device.choose(offered())
    assert asked == [([1.0, 0, 0, 0, 0, 0, 1.0, 0], LIKED)]


# --- I7: no number of an offer is believed


def refused_as(device: Device, offer: Any) -> str:
    """What the device makes of an offer: "no fill", or the rule that it applied."""
    choice = device.choose(offer)
    return "no fill" if choice is None else choice.policy.rule.value


HUGE = Policy(Rule.RR, 4, 40.0)


@pytest.mark.parametrize(
    ("limits", "policy", "rule"),
    [
        (Limits(), Policy(Rule.RR, 4, 1.0), "rr"),
        (Limits(), Policy(Rule.RR, 4, 1.0000001), "public"),
        (Limits(), HUGE, "public"),
        (Limits(), Policy(Rule.GREEDY, 4), "public"),
        (Limits(most_epsilon=40.0), HUGE, "public"),  # allowed, and no budget has room for it
        (Limits(most_epsilon=40.0, budget=Budget(50)), HUGE, "rr"),
        (Limits(most_epsilon=40.0), Policy(Rule.GREEDY, 4), "public"),
        (Limits(non_private=True), Policy(Rule.GREEDY, 4), "greedy"),
        (Limits(non_private=True), HUGE, "public"),
        (Limits(rules={"public", "rr"}), Policy(Rule.PF, 4, 1.0, bounding=Bounding.SCALED), "public"),  # type: ignore[arg-type]
        (Limits(rules={"rr"}), Policy(Rule.UNIFORM, 4), "public"),  # type: ignore[arg-type]
        (Limits(), Policy(Rule.UNIFORM, 4), "uniform"),
        (Limits(), Policy(Rule.PF, 4, 1.0, bounding=Bounding.SCALED), "pf"),
        (Limits(), Policy(Rule.LAPLACE, 4, 1.0, bounding=Bounding.CLIPPED, width=0.1), "laplace"),
        (Limits(), Policy(Rule.GUMBEL, 4, 1.0, bounding=Bounding.CLIPPED, width=0.1), "gumbel"),
        (Limits(), Policy(Rule.PF, 4, 1.0, bounding=Bounding.CLIPPED, width=1e-200), "no fill"),
        (ANY, Policy(Rule.RR, 4, 5.0, slots=2), "rr"),
    ],
)
def test_i7_the_owners_limits_stand_whatever_an_offer_says(
    limits: Limits, policy: Policy, rule: str, tmp_path: Path
) -> None:
    taste = Taste({"5": 1.0})
    with selecting(tmp_path / "me.db", private_scorer=taste, limits=limits) as device:
        assert refused_as(device, offered(policy=policy)) == rule
        private = rule not in ("public", "uniform", "no fill")
        assert len(taste.asked) == private
        spent = device.statement("server").spent
        assert (spent.amount > 0 or spent.unprotected > 0) == private
        assert spent.unprotected == (rule == "greedy")
        assert device.statement("server").promised.promises_nothing == (rule == "greedy")


def test_i7_an_offer_cannot_set_what_the_device_decides() -> None:
    """There is no member for it: limits, budgets and non_private are the device's own."""
    names = {field.name for kind in (Offer, Policy) for field in fields(kind)}
    assert names.isdisjoint({"non_private", "budget", "limits", "cost", "consent", "most_epsilon"})


@pytest.mark.parametrize("number", range(3))
def test_i7_the_cost_is_the_mechanisms_and_not_the_offers(number: int, tmp_path: Path, monkeypatch) -> None:
    """If a policy claimed to be cheaper than its mechanism the mechanism would be charged."""
    policy = (
        Policy(Rule.RR, 4, 0.5),
        Policy(Rule.PF, 4, 0.5, bounding=Bounding.SCALED),
        Policy(Rule.RR, 4, 0.5, slots=2),
    )[number]
    monkeypatch.setattr(Policy, "cost", 1e-9)
    with selecting(tmp_path / "me.db") as device:
        device.choose(offered(policy=policy))
        assert device.statement("server").spent.amount == 500_000_000


def test_the_profile_is_read_once_after_the_charge_and_never_without_one(tmp_path: Path, monkeypatch) -> None:
    steps: list[str] = []

    def note(kind: type, name: str, step: str) -> None:
        real = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda *given, **more: (steps.append(step), real(*given, **more))[1])

    for name in ("ratings", "clicked", "__len__", "__repr__", "__reduce_ex__"):
        note(Profile, name, "read")
    note(PrivacyLedger, "charge", "charge")

    def steps_of(number: int, policy: Policy = RR3, **options: Any) -> list[str]:
        steps.clear()
        device.choose(offered(number, policy, **options))
        return list(steps)

    with selecting(tmp_path / "me.db", limits=Limits(Budget(2.0))) as device:
        device.rate({21: 5.0})
        assert steps_of(1) == ["charge", "read"]
        assert steps_of(1) == []  # stored
        assert steps_of(2, expires=EXPIRES - 7200) == []
        assert steps_of(3, Policy(Rule.PUBLIC, 3)) == steps_of(4, Policy(Rule.UNIFORM, 3)) == []
        assert (
            steps_of(5, Policy(Rule.RR, 3, 1.5)) == steps_of(6, Policy(Rule.GREEDY, 3)) == []
        )  # the owner does not allow
        assert steps_of(7) == ["charge", "read"]
        assert steps_of(8) == ["charge"]  # refused: nothing is left
        device.revoke()
        assert steps_of(9) == []


def test_the_overall_budget_is_public_too(tmp_path: Path) -> None:
    rules = set()
    for number, taste in enumerate(STATES):
        overall = Overall(0.5, Budget(2.0))
        with selecting(tmp_path / f"{number}.db", private_scorer=taste, overall=overall) as device:
            rules.add(tuple(refused_as(device, offered(n, RR3)) for n in range(4)))
    assert rules == {("rr", "rr", "public", "public")}
