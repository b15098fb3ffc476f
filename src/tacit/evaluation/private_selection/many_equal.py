"""Many items equally good and nothing public to tell them apart: when answering with the d best, not the best, pays.

Scores of k items are independent draws of one law, so every public score is the same. Then the floors of the best envelope are all
alike (a mean over all orders of the items is no worse), its value is linear in the floor between the points where exactly d items
are raised, and so `rr` with the best d is the best of all epsilon-private rules: no linear program is needed.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part, Progress, untold
from tacit.evaluation.private_selection import further_reference
from tacit.evaluation.private_selection.selection_laws import permute_and_flip, scaled
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import Estimate, mean

Floats = NDArray[np.float64]

METRIC: Final = "expected score"
OURS = "tacit"
EPSILONS = (1.0, 3.0, 5.0)
BERNOULLI = ((0.1, 15), (0.1, 100), (0.9, 100))  # probability of a 1, number of items
UNIFORM = (15, 100)
NEAR = 0.004  # the reference is a mean over 100 drawn sets of scores
_SETS = {Effort.QUICK: 1_000, Effort.DEFAULT: 10_000, Effort.FULL: 40_000}  # of uniform scores, for permute-and-flip


class Best(NamedTuple):
    d: int
    value: float


def largest_of_bernoulli(k: int, share: float) -> Floats:
    """E(sum of the d largest of k Bernoulli scores) = E min(d, B), B binomial, for d = 1 .. k."""
    ones = np.arange(k + 1)
    return np.asarray(np.minimum(ones, np.arange(1, k + 1)[:, None]) @ binom.pmf(ones, k, share), dtype=np.float64)


def largest_of_uniform(k: int) -> Floats:
    """E(sum of the d largest of k uniform scores): the j-th largest is (k + 1 - j)/(k + 1) in expectation."""
    return np.asarray(np.cumsum(np.arange(k, 0, -1)) / (k + 1.0), dtype=np.float64)


def response_values(largest: Floats, epsilon: float) -> Floats:
    """The expected score of rr(k, d) for d = 1 .. k, from the expected sums of the d largest; the last is the sum of all."""
    k, rise = largest.size, float(np.expm1(epsilon))
    d = np.arange(1, k + 1)
    return np.asarray((largest[-1] + rise * largest) / (d * rise + k), dtype=np.float64)


def best_d(largest: Floats, epsilon: float) -> Best:
    values = response_values(largest, epsilon)
    return Best(int(values.argmax()) + 1, float(values.max()))


def flip_of_bernoulli(k: int, share: float, epsilon: float) -> float:
    """Permute-and-flip on scaled scores, exactly: only the number of ones matters."""
    ones = np.arange(k + 1)
    scores = (np.arange(k) < ones[:, None]).astype(np.float64)
    value = (permute_and_flip(scaled(scores), epsilon / 2.0) * scores).sum(axis=1)
    return float(value @ binom.pmf(ones, k, share))


def flip_of_uniform(k: int, epsilon: float, sets: int, *, rng: np.random.Generator) -> Estimate:
    """Permute-and-flip on scaled scores: the law is in closed form, the scores are drawn."""
    scores = rng.random((sets, k))
    return mean((permute_and_flip(scaled(scores), epsilon / 2.0) * scores).sum(axis=1))


def run(effort: Effort = Effort.DEFAULT, *, seed: int = 0, progress: Progress = untold) -> Part:
    """The expected scores of `rr`, `pf` on scaled scores, and `rr` with the best d."""
    rng = np.random.default_rng([seed, 5])
    rows: list[Row] = []
    for done, epsilon in enumerate(EPSILONS):
        progress("many equal items", done, len(EPSILONS))
        for share, k in BERNOULLI:
            law = f"Bernoulli({share:g})"
            rows += _responses(law, k, largest_of_bernoulli(k, share), epsilon)
            rows.append(Row("pf", _setting(law, k, epsilon), METRIC, flip_of_bernoulli(k, share, epsilon)))
        for k in UNIFORM:
            rows += _responses("uniform", k, largest_of_uniform(k), epsilon)
            found = flip_of_uniform(k, epsilon, _SETS[effort], rng=rng)
            rows.append(Row.of("pf", METRIC, found, **_setting("uniform", k, epsilon)))
    rows += further_reference.many_equal(METRIC)
    progress("many equal items", len(EPSILONS), len(EPSILONS))
    return Part(
        tuple(rows),
        (_claim(rows), further_reference.agreement("many equal items", rows, METRIC, NEAR)),
        (
            "Many equal items: every figure is an exact expectation, except pf on uniform scores, whose scores are drawn.",
        ),
    )


def _responses(law: str, k: int, largest: Floats, epsilon: float) -> list[Row]:
    best = best_d(largest, epsilon)
    setting = _setting(law, k, epsilon)
    return [
        Row("uniform", setting, METRIC, float(largest[-1]) / k),
        Row("rr", setting, METRIC, float(response_values(largest, epsilon)[0])),
        Row("rr, best d", setting, METRIC, best.value),
        Row("rr, best d", setting, "d", float(best.d)),
        Row("greedy", setting, METRIC, float(largest[0])),
    ]


def _setting(law: str, k: int, epsilon: float) -> dict[str, int | float | str]:
    return {"scores": law, "k": k, "epsilon": epsilon}


def _claim(rows: list[Row]) -> Claim:
    """Where k = 100 and epsilon = 3, against the better of rr and pf."""
    found = {
        (row.method, str(row.setting["scores"])): row.value
        for row in rows
        if row.metric == METRIC and (row.setting["k"], row.setting["epsilon"]) == (100, 3.0)
    }
    laws = dict.fromkeys(law for _, law in found)
    gains = {law: found["rr, best d", law] - max(found["rr", law], found["pf", law]) for law in laws}
    told = "; ".join(
        f"{law}: rr {found['rr', law]:.3f}, pf {found['pf', law]:.3f}, best d {found['rr, best d', law]:.3f}"
        for law in laws
    )
    statement = "the best d earns more than rr and pf where many items are equally good (k = 100, epsilon = 3)"
    return Claim(OURS, statement, min(gains.values()) > 0.0, told)
