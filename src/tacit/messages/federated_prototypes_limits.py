"""Which prototypes can be drawn, sent and combined: from public numbers, so that a manifest is refused before anybody is asked.

Mechanisms refuse what they cannot draw, but at the entities, once a run is open. Messages do not reach mechanisms: their limits are
stated here a second time, and a test holds the two against each other.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tacit.errors import InvalidParameter
from tacit.guarantees.zcdp import epsilon_within, rho_for

STEPS = 1 << 16  # in value_bound
MOST_DEPTH = 16
MOST_DIMENSIONS = 1 << 14
MOST_GRID_USERS = 1 << 28
MOST_K_GRID, MOST_K_TREE = 1 << 16, 1 << 14
# Values travel as 32-bit floats: none may be infinite, and a step of them is a normal one.
LEAST_VALUE, MOST_VALUE = 2.0**-110, 2.0**127
MOST_KEPT = 12 * 1024 * 1024  # bytes of one reply: an entity's ledger keeps every release
MOST_CELLS = 1 << 26  # of the coordinator's table of all entities' prototypes, half a gigabyte

_LONGEST = 1 << 49  # squared steps of a row of a tree
_WIDEST = Fraction(2 * 2**55, 23)  # scale of discrete Laplace noise, in steps
_COUNTS = Fraction(1, 5)  # of the rho of a tree, for its counts


def require_bounds(found: Mapping[str, Any]) -> None:
    """Refuses bounds of a row by which every row would be 0, and values that no reply can carry."""
    if not LEAST_VALUE <= found["value_bound"] <= MOST_VALUE:
        raise InvalidParameter(
            f"value_bound must be from {LEAST_VALUE:.3g} to {MOST_VALUE:.3g}: values are sent as 32-bit floats. Scale them."
        )
    l1, squares = _steps(found)
    if l1 < 1 or squares < 1:
        raise InvalidParameter(
            f"l1_bound and l2_bound must be at least value_bound / {STEPS}: below that every row becomes 0."
        )


def require_grid(found: Mapping[str, Any], items: int, users: int, epsilon: float) -> None:
    """Refuses noise that a grid cannot draw. A user's steps share epsilon; each trial has its part."""
    if users > MOST_GRID_USERS:
        raise InvalidParameter(f"'grid' is for at most {MOST_GRID_USERS:,} users.")
    shares = [Fraction(one) for one in found["shares"]]
    each = Fraction(epsilon) / sum(shares) / found["trials"]
    candidates, _, count, select, values, _ = (each * one for one in shares)
    if found["picked"] >= items:  # nothing is selected
        values += select
    row = min(_steps(found)[0], found["picked"] * STEPS)
    _require_scales(found["depth"] / candidates, 1 / count, row / values)


def require_tree(found: Mapping[str, Any], epsilon: float) -> None:
    """Refuses rows too long for exact products, and noise that a tree cannot draw."""
    squares = _steps(found)[1]
    if squares > _LONGEST:
        raise InvalidParameter(
            "the L2 bound of a row is above 2^24 steps of a value, and products would not be exact: give a lower l2_bound."
        )
    rho = Fraction(rho_for(epsilon_within(epsilon, found["delta"]), found["delta"]))
    tree = rho / 2 if found["lloyd"] else rho
    variances = [(found["depth"] + 1) / (2 * _COUNTS * tree), squares / (2 * (1 - _COUNTS) * tree)]
    if found["lloyd"]:
        pair = math.isqrt(squares) ** 2 + squares
        variances.append(pair * found["lloyd"] / (2 * (rho - tree)))
    _require_scales(*(Fraction(math.isqrt(math.floor(one)) + 1) for one in variances))


def require_sizes(k: int, each: int, items: int, contributors: int) -> None:
    """Refuses replies of ``k`` prototypes of ``each`` numbers that cannot be kept, or cannot be combined."""
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


def _steps(found: Mapping[str, Any]) -> tuple[int, int]:
    """The L1 norm of a row, and its squared L2 norm, at most, in steps of value_bound / 2^16."""
    step = Fraction(found["value_bound"]) / STEPS
    l1, squares = found["items_each"] * STEPS, None
    if found["l1_bound"] is not None:
        l1 = min(l1, math.floor(Fraction(found["l1_bound"]) / step))
    if found["l2_bound"] is not None:
        squares = math.floor((Fraction(found["l2_bound"]) / step) ** 2)
    return l1, l1 * STEPS if squares is None else min(l1 * STEPS, squares)


def _require_scales(*scales: Fraction) -> None:
    if max(scales) > _WIDEST:
        raise InvalidParameter("the noise would be wider than what can be drawn: raise epsilon, or lower the bounds.")
