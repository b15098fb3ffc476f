"""The shared cases of ``vectors/multi-selection.json``, which a device in another language must reproduce too."""

import json
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.device import slot_of
from tacit.device.multi_selection import best, estimator, mechanism_of, readings_of
from tacit.errors import InvalidMessage
from tacit.messages.multi_selection import Reply, Request, Signal, exact_eta
from tacit.models.features import GenreProfile

CASES: dict[str, Any] = json.loads((Path(__file__).parents[3] / "vectors" / "multi-selection.json").read_text())


def each(name: str) -> Any:
    return pytest.mark.parametrize("case", CASES[name], ids=lambda case: case.get("name", ""))


def test_there_is_something_of_everything() -> None:
    least = {"features": 4, "requests": 5, "signals": 1, "replies": 7, "refused_requests": 10, "refused_replies": 8}
    assert {name: len(CASES[name]) >= count for name, count in least.items()} == dict.fromkeys(least, True)
    assert min(len(CASES["picks"]), len(CASES["readings"])) >= 8


@each("features")
def test_features(case: dict[str, Any]) -> None:
    flags = np.zeros((len(case["ratings"]), len(CASES["genres"])), dtype=bool)
    for row, rating in enumerate(case["ratings"]):
        flags[row, [CASES["genres"].index(genre) for genre in rating["genres"]]] = True
    values = np.array([rating["value"] for rating in case["ratings"]], dtype=float)
    space = GenreProfile(flags)
    found = space.check(space.of(np.arange(len(values)), values))
    np.testing.assert_allclose(found, case["features"], atol=1e-12)


@each("requests")
def test_requests(case: dict[str, Any]) -> None:
    request = Request.from_json(case["json"])
    assert request.to_bytes().hex() == case["bytes"]
    again = Request.from_bytes(bytes.fromhex(case["bytes"]))
    assert again.to_json() == case["json"]
    promised = again.signal.guarantee
    if case["guarantee"] is None:
        assert promised.promises_nothing
    else:
        assert {"epsilon": promised.epsilon, "rounding": promised.rounding} == pytest.approx(case["guarantee"])


@each("signals")
def test_signals(case: dict[str, Any]) -> None:
    assert Signal.from_json(case["json"]).to_bytes().hex() == case["bytes"]
    assert Signal.from_bytes(bytes.fromhex(case["bytes"])).to_json() == case["json"]


@each("replies")
def test_replies(case: dict[str, Any]) -> None:
    assert Reply.from_json(case["json"]).to_bytes().hex() == case["bytes"]
    assert Reply.from_bytes(bytes.fromhex(case["bytes"])).to_json() == case["json"]


@each("refused_requests")
def test_refused_requests(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        Request.from_bytes(bytes.fromhex(case["bytes"]))


@each("refused_replies")
def test_refused_replies(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        Reply.from_bytes(bytes.fromhex(case["bytes"]))


@each("picks")
def test_picks(case: dict[str, Any]) -> None:
    reply = Reply.from_bytes(bytes.fromhex(case["reply"]))
    features = np.array(case["features"])
    estimates = estimator(reply, list(range(len(reply.items))), len(features), None)(features)
    if case["estimates"] is not None:
        np.testing.assert_allclose(estimates, case["estimates"], atol=1e-6)
    assert [str(reply.items[place]) for place in best(estimates, case["t"])] == case["picked"]


@each("readings")
def test_readings(case: dict[str, Any]) -> None:
    films = [rating["genres"] for rating in case["ratings"]] + case["others"]
    flags = np.zeros((len(films), len(CASES["genres"])), dtype=bool)
    for row, genres in enumerate(films):
        flags[row, [CASES["genres"].index(genre) for genre in genres]] = True
    space, eta = GenreProfile(flags), Fraction(case["eta"])
    values = np.array([rating["value"] for rating in case["ratings"]], dtype=float)
    signal = mechanism_of(space, eta).guarantee
    found = readings_of(eta, signal, space, (np.arange(len(values)), values), rng=np.random.default_rng())
    assert found.one_rating is not None
    named = {
        "per_unit": found.signal,
        "added": found.one_rating.added,
        "removed": found.one_rating.removed,
        "moved": found.one_rating.moved,
        "anywhere": found.anywhere,
    }
    assert {name: one and one.epsilon for name, one in named.items()} == case["epsilons"]


@each("slots")
def test_slots(case: dict[str, Any]) -> None:
    assert slot_of(case["at"], case["refresh"], case["per_period"]) == case["slot"]
    year = datetime.fromtimestamp(case["at"] / 1e6, tz=UTC).year
    assert str(year) in case["slot"] or case["slot"] == "ever"


@each("etas")
def test_etas(case: dict[str, Any]) -> None:
    exact = exact_eta(case["written"])
    assert [exact.numerator, exact.denominator] == case["exact"]
    assert exact_eta(float(case["written"])) == exact
