"""Sums of inverse-propensity terms with central noise: estimates of other ways to choose, among those who were offered a choice.

Each device forms its terms itself (tacit.models.propensity). They depend on private scores and on clicks, so that only their sum
leaves, with Laplace noise for the largest change one user can make: the public bound on a term times her reports. What her terms
add up to is one row of a Laplace sum (docs/proofs/laplace-sum.md), which cuts it to that bound once more, in whole numbers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep, positive, whole
from tacit.curator.clicks import TRUSTED
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms import SYSTEM_NOISE, LaplaceSum, Noise
from tacit.mechanisms.drawn import released


@dataclass(frozen=True)
class TermSum:
    """The sum of terms, each within [0, ``most_weight``], of at most ``reports_each`` for each user.

    Divide it by the number of impressions, which is exact and public. Without bias only for targets that choose among the offered
    candidates: what a target would have chosen outside of them counts as no click.
    """

    most_weight: float
    epsilon: float = 1.0  # nats
    reports_each: int = 1

    def __post_init__(self) -> None:
        keep(
            self,
            most_weight=positive("most_weight", self.most_weight),
            reports_each=whole("reports_each", self.reports_each, least=1, most=10**6),
        )
        _ = self.mechanism

    @property
    def mechanism(self) -> LaplaceSum:
        """The Laplace sum behind it: one user moves the total by at most ``most_weight`` times ``reports_each``."""
        return LaplaceSum(1, self.most_weight * self.reports_each, self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises each user, added or removed with all her reports, if this curator is trusted with them."""
        return self.mechanism.guarantee.assuming(TRUSTED)

    @property
    def sd(self) -> float:
        """Of the noise: sqrt 2 times bound over epsilon, but for the fineness of the grid."""
        return float(np.sqrt(2.0)) * self.most_weight * self.reports_each / self.epsilon

    def release(self, terms: Mapping[str, Sequence[float]], noise: Noise = SYSTEM_NOISE) -> Release[float]:
        """The noisy sum over users of their terms; of each user the first ``reports_each``, each cut to the bound."""
        if not isinstance(terms, Mapping):
            raise InvalidParameter("terms are given by user: her terms in the order in which they arose.")
        noisy = self.mechanism.release(self._rows(terms), noise).value.to_floats()
        return released(float(noisy[0]), self.guarantee, noise)

    def _rows(self, terms: Mapping[str, Sequence[float]]) -> NDArray[np.float64]:
        """One row for each user, which follows from her own terms alone."""
        return np.array([[self._row(own)] for own in terms.values()], dtype=np.float64).reshape(-1, 1)

    def _row(self, own: object) -> float:
        # Terms that are no list, or no numbers, count as 0: to refuse them would be an answer about her.
        listed = own.ravel().tolist() if isinstance(own, np.ndarray) else own
        if not isinstance(listed, Sequence) or isinstance(listed, str | bytes):
            return 0.0
        return math.fsum(self._cut(one) for one in islice(listed, self.reports_each))

    def _cut(self, one: object) -> float:
        """A term within its bounds; below 0, or not a number, is 0. Compared before it is made a float, which might overflow."""
        known = isinstance(one, Real) and one == one
        return float(min(max(one, 0.0), self.most_weight)) if known else 0.0  # type: ignore[call-overload]
