"""The loops over pairs of items: compiled by numba (extra `fast`), or in numpy with sparse or dense products."""

from enum import StrEnum
from importlib.util import find_spec
from types import ModuleType

from tacit.checks import member
from tacit.models.cross_domain.centred import Centred

_MOST_DENSE = 5000  # items: tables of 5,000 x 5,000 take 600 MB
_DENSE_GAIN = 300.0  # multiply-adds of a dense product in the time of one step of a sparse one


class Way(StrEnum):
    """How pairs are summed. All give the same edges; cosines differ in the last bits."""

    AUTO = "auto"
    COMPILED = "compiled"
    DENSE = "dense"
    PLAIN = "plain"


def chosen(way: Way | str, table: Centred) -> tuple[ModuleType, bool]:
    """The loops, and whether their products are dense. Compiled where numba is installed, whatever the table looks like."""
    from tacit.models.cross_domain import similarity_loops_plain

    way = member("way", Way, way)
    if way is Way.COMPILED or (way is Way.AUTO and find_spec("numba") is not None):
        from tacit.models.cross_domain import similarity_loops_compiled

        return similarity_loops_compiled, False
    if way is Way.AUTO:
        return similarity_loops_plain, _dense_pays(table)
    return similarity_loops_plain, way is Way.DENSE


def _dense_pays(table: Centred) -> bool:
    """Sparse products take sum m^2 steps over users of m ratings, dense ones users * items^2 much shorter steps."""
    profile = (table.starts[1:] - table.starts[:-1]).astype(float)
    return table.n_items <= _MOST_DENSE and table.n_users * table.n_items**2 <= _DENSE_GAIN * float(profile @ profile)
