"""The evaluation of multi-selection: the analogues of the paper's tables and figures on a data set, and what they decide."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tacit.data import Ratings
from tacit.device.multi_selection import mechanism_of
from tacit.evaluation.effort import Effort
from tacit.evaluation.multi_selection import baseline, ours, paper, published
from tacit.evaluation.multi_selection.fitting import Trained, error_rows, trained
from tacit.evaluation.multi_selection.look_alikes import look_alike_rows
from tacit.evaluation.multi_selection.losses import Losses
from tacit.evaluation.multi_selection.neighbourhood import best_rows, neighbour_rows
from tacit.evaluation.multi_selection.parallel import losses
from tacit.evaluation.multi_selection.plan import Plan, Task, plan
from tacit.evaluation.multi_selection.population import MOST, Population, population
from tacit.evaluation.multi_selection.rows import comparison_rows, level_rows, loss_rows
from tacit.evaluation.multi_selection.trials import bench
from tacit.evaluation.multi_selection.variants import private_rows, second_model
from tacit.evaluation.result import Result, Row, sizes, versions_of
from tacit.guarantees import Guarantee, metric
from tacit.messages.multi_selection import exact_eta
from tacit.models.tables import build_tables

SYSTEM = "multi-selection"
Progress = Callable[[str, int, int], None]  # what is being done, done, in all


def evaluate(
    data: str | Path | Ratings = "movielens-small",
    effort: Effort | str = Effort.DEFAULT,
    *,
    trials: int | None = None,
    look_alikes: int | None = MOST,
    seed: int = 1,
    workers: int = 1,
    progress: Progress | None = None,
) -> Result:
    """Fits the network on some users of ``data`` and tries all algorithms on the others. Equal seeds, equal figures.

    ``look_alikes`` bounds their number; None takes 46 % of the users, however many.
    """
    told = progress or (lambda what, done, total: None)
    wanted = plan(Effort(effort), trials)
    people = population(data, most=look_alikes, rng=np.random.default_rng([seed, 10]))
    fitted = trained(people, rng=np.random.default_rng([seed, 11]), progress=lambda *done: told("training", *done))
    found, facts = _tried(people, fitted, wanted, seed, workers, told)
    notes = _notes(Effort(effort), wanted, people)
    rows = [
        *loss_rows(found),
        *comparison_rows(found),
        *level_rows(found),
        *error_rows(people, fitted, "network", rng=np.random.default_rng([seed, 12])),
        *best_rows(found.best, found.users),
        *neighbour_rows(people, fitted.store.scorer, notes, rng=np.random.default_rng([seed, 13])),
        *sizes(_counts(people)),
        *facts,
        *paper.rows(),
    ]
    decided = [
        *published.claims(found, wanted.etas, rows),
        *ours.claims(found, wanted.etas),
        *baseline.verdicts(found, wanted.etas),
    ]
    guarantees = _guarantees(people, fitted, wanted)
    if wanted.look_alike_epsilons:
        many = max(2, wanted.trials // 3)
        more, promised = look_alike_rows(
            people, fitted, wanted.look_alike_epsilons, trials=many, seed=seed, workers=workers, progress=told
        )
        rows, guarantees = [*rows, *more], guarantees | promised
    if wanted.second_model:
        more, ordered = second_model(people, trials=wanted.trials // 3, seed=seed, workers=workers, progress=told)
        rows, decided = [*rows, *more], [*decided, *ordered]
    for epsilon in wanted.epsilons:
        more, promise = private_rows(
            people, fitted, epsilon, trials=wanted.trials // 3, seed=seed, workers=workers, progress=told
        )
        rows = [*rows, *more]
        if not promise.promises_nothing:
            guarantees[f"model, private training, epsilon={epsilon:g}"] = promise
    return Result(
        SYSTEM,
        people.name,
        tuple(rows),
        tuple(decided),
        guarantees,
        seed,
        tuple(notes),
        versions_of("scipy", "jax", "numba"),
    )


def _tried(
    people: Population, fitted: Trained, wanted: Plan, seed: int, workers: int, told: Progress
) -> tuple[Losses, list[Row]]:
    """The losses; how many trials of all tasks were done in a second, and how many classes of items are somebody's best.

    The fewer these are, the less there is to find out about a user: losses of two networks differ most by that.
    """
    store = fitted.store
    tables = build_tables(
        store.scorer, store.look_alikes, store_version=store.version, progress=lambda *done: told("tables", *done)
    )
    at = bench(store, people.features[people.held_out], wanted.trials, seed=seed, tables=tables)
    start = time.perf_counter()
    found = losses(at, wanted.tasks, workers=workers, progress=lambda *done: told("trials", *done))
    rate = wanted.trials / (time.perf_counter() - start)
    different = len(np.unique(at.truth.argmax(axis=1)))
    return found, [
        Row("trials", {}, "trials per second", rate, n=wanted.trials),
        Row("network", {}, "different best classes", float(different), n=len(at.truth)),
    ]


def _counts(people: Population) -> dict[str, int]:
    return {
        "look-alikes": len(people.look_alikes),
        "held-out users": len(people.held_out),
        "items": people.ratings.n_items,
        "ratings": len(people.ratings),
    }


def _guarantees(people: Population, fitted: Trained, wanted: Plan) -> dict[str, Guarantee]:
    """What a device's user is promised at each eta (by real noise; that of trials is replayed), and those behind the store."""
    signals = {f"signal, eta={eta:g}": mechanism_of(people.space, exact_eta(eta)).guarantee for eta in wanted.etas}
    nothing_told = {baseline.BASELINE: metric(0.0, proof="multi-selection")}
    store = fitted.store
    return signals | nothing_told | {"model": store.model_guarantee, "look-alikes": store.look_alikes_guarantee}


def _notes(effort: Effort, wanted: Plan, people: Population) -> list[str]:
    notes = [
        "Users who are tried are held out: neither look-alikes nor trained on. In the paper all users are tried.",
        "Signals are drawn by the real mechanism, replayed from seeds; trials are paired, and errors are clustered by user.",
        "ig-sig is tried once for all eta: it does not see the signal.",
    ]
    slow: list[Task] = [task for task in wanted.tasks if task.slow and task.local_models]
    if any(task.trials < wanted.trials for task in slow):
        notes.append(f"sat and avg are tried {slow[0].trials:,} times: they score every class anew in every trial.")
    if people.name != "ml-25m":
        notes.append("Not the paper's data: its figures stand beside ours for the order of methods, not for the size.")
    if not wanted.look_alike_epsilons:
        notes.append("Private look-alikes are left out; a default run tries them.")
    if not wanted.epsilons:
        notes.append("Private training and the second model are left out; --full tries them.")
    if effort is Effort.QUICK:
        notes.append("A quick run: few trials, few eta, so that claims with small differences may not be shown.")
    return notes
