"""Prototypes by a grid: what the steps spend together, exactly; the noise of an entity without users; and a look from outside."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, distribution, empirical, lattice
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.prototypes import PublishedShares, SwapsBeyondTheirShare
from tacit.mechanisms import (
    GridPrototypes,
    LocalSwaps,
    PrivatePartition,
    ProfileBounds,
    SparseRecovery,
    grid_prototypes,
)
from tacit.mechanisms.inputs import VALUE_STEPS as STEPS
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers import integers
from tacit.mechanisms.selection import gumbel_choice

_NAME = GridPrototypes.name
_TRIALS = ((1, 1), (3, 2))  # trials, repetitions of the grid in each
_ITEMS = 40
_CLUSTERS = 256


def cases() -> list[Case]:
    return [
        *(Case(_NAME, By.EXACT, _spent(_made(1.0, trials, grids))) for trials, grids in _TRIALS),
        Case(_NAME, By.DISTRIBUTION, _sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    published = PublishedShares(epsilon=0.1, trials=5)
    return [
        Twin(
            PublishedShares.name,
            _NAME,
            "the published budget, in which only some of the steps are counted",
            _spent(published),
        ),
        Twin(
            SwapsBeyondTheirShare.name,
            _NAME,
            "the swaps run at three times their share",
            _spent(SwapsBeyondTheirShare(ProfileBounds(6, 3, 5.0), 2, 1.0, 100)),
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [
        FromOutside(
            GridPrototypes(ProfileBounds(_ITEMS, 1, 5.0), 1, 2.0, 4, p=1, depth=1, swaps=1, picked=_ITEMS), _empirical
        )
    ]


def _made(epsilon: float, trials: int, grids: int) -> GridPrototypes:
    return GridPrototypes(ProfileBounds(6, 3, 5.0), 2, epsilon, 100, trials=trials, repetitions=grids)


def _spent(mechanism: Any) -> Any:
    """What a release really spends: the scales and rates at which its steps are called, noted while it runs, as epsilons added up.

    What each step loses at its own epsilon is enumerated for itself.
    """

    def run(noise: Noise, draws: Draws) -> Finding:
        trials = mechanism.trials
        case = f"{trials} trial{'s' * (trials > 1)}, the steps together"
        published = isinstance(mechanism, PublishedShares)
        spent = mechanism.epsilons.total if published else _called(mechanism, noise)
        return check.judged(mechanism, case, Measure.EPSILON, float(spent))

    return run


def _called(mechanism: GridPrototypes, noise: Noise) -> Fraction:
    """One release of few rows with every step watched, and the choice among trials."""
    spent: list[Fraction] = []

    def watched(step: Any, cost: Callable[[Any], Fraction]) -> Any:
        real = step.release if step is not SparseRecovery else step.recover

        def noted(self: Any, *arguments: Any, **named: Any) -> Any:
            spent.append(cost(self))
            return real(self, *arguments, **named)

        return patch.object(step, real.__name__, noted)

    def choice(losses: Any, rate: Fraction, source: Noise) -> Any:
        spent.append(rate * mechanism.trial_loss_bound)
        return gumbel_choice(losses, rate, source)

    items = mechanism.bounds.items
    with (
        watched(PrivatePartition, lambda step: step.depth / step.scale),  # a point has one coin at every level
        watched(LocalSwaps, lambda step: (step.swaps + 1) * step.rate * step.loss_bound),
        watched(SparseRecovery, _recovered),
        patch.object(grid_prototypes, "gumbel_choice", choice),
    ):
        mechanism.release(np.eye(items)[: items // 2], noise)
    return sum(spent, Fraction(0))


def _recovered(step: SparseRecovery) -> Fraction:
    picks = step.picked * step.selection.rate * STEPS if step.selects else Fraction(0)
    return 1 / step.count_scale + picks + min(step.bounds.l1_steps, step.picked * STEPS) / step.value_scale


def _sampler(noise: Noise, draws: Draws) -> Finding:
    """Entities without users: the sizes of their clusters are noise alone."""
    mechanism = GridPrototypes(ProfileBounds(1, 1, 5.0), _CLUSTERS, 8.0, 100, p=1, depth=1, swaps=1)
    sizes = np.concatenate([mechanism.release(np.zeros((0, 1)), noise).value.sizes for _ in range(12)])

    def fit(law: GridPrototypes) -> float:
        return distribution.lattice_p_value(
            sizes.astype(np.int64), lambda n: integers.discrete_laplace_cdf(n, law.recovery.count_scale), cells=40
        )

    return check.sampled(
        mechanism,
        fit(mechanism),
        fit(distribution.off_by(mechanism, 1.25)),
        loss=lattice.laplace_loss(mechanism.recovery.size_pmf, 1),
        draws=sizes.size,
        case="the sizes of clusters of nobody",
        off="25 %",
    )


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """Of each of forty items four users, or five: a mean times what it was divided by is a noisy sum, and each is a trial."""

    def drawn(users: int) -> NDArray[np.float64]:
        rows = 5.0 * np.tile(np.eye(_ITEMS), (users, 1))
        found = [mechanism.release(rows, noise).value for _ in range(-(-draws.single // _ITEMS))]
        return np.concatenate([one.centres[0] * max(float(one.sizes[0]), 1.0) for one in found])

    return check.from_below(mechanism, empirical.lower_bound_by_threshold(drawn(4), drawn(5)), case="a full row added")
