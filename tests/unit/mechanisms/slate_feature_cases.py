"""Cases of slates with public features, and of a noisy kernel, for the contract."""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.guarantees import Relation
from tacit.mechanisms import FeatureSlate, GaussianKernel, TemperedSlate
from tests.contracts.mechanism import SECRET, MechanismCase
from tests.unit.mechanisms.cases import BAD_ROWS, added, replaced
from tests.unit.mechanisms.sum_cases import GaussianSumCase, narrowed


def public(rows: Any) -> NDArray[np.float64]:
    """Features that nobody can write to: a mechanism keeps them as they are."""
    table = np.array(rows, dtype=np.float64)
    table.flags.writeable = False
    return table


def slates_of(mechanism: Any, raw: Any, noise: Any, draws: int) -> NDArray[np.int64]:
    """``draws`` slates of one preparation, each as its place in the list of outcomes."""
    chosen = mechanism.prepare(raw).release_many(draws, noise).value
    place = {slate: index for index, slate in enumerate(mechanism.outcomes())}
    return np.array([place[tuple(slate)] for slate in chosen.tolist()])


def shared(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The same pairs, with one array for equal tables: the law of each is then computed once."""
    known: dict[bytes, Any] = {}
    return [(known.setdefault(here.tobytes(), here), known.setdefault(there.tobytes(), there)) for here, there in pairs]


class TemperedSlateCase(MechanismCase):
    """Two of four items that are all different: tables of up to two users, and each with one more."""

    epsilon = 1.5
    relation = Relation.ADD_REMOVE
    features = public(np.eye(4))

    def make(self, epsilon: float) -> Any:
        return TemperedSlate(self.features, 2, epsilon, high=4.0, relation=self.relation)

    def twin(self) -> Any:
        class OneVoteEach(TemperedSlate):
            """Takes one vote for the most that a user can move a slate."""

            theta = property(lambda self: 2 * super(OneVoteEach, self).theta)  # type: ignore[assignment]

        return OneVoteEach(self.features, 2, self.epsilon, high=4.0, relation=self.relation)

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        return shared(added(2, 4))

    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        rate = self.epsilon / (2 if self.relation is Relation.ADD_REMOVE else 4)
        totals = [min(4.0, math.fsum(row[item] for row in raw)) for item in range(4)]
        weights = [math.exp(rate * (totals[i] + totals[j])) for i, j in combinations(range(4), 2)]
        return np.array(weights) / math.fsum(weights)

    def documented_loss(self) -> float:
        # items 0 and 1 lead by two votes each and get one more: the slate of the other two loses what the normaliser gains
        t = math.exp(self.epsilon / 2)
        return math.log((t**6 + 4 * t**3 + 1) / (t**4 + 4 * t**2 + 1))

    def outcomes(self, mechanism: Any, raw: Any, noise: Any, draws: int) -> NDArray[np.int64]:
        return slates_of(mechanism, raw, noise, draws)

    def chosen_input(self) -> Any:
        return np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])

    def bad_parameters(self) -> Sequence[Callable[[], object]]:
        f = self.features
        return [
            *(lambda k=k: TemperedSlate(f, k, 1.0, high=4.0) for k in (0, -1, 5, 1.5, True, None)),
            *(lambda h=h: TemperedSlate(f, 2, 1.0, high=h) for h in (math.nan, math.inf, None, 0.0, -1.0, "4")),
            *(lambda b=b: TemperedSlate(f, 2, 1.0, low=b, high=4.0) for b in (4.0, 5.0, math.nan, -math.inf, None)),
            *(lambda c=c: TemperedSlate(f, 2, 1.0, high=4.0, items_each=c) for c in (0, -1, 1.5, True)),
            *(lambda s=s: TemperedSlate(f, 2, 1.0, high=4.0, steps=s) for s in (0, 1.5, True, (1 << 24) + 1)),
            *(lambda n=n: TemperedSlate(f, 2, 1.0, high=4.0, most_nats=n) for n in (0.0, -1.0, math.nan)),
            *(lambda b=b: TemperedSlate(b, 2, 1.0, high=4.0) for b in bad_tables()),
            lambda: TemperedSlate(np.ones((4, 3)), 2, 1.0, high=4.0),  # rank 1
            lambda: TemperedSlate(f, 2, 20.1, high=4.0),  # 40.2 nats
            lambda: TemperedSlate(f, 2, 1.0, low=-1.7e308, high=1.7e308),
            lambda: TemperedSlate(f, 2, 1.0, high=4.0, relation="swapped"),  # type: ignore[arg-type]
        ]

    def bad_inputs(self) -> Sequence[Any]:
        return [
            [SECRET],
            [[SECRET, 1.0]],
            [[[SECRET]]],
            SECRET,
            [[1.0], [SECRET, 2.0]],
            np.array([[1j, 0, 0, 0]]),
            None,
        ]


class TemperedSlateReplacedCase(TemperedSlateCase):
    relation = Relation.REPLACE

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        return shared(replaced(1, 4))

    def documented_loss(self) -> float:
        # two votes each for items 2 and 3 become one vote for every item: the slate of the other two gains most
        t = math.exp(self.epsilon / 4)
        return math.log((t**4 + 4 * t**2 + 1) / 6)


def bad_tables() -> list[Any]:
    """Features that are no finite table."""
    return [
        [],
        [[]],
        [1.0, 2.0],
        [[[1.0]]],
        [[math.nan] * 4] * 4,
        [[math.inf] * 4] * 4,
        [["a"] * 4] * 4,
        None,
        [[1.0], [1.0, 2.0]],
    ]


class FeatureSlateCase(MechanismCase):
    """Two of three items, and features that tell all of them apart."""

    epsilon = 1.0
    relation = Relation.ADD_REMOVE
    features = public(np.eye(3))
    users = 2

    def make(self, epsilon: float) -> Any:
        return FeatureSlate(self.features, 2, epsilon, relation=self.relation)

    def twin(self) -> Any:
        class HalfTheJitter(FeatureSlate):
            sigma = property(lambda self: super(HalfTheJitter, self).sigma / 2)  # type: ignore[assignment]

        return HalfTheJitter(self.features, 2, self.epsilon, relation=self.relation)

    def rows(self) -> list[NDArray[np.float64]]:
        return [np.array([row]) for row in ([1.0, 0, 0], [0, -5.0, 0], [0, 0, 1e9], [1.0, 1.0, 0.0], [0.3, 0, 0.1])]

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        rows = self.rows()
        tables = [np.zeros((0, 3)), *rows, *(np.concatenate([one, two]) for one in rows for two in rows)]
        if self.relation is Relation.ADD_REMOVE:
            return shared((table, np.concatenate([table, row])) for table in tables for row in rows)
        return shared(
            (np.concatenate([table, one]), np.concatenate([table, other]))
            for table in tables
            for one in rows
            for other in rows
            if one is not other
        )

    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        """Minors of sigma I + sum c c^T, c cut on the grid of 2^-16 in Python's own numbers."""
        sigma = 1.0 / math.expm1(self.epsilon)
        kernel = [[sigma * (i == j) for j in range(3)] for i in range(3)]
        for row in raw.tolist():
            norm = max(1.0, math.hypot(*row))
            # the basis is shortened by 2^-41 so that its own rounding can lengthen nothing
            cell = [math.trunc(value / norm * (1 << 16)) / (1 << 16) / math.sqrt(1 + 2.0**-40) for value in row]
            kernel = [[kernel[i][j] + cell[i] * cell[j] for j in range(3)] for i in range(3)]
        minors = [kernel[i][i] * kernel[j][j] - kernel[i][j] ** 2 for i, j in combinations(range(3), 2)]
        return np.array(minors) / math.fsum(minors)

    def documented_loss(self) -> float:
        # the first user of an item: the pair of the other two loses what the normaliser gains, (s^2 + 2 s (s + 1)) / 3 s^2
        return math.log1p(2 * math.expm1(self.epsilon) / 3)

    def outcomes(self, mechanism: Any, raw: Any, noise: Any, draws: int) -> NDArray[np.int64]:
        return slates_of(mechanism, raw, noise, draws)

    def bad_parameters(self) -> Sequence[Callable[[], object]]:
        return [
            *(lambda k=k: FeatureSlate(self.features, k, 1.0) for k in (0, -1, 4, 1.5, True, None)),
            *(lambda b=b: FeatureSlate(self.features, 2, 1.0, bound=b) for b in (0.0, -1.0, math.nan, math.inf, None)),
            *(lambda b=b: FeatureSlate(b, 2, 1.0) for b in bad_tables()),
        ]

    def bad_inputs(self) -> Sequence[Any]:
        return BAD_ROWS


class FeatureSlateReplacedCase(FeatureSlateCase):
    """One user replaced, nobody else there: the claim is reached."""

    relation = Relation.REPLACE

    def documented_loss(self) -> float:
        return self.epsilon


class GaussianKernelCase(GaussianSumCase):
    """A kernel of one item, whose released number is put into cells; the neighbours are rows of one number."""

    edges = np.arange(-40, 41) * (1 << 31)

    def make(self, epsilon: float, dimension: int = 1) -> Any:
        return GaussianKernel(dimension, epsilon, self.delta, 4.0, self.relation)

    def twin(self) -> Any:
        class HalfTheNoise(GaussianKernel):
            noise_laws = property(  # type: ignore[assignment]
                lambda self: tuple(narrowed(law, 4) for law in super(HalfTheNoise, self).noise_laws)
            )

        return HalfTheNoise(1, self.epsilon, self.delta, 4.0, self.relation)

    def total(self, raw: Any) -> int:
        cells = [float(cell) for cell in np.asarray(raw).ravel()]
        cut = [max(-2.0, min(2.0, cell)) if math.isfinite(cell) else 0.0 for cell in cells]
        return sum(math.trunc(Fraction(cell) * (1 << 16) / 2) ** 2 for cell in cut)

    def worst_loss(self, mechanism: Any) -> float:
        return super().worst_loss(_OneNumber(mechanism))

    def in_cells(self, mechanism: Any, total: int) -> NDArray[np.float64]:
        return super().in_cells(_OneNumber(mechanism), total)

    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        return super().reference(_OneNumber(mechanism), raw)

    def bad_parameters(self) -> Sequence[Callable[[], object]]:
        return [
            *(lambda n=n: GaussianKernel(n, 1.0, 1e-6) for n in (0, -1, 1.5, True, None, (1 << 14) + 1)),
            *(lambda b=b: GaussianKernel(1, 1.0, 1e-6, b) for b in (0.0, -1.0, math.nan, math.inf, None)),
            *(lambda d=d: GaussianKernel(1, 1.0, d) for d in (0.0, 1.0, -0.1, 1.5, math.nan, None, True)),
        ]


class GaussianKernelReplacedCase(GaussianKernelCase):
    relation = Relation.REPLACE


class _OneNumber:
    """The only number of a kernel of one item, seen as a sum."""

    def __init__(self, mechanism: Any) -> None:
        self.noise_law = mechanism.noise_laws[0]
