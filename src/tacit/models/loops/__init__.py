"""Inner loops in two forms: compiled by numba (extra `fast`), or plain numpy. Both give the same results.

There is one exception. Greedy choice by weights sums gains in floats, and the two forms add in different orders. If two
classes gain exactly the same in exact arithmetic, the last bit decides which of them comes first.
"""

from importlib.util import find_spec
from types import ModuleType

from tacit.models.loops import plain


def choose(compiled: bool | None = None) -> ModuleType:
    """The loops to run: compiled if numba is installed, unless ``compiled`` says otherwise.

    Compiling takes seconds, once per machine.
    """
    if not use_compiled(compiled):
        return plain
    from tacit.models.loops import compiled as compiled_loops

    return compiled_loops


def use_compiled(compiled: bool | None = None) -> bool:
    """Whether to run compiled loops: as asked, or if numba is installed. Every model with two forms of loops asks this."""
    return find_spec("numba") is not None if compiled is None else compiled
