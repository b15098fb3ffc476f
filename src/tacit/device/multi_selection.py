"""Multi-selection at the device: which mechanism draws a signal, how large eta must be, and the pick from a reply.

Proof: docs/proofs/multi-selection.md.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import whole
from tacit.errors import InvalidMessage, InvalidParameter, UnknownName
from tacit.guarantees import Guarantee, Neighbours, nothing
from tacit.ledger import Budget, Terms, price
from tacit.ledger.accounting import allowance
from tacit.mechanisms import Noise, VectorLaplace
from tacit.messages.multi_selection import LEAST_ETA, MOST_ETA, ModelKind, Reply
from tacit.models.features import FeatureSpace
from tacit.models.items import Items
from tacit.models.local_models import LinearMap, PrincipalComponents
from tacit.models.scorer import Scorer

GRID_BITS = 20  # steps of about a millionth: far below any noise that protects
_PLACES = 10**8  # eta_for gives a decimal of at most eight places

Estimate = Callable[[NDArray[np.float64]], NDArray[Any]]


def mechanism_of(space: FeatureSpace, eta: Fraction) -> VectorLaplace:
    """What draws a signal: noise of scale eta, exactly, on every feature."""
    return VectorLaplace(space.dimension, eta, space.low, space.high, GRID_BITS)


def charged(mechanism: VectorLaplace, noise: Noise) -> Guarantee:
    """What a signal from this noise promises, known before it is drawn: that is what the ledger charges."""
    if noise.caveat is None:
        return mechanism.guarantee
    return nothing(mechanism.guarantee.protects, noise.caveat, proof=mechanism.name)


def terms_of(space: FeatureSpace, budget: Budget, noise: Noise) -> Terms:
    """What a device promises its user: the budget is epsilon per unit of L1 distance, in each period."""
    rounding = mechanism_of(space, MOST_ETA).guarantee.rounding  # the grid's, which is the same for every eta
    unprotected = () if noise.caveat is None else (noise.caveat,)
    return Terms.of(budget, Neighbours.features("L1"), unprotected=unprotected, rounding=rounding)


def eta_for(budget: Budget, asks: int = 1) -> Fraction:
    """The smallest eta, to eight decimals, with which so many signals fit into one period of ``budget``: asks / eta <= epsilon."""
    asks = whole("asks", asks, least=1)
    terms = Terms.of(budget, Neighbours.features("L1"), rounding=1.0)
    allowed = allowance(budget, terms).amount
    exact = max(LEAST_ETA, Fraction(asks) / Fraction(repr(budget.epsilon)))
    steps = math.ceil(exact * _PLACES)
    while Fraction(steps, _PLACES) <= MOST_ETA:
        eta = Fraction(steps, _PLACES)
        # as the ledger counts: every charge is rounded up by itself, so that they may not fit although asks / eta does
        if asks * price(VectorLaplace(1, eta, grid_bits=0).guarantee, terms).amount <= allowed:
            return eta
        steps += 1
    raise InvalidParameter(f"{asks} signals do not fit into '{budget}' even with eta = {MOST_ETA}: ask less often.")


def codes_of(reply: Reply, items: Items) -> list[int]:
    """The codes of a slate's items; refuses what this device does not know."""
    if not isinstance(reply, Reply):
        raise InvalidParameter("a device picks from a server's Reply: device.pick(server.answer(signal)).")
    try:
        return [items.code_of_number(number) for number in reply.items]
    except UnknownName:
        raise InvalidMessage(
            "the slate has an item that is not among this device's: load the server's items."
        ) from None


def estimator(reply: Reply, codes: list[int], dimension: int, scorer: Scorer | None) -> Estimate:
    """How the slate's items are valued at true features. Whatever can be refused is refused here, before any feature is seen."""
    if reply.dimension != dimension:
        raise InvalidMessage(f"the reply's local model is for {reply.dimension} features; this device has {dimension}.")
    if reply.kind is ModelKind.NETWORK:
        if scorer is None:
            raise InvalidMessage("the reply leaves the scoring to the device: give it the server's model (scorer=...).")
        table = np.array(codes, dtype=np.int64)
        with np.errstate(all="ignore"):
            scorer.score(np.zeros((1, dimension)), table)  # what fails here (an extra is missing) fails for everybody
        return lambda features: scorer.score(features[None, :], table)[0]
    model = reply.model
    if isinstance(model, PrincipalComponents):
        model = _solved(model)
    if isinstance(model, LinearMap):
        return model.estimate
    return lambda features: -np.arange(len(codes), dtype=np.float64)


def estimates_at(features: Callable[[], NDArray[np.float64]], estimate: Estimate, count: int) -> NDArray[np.float64]:
    """``count`` estimates at the true features, whatever happens: none of them a number where they cannot be worked out.

    A server could craft a model, or a feature space, that fails for some features and not for others. An error would then tell
    which: so there is none, and the slate's own order stands.
    """
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(estimate(features()), dtype=np.float64)
    except Exception:  # of a model nothing is known, and neither is what it raises
        found = np.empty(0)
    return found if found.shape == (count,) else np.full(count, np.nan)


def best(estimates: NDArray[Any], t: int) -> list[int]:
    """The places of the t largest, largest first; equal ones in the slate's order. What is no number comes last."""
    values = np.nan_to_num(np.asarray(estimates, dtype=np.float64), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return [int(place) for place in np.argsort(-values, kind="stable")[:t]]


def _solved(model: PrincipalComponents) -> LinearMap:
    """The same estimates as a map, whose solution does not depend on features: so neither does its failure."""
    try:
        with np.errstate(all="ignore"):
            solved = model.as_map()
    except np.linalg.LinAlgError:
        raise InvalidMessage("the reply's principal components cannot be solved.") from None
    if not np.isfinite(solved.matrix).all():
        raise InvalidMessage("the reply's principal components give no finite estimates.")
    return solved
