"""How near rr(m), with m chosen on public data, comes to the best of all locally private rules, which a linear program finds.

Rule and program see the same draws of the prior, so that neither is favoured. Where candidates differ in spread, share a taste or
are alike, the program earns more; with few draws a part of that is luck that only the program can use, and fresh draws show it.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part, Progress, untold
from tacit.evaluation.private_selection import further_reference
from tacit.evaluation.private_selection.envelope_optimum import best_envelope, envelope_scores
from tacit.evaluation.private_selection.many_equal import best_d, largest_of_bernoulli
from tacit.evaluation.private_selection.priors import ALIKE, BERNOULLI, EQUAL, FEW, UNSUITED, auction_draws, equal_items
from tacit.evaluation.private_selection.worlds import SHAPES, simulated
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import mean

Floats = NDArray[np.float64]

SHARE: Final = "share of the optimum"
WORST: Final = "share of the optimum, worst instance"
MADE: Final = "expected score on the draws it was made from"
FRESH: Final = "expected score"
OURS = "tacit"
EPSILONS = (1.0, 3.0, 5.0)
NEAR = 0.9999
_FRESH = 20_000


class Size(NamedTuple):
    """How many auctions of a simulated world with so many draws, and how many instances of each other prior."""

    auctions: dict[int, int]
    instances: int


_SIZES = {
    Effort.QUICK: Size({FEW: 6}, 6),
    Effort.DEFAULT: Size({FEW: 100, 640: 20}, 12),
    Effort.FULL: Size({FEW: 100, 640: 30}, 30),
}


class Answered(NamedTuple):
    """The best of rr(m, d) on draws."""

    m: int
    d: int
    value: float


def best_response(draws: Floats, epsilon: float, most_d: int = 1) -> Answered:
    """The largest V(m, d) = [sum of m means + (e^epsilon - 1) E(sum of the d largest of m)] / (d e^epsilon + m - d)."""
    total, rise = np.cumsum(draws.mean(axis=0)), float(np.expm1(epsilon))
    best = Answered(1, 1, float(total[0]))
    for m in range(2, total.size + 1):
        falling = -np.sort(-draws[:, :m], axis=1)
        largest = np.cumsum(falling.mean(axis=0))[: min(most_d, m)]
        values = (total[m - 1] + rise * largest) / (np.arange(1, largest.size + 1) * rise + m)
        if values.max() > best.value:
            best = Answered(m, int(values.argmax()) + 1, float(values.max()))
    return best


def plain_response(draws: Floats, epsilon: float) -> float:
    """rr over all candidates."""
    rise = float(np.expm1(epsilon))
    return float((draws.mean(axis=0).sum() + rise * draws.max(axis=1).mean()) / (rise + draws.shape[1]))


def shares(instances: list[Floats], epsilon: float) -> Iterator[tuple[str, float, float]]:
    """(rule, share of the optimum over all instances, in the worst of them)."""
    earned: dict[str, list[float]] = {"rr(m)": [], "rr(m, d)": [], "rr": [], "public": []}
    optimum = []
    for draws in instances:
        optimum.append(best_envelope(draws, epsilon).value)
        earned["rr(m)"].append(best_response(draws, epsilon).value)
        earned["rr(m, d)"].append(best_response(draws, epsilon, draws.shape[1]).value)
        earned["rr"].append(plain_response(draws, epsilon))
        earned["public"].append(float(draws[:, 0].mean()))
    for rule, values in earned.items():
        yield rule, sum(values) / sum(optimum), float(np.min(np.divide(values, optimum)))


def run(effort: Effort = Effort.DEFAULT, *, seed: int = 0, progress: Progress = untold) -> Part:
    """Shares of the optimum in the simulated worlds and with priors that rr(m) does not suit."""
    rows: list[Row] = []
    size = _SIZES[effort]
    done, total = 0, 2 * len(SHAPES) * len(size.auctions) + len(UNSUITED)
    for draws, auctions in size.auctions.items():
        for name in SHAPES:
            world = simulated(name, auctions, rng=np.random.default_rng([seed, 40]))
            for score in ("value", "clicks"):
                progress("the optimum", done, total)
                rng = np.random.default_rng([seed, 41])
                clicks = score == "clicks"
                rows += _rows(
                    f"{name}, {score}",
                    [auction_draws(world, one, draws, clicks=clicks, rng=rng) for one in range(auctions)],
                )
                done += 1
    for name, draw in UNSUITED.items():
        progress("the optimum", done, total)
        rng = np.random.default_rng([seed, 42])
        rows += _rows(name, [draw(rng) for _ in range(size.instances)])
        done += 1
    rows += _fresh(size.instances, np.random.default_rng([seed, 43]))
    rows += further_reference.optimum(SHARE, EQUAL, FEW)
    progress("the optimum", total, total)
    notes = (
        "The optimum: a share is the sum over auctions or instances over that of the optimum, both on the same draws of the prior. "
        f"With {FEW} draws the program can use the luck of the draws, rr(m) hardly; with many draws that goes away.",
        "The optimum: the other priors' means, loadings and spreads are choices, so the shares there are examples.",
    )
    return Part(tuple(rows), tuple(_claims(rows, max(size.auctions))), notes)


def _rows(prior: str, instances: list[Floats]) -> Iterator[Row]:
    for epsilon in EPSILONS:
        setting: dict[str, int | float | str] = {"prior": prior, "epsilon": epsilon, "draws": len(instances[0])}
        for rule, share, worst in shares(instances, epsilon):
            yield Row(rule, setting, SHARE, share, n=len(instances))
            if rule == "rr(m)":
                yield Row(rule, setting, WORST, worst, n=len(instances))


def _fresh(instances: int, rng: np.random.Generator) -> Iterator[Row]:
    """Equal items: what the program's floors earn on draws that it has not seen, beside the exact optimum, which is rr's best d."""
    fresh = np.asarray(rng.random((_FRESH, ALIKE)) < BERNOULLI, dtype=np.float64)
    for epsilon in EPSILONS:
        setting: dict[str, int | float | str] = {"prior": EQUAL, "epsilon": epsilon, "draws": FEW}
        found = [best_envelope(equal_items(rng), epsilon) for _ in range(instances)]
        on_fresh = np.array([float(envelope_scores(fresh, one.floors, epsilon).mean()) for one in found])
        yield Row.of("envelope", MADE, mean(np.array([one.value for one in found])), **setting)
        yield Row.of("envelope", FRESH, mean(on_fresh), **setting)
        yield Row("rr(m, d)", setting, FRESH, best_d(largest_of_bernoulli(ALIKE, BERNOULLI), epsilon).value)


def _claims(rows: list[Row], most: int) -> Iterator[Claim]:
    def of(metric: str, method: str, prior: str, draws: int = FEW) -> dict[float, float]:
        return {
            float(row.setting["epsilon"]): row.value
            for row in rows
            if (row.metric, row.method, row.setting["prior"], row.setting["draws"]) == (metric, method, prior, draws)
        }

    found = {
        prior: of(SHARE, "rr(m)", prior, most)
        for prior in [f"{name}, {score}" for name in SHAPES for score in ("value", "clicks")]
    }
    told = "; ".join(f"{prior}: " + ", ".join(f"{share:.3%}" for share in one.values()) for prior, one in found.items())
    yield Claim(
        OURS,
        f"rr(m) reaches {NEAR:.2%} of the best private rule in the simulated worlds at epsilon 1, 3 and 5",
        all(share >= NEAR for one in found.values() for share in one.values()),
        f"with {most} draws, {told}",
    )
    for prior in UNSUITED:
        worst = of(WORST, "rr(m)", prior)
        yield Claim(
            OURS,
            f"rr(m) reaches {NEAR:.2%} of the best private rule with {prior}",
            min(worst.values()) >= NEAR,
            "worst instance " + ", ".join(f"{share:.1%} at epsilon {epsilon:g}" for epsilon, share in worst.items()),
        )
    learned, exact = of(FRESH, "envelope", EQUAL), of(FRESH, "rr(m, d)", EQUAL)
    yield Claim(
        OURS,
        f"floors fitted to {FEW} draws of equal items earn less on fresh draws than the best d of rr",
        all(learned[epsilon] < exact[epsilon] for epsilon in EPSILONS),
        "; ".join(f"epsilon {epsilon:g}: {learned[epsilon]:.3f} against {exact[epsilon]:.3f}" for epsilon in EPSILONS),
    )
