"""What a device says to a service, without a device: requests with made-up signals, offers, reports, and what was counted."""

from collections import Counter
from fractions import Fraction
from typing import Any

import httpx
import numpy as np

from tacit.ledger import ImpressionLedger
from tacit.messages.multi_selection import Request, Signal
from tacit.messages.private_selection import Offer
from tests.integration.service.conftest import Running
from tests.releases import message_of

BINARY, JSON, PROBLEM = "application/vnd.tacit", "application/json", "application/problem+json"
MULTI_SELECTION = "/v1/multi-selection"
OFFERS, IMPRESSIONS, COUNTS = (f"/v1/private-selection/{name}" for name in ("offers", "impressions", "counts"))
DIMENSION = 38  # of the published world: likes and dislikes of 19 genres


def request_of(seed: int = 0, k: int = 5, dimension: int = DIMENSION) -> Request:
    """A request with noise for a signal; equal seeds are equal bytes."""
    steps = np.random.default_rng(seed).integers(-(1 << 19), 1 << 20, dimension)
    return Request(message_of(Signal, steps, 20, Fraction(1, 10)), k)


def offer_from(client: httpx.Client, consent: int = 1) -> Offer:
    answer = client.post(OFFERS, json={"version": 1, "context": "", "consent": consent})
    assert answer.status_code == 200, answer.text
    return Offer.from_json(answer.json())


def impression(token: str, *items: str) -> dict[str, Any]:
    return {"version": 1, "token": token, "items": list(items)}


def outcome_of(client: httpx.Client, token: str, *items: str) -> str:
    answer = client.post(IMPRESSIONS, json=impression(token, *items))
    assert answer.status_code == 200, answer.text
    return str(answer.json()["outcome"])


def counted(client: httpx.Client, running: Running) -> Counter[str]:
    """How often each item was shown, as the service says."""
    answer = client.get(COUNTS, headers=running.operator)
    assert answer.status_code == 200, answer.text
    return Counter({one["item"]: one["impressions"] for one in answer.json()["items"]})


def in_ledger(target: str) -> Counter[str]:
    """The same as the ledger says, beside whatever serves it."""
    with ImpressionLedger.open(target) as ledger:
        assert ledger.balanced()
        return Counter({total.item: total.impressions for total in ledger.items()})


def require_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The answer is this error, in the one form that errors have."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM), answer.text
    problem: dict[str, Any] = answer.json()
    assert set(problem) == {"type", "code", "title", "status", "detail"}
    assert (problem["type"], problem["code"], problem["status"]) == (f"urn:tacit:{code}", code, status)
    return problem
