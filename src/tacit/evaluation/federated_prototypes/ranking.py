"""Lists of items for every user: each entity by itself, with the shared moments, and all rows in one place.

Up to five cells of every user are held out, all users train. An entity's gate asks one half of the users, figures are of the other
half: an entity keeps to itself where the paired difference in NDCG is below minus one standard error.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tacit.data import Ratings
from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes import names
from tacit.evaluation.federated_prototypes.chance import rng_of
from tacit.evaluation.federated_prototypes.measures import Floats, Ranks, averaged, ranks
from tacit.evaluation.federated_prototypes.moments import (
    Constants,
    Released,
    alone_scores,
    blended_scores,
    own_scores,
    popular_scores,
)  # fmt: skip
from tacit.evaluation.federated_prototypes.releases import APART, Key, releases
from tacit.evaluation.federated_prototypes.splits import Held, every_user
from tacit.evaluation.result import Row, sizes
from tacit.evaluation.statistics import Estimate, difference
from tacit.guarantees import Guarantee
from tacit.models.moments import item_ridge

ALONE = (1.0, 4.0)
ONE_ERROR = 1.0
HARM = -2.0  # standard errors
GAIN, HARMED, USED = "NDCG@20 gain", "entities harmed", "entities that use it"
SEEN, HEAD, KEPT = "items seen", "items of the head", "pseudo-rows"

_USERS = 512  # at a time, where all rows are in one place
_ALONE = {names.MOMENTS: names.MOMENTS_ALONE, names.PURE_NOISE: names.NOISE_ALONE}
_FILMS = ((0.0, 0.03), (2.0, 0.06), (4.0, 0.1), (8.0, 0.3))
CONSTANTS = {
    names.ZIP1: Constants(0.15, 2.0, 0.0, _FILMS, 10.0),
    names.ZIP2: Constants(0.15, 1.0, 0.0, _FILMS, 10.0),
    names.HOSPITALS: Constants(0.3, 4.0, 0.3, ((0.0, 0.01),), 10.0),
    names.REGIONS: Constants(0.3, 4.0, 0.3, ((0.0, 0.01),), 10.0),
}


class Ranked(NamedTuple):
    """One world: every method's ranks, users in the same order, and what its releases promise."""

    world: str
    held: Held
    found: dict[Key, Ranks]
    releases: dict[Key, Released]
    used: dict[Key, int]  # entities whose gate lets the release in

    def ranks(self, method: str, epsilon: float | str) -> Ranks | None:
        """Of the users reported, averaged over noise draws."""
        draws = [found for key, found in self.found.items() if (key.method, key.epsilon) == (method, epsilon)]
        return averaged(draws).of(self.held.reported) if draws else None

    def gain(self, method: str, epsilon: float, over: str = names.INDIVIDUAL) -> Estimate | None:
        """How much the NDCG is above that of the entities by themselves, user by user."""
        with_it, without = self.ranks(method, epsilon), self.ranks(over, names.INF)
        if with_it is None or without is None:
            return None
        held = np.isfinite(without.ndcg)
        return difference(with_it.ndcg[held], without.ndcg[held])

    def harmed(self, method: str, epsilon: float) -> tuple[int, int]:
        """Entities whose paired difference is below -2 standard errors, and entities compared, over all noise draws."""
        without = self.found[Key(names.INDIVIDUAL, names.INF)]
        worse = compared = 0
        for key, with_it in self.found.items():
            if (key.method, key.epsilon) != (method, epsilon):
                continue
            for entity in range(self.held.count):
                users = (self.held.entities == entity) & self.held.reported & np.isfinite(without.ndcg)
                if np.count_nonzero(users) < 2:
                    continue
                apart = difference(with_it.ndcg[users], without.ndcg[users])
                compared += 1
                worse += apart.value < HARM * apart.stderr
        return worse, compared

    @property
    def guarantees(self) -> dict[str, Guarantee]:
        return {
            f"{key.method}, {self.world}, epsilon={key.epsilon:g}": one.guarantee
            for key, one in self.releases.items()
            if isinstance(key.epsilon, float)
        }


def ranked(world: str, ratings: Ratings, effort: Effort, *, seed: int) -> Ranked:
    """Every method in one world. Equal seeds, equal figures."""
    held = every_user(ratings, rng=rng_of(seed, "every user", ratings.name))  # the same split however users are divided
    constants = CONSTANTS[world]
    tried = dict(releases(held, constants, effort, world, seed))
    shared = {key: Ranks.empty(held.users) for key in tried}
    own = Ranks.empty(held.users)
    for entity in range(held.count):
        users = held.members(entity)
        if not users.size:
            continue
        rows, wanted = held.train[users], held.test[users]
        base = item_ridge(rows, constants.ridge)
        own.put(users, ranks(own_scores(base, constants), rows, wanted))
        for key, release in tried.items():
            if key.method == names.POPULARITY_PRIOR:
                scores = popular_scores(base, release.shared, constants, held.users)
            else:
                alpha = constants.alpha(float(key.epsilon), held.count if key.method in APART else 1)
                scores = blended_scores(base, release.shared, alpha, constants, held.users)
            shared[key].put(users, ranks(scores, rows, wanted))
    found, used = {Key(names.INDIVIDUAL, names.INF): own}, {}
    for key, blend in shared.items():
        gated, used[key] = gate(held, own, blend)
        found[key] = gated
        if key.method == names.MOMENTS:
            found[key._replace(method=names.MOMENTS_NO_GATE)] = blend
    found |= dict(_everywhere(held, constants, tried))
    return Ranked(world, held, found, tried, used)


def gate(held: Held, own: Ranks, blend: Ranks) -> tuple[Ranks, int]:
    """Each entity's choice, by its users who are not reported; and how many take the blend."""
    chosen, used = Ranks(*(values.copy() for values in own)), 0
    for entity in range(held.count):
        users = held.entities == entity
        asked = users & ~held.reported & np.isfinite(own.ndcg)
        if np.count_nonzero(asked) > 1:
            apart = difference(blend.ndcg[asked], own.ndcg[asked])
            if apart.value < -ONE_ERROR * apart.stderr:
                continue
        used += 1
        chosen.put(users, blend.of(users))
    return chosen, used


def _everywhere(held: Held, constants: Constants, releases: dict[Key, Released]) -> Iterator[tuple[Key, Ranks]]:
    """Methods that do not know entities: in worlds of the same data they have the same figures."""
    train, test = held.train, held.test
    counts = np.asarray(train.sum(axis=0)).ravel()
    yield Key(names.POPULARITY, names.INF), _in_parts(lambda rows: np.tile(counts, (rows.shape[0], 1)), train, test)
    central = item_ridge(train, constants.central_ridge, dual=False)
    yield Key(names.CENTRAL, names.INF), _in_parts(central.scores, train, test)
    for key, release in releases.items():
        if key.seed == 0 and key.epsilon in ALONE and key.method in _ALONE:
            alone = partial(alone_scores, shared=release.shared, constants=constants, users=held.users)
            yield Key(_ALONE[key.method], key.epsilon), _in_parts(alone, train, test)


def _in_parts(scores: Callable[[sparse.csr_array], Floats], train: sparse.csr_array, test: sparse.csr_array) -> Ranks:
    """The ranks by scores of some users at a time."""
    found = Ranks.empty(train.shape[0])
    for first in range(0, train.shape[0], _USERS):
        users = np.arange(first, min(first + _USERS, train.shape[0]))
        found.put(users, ranks(scores(train[users]), train[users], test[users]))
    return found


def rows(tried: Ranked) -> Iterator[Row]:
    """One row for each method, epsilon and metric; the gains, how many entities were harmed, and what was released."""
    users, items = tried.held.train.shape
    yield from sizes({"users": users, "items": items, "entities": tried.held.count}, world=tried.world)
    for method, epsilon in dict.fromkeys((key.method, key.epsilon) for key in tried.found):
        found = tried.ranks(method, epsilon)
        if found is None:
            continue
        setting: dict[str, int | float | str] = {"world": tried.world, "epsilon": epsilon}
        for metric, estimate in found.estimates().items():
            yield Row.of(method, metric, estimate, **setting)
        if not isinstance(epsilon, float) or method in _ALONE.values():
            continue
        gain = tried.gain(method, epsilon)
        if gain is not None:
            yield Row.of(method, GAIN, gain, **setting)
        worse, compared = tried.harmed(method, epsilon)
        yield Row(method, setting, HARMED, worse, None, compared)
        yield from _released(tried, method, epsilon, setting)


def _released(tried: Ranked, method: str, epsilon: float, setting: Mapping[str, int | float | str]) -> Iterator[Row]:
    """Of what was released, averaged over noise draws: all of it can be read from the release."""
    draws = [key for key in tried.releases if (key.method, key.epsilon) == (method, epsilon)]
    if not draws:
        return
    shared = [tried.releases[key].shared for key in draws]
    for metric, values in (
        (SEEN, [one.seen for one in shared]),
        (HEAD, [one.head.size for one in shared]),
        (KEPT, [len(one.pseudo_rows) for one in shared]),
        (USED, [tried.used[key] for key in draws]),
    ):
        yield Row(method, setting, metric, float(np.mean(values)), None, len(draws))
