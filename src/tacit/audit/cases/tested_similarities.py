"""Similarities that are answered after a test: users who agree, from none to more than are needed, and one more who does not."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, distribution, empirical, laplace_forms
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.cases.similarities import drawn
from tacit.audit.findings import By, Finding
from tacit.audit.twins.similarities import NormWithoutMargin, NormWithoutNoise
from tacit.mechanisms import SimilarityAfterTest
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers import discrete_laplace
from tacit.mechanisms.tested_similarity import AnswerLaw

_NAME = SimilarityAfterTest.name
_BOUND = 2.0
_MOST = 48  # users who agree: with so many the test is nearly always passed
_COMING = ((2.0, -2.0), (0.0, 2.0), (50.0, -50.0))
_WHY = "cosines of many users differ by less than of as many as are needed, and are rounded"


class _TestedLike(check.Claims, Protocol):
    @property
    def grid(self) -> int: ...

    @property
    def scale(self) -> Fraction: ...

    def laws(self, rows: Any, /) -> Sequence[AnswerLaw]: ...


class _Windowed:
    """No answer, or one of the answers up to so far out that e^-40 is left."""

    def __init__(self, mechanism: _TestedLike) -> None:
        self.name, self.guarantee, self._scale = mechanism.name, mechanism.guarantee, mechanism.scale
        end = mechanism.grid + math.ceil(40 * mechanism.scale)
        self._outputs = np.arange(-end, end + 1)

    def pmf(self, law: AnswerLaw) -> NDArray[np.float64]:
        answers = discrete_laplace.pmf(self._outputs - law.centre, self._scale)
        return np.concatenate([[1.0 - law.answered], law.answered * answers])


def cases() -> list[Case]:
    return [
        Case(_NAME, By.EXACT, lambda noise, draws: tables_exactly(_small())),
        Case(_NAME, By.DISTRIBUTION, _sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    faults: dict[type[NormWithoutNoise] | type[NormWithoutMargin], str] = {
        NormWithoutNoise: "the norm is compared without noise",
        NormWithoutMargin: "the threshold has no margin, so that too few raters pass too often",
    }
    return [
        *(
            Twin(kind.name, _NAME, fault, lambda noise, draws, kind=kind: tables_exactly(kind(_small())))  # type: ignore[misc]
            for kind, fault in faults.items()
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(SimilarityAfterTest(2, ((0, 1),), 2.0, 0.01, needed=100), _empirical)]


def _small() -> SimilarityAfterTest:
    return SimilarityAfterTest(2, ((0, 1),), 1.0, 0.01, needed=10, grid=64)


def tables_exactly(mechanism: _TestedLike) -> Finding:
    laws, pairs = [], []
    for users in range(1, _MOST + 1, 4):  # nine among them, one fewer than are needed
        agree = np.full((users, 2), _BOUND)
        laws.append(mechanism.laws(agree)[0])
        here = len(laws) - 1
        for coming in _COMING:
            pairs.append((here, len(laws)))
            laws.append(mechanism.laws(np.concatenate([agree, [coming]]))[0])
    delta, scale = mechanism.guarantee.delta, float(mechanism.scale)
    reference = max(tested_epsilon(laws[i], laws[j], scale, delta) for i, j in pairs)
    case = f"{_MOST} users who agree, one more"
    return check.exactly(_Windowed(mechanism), laws, np.array(pairs), case=case, reference=reference, note=_WHY)


def tested_epsilon(first: AnswerLaw, second: AnswerLaw, scale: float, delta: float) -> float:
    """The epsilon at ``delta`` of two tested answers: no answer, and answers whose chances shift the loss of the noise."""

    def missed(here: AnswerLaw, there: AnswerLaw, epsilon: float) -> float:
        silent = max(0.0, (1.0 - here.answered) - math.exp(epsilon) * (1.0 - there.answered))
        if here.answered == 0.0 or there.answered == 0.0:
            return silent + here.answered
        left = epsilon - math.log(here.answered / there.answered)
        spoken = laplace_forms.delta_of_laplaces((here.centre, scale), (there.centre, scale), left)
        return silent + here.answered * spoken

    low, high = 0.0, 700.0
    if max(missed(first, second, high), missed(second, first, high)) > delta:
        return math.inf
    for _ in range(80):
        middle = (low + high) / 2.0
        fits = max(missed(first, second, middle), missed(second, first, middle)) <= delta
        low, high = (low, middle) if fits else (middle, high)
    return high


def _sampler(noise: Noise, draws: Draws) -> Finding:
    """So many pairs of the same two items at once; about half of them pass."""
    agree, count = np.tile([[2.0, 1.5], [-1.5, -2.0]], (63, 1)), draws.batched
    one = SimilarityAfterTest(2, ((0, 1),), 2.0, 1e-6, needed=60, share=0.5, grid=1 << 10)
    many = SimilarityAfterTest(2, ((0, 1),) * count, 2.0 * count, 1e-6 * count, needed=60, share=0.5, grid=1 << 10)
    value = many.release(agree, noise).value
    answers = np.rint(value[~np.isnan(value)] * many.grid).astype(np.int64)
    counts = np.array([answers.size, value.size - answers.size])

    def fit(mechanism: SimilarityAfterTest) -> float:
        law = mechanism.laws(agree)[0]

        def cdf(n: NDArray[np.int64]) -> NDArray[np.float64]:
            below = discrete_laplace.cdf(np.asarray(n) - law.centre, mechanism.scale)
            return np.where(np.asarray(n) >= many.grid, 1.0, np.where(np.asarray(n) < -many.grid, 0.0, below))

        chances = np.array([law.answered, 1.0 - law.answered])
        return min(distribution.p_value(counts, chances), distribution.lattice_p_value(answers, cdf))

    fits = fit(one), fit(distribution.off_by(one))
    return check.sampled(one, *fits, loss=one.epsilon, draws=count, case="126 users who agree, 60 needed")


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    agree = np.full((130, 2), _BOUND)
    tables = agree, np.concatenate([agree, [[_BOUND, -_BOUND]]])
    first, second = (np.nan_to_num(drawn(mechanism, table, noise, draws.single), nan=2.0) for table in tables)
    bound = empirical.lower_bound_by_threshold(first, second, delta=mechanism.guarantee.delta)
    return check.from_below(mechanism, bound, case="130 users who agree, one who does not added")
