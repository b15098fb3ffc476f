"""Diversified multi-selection: the determinant as an alternative to the greedy choice of the best pick, on the same signals.

A held-out user, a signal by the real mechanism, slates by the real server, a pick by the real device: the trials of
multi-selection, with `exact` as the yardstick. Differences are taken trial by trial.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.effort import Effort
from tacit.evaluation.multi_selection.fitting import trained
from tacit.evaluation.multi_selection.population import population
from tacit.evaluation.multi_selection.trials import Bench, bench, coins, pick, signal_of
from tacit.evaluation.part import Part, Progress
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import Verdict, below, difference, mean
from tacit.server.multi_selection import Algorithm, AnswerSettings, Guess, LocalModel, choose_slate, class_vectors

Floats = NDArray[np.float64]

DATA = "movielens-small"
SIZES = (5, 10)
ALPHAS = (1.0, 3.0, 10.0, 30.0)
DRAWN_ALPHA = 40.0
MIDDLE = 3.0  # the default alpha: the claims are about it
KEPT = "utility kept"  # of the best item of the slate / of the best of all
PICKED = "utility picked"  # the same of the item that the device picks by the local model
ALL = "utility of all"  # the same of all items of the slate, on average
APART = "genre diversity"  # 1 - mean cosine of the genres of two items of the slate
METRICS = (KEPT, PICKED, ALL, APART)
_ETAS = {Effort.QUICK: (0.1,), Effort.DEFAULT: (0.05, 0.1, 0.2), Effort.FULL: (0.05, 0.1, 0.2)}
_TRIALS = {Effort.QUICK: 60, Effort.DEFAULT: 300, Effort.FULL: 1000}
OURS = "tacit"


@dataclass(frozen=True, slots=True)
class Method:
    """One way to choose; ``nested``: the first items of a long slate are the shorter slate."""

    name: str
    settings: AnswerSettings
    nested: bool = True

    @property
    def setting(self) -> dict[str, float]:
        return {"alpha": self.settings.alpha} if self.settings.algorithm is Algorithm.DPP else {}


class Case(NamedTuple):
    method: str
    alpha: float  # 0 where there is none
    eta: float
    k: int


Found = dict[tuple[Case, str], Floats]  # by case and metric: one value for each trial


def methods(r: int) -> list[Method]:
    plain = AnswerSettings(local_model=LocalModel.RIDGE, r=r)
    averaged, dpp = replace(plain, algorithm=Algorithm.AVG_REALUSER), replace(plain, algorithm=Algorithm.DPP)
    return [
        Method("exact", plain),
        Method("avg-realuser", averaged),
        *(Method("dpp", replace(dpp, alpha=alpha)) for alpha in ALPHAS),
        Method("dpp, drawn", replace(dpp, alpha=DRAWN_ALPHA, sampled=True), nested=False),
    ]


def run(effort: Effort, *, seed: int, progress: Progress, data: str = DATA) -> Part:
    """All methods on the same users and signals; needs the extra `train`."""
    effort = Effort(effort)
    people = population(data, rng=np.random.default_rng([seed, 10]))
    rng = np.random.default_rng([seed, 11])
    fitted = trained(people, rng=rng, progress=lambda *done: progress("training", *done))
    at = bench(fitted.store, people.features[people.held_out], _TRIALS[effort], seed=seed)
    etas = _ETAS[effort]
    found = tried(at, methods(at.tables.r), etas, progress)
    return Part(tuple(rows(found, at.users)), tuple(claims(found, at.users, etas)), _notes(len(at.users)))


def tried(at: Bench, ways: list[Method], etas: tuple[float, ...], progress: Progress) -> Found:
    """Every metric of every case, trial by trial."""
    values: dict[tuple[Case, str], list[float]] = defaultdict(list)
    vectors = class_vectors(at.scorer)
    for trial in range(len(at.users)):
        progress("diversified multi-selection", trial, len(at.users))
        for eta in etas:
            signal = signal_of(at, trial, eta)
            for way in ways:
                for k, items, guess in _slates(at, way, trial, eta, signal):
                    case = Case(way.name, way.setting.get("alpha", 0.0), eta, k)
                    for metric, value in measured(at, vectors, int(at.users[trial]), items, guess).items():
                        values[case, metric].append(value)
    return {key: np.array(one) for key, one in values.items()}


def _slates(
    at: Bench, way: Method, trial: int, eta: float, signal: Floats
) -> Iterator[tuple[int, NDArray[np.int64], Guess]]:
    longest: NDArray[np.int64] | None = None
    for k in reversed(SIZES):
        rng = coins(at.seed, trial, eta)
        guess = Guess(way.settings, at.scorer, at.tables, signal, eta, at.work, rng, at.store.space.inside)
        if longest is None or not way.nested:
            longest = choose_slate(guess, k, 1)
        yield k, longest[:k], guess


def measured(at: Bench, vectors: Floats, user: int, items: NDArray[np.int64], guess: Guess) -> dict[str, float]:
    """What one slate is worth to one user, as shares of her best item; and how different its genres are."""
    classes = at.scorer.classes.of[items]
    utilities = at.truth[user][classes].astype(np.float64)
    best = float(at.truth[user].max())
    cosines = vectors[classes] @ vectors[classes].T
    pairs = len(items) * (len(items) - 1)
    return {
        KEPT: float(utilities.max()) / best,
        PICKED: float(utilities[pick(guess, items, at.features[user])]) / best,
        ALL: float(utilities.mean()) / best,
        APART: 1.0 - float(cosines.sum() - np.trace(cosines)) / pairs if pairs else 0.0,
    }


def rows(found: Found, users: NDArray[np.int64]) -> Iterator[Row]:
    """The means, and the differences from `exact` at the same eta and k, trial by trial."""
    for (case, metric), values in found.items():
        setting = _setting(case)
        yield Row.of(case.method, metric, mean(values, users), **setting)
        if case.method != "exact":
            apart = difference(values, found[_exact(case), metric], users)
            yield Row.of(case.method, f"{metric}, less exact", apart, **setting)


def claims(found: Found, users: NDArray[np.int64], etas: tuple[float, ...]) -> Iterator[Claim]:
    def versus(metric: str, k: int, one: str, other: str) -> Verdict:
        """Whether ``one`` is below ``other``, over all eta."""
        alphas = {"dpp": MIDDLE}
        at = {
            f"eta={eta:g}": (
                found[Case(one, alphas.get(one, 0.0), eta, k), metric],
                found[Case(other, alphas.get(other, 0.0), eta, k), metric],
            )
            for eta in etas
        }
        return below(at, users)

    stated = (
        ("dpp keeps less of the best pick than exact", KEPT, "dpp", "exact"),
        ("slates of exact are worth less on average than those of dpp", ALL, "exact", "dpp"),
        ("slates of exact are less diverse than those of dpp", APART, "exact", "dpp"),
        ("slates of avg-realuser are less diverse than those of dpp", APART, "avg-realuser", "dpp"),
        ("avg-realuser keeps less of the best pick than dpp", KEPT, "avg-realuser", "dpp"),
    )
    for statement, metric, one, other in stated:
        for k in SIZES:
            verdict = versus(metric, k, one, other)
            yield Claim(OURS, f"{statement} at alpha={MIDDLE:g}, k={k}", verdict.holds, str(verdict))


def _exact(case: Case) -> Case:
    return Case("exact", 0.0, case.eta, case.k)


def _setting(case: Case) -> dict[str, int | float | str]:
    """``part`` keeps these rows apart from those of slates that come from records."""
    setting: dict[str, int | float | str] = {"part": "multi-selection", "eta": case.eta, "k": case.k}
    return setting | ({"alpha": case.alpha} if case.alpha else {})


def _notes(trials: int) -> tuple[str, ...]:
    return (
        f"Diversified multi-selection: {trials:,} trials; the device's guarantee is that of its signal, whatever a server does "
        "with it. Differences from exact are by trial, errors clustered by user.",
        "Utilities are the model's own ratings, which many items share nearly at the top: shares of the best lie close to 1.",
    )
