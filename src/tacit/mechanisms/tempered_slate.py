"""Tempered slates: P(Y) proportional to e^(theta sum of scores in Y) det S_Y, scores from private votes, a public similarity S.

Proof: docs/proofs/tempered-slate.md.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import finite, keep, member, positive, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, ONE_USER_REPLACED, Guarantee, Loss, LossKind, Relation, Release, pure
from tacit.guarantees.rounding import down, exactly
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.prepared import Prepared
from tacit.mechanisms.samplers.float_coins import FLOATS, NoiseCoins
from tacit.mechanisms.scores import MOST_STEPS, Scores
from tacit.mechanisms.votes import capped_totals
from tacit.models.dpp.kernels import checked_features, checked_size, require_rank
from tacit.models.dpp.laws import law_of_logs, subsets
from tacit.models.dpp.tempered import MOST_NATS, TemperedSampler, along_axes, features_of

MOST_OUTCOMES = 1 << 20
_SOUND = 1e4  # condition number of features up to which 40 nats can be drawn: Known limits of the proof page


@dataclass(frozen=True, eq=False)
class TemperedSlate:
    """Selects an unordered slate of ``k`` items, by votes that are private and ``features`` (items x d) that are public.

    A score is the sum of an item's votes, each cut to [0, 1] and rounded down to ``steps``, cut to the public range [``low``,
    ``high``]. Of each user at most ``items_each`` votes count, if that is given. Pure epsilon; the loss has range epsilon.
    """

    name: ClassVar[str] = "tempered-slate"
    features: NDArray[np.float64] = field(repr=False)
    k: int
    epsilon: float  # nats
    low: float = 0.0
    high: float = math.nan  # has to be given
    items_each: int | None = None
    relation: Relation = Relation.ADD_REMOVE
    steps: int = 1
    most_nats: float = MOST_NATS  # of theta (high - low); a kernel may allow less
    _rank: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        keep(
            self,
            epsilon=positive("epsilon", self.epsilon),
            features=kept(_scaled(checked_features(self.features))),
            relation=member("relation", Relation, self.relation),
            steps=whole("steps", self.steps, least=1, most=MOST_STEPS),
            most_nats=min(MOST_NATS, positive("most_nats", self.most_nats)),
        )
        keep(self, k=checked_size(self.k, self.items))
        if self.items_each is not None:
            keep(self, items_each=whole("items_each", self.items_each, least=1))
        self._require_range()
        sizes = np.linalg.svd(np.linalg.qr(self.features, mode="r"), compute_uv=False)
        rank = int(np.count_nonzero(sizes > self._negligible * sizes[0]))
        keep(self, _rank=rank if self.k <= rank else require_rank(self.features, self.k))
        if (
            self._rank < self.features.shape[1]
        ):  # by public features alone: votes must not decide which directions count
            keep(self, features=kept(along_axes(self.features, self._rank)))
        if self.k < self.items:  # else there is but one slate, and nothing to be drawn
            self._require_nats(float(sizes[0] / sizes[self._rank - 1]))

    @classmethod
    def capped(cls, features: NDArray[np.float64], k: int, epsilon: float, **settings: Any) -> "TemperedSlate":
        """As asked for, at ``epsilon`` or at the largest epsilon that the public range allows, whichever is less.

        ``epsilon`` is in nats.
        """
        least = cls(features, k, min(positive("epsilon", epsilon), math.ulp(0.0)), **settings)
        keep(least, epsilon=min(float(epsilon), least.largest_epsilon))  # all other checks are done, and take a while
        return least

    @classmethod
    def from_kernel(
        cls, kernel: ArrayLike, k: int, epsilon: float, *, capped: bool = False, **settings: Any
    ) -> "TemperedSlate":
        """The same for a public similarity S itself; up to as many nats as floats can tell of it, at most 40.

        ``capped=True`` caps epsilon as ``capped`` does.
        """
        features, nats = features_of(kernel)
        return (cls.capped if capped else cls)(features, k, epsilon, most_nats=nats, **settings)

    @property
    def items(self) -> int:
        """How many items there are to choose from."""
        return len(self.features)

    @property
    def votes_each(self) -> int:
        """W: the most by which one user's votes, all of at most 1, can raise the sum of the scores of a slate."""
        return self.k if self.items_each is None else min(self.k, self.items_each)

    @cached_property
    def theta(self) -> float:
        """The weight of one vote in nats, rounded down: epsilon / W, or half of it where a user is replaced."""
        return down(Fraction(self.epsilon) / self._moves)

    @property
    def largest_epsilon(self) -> float:
        """The epsilon at which theta (high - low) is as large as it may be: a public number."""
        return down(Fraction(self.most_nats) * self._moves / (Fraction(self.high) - Fraction(self.low)))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one slate promises: epsilon, in nats, for one user's rows; 0 where the slate has all items."""
        protects = ONE_USER if self.relation is Relation.ADD_REMOVE else ONE_USER_REPLACED
        if self.k == self.items:  # there is but one slate
            return pure(0.0, protects, proof=self.name)
        # log-ratios lie in a window of theta W (add or remove) or 2 theta W (replace): at most epsilon either way
        return Guarantee(
            self.epsilon,
            protects,
            assumes=frozenset({FLOATS}),
            proof=self.name,
            loss=Loss(LossKind.BOUNDED_RANGE, self.epsilon),
        )

    def outcomes(self) -> list[tuple[int, ...]]:
        """All slates, in the order of ``pmf``."""
        if math.comb(self.items, self.k) > MOST_OUTCOMES:
            raise InvalidParameter("so many slates are not listed; take fewer items.")
        return subsets(self.items, self.k)

    def pmf(self, rows: Scores) -> NDArray[np.float64]:
        """The probability of every slate; for few items."""
        slates = np.array(self.outcomes(), dtype=np.int64)
        # det S_Y by the singular values of F_Y: what is 0 stays 0, whatever the votes
        values = np.linalg.svd(self.features[slates], compute_uv=False)[:, : self.k]
        full = values[:, -1] > self._negligible * np.linalg.norm(self.features, 2)
        log_weight = np.full(len(slates), -math.inf)
        log_weight[full] = 2.0 * np.log(values[full]).sum(axis=1) + self._log_weights(rows)[slates[full]].sum(axis=1)
        return law_of_logs(log_weight)

    def prepare(self, rows: Scores) -> Prepared[NDArray[np.int64]]:
        """The set-up for these votes, done once for any number of slates. Private."""
        log_weights = self._log_weights(rows)
        if self.k == self.items:
            return Prepared(self.items, self.k, self.guarantee, lambda count, _: np.tile(np.arange(self.k), (count, 1)))
        sampler = TemperedSampler(self.features, log_weights, self.k, rank=self._rank)
        return Prepared(
            self.items, self.k, self.guarantee, lambda count, noise: sampler.draw_many(count, NoiseCoins(noise))
        )

    def release(self, rows: Scores, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One slate, items in ascending order. ``rows``: users x items, dense or sparse; what is no number is no vote."""
        return self.prepare(rows).release(noise)

    def _log_weights(self, rows: Scores) -> NDArray[np.float64]:
        """theta (score - low), from 0 to ``most_nats``."""
        totals = capped_totals(rows, self.items, self.steps, self.items_each)
        above: NDArray[np.float64] = np.clip(totals / self.steps, self.low, self.high) - self.low
        return self.theta * above

    @property
    def _moves(self) -> int:
        return self.votes_each * (1 if self.relation is Relation.ADD_REMOVE else 2)

    @property
    def _negligible(self) -> float:
        return float(max(self.features.shape)) * 2.0**-52  # a singular value so far below the largest is rounding

    def _require_range(self) -> None:
        try:
            keep(self, low=finite("low", self.low), high=finite("high", self.high))
        except InvalidParameter as problem:
            raise InvalidParameter(
                f"{problem.args[0]} Scores need a public range, such as [0, the votes beyond which more make no difference]; "
                "it must not be taken from the votes."
            ) from None
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise InvalidParameter(f"scores need low < high and a finite range, not [{self.low!r}, {self.high!r}].")

    def _require_nats(self, condition: float) -> None:
        """Public parameters only: what passes here passes for every table of votes."""
        allowed = MOST_NATS - 2.0 * math.log(max(1.0, condition / _SOUND))
        if self.most_nats > allowed:
            other = f", or take most_nats = {math.floor(allowed)}" if allowed >= 1.0 else ""
            raise InvalidParameter(
                "the features are nearly dependent, and floats cannot tell which slates are possible: leave out those that nearly "
                f"follow from others{other}."
            )
        if self.epsilon > self.largest_epsilon:
            raise InvalidParameter(
                f"theta (high - low) may be at most {self.most_nats:g}: beyond it floats cannot draw the slates of every table "
                f"of votes. Over this range epsilon may be at most {exactly(self.largest_epsilon)}: ask for less, narrow "
                "the range, or use TemperedSlate.capped."
            )


def kept(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """A copy that nobody can write to; one that is already such stays as it is."""
    if features.base is None and not features.flags.writeable:
        return features
    own = np.array(features)
    own.flags.writeable = False
    return own


def _scaled(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """By a power of 2, so that the largest number is about 1: tiny features could vanish beside votes, and that would show."""
    exponent = int(np.frexp(np.abs(features).max(initial=0.0))[1])
    return features if exponent == 0 else np.ldexp(features, -exponent)
