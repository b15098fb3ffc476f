"""k centres out of public candidates, improved by private swaps. Proof: docs/proofs/local-swaps.md.

Every swap, and at the end the choice among the sets of centres seen, is one exact exponential mechanism on whole-number losses.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, LossKind, Release
from tacit.guarantees.arithmetic import up
from tacit.guarantees.guarantee import finite_loss
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, released
from tacit.mechanisms.partition import HALF_SIDE, MOST_DIMENSIONS
from tacit.mechanisms.samplers.coins import below_each
from tacit.mechanisms.selection import gumbel_choice, softmax
from tacit.models import loops

FARTHEST = (2 * HALF_SIDE) ** 2  # the squared distance of two points within HALF_SIDE of the origin is at most that
# of a coordinate: squared distances in 2^14 dimensions stay below 2^53, up to which floats hold whole numbers
_MOST_SIZE = 1 << 18
_OUTCOMES = 1 << 16  # transcripts to enumerate, at most
_CELLS = 1 << 22  # distances to the centres at a time
_FEW = 1 << 10  # users up to which their order does not matter for the time

Columns: TypeAlias = NDArray[np.float64]  # whole numbers, coordinates x users or candidates
Transcript: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class LocalSwaps:
    """The indices of ``k`` centres among the candidates (repeats are possible): pure epsilon-DP for one user's point.

    A user's loss is the squared distance to the nearest centre, at most ``loss_bound``; the loss of a set of centres is the sum.
    """

    name: ClassVar[str] = "local-swaps"
    k: int
    epsilon: float  # nats
    swaps: int
    loss_bound: int = FARTHEST

    def __post_init__(self) -> None:
        keep(
            self,
            k=whole("k", self.k, least=1, most=1 << 16),
            epsilon=positive("epsilon", self.epsilon),
            swaps=whole("swaps", self.swaps, least=1, most=1 << 16),
            loss_bound=whole("loss_bound", self.loss_bound, least=1, most=FARTHEST),
        )

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the chosen centres promise: epsilon, in nats, for one user's rows, added or removed; composes by its zCDP."""
        # swaps + 1 exponential mechanisms, each of range epsilon / (swaps + 1)
        rho = up(Fraction(self.epsilon) ** 2 / (8 * (self.swaps + 1)))
        return Guarantee(self.epsilon, ONE_USER, proof=self.name, loss=finite_loss(LossKind.ZCDP, rho))

    @cached_property
    def rate(self) -> Fraction:
        """The exponent of one unit of loss. A user raises every loss by at most ``loss_bound``: no factor of 2."""
        return Fraction(self.epsilon) / ((self.swaps + 1) * self.loss_bound)

    def release(
        self, points: ArrayLike, candidates: ArrayLike, noise: Noise = SYSTEM_NOISE, *, compiled: bool | None = None
    ) -> Release[NDArray[np.int64]]:
        """The indices of the chosen centres. Points and candidates are tables of whole numbers, one row each."""
        users, offered = _columns(points, candidates)
        current = below_each(np.full(self.k, offered.shape[1]), noise)
        sets, losses = [], []
        for _ in range(self.swaps):
            loss = self._swap_losses(users, offered, current, compiled)
            out, into = divmod(int(gumbel_choice(-loss.reshape(1, -1), self.rate, noise)[0]), offered.shape[1])
            current = current.copy()
            current[out] = into
            sets.append(current)
            losses.append(int(loss[out, into]))
        last = int(gumbel_choice(-np.array([losses]), self.rate, noise)[0])
        return released(sets[last], self.guarantee, noise)

    def outcomes(self, candidates: int) -> list[Transcript]:
        """All transcripts, in the order of ``pmf``: first centres, each swap (centre, candidate), last choice."""
        indices = range(candidates)
        swaps = [list(product(range(self.k), indices))] * self.swaps
        return list(product(product(indices, repeat=self.k), *swaps, [(last,) for last in range(self.swaps)]))

    def pmf(self, points: ArrayLike, candidates: ArrayLike) -> NDArray[np.float64]:
        """The probability of every transcript; the release is a part of it. For few candidates and swaps."""
        users, offered = _columns(points, candidates)
        count = offered.shape[1]
        if (count * self.k) ** self.swaps * count**self.k > _OUTCOMES:
            raise InvalidParameter("too many transcripts to enumerate; take fewer candidates, centres or swaps.")
        law: list[float] = []
        for first in product(range(count), repeat=self.k):
            self._branch(users, offered, np.array(first), [], float(count) ** -self.k, law)
        return np.array(law)

    def choice_pmf(self, losses: ArrayLike) -> NDArray[np.float64]:
        """The law of one choice among whole-number losses: proportional to e^(-rate * loss)."""
        return softmax(-np.asarray(losses, dtype=np.int64), self.rate)

    def _branch(
        self,
        users: Columns,
        offered: Columns,
        current: NDArray[np.int64],
        losses: list[int],
        chance: float,
        law: list[float],
    ) -> None:
        if len(losses) == self.swaps:
            law.extend(chance * self.choice_pmf(losses))
            return
        loss = self._swap_losses(users, offered, current, None)
        for pair, likely in enumerate(self.choice_pmf(loss.ravel())):
            out, into = divmod(pair, offered.shape[1])
            after = current.copy()
            after[out] = into
            self._branch(users, offered, after, [*losses, int(loss[out, into])], chance * float(likely), law)

    def _swap_losses(
        self, users: Columns, offered: Columns, current: NDArray[np.int64], compiled: bool | None
    ) -> NDArray[np.int64]:
        """k x candidates: the loss after each swap. Private."""
        near, distance, second = nearest_two(users, offered[:, current], self.loss_bound)
        order = np.argsort(near, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(near, minlength=self.k))])
        columns = np.ascontiguousarray(users[:, order])
        losses: NDArray[np.int64] = loops.choose(compiled).swap_losses(
            columns, offered, distance[order], second[order], starts, float(self.loss_bound)
        )
        return losses


def nearest_two(
    users: Columns, centres: Columns, most: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """The nearest centre of each user (the first of ties), its squared distance and that of the next, at most ``most``."""
    count = users.shape[1]
    near, first, second = np.zeros(count, dtype=np.int64), np.zeros(count), np.full(count, float(most))
    size = max(1, _CELLS // centres.shape[1])
    for start in range(0, count, size):
        part = slice(start, start + size)
        apart = loops.plain.distances(users[:, part], centres, float(most))
        near[part] = apart.argmin(axis=1)
        first[part] = apart.min(axis=1)
        if centres.shape[1] > 1:
            apart[np.arange(len(apart)), near[part]] = np.inf
            second[part] = apart.min(axis=1)
    return near, first, second


def _columns(points: ArrayLike, candidates: ArrayLike) -> tuple[Columns, Columns]:
    """Points and candidates, one column each. Points follow a space-filling curve, so that near points stand together."""
    tables = [np.asarray(points), np.asarray(candidates)]
    if any(table.ndim != 2 or table.dtype.kind != "i" for table in tables):
        raise InvalidInput("points and candidates must be tables of whole numbers: one row for each.")
    users, offered = tables
    if not len(offered) or not 0 < users.shape[1] == offered.shape[1] <= MOST_DIMENSIONS:
        raise InvalidInput("there must be at least one candidate, of as many coordinates as the points have.")
    inside = [np.clip(table.astype(np.int64), -_MOST_SIZE, _MOST_SIZE) for table in tables]
    if len(users) > _FEW:
        inside[0] = inside[0][np.argsort(_morton(inside[0]), kind="stable")]
    return np.ascontiguousarray(inside[0].T, dtype=np.float64), np.ascontiguousarray(inside[1].T, dtype=np.float64)


def _morton(points: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first 60 bits of the interleaved coordinates, the highest first. It decides the order of users only."""
    code = np.zeros(len(points), dtype=np.int64)
    shifted = points + _MOST_SIZE
    digits = [(bit, axis) for bit in range(_MOST_SIZE.bit_length(), -1, -1) for axis in range(points.shape[1])]
    for bit, axis in digits[:60]:
        code = (code << 1) | ((shifted[:, axis] >> bit) & 1)
    return code
