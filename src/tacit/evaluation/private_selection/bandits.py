"""Beyond the paper: does optimism help? Scores by mean, upper confidence bound or Thompson sampling, under randomised response.

The paper suggests the last two as future work. A device knows its user's segment, which is private; the server learns click
counts by segment and item as noisy sums, and sends them back. A device scores 12 items by them and answers by randomised response.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part, Progress, untold
from tacit.evaluation.private_selection import paper
from tacit.evaluation.private_selection.selection_laws import Floats
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import difference, mean

ITEMS, SEGMENTS = 12, 4
ROUNDS, USERS = 40, 200  # users in a round: they see what was learned before it
EPSILONS = (3.0, 5.0, np.inf)
RULES = ("mean", "upper confidence bound", "Thompson")
METRIC = "share of the best CTR, second half"
_NOISE = 2.0  # scale of the Laplace noise on every sum of a round: two sums, at one each
_PRIOR = (1.0, 14.0)  # a click in 15, as items are on average
_SEEDS = {Effort.QUICK: 6, Effort.DEFAULT: 24, Effort.FULL: 48}


class Learned(NamedTuple):
    """Noisy sums by segment and item."""

    clicks: Floats
    shown: Floats

    @property
    def trials(self) -> Floats:
        return np.maximum(self.shown, 0.0) + sum(_PRIOR)

    @property
    def rate(self) -> Floats:
        return np.asarray(np.clip((self.clicks + _PRIOR[0]) / self.trials, 0.001, 0.999), dtype=np.float64)


def run(effort: Effort = Effort.DEFAULT, *, seed: int = 1, progress: Progress = untold) -> Part:
    """The share of the best click rate that each kind of score reaches in the second half of the rounds."""
    found: dict[tuple[str, float], Floats] = {}
    for place, epsilon in enumerate(EPSILONS):
        progress("optimism", place, len(EPSILONS))
        for rule in RULES:
            seeds = range(_SEEDS[effort])
            found[rule, epsilon] = np.array(
                [_reached(rule, epsilon, np.random.default_rng([seed, 60, one])) for one in seeds]
            )
    rows = tuple(
        Row.of(rule, METRIC, mean(values), epsilon="inf" if np.isinf(epsilon) else epsilon)
        for (rule, epsilon), values in found.items()
    )
    note = (
        "Optimism: one small world of segments; noisy sums are simulated, and their privacy is not accounted for here."
    )
    return Part(rows, tuple(_claims(found)), (note,))


def _reached(rule: str, epsilon: float, rng: np.random.Generator) -> float:
    truth = 1.0 / (1.0 + np.exp(-rng.normal(-2.8, 0.8, size=(SEGMENTS, ITEMS))))
    learned = Learned(np.zeros(truth.shape), np.zeros(truth.shape))
    got, best = 0.0, 0.0
    for turn in range(ROUNDS):
        segments = rng.integers(SEGMENTS, size=USERS)
        top = _scores(rule, learned, segments, turn, rng).argmax(axis=1)
        lie = rng.random(USERS) >= 1.0 / (1.0 + (ITEMS - 1) * np.exp(-epsilon))
        shown = np.where(lie, (top + rng.integers(1, ITEMS, size=USERS)) % ITEMS, top)
        clicked = rng.random(USERS) < truth[segments, shown]
        if turn >= ROUNDS // 2:
            got += float(truth[segments, shown].sum())
            best += float(truth[segments].max(axis=1).sum())
        cells = segments * ITEMS + shown
        counts = [np.bincount(cells, weights, minlength=truth.size) for weights in (clicked.astype(np.float64), None)]
        sums = np.reshape(counts, (2, *truth.shape)) + rng.laplace(scale=_NOISE, size=(2, *truth.shape))
        learned = Learned(learned.clicks + sums[0], learned.shown + sums[1])
    return got / best


def _scores(rule: str, learned: Learned, segments: np.ndarray, turn: int, rng: np.random.Generator) -> Floats:
    rate, trials = np.asarray(learned.rate[segments], dtype=np.float64), learned.trials[segments]
    if rule == "mean":
        return rate
    if rule == "Thompson":
        return np.asarray(rng.beta(rate * trials, (1.0 - rate) * trials), dtype=np.float64)
    return np.asarray(rate + np.sqrt(2.0 * rate * (1.0 - rate) * np.log(1.0 + turn) / trials), dtype=np.float64)


def _claims(found: dict[tuple[str, float], Floats]) -> Iterator[Claim]:
    for epsilon in EPSILONS[:-1]:
        gaps = {rule: difference(found[rule, epsilon], found["mean", epsilon]) for rule in RULES[1:]}
        yield Claim(
            paper.OURS,
            f"optimism is not shown to gain over the mean at epsilon {epsilon:g}: selection noise explores already",
            not any(gap.above(0.0) for gap in gaps.values()),
            f"mean reaches {found['mean', epsilon].mean():.3f}; "
            + ", ".join(f"{rule} {gap}" for rule, gap in gaps.items()),
        )
