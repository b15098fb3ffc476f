"""Figure 10: randomised response against scaled noisy max on synthetic scores, uniform or 0/1, 15 or 100 candidates."""

from collections.abc import Iterator

import numpy as np

from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part, Progress, untold
from tacit.evaluation.private_selection import paper, reference
from tacit.evaluation.private_selection.rules import PF_SCALED, RR, Scored, rr, scaled_noise
from tacit.evaluation.private_selection.selection_laws import Floats
from tacit.evaluation.result import Claim, Row, Setting
from tacit.evaluation.statistics import Estimate, difference, mean

UNIFORM, BERNOULLI = "uniform", "Bernoulli(0.9)"
SIZES = (15, 100)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
METRIC, SPREAD = "expected score", "expected score, spread over sets"
PAPERS_SETS = 100
_SETS = {Effort.QUICK: 500, Effort.DEFAULT: 2000, Effort.FULL: 8000}
_RULES = {RR: rr, PF_SCALED: scaled_noise}
_NEAR = 0.006  # reference figures have three decimals


def run(effort: Effort, *, seed: int = 1, progress: Progress = untold) -> Part:
    """Means over many sets of scores, and the spread from set to set, which is what the paper shades."""
    found: dict[tuple[str, str, int, float], Floats] = {}
    for place, (law, size) in enumerate((law, size) for law in (UNIFORM, BERNOULLI) for size in SIZES):
        progress("synthetic scores", place, 4)
        rng = np.random.default_rng([seed, 40, place])
        drawn = rng.random((_SETS[effort], size))
        scores = drawn if law == UNIFORM else (drawn < 0.9).astype(np.float64)
        scored = Scored(scores, np.zeros_like(scores), np.ones(scores.shape, dtype=np.bool_))
        for name, rule in _RULES.items():
            for epsilon in EPSILONS:
                found[name, law, size, epsilon] = (rule(scored, epsilon) * scores).sum(axis=1)
    rows = []
    for (name, law, size, epsilon), values in found.items():
        setting: Setting = {"scores": law, "k": size, "epsilon": epsilon}
        rows.append(Row.of(name, METRIC, mean(values), **setting))
        rows.append(Row(name, setting, SPREAD, float(values.std(ddof=1)), n=values.size))
        expected = reference.SYNTHETIC.get((name, law, size, epsilon))
        if expected is not None:
            rows.append(Row(reference.PREFIX + name, setting, METRIC, expected))
    notes = (f"Synthetic scores: {_SETS[effort]:,} sets instead of the paper's {PAPERS_SETS}, for smaller errors.",)
    return Part(tuple(rows), tuple(_claims(found)), notes)


def _claims(found: dict[tuple[str, str, int, float], Floats]) -> Iterator[Claim]:
    def gap(law: str, size: int, epsilon: float) -> Estimate:
        return difference(found[RR, law, size, epsilon], found[PF_SCALED, law, size, epsilon])

    gaps = {epsilon: gap(UNIFORM, 15, epsilon) for epsilon in EPSILONS}
    yield Claim(
        paper.NAME,
        "uniform scores of 15: rr is ahead of scaled noisy max at every epsilon",
        all(one.above(0.0) for one in gaps.values()),
        ", ".join(f"epsilon {epsilon:g}: {one}" for epsilon, one in gaps.items()),
    )
    small = {epsilon: gap(BERNOULLI, 15, epsilon) for epsilon in EPSILONS if epsilon <= 1.0}
    yield Claim(
        paper.NAME,
        "0/1 scores of 15: scaled noisy max is ahead of rr at small epsilon (up to 1)",
        all(one.below(0.0) for one in small.values()),
        ", ".join(f"epsilon {epsilon:g}: {one}" for epsilon, one in small.items()),
    )
    shrinks = {
        (law, epsilon): (gap(law, 15, epsilon), gap(law, 100, epsilon))
        for law in (UNIFORM, BERNOULLI)
        for epsilon in (1.0, 3.0, 5.0)
    }
    yield Claim(
        paper.NAME,
        "with 100 instead of 15 candidates rr loses against scaled noisy max",
        all(
            few.value - many.value > 2 * np.hypot(few.stderr, many.stderr)
            for (_, epsilon), (few, many) in shrinks.items()
            if epsilon >= 3.0
        ),
        "rr less noisy max, 15 and 100: "
        + "; ".join(f"{law} {e:g}: {few.value:+.4f}, {many.value:+.4f}" for (law, e), (few, many) in shrinks.items())
        + " (decided at epsilon 3 and 5)",
    )
    apart = {key: (float(found[key].mean()), expected) for key, expected in reference.SYNTHETIC.items()}
    yield Claim(
        reference.NAME,
        f"synthetic scores: expected scores agree within {_NEAR:g}",
        all(abs(one - expected) <= _NEAR for one, expected in apart.values()),
        "; ".join(f"{' '.join(map(str, key))}: {one:.3f} for {expected:.3f}" for key, (one, expected) in apart.items()),
    )
