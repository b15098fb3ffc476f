"""Private selection at the device: which mechanism a policy names, what it costs, its law, and the draw.

A policy and public scores are all that a mechanism is made from, and all that its cost depends on. Private scores come last.
Proof: docs/proofs/private-selection.md.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.device.limits import GREEDY
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_PROFILE, Guarantee, Release, nothing, pure
from tacit.mechanisms import (
    SYSTEM_NOISE,
    ClippedScores,
    Envelope,
    ExponentialMechanism,
    LaplaceNoisyMax,
    Noise,
    Peeling,
    PermuteAndFlip,
    ReplayedNoise,
    ScaledScores,
    TopResponse,
)
from tacit.mechanisms.drawn import released
from tacit.mechanisms.samplers.uniform import below
from tacit.mechanisms.scores import candidate_scores
from tacit.messages.private_selection import Bounding, Policy, Rule

_PROOF = "private-selection"

Mechanism: TypeAlias = TopResponse | Envelope | ExponentialMechanism | PermuteAndFlip | LaplaceNoisyMax


def mechanism_of(policy: Policy, public: Sequence[float]) -> Mechanism | Peeling | None:
    """What chooses by private scores under this policy; None where private scores have no say, or where it has no noise."""
    if len(public) != policy.m:
        raise InvalidParameter(f"the policy is for {policy.m} candidates, not {len(public)}.")
    scores = tuple(map(float, public))
    if not all(map(math.isfinite, scores)):
        raise InvalidParameter("public scores are finite numbers.")
    return _made(policy, scores)


def guarantee_of(policy: Policy, public: Sequence[float]) -> Guarantee:
    """What one selection promises, worked out from the mechanism; no number of an offer is believed."""
    mechanism = mechanism_of(policy, public)
    if mechanism is not None:
        return mechanism.guarantee
    if policy.rule is Rule.GREEDY and policy.m > 1:
        return nothing(ONE_PROFILE, GREEDY, proof=_PROOF)
    return pure(0.0, ONE_PROFILE, proof=_PROOF)


def epsilon_of(policy: Policy, public: Sequence[float]) -> float:
    """What one selection costs: 0 where private scores have no say, infinite where nothing is promised."""
    return guarantee_of(policy, public).epsilon


@np.errstate(all="ignore")
def probabilities(policy: Policy, scores: ArrayLike, public: Sequence[float]) -> NDArray[np.float64]:
    """The probability of every candidate to be shown in the one slot, given its private scores."""
    if policy.slots != 1:
        raise InvalidParameter("the law of several slots is one for each order of items: ask for one slot.")
    mechanism, row = mechanism_of(policy, public), _row(policy, scores)
    if mechanism is not None:
        return mechanism.pmf(row)
    if policy.rule is Rule.UNIFORM or (policy.rule is Rule.RR and policy.m > 1):
        return np.full(policy.m, 1.0 / policy.m)
    law = np.zeros(policy.m)
    law[int(row.argmax()) if policy.rule is Rule.GREEDY else 0] = 1.0
    return law


@np.errstate(all="ignore")  # a caller's setting would turn an underflow, which is private, into an error
def select(
    policy: Policy, scores: ArrayLike | None, public: Sequence[float], noise: Noise = SYSTEM_NOISE
) -> Release[tuple[int, ...]]:
    """The places of the items to show, one for each slot. Without a cost ``scores`` are not looked at, and may be None."""
    mechanism = mechanism_of(policy, public)
    if mechanism is not None:
        release: Release[Any] = mechanism.release(_row(policy, scores), noise)  # one place, or one for each slot
        return replace(release, value=tuple(int(place) for place in np.atleast_1d(release.value)))
    if policy.rule is Rule.GREEDY and policy.m > 1:
        order = np.argsort(-_row(policy, scores), kind="stable")
        chosen = tuple(int(place) for place in order[: policy.slots])
    elif policy.rule is Rule.UNIFORM or (policy.rule is Rule.RR and policy.m > 1):
        left = list(range(policy.m))
        chosen = tuple(left.pop(below(len(left), noise)) for _ in range(policy.slots))
    else:  # the publicly best; also whatever is offered alone
        chosen = tuple(range(policy.slots))
    return released(chosen, guarantee_of(policy, public), noise)


@lru_cache(maxsize=64)  # of public values: servers repeat their offers, and calibration takes its time
@np.errstate(all="ignore")
def _made(policy: Policy, public: tuple[float, ...]) -> Mechanism | Peeling | None:
    if policy.rule in (Rule.PUBLIC, Rule.UNIFORM, Rule.GREEDY) or policy.cost == 0.0:
        return None
    rule = _rule(policy, public)
    made = rule if policy.slots == 1 or isinstance(rule, Envelope) else Peeling(rule, policy.slots)
    made.release(
        public, ReplayedNoise(0)
    )  # what it cannot do fails here, before anything is charged, on public numbers
    return made


def _rule(policy: Policy, public: tuple[float, ...]) -> Mechanism:
    if policy.rule is Rule.RR:
        return TopResponse(policy.m, policy.d, policy.epsilon)
    if policy.rule is Rule.ENVELOPE:
        return Envelope(policy.floors or (), policy.epsilon)
    source: ScaledScores | ClippedScores
    if policy.bounding is Bounding.CLIPPED and policy.width is not None:
        source = ClippedScores(public, policy.width)
    else:
        source = ScaledScores(policy.m)
    if policy.rule is Rule.LAPLACE:
        return LaplaceNoisyMax(source, policy.epsilon)
    if policy.rule is Rule.GUMBEL:
        return ExponentialMechanism(source, policy.epsilon, calibrated=True)
    return PermuteAndFlip(source, policy.epsilon, calibrated=True)


def _row(policy: Policy, scores: ArrayLike | None) -> NDArray[np.float64]:
    try:
        row = candidate_scores(scores)  # type: ignore[arg-type]
    except InvalidInput:
        row = np.empty(0)
    if row.shape != (policy.m,):
        raise InvalidInput("expected one private score for each candidate.")
    return row
