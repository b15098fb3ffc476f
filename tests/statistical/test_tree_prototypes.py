"""Every number that leaves a tree has the noise that it is said to have; twins that spare some of it are caught.

An entity without users is asked: each answer then is its noise.
"""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.mechanisms import FeatureBox, TreePrototypes
from tacit.mechanisms.tree_prototypes import NoisyAnswers, Tree
from tests.contracts.mechanism import ALARM, chi_square

pytestmark = pytest.mark.statistical

DEPTH, ITEMS, CELLS = 12, 4, 40
MECHANISM = TreePrototypes(FeatureBox.cube(ITEMS), 8, 1.0, 1e-6, depth=DEPTH, lloyd=2)
DRAWS = 40_000


def answers_of(kind: type[NoisyAnswers], noise: Any) -> dict[str, Any]:
    """So many numbers of each kind: counts of every level, sums, sizes and sums of the two Lloyd steps."""
    found: dict[str, list[Any]] = {}
    codes, leaves = np.arange(1 << DEPTH), 1 << DEPTH
    while not found or min(sum(part.size for part in parts) for parts in found.values()) < DRAWS:
        nobody = MECHANISM.ask([], noise)
        answers = kind(MECHANISM, nobody.rows, noise)
        for level in range(DEPTH + 1):
            found.setdefault(f"counts {level}", []).append(answers.counts(level, codes, leaves))
        found.setdefault("sums", []).append(answers.sums(Tree(codes, np.zeros(leaves))).ravel())
        for step in (1, 2):
            sizes, sums = answers.clusters(np.zeros((leaves, ITEMS), dtype=np.int64))
            assert (sizes == answers.given[-1][1][:, 0] / MECHANISM.bounds.l2_steps).all()
            found.setdefault(f"sizes {step}", []).append(answers.given[-1][1][:, 0])
            found.setdefault(f"moves {step}", []).append(sums.ravel())
    return {what: np.concatenate(parts) for what, parts in found.items()}


def expected(what: str) -> Fraction:
    """From rho alone: half for the tree, of that a fifth for its levels; half for two steps of sensitivity sqrt 2 R."""
    rho, radius = Fraction(MECHANISM.rho), Fraction(1 << 16)
    if what.startswith("counts"):
        return 1 / (2 * (rho / 2 / 5 / (DEPTH + 1)))
    return radius**2 / (2 * (rho / 2 * 4 / 5)) if what == "sums" else 2 * radius**2 / (2 * (rho / 2 / 2))


def p_value(draws: Any, variance: float) -> float:
    """In cells of equal probability. A step is below a fortieth of a deviation: half a step is taken off at each edge."""
    sd = math.sqrt(variance)
    edges = np.floor(stats.norm.ppf(np.arange(1, CELLS) / CELLS) * sd) + 0.5
    law = np.diff(np.concatenate([[0.0], stats.norm.cdf(edges / sd), [1.0]]))
    return chi_square(np.bincount(np.searchsorted(edges, draws), minlength=CELLS), law)


def failing(kind: type[NoisyAnswers], noise: Any) -> set[str]:
    found = answers_of(kind, noise)
    return {what for what, draws in found.items() if p_value(draws, float(expected(what))) <= ALARM}


def test_all_noise_has_its_law_and_a_deviation_off_by_a_tenth_is_told(noise: Any) -> None:
    found = answers_of(NoisyAnswers, noise)
    assert set(found) == {f"counts {level}" for level in range(DEPTH + 1)} | {
        "sums", "sizes 1", "sizes 2", "moves 1", "moves 2",
    }  # fmt: skip
    for what, draws in found.items():
        variance = float(expected(what))
        assert p_value(draws, variance) > ALARM, what
        assert p_value(draws, variance * 1.21) < ALARM, what
        assert p_value(draws, variance / 1.21) < ALARM, what


class SparesALevel(NoisyAnswers):
    def _noisy(self, what: str, exact: Any, variance: Fraction) -> Any:
        noisy = super()._noisy(what, exact, variance)
        return exact if what == "counts 4" else noisy


class ShortSums(NoisyAnswers):
    """Leaf sums whose noise is for rows of R / sqrt 2."""

    def _noisy(self, what: str, exact: Any, variance: Fraction) -> Any:
        return super()._noisy(what, exact, variance / 2 if what == "sums" else variance)


class OneNoiseForAll(NoisyAnswers):
    """The two Lloyd steps as if they were one."""

    def _noisy(self, what: str, exact: Any, variance: Fraction) -> Any:
        return super()._noisy(what, exact, variance / 2 if what == "clusters" else variance)


@pytest.mark.parametrize(
    ("twin", "caught"),
    [
        (SparesALevel, {"counts 4"}),
        (ShortSums, {"sums"}),
        (OneNoiseForAll, {"sizes 1", "sizes 2", "moves 1", "moves 2"}),
    ],
)
def test_a_twin_that_spares_noise_is_caught(twin: type[NoisyAnswers], caught: set[str], noise: Any) -> None:
    assert failing(twin, noise) == caught


def test_the_noise_of_different_numbers_is_independent(noise: Any) -> None:
    answers = MECHANISM.ask([], noise)
    codes = np.arange(1 << DEPTH)
    drawn = np.stack([answers.counts(level, codes, codes.size) for level in range(DEPTH + 1)])
    drawn = np.concatenate([drawn, answers.sums(Tree(codes, np.zeros(codes.size))).T])
    linked = np.corrcoef(drawn)[np.triu_indices(len(drawn), 1)] * math.sqrt(codes.size)
    assert np.abs(linked).max() < stats.norm.isf(ALARM / linked.size)


def test_a_whole_release_of_nobody_is_all_noise(noise: Any) -> None:
    """The root's count, the only leaf's sum and two steps: what the release itself asks has the same law."""
    mechanism = replace(MECHANISM, bounds=FeatureBox.cube(40))
    given: dict[str, list[Any]] = {}
    for _ in range(600):
        answers = mechanism.ask([], noise)
        mechanism.compute(answers)
        for place, (what, noisy) in enumerate(answers.given):
            given.setdefault(f"{place} {what}", []).append(noisy.ravel())
    assert set(given) == {"0 counts 0", "1 sums", "2 clusters", "3 clusters"}
    for what, parts in given.items():
        kind = "counts 0" if "counts" in what else "sums" if "sums" in what else "moves 1"
        draws = np.concatenate(parts)
        assert p_value(draws, float(expected(kind))) > ALARM, what
        if draws.size > 1000:
            assert p_value(draws, 1.21 * float(expected(kind))) < ALARM, what
