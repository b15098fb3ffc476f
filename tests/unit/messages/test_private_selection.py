"""The messages of private selection: what is in them and nothing else, what is refused, and that no value is shown."""

import json
import math
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tacit.errors import InvalidMessage
from tacit.guarantees import ONE_PROFILE, nothing, pure
from tacit.ledger import chain
from tacit.messages.private_selection import (
    Batch,
    BatchTerms,
    Bounding,
    Candidate,
    Engagement,
    Impression,
    Offer,
    OfferRequest,
    Policy,
    Rule,
    ShuffledReport,
)
from tests.releases import message_of, release_of

TOKEN, GROUP = "0123456789abcdef" * 2, "fedcba9876543210" * 2
SECRET = "Sekret-17"


def candidates(*scores: float) -> tuple[Candidate, ...]:
    return tuple(Candidate(f"item-{place}", score, 2_000_000) for place, score in enumerate(scores))


OFFER = Offer(TOKEN, 1_800_000_000, Policy(Rule.RR, 3, 1.0), candidates(0.5, 0.25, 0.25))
BATCHED = replace(OFFER, batch=BatchTerms("monday", (10, 20, 30), "ab" * 32))
POLICIES = [
    Policy(Rule.PUBLIC, 3),
    Policy(Rule.UNIFORM, 3, slots=2),
    Policy(Rule.GREEDY, 3),
    Policy(Rule.RR, 3, 1.0, d=2),
    Policy(Rule.RR, 3, 40.0, slots=3),
    Policy(Rule.GUMBEL, 3, 0.1, bounding=Bounding.SCALED),
    Policy(Rule.PF, 3, 2.0, bounding=Bounding.CLIPPED, width=0.5),
    Policy(Rule.LAPLACE, 3, 1.0, bounding=Bounding.SCALED),
    Policy(Rule.ENVELOPE, 3, 1.5, floors=(1 << 30, 1 << 29, 1 << 29)),
]
MESSAGES = [
    OfferRequest("sport", True),
    OfferRequest(),
    OFFER,
    BATCHED,
    message_of(Impression, TOKEN, ("a", "b")),
    message_of(ShuffledReport, "monday", GROUP, "a", "cd" * 40),
    Batch("monday", GROUP, ((TOKEN, "a"), ("f" * 32, "a"))),
    message_of(Engagement, TOKEN, 1, 0.5),
]


def over_the_wire(message: Any) -> Any:
    return json.loads(json.dumps(message.to_json(), allow_nan=False))


@pytest.mark.parametrize("message", MESSAGES + POLICIES, ids=lambda one: type(one).__name__)
def test_what_was_sent_arrives(message: Any) -> None:
    assert type(message).from_json(over_the_wire(message)) == message


# --- exactly these members, each of its own type


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every member of a message."""
    for name, one in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, name)
        if isinstance(one, (dict, list)):
            yield from places(one, (*path, name))


def changed(value: Any, path: tuple[Any, ...], change: Any) -> Any:
    copied = deepcopy(value)
    *parents, last = path
    found = copied
    for name in parents:
        found = found[name]
    change(found, last)
    return copied


def refuses(message: Any, value: Any) -> None:
    with pytest.raises(InvalidMessage) as problem:
        type(message).from_json(value)
    assert SECRET not in str(problem.value)
    assert problem.value.__context__ is None or problem.value.__suppress_context__


@pytest.mark.parametrize("message", MESSAGES + POLICIES, ids=lambda one: type(one).__name__)
def test_every_member_is_there_and_none_is_unknown(message: Any) -> None:
    sent = over_the_wire(message)
    objects = [()] + [path for path in places(sent) if isinstance(_at(sent, path), dict)]
    for path in objects:
        for name in _at(sent, path):
            refuses(message, changed(sent, (*path, name), lambda found, last: found.pop(last)))
        refuses(message, changed(sent, (*path, "more"), lambda found, last: found.update({last: SECRET})))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        value = value[name]
    return value


WRONG = [True, -1, 1.5, math.nan, math.inf, 10**400, SECRET, "", [], {}, [[]], "\ud800", "x" * 201]


@pytest.mark.parametrize("message", MESSAGES + POLICIES, ids=lambda one: type(one).__name__)
def test_no_member_takes_another_type(message: Any) -> None:
    sent = over_the_wire(message)
    leaves = [path for path in places(sent) if not isinstance(_at(sent, path), (dict, list))]
    assert leaves
    for path in leaves:
        right = _at(sent, path)
        for wrong in WRONG:
            if _could_be(path, right, wrong):
                continue
            refuses(message, changed(sent, path, lambda found, last, wrong=wrong: found.__setitem__(last, wrong)))


def _could_be(path: tuple[Any, ...], right: Any, wrong: Any) -> bool:
    """What is a right value elsewhere in the same member: another text, a real number, no batch."""
    if path[-1] in ("public_score", "width", "epsilon"):
        return type(wrong) in (int, float) and math.isfinite(wrong) if wrong != 10**400 else False
    if isinstance(right, str) and path[-1] in ("item", "context", "id") and path != ("policy", "id"):
        empty = path[-1] == "context"
        return isinstance(wrong, str) and (wrong == SECRET or (empty and wrong == ""))
    if isinstance(path[-1], int) and "items" in path:
        return wrong == SECRET
    return (path[-1] in ("batch",) and wrong == SECRET) or (path[-1] == "key" and wrong == "")


@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("version", [0, 2, "1", True, None])
def test_other_versions_are_refused(message: Any, version: Any) -> None:
    refuses(message, over_the_wire(message) | {"version": version})


@pytest.mark.parametrize("value", [None, 7, [], "{}", [{}], {}])
@pytest.mark.parametrize("message", [*MESSAGES, POLICIES[0]], ids=lambda one: type(one).__name__)
def test_what_is_no_object_is_refused(message: Any, value: Any) -> None:
    refuses(message, value)


# --- what leaves a device


def test_a_request_has_the_same_size_with_and_without_consent() -> None:
    sizes = {len(json.dumps(OfferRequest("sport", consent).to_json())) for consent in (True, False)}
    assert len(sizes) == 1


def test_an_impression_says_token_and_items_and_nothing_else() -> None:
    assert message_of(Impression, TOKEN, ("a",)).to_json() == {"version": 1, "token": TOKEN, "items": ["a"]}
    assert message_of(ShuffledReport, "monday", GROUP, "a", TOKEN).to_json() == {
        "version": 1,
        "batch": "monday",
        "group": GROUP,
        "item": "a",
        "token": TOKEN,
    }
    assert message_of(Engagement, TOKEN, 0, 0.5).to_json() == {"version": 1, "token": TOKEN, "bit": 0, "epsilon": 0.5}


def test_impressions_and_engagements_are_made_from_releases() -> None:
    guarantee = pure(1.0, ONE_PROFILE)
    assert Impression.from_release(release_of((2, 0), guarantee), OFFER) == message_of(
        Impression, TOKEN, ("item-2", "item-0")
    )
    assert Engagement.from_release(release_of(1, guarantee), TOKEN, 1.0) == message_of(Engagement, TOKEN, 1, 1.0)
    with pytest.raises(InvalidMessage, match="that of its release"):
        Engagement.from_release(release_of(1, guarantee), TOKEN, 1.5)
    seeded = nothing(ONE_PROFILE, "the noise is seeded")  # the law of the bit is the same
    assert Engagement.from_release(release_of(1, seeded), TOKEN, 1.5) == message_of(Engagement, TOKEN, 1, 1.5)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, "1", True, None, 10**400])
def test_the_epsilon_of_a_click_is_a_finite_number_above_0(epsilon: Any) -> None:
    with pytest.raises(InvalidMessage, match="epsilon"):
        message_of(Engagement, TOKEN, 1, epsilon)
    with pytest.raises(InvalidMessage, match="epsilon"):
        Engagement.from_json(message_of(Engagement, TOKEN, 1, 1.0).to_json() | {"epsilon": epsilon})
    assert Engagement.from_json(message_of(Engagement, TOKEN, 1, 1.0).to_json() | {"epsilon": 2}).epsilon == 2.0


def test_tokens_and_items_are_in_no_repr() -> None:
    for message in (*MESSAGES[2:], message_of(Impression, TOKEN, ("tent",))):
        shown = repr(message) + str(message)
        assert not [word for word in (TOKEN, "cdcd", "ffff", "item-", "tent") if word in shown]
    assert repr(message_of(Engagement, TOKEN, 1, 0.5)) == "Engagement(bit=1, epsilon=0.5)"


@pytest.mark.parametrize("item", ["", "a\nb", "a\x00", "x" * 129, "\ud800", 7])
def test_items_are_named_as_a_ledger_can_name_them(item: Any) -> None:
    """What passes here is settled or a conflict: it never fails for its name once it has been shown."""
    for make in (
        lambda: Candidate(item, 1.0),
        lambda: message_of(Impression, TOKEN, (item,)),
        lambda: message_of(ShuffledReport, "b", GROUP, item, TOKEN),
        lambda: Batch("b", GROUP, ((TOKEN, item),)),
    ):
        with pytest.raises(InvalidMessage):
            make()
    longest = "x" * chain.MOST_CHARACTERS
    assert Candidate(longest, 1.0).item == chain.checked_name("an item", longest)


def test_items_are_a_tuple_and_not_one_text() -> None:
    for items in ("tent", b"tent", 7, None):
        with pytest.raises(InvalidMessage, match=r"at \$\.items"):
            message_of(Impression, TOKEN, items)  # type: ignore[arg-type]


def test_an_impression_names_one_to_a_hundred_items_once() -> None:
    for items in ((), ("a", "a"), tuple(map(str, range(101))), ("",)):
        with pytest.raises(InvalidMessage):
            message_of(Impression, TOKEN, items)
    assert len(message_of(Impression, TOKEN, tuple(map(str, range(100)))).items) == 100


@pytest.mark.parametrize("token", [TOKEN[:-1], TOKEN + "0", TOKEN.upper(), "g" * 32, "", 7])
def test_tokens_have_32_lower_hexadecimal_digits(token: Any) -> None:
    for make in (
        lambda: message_of(Impression, token, ("a",)),
        lambda: message_of(Engagement, token, 1, 1.0),
        lambda: replace(OFFER, token=token),
    ):
        with pytest.raises(InvalidMessage):
            make()


@pytest.mark.parametrize("bit", [2, -1, True, 1.0, None])
def test_a_click_is_one_bit(bit: Any) -> None:
    with pytest.raises(InvalidMessage):
        message_of(Engagement, TOKEN, bit, 1.0)


def test_the_reports_of_a_batch_stand_in_the_order_of_their_tokens_each_once() -> None:
    first, second = "0" * 32, "1" * 32
    assert Batch("b", GROUP, ((first, "x"), (second, "x"))).reports[0] == (first, "x")
    for reports in (((second, "x"), (first, "x")), ((first, "x"), (first, "y"))):
        with pytest.raises(InvalidMessage, match="order"):
            Batch("b", GROUP, reports)


# --- offers


def test_an_offer_has_as_many_candidates_as_its_policy_says_each_once_in_falling_order() -> None:
    for broken in (
        {"candidates": candidates(0.5, 0.25)},
        {"candidates": ()},
        {"candidates": (OFFER.candidates[0],) * 3},
        {"candidates": candidates(0.25, 0.5, 0.1)},
        {"policy": Policy(Rule.RR, 2, 1.0)},
        {"policy": "rr"},
        {"candidates": ("a", "b", "c")},
        {"expires": -1},
        {"expires": 1.5},
        {"batch": BatchTerms("b", (1, 2))},
        {"batch": BatchTerms("b", (1, 2, 3)), "policy": Policy(Rule.RR, 3, 1.0, slots=2)},
        {"batch": "b"},
    ):
        with pytest.raises(InvalidMessage):
            replace(OFFER, **broken)  # type: ignore[arg-type]
    assert replace(OFFER, candidates=candidates(0.5, 0.5, 0.5)).items == ("item-0", "item-1", "item-2")


def test_an_offer_of_ten_thousand_candidates_is_the_largest() -> None:
    def offer(count: int) -> Offer:
        return Offer(TOKEN, 1, Policy(Rule.PUBLIC, count), candidates(*[0.0] * count))

    assert len(offer(10_000).candidates) == 10_000
    with pytest.raises(InvalidMessage):
        offer(10_001)
    refuses(OFFER, OFFER.to_json() | {"candidates": [OFFER.candidates[0].to_json()] * 10_001})


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, 1.1e15, "1", True, None])
def test_public_scores_are_finite_numbers(score: Any) -> None:
    with pytest.raises(InvalidMessage):
        Candidate("a", score)


@pytest.mark.parametrize("bid", [-1, 10**15 + 1, 1.0, True, None])
def test_bids_are_whole_micro_units_of_at_least_0(bid: Any) -> None:
    with pytest.raises(InvalidMessage):
        Candidate("a", 1.0, bid)
    with pytest.raises(InvalidMessage):
        BatchTerms("b", (bid,))


# --- groups: all that a shuffled report's randomiser depends on


def test_a_group_depends_on_candidates_prices_policy_and_key_and_not_on_the_token() -> None:
    group = BATCHED.group_under(BATCHED.policy)
    assert len(group) == 32
    assert replace(BATCHED, token="f" * 32, expires=5).group_under(BATCHED.policy) == group
    assert Offer.from_json(over_the_wire(BATCHED)).group_under(BATCHED.policy) == group
    a, b, c = BATCHED.candidates
    terms = BATCHED.batch
    assert terms is not None
    other = {
        BATCHED.group_under(BATCHED.policy.without_cost()),
        BATCHED.group_under(replace(BATCHED.policy, epsilon=1.0000000000000002)),
        replace(BATCHED, candidates=(a, c, b)).group_under(BATCHED.policy),
        replace(BATCHED, candidates=(a, b, replace(c, item="other"))).group_under(BATCHED.policy),
        replace(BATCHED, candidates=(a, b, replace(c, bid_micros=1))).group_under(BATCHED.policy),
        replace(BATCHED, candidates=(a, b, replace(c, public_score=0.2))).group_under(BATCHED.policy),
        replace(BATCHED, batch=replace(terms, prices=(10, 20, 31))).group_under(BATCHED.policy),
        replace(BATCHED, batch=replace(terms, id="tuesday")).group_under(BATCHED.policy),
        replace(BATCHED, batch=replace(terms, key="cd" * 32)).group_under(BATCHED.policy),
    }
    assert len(other | {group}) == 10
    with pytest.raises(InvalidMessage):
        OFFER.group_under(OFFER.policy)


def test_one_number_has_one_group_however_it_is_written() -> None:
    sent = over_the_wire(replace(BATCHED, candidates=candidates(2.0, 0.0, 0.0)))
    sent["candidates"][0]["public_score"] = 2  # as a browser writes 2.0
    sent["candidates"][1]["public_score"] = -0.0
    group = replace(BATCHED, candidates=candidates(2.0, 0.0, 0.0)).group_under(BATCHED.policy)
    assert Offer.from_json(sent).group_under(BATCHED.policy) == group


# --- policies


@pytest.mark.parametrize(
    ("policy", "cost"),
    [
        (Policy(Rule.PUBLIC, 5), 0.0),
        (Policy(Rule.UNIFORM, 5), 0.0),
        (Policy(Rule.GREEDY, 5), math.inf),
        (Policy(Rule.GREEDY, 1), 0.0),
        (Policy(Rule.RR, 5, 1.25), 1.25),
        (Policy(Rule.RR, 1, 1.25), 0.0),
        (Policy(Rule.RR, 5, 1.25, d=5), 0.0),
        (Policy(Rule.RR, 5, 1.25, d=4), 1.25),
        (Policy(Rule.RR, 5, 1.25, slots=2), 1.25),
        (Policy(Rule.PF, 2, 3.0, bounding=Bounding.SCALED), 3.0),
    ],
)
def test_the_cost_follows_from_the_policy(policy: Policy, cost: float) -> None:
    assert policy.cost == cost
    assert policy.without_cost().cost == 0.0
    assert (policy.without_cost().m, policy.without_cost().slots) == (policy.m, policy.slots)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 40.000001, 1e308, "1", True, None, 10**400])
def test_epsilon_lies_above_0_and_is_at_most_40(epsilon: Any) -> None:
    with pytest.raises(InvalidMessage):
        Policy(Rule.RR, 3, epsilon)


@pytest.mark.parametrize("rule", [Rule.PUBLIC, Rule.UNIFORM, Rule.GREEDY])
def test_rules_without_noise_state_no_epsilon(rule: Rule) -> None:
    with pytest.raises(InvalidMessage):
        Policy(rule, 3, 1.0)


@pytest.mark.parametrize(
    "given",
    [
        {"rule": "exact"},
        {"rule": None},
        {"rule": "pf"},  # unbounded scores have no sensitivity
        {"rule": "gumbel"},
        {"rule": "laplace"},
        {"rule": "pf", "bounding": "clipped"},
        {"rule": "pf", "bounding": "scaled", "width": 1.0},
        {"rule": "pf", "bounding": "clipped", "width": 0.0},
        {"rule": "pf", "bounding": "clipped", "width": math.inf},
        {"bounding": "scaled"},
        {"bounding": "raw"},
        {"m": 0},
        {"m": 10_001},
        {"m": 3.0},
        {"d": 0},
        {"d": 4},
        {"d": 2, "slots": 2},
        {"rule": "pf", "bounding": "scaled", "d": 2},
        {"slots": 0},
        {"slots": 4},
        {"m": 200, "slots": 101},
        {"rule": "envelope"},
        {"floors": (1, 1, 1)},
        {"rule": "envelope", "floors": (1 << 31, 1 << 31)},  # one is missing
        {"rule": "envelope", "floors": (1 << 31, 1 << 31, 1)},  # more than 1
        {"rule": "envelope", "floors": (1, 1, 1)},  # e^epsilon of it is less than 1
        {"rule": "envelope", "floors": (1 << 30, 1 << 30, 0)},  # a floor of 0 promises nothing
        {"rule": "envelope", "floors": (1 << 30, 1 << 30, 1 << 30), "slots": 2},
    ],
    ids=str,
)
def test_policies_that_no_mechanism_follows_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        Policy(**({"rule": "rr", "m": 3, "epsilon": 1.0} | given))
