"""Losses of all swaps of one centre for one candidate: compiled where numba is installed, plain numpy otherwise. Equal results.

Coordinates are whole numbers held as floats; squared distances, and sums of at most 2^34 each over a block of users, are whole
numbers below 2^53. Floats add them exactly, in any order, so that no row bends what another one adds.
"""

from importlib.util import find_spec
from types import ModuleType

from tacit.models import swap_loops_plain


def chosen(compiled: bool | None = None) -> ModuleType:
    """The loops to use: compiled if numba is there, unless told otherwise."""
    if compiled is None:
        compiled = find_spec("numba") is not None
    if not compiled:
        return swap_loops_plain
    from tacit.models import swap_loops_compiled

    return swap_loops_compiled
