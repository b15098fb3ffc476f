"""Trials: a held-out user, a signal by the real mechanism, a slate and a local model by the real server, a pick by the real device.

All algorithms see the same users and the same signals, and draw from the same coins, so that they are compared trial by trial.
Greedy slates are nested: the first k items of a large slate are the slate of size k, so one slate serves all k. Local models are
fitted for each k. Only the bytes on the wire are left out; `tacit.systems.multi_selection` has them, and gives the same picks.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.device.multi_selection import best, estimator, mechanism_of
from tacit.evaluation.multi_selection.losses import D_F, D_I, Case, Floats
from tacit.evaluation.multi_selection.plan import SIZES, Task
from tacit.evaluation.multi_selection.remembering import Remembering
from tacit.mechanisms import ReplayedNoise
from tacit.messages.multi_selection import Reply, exact_eta
from tacit.messages.store import Store
from tacit.models import loops
from tacit.models.scorers import class_scores
from tacit.models.tables import Tables, build_tables
from tacit.server.multi_selection import AnswerSettings, Guess, LocalModel, choose_slate, fit_local_model

ANY_ETA = 0.1  # where the signal is ignored


@dataclass(frozen=True, eq=False)
class Bench:
    """What trials need. ``truth`` is the judge: utilities of every class for every user who is tried."""

    store: Store
    tables: Tables
    features: Floats  # of the users who are tried
    truth: NDArray[np.float32]  # users x classes
    users: NDArray[np.int64]  # trial -> row of features and truth
    seed: int

    def __getstate__(self) -> dict[str, Any]:
        """For other processes: what was worked out along the way is worked out there again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def work(self) -> ModuleType:
        return loops.choose()

    @cached_property
    def scorer(self) -> Remembering:
        return Remembering(self.store.scorer)

    @property
    def best(self) -> Floats:
        """The best utility in each trial."""
        best: Floats = self.truth.max(axis=1)[self.users].astype(np.float64)
        return best


def bench(
    store: Store, features: Floats, trials: int, *, seed: int, tables: Tables | None = None, truth: Store | None = None
) -> Bench:
    """``trials`` users drawn with replacement from those with these features; ``truth`` judges, if not the store itself."""
    drawn = np.random.default_rng([seed, 1]).integers(len(features), size=trials)
    who, users = np.unique(drawn, return_inverse=True)
    judge = (truth or store).scorer
    if tables is None:
        tables = build_tables(store.scorer, store.look_alikes, store_version=store.version)
    return Bench(store, tables, features[who], class_scores(judge, features[who]), users.reshape(-1), seed)


def run(at: Bench, tasks: Sequence[Task], first: int, last: int) -> dict[Case, Floats]:
    """The losses of trials ``first`` to ``last`` (excluded) in every case of the tasks."""
    found: dict[Case, list[float]] = defaultdict(list)
    by_eta: dict[float | None, list[Task]] = defaultdict(list)
    for task in tasks:
        for eta in task.etas:
            by_eta[eta].append(task)
    for trial in range(first, last):
        for eta, wanted in by_eta.items():
            signal = np.zeros(at.store.space.dimension) if eta is None else signal_of(at, trial, eta)
            for task in wanted:
                if trial < task.trials:
                    _try(at, task, trial, eta, signal, found)
    return {case: np.array(values) for case, values in found.items()}


def signal_of(at: Bench, trial: int, eta: float) -> Floats:
    """What the device sends in a trial. The noise is the mechanism's own, replayed from a seed of the trial."""
    mechanism = mechanism_of(at.store.space, exact_eta(eta))
    noise = ReplayedNoise(noise_seed(at.seed, trial, eta))
    return mechanism.release(at.features[at.users[trial]], noise).value.to_floats()


def noise_seed(seed: int, trial: int, eta: float) -> int:
    return int(np.random.SeedSequence([seed, 2, trial, _millionths(eta)]).generate_state(1, np.uint64)[0])


def coins(seed: int, trial: int, eta: float) -> np.random.Generator:
    """The server's coins in a trial: the same for every algorithm."""
    return np.random.default_rng([seed, 3, trial, _millionths(eta)])


def _try(at: Bench, task: Task, trial: int, eta: float | None, signal: Floats, found: dict[Case, list[float]]) -> None:
    user = int(at.users[trial])
    scale = ANY_ETA if eta is None else eta
    settings = AnswerSettings(
        task.algorithm, LocalModel.NONE, draws=task.draws, r=at.tables.r, ignores_signal=eta is None
    )
    rng, inside = coins(at.seed, trial, scale), at.store.space.inside
    guess = Guess(settings, at.scorer, at.tables, signal, scale, at.work, rng, inside, at.store.look_alike_sizes)
    items = choose_slate(guess, task.most_k, 1)
    lost = at.truth[user].max() - at.truth[user][at.scorer.classes.of[items]].astype(np.float64)
    falling = np.minimum.accumulate(lost)
    for k in range(1, task.most_k + 1):
        case = Case(D_I, task.method, eta, k, draws=task.draws)
        found[case].append(float(falling[min(k, len(falling)) - 1]))
    after_slate = guess.rng.bit_generator.state
    for local_model in task.local_models:
        fitting = replace(guess, settings=replace(settings, local_model=local_model))
        for k in reversed(SIZES[1:]):  # the largest first: what it scores the others need too
            guess.rng.bit_generator.state = after_slate  # as if this k alone had been asked for
            place = pick(fitting, items[:k], at.features[user])
            found[Case(D_F, task.method, eta, k, local_model.value, task.draws)].append(float(lost[place]))


def pick(guess: Guess, items: NDArray[np.int64], features: Floats) -> int:
    """The place in the slate that the device picks, by the local model as it would be on the wire."""
    numbers = [int(item) for item in items]
    reply = Reply.of(numbers, len(numbers), fit_local_model(guess, items), len(features))
    return best(estimator(reply, numbers, len(features), guess.scorer)(features), 1)[0]


def _millionths(eta: float) -> int:
    return round(Fraction(repr(eta)) * 1_000_000)
