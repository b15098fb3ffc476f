"""Tempered slates up to the limit of floats: the expected score never falls as theta rises, nor exceeds what any slate can have.

Expectations are from the sampler's own marginals, so what is tested is the sampler and not luck.
"""

from collections.abc import Iterator

import numpy as np

from tacit.evaluation.part import Part
from tacit.evaluation.private_slates import names, paper
from tacit.evaluation.private_slates.drawn import high
from tacit.evaluation.private_slates.films import Films, Floats, Items
from tacit.evaluation.private_slates.tries import K
from tacit.evaluation.result import Claim, Row
from tacit.models.dpp.tempered import MOST_NATS, TemperedSampler

NATS = (0.0, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0, 25.0, 30.0, 35.0, MOST_NATS)
SCORE = "expected score"  # sum of the slate's likes, as a share of the best slate that can be drawn
SLOPE = "mean score between"  # from the normalisers of this and the last theta: another way to the same
ROUNDING = 1e-9


def stability(films: Films) -> Part:
    scores = np.minimum(films.counts, high(films)).astype(np.float64)
    best = float(scores[best_independent(films.genres, scores, K)].sum())
    expected, slopes = path(films.genres, scores, high(films), best)
    rows = [Row(names.TEMPERED, {"nats": nats}, SCORE, share) for nats, share in zip(NATS, expected, strict=True)]
    rows += [Row(names.TEMPERED, {"nats": nats}, SLOPE, share) for nats, share in zip(NATS[1:], slopes, strict=True)]
    return Part(tuple(rows), tuple(claims(expected, slopes)))


def path(features: Floats, scores: Floats, top: float, best: float, k: int = K) -> tuple[Floats, Floats]:
    """E[sum of scores] / best at every theta; and between neighbouring thetas its mean, (log Z' - log Z) / (theta' - theta)."""
    found = [TemperedSampler(features, nats / top * scores, k) for nats in NATS]
    expected = np.array([float(one.marginals @ scores) for one in found]) / best
    logs = np.array([one.log_normaliser for one in found])
    return expected, np.diff(logs) / (np.diff(NATS) / top) / best


def best_independent(features: Floats, scores: Floats, k: int) -> Items:
    """The k items of the largest total score whose features are linearly independent: greedy finds it, by falling score."""
    chosen: list[int] = []
    for item in np.argsort(-scores, kind="stable"):
        if np.linalg.matrix_rank(features[[*chosen, item]]) == len(chosen) + 1:
            chosen.append(int(item))
        if len(chosen) == k:
            break
    return np.array(chosen, dtype=np.int64)


def claims(expected: Floats, slopes: Floats) -> Iterator[Claim]:
    steps = np.diff(expected)
    yield Claim(
        paper.OURS,
        f"the expected score of tempered slates never falls as theta rises, up to {MOST_NATS:g} nats",
        bool((steps >= -ROUNDING).all() and (np.diff(slopes) >= -ROUNDING).all()),
        f"of the best slate: {', '.join(f'{share:.4f}' for share in expected)}; smallest step {steps.min():.2g}",
    )
    yield Claim(
        paper.OURS,
        "nor does it exceed the best slate of films whose genres are linearly independent",
        bool(max(expected.max(), slopes.max()) <= 1.0 + ROUNDING),
        f"largest share {expected.max():.6f} by marginals, {slopes.max():.6f} by normalisers",
    )
    between = bool(((slopes >= expected[:-1] - ROUNDING) & (slopes <= expected[1:] + ROUNDING)).all())
    yield Claim(
        paper.OURS,
        "normalisers and marginals of the tempered sampler agree: each slope lies between the scores at its ends",
        between,
        f"{len(slopes)} stretches from 0 to {MOST_NATS:g} nats",
    )
