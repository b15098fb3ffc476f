"""Slates by public features: tempered slates of private votes, and feature slates of private vectors.

Tempered: P(Y) is proportional to e^(theta sum of scores in Y) det S_Y, with scores from private votes and a public similarity S
(docs/proofs/tempered-slate.md). Feature: the k-DPP of sigma I + sum of c_u c_u^T with c_u = F z_u, F public, z_u a user's private
vector of few numbers (docs/proofs/feature-slate.md).
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, keep, member, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import Guarantee, Loss, LossKind, Relation, Release, pure
from tacit.guarantees.arithmetic import down, exactly, sqrt_down
from tacit.guarantees.guarantee import MECHANISM, finite_loss, one_user
from tacit.mechanisms.inputs import real_table, whole_sums
from tacit.mechanisms.noise import FLOATS, SYSTEM_NOISE, Noise
from tacit.mechanisms.scores import MOST_STEPS, Scores
from tacit.mechanisms.slates import MOST_USERS, STEPS, PreparedSlates, draw_in_floats, sigma_for, whole_rows
from tacit.models.dpp.laws import checked_features, checked_size, k_dpp_law, law_of_logs, require_rank, subsets
from tacit.models.dpp.samplers import SplitSampler
from tacit.models.dpp.tempered import MOST_NATS, TemperedSampler, along_axes, features_of

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = ArrayLike | sparse.csr_array

MOST_OUTCOMES = 1 << 20
_USERS = 1 << 14  # of a table at a time
_MARGIN = 2.0**-40  # for the rounding of Q^T Q itself
_SOUND = 1e4  # condition number of features up to which 40 nats can be drawn: see Known limits on the proof page


@dataclass(frozen=True, eq=False)
class TemperedSlate:
    """Selects an unordered slate of ``k`` items by private votes and public ``features`` (items x d).

    A score is the sum of an item's votes, each cut to [0, 1] and rounded down to ``steps``; the sum is cut to the public range
    [``low``, ``high``]. At most ``items_each`` votes of each user count, if you give it. Pure epsilon; the loss has range epsilon.
    """

    name: ClassVar[str] = "tempered-slate"
    features: NDArray[np.float64] = field(repr=False)
    k: int
    epsilon: float  # nats
    low: float = 0.0
    high: float = math.nan  # required
    items_each: int | None = None
    relation: Relation = Relation.ADD_REMOVE
    steps: int = 1
    most_nats: float = MOST_NATS  # of theta (high - low); a kernel may allow less
    _rank: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        keep(
            self,
            epsilon=positive("epsilon", self.epsilon),
            features=read_only(_scale_to_one(checked_features(self.features))),
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
        if self._rank < self.features.shape[1]:  # by public features only: votes must not decide which directions count
            keep(self, features=read_only(along_axes(self.features, self._rank)))
        if self.k < self.items:  # else there is only one slate
            self._require_nats(float(sizes[0] / sizes[self._rank - 1]))

    @classmethod
    def capped(cls, features: NDArray[np.float64], k: int, epsilon: float, **settings: Any) -> "TemperedSlate":
        """A slate at ``epsilon``, or at the largest epsilon that the public range allows if that is less.

        ``epsilon`` is in nats.
        """
        least = cls(features, k, min(positive("epsilon", epsilon), math.ulp(0.0)), **settings)
        keep(least, epsilon=min(float(epsilon), least.largest_epsilon))  # all other checks are done, and are slow
        return least

    @classmethod
    def from_kernel(
        cls, kernel: ArrayLike, k: int, epsilon: float, *, capped: bool = False, **settings: Any
    ) -> "TemperedSlate":
        """A slate from a public similarity S itself, with as many nats as floats can resolve in it, at most 40.

        ``capped=True`` caps epsilon as ``capped`` does.
        """
        features, nats = features_of(kernel)
        return (cls.capped if capped else cls)(features, k, epsilon, most_nats=nats, **settings)

    @property
    def items(self) -> int:
        """The number of items to choose from."""
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
        """The epsilon at which theta (high - low) is as large as allowed: a public number."""
        return down(Fraction(self.most_nats) * self._moves / (Fraction(self.high) - Fraction(self.low)))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one slate promises: epsilon, in nats, for one user's rows; 0 where the slate has all items."""
        protects = one_user(self.relation)
        if self.k == self.items:  # there is only one slate
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
            raise InvalidParameter("there are too many slates to list: choose fewer items.")
        return subsets(self.items, self.k)

    def pmf(self, rows: Scores) -> NDArray[np.float64]:
        """The probability of every slate; for few items."""
        slates = np.array(self.outcomes(), dtype=np.int64)
        # det S_Y by the singular values of F_Y: a determinant of 0 stays 0 for all votes
        values = np.linalg.svd(self.features[slates], compute_uv=False)[:, : self.k]
        full = values[:, -1] > self._negligible * np.linalg.norm(self.features, 2)
        log_weight = np.full(len(slates), -math.inf)
        log_weight[full] = 2.0 * np.log(values[full]).sum(axis=1) + self._log_weights(rows)[slates[full]].sum(axis=1)
        return law_of_logs(log_weight)

    def prepare(self, rows: Scores) -> PreparedSlates[NDArray[np.int64]]:
        """The set-up for any number of slates of these votes. Private."""
        log_weights = self._log_weights(rows)
        if self.k == self.items:
            return PreparedSlates(
                self.items, self.k, self.guarantee, lambda count, _: np.tile(np.arange(self.k), (count, 1)), MECHANISM
            )
        draw = draw_in_floats(TemperedSampler(self.features, log_weights, self.k, rank=self._rank))
        return PreparedSlates(self.items, self.k, self.guarantee, draw, MECHANISM)

    def release(self, rows: Scores, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One slate, items in ascending order. ``rows``: users x items, dense or sparse; a bad vote counts as 0."""
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
                f"{problem.args[0]} Scores need a public range, such as [0, the most votes that make a difference]; do not "
                "compute it from the votes."
            ) from None
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise InvalidParameter(f"scores need low < high and a finite range, not [{self.low!r}, {self.high!r}].")

    def _require_nats(self, condition: float) -> None:
        """Checks public parameters only, so that no table of votes can fail later."""
        allowed = MOST_NATS - 2.0 * math.log(max(1.0, condition / _SOUND))
        if self.most_nats > allowed:
            other = f", or take most_nats = {math.floor(allowed)}" if allowed >= 1.0 else ""
            raise InvalidParameter(
                "the features are nearly dependent, and floats cannot tell which slates are possible: leave out features that "
                f"nearly follow from others{other}."
            )
        if self.epsilon > self.largest_epsilon:
            raise InvalidParameter(
                f"theta (high - low) must be at most {self.most_nats:g}: beyond it floats cannot draw slates for every table of "
                f"votes. Over this range epsilon must be at most {exactly(self.largest_epsilon)}: lower epsilon, narrow the "
                "range, or use TemperedSlate.capped."
            )


def capped_totals(rows: Scores, items: int, steps: int, items_each: int | None) -> NDArray[np.int64]:
    """The sum of all users' votes for every item, in whole steps; each vote is cut to [0, 1] and rounded down to 1 / ``steps``.

    The ``items_each`` largest votes of each user count, or all of them; the user's own record alone decides which. A vote that is
    not a finite number counts as 0: an error would reveal it.
    """
    table = real_table(rows, "votes", items)
    if table.shape[1] != items:
        raise InvalidInput(f"expected rows of {items} votes, one for each item.")
    share = np.clip(np.where(np.isfinite(table.data), table.data, 0.0), 0.0, 1.0)
    vote = np.floor(share * steps).astype(np.int64)
    if items_each is not None:
        user = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        order = np.lexsort((_tie_order(table.indices, vote, user, table.shape[0]), -vote, user))
        rank = np.arange(len(order)) - table.indptr[user[order]]
        vote[order[rank >= items_each]] = 0
    return whole_sums(vote, table.indices, items)


def _tie_order(
    item: NDArray[np.int32], vote: NDArray[np.int64], user: NDArray[np.int64], users: int
) -> NDArray[np.uint64]:
    """The order in which equal votes of a user count. It differs from record to record, so that no item is always first."""
    own = np.zeros(users, dtype=np.uint64)
    np.add.at(own, user, np.where(vote > 0, _mix(item.astype(np.uint64)), np.uint64(0)))
    return _mix(item.astype(np.uint64) ^ own[user])


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: not secret, but without a pattern."""
    words = (words + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def read_only(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """A read-only copy; an array that is read-only and owns its data is returned as it is."""
    if features.base is None and not features.flags.writeable:
        return features
    own = np.array(features)
    own.flags.writeable = False
    return own


def _scale_to_one(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scales by a power of 2 so that the largest value is about 1.

    Tiny features could otherwise be lost next to votes, which would be visible.
    """
    exponent = int(np.frexp(np.abs(features).max(initial=0.0))[1])
    return features if exponent == 0 else np.ldexp(features, -exponent)


@dataclass(frozen=True, eq=False)
class FeatureSlate:
    """Selects an unordered slate of ``k`` items. ``features`` (items x d) must be public, and not trained on these users.

    Each contribution F z_u is cut to a squared L2 norm of ``bound`` and rounded to a grid in the span of F. Pure epsilon.
    """

    name: ClassVar[str] = "feature-slate"
    features: Floats = field(repr=False)
    k: int
    epsilon: float  # nats
    bound: float = 1.0
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        keep(
            self,
            epsilon=positive("epsilon", self.epsilon),
            features=read_only(checked_features(self.features)),
            bound=positive("bound", self.bound),
            relation=member("relation", Relation, self.relation),
        )
        keep(self, k=checked_size(self.k, self.items))
        _ = self.sigma  # raises now what the first slate would raise

    @property
    def items(self) -> int:
        """The number of items to choose from."""
        return len(self.features)

    @cached_property
    def sigma(self) -> float:
        """The jitter, rounded up: bound / (e^epsilon - 1)."""
        return sigma_for(self.epsilon, self.bound)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one slate promises: epsilon, in nats, for one user's rows; 0 where the slate has all items."""
        protects = one_user(self.relation)
        if self.k == self.items:  # there is only one slate
            return pure(0.0, protects, proof=self.name)
        # replacing a user costs no more than adding one, but the range of the loss doubles
        reach = self.epsilon * (1 if self.relation is Relation.ADD_REMOVE else 2)
        return Guarantee(
            self.epsilon,
            protects,
            assumes=frozenset({FLOATS}),
            proof=self.name,
            loss=finite_loss(LossKind.BOUNDED_RANGE, reach),
        )

    def outcomes(self) -> list[tuple[int, ...]]:
        """All slates, in the order of ``pmf``."""
        if math.comb(self.items, self.k) > MOST_OUTCOMES:
            raise InvalidParameter("there are too many slates to list: choose fewer items.")
        return subsets(self.items, self.k)

    def pmf(self, rows: Rows) -> Floats:
        """The probability of every slate; for few items."""
        self.outcomes()
        half = self.contributions(rows)
        return k_dpp_law(half @ half.T + self.sigma * np.eye(self.items), self.k)

    def prepare(self, rows: Rows) -> PreparedSlates[NDArray[np.int64]]:
        """The set-up for any number of slates of these users. Private."""
        draw = draw_in_floats(SplitSampler(self.contributions(rows), self.sigma, self.k))
        return PreparedSlates(self.items, self.k, self.guarantee, draw, MECHANISM)

    def release(self, rows: Rows, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One slate, items in ascending order. ``rows``: users x d; a cell that is not a number counts as 0."""
        return self.prepare(rows).release(noise)

    def contributions(self, rows: Rows) -> Floats:
        """B, items x rank, with B B^T = the sum of all cut contributions c_u c_u^T. Private."""
        basis, factor = _orthogonal(self.features)
        values, vectors = np.linalg.eigh(self._moments(rows, factor).astype(np.float64))
        unit = sqrt_down(Fraction(self.bound)) / STEPS
        return np.asarray(basis @ (vectors * (unit * np.sqrt(np.maximum(values, 0.0)))))

    def _moments(self, rows: Rows, factor: Floats) -> NDArray[np.int64]:
        """sum of b_u b_u^T, b_u the coordinates of F z_u in an orthonormal basis, cut to the bound in whole steps: exact.

        No number exceeds 2^32 times the number of users, which is below 2^30.
        """
        width = self.features.shape[1]
        table = real_table(rows, "rows", width)
        if table.shape[1] != width or table.shape[0] >= MOST_USERS:
            raise InvalidInput(f"expected rows of {width} numbers, one for each feature.")
        most, rank = sqrt_down(Fraction(self.bound)), len(factor)
        total = np.zeros((rank, rank), dtype=np.int64)
        for first in range(0, table.shape[0], _USERS):
            image = _coordinates(table[first : first + _USERS].toarray(), factor, most)
            whole = whole_rows(image, rank, self.bound)
            total += (whole.T @ whole).toarray()
        return total


def _orthogonal(features: Floats) -> tuple[Floats, Floats]:
    """Q and R with F = Q R up to rounding, where Q is orthonormal up to rounding and not longer: |Q b| <= |b|."""
    basis, factor = np.linalg.qr(features)
    excess = float(np.linalg.norm(basis.T @ basis - np.eye(len(factor)))) + _MARGIN
    return basis / math.sqrt(1.0 + excess), factor


@np.errstate(all="ignore")  # Silence numpy: an error could reveal a private value
def _coordinates(rows: Floats, factor: Floats, most: float) -> Floats:
    """R z of every row, shortened to the norm ``most`` up to rounding, so that a row cut on the grid keeps its direction.

    It works column by column, so that a row's image is the same to the last bit in every table. In a matrix product it may not be.
    """
    rows = np.where(np.isfinite(rows), rows, 0.0)
    image = np.zeros((len(rows), len(factor)))
    for column in range(rows.shape[1]):
        image += rows[:, column, None] * factor[:, column]
    image[~np.isfinite(image)] = 0.0
    top = np.maximum(np.abs(image).max(axis=1, initial=0.0), most)
    scaled, squares = image / top[:, None], np.zeros(len(rows))  # by the largest cell first: no square overflows
    for column in range(len(factor)):
        squares += scaled[:, column] ** 2
    norm = np.sqrt(squares) * (top / most)  # in units of ``most``
    shortened: Floats = image / np.maximum(norm, 1.0)[:, None]
    return shortened
