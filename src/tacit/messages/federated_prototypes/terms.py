"""The terms of a run: which fields of a manifest each mechanism uses, their defaults, and their limits.

Everything here follows from public numbers, so a manifest that cannot be run is refused before anybody is asked. Mechanisms refuse
what they cannot draw as well, but at the entities, once a run is open. Messages may not import mechanisms, so this module states
their limits a second time, and a test compares the two.
"""

import math
from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction
from typing import Any

from tacit.checks import member, positive, probability, whole
from tacit.errors import InvalidParameter
from tacit.guarantees.concentrated import epsilon_within, rho_for
from tacit.models.secure_sum import SumPlan, least_fewest


class Mechanism(StrEnum):
    """What an entity releases: noisy moments in two stages, or prototypes by a grid or by a tree."""

    MOMENTS = "moments"
    GRID = "grid"
    TREE = "tree"


class Aggregation(StrEnum):
    """What the coordinator sees of the entities' shares."""

    SECURE = "secure"  # the coordinator sees sums only
    NONE = "none"  # it sees every share, so each share carries all the noise itself


class Regulariser(StrEnum):
    """How the coordinator penalises large factors of prototypes: by the number of known cells, or equally."""

    WEIGHTED = "weighted"
    SUM = "sum"


# Defaults
DELTA = 1e-6
PART = 0.15  # of rho, for the popularity
# Of epsilon: for candidates, swaps, counts, selection, values and the last choice.
SHARES = (0.10, 0.10, 0.05, 0.20, 0.55, 0.0)
FINAL = 0.10  # for the last choice among several trials, taken from the values
DEPTH, LLOYD = 12, 2  # of a tree
RANK, RIDGE = 10, 0.05

# Limits
STEPS = 1 << 16  # in value_bound
MOST_DEPTH = 16
MOST_DIMENSIONS = 1 << 14
MOST_GRID_USERS = 1 << 28
MOST_K_GRID, MOST_K_TREE = 1 << 16, 1 << 14
LEAST_VALUE, MOST_VALUE = 2.0**-110, 2.0**127  # values travel as 32-bit floats: finite, and a step of them is normal
MOST_KEPT = 12 * 1024 * 1024  # bytes of one reply: an entity's ledger keeps every release
MOST_CELLS = 1 << 26  # of the coordinator's table of all entities' prototypes, half a gigabyte
_LONGEST = 1 << 49  # squared steps of a row of a tree
_WIDEST = Fraction(2 * 2**55, 23)  # scale of discrete Laplace noise, in steps
_COUNTS = Fraction(1, 5)  # of the rho of a tree, for its counts
_SUM = 1e-9

_BOUNDS = ("k", "items_each", "value_bound", "l1_bound", "l2_bound", "depth")
_FACTORS = ("rank", "ridge", "regulariser", "zeros_observed", "most_weight")
_USED = {
    Mechanism.MOMENTS: ("delta", "part", "aggregation", "fewest", "colluding"),
    Mechanism.GRID: (*_BOUNDS, "dimension", "swaps", "trials", "picked", "shares", *_FACTORS),
    Mechanism.TREE: ("delta", *_BOUNDS, "lloyd", *_FACTORS),
}
_OPTIONAL = tuple(dict.fromkeys(name for names in _USED.values() for name in names))


def resolve(stated: Mapping[str, Any], contributors: tuple[str, ...]) -> dict[str, Any]:
    """The fields that a manifest's mechanism uses, checked, with defaults for those that are None.

    ``stated`` are all fields of the manifest, ``contributors`` the names of those who send something. Raises InvalidParameter for a
    field that the mechanism does not use, and for terms that cannot be run.
    """
    mechanism = stated["mechanism"]
    unused = [name for name in _OPTIONAL if name not in _USED[mechanism] and stated[name] is not None]
    if mechanism is Mechanism.GRID and stated["delta"] in (0, 0.0):
        unused = [name for name in unused if name != "delta"]
    if unused:
        raise InvalidParameter(f"'{mechanism}' does not use {', '.join(unused)}: leave that out.")
    if mechanism is Mechanism.MOMENTS:
        return _moments(stated, contributors)
    is_grid = mechanism is Mechanism.GRID
    terms = _row_bounds(stated, MOST_K_GRID if is_grid else MOST_K_TREE) | _factors(stated)
    _require_bounds(terms)
    if is_grid:
        terms |= _grid(stated)
        _require_grid(terms, stated["items"], stated["users"], stated["epsilon"])
    else:
        terms |= _tree(stated)
        _require_tree(terms, stated["epsilon"])
    is_sparse = is_grid and terms["picked"] < stated["items"]
    each = 2 * terms["picked"] if is_sparse else stated["items"]
    _require_sizes(terms["k"], each, stated["items"], len(contributors))
    return terms


def _moments(stated: Mapping[str, Any], contributors: tuple[str, ...]) -> dict[str, Any]:
    aggregation = member("aggregation", Aggregation, _or(stated["aggregation"], Aggregation.SECURE))
    terms: dict[str, Any] = {
        "delta": probability("delta", _or(stated["delta"], DELTA)),
        "part": probability("part", _or(stated["part"], PART)),
        "aggregation": aggregation,
    }
    fewest = stated["fewest"]
    if aggregation is Aggregation.NONE:
        if fewest is not None or stated["colluding"] is not None:
            raise InvalidParameter("fewest and colluding belong to secure aggregation: leave them out.")
        return terms
    names = tuple(sorted(contributors))
    colluding = whole("colluding", _or(stated["colluding"], 1), least=1)
    if fewest is not None and whole("fewest", fewest, least=1) - colluding < 1:
        raise InvalidParameter(
            "fewest must be above colluding: some noise in a sum must be known to nobody who sees it."
        )
    if fewest is None:
        # The fewest that is safe would need the most noise. Few runs lose more than a tenth of their contributors.
        fewest = max(least_fewest(len(names), colluding), -(-9 * len(names) // 10))
    plan = SumPlan(names, fewest, colluding)  # refuses sums that a dishonest coordinator could unmask
    return terms | {"colluding": plan.colluding, "fewest": plan.fewest}


def _row_bounds(stated: Mapping[str, Any], most_k: int) -> dict[str, Any]:
    missing = [name for name in ("k", "items_each", "value_bound") if stated[name] is None]
    if missing:
        raise InvalidParameter(f"prototypes need {', '.join(missing)}: state it, it cannot be computed from the data.")
    norms = {name: None if stated[name] is None else positive(name, stated[name]) for name in ("l1_bound", "l2_bound")}
    return {
        "k": whole("k", stated["k"], least=1, most=most_k),
        "items_each": whole("items_each", stated["items_each"], least=1, most=stated["items"]),
        "value_bound": positive("value_bound", stated["value_bound"]),
        **norms,
    }


def _grid(stated: Mapping[str, Any]) -> dict[str, Any]:
    k, users, items = stated["k"], stated["users"], stated["items"]
    dimension = _or(stated["dimension"], max(2, int(0.5 * math.log(users))))
    depth = _or(stated["depth"], max(2, int(math.log2(users) / 2)))
    trials = whole("trials", _or(stated["trials"], 1), least=1, most=1000)
    shares = SHARES if trials == 1 else (*SHARES[:4], SHARES[4] - FINAL, FINAL)
    return {
        "delta": 0.0,
        "dimension": whole("dimension", dimension, least=1, most=MOST_DIMENSIONS),
        "depth": whole("depth", depth, least=1, most=MOST_DEPTH),
        "swaps": whole("swaps", _or(stated["swaps"], min(k, 20)), least=1, most=10_000),
        "trials": trials,
        "picked": whole("picked", _or(stated["picked"], stated["items_each"]), least=1, most=items),
        "shares": _checked_shares(_or(stated["shares"], shares), trials),
    }


def _tree(stated: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "delta": probability("delta", _or(stated["delta"], DELTA)),
        "depth": whole("depth", _or(stated["depth"], DEPTH), least=1, most=MOST_DEPTH),
        "lloyd": whole("lloyd", _or(stated["lloyd"], LLOYD), least=0, most=100),
    }


def _factors(stated: Mapping[str, Any]) -> dict[str, Any]:
    observed = _or(stated["zeros_observed"], False)
    if type(observed) is not bool:
        raise InvalidParameter("zeros_observed must be True (counts, clicks) or False (ratings).")
    weight = None if stated["most_weight"] is None else positive("most_weight", stated["most_weight"])
    if weight is not None and weight > 1.0:
        raise InvalidParameter("most_weight is a part of the total weight: above 0, at most 1.")
    return {
        "rank": whole("rank", _or(stated["rank"], RANK), least=1, most=1000),
        "ridge": positive("ridge", _or(stated["ridge"], RIDGE)),
        "regulariser": member("regulariser", Regulariser, _or(stated["regulariser"], Regulariser.WEIGHTED)),
        "zeros_observed": observed,
        "most_weight": weight,
    }


def _checked_shares(shares: object, trials: int) -> tuple[float, ...]:
    if not isinstance(shares, (tuple, list)) or len(shares) != len(SHARES):
        raise InvalidParameter(
            f"shares are {len(SHARES)} parts of epsilon: candidates, swaps, counts, selection, values, final."
        )
    *used, final = shares
    checked = (
        *(positive("a share", share) for share in used),
        0.0 if final in (0, 0.0) else positive("a share", final),
    )
    if not abs(math.fsum(checked) - 1.0) <= _SUM:
        raise InvalidParameter("the shares of epsilon must add up to 1.")
    if (checked[-1] > 0.0) != (trials > 1):
        raise InvalidParameter("the last share pays for choosing among several trials: above 0 for these, else 0.")
    return checked


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _require_bounds(terms: Mapping[str, Any]) -> None:
    """Raises InvalidParameter for bounds that turn every row into 0, and for values that no reply can carry."""
    if not LEAST_VALUE <= terms["value_bound"] <= MOST_VALUE:
        raise InvalidParameter(
            f"value_bound must be from {LEAST_VALUE:.3g} to {MOST_VALUE:.3g}: values are sent as 32-bit floats. Scale them."
        )
    l1, squares = _norms(terms)
    if l1 < 1 or squares < 1:
        raise InvalidParameter(
            f"l1_bound and l2_bound must be at least value_bound / {STEPS}: below that every row becomes 0."
        )


def _require_grid(terms: Mapping[str, Any], items: int, users: int, epsilon: float) -> None:
    """Raises InvalidParameter for noise that a grid cannot draw. A user's steps share epsilon; each trial has its part."""
    if users > MOST_GRID_USERS:
        raise InvalidParameter(f"'grid' is for at most {MOST_GRID_USERS:,} users.")
    shares = [Fraction(share) for share in terms["shares"]]
    each = Fraction(epsilon) / sum(shares) / terms["trials"]
    candidates, _, count, select, values, _ = (each * share for share in shares)
    if terms["picked"] >= items:  # nothing is selected
        values += select
    row = min(_norms(terms)[0], terms["picked"] * STEPS)
    _require_scales(terms["depth"] / candidates, 1 / count, row / values)


def _require_tree(terms: Mapping[str, Any], epsilon: float) -> None:
    """Raises InvalidParameter for rows too long for exact products, and for noise that a tree cannot draw."""
    squares = _norms(terms)[1]
    if squares > _LONGEST:
        raise InvalidParameter(
            "the L2 bound of a row is above 2^24 steps of a value, and products would not be exact: give a lower l2_bound."
        )
    rho = Fraction(rho_for(epsilon_within(epsilon, terms["delta"]), terms["delta"]))
    tree = rho / 2 if terms["lloyd"] else rho
    variances = [(terms["depth"] + 1) / (2 * _COUNTS * tree), squares / (2 * (1 - _COUNTS) * tree)]
    if terms["lloyd"]:
        pair = math.isqrt(squares) ** 2 + squares
        variances.append(pair * terms["lloyd"] / (2 * (rho - tree)))
    _require_scales(*(Fraction(math.isqrt(math.floor(variance)) + 1) for variance in variances))


def _require_sizes(k: int, each: int, items: int, contributors: int) -> None:
    """Raises InvalidParameter for replies of ``k`` prototypes of ``each`` numbers that cannot be kept, or not combined."""
    reply = 4 * k * (each + 1)
    if reply > MOST_KEPT:
        raise InvalidParameter(
            f"a reply of k = {k} prototypes would have {reply:,} bytes, and {MOST_KEPT:,} are the most that is kept and sent: "
            "lower k, or picked."
        )
    cells = k * items * contributors
    if cells > MOST_CELLS:
        raise InvalidParameter(
            f"the prototypes of {contributors} entities would be a table of {cells:,} cells (k x items for each), and "
            f"{MOST_CELLS:,} are the most that a coordinator combines: lower k, or take fewer items."
        )


def _norms(terms: Mapping[str, Any]) -> tuple[int, int]:
    """The largest L1 norm of a row, and its largest squared L2 norm, in steps of value_bound / 2^16."""
    step = Fraction(terms["value_bound"]) / STEPS
    l1, squares = terms["items_each"] * STEPS, None
    if terms["l1_bound"] is not None:
        l1 = min(l1, math.floor(Fraction(terms["l1_bound"]) / step))
    if terms["l2_bound"] is not None:
        squares = math.floor((Fraction(terms["l2_bound"]) / step) ** 2)
    return l1, l1 * STEPS if squares is None else min(l1 * STEPS, squares)


def _require_scales(*scales: Fraction) -> None:
    if max(scales) > _WIDEST:
        raise InvalidParameter("the noise would be wider than what can be drawn: raise epsilon, or lower the bounds.")
