"""Sums of inverse-propensity terms with central noise: estimates of other ways to choose, among those who were offered a choice.

Each device forms its terms itself (tacit.models.propensity). They depend on private scores and on clicks, so that only their sum
leaves, with Laplace noise for the largest change one user can make: the public bound on a term times her reports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.checks import positive, whole
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
    epsilon: float = 1.0
    reports_each: int = 1

    def __post_init__(self) -> None:
        positive("most_weight", self.most_weight)
        whole("reports_each", self.reports_each, least=1)
        _ = self.mechanism

    @property
    def mechanism(self) -> LaplaceSum:
        return LaplaceSum(1, self.most_weight * self.reports_each, self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        return self.mechanism.guarantee.assuming(TRUSTED)

    @property
    def sd(self) -> float:
        """Of the noise: sqrt 2 times bound over epsilon, but for the fineness of the grid."""
        return float(np.sqrt(2.0)) * self.most_weight * self.reports_each / self.epsilon

    def release(self, terms: Mapping[str, Sequence[float]], noise: Noise = SYSTEM_NOISE) -> Release[float]:
        """The noisy sum over users of their terms; of each user the first ``reports_each``, each cut to the bound."""
        if not isinstance(terms, Mapping):
            raise InvalidParameter("terms are given by user: her terms in the order in which they arose.")
        rows = np.array([[self._row(own)] for own in terms.values()]).reshape(-1, 1)
        mechanism = self.mechanism
        noisy = mechanism.release(rows, noise).value.to_floats()
        return released(float(noisy[0]), self.guarantee, noise)

    def _row(self, own: Sequence[float]) -> float:
        kept = np.nan_to_num(np.asarray(own[: self.reports_each], dtype=np.float64), nan=0.0)
        return float(np.clip(kept, 0.0, self.most_weight).sum())
