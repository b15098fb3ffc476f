"""Noisy kernels: hostile rows, every small table of them, every neighbouring pair; then the law of the noise in its cells."""

import math
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, distribution, domains, empirical, lattice
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.cases.slate_tables import BOTH, HOSTILE, Check, pairs_of
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.kernels import HalfTheNoiseOffTheDiagonal, NoiseForEachTriangle, RowsNotCut, SumReplacedAsAdded
from tacit.guarantees import Guarantee, Relation
from tacit.guarantees.concentrated import epsilon_of_gaussian
from tacit.mechanisms import GaussianKernel
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers.integers import GridNoise
from tacit.mechanisms.slates import STEPS

_NAME = GaussianKernel.name
_SPREAD = tuple(float(x) for x in np.ones(3) / math.sqrt(3.0))  # a row that moves the off-diagonal most
_DRAWN = 40  # items of the matrices that are drawn
_FITTED = 40  # cells of the law


class _KernelLike(check.Claims, Protocol):
    @property
    def noise_laws(self) -> tuple[GridNoise, GridNoise]: ...

    def release(self, rows: Any, noise: Noise, /) -> Any: ...


class _Cells(NamedTuple):
    steps: NDArray[np.int64]


class _Flat:
    """A noisy matrix as a vector of its cells, to be looked at like any noisy sum."""

    def __init__(self, mechanism: _KernelLike) -> None:
        self.mechanism, self.name, self.guarantee = mechanism, mechanism.name, mechanism.guarantee
        self.symmetric = True

    def release(self, rows: Any, noise: Noise) -> Any:
        steps = self.mechanism.release(rows, noise).value.steps
        self.symmetric = self.symmetric and bool((steps == steps.T).all())
        return _Release(_Cells(steps.ravel()), self.guarantee)


class _Release(NamedTuple):
    value: _Cells
    guarantee: Guarantee


def cases() -> list[Case]:
    return [
        *(Case(_NAME, By.EXACT, _rows(GaussianKernel(3, 1.0, 1e-6, relation=one), one, users=2)) for one in BOTH),
        *(Case(_NAME, By.EXACT, _delta(epsilon, delta)) for epsilon, delta in ((1.0, 1e-6), (8.0, 1e-5))),
        Case(_NAME, By.DISTRIBUTION, _draws),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    real, replaced = (GaussianKernel(3, 1.0, 1e-6, relation=one) for one in BOTH)
    found: dict[str, tuple[_KernelLike, str]] = {
        HalfTheNoiseOffTheDiagonal.name: (
            HalfTheNoiseOffTheDiagonal(real),
            "half of the deviation off the diagonal, where 1 / sqrt 2 of it is needed",
        ),
        NoiseForEachTriangle.name: (
            NoiseForEachTriangle(real),
            "noise of its own for either mirror image of a cell: their mean has less of it",
        ),
        RowsNotCut.name: (RowsNotCut(real), "rows are taken as they are"),
    }
    return [
        *(Twin(name, _NAME, fault, _rows(twin, Relation.ADD_REMOVE)) for name, (twin, fault) in found.items()),
        Twin(
            SumReplacedAsAdded.name,
            _NAME,
            "hides a user replaced with the noise for a user added",
            _rows(SumReplacedAsAdded(replaced), Relation.REPLACE),
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(GaussianKernel(_DRAWN, 2.0, 0.01), _empirical)]


def kernel_exactly(mechanism: _KernelLike, tables: list[Any], pairs: NDArray[np.int64], *, case: str) -> Finding:
    """The rho that is spent: (shift of a cell)^2 / (2 variance), in whole numbers, over all cells with noise of their own."""
    flat = _Flat(mechanism)
    centre = lattice.centres(flat, tables)
    if centre is None:
        return check.judged(mechanism, case, Measure.RHO, math.inf, note="the noise depends on the data")
    items = math.isqrt(centre.shape[1])
    on, off = (law.width for law in mechanism.noise_laws)
    cells = [(i, j) for i in range(items) for j in range(i if flat.symmetric else 0, items)]
    moved = centre[pairs[:, 0]] - centre[pairs[:, 1]]
    squares = {tuple(np.abs(row).tolist()) for row in moved}
    rho = max(
        sum(Fraction(row[i * items + j] ** 2) / (2 * (on if i == j else off)) for i, j in cells) for row in squares
    )
    return check.judged(mechanism, case, Measure.RHO, float(rho))


def _rows(mechanism: _KernelLike, relation: Relation, *, users: int = 1) -> Check:
    def run(noise: Noise, draws: Draws) -> Finding:
        tables = domains.tables([*HOSTILE, _SPREAD], users)
        return kernel_exactly(
            mechanism, tables, pairs_of(tables, relation), case=f"3 items, hostile rows, one {relation}"
        )

    return run


def _delta(epsilon: float, delta: float) -> Check:
    def run(noise: Noise, draws: Draws) -> Finding:
        mechanism = GaussianKernel(1, epsilon, delta)
        variance, shift = mechanism.noise_laws[0].width, STEPS**2
        return check.judged(
            mechanism,
            f"one cell, the epsilon at delta = {delta:g}",
            Measure.EPSILON,
            lattice.gaussian_epsilon(shift, variance, delta),
            reference=epsilon_of_gaussian(shift / math.sqrt(variance), delta),
            note="what converting rho to (epsilon, delta) gives away",
        )

    return run


def _draws(noise: Noise, draws: Draws) -> Finding:
    """Matrices of nobody: the noise alone, on the diagonal and above it, each against its law; both must tell ten percent."""
    mechanism = GaussianKernel(_DRAWN, 2.0, 1e-6)
    empty, above = np.zeros((0, _DRAWN)), np.triu_indices(_DRAWN, 1)
    matrices = np.stack([mechanism.release(empty, noise).value.steps for _ in range(draws.batched // 200)])
    diagonal, beside = (matrices[:, rows, columns].ravel() for rows, columns in (np.diag_indices(_DRAWN), above))
    mirrored = bool((matrices == matrices.transpose(0, 2, 1)).all())

    def fit(law: GaussianKernel, drawn: NDArray[np.int64], place: int) -> float:
        variance = law.noise_laws[place].width
        return distribution.lattice_p_value(drawn, lambda n: lattice.gaussian_tail(-n, variance), cells=_FITTED)

    wrong = distribution.off_by(mechanism)
    return check.sampled(
        mechanism,
        2.0 * min(fit(mechanism, diagonal, 0), fit(mechanism, beside, 1), 0.5) if mirrored else 0.0,
        max(fit(wrong, diagonal, 0), fit(wrong, beside, 1)),
        loss=lattice.gaussian_epsilon(STEPS**2, mechanism.noise_laws[0].width, mechanism.delta),
        draws=diagonal.size + beside.size,
        case="on the diagonal and off it",
    )


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """Every item has one user, or nobody has any: a user moves her own cell of the diagonal alone, so each cell is a trial."""
    items = _DRAWN

    def drawn(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        times = -(-draws.single // items)
        return np.concatenate([np.diag(mechanism.release(rows, noise).value.to_floats()) for _ in range(times)])

    bound = empirical.lower_bound_by_threshold(
        drawn(np.zeros((0, items))), drawn(np.eye(items)), delta=mechanism.guarantee.delta
    )
    return check.from_below(mechanism, bound, case="a full row added")
