"""Moment shares: hostile rows, every small table of them, every neighbouring pair; then the law of the noise, alone and summed."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit import check, distribution, domains, empirical, lattice
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.moments import LongHead, NoiseSharedByAll, RowsOfAnyLength, WholeDiagonal
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms import GramShare, GridVector, PopularityShare
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers.integers import GridNoise
from tacit.models.moments import STEPS

_POPULARITY, _GRAM = PopularityShare.name, GramShare.name
_RHO, _DELTA, _HONEST = 0.5, 1e-6, 4
_ROWS = (
    (0.0, 0.0, 0.0, 0.0),
    (1.0, 0.0, 0.0, 0.0),
    (5e-324, 1e308, 0.0, 0.0),
    (0.5, 3.0, 7.0, 0.0),
    (1.0, 1.0, 1.0, 1.0),
    (math.inf, 1.0, math.nan, -1.0),
    (-math.inf, -2.0, -0.0, 2.0),
)
_HEAD = (2, 0, 3)


class _Noisy(lattice.Additive, Protocol):
    @property
    def noise_law(self) -> GridNoise: ...


@dataclass(frozen=True)
class _Sum:
    """What is seen of a sum: one entity's share, and the noise of as many others as are promised to be unknown."""

    share: PopularityShare | GramShare | NoiseSharedByAll

    @property
    def name(self) -> str:
        return self.share.name

    @property
    def guarantee(self) -> Guarantee:
        return self.share.guarantee

    @property
    def noise_law(self) -> GridNoise:
        return replace(self.share.noise_law, width=self.share.noise_law.width * self.share.honest)

    def release(self, rows: ArrayLike, noise: Noise) -> Release[GridVector]:
        nobody = np.zeros((0, self.share.items))
        own = self.share.release(rows, noise)
        others = [self.share.release(nobody, noise).value.steps for _ in range(self.share.honest - 1)]
        return own.map(lambda share: GridVector(np.sum([share.steps, *others], axis=0), share.step))


def cases() -> list[Case]:
    popularity, gram = _shares()
    return [
        Case(_POPULARITY, By.EXACT, _rows(popularity, "one share")),
        Case(_POPULARITY, By.EXACT, _rows(_Sum(replace(popularity, honest=_HONEST)), f"a sum of {_HONEST} shares")),
        Case(_POPULARITY, By.DISTRIBUTION, _sampler(PopularityShare(2_000, _RHO, _DELTA, honest=_HONEST))),
        Case(_GRAM, By.EXACT, _rows(gram, "one share, three of four items", _gram_reference(gram))),
        Case(
            _GRAM,
            By.EXACT,
            _rows(_Sum(replace(gram, honest=_HONEST)), f"a sum of {_HONEST} shares", _gram_reference(gram)),
        ),
        Case(_GRAM, By.DISTRIBUTION, _sampler(GramShare(70, tuple(range(63)), _RHO, _DELTA, honest=_HONEST))),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    popularity, gram = _shares()
    summed = replace(popularity, honest=_HONEST)
    too_little = NoiseSharedByAll(summed, entities=_HONEST + 1)
    found: list[tuple[Any, str, str]] = [
        (RowsOfAnyLength(popularity), _POPULARITY, "adds up rows as they are, with the noise for unit rows"),
        (WholeDiagonal(gram), _GRAM, "the diagonal is not divided by sqrt 2"),
        (LongHead(gram), _GRAM, "rows on the head are not of unit length"),
    ]
    return [
        *(Twin(twin.name, of, fault, _rows(twin, "one share")) for twin, of, fault in found),
        Twin(
            NoiseSharedByAll.name,
            _POPULARITY,
            "noise divided among all entities, of whom one knows its own",
            _rows(_Sum(too_little), f"a sum of {_HONEST + 1} shares, one of which is known"),
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [
        FromOutside(PopularityShare(40, 0.35, 0.01), _empirical),
        FromOutside(GramShare(40, tuple(range(40)), 0.35, 0.01), _empirical),
    ]


def _shares() -> tuple[PopularityShare, GramShare]:
    return PopularityShare(4, _RHO, _DELTA), GramShare(4, _HEAD, _RHO, _DELTA)


def _rows(mechanism: _Noisy, what: str, reference: float | None = None) -> Any:
    """The rho that is spent: the largest squared shift between neighbours, in whole numbers, over twice the variance."""

    def run(noise: Noise, draws: Draws) -> Finding:
        tables = domains.tables(_ROWS, 2)
        case = f"{what}, hostile rows, one added or removed"
        centre = lattice.centres(mechanism, tables)
        if centre is None:
            return check.judged(mechanism, case, Measure.RHO, math.inf, note="the noise depends on the data")
        moved = lattice.shifts(centre, domains.added_or_removed(tables))
        rho = lattice.largest_squares(moved) / (2 * mechanism.noise_law.width)
        note = "1 / sqrt 2 is rounded down to whole steps"
        return check.judged(mechanism, case, Measure.RHO, float(rho), reference=reference, note=note)

    return run


def _gram_reference(share: GramShare) -> float:
    """The largest share of 2^39 that a user's rounded vector has, by decimals: one to three items of the head."""
    squares = []
    for count in range(1, len(_HEAD) + 1):
        pair, single = math.floor(STEPS / count), math.floor(STEPS / (count * math.sqrt(2.0)))
        squares.append(count * single**2 + count * (count - 1) // 2 * pair**2)
    return float(max(squares) / (2 * share.noise_law.width))


def _sampler(share: Any) -> Any:
    """Sums of the shares of nobody: the noise alone, against the law of one discrete Gaussian of the summed variance."""

    def run(noise: Noise, draws: Draws) -> Finding:
        summed, nobody = _Sum(share), np.zeros((0, share.items))
        length = summed.release(nobody, noise).value.steps.size
        drawn = np.concatenate([summed.release(nobody, noise).value.steps for _ in range(-(-draws.batched // length))])

        def fit(variance: Fraction) -> float:
            return distribution.lattice_p_value(drawn, lambda n: lattice.gaussian_tail(-n, variance))

        shift = STEPS if isinstance(share, PopularityShare) else math.floor(STEPS / math.sqrt(2.0))
        variance = summed.noise_law.width
        return check.sampled(
            share,
            fit(variance),
            fit(variance * Fraction(10, 11)),
            loss=lattice.gaussian_epsilon(shift, variance, share.delta),
            draws=drawn.size,
            case=f"a sum of {share.honest} shares",
            off="5 % (a variance off by 10 %)",
        )

    return run


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """Every item has one user, or nobody has any: a user moves her own number alone, so each is a trial."""
    items = 40

    def drawn(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        times = -(-draws.single // items)
        return np.concatenate([mechanism.release(rows, noise).value.to_floats()[:items] for _ in range(times)])

    bound = empirical.lower_bound_by_threshold(
        drawn(np.zeros((0, items))), drawn(np.eye(items)), delta=mechanism.guarantee.delta
    )
    return check.from_below(mechanism, bound, case="a user with one item added")
