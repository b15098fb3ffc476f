"""How much to try: which algorithms with which local models, at which eta, how often."""

import math
from dataclasses import dataclass

from tacit.checks import whole
from tacit.evaluation.effort import Effort
from tacit.server.multi_selection import POSTERIOR, Algorithm, LocalModel, Posterior

ETAS = (0.01, 0.03, 0.05, 0.1, 0.15, 0.2)
QUICK_ETAS = (0.05, 0.1, 0.2)
SIZES = (1, 2, 3, 5)  # of slates in tables
DRAWS = 25
IG_SIG_EXACT = "ig-sig-exact"
DRAWS_TRIED = (1, 5, 25, 50, 100)
Q1_ETA = 0.1
LOOK_ALIKE_EPSILONS = (0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class Task:
    """One algorithm with so many draws, tried at some eta in the first ``trials`` trials.

    What ignores the signal is tried once for all eta: ``etas`` is (None,). `exact` tried so weighs all look-alikes alike: it is to
    ig-sig what exact is to sat-realuser, and is called ig-sig-exact.
    """

    algorithm: Algorithm
    etas: tuple[float | None, ...]
    trials: int
    draws: int = DRAWS
    local_models: tuple[LocalModel, ...] = ()
    most_k: int = max(SIZES)

    @property
    def method(self) -> str:
        return IG_SIG_EXACT if self.algorithm is Algorithm.EXACT and self.etas == (None,) else self.algorithm.value

    @property
    def slow(self) -> bool:
        """Whether it has to score every class for every draw of every trial."""
        return POSTERIOR[self.algorithm] is Posterior.CAP


@dataclass(frozen=True, slots=True)
class Plan:
    trials: int
    etas: tuple[float, ...]
    tasks: tuple[Task, ...]
    epsilons: tuple[float, ...] = ()  # of private training; infinite: without noise, from another seed
    second_model: bool = False
    look_alike_epsilons: tuple[float, ...] = ()  # of private look-alikes


_TRIALS = {Effort.QUICK: (300, 60), Effort.DEFAULT: (1500, 500), Effort.FULL: (1500, 1500)}
_MODELS = {
    Algorithm.NOPOST: (),
    Algorithm.NOPOST_REALUSER: (),
    Algorithm.IG_SIG: (LocalModel.PCA, LocalModel.RIDGE),
    Algorithm.AVG: (LocalModel.PCA,),
    Algorithm.AVG_REALUSER: (LocalModel.PCA,),
    Algorithm.SAT: (LocalModel.PCA,),
    Algorithm.SAT_REALUSER: (LocalModel.PCA, LocalModel.RIDGE),
    Algorithm.EXACT: (LocalModel.PCA, LocalModel.RIDGE),
    Algorithm.DPP: (LocalModel.RIDGE,),
}
_FEW = 300  # trials of what is only plotted


def plan(effort: Effort, trials: int | None = None) -> Plan:
    """The tasks of an effort. ``trials`` overrides how often; what is slow is then tried as often as the rest."""
    many, slow = _TRIALS[effort]
    if trials is not None:
        many = slow = whole("trials", trials, least=2)
    full = effort is Effort.FULL
    etas = QUICK_ETAS if effort is Effort.QUICK else ETAS
    tasks = main_tasks(etas, many, slow, most_k=15 if full else max(SIZES))
    for draws in DRAWS_TRIED:
        if draws != DRAWS:
            at = etas if full else (Q1_ETA,)
            tasks += [
                Task(Algorithm.SAT_REALUSER, at, many, draws, most_k=10),
                Task(Algorithm.IG_SIG, (None,), many, draws, most_k=10),
            ]
    if full:
        few = min(_FEW, many)
        tasks += [
            Task(algorithm, etas, few, draws)
            for draws in (5, 100)
            for algorithm in (Algorithm.SAT, Algorithm.AVG, Algorithm.AVG_REALUSER)
        ]
    training = (math.inf, 8.0, 4.0, 2.0) if full else ()
    released = () if effort is Effort.QUICK else LOOK_ALIKE_EPSILONS
    return Plan(many, etas, tuple(tasks), training, second_model=full, look_alike_epsilons=released)


def main_tasks(
    etas: tuple[float, ...],
    trials: int,
    slow_trials: int,
    *,
    only: tuple[Algorithm, ...] = tuple(Algorithm),
    most_k: int = max(SIZES),
) -> list[Task]:
    """Every algorithm (or those named) with its local models: what the tables are made of."""
    tasks = []
    for algorithm in only:
        many = slow_trials if POSTERIOR[algorithm] is Posterior.CAP else trials
        at = (None,) if POSTERIOR[algorithm] is Posterior.UNIFORM else etas
        tasks.append(Task(algorithm, at, min(many, trials), local_models=_MODELS[algorithm], most_k=most_k))
        if algorithm is Algorithm.EXACT:
            tasks.append(Task(algorithm, (None,), trials, local_models=(LocalModel.RIDGE,), most_k=most_k))
    return tasks
