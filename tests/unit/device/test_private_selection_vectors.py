"""The shared cases of ``vectors/private-selection.json``, which a device in another language must reproduce too.

They were worked out by a plain script of their own, from the formulas, without anything of this library.
"""

import json
import math
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.device.private_selection import guarantee_of, private_scores, probabilities, select
from tacit.errors import InvalidMessage
from tacit.mechanisms import RandomisedResponse, TopResponse
from tacit.messages import private_selection as messages
from tacit.messages.private_selection import Candidate, Offer, Policy, Rule

CASES: dict[str, Any] = json.loads((Path(__file__).parents[3] / "vectors" / "private-selection.json").read_text())


def each(name: str) -> Any:
    return pytest.mark.parametrize("case", CASES[name], ids=lambda case: case["name"])


class Given:
    """Noise that gives the bytes of a case, and no more."""

    caveat = None

    def __init__(self, content: str) -> None:
        self.left = bytes.fromhex(content)

    def draw(self, count: int) -> bytes:
        assert count <= len(self.left)
        given, self.left = self.left[:count], self.left[count:]
        return given


def test_there_is_something_of_everything() -> None:
    least = {
        "offers": 6,
        "refused_offers": 35,
        "messages": 6,
        "costs": 13,
        "groups": 5,
        "draws": 80,
        "uniform": 5,
        "clicks": 12,
        "laws": 35,
        "private_scores": 5,
    }
    assert {name: len(CASES[name]) >= count for name, count in least.items()} == dict.fromkeys(least, True)
    assert {case["policy"]["id"] for case in CASES["laws"]} == {"rr", "pf", "gumbel", "envelope"}
    drawn = {(case["d"], case["place"]) for case in CASES["draws"] if len(case["scores"]) == 4}
    assert drawn == {(d, place) for d in (1, 2) for place in range(4)}


@each("offers")
def test_offers(case: dict[str, Any]) -> None:
    offer = Offer.from_json(case["json"])
    assert Offer.from_json(offer.to_json()) == offer
    assert offer.to_json() == case["json"]


@each("refused_offers")
def test_refused_offers(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        Offer.from_json(case["json"])


@each("messages")
def test_messages(case: dict[str, Any]) -> None:
    assert getattr(messages, case["kind"]).from_json(case["json"]).to_json() == case["json"]


@each("costs")
def test_costs(case: dict[str, Any]) -> None:
    policy = Policy.from_json(case["policy"])
    epsilon = math.inf if case["epsilon"] == "inf" else case["epsilon"]
    assert policy.cost == epsilon
    assert guarantee_of(policy, (0.0,) * policy.m).epsilon == epsilon


@each("groups")
def test_groups(case: dict[str, Any]) -> None:
    applied = Policy.from_json(case["applied"])
    assert sha256(case["text"].encode()).hexdigest()[:32] == case["group"]
    assert Offer.from_json(case["offer"]).group_under(applied) == case["group"]


@each("draws")
def test_draws(case: dict[str, Any]) -> None:
    scores, noise = case["scores"], Given(case["bytes"])
    policy = Policy(Rule.RR, len(scores), case["epsilon"], d=case["d"])
    assert select(policy, scores, (0.0,) * policy.m, noise).value == (case["place"],)
    assert noise.left == b""
    if policy.d < policy.m:
        assert str(TopResponse(policy.m, policy.d, policy.epsilon).best_weight) == case["weight"]


@each("uniform")
def test_uniform_draws(case: dict[str, Any]) -> None:
    noise = Given(case["bytes"])
    policy = Policy(Rule.UNIFORM, case["m"], slots=case["slots"])
    assert select(policy, None, (0.0,) * policy.m, noise).value == tuple(case["places"])
    assert noise.left == b""


@each("clicks")
def test_clicks(case: dict[str, Any]) -> None:
    noise = Given(case["bytes"])
    assert RandomisedResponse(2, case["epsilon"]).release(int(case["clicked"]), noise).value == case["bit"]
    assert noise.left == b""


@each("laws")
def test_laws(case: dict[str, Any]) -> None:
    law = probabilities(Policy.from_json(case["policy"]), case["scores"], case["public"])
    np.testing.assert_allclose(law, case["law"], atol=1e-5)


@each("private_scores")
def test_private_scores(case: dict[str, Any]) -> None:
    candidates = tuple(Candidate.from_json(one) for one in case["candidates"])
    np.testing.assert_array_equal(private_scores(candidates, lambda: case["quality"]), case["scores"])
