"""Open Bandit: real impressions and clicks of a fashion shop. Pure recommendation, since it has no prices.

Candidates are a campaign's items. The public model knows item, item features and position, the private one the user's features and
past clicks as well. Each rule is judged twice: by the private model (direct method), which says how well the rule follows that
model; and by the clicks of the log that showed items uniformly at random (inverse propensity), which are real and far too few.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.data import Impressions, available, load
from tacit.data.readers.open_bandit import Campaign
from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part, Progress, untold
from tacit.evaluation.private_selection import selection_laws
from tacit.evaluation.private_selection.click_models import click_model, scores
from tacit.evaluation.private_selection.rules import choose_many
from tacit.evaluation.private_selection.trained import require_scikit
from tacit.evaluation.private_selection.worlds import logit
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import NOT_SHOWN, Estimate, mean
from tacit.models.private_selection import Spread

Floats = NDArray[np.float64]
Laws = dict[tuple[str, float | None], Floats]  # by rule and epsilon

MODEL: Final = "click rate by the private model"
LOGGED: Final = "click rate by inverse propensity"
OURS = "tacit"
EPSILONS = (1.0, 3.0, 5.0)
FOLDS = 5
_CAMPAIGNS: dict[Effort, tuple[Campaign, ...]] = {
    Effort.QUICK: ("men",),
    Effort.DEFAULT: ("men", "women", "all"),
    Effort.FULL: ("men", "women", "all"),
}


class Judged(NamedTuple):
    """Both models' click probabilities of every candidate in every impression of the uniform log, by models that did not see it."""

    public: Floats
    private: Floats
    shown: NDArray[np.int64]
    clicks: NDArray[np.bool_]
    propensity: Floats

    @property
    def sigma(self) -> float:
        """The spread of private log odds around public ones, apart from what moves all candidates alike: without noise."""
        apart = logit(self.private) - logit(self.public)
        return float((apart - apart.mean(axis=1, keepdims=True)).std())

    def by_model(self, law: Floats) -> Estimate:
        """The direct method. Also of the difference of two laws."""
        return mean((law * self.private).sum(axis=1))

    def by_log(self, law: Floats) -> Estimate:
        """Inverse propensity. Also of the difference of two laws.

        A law that is nearly certain of an item has few weights that count, and mostly no click among them: the spread of the terms
        would say that the error is small. It is taken from the click rate c of the whole log: Var = c sum_i law_i^2 / propensity.
        """
        terms = law[np.arange(len(law)), self.shown] / self.propensity * self.clicks
        variance = self.clicks.mean() * (law**2).sum(axis=1) / self.propensity
        return Estimate(float(terms.mean()), float(np.sqrt(variance.sum())) / len(law), len(law))


def judged(uniform: Impressions, other: Impressions, *, rng: np.random.Generator) -> Judged:
    """Cross-fitted: each fifth of the uniform log is scored by models of the other fifths and of the other log.

    Clicks are shared out evenly. Else a fifth with more of them would be scored lower, by models that saw fewer.
    """
    shuffled = rng.permutation(len(uniform))
    fold = np.empty(len(uniform), dtype=np.int64)
    fold[shuffled[np.argsort(uniform.clicks[shuffled], kind="stable")]] = np.arange(len(uniform)) % FOLDS
    tables = {private: np.empty((len(uniform), uniform.n_items)) for private in (False, True)}
    for place in range(FOLDS):
        for private, table in tables.items():
            model = click_model(uniform, fold != place, other, private=private)
            table[fold == place] = scores(model, uniform, fold == place, private=private)
    shown = uniform.items.astype(np.int64)
    return Judged(tables[False], tables[True], shown, uniform.clicks, uniform.propensities)


def laws(found: Judged) -> Iterator[tuple[str, float | None, Floats]]:
    """(rule, epsilon, law over the items of every impression)."""
    public, private = found.public, found.private
    items = public.shape[1]
    yield "public", None, selection_laws.response(public, np.inf)
    yield "uniform", None, np.full(public.shape, 1.0 / items)
    yield "greedy", None, selection_laws.response(private, np.inf)
    order = np.argsort(-public, axis=1, kind="stable")
    back = np.argsort(order, axis=1, kind="stable")
    falling, sorted_private = (np.take_along_axis(table, order, axis=1) for table in (public, private))
    # The public model does not know the user: few different rankings, each with one choice of m.
    different, which = np.unique(falling, axis=0, return_inverse=True)
    for epsilon in EPSILONS:
        yield "rr", epsilon, selection_laws.response(private, epsilon)
        yield "pf scaled", epsilon, selection_laws.permute_and_flip(selection_laws.scaled(private), epsilon / 2.0)
        sizes = np.full(len(different), items)
        chosen = choose_many(different, sizes, Spread(max(found.sigma, 1e-9), "logit-normal"), epsilon)
        m = np.array([choice.m for choice in chosen])[which.reshape(-1)]
        law = selection_laws.response(sorted_private, epsilon, mask=np.arange(items) < m[:, None])
        yield "auto", epsilon, np.take_along_axis(law, back, axis=1)


def run(effort: Effort = Effort.DEFAULT, *, seed: int = 0, progress: Progress = untold) -> Part:
    """Every rule by both methods, campaign by campaign; nothing but a note where the data set is not there."""
    if "open-bandit" not in {entry.name for entry in available() if entry.ready}:
        return Part(notes=("Open Bandit was left out: the folder open-bandit is not where TACIT_DATA points.",))
    require_scikit()
    rows: list[Row] = []
    claims: list[Claim] = []
    campaigns = _CAMPAIGNS[effort]
    for done, campaign in enumerate(campaigns):
        progress("Open Bandit", done, len(campaigns))
        uniform, other = (load("open-bandit", policy=policy, campaign=campaign) for policy in ("random", "bts"))
        found = judged(uniform, other, rng=np.random.default_rng([seed, 60]))
        by = {(rule, epsilon): law for rule, epsilon, law in laws(found)}
        rows += _rows(campaign, found, by)
        claims += _claims(campaign, found, by)
    progress("Open Bandit", len(campaigns), len(campaigns))
    return Part(tuple(rows), tuple(claims), _NOTES)


def _rows(campaign: str, found: Judged, by: Laws) -> Iterator[Row]:
    setting: dict[str, int | float | str] = {"campaign": campaign, "k": found.public.shape[1]}
    yield Row("log", setting, "clicks", float(found.clicks.sum()), n=len(found.clicks))
    yield Row("auto", setting, "sigma of the prior", found.sigma)
    each = np.arange(len(found.shown))
    for side, table in (("public", found.public), ("private", found.private)):
        error = 1.0 / np.sqrt(12.0 * max(1, found.clicks.sum()))  # of mere chance: ranks of so many clicks
        yield Row(
            f"{side} model", setting, "AUC", _area(table[each, found.shown], found.clicks), float(error), len(each)
        )
    for (rule, epsilon), law in by.items():
        at = setting if epsilon is None else setting | {"epsilon": epsilon}
        yield Row.of(rule, MODEL, found.by_model(law), **at)
        yield Row.of(rule, LOGGED, found.by_log(law), **at)


def _claims(campaign: str, found: Judged, by: Laws) -> Iterator[Claim]:
    for judge, named in ((found.by_model, "the private model"), (found.by_log, "the log")):
        for rival in ("public", "rr"):
            gaps = {
                epsilon: judge(by["auto", epsilon] - by.get((rival, epsilon), by["public", None]))
                for epsilon in EPSILONS
            }
            told = "; ".join(
                f"epsilon {epsilon:g}: {gap.value:+.3%} ± {gap.stderr:.3%}" for epsilon, gap in gaps.items()
            )
            holds = all(gap.above(0.0) for gap in gaps.values())
            if not (holds or any(gap.below(0.0) for gap in gaps.values())):
                told += f" {NOT_SHOWN}"
            yield Claim(OURS, f"Open Bandit, {campaign}: by {named} auto brings more clicks than {rival}", holds, told)


def _area(chances: Floats, clicks: NDArray[np.bool_]) -> float:
    """The share of pairs of a clicked and another impression that are in the right order; ties count half."""
    clicked, others = np.sort(chances[clicks]), np.sort(chances[~clicks])
    below = np.searchsorted(others, clicked, side="left") + np.searchsorted(others, clicked, side="right")
    return float(below.sum()) / (2.0 * clicked.size * others.size) if clicked.size and others.size else float("nan")


_NOTES = (
    "Open Bandit: the small version, 10,000 impressions in each log and about 40 clicks. A rule that always shows one item is "
    "judged by the few hundred impressions that happened to show it, so that errors are as large as rates: the log decides "
    "nothing about the order of rules. What is not shown there is not refuted either.",
    "Open Bandit: figures by the private model say how well a rule follows that model. Its AUC on unseen impressions is given: "
    "so few clicks teach it next to nothing.",
    "Open Bandit: the spread of the prior is taken, without noise, from the models that are evaluated.",
)
