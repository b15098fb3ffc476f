"""Similarities that are answered after a test: users who agree, from none to more than are needed, few raters among many, two
pairs at once, one more user who does not agree; and the two laws that stand furthest apart."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, distribution, empirical, laplace_forms
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.cases.similarities import OneOfMany, agree, drawn, few_of_many, with_one_more
from tacit.audit.findings import By, Finding
from tacit.audit.twins.similarities import (
    DeltaForEachTest,
    EpsilonForEachTest,
    LargerNormReleased,
    LargerNormTested,
    NoiseSpendsItAll,
    NormWithoutMargin,
    NormWithoutNoise,
)
from tacit.mechanisms import SimilarityAfterTest
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers import discrete_laplace
from tacit.mechanisms.tested_similarity import AnswerLaw

_NAME = SimilarityAfterTest.name
_BOUND = 2.0
_PAIR = ((0, 1),)
_RATERS = range(
    1, 48 + 1, 4
)  # nine among them, one fewer than are needed; with the most the test is nearly always passed
_COMING = ((2.0, -2.0), (0.0, 2.0), (50.0, -50.0))
_WHY = "cosines of many users differ by less than of as many as are needed, and are rounded"
_TOO_FEW = "so few raters are answered less often than delta allows"


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

    def pmf(self, laws: Sequence[AnswerLaw]) -> NDArray[np.float64]:
        """Of all pairs at once, tested and drawn one apart from the other."""
        return np.asarray(reduce(np.multiply.outer, map(self._one, laws))).reshape(-1)

    def _one(self, law: AnswerLaw) -> NDArray[np.float64]:
        answers = discrete_laplace.pmf(self._outputs - law.centre, self._scale)
        return np.concatenate([[1.0 - law.answered], law.answered * answers])


def cases() -> list[Case]:
    looks = [
        _tables(_small(), agree(_RATERS), f"{_RATERS[-1]} users who agree"),
        _tables(_coarse(), agree([499, 530, 545, 560]), "560 users who agree, on a coarse grid"),
        _tables(_unequal(), few_of_many(), "one of 200 rated both items", _TOO_FEW),
        _tables(_two_pairs(), agree([545], items=4), "two pairs, 545 users who agree"),
        _tables(OneOfMany(_many_pairs()), agree(range(4)), "one of 16 pairs, 3 users who agree", _TOO_FEW),
        _furthest(_close()),
    ]
    return [
        *(Case(_NAME, By.EXACT, look) for look in looks),
        Case(_NAME, By.DISTRIBUTION, _sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    few, spread = agree(_RATERS), agree([545], items=4)
    found: list[tuple[Any, str, Any, str]] = [
        (NormWithoutNoise(_small()), "the norm is compared without noise", few, "users who agree"),
        (
            NormWithoutMargin(_small()),
            "the threshold has no margin, so that too few raters pass too often",
            few,
            "users who agree",
        ),
        (LargerNormTested(_unequal()), "the item that more users rated is tested", few_of_many(), "few of many"),
        (EpsilonForEachTest(_two_pairs()), "each of two pairs is given all of epsilon", spread, "two pairs"),
        (
            OneOfMany(DeltaForEachTest(_many_pairs())),
            "each of 16 pairs is given all of delta",
            agree(range(4)),
            "one of 16 pairs",
        ),
    ]
    spent, released = NoiseSpendsItAll(_close()), LargerNormReleased(2, _PAIR, 2.0, 0.01, needed=100)
    return [
        *(Twin(twin.name, _NAME, fault, _tables(twin, tables, case)) for twin, fault, tables, case in found),
        Twin(
            spent.name, _NAME, "the noise is given all of epsilon, and the test its share once more", _furthest(spent)
        ),
        Twin(
            released.name,
            _NAME,
            "the smaller norm decides in what is stated, the larger one in what is released",
            lambda noise, draws: _empirical(released, noise, draws.fewer),
            By.EMPIRICAL,
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(SimilarityAfterTest(2, _PAIR, 2.0, 0.01, needed=100), _empirical)]


def _small() -> SimilarityAfterTest:
    return SimilarityAfterTest(2, _PAIR, 1.0, 0.01, needed=10, grid=64)


def _coarse() -> SimilarityAfterTest:
    """One more of 500 users moves a cosine by 1/250 and, rounded, by all of a step: nearly as far as the noise is made for."""
    return SimilarityAfterTest(2, _PAIR, 1.0, 1e-4, needed=500, grid=8)


def _unequal() -> SimilarityAfterTest:
    return SimilarityAfterTest(2, _PAIR, 1.0, 0.01, needed=100, grid=256)


def _two_pairs() -> SimilarityAfterTest:
    return SimilarityAfterTest(4, ((0, 1), (2, 3)), 2.0, 2e-4, needed=500, grid=8)


def _many_pairs() -> SimilarityAfterTest:
    """So little of epsilon for the test that far too few raters pass nearly as often as one fewer than are needed."""
    return SimilarityAfterTest(2, _PAIR * 16, 16.0, 0.016, needed=20, share=1 / 64, grid=64)


def _close() -> SimilarityAfterTest:
    return SimilarityAfterTest(2, _PAIR, 4.0, 1e-6, needed=16, grid=64)  # 2 * 64 / 16 + 1 steps: a whole number


def _tables(mechanism: Any, tables: Sequence[NDArray[np.float64]], case: str, why: str = _WHY) -> Any:
    def run(noise: Noise, draws: Draws) -> Finding:
        found, pairs = with_one_more(tables, _COMING)
        return _judged(mechanism, [mechanism.laws(table) for table in found], pairs, f"{case}, one more", why)

    return run


def _furthest(mechanism: Any) -> Any:
    """Tests of norms that are at least what is needed, and one more; answers as far apart as they are where it is just met."""

    def run(noise: Noise, draws: Draws) -> Finding:
        apart = 2 * mechanism.grid // mechanism.needed + 1
        tests = [mechanism.laws(rows)[0] for rows in agree(range(mechanism.needed - 1, mechanism.needed + 30))]
        laws = [[law._replace(centre=centre)] for law in tests for centre in (0, apart)]
        pairs = np.array([(2 * here, 2 * here + 3) for here in range(len(tests) - 1)])
        why = "what is missed with delta is taken off"
        return _judged(mechanism, laws, pairs, "laws as far apart as they may be", why)

    return run


def _judged(
    mechanism: _TestedLike, laws: Sequence[Sequence[AnswerLaw]], pairs: NDArray[np.int64], case: str, why: str
) -> Finding:
    delta, scale = mechanism.guarantee.delta, float(mechanism.scale)
    reference = max(_epsilon(laws[i], laws[j], scale, delta) for i, j in pairs)
    return check.exactly(_Windowed(mechanism), laws, pairs, case=case, reference=reference, note=why)


def tested_epsilon(first: AnswerLaw, second: AnswerLaw, scale: float, delta: float) -> float:
    """The epsilon at ``delta`` of two tested answers: no answer, and answers whose chances shift the loss of the noise."""
    return _smallest(
        lambda epsilon: max(_missed(first, second, scale, epsilon), _missed(second, first, scale, epsilon)), delta
    )


def _epsilon(here: Sequence[AnswerLaw], there: Sequence[AnswerLaw], scale: float, delta: float) -> float:
    """Of one pair, or of two, which are tested and drawn one apart from the other."""
    (one, *rest), (other, *other_rest) = here, there
    if not rest:
        return tested_epsilon(one, other, scale, delta)
    (second,), (other_second,) = rest, other_rest
    forwards, backwards = _chances_and_losses(one, other, scale), _chances_and_losses(other, one, scale)

    def missed(epsilon: float) -> float:
        return max(
            laplace_forms.delta_together(forwards, lambda left: _missed(second, other_second, scale, left), epsilon),
            laplace_forms.delta_together(backwards, lambda left: _missed(other_second, second, scale, left), epsilon),
        )

    return _smallest(missed, delta)


def _smallest(missed: Callable[[float], float], delta: float) -> float:
    return math.inf if missed(700.0) > delta else laplace_forms.smallest_epsilon(missed, delta)


def _missed(here: AnswerLaw, there: AnswerLaw, scale: float, epsilon: float) -> float:
    silent = max(0.0, (1.0 - here.answered) - math.exp(min(epsilon, 700.0)) * (1.0 - there.answered))
    if here.answered == 0.0 or there.answered == 0.0:
        return silent + here.answered
    left = epsilon - math.log(here.answered / there.answered)
    spoken = laplace_forms.delta_of_laplaces((here.centre, scale), (there.centre, scale), left)
    return silent + here.answered * spoken


def _chances_and_losses(here: AnswerLaw, there: AnswerLaw, scale: float) -> list[tuple[float, float]]:
    """No answer, and every answer. Both are possible: a test without noise is looked at one pair at a time."""
    silent = (1.0 - here.answered, math.log((1.0 - here.answered) / (1.0 - there.answered)))
    shift = math.log(here.answered / there.answered)
    spoken = laplace_forms.chances_and_losses((here.centre, scale), (there.centre, scale))
    return [silent, *((here.answered * chance, loss + shift) for chance, loss in spoken)]


def _sampler(noise: Noise, draws: Draws) -> Finding:
    """So many pairs of the same two items at once, in either order; a third of them pass. One item is rated by more users, and by
    its norm nearly all would."""
    rows, count = np.tile([[2.0, 1.5], [-1.5, -2.0], [0.0, 1.0]], (63, 1)), draws.batched // 2 * 2
    both = ((0, 1), (1, 0)) * (count // 2)
    one = SimilarityAfterTest(2, _PAIR, 2.0, 1e-6, needed=85, share=0.5, grid=1 << 10)
    many = SimilarityAfterTest(2, both, 2.0 * count, 1e-6 * count, needed=85, share=0.5, grid=1 << 10)
    value = many.release(rows, noise).value
    answers = np.rint(value[~np.isnan(value)] * many.grid).astype(np.int64)
    counts = np.array([answers.size, value.size - answers.size])

    def fit(mechanism: SimilarityAfterTest) -> tuple[float, float]:
        law = mechanism.laws(rows)[0]

        def cdf(n: NDArray[np.int64]) -> NDArray[np.float64]:
            below = discrete_laplace.cdf(np.asarray(n) - law.centre, mechanism.scale)
            return np.where(np.asarray(n) >= many.grid, 1.0, np.where(np.asarray(n) < -many.grid, 0.0, below))

        chances = np.array([law.answered, 1.0 - law.answered])
        return distribution.p_value(counts, chances), distribution.lattice_p_value(answers, cdf)

    return check.sampled(
        one,
        min(fit(one)),
        max(fit(distribution.off_by(one))),  # who passes and what is answered each tell
        loss=one.epsilon,
        draws=count,
        case="126 users who agree, 63 more who rated one item, 85 needed",
    )


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """Where most pairs pass, and where few rated one of two items, so that none may: the larger of both bounds."""
    found = []
    for table in (*agree([130]), few_of_many()[0]):
        tables = table, np.concatenate([table, [[_BOUND, -_BOUND]]])
        first, second = (np.nan_to_num(drawn(mechanism, rows, noise, draws.single), nan=2.0) for rows in tables)
        mistrust = empirical.MISTRUST / 2.0  # either may be too large by chance
        found.append(
            empirical.lower_bound_by_threshold(first, second, delta=mechanism.guarantee.delta, mistrust=mistrust)
        )
    bound = max(found, key=lambda bound: bound.epsilon)
    return check.from_below(mechanism, bound, case="130 users who agree, or one of 200, one who does not added")
