"""Test vectors of private selection, and its privacy: random pairs and the 2k extreme corners, for every mechanism."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.audit import domains, exact
from tacit.mechanisms import (
    ClippedScores,
    Envelope,
    ExponentialMechanism,
    LaplaceNoisyMax,
    Peeling,
    PermuteAndFlip,
    ProfileScores,
    ScaledScores,
    TopResponse,
)

RATE = 2.0 * math.log(4.0)  # epsilon of the second vector: lambda = ln 4
SCORES = [4.0, 3.0, 1.0, 0.0]
PUBLIC = (2.0, 2.5, 1.5, 0.5)


def between_tie_rules(source: Any, epsilon: float, raw: list[float]) -> NDArray[np.float64]:
    """Laplace noise on a grid, its ties shared between the first and the last: that leaves an error of the square of a step."""
    mechanism = LaplaceNoisyMax(source, epsilon)
    turned = LaplaceNoisyMax(source.among(range(len(raw))[::-1]), epsilon).pmf(raw[::-1])[::-1]
    return np.asarray((mechanism.pmf(raw) + turned) / 2.0)


def test_vector_of_three_scores_at_a_known_rate() -> None:
    source, raw = ClippedScores((0.5, 0.5, 0.5), 1.0), [1.0, 0.5, 0.0]
    np.testing.assert_allclose(ExponentialMechanism(source, RATE).pmf(raw), [4 / 7, 2 / 7, 1 / 7], atol=1e-12)
    np.testing.assert_allclose(PermuteAndFlip(source, RATE).pmf(raw), [2 / 3, 11 / 48, 5 / 48], atol=1e-12)
    fine = ClippedScores((0.5, 0.5, 0.5), 1.0, steps=1 << 13)
    np.testing.assert_allclose(between_tie_rules(fine, RATE, raw), [0.58357657, 0.28456006, 0.13186337], atol=1e-8)


def test_vector_of_scaled_scores() -> None:
    source, epsilon = ScaledScores(4), 2.0 * math.log(2.0)
    assert (source.integers(SCORES) / source.steps).tolist() == [1.0, 0.75, 0.25, 0.0]
    np.testing.assert_allclose(
        ExponentialMechanism(source, epsilon).pmf(SCORES), [0.34065747, 0.28645765, 0.20255614, 0.17032874], atol=1e-8
    )
    np.testing.assert_allclose(
        PermuteAndFlip(source, epsilon).pmf(SCORES), [0.37566668, 0.28787351, 0.18525148, 0.15120834], atol=1e-8
    )
    np.testing.assert_allclose(
        between_tie_rules(ScaledScores(4, steps=1 << 13), epsilon, SCORES),
        [0.35407457, 0.29094950, 0.19506669, 0.15990924],
        atol=1e-8,
    )


def test_vector_of_clipped_scores_and_its_true_epsilon() -> None:
    source = ClippedScores(PUBLIC, 2.0)
    gumbel, flip = ExponentialMechanism(source, 2.0), PermuteAndFlip(source, 2.0)
    np.testing.assert_allclose(gumbel.pmf(SCORES), [0.38594994, 0.38594994, 0.14198305, 0.08611707], atol=1e-8)
    np.testing.assert_allclose(flip.pmf(SCORES), [0.40833882, 0.40833882, 0.11578606, 0.06753630], atol=1e-8)
    corners = extreme(source)
    assert exact.worst_loss([gumbel.pmf(raw) for raw in corners]) == pytest.approx(1.70507162, abs=5e-9)
    assert exact.worst_loss([flip.pmf(raw) for raw in corners]) == pytest.approx(2.0, abs=1e-9)


def extreme(source: Any) -> list[NDArray[np.float64]]:
    """The 2k extreme corners: one candidate at an edge of its box, all others at the other edge."""
    k = len(source.lows)
    low = np.array(source.centres) - source.width / 2.0 if isinstance(source, ClippedScores) else np.zeros(k)
    width = source.width if isinstance(source, ClippedScores) else 1.0
    own = np.eye(k) * width
    return [*(low + own), *(low + width - own)]


def every_mechanism(k: int, epsilon: float) -> list[tuple[Any, list[NDArray[np.float64]]]]:
    rng = np.random.default_rng(k)
    spread, near = (tuple(rng.uniform(0.0, reach, k)) for reach in (1.3, 0.5))
    floors = tuple(int(share * 2**32 * math.exp(-epsilon / 2.0)) for share in rng.dirichlet(np.full(k, 5.0)))
    corners = [*np.eye(k), *(1.0 - np.eye(k))]
    found: list[tuple[Any, Any]] = [(TopResponse(k, d, epsilon), corners) for d in (1, 2, k - 1, k)]
    found.append((Envelope(floors, epsilon), corners))
    for steps, kind, more in (
        (1 << 20, ExponentialMechanism, {}),
        (1 << 20, PermuteAndFlip, {}),
        (1 << 20, ExponentialMechanism, {"calibrated": True}),
        (1 << 20, PermuteAndFlip, {"calibrated": True}),
        (2, LaplaceNoisyMax, {}),  # its law is a sum over the grid
    ):
        boxed = (ScaledScores(k, steps=steps), ClippedScores(spread, 1.0, steps), ClippedScores(near, 1.0, steps))
        found += [(kind(source, epsilon, **more), extreme(source)) for source in boxed]
    if k == 3 and epsilon == 2.5:
        rules = [
            TopResponse(k, 1, epsilon),
            *(PermuteAndFlip(ClippedScores(near, 1.0), epsilon, calibrated=c) for c in (False, True)),
        ]
        found += [(Peeling(rule, 2), corners) for rule in [*rules, ExponentialMechanism(ScaledScores(k), epsilon)]]
    return found


@pytest.mark.parametrize("epsilon", [0.5, 2.5, 8.0])
@pytest.mark.parametrize("k", [3, 15])
def test_no_pair_of_profiles_is_told_apart_by_more_than_epsilon(k: int, epsilon: float) -> None:
    """300 random pairs, drawn wide, narrow and at the edges, and all pairs of the 2k extreme corners."""
    rng = np.random.default_rng(17 * k)
    pairs = 300
    kinds = [
        lambda: rng.normal(size=(pairs, k)) * 3.0,
        lambda: rng.uniform(-0.6, 1.9, (pairs, k)),
        lambda: rng.choice([-9.0, 0.0, 0.5, 1.0, 9.0], (pairs, k)),
    ]
    for mechanism, corners in every_mechanism(k, epsilon):
        claim = mechanism.guarantee.epsilon
        assert exact.worst_loss([mechanism.pmf(raw) for raw in corners]) <= claim + 1e-9
        here, there = (laws(mechanism, np.concatenate([kind()[: pairs // 3] for kind in kinds])) for _ in range(2))
        assert len(here) == pairs
        assert np.abs(np.log(here / there)).max() <= claim + 1e-9, mechanism


def laws(mechanism: Any, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([mechanism.pmf(row) for row in rows]) if isinstance(mechanism, Peeling) else mechanism.pmf(rows)


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [(ExponentialMechanism, 4.375, 4.385), (PermuteAndFlip, 4.675, 4.685), (LaplaceNoisyMax, 4.545, 4.555)],
)
@pytest.mark.parametrize("clipped", [False, True])
def test_half_the_noise_loses_nearly_twice_as_much(kind: Any, low: float, high: float, clipped: bool) -> None:
    """At lambda = epsilon / width = 2.5 with 15 candidates in [0, 1]: why the scale is twice the width over epsilon."""
    steps = 512 if kind is LaplaceNoisyMax else 64  # the figure is that of Laplace noise without a grid
    source: Any = ClippedScores((0.5,) * 15, 1.0, steps=steps) if clipped else ScaledScores(15, steps=steps)
    corners = extreme(source)[::15]  # one candidate, both ways
    loss = exact.worst_loss([kind(source, 5.0).pmf(raw) for raw in corners])
    assert low <= loss <= high
    assert exact.worst_loss([kind(source, 2.5).pmf(raw) for raw in corners]) <= 2.5


def test_one_draw_for_all_slots_loses_more_than_it_says() -> None:
    boxes = ClippedScores((0.5,) * 5, 1.0, steps=1)
    inputs = domains.score_box(5, steps=1)
    one_shot = Peeling(ExponentialMechanism(boxes, 9.0), 3)  # each pick at the rate of epsilon = 3: one Gumbel draw
    assert exact.worst_loss([one_shot.pmf(raw) for raw in inputs]) == pytest.approx(4.67, abs=0.01)
    assert exact.worst_loss([Peeling(ExponentialMechanism(boxes, 3.0), 3).pmf(raw) for raw in inputs]) <= 3.0


def test_scaled_scores_have_the_law_of_profile_scores_at_the_corners() -> None:
    for kind in (ExponentialMechanism, PermuteAndFlip, LaplaceNoisyMax):
        scaled, plain = kind(ScaledScores(3, steps=8), 2.0), kind(ProfileScores(0.0, 1.0, steps=8), 2.0)
        for raw in extreme(ScaledScores(3)):
            np.testing.assert_allclose(scaled.pmf(raw), plain.pmf(raw), rtol=1e-12)


@pytest.mark.parametrize(("answers", "right"), [(1, 0.731), (10, 0.935), (30, 0.996)])
def test_what_a_repeated_pair_tells_over_a_life(answers: int, right: float) -> None:
    """The figures of the proof page: the majority of so many answers at epsilon = 1 names the preferred of two."""
    chance = float(TopResponse(2, 1, 1.0).pmf([1.0, 0.0])[0])
    law = [math.comb(answers, n) * chance**n * (1.0 - chance) ** (answers - n) for n in range(answers + 1)]
    named = sum(p * (1.0 if 2 * n > answers else 0.5 if 2 * n == answers else 0.0) for n, p in enumerate(law))
    assert named == pytest.approx(right, abs=5e-4)
