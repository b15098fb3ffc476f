"""The evaluation of private selection: the paper's figures on simulated worlds and on data at hand, and what goes beyond it."""

import numpy as np

from tacit.errors import MissingExtra, UnknownName
from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part, Progress, Run, untold
from tacit.evaluation.private_selection import (
    bandits,
    counterfactual,
    many_equal,
    movielens,
    open_bandit,
    optimum,
    paper,
    price_settings,
    reference,
    synthetic,
)
from tacit.evaluation.private_selection.across import across
from tacit.evaluation.private_selection.automatic import automatic
from tacit.evaluation.private_selection.calibrated import calibrated
from tacit.evaluation.private_selection.cutoff import cutoff
from tacit.evaluation.private_selection.mixing import facts, mixing
from tacit.evaluation.private_selection.noisy_prices import LEAST
from tacit.evaluation.private_selection.pricing import pricing
from tacit.evaluation.private_selection.single import single
from tacit.evaluation.private_selection.sweep import EPSILONS, sweep
from tacit.evaluation.private_selection.trained import IMPRESSIONS, trained
from tacit.evaluation.private_selection.truth import truth
from tacit.evaluation.private_selection.worlds import SHAPES, World, simulated
from tacit.evaluation.result import Result, versions_of
from tacit.guarantees import Guarantee
from tacit.mechanisms.responses import TopResponse

SYSTEM = "private-selection"
TRAINED, ALL = "trained", "all"
WORLDS = (*SHAPES, TRAINED)
REAL: dict[str, Run] = {"movielens-100k": movielens.run, "open-bandit": open_bandit.run}
OTHERS: dict[str, Run] = {
    "price settings": price_settings.run,
    "synthetic scores": synthetic.run,
    "the best d": many_equal.run,
    "the optimum": optimum.run,
    "counterfactual estimates": counterfactual.run,
    "optimism": bandits.run,
}
DATA = (*WORLDS, *REAL, ALL)
_AUCTIONS = {Effort.QUICK: 2000, Effort.DEFAULT: 8000, Effort.FULL: 16_000}
_IMPRESSIONS = {Effort.QUICK: 100_000, Effort.DEFAULT: IMPRESSIONS, Effort.FULL: IMPRESSIONS}


def evaluate(
    data: str = ALL, effort: Effort | str = Effort.DEFAULT, *, seed: int = 1, progress: Progress | None = None
) -> Result:
    """Everything on one world or data set, or on all of them. Equal seeds, equal figures."""
    if data not in DATA:
        raise UnknownName(f"private selection is not evaluated on {data!r}; known: {', '.join(DATA)}.")
    effort, told = Effort(effort), progress or untold
    found = Part((*paper.rows(),), (), _notes(effort))
    if data == ALL:
        for one in (*WORLDS, *REAL):
            found = found.and_(_on(one, effort, seed, told))
        display, search = (world(name, effort, seed) for name in SHAPES)
        found = found.and_(across(display, search, found.rows))
        for run in OTHERS.values():
            found = found.and_(run(effort, seed=seed, progress=told))
    else:
        found = found.and_(_on(data, effort, seed, told))
    versions = versions_of("scipy", "scikit-learn")
    return Result(SYSTEM, data, found.rows, found.claims, _guarantees(), seed, found.notes, versions)


def world(name: str, effort: Effort, seed: int) -> World:
    """A world as every part of the evaluation sees it."""
    if name == TRAINED:
        return trained(_AUCTIONS[effort], _IMPRESSIONS[effort], seed).world
    return simulated(name, _AUCTIONS[effort], rng=np.random.default_rng([seed, 20, tuple(SHAPES).index(name)]))


def _on(name: str, effort: Effort, seed: int, told: Progress) -> Part:
    if name in REAL:
        return REAL[name](effort, seed=seed, progress=told)
    steps = 8
    told(name, 0, steps)
    try:
        one = world(name, effort, seed)
    except MissingExtra as missing:
        return Part(notes=(f"The world {name} was left out: {missing}",))
    found = Part((*reference.rows(name),)).and_(facts(one))
    told(name, 1, steps)
    found = found.and_(pricing(one, rng=np.random.default_rng([seed, 21])))
    told(name, 2, steps)
    found = found.and_(sweep(one, effort))
    told(name, 3, steps)
    found = found.and_(cutoff(one)).and_(calibrated(one))
    told(name, 4, steps)
    if name == "display":
        found = found.and_(single(one)).and_(mixing(one, effort))
    told(name, 5, steps)
    found = found.and_(automatic(one, effort))
    told(name, 7, steps)
    if name == TRAINED:
        fit = trained(_AUCTIONS[effort], _IMPRESSIONS[effort], seed)
        found = found.and_(truth(fit, effort, seed=seed))
    told(name, steps, steps)
    return found


def _guarantees() -> dict[str, Guarantee]:
    """What a user is promised by one selection at each epsilon; every rule is compared at equal epsilon."""
    return {f"selection, epsilon={epsilon:g}": TopResponse(2, 1, epsilon).guarantee for epsilon in EPSILONS}


def _notes(effort: Effort) -> tuple[str, ...]:
    notes = [
        "The paper's data sets are not here: worlds are simulated, with parameters chosen to meet the facts it states of them.",
        "Parameters that those facts leave open were chosen with the reference figures in view: agreement with these tests laws "
        "and measures, it does not confirm the worlds.",
        "The paper's figures are pictures: its claims are taken from its text, and no number is read off them.",
        "Expectations over the rules' randomness are in closed form; errors are those of the auctions drawn, paired.",
        "Clicks are counted by the private click probability (the paper's direct method), so that greedy is the upper limit.",
        "display and search give auto the true spread; trained computes it from the evaluated models, without noise: favourable.",
        f"A ratio of noised click probabilities has no mean: they are kept at {LEAST:g} or above, and the bias depends on that.",
    ]
    if effort is Effort.QUICK:
        notes.append(
            "A quick run: fewer auctions and epsilons, so that claims with small differences may not be shown."
        )
    return tuple(notes)
