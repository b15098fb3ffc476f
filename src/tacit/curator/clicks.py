"""Click counts with central noise, released by a trusted aggregator.

With secure aggregation, devices would send shares of their bits and nobody would see more than the noisy sum. Here one party sees
the bits, adds them up, adds noise and forgets them. The guarantee lists this trust as an assumption. The error is far smaller than
with randomised bits (`tacit.server.clicks`): at epsilon 1, it is 1.4 clicks instead of 96 among 10,000 impressions.

These counts cannot be used to charge per click: that needs the exact count of each listing, which the noise hides.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms import SYSTEM_NOISE, BoundedCounts, Noise
from tacit.mechanisms.sums import NOWHERE

TRUSTED = "an aggregator that sees the clicks and forgets them, where secure aggregation would stand"
_NUMBERS = (int, Real, np.bool_)


class ClickCounts(NamedTuple):
    """The noisy number of clicks on each item: a whole number, possibly negative. ``sd`` is the noise's standard deviation."""

    items: tuple[str, ...]
    counts: NDArray[np.int64]
    sd: float

    def of(self, item: str) -> int:
        """The noisy number of clicks on one item."""
        return int(self.counts[self.items.index(item)])


class ClickSum:
    """Click counts per item plus two-sided geometric noise of scale c / epsilon, with at most c reports of each user.

    ``items`` is a public list. Every item gets a count, clicked or not: a missing count would reveal that nobody clicked. Only a
    user's first c reports in a release count; a device must keep to that limit itself where no aggregator sees its reports.
    Proof: docs/proofs/bounded-counts.md.
    ``epsilon`` is in nats, for all reports of one user in one release.
    """

    def __init__(self, items: Sequence[str], epsilon: float = 1.0, reports_each: int = 1) -> None:
        self.items = tuple(items)
        if not self.items or len(set(self.items)) < len(self.items):
            raise InvalidParameter("`items` must be a list of at least one item, without repeats.")
        self.mechanism = BoundedCounts(len(self.items), epsilon, reports_each)

    @property
    def epsilon(self) -> float:
        """What one release costs a user, in nats of privacy loss."""
        return self.mechanism.epsilon

    @property
    def reports_each(self) -> int:
        """How many reports of one user count at most."""
        return self.mechanism.reports_each

    @property
    def scale(self) -> Fraction:
        """The scale of the Laplace noise on each count, in clicks."""
        return self.mechanism.noise_law.width

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises each user, added or removed with all their reports, if you trust this aggregator."""
        return self.mechanism.guarantee.assuming(TRUSTED)

    @property
    def sd(self) -> float:
        """The standard deviation of the noise on one count, in clicks."""
        return self.mechanism.noise_law.sd

    def sums(self, reports: Iterable[tuple[str, str, int]]) -> NDArray[np.int64]:
        """The exact sums of (user, item, bit), over each user's first c reports. Private: they must not leave the aggregator."""
        return self.mechanism.totals(self._clicks_by_position(reports))

    def pmf(self, released: int, total: int) -> float:
        """The probability that a sum of ``total`` clicks is released as ``released``."""
        return float(self.mechanism.noise_law.pmf(released, total))

    def release(self, reports: Iterable[tuple[str, str, int]], noise: Noise = SYSTEM_NOISE) -> Release[ClickCounts]:
        """The noisy counts. Negative counts stay: cutting them off would raise every sum of small counts."""
        release = self.mechanism.release(self._clicks_by_position(reports), noise)
        return release.map(lambda counts: ClickCounts(self.items, counts.steps, self.sd)).assuming(TRUSTED)

    def _clicks_by_position(self, reports: Iterable[tuple[str, str, int]]) -> Iterator[tuple[str, int]]:
        """Each report's user and the position of the clicked item.

        A malformed report counts as a report without a click. Raising an error instead would reveal something about it.
        """
        positions = {item: position for position, item in enumerate(self.items)}
        for report in reports:
            user, item, bit = _fields_of(report)
            clicked = isinstance(item, str) and isinstance(bit, _NUMBERS) and bool(bit == 1)
            yield user, positions.get(item, NOWHERE) if clicked else NOWHERE


def _fields_of(report: Any) -> tuple[Any, Any, Any]:
    try:
        user, item, bit = report
    except (TypeError, ValueError):
        return None, None, 0
    return user, item, bit
