"""The messages of private slates: what is written is read again, and nothing else is."""

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidMessage
from tacit.guarantees import ONE_USER, Guarantee, pure
from tacit.mechanisms import GaussianKernel, LaplaceSum, NaturalSlate
from tacit.messages.private_slates import MOST_KERNEL_ITEMS, Popularity, Similarity, Slate
from tests.releases import message_of

PROMISE = pure(0.5, ONE_USER, proof="natural-slate")
IDS = np.array([3, 5, 8, 13])


def slate() -> Slate:
    return message_of(Slate, (3, 8), "natural", PROMISE)


def popularity() -> Popularity:
    return message_of(Popularity, (3, 5, 8), np.array([4, -7, 0]), Fraction(5, 4), PROMISE)


def similarity() -> Similarity:
    return message_of(Similarity, ("a", "b"), np.array([[4, -7], [-7, 9]]), Fraction(1, 3), PROMISE)


def test_a_slate_is_made_from_a_release_in_the_order_of_the_catalogue() -> None:
    release = NaturalSlate(4, 4, 0.5).release(np.ones((3, 4)))
    made = Slate.from_release(release, IDS, "natural")
    assert made.items == (3, 5, 8, 13)
    assert all(type(item) is int for item in made.items)
    assert made.guarantee is release.guarantee
    turned = release.map(lambda chosen: chosen[::-1])
    assert Slate.from_release(turned, IDS, "natural") == made


def test_a_slate_says_nothing_else() -> None:
    assert slate().to_json() == {"version": 1, "items": [3, 8], "route": "natural", "guarantee": PROMISE.to_json()}
    assert "3" not in repr(message_of(Slate, (3,), "natural", pure(0.5, ONE_USER)))
    assert len(slate()) == 2
    assert slate().require(k=2) == slate()
    with pytest.raises(InvalidMessage):
        slate().require(k=3)


def test_counts_and_kernels_come_from_releases() -> None:
    counts = LaplaceSum(4, 2.0, 1.0).release(np.ones((3, 4)))
    message = Popularity.from_release(counts, IDS)
    assert np.array_equal(message.counts(), counts.value.to_floats())
    assert message.guarantee is counts.guarantee
    kernel = GaussianKernel(4, 1.0, 1e-6).release(np.ones((3, 4)))
    matrix = Similarity.from_release(kernel, IDS)
    assert np.array_equal(matrix.kernel(), kernel.value.to_floats())
    assert matrix.guarantee is kernel.guarantee
    assert Similarity.from_json(json.loads(json.dumps(matrix.to_json()))) == matrix


def test_what_is_written_is_read_again() -> None:
    for message in (slate(), popularity(), similarity()):
        assert type(message).from_json(json.loads(json.dumps(message.to_json()))) == message
    assert popularity().counts().tolist() == [5.0, -8.75, 0.0]
    assert similarity().to_json()["steps"] == [4, -7, 9]  # each pair once
    assert len(popularity()) == 3
    assert len(similarity()) == 2
    assert popularity() != similarity()
    assert popularity() != message_of(Popularity, (3, 5, 8), np.array([4, -7, 1]), Fraction(5, 4), PROMISE)


def test_released_numbers_cannot_be_written_to() -> None:
    steps = np.array([4, -7, 0])
    message = message_of(Popularity, (3, 5, 8), steps, Fraction(5, 4), PROMISE)
    steps[0] = 99
    assert message.steps.tolist() == [4, -7, 0]
    with pytest.raises(ValueError, match="read-only"):
        message.steps[0] = 1
    assert "4" not in repr(message.items) or "-7" not in repr(message)


def _with(**changed: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda found: {**found, **changed}


def _promise(**changed: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda found: {**found, "guarantee": {**found["guarantee"], **changed}}


@pytest.mark.parametrize(
    "damage",
    [
        _with(version=2),
        _with(version=True),
        _with(j=3),
        _with(items=[3, 3]),
        _with(items=[3, "8"]),
        _with(items=[3.0, 8]),
        _with(items=[True, 8]),
        _with(items=[2**60, 8]),
        _with(items="38"),
        _with(items=["", "a"]),
        _with(items=["\ud800", "a"]),
        _with(guarantee=None),
        _promise(epsilon=-1.0),
        _promise(epsilon="lots"),
        _promise(users=671),
        _promise(assumes="nothing"),
        _promise(assumes=["b", "a"]),
        _promise(epsilon=1),  # a whole number is another text than 1.0
        lambda found: {name: value for name, value in found.items() if name != "version"},
        lambda found: [found],
        lambda found: None,
    ],
)
@pytest.mark.parametrize("message", [slate(), popularity(), similarity()], ids=["slate", "popularity", "similarity"])
def test_what_is_damaged_is_refused_and_not_repeated(message: Any, damage: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidMessage) as problem:
        type(message).from_json(damage(message.to_json()))
    assert "671" not in str(problem.value)


@pytest.mark.parametrize("route", ["", "Natural", "top k", "-", "top-", "x" * 41, 3, None, "a\n"])
def test_a_route_is_a_short_name(route: Any) -> None:
    with pytest.raises(InvalidMessage):
        message_of(Slate, (3,), route, PROMISE)


@pytest.mark.parametrize(
    "changed",
    [
        {"steps": [1, 2]},
        {"steps": [1, 2, 3, 4]},
        {"steps": [1, 2, 3.0]},
        {"steps": [1, 2, 2**60]},
        {"steps": None},
        {"step": {"numerator": 0, "denominator": 1}},
        {"step": {"numerator": 2, "denominator": 4}},
        {"step": {"numerator": 1, "denominator": -4}},
        {"step": {"numerator": 1}},
        {"step": 0.5},
        {"items": []},
        {"items": [3, 5]},
    ],
)
def test_numbers_are_whole_and_one_for_each_item(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        Popularity.from_json({**popularity().to_json(), **changed})


def test_a_kernel_is_symmetric_and_not_too_large() -> None:
    with pytest.raises(InvalidMessage):
        message_of(Similarity, (1, 2), np.array([[1, 2], [3, 4]]), Fraction(1), PROMISE)
    with pytest.raises(InvalidMessage):
        Similarity.from_json({**similarity().to_json(), "steps": [4, -7, -7, 9]})
    count = MOST_KERNEL_ITEMS + 1
    with pytest.raises(InvalidMessage):
        message_of(Similarity, tuple(range(count)), np.zeros((count, count), dtype=np.int64), Fraction(1), PROMISE)


@pytest.mark.parametrize(
    "steps", [np.array([1.0, 2.0, 3.0]), [1, 2, 3], np.array([[1, 2, 3]]), np.array([2**60, 0, 0])]
)
def test_steps_are_an_array_of_whole_numbers(steps: Any) -> None:
    with pytest.raises(InvalidMessage):
        message_of(Popularity, (3, 5, 8), steps, Fraction(1), PROMISE)


def test_a_message_needs_a_guarantee() -> None:
    for wrong in (None, 0.5, PROMISE.to_json()):
        with pytest.raises(InvalidMessage):
            message_of(Slate, (3,), "natural", wrong)  # type: ignore[arg-type]
    assert isinstance(slate().guarantee, Guarantee)


def test_what_is_beyond_all_likelihood_is_cut_off() -> None:
    release = LaplaceSum(2, 1.0, 1.0).release(np.ones((1, 2)))
    far = type(release.value)(np.array([2**60, -(2**60)]), release.value.step)
    message = Popularity.from_release(release.map(lambda _: far), np.array([1, 2]))
    assert message.steps.tolist() == [2**53, -(2**53)]


@pytest.mark.parametrize("likes", [0.1, 1 / 3, 2.2, 20.0, 1e-200, 1e200])
def test_every_bound_of_a_release_makes_a_message(likes: float) -> None:
    release = LaplaceSum(4, likes, 1.0).release(np.ones((3, 4)))
    message = Popularity.from_release(release, IDS)
    assert message.step == release.value.step == Fraction(likes) / 2**20
    assert Popularity.from_json(json.loads(json.dumps(message.to_json()))) == message
    assert np.isfinite(message.counts()).all()


@pytest.mark.parametrize(
    "step", [Fraction(2**961), Fraction(1, 2**961), Fraction(2**1101 + 1, 2**1101), Fraction(-1), Fraction(0), 0.5, 1]
)
def test_steps_beyond_floats_are_refused(step: Any) -> None:
    with pytest.raises(InvalidMessage, match="step"):
        message_of(Popularity, (3,), np.array([1]), step, PROMISE)
    if isinstance(step, Fraction):
        parts = {"numerator": step.numerator, "denominator": step.denominator}
        with pytest.raises(InvalidMessage, match="step"):
            Popularity.from_json(
                {**message_of(Popularity, (3,), np.array([1]), Fraction(1), PROMISE).to_json(), "step": parts}
            )


def test_the_largest_steps_make_finite_numbers() -> None:
    for step in (Fraction(2**960), Fraction(1, 2**960)):
        counts = message_of(Popularity, (3,), np.array([2**53]), step, PROMISE).counts()
        assert 0.0 < counts[0] < np.inf
