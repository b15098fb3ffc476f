"""The audit of noisy similarities: two ways to the same delta, and noise that fits one database only is caught."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.audit import AuditReport, By, suite
from tacit.audit.cases import similarities, tested_similarities
from tacit.audit.laplace_forms import (
    chances_and_losses,
    delta_of_laplaces,
    delta_together,
    epsilon_of_laplaces,
    smallest_epsilon,
)
from tacit.audit.twins.similarities import (
    DeltaForEachPair,
    DeltaForEachTest,
    EpsilonForEachPair,
    EpsilonForEachTest,
    LargerNorm,
    LargerNormReleased,
    LargerNormTested,
    NoiseSpendsItAll,
    NoRoomForRounding,
    NotSmoothed,
    RatingsNotCut,
)
from tacit.guarantees import Guarantee
from tacit.mechanisms import ReplayedNoise, SimilarityAfterTest, SmoothSimilarity
from tacit.mechanisms.samplers import discrete_laplace

REAL = SmoothSimilarity(2, ((0, 1),), 1.0, 0.01, grid=8)
TESTED = SimilarityAfterTest(2, ((0, 1),), 1.0, 0.01, needed=10, grid=64)


@pytest.fixture(scope="module")
def report() -> AuditReport:
    return suite.run(["smooth-similarity", "tested-similarity"], by=[By.EXACT])


def test_geometric_sums_equal_enumeration(rng: np.random.Generator) -> None:
    outputs = np.arange(-1500, 1500)
    for _ in range(60):
        one, other = rng.uniform(0.3, 20.0, 2)
        other = one if rng.random() < 0.2 else other
        apart, epsilon = int(rng.integers(-15, 16)), float(rng.uniform(-2.0, 3.0))
        here = discrete_laplace.pmf(outputs, Fraction(one))
        there = discrete_laplace.pmf(outputs - apart, Fraction(other))
        missed = np.maximum(here - math.exp(epsilon) * there, 0.0).sum()
        assert delta_of_laplaces((0, one), (apart, other), epsilon) == pytest.approx(missed, abs=1e-12)


def test_geometric_sums_of_two_numbers_equal_enumeration() -> None:
    outputs, laws = np.arange(-80, 90), (((0, 1.5), (4, 1.1)), ((2, 0.7), (1, 1.3)))
    here, there = (
        np.multiply.outer(*(discrete_laplace.pmf(outputs - centre, Fraction(scale)) for centre, scale in numbers))
        for numbers in zip(*laws, strict=True)
    )
    first = chances_and_losses(*laws[0])
    assert math.fsum(chance for chance, _ in first) == pytest.approx(1.0, abs=1e-12)
    for epsilon in (0.0, 1.0, 4.0):
        together = delta_together(first, lambda left: delta_of_laplaces(*laws[1], left), epsilon)
        assert together == pytest.approx(np.maximum(here - math.exp(epsilon) * there, 0.0).sum(), abs=1e-12)


def test_the_smallest_epsilon_is_where_no_more_is_missed() -> None:
    assert smallest_epsilon(lambda epsilon: math.exp(-epsilon), 0.01) == pytest.approx(math.log(100.0), abs=1e-12)
    assert smallest_epsilon(lambda epsilon: 1.0, 0.01, most=9.0) == pytest.approx(9.0)


def test_equal_scales_have_a_pure_epsilon() -> None:
    assert epsilon_of_laplaces((0, 5.0), (3, 5.0), 1e-15) == pytest.approx(0.6, abs=1e-9)
    assert epsilon_of_laplaces((0, 5.0), (0, 5.0), 1e-15) == pytest.approx(0.0, abs=1e-12)


def test_claims_hold_and_are_explained(report: AuditReport) -> None:
    assert len(report.mechanisms) == 14
    assert all(finding.holds and finding.explained for finding in report.mechanisms)


@pytest.mark.parametrize(
    ("name", "case", "share"),
    [
        ("smooth-similarity", "24 users who agree", 0.8),
        ("smooth-similarity", "two pairs", 0.58),
        ("smooth-similarity", "laws as far apart as they may be, one of 64 pairs", 0.9),
        ("tested-similarity", "560 users who agree, on a coarse grid", 0.97),
        ("tested-similarity", "two pairs", 0.97),
        ("tested-similarity", "laws as far apart as they may be", 0.9999),
    ],
)
def test_claims_are_nearly_used_up_where_the_worst_is_looked_for(
    report: AuditReport, name: str, case: str, share: float
) -> None:
    """A fault can hide in what is not used."""
    (found,) = (finding for finding in report.mechanisms if finding.name == name and finding.case.startswith(case))
    assert found.loss >= share * found.claimed


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("local-sensitivity-of-a-similarity", 2.8, 3.0),
        ("smoothed-twice-as-fast", 5.3, 5.5),
        ("ratings-not-cut", 60.0, 80.0),
        ("no-room-for-rounding", 99.0, 101.0),  # a step for a scale of 2 * 2/400 at epsilon 1
        ("larger-norm", 10.0, 10.4),  # for a claim of 4
        ("epsilon-for-each-pair", 17.5, 18.0),  # for a claim of 16
        ("delta-for-each-pair", 0.58, 0.6),  # for a claim of 0.5
        ("test-without-noise", math.inf, math.inf),
        ("test-without-margin", 3.6, 3.8),
        ("noise-spends-it-all", 4.799, 4.8),  # all of 4 and a share of 0.2
        ("larger-norm-tested", 2.3, 2.4),
        ("epsilon-for-each-test", 3.0, 3.2),  # for a claim of 2
        ("delta-for-each-test", 8.0, 8.3),
    ],
)
def test_twins_lose_far_more_than_they_claim(report: AuditReport, name: str, low: float, high: float) -> None:
    twin = next(twin for twin in report.twins if twin.name == name)
    assert twin.caught
    assert low <= twin.finding.loss <= high


def test_twins_do_as_the_real_one_where_their_fault_does_not_show() -> None:
    modest = np.full((60, 2), 1.5)
    for twin in (NotSmoothed(REAL), RatingsNotCut(REAL)):
        (law,), (real,) = twin.laws(modest), REAL.laws(modest)
        assert twin.guarantee == REAL.guarantee
        assert law.centre == real.centre
        assert float(law.scale) == pytest.approx(float(real.scale), rel=1e-3)


def test_twins_of_pairs_norms_and_rounding_differ_from_the_real_one_in_that_alone() -> None:
    equal, fewer = np.full((400, 2), 2.0), np.full((400, 2), 2.0)
    fewer[40:, 1] = 0.0
    assert LargerNorm(REAL).laws(equal) == REAL.laws(equal)
    assert LargerNorm(REAL).laws(fewer)[0].scale == REAL.laws(equal)[0].scale < REAL.laws(fewer)[0].scale
    for rows in (equal, fewer):
        step = REAL.laws(rows)[0].scale - NoRoomForRounding(REAL).laws(rows)[0].scale
        assert float(step) == pytest.approx(2.0, rel=1e-6)
    assert LargerNormTested(TESTED).laws(equal) == TESTED.laws(equal)
    assert LargerNormTested(TESTED).laws(fewer)[0].answered == TESTED.laws(equal)[0].answered
    assert NoiseSpendsItAll(TESTED).laws(equal) == TESTED.laws(equal)
    assert float(NoiseSpendsItAll(TESTED).scale) == pytest.approx(0.8 * float(TESTED.scale))
    for twin in (EpsilonForEachPair(REAL), DeltaForEachPair(REAL)):  # of one pair all is its share
        assert (twin.laws(fewer), twin.growth) == (REAL.laws(fewer), REAL.growth)
    for test in (EpsilonForEachTest(TESTED), DeltaForEachTest(TESTED)):
        assert (test.laws(fewer), test.scale) == (TESTED.laws(fewer), TESTED.scale)


def test_what_tests_the_larger_norm_promises_nothing_and_states_the_law_of_the_smaller() -> None:
    twin, fewer = LargerNormReleased(2, ((0, 1),), 1.0, 0.01, needed=10), np.full((400, 2), 2.0)
    fewer[1:, 1] = 0.0
    release = twin.release(fewer, ReplayedNoise(1))
    assert release.guarantee.promises_nothing
    assert not np.isnan(release.value).any()
    assert twin.laws(fewer)[0].answered < 0.01


def test_one_of_many_pairs_is_judged_by_its_share_of_the_claim() -> None:
    many = SmoothSimilarity(2, ((0, 1),) * 4, 2.0, 0.04)
    one = similarities.OneOfMany(many)
    wanted: Guarantee = SmoothSimilarity(2, ((0, 1),), 0.5, 0.01).guarantee
    assert one.guarantee == wanted
    assert one.laws(np.eye(2)) == many.laws(np.eye(2))[:1]
    assert (one.name, one.grid, one.growth) == (many.name, many.grid, many.growth)


def test_a_claim_understated_by_half_is_refused() -> None:
    class Understated:
        name, grid = "understated", REAL.grid
        guarantee = SmoothSimilarity(2, ((0, 1),), 0.4, 0.01).guarantee

        def laws(self, rows):  # type: ignore[no-untyped-def]
            return REAL.laws(rows)

    assert not similarities.tables_exactly(Understated()).holds


def test_a_tested_answer_with_the_same_chances_has_the_epsilon_of_its_noise() -> None:
    here, there = (tested_similarities.AnswerLaw(1.0, centre) for centre in (0, 3))
    assert tested_similarities.tested_epsilon(here, there, 5.0, 1e-15) == pytest.approx(0.6, abs=1e-9)
    silent = tested_similarities.AnswerLaw(0.0, 0)
    assert tested_similarities.tested_epsilon(here, silent, 5.0, 0.5) == math.inf
