"""Noisy sums: hostile rows, every small table of them, every neighbouring pair; then the law of the noise."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.audit import check, distribution, domains, empirical, lattice
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.sums import ClippedAfterSum, ClippedPerCoordinate, LocalSensitivity, PricedAsAdded
from tacit.guarantees import Relation
from tacit.guarantees.concentrated import epsilon_of_gaussian
from tacit.mechanisms import GaussianSum, LaplaceSum
from tacit.mechanisms.inputs import STEPS
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers import integers
from tacit.mechanisms.samplers.integers import GridNoise

_LAPLACE, _GAUSSIAN = LaplaceSum.name, GaussianSum.name
_BOUND = 2.0
_ROWS = (
    (0.0, 0.0, 0.0),
    (_BOUND, 0.0, 0.0),
    (-_BOUND, 0.0, 0.0),
    (0.0, -_BOUND, 0.0),
    (math.nextafter(_BOUND, 9.0), 0.0, math.nextafter(0.0, 1.0)),
    (_BOUND, _BOUND, _BOUND),
    (-_BOUND, _BOUND, -_BOUND),
    (0.6 * _BOUND, 0.0, 0.8 * _BOUND),
    (_BOUND / 3.0, _BOUND / 3.0, _BOUND / 3.0),
    (1e308, -1e308, 1e308),
    (-1e300, 1.0, 1e-300),
    (5e-324, -5e-324, 1e-30),
    (math.inf, 1.0, 1.0),
    (-math.inf, math.inf, math.nan),
    (math.nan, -7.0, 3.0),
)


class _LaplaceLike(lattice.Additive, Protocol):
    @property
    def noise_law(self) -> GridNoise: ...


class _GaussianLike(lattice.Additive, Protocol):
    @property
    def noise_law(self) -> GridNoise: ...


def cases() -> list[Case]:
    both = (Relation.ADD_REMOVE, Relation.REPLACE)
    return [
        *(Case(_LAPLACE, By.EXACT, _laplace_rows(LaplaceSum(3, _BOUND, 1.0, relation), relation)) for relation in both),
        Case(_LAPLACE, By.DISTRIBUTION, _laplace_sampler),
        *(
            Case(_GAUSSIAN, By.EXACT, _gaussian_rows(GaussianSum(3, _BOUND, 1.0, 1e-6, relation), relation))
            for relation in both
        ),
        Case(_GAUSSIAN, By.EXACT, lambda noise, draws: _gaussian_law()),
        *(Case(_GAUSSIAN, By.EXACT, _gaussian_delta(epsilon, delta)) for epsilon, delta in ((1.0, 1e-6), (8.0, 1e-5))),
        Case(_GAUSSIAN, By.DISTRIBUTION, _gaussian_sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    return [
        Twin(
            ClippedAfterSum.name,
            _LAPLACE,
            "cuts the sum, not each user's row",
            _laplace_rows(ClippedAfterSum(LaplaceSum(3, _BOUND, 1.0)), Relation.ADD_REMOVE),
        ),
        Twin(
            LocalSensitivity.name,
            _LAPLACE,
            "noise scaled to how far this very table can move",
            lambda noise, draws: laplace_exactly(
                LocalSensitivity(LaplaceSum(1, 1.0, 0.4)), *_co_raters(), case="101 co-raters, one added"
            ),
        ),
        Twin(
            ClippedPerCoordinate.name,
            _GAUSSIAN,
            "cuts every coordinate to the bound of the whole row",
            _gaussian_rows(ClippedPerCoordinate(GaussianSum(3, _BOUND, 1.0, 1e-6)), Relation.ADD_REMOVE),
        ),
        Twin(
            PricedAsAdded.name,
            _GAUSSIAN,
            "hides a row replaced with the noise for a row added",
            _gaussian_rows(PricedAsAdded(GaussianSum(3, _BOUND, 1.0, 1e-6)), Relation.REPLACE),
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    """Claims that the draws can refute: well below ln(draws), and for the Gaussian law a delta that its tails do not dwarf."""
    return [
        FromOutside(LaplaceSum(3, _BOUND, 2.0), _empirical),
        FromOutside(GaussianSum(3, _BOUND, 2.0, 0.01), _empirical),
    ]


def laplace_exactly(mechanism: _LaplaceLike, tables: Sequence[Any], pairs: NDArray[np.int64], *, case: str) -> Finding:
    """The largest L1 shift between neighbours, in whole numbers, over the scale; and that the law has that loss."""
    centre = lattice.centres(mechanism, tables)
    if centre is None:
        return check.judged(mechanism, case, Measure.EPSILON, math.inf, note="the noise depends on the data")
    shift = lattice.shifts(centre, pairs)
    exact_loss = lattice.largest_l1(shift) / mechanism.noise_law.width
    by_law = max(math.fsum(lattice.laplace_loss(mechanism.noise_law.pmf, int(x)) for x in row) for row in shift)
    note = "" if exact_loss <= Fraction(mechanism.guarantee.epsilon) else "the shift exceeds the sensitivity"
    return check.judged(mechanism, case, Measure.EPSILON, max(float(exact_loss), by_law), note=note)


def gaussian_exactly(
    mechanism: _GaussianLike, tables: Sequence[Any], pairs: NDArray[np.int64], *, case: str
) -> Finding:
    """The largest squared L2 shift between neighbours, in whole numbers, over twice the variance: the rho that is spent."""
    centre = lattice.centres(mechanism, tables)
    if centre is None:
        return check.judged(mechanism, case, Measure.RHO, math.inf, note="the noise depends on the data")
    rho = lattice.largest_squares(lattice.shifts(centre, pairs)) / (2 * mechanism.noise_law.width)
    return check.judged(mechanism, case, Measure.RHO, float(rho))


def _laplace_rows(mechanism: _LaplaceLike, relation: Relation) -> Any:
    return lambda noise, draws: laplace_exactly(mechanism, *_neighbours(relation), case=f"hostile rows, one {relation}")


def _gaussian_rows(mechanism: _GaussianLike, relation: Relation) -> Any:
    return lambda noise, draws: gaussian_exactly(
        mechanism, *_neighbours(relation), case=f"hostile rows, one {relation}"
    )


def _neighbours(relation: Relation) -> tuple[list[domains.Table], NDArray[np.int64]]:
    tables = domains.tables(_ROWS, 2)
    return tables, domains.added_or_removed(tables) if relation is Relation.ADD_REMOVE else domains.replaced(tables)


def _co_raters() -> tuple[list[domains.Table], NDArray[np.int64]]:
    """101 users who rate two items alike, and the same with one who does not: the cosine falls from 1 to 0.73."""
    alike = np.array([[1.0, 1.0], [-1.0, -1.0]] * 50 + [[1.0, 1.0]])
    return [alike, np.vstack([alike, [[4.0, -4.0]]])], np.array([[0, 1]])


def _gaussian_law() -> Finding:
    """Renyi divergences of the law at the largest shift, over their orders: rho at every order."""
    mechanism = GaussianSum(1, _BOUND, 2.0, 1e-6)
    deviation = math.sqrt(mechanism.noise_law.width)
    orders = [1.0, 1.01, 1.5, 2.0, 3.5, 8.0, 16.0]
    rho = max(lattice.gaussian_renyi(mechanism.noise_law.pmf, STEPS, order, deviation) / order for order in orders)
    return check.judged(mechanism, f"shift 2^20, {len(orders)} orders", Measure.RHO, rho)


def _gaussian_delta(epsilon: float, delta: float) -> Any:
    def run(noise: Noise, draws: Draws) -> Finding:
        mechanism = GaussianSum(1, _BOUND, epsilon, delta)
        found = lattice.gaussian_epsilon(STEPS, mechanism.noise_law.width, delta)
        return check.judged(
            mechanism,
            f"shift 2^20, the epsilon at delta = {delta:g}",
            Measure.EPSILON,
            found,
            reference=epsilon_of_gaussian(STEPS / math.sqrt(mechanism.noise_law.width), delta),
            note="what converting rho to (epsilon, delta) gives away",
        )

    return run


def _laplace_sampler(noise: Noise, draws: Draws) -> Finding:
    mechanism = LaplaceSum(draws.batched, _BOUND, 1.0)
    drawn = mechanism.release(np.zeros((1, draws.batched)), noise).value.steps

    def fit(law: LaplaceSum) -> float:
        return distribution.lattice_p_value(drawn, lambda n: integers.discrete_laplace_cdf(n, law.noise_law.width))

    return check.sampled(
        mechanism,
        fit(mechanism),
        fit(distribution.off_by(mechanism)),
        loss=lattice.laplace_loss(mechanism.noise_law.pmf, STEPS),
        draws=draws.batched,
        case="2^20 steps",
    )


def _gaussian_sampler(noise: Noise, draws: Draws) -> Finding:
    mechanism = GaussianSum(draws.batched, _BOUND, 2.0, 1e-6)
    drawn = mechanism.release(np.zeros((1, draws.batched)), noise).value.steps

    def fit(law: GaussianSum) -> float:
        variance = law.noise_law.width
        return distribution.lattice_p_value(drawn, lambda n: lattice.gaussian_tail(-n, variance))

    return check.sampled(
        mechanism,
        fit(mechanism),
        fit(distribution.off_by(mechanism)),
        loss=lattice.gaussian_epsilon(STEPS, mechanism.noise_law.width, mechanism.delta),
        draws=draws.batched,
        case="2^20 steps",
    )


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """A table with and without a user whose row is as large as it may be."""
    rest = np.array([[0.1, 0.2, 0.3], [9.0, -9.0, 0.0]])
    row = np.array([[_BOUND, 0.0, 0.0]])

    def drawn(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        table = sparse.csr_array(rows)
        return check.many(lambda: mechanism.release(table, noise).value.to_floats()[0], draws.single)

    bound = empirical.lower_bound_by_threshold(
        drawn(rest), drawn(np.vstack([rest, row])), delta=mechanism.guarantee.delta
    )
    return check.from_below(mechanism, bound, case="3 coordinates, a full row added")
