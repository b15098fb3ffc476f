"""The same trials with another model behind the server: one fitted privately, and one of another kind."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from tacit.evaluation.multi_selection.fitting import Trained, error_rows, trained, trained_privately
from tacit.evaluation.multi_selection.losses import D_I, Floats
from tacit.evaluation.multi_selection.ours import ordering
from tacit.evaluation.multi_selection.parallel import losses
from tacit.evaluation.multi_selection.plan import QUICK_ETAS, Task, main_tasks
from tacit.evaluation.multi_selection.population import Population
from tacit.evaluation.multi_selection.rows import loss_rows
from tacit.evaluation.multi_selection.trials import Bench, bench
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import mean
from tacit.guarantees import Guarantee
from tacit.models.scorers import class_scores
from tacit.server.multi_selection import Algorithm, LocalModel

DELTA = 1e-6
TWO_TOWER = "two-tower"
Progress = Callable[[str, int, int], None]


def second_model(
    people: Population, *, trials: int, seed: int, workers: int, progress: Progress
) -> tuple[list[Row], list[Claim]]:
    """A two-tower model, its own judge: only the order of the algorithms is of interest."""
    fitted = trained(people, TWO_TOWER, rng=np.random.default_rng([seed, 20]))
    at = bench(fitted.store, people.features[people.held_out], trials, seed=seed)
    tasks = main_tasks(QUICK_ETAS, trials, trials)
    found = losses(at, tasks, workers=workers, progress=lambda *done: progress(TWO_TOWER, *done))
    rows = [
        *loss_rows(found, model=TWO_TOWER),
        *error_rows(people, fitted, TWO_TOWER, rng=np.random.default_rng([seed, 12])),
    ]
    return rows, [ordering(found, QUICK_ETAS, f", with the {TWO_TOWER} model")]


def private_rows(
    people: Population, judge: Trained, epsilon: float, *, trials: int, seed: int, workers: int, progress: Progress
) -> tuple[list[Row], Guarantee]:
    """A network fitted privately answers; the network without noise judges.

    An infinite epsilon stands for a network without noise from another seed: what it loses is how far two equally good networks
    disagree, and no private one can be expected to lose less.

    Private weights differ from run to run: privacy noise has no seed.
    """
    name = "another seed" if epsilon == math.inf else f"private training, epsilon={epsilon:g}"
    told = partial(progress, name)
    if epsilon == math.inf:
        fitted = trained(people, rng=np.random.default_rng([seed, 21]), progress=told)
    else:
        fitted = trained_privately(
            people, epsilon=epsilon, delta=DELTA, rng=np.random.default_rng([seed, 11]), progress=told
        )
    at = bench(fitted.store, people.features[people.held_out], trials, seed=seed, truth=judge.store)
    found = losses(at, _tasks(trials), workers=workers, progress=told)
    further: dict[str, int | float | str] = (
        {"training_epsilon": "inf"} if epsilon == math.inf else {"training_epsilon": epsilon, "training_delta": DELTA}
    )
    rows = [
        *loss_rows(found, **further),
        *error_rows(people, fitted, name, rng=np.random.default_rng([seed, 12])),
        Row.of("no signal noise", D_I, mean(_model_alone(at), at.users), k=1, **further),
    ]
    return rows, fitted.store.model_guarantee


def _tasks(trials: int) -> list[Task]:
    models = (LocalModel.PCA, LocalModel.RIDGE, LocalModel.NETWORK)
    with_signal = (Algorithm.NOPOST_REALUSER, Algorithm.SAT_REALUSER, Algorithm.EXACT)
    tasks = [
        Task(algorithm, QUICK_ETAS, trials, local_models=() if algorithm is Algorithm.NOPOST_REALUSER else models)
        for algorithm in with_signal
    ]
    return [*tasks, Task(Algorithm.IG_SIG, (None,), trials, local_models=models)]


def _model_alone(at: Bench) -> Floats:
    """What is lost by the model alone: its best item at the true features, judged by the other."""
    own = class_scores(at.store.scorer, at.features)
    lost = at.truth.max(axis=1) - np.take_along_axis(at.truth, own.argmax(axis=1)[:, None], axis=1)[:, 0]
    alone: Floats = lost[at.users].astype(np.float64)
    return alone
