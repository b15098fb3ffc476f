"""Laws that hold for every offer a server may think of, and for everything that is no offer."""

import json
import math
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.device import Choice, Device, Limits
from tacit.device.private_selection import LEAST_EPSILON, guarantee_of, mechanism_of, probabilities, select
from tacit.errors import InvalidMessage, InvalidParameter
from tacit.ledger import Budget
from tacit.messages.private_selection import Bounding, Candidate, Impression, Offer, Policy, Rule
from tests.releases import message_of
from tests.unit.device.small_world import SHOP, Clock

EXPIRES = 1_794_834_000
BUDGET = 3.0
LEAST = 1e-300  # a probability below this may have lost its digits, or be 0 in floats
tokens = count(1)
odd = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just([]), st.just({}), st.just("nan")
)
epsilons = st.one_of(st.floats(1e-6, 40.0), st.sampled_from([0.1, 0.5, 1.0, 1e-300, 5e-324]))


@st.composite
def policies(draw: st.DrawFn, m: int | None = None) -> Policy:
    m = draw(st.integers(1, 7)) if m is None else m
    rule = draw(st.sampled_from(list(Rule)))
    epsilon = 0.0 if rule in (Rule.PUBLIC, Rule.UNIFORM, Rule.GREEDY) else draw(epsilons)
    bounding, width, floors, d = Bounding.NONE, None, None, 1
    slots = draw(st.integers(1, m))
    if rule in (Rule.PF, Rule.GUMBEL, Rule.LAPLACE):
        bounding = draw(st.sampled_from([Bounding.SCALED, Bounding.CLIPPED]))
        width = draw(st.floats(1e-12, 1e12)) if bounding is Bounding.CLIPPED else None
    if rule is Rule.RR and slots == 1:
        d = draw(st.integers(1, m))
    if rule is Rule.ENVELOPE:
        slots, floors = 1, tuple(draw(st.lists(st.integers(1, (1 << 32) // m), min_size=m, max_size=m)))
    try:
        return Policy(rule, m, epsilon, d, slots, bounding, width, floors)
    except InvalidMessage:  # floors that no envelope has
        return Policy(Rule.PUBLIC, m)


@st.composite
def offers(draw: st.DrawFn) -> Offer:
    policy = draw(policies())
    scores = sorted(draw(st.lists(st.floats(-1e15, 1e15), min_size=policy.m, max_size=policy.m)), reverse=True)
    bids = draw(st.lists(st.integers(0, 10**15), min_size=policy.m, max_size=policy.m))
    candidates = tuple(Candidate(f"i{place}", *pair) for place, pair in enumerate(zip(scores, bids, strict=True)))
    return Offer(f"{next(tokens):032x}", EXPIRES, policy, candidates)


class Anything:
    """A private model that gives whatever it was told, or fails."""

    given: Any = ()

    def __call__(self, features: np.ndarray, items: tuple[str, ...]) -> Any:
        if isinstance(self.given, Exception):
            raise self.given
        return [self.given[place % len(self.given)] for place in range(len(items))] if self.given else None


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    limits = Limits(budget=Budget(BUDGET), most_epsilon=2.0)
    with (
        TemporaryDirectory() as place,
        Device(Path(place) / "me.db", SHOP, private_scorer=Anything(), clock=Clock(), limits=limits) as opened,
    ):
        opened.consent()
        yield opened


qualities = st.one_of(
    st.lists(st.floats(), min_size=1, max_size=7),
    st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=3),
    st.sampled_from([RuntimeError("x"), ZeroDivisionError(), MemoryError()]),
)


@settings(max_examples=150, deadline=None)
@given(offer=offers(), quality=qualities, server=st.sampled_from(["a", "b", "c"]))
def test_every_offer_gets_items_of_it_within_the_limits_and_the_budget(
    device: Device, offer: Offer, quality: Any, server: str
) -> None:
    scorer = device._private_selection._scorer
    assert isinstance(scorer, Anything)
    scorer.given = quality
    left = BUDGET - device.statement(server).spent.amount / 1e9
    choice = device.choose(json.dumps(offer.to_json()), server)
    if choice is None:  # on public grounds: no mechanism can follow it
        with pytest.raises(InvalidParameter):
            mechanism_of(offer.policy, [one.public_score for one in offer.candidates])
        return
    assert len(set(choice.items)) == offer.policy.slots
    assert set(choice.items) <= set(offer.items)
    cost = guarantee_of(offer.policy, [one.public_score for one in offer.candidates]).epsilon
    applies = offer.policy.rule is not Rule.GREEDY or offer.policy.m == 1
    fits = (cost == 0.0 or LEAST_EPSILON <= cost <= 2.0) and math.ceil(cost * 1e9) / 1e9 <= left + 1e-12
    if offer.policy.rule is Rule.GREEDY:
        assert choice.policy == offer.policy.without_cost()
    else:
        assert choice.policy == (offer.policy if applies and fits else offer.policy.without_cost())
    assert device.statement(server).spent.amount <= BUDGET * 1e9
    assert device.choose(offer, server) == choice
    assert device.shown(choice) == message_of(Impression, offer.token, choice.items)


def broken(offer: dict[str, Any], path: list[Any], value: Any) -> Any:
    found = offer
    for name in path[:-1]:
        found = found[name]
    found[path[-1]] = value
    return offer


PATHS = [
    *([name] for name in ("version", "token", "expires", "policy", "candidates", "batch", "more")),
    *(
        ["policy", name]
        for name in ("version", "id", "epsilon", "m", "d", "slots", "bounding", "width", "floors", "more")
    ),
    *(["candidates", 0, name] for name in ("item", "bid", "public_score", "more")),
    ["candidates", 0],
]


@settings(max_examples=300, deadline=None)
@given(offer=offers(), path=st.sampled_from(PATHS), value=odd)
def test_whatever_stands_in_an_offer_the_answer_is_a_choice_or_none(
    device: Device, offer: Offer, path: list[Any], value: Any
) -> None:
    sent = broken(offer.to_json(), path, value)
    choice = device.choose(sent)
    assert choice is None or isinstance(choice, Choice)
    if choice is not None:
        assert Offer.from_json(sent).items  # then it is one
    try:
        text = json.dumps(sent)
    except (TypeError, ValueError):
        return
    assert device.choose(text) == choice


@settings(max_examples=200, deadline=None)
@given(
    junk=st.one_of(
        st.binary(), st.text(), st.recursive(odd, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
    )
)
def test_junk_is_no_fill(device: Device, junk: Any) -> None:
    assert device.choose(junk) is None


@settings(max_examples=150, deadline=None)
@given(
    policy=policies(3),
    first=st.lists(st.floats(-1e300, 1e300), min_size=3, max_size=3),
    second=st.lists(st.floats(-1e300, 1e300), min_size=3, max_size=3),
    public=st.lists(st.floats(-100, 100), min_size=3, max_size=3),
)
@example(  # hardly any noise: the two publicly worse items have probabilities that are 0 in floats
    policy=Policy(Rule.GUMBEL, 3, 1.0, bounding=Bounding.CLIPPED, width=2.0**-24),
    first=[0.0, 0.0, 0.0],
    second=[0.0, 0.0, 0.0],
    public=[1.0, 0.0, 0.0],
)
def test_no_two_private_states_are_told_apart_by_more_than_epsilon(
    policy: Policy, first: list[float], second: list[float], public: list[float]
) -> None:
    public = sorted(public, reverse=True)
    try:
        epsilon = guarantee_of(policy, public).epsilon
    except InvalidParameter:
        return
    if policy.slots > 1 or policy.rule in (Rule.LAPLACE, Rule.GREEDY):  # Laplace's law is a sum of too many terms here
        assert len(select(policy, first, public).value) == policy.slots
        return
    one, other = probabilities(policy, first, public), probabilities(policy, second, public)
    assert one.sum() == pytest.approx(1.0)
    if epsilon == 0.0:
        assert one.tolist() == other.tolist()
    elif epsilon < 30.0:  # beyond it the law is below what floats can divide
        most = math.exp(epsilon + 1e-9)
        assert (one <= most * other + LEAST).all()
        assert (other <= most * one + LEAST).all()
    assert one[select(policy, first, public).value[0]] > 0.0
