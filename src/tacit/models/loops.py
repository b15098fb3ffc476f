"""The server's inner loops: compiled where numba is installed (extra `fast`), plain numpy otherwise, with the same results.

The one exception: `exact` sums weighted gains in floats, in another order. Where two different classes gain exactly the same in
exact arithmetic, the last bit decides which comes first.
"""

from importlib.util import find_spec
from types import ModuleType

from tacit.models import loops_plain


def chosen(compiled: bool | None = None) -> ModuleType:
    """The loops to use: compiled if numba is there, unless told otherwise. Compiling takes seconds, once per machine."""
    if compiled is None:
        compiled = find_spec("numba") is not None
    if not compiled:
        return loops_plain
    from tacit.models import loops_compiled

    return loops_compiled
