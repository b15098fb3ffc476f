"""Laws of private slates: what is sent comes back; slates have no repeats; no plan is understated."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.curator import Route, plan
from tacit.errors import InvalidMessage
from tacit.guarantees import ONE_USER, Guarantee, nothing, pure
from tacit.ledger import Accounting, Budget, Terms, price
from tacit.ledger.budgets import allowance
from tacit.messages.private_slates import Popularity, Similarity, Slate
from tacit.models.dpp.tempered import from_counts, from_kernel
from tests.releases import message_of

ids = st.one_of(
    st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=8, unique=True),
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=20), min_size=1, max_size=8, unique=True),
)
guarantees = st.one_of(
    st.builds(lambda epsilon: pure(epsilon, ONE_USER, proof="natural-slate"), st.floats(0, 100)),
    st.just(nothing(ONE_USER, "no reason")),
)
steps = st.integers(-(2**53), 2**53)
sizes = st.one_of(st.integers(1, 2**20), st.floats(2.0**-800, 2.0**800).map(Fraction))
# a bound over a number of steps, as mechanisms make them
worth = st.builds(lambda bound, steps: Fraction(bound) / steps, sizes, st.integers(1, 2**30))


@st.composite
def messages(draw: st.DrawFn) -> Slate | Popularity | Similarity:
    items, guarantee = tuple(draw(ids)), draw(guarantees)
    kind, count = draw(st.integers(0, 2)), len(items)
    if kind == 0:
        return message_of(Slate, items, draw(st.sampled_from(list(Route))).value, guarantee)
    if kind == 1:
        numbers = np.array(draw(st.lists(steps, min_size=count, max_size=count)), dtype=np.int64)
        return message_of(Popularity, items, numbers, draw(worth), guarantee)
    numbers = np.array(draw(st.lists(steps, min_size=count**2, max_size=count**2)), dtype=np.int64).reshape(
        count, count
    )
    return message_of(Similarity, items, np.triu(numbers) + np.triu(numbers, 1).T, draw(worth), guarantee)


@settings(deadline=None)
@given(messages())
def test_a_message_comes_back_as_it_was_sent(message: Slate | Popularity | Similarity) -> None:
    text = json.dumps(message.to_json(), allow_nan=False)
    again = type(message).from_json(json.loads(text))
    assert again == message
    assert json.dumps(again.to_json()) == text


@settings(deadline=None)
@given(messages(), st.data())
def test_no_other_message_has_its_members(message: Slate | Popularity | Similarity, data: st.DataObject) -> None:
    found = message.to_json()
    name = data.draw(st.sampled_from(sorted(found)))
    found.pop(name)
    with pytest.raises(InvalidMessage):
        type(message).from_json(found)
    found = message.to_json()
    found[name] = data.draw(st.sampled_from([None, {}, -1, 1.5, "x"]))
    if name != "route":  # "x" is the name of a route
        with pytest.raises(InvalidMessage):
            type(message).from_json(found)


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from([one for one in Route if one is not Route.PUBLISHED]),
    st.sampled_from([Accounting.BASIC, Accounting.ZCDP]),
    st.floats(0.05, 5.0),
    st.floats(1e-9, 1e-3),
    st.integers(1, 500),
    st.integers(1, 12),
)
def test_what_is_planned_fits_the_budget_and_never_promises_more_than_it_costs(
    route: Route, accounting: Accounting, epsilon: float, delta: float, slates: int, k: int
) -> None:
    made = plan(k, epsilon, slates, items=300, route=route, delta=delta, accounting=accounting, threshold=20)
    budget = Budget(epsilon, delta)
    terms = Terms.of(budget, ONE_USER, accounting)
    cost, allowed = price(made.each, terms), allowance(budget, terms)
    times = 1 if made.once else slates
    assert cost.amount * times <= allowed.amount
    assert cost.delta * times <= allowed.delta
    assert isinstance(made.total, Guarantee)
    assert made.total.epsilon <= epsilon * (1 + 1e-12)
    assert made.each.epsilon <= made.total.epsilon or made.total.delta > made.each.delta
    assert made.each.epsilon == pytest.approx(made.epsilon) or route is Route.SUBSET


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(0, 6), st.integers(0, 2**32), st.data())
def test_a_slate_of_what_was_released_has_k_different_items(items: int, d: int, seed: int, data: st.DataObject) -> None:
    k, rng = data.draw(st.integers(1, items)), np.random.default_rng(seed)
    counts = rng.laplace(scale=10.0, size=items) * rng.integers(0, 2, items)
    features = None if d == 0 else rng.integers(0, 2, (items, d)).astype(np.float64)
    slate = from_counts(counts, features, k).tolist()
    assert len(slate) == len(set(slate)) == k
    noisy = rng.normal(size=(items, items))
    slate = from_kernel(noisy + noisy.T, k).tolist()
    assert len(slate) == len(set(slate)) == k
    assert set(slate) <= set(range(items))
