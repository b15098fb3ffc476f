"""What a manifest leaves open and its public numbers decide; and what it states that its mechanism has no use for."""

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tacit.checks import member, positive, probability, whole
from tacit.errors import InvalidParameter
from tacit.messages.federated_prototypes_limits import (
    MOST_DEPTH,
    MOST_DIMENSIONS,
    MOST_K_GRID,
    MOST_K_TREE,
    require_bounds,
    require_grid,
    require_sizes,
    require_tree,
)
from tacit.models.secure_sum import SumPlan, least_fewest

if TYPE_CHECKING:
    from tacit.messages.federated_prototypes_manifest import Manifest

DELTA = 1e-6
PART = 0.15  # of rho, for the popularity
SHARES = (
    0.10,
    0.10,
    0.05,
    0.20,
    0.55,
    0.0,
)  # of epsilon: candidates, swaps, counts, selection, values, the last choice
FINAL = 0.10  # for the last choice among several trials, taken from the values
DEPTH, LLOYD = 12, 2  # of a tree
RANK, RIDGE = 10, 0.05
_SUM = 1e-9


class Mechanism(StrEnum):
    """What an entity releases: noisy moments in two stages, or prototypes by a grid or by a tree."""

    MOMENTS = "moments"
    GRID = "grid"
    TREE = "tree"


class Aggregation(StrEnum):
    """What the coordinator sees of the entities' shares."""

    SECURE = "secure"  # the coordinator sees sums only
    NONE = "none"  # it sees every share, and each carries all the noise itself


class Regulariser(StrEnum):
    """What large factors cost where the coordinator factorises prototypes: by the number of known cells, or the same for all."""

    WEIGHTED = "weighted"
    SUM = "sum"


MOMENTS = ("part", "aggregation", "fewest", "colluding")
_BOUNDS = ("k", "items_each", "value_bound", "l1_bound", "l2_bound", "depth")
_FACTORS = ("rank", "ridge", "regulariser", "zeros_observed", "most_weight")
USED = {
    Mechanism.MOMENTS: ("delta", *MOMENTS),
    Mechanism.GRID: (*_BOUNDS, "dimension", "swaps", "trials", "picked", "shares", *_FACTORS),
    Mechanism.TREE: ("delta", *_BOUNDS, "lloyd", *_FACTORS),
}
OPTIONAL = tuple(dict.fromkeys(name for names in USED.values() for name in names))


def resolved(manifest: "Manifest") -> dict[str, Any]:
    """The fields of its mechanism, checked, with what was left open filled in. Every other one must have been left out."""
    used = USED[manifest.mechanism]
    odd = [name for name in OPTIONAL if name not in used and getattr(manifest, name) is not None]
    if manifest.mechanism is Mechanism.GRID and manifest.delta in (0, 0.0):
        odd = [name for name in odd if name != "delta"]
    if odd:
        raise InvalidParameter(f"'{manifest.mechanism}' has no use for {', '.join(odd)}: leave that out.")
    if manifest.mechanism is Mechanism.MOMENTS:
        return _moments(manifest)
    is_grid = manifest.mechanism is Mechanism.GRID
    found = _bounds(manifest, MOST_K_GRID if is_grid else MOST_K_TREE) | _factors(manifest)
    require_bounds(found)
    found |= _grid(manifest) if is_grid else _tree(manifest)
    if is_grid:
        require_grid(found, manifest.items, manifest.users, manifest.epsilon)
    else:
        require_tree(found, manifest.epsilon)
    is_sparse = is_grid and found["picked"] < manifest.items
    each = 2 * found["picked"] if is_sparse else manifest.items
    require_sizes(found["k"], each, manifest.items, len(manifest.contributors))
    return found


def _moments(manifest: "Manifest") -> dict[str, Any]:
    aggregation = member("aggregation", Aggregation, _or(manifest.aggregation, Aggregation.SECURE))
    found: dict[str, Any] = {
        "delta": probability("delta", _or(manifest.delta, DELTA)),
        "part": probability("part", _or(manifest.part, PART)),
        "aggregation": aggregation,
    }
    if aggregation is Aggregation.NONE:
        if manifest.fewest is not None or manifest.colluding is not None:
            raise InvalidParameter("fewest and colluding belong to secure aggregation: leave them out.")
        return found
    names = tuple(sorted(one.name for one in manifest.roster if one.contributes))
    colluding = whole("colluding", _or(manifest.colluding, 1), least=1)
    if manifest.fewest is not None and whole("fewest", manifest.fewest, least=1) - colluding < 1:
        raise InvalidParameter(
            "fewest must be above colluding: some noise in a sum must be known to nobody who sees it."
        )
    # As few as is safe would carry the most noise; all that is safe to lose are lost in the least happy run only.
    fewest = _or(manifest.fewest, max(least_fewest(len(names), colluding), -(-9 * len(names) // 10)))
    plan = SumPlan(names, fewest, colluding)  # refuses what a coordinator that lies could unmask
    return found | {"colluding": plan.colluding, "fewest": plan.fewest}


def _bounds(manifest: "Manifest", most_k: int) -> dict[str, Any]:
    missing = [name for name in ("k", "items_each", "value_bound") if getattr(manifest, name) is None]
    if missing:
        raise InvalidParameter(f"prototypes need {', '.join(missing)}: state it, it cannot be computed from the data.")
    return {
        "k": whole("k", _stated(manifest.k), least=1, most=most_k),
        "items_each": whole("items_each", _stated(manifest.items_each), least=1, most=manifest.items),
        "value_bound": positive("value_bound", _stated(manifest.value_bound)),
        "l1_bound": None if manifest.l1_bound is None else positive("l1_bound", manifest.l1_bound),
        "l2_bound": None if manifest.l2_bound is None else positive("l2_bound", manifest.l2_bound),
    }


def _grid(manifest: "Manifest") -> dict[str, Any]:
    k, users = _stated(manifest.k), manifest.users
    trials = whole("trials", _or(manifest.trials, 1), least=1, most=1000)
    shares = SHARES if trials == 1 else (*SHARES[:4], SHARES[4] - FINAL, FINAL)
    return {
        "delta": 0.0,
        "dimension": whole(
            "dimension", _or(manifest.dimension, max(2, int(0.5 * math.log(users)))), least=1, most=MOST_DIMENSIONS
        ),
        "depth": whole("depth", _or(manifest.depth, max(2, int(math.log2(users) / 2))), least=1, most=MOST_DEPTH),
        "swaps": whole("swaps", _or(manifest.swaps, min(k, 20)), least=1, most=10_000),
        "trials": trials,
        "picked": whole("picked", _or(manifest.picked, _stated(manifest.items_each)), least=1, most=manifest.items),
        "shares": _checked_shares(shares if manifest.shares is None else manifest.shares, trials),
    }


def _tree(manifest: "Manifest") -> dict[str, Any]:
    return {
        "delta": probability("delta", _or(manifest.delta, DELTA)),
        "depth": whole("depth", _or(manifest.depth, DEPTH), least=1, most=MOST_DEPTH),
        "lloyd": whole("lloyd", _or(manifest.lloyd, LLOYD), least=0, most=100),
    }


def _factors(manifest: "Manifest") -> dict[str, Any]:
    observed = _or(manifest.zeros_observed, False)
    if type(observed) is not bool:
        raise InvalidParameter("zeros_observed must be True (counts, clicks) or False (ratings).")
    weight = None if manifest.most_weight is None else positive("most_weight", manifest.most_weight)
    if weight is not None and weight > 1.0:
        raise InvalidParameter("most_weight is a part of the total weight: above 0, at most 1.")
    return {
        "rank": whole("rank", _or(manifest.rank, RANK), least=1, most=1000),
        "ridge": positive("ridge", _or(manifest.ridge, RIDGE)),
        "regulariser": member("regulariser", Regulariser, _or(manifest.regulariser, Regulariser.WEIGHTED)),
        "zeros_observed": observed,
        "most_weight": weight,
    }


def _checked_shares(shares: object, trials: int) -> tuple[float, ...]:
    if not isinstance(shares, (tuple, list)) or len(shares) != len(SHARES):
        raise InvalidParameter(
            f"shares are {len(SHARES)} parts of epsilon: candidates, swaps, counts, selection, values, final."
        )
    *used, final = shares
    found = (*(positive("a share", one) for one in used), 0.0 if final in (0, 0.0) else positive("a share", final))
    if not abs(math.fsum(found) - 1.0) <= _SUM:
        raise InvalidParameter("the shares of epsilon must add up to 1.")
    if (found[-1] > 0.0) != (trials > 1):
        raise InvalidParameter("the last share is for choosing among several trials: above 0 for these, else 0.")
    return found


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _stated(value: Any) -> Any:
    if value is None:
        raise InvalidParameter("a number that the mechanism needs is missing.")
    return value
