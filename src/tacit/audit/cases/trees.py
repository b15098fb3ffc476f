"""Prototypes by a tree: every question that is asked of the rows, put to neighbouring tables with the same noise."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, distribution, domains, empirical, lattice
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.prototypes import LevelCounted, ShortSums
from tacit.mechanisms import FeatureBox, ProfileBounds, TreePrototypes
from tacit.mechanisms.noise import Noise, ReplayedNoise
from tacit.mechanisms.tree_prototypes import Tree

_NAME = TreePrototypes.name
_ROWS = (
    (0.0, 0.0, 0.0),
    (5.0, 0.0, 0.0),
    (3.0, 4.0, 0.0),
    (9.0, 1e300, -3.0),
    (math.nan, math.inf, 2.5),
)
_TRIALS = 100
_BOUNDS = ProfileBounds(3, 3, 5.0, l2_bound=5.0)


def cases() -> list[Case]:
    return [
        Case(_NAME, By.EXACT, _questions(TreePrototypes(_BOUNDS, 2, 1.0, 1e-6, depth=2), "sparse rows")),
        Case(
            _NAME,
            By.EXACT,
            _questions(TreePrototypes(FeatureBox.cube(3, -5.0, 5.0, l2_bound=5.0), 2, 4.0, 1e-6, depth=3), "a box"),
        ),
        Case(_NAME, By.DISTRIBUTION, _sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    return [
        Twin(
            ShortSums.name,
            _NAME,
            "noise for rows of length R / sqrt 2, though they are cut to R",
            _questions(ShortSums(_BOUNDS, 2, 1.0, 1e-6, depth=2), "sparse rows"),
        ),
        Twin(
            LevelCounted.name,
            _NAME,
            "the noise of the counts is that of one level, though each is counted",
            _questions(LevelCounted(_BOUNDS, 2, 1.0, 1e-6, depth=2), "sparse rows"),
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [
        FromOutside(
            TreePrototypes(FeatureBox.cube(_TRIALS, -5.0, 5.0, l2_bound=5.0), 1, 2.0, 0.01, depth=1, lloyd=0),
            _empirical,
        )
    ]


def _questions(mechanism: TreePrototypes, what: str) -> Any:
    """All levels of counts, the sums of all leaves and every Lloyd step: the rho of their shifts, in whole numbers, added up.

    Which groups, leaves and centres are asked about follows from earlier answers; here they are fixed, as finely as can be.
    """

    def run(noise: Noise, draws: Draws) -> Finding:
        tables = domains.tables(_ROWS, 2)
        answers = [_asked(mechanism, table) for table in tables]
        pairs = domains.added_or_removed(tables)
        rho = max((_lost(mechanism, answers[first], answers[second]) for first, second in pairs), default=Fraction(0))
        return check.judged(
            mechanism, f"{what}, {mechanism.depth} levels, one added or removed", Measure.RHO, float(rho)
        )

    return run


def _asked(mechanism: TreePrototypes, table: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    answers = mechanism.ask(table, ReplayedNoise(3))
    depth, codes = mechanism.depth, np.arange(1 << mechanism.depth)
    found = [answers.counts(level, codes >> (depth - level), 1 << level) for level in range(depth + 1)]
    found.append(answers.sums(Tree(codes, np.zeros(codes.size))).ravel())
    middle = np.zeros((1, mechanism.bounds.items), dtype=np.int64)
    for _ in range(mechanism.lloyd):
        answers.clusters(middle)
        found.append(answers.given[-1][1].ravel())
    return found


def _lost(mechanism: TreePrototypes, first: list[NDArray[np.int64]], second: list[NDArray[np.int64]]) -> Fraction:
    counts, sums, lloyd = mechanism.variances
    variances = [*([counts] * (mechanism.depth + 1)), sums, *([lloyd] * mechanism.lloyd)]
    return sum(
        (
            Fraction(sum(int(x) ** 2 for x in one - other)) / (2 * variance)
            for one, other, variance in zip(first, second, variances, strict=True)
        ),
        Fraction(0),
    )


def _sampler(noise: Noise, draws: Draws) -> Finding:
    """Entities without users: every answer is its noise, against the three laws; each must tell ten percent."""
    mechanism = TreePrototypes(FeatureBox.cube(8), 4, 2.0, 1e-6, depth=11, lloyd=1)
    drawn: dict[str, list[NDArray[np.int64]]] = {"counts": [], "sums": [], "clusters": []}
    codes = np.arange(1 << mechanism.depth)
    for _ in range(max(1, draws.batched // 25_000)):
        answers = mechanism.ask(np.zeros((0, 8)), noise)
        for level in range(mechanism.depth + 1):  # every level, whichever groups are asked about: each has its noise
            answers.counts(level, codes, codes.size)
        answers.sums(Tree(codes, np.zeros(codes.size)))
        answers.clusters(np.zeros((codes.size // 2, 8), dtype=np.int64))
        for what, numbers in answers.given:
            drawn[what.split()[0]].append(numbers.ravel())

    def fit(numbers: list[NDArray[np.int64]], variance: Fraction) -> float:
        return distribution.lattice_p_value(
            np.concatenate(numbers), lambda n: lattice.gaussian_tail(-n, variance), cells=40
        )

    laws = list(zip(drawn.values(), mechanism.variances, strict=True))
    return check.sampled(
        mechanism,
        min(1.0, 3.0 * min(fit(numbers, variance) for numbers, variance in laws)),
        max(fit(numbers, variance * Fraction(10, 13)) for numbers, variance in laws),
        loss=lattice.gaussian_epsilon(1, mechanism.variances[0], mechanism.delta),
        draws=sum(len(one) for numbers in drawn.values() for one in numbers),
        case="counts, sums and Lloyd steps of nobody",
        off="14 % (a variance off by 30 %)",
    )


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """A user for each number, who has nothing else, or nobody: the noisy sum of all rows, of which each number is a trial.

    Prototypes are computed from such answers and public numbers alone, so they cannot tell more.
    """
    runs: TreePrototypes = getattr(mechanism, "runs", mechanism)
    together = Tree(np.zeros(2, dtype=np.int64), np.zeros(1))

    def drawn(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        times = -(-2 * draws.single // _TRIALS)
        return np.concatenate([runs.ask(rows, noise).sums(together).ravel() for _ in range(times)]).astype(np.float64)

    bound = empirical.lower_bound_by_threshold(
        drawn(np.zeros((0, _TRIALS))), drawn(5.0 * np.eye(_TRIALS)), delta=mechanism.guarantee.delta
    )
    return check.from_below(mechanism, bound, case="a full row added")
