"""The audit of noisy similarities: two ways to the same delta, and noise that fits one database only is caught."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.audit import AuditReport, By, suite
from tacit.audit.cases import similarities, tested_similarities
from tacit.audit.laplace_forms import delta_of_laplaces, epsilon_of_laplaces
from tacit.audit.twins.similarities import NotSmoothed, RatingsNotCut
from tacit.mechanisms import SmoothSimilarity
from tacit.mechanisms.samplers import discrete_laplace

REAL = SmoothSimilarity(2, ((0, 1),), 1.0, 0.01, grid=8)


@pytest.fixture(scope="module")
def report() -> AuditReport:
    return suite.run(["smooth-similarity", "tested-similarity"], by=[By.EXACT])


def test_geometric_sums_equal_enumeration(rng: np.random.Generator) -> None:
    outputs = np.arange(-1500, 1500)
    for _ in range(60):
        one, other = rng.uniform(0.3, 20.0, 2)
        other = one if rng.random() < 0.2 else other
        apart, epsilon = int(rng.integers(-15, 16)), float(rng.uniform(0.0, 3.0))
        here = discrete_laplace.pmf(outputs, Fraction(one))
        there = discrete_laplace.pmf(outputs - apart, Fraction(other))
        missed = np.maximum(here - math.exp(epsilon) * there, 0.0).sum()
        assert delta_of_laplaces((0, one), (apart, other), epsilon) == pytest.approx(missed, abs=1e-12)


def test_equal_scales_have_a_pure_epsilon() -> None:
    assert epsilon_of_laplaces((0, 5.0), (3, 5.0), 1e-15) == pytest.approx(0.6, abs=1e-9)
    assert epsilon_of_laplaces((0, 5.0), (0, 5.0), 1e-15) == pytest.approx(0.0, abs=1e-12)


def test_claims_hold_and_are_explained(report: AuditReport) -> None:
    assert len(report.mechanisms) == 4
    assert all(finding.holds and finding.explained for finding in report.mechanisms)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("local-sensitivity-of-a-similarity", 2.8, 3.0),
        ("ratings-not-cut", 60.0, 80.0),
        ("test-without-noise", math.inf, math.inf),
        ("test-without-margin", 3.6, 3.8),
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
