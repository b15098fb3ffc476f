"""A demonstration as a value: the three ways it sets side by side are among those compared, and it survives its JSON."""

import json
from dataclasses import replace

import pytest

from tacit.errors import InvalidParameter
from tacit.evaluation.curve import Better
from tacit.evaluation.demonstration.demonstration import GAIN, Demonstration, Figure, Kind, Way
from tacit.evaluation.statistics import Estimate
from tacit.guarantees import ONE_USER, pure

PRIVATE = Way("moments", Kind.PRIVATE, 2.0, {"error": Figure(0.74, 0.02), GAIN: Figure(0.01, 0.002)}, "averages only")
PLAIN = Way("NX-Map", Kind.PLAIN, float("inf"), {"error": Figure(0.7)})
NOTHING = Way("own mean", Kind.NOTHING, 0.0, {"error": Figure(0.75, 0.02)})
SHOWN = Demonstration(
    "cross-domain", "Tastes are carried over.", (("who is asked", "7 users"),), pure(2.0, ONE_USER), "a model", "every rating",
    "1 charged", "error", "stars", Better.LOWER, (PRIVATE, PLAIN, NOTHING), PRIVATE, PLAIN, NOTHING, "Better.", {"bytes": 12},
)  # fmt: skip


def test_what_is_written_is_read_again() -> None:
    written = json.loads(json.dumps(SHOWN.to_json(), allow_nan=False))
    assert Demonstration.from_json(written) == SHOWN
    assert written["ways"][1]["epsilon"] == "inf"
    many = replace(SHOWN, each="impression")
    assert Demonstration.from_json(json.loads(json.dumps(many.to_json()))) == many
    del written["each"]  # as it was written before there was any
    assert Demonstration.from_json(written) == SHOWN


def test_a_way_that_was_not_compared_cannot_stand_in_the_closing_table() -> None:
    stranger = replace(PRIVATE, epsilon=8.0)
    with pytest.raises(InvalidParameter, match="one of the ways compared"):
        replace(SHOWN, private=stranger)
    with pytest.raises(InvalidParameter, match="one of the ways compared"):
        replace(SHOWN, ways=(PRIVATE, PLAIN))


@pytest.mark.parametrize("wrong", [{"private": PLAIN}, {"plain": PRIVATE}, {"nothing": PRIVATE}])
def test_a_way_of_another_kind_is_not_passed_off_as_private_or_plain(wrong: dict[str, Way]) -> None:
    with pytest.raises(InvalidParameter, match="of kind"):
        replace(SHOWN, **wrong)  # type: ignore[arg-type]


def test_every_way_has_a_figure_of_the_metric() -> None:
    with pytest.raises(InvalidParameter, match="NDCG"):
        replace(SHOWN, metric="NDCG")


def test_a_figure_is_shown_by_two_standard_errors() -> None:
    assert Figure(0.021, 0.01).is_shown
    assert not Figure(0.019, 0.01).is_shown
    assert not Figure(-0.021, 0.01).is_shown
    assert Figure(0.001).is_shown
    assert not Figure(0.0, 0.0).is_shown
    assert not Figure(1e-17, 0.0).is_shown  # a mean of figures is no nearer to its true value


def test_an_error_that_cannot_be_told_is_none() -> None:
    assert Figure.of(Estimate(0.5, float("nan"), 1)) == Figure(0.5, None)
    assert Figure.of(Estimate(0.5, 0.1, 9)) == Figure(0.5, 0.1)
    assert NOTHING.gain == Figure(0.0)
