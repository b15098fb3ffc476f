"""Waiting for whoever charged first, so that of two who release the same id at once only one draws.

If both drew, and whoever is ready first were kept, what is kept would lean towards noise that is quickly drawn: it would not
have the mechanism's law (docs/proofs/ledger.md, Once).
"""

from collections.abc import Callable

from tacit.ledger.clock import SECOND

LONGEST = 2 * SECOND  # after a charge: public, and far longer than a device takes to draw and to keep
_STEP = SECOND // 100

Pause = Callable[[float], None]  # for so many seconds


def time_left(charged: int, now: int) -> int:
    """How long the maker of a charge may still be drawing, in microseconds: whatever the clock says, never above LONGEST."""
    return max(0, min(LONGEST, charged + LONGEST - now))


def awaited(find: Callable[[], bytes | None], left: int, pause: Pause) -> bytes | None:
    """What ``find`` finds within the time that is left; None where it finds nothing."""
    found = None
    while found is None and left > 0:
        step = min(_STEP, left)
        pause(step / SECOND)
        left -= step  # by what was waited, not by a clock: one that stands still would hold us for ever
        found = find()
    return found
