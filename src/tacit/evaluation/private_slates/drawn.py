"""Slates drawn from the records themselves, each at its own cost: natural, by the published bound, tempered, Gumbel top-k."""

import math
from collections.abc import Iterator

from tacit.curator.private_slates.plan import plan
from tacit.curator.private_slates.routes import Route
from tacit.evaluation.private_slates import names
from tacit.evaluation.private_slates.films import Films
from tacit.evaluation.private_slates.tries import K, Tried, noise_of, stacked
from tacit.mechanisms import GumbelTopK, NaturalSlate, TemperedSlate, VoteTotals

NATURAL_EPSILONS = (0.1, 0.3, 1.0, 3.0)
TEMPERED_EPSILONS = (0.03, 0.1, 0.3, 1.0)  # those below the cap, and the cap
SEARCHED_EPSILONS = (0.1, 0.3, 1.0, 3.0)
GUMBEL_EPSILONS = (0.03, 0.1, 0.3, 1.0)
HIGH = 2750 / 4832  # the public upper end of a film's likes, as a share of the users: 2,750 on MovieLens 1M


def natural(films: Films, slates: int, seed: int) -> Iterator[Tried]:
    for name, kind in ((names.NATURAL, NaturalSlate), (names.PUBLISHED, NaturalSlate.published)):
        for epsilon in NATURAL_EPSILONS:
            mechanism = kind(films.items, K, epsilon)
            found = mechanism.prepare(films.likes).release_many(slates, noise_of(seed, name, epsilon))
            yield Tried(name, epsilon, found.value, mechanism.guarantee)


def tempered(films: Films, slates: int, seed: int) -> Iterator[Tried]:
    cap = capped(films)
    for epsilon in (*(one for one in TEMPERED_EPSILONS if one < cap), cap):
        mechanism = TemperedSlate(films.genres, K, epsilon, low=0.0, high=high(films))
        found = mechanism.prepare(films.likes).release_many(slates, noise_of(seed, names.TEMPERED, epsilon))
        yield Tried(names.TEMPERED, epsilon, found.value, mechanism.guarantee)


def searched(films: Films, slates: int, seed: int) -> Iterator[Tried]:
    """Tempered slates as a curator draws them who knows no public range: each finds its own, with a tenth of its epsilon."""
    for epsilon in SEARCHED_EPSILONS:
        made = plan(K, epsilon, items=films.items, route=Route.TEMPERED)
        draw, noise = made.set_up(films.genres)(films.likes), noise_of(seed, names.SEARCHED, epsilon)
        yield Tried(names.SEARCHED, epsilon, stacked(draw(noise).value for _ in range(slates)), made.each)


def gumbel(films: Films, slates: int, seed: int) -> Iterator[Tried]:
    for epsilon in GUMBEL_EPSILONS:
        mechanism = GumbelTopK(VoteTotals(), K, epsilon)
        noise = noise_of(seed, names.GUMBEL, epsilon)
        found = stacked(mechanism.release(films.likes, noise).value for _ in range(slates))
        yield Tried(names.GUMBEL, epsilon, found, mechanism.guarantee)


def high(films: Films) -> float:
    """More likes than that count as that many. A public constant, taken from the size of the data set, not from its likes."""
    return float(round(HIGH * films.users))


def capped(films: Films) -> float:
    """The largest epsilon, to three digits, at which floats can draw tempered slates over this range."""
    most = TemperedSlate.capped(films.genres, K, 1e6, low=0.0, high=high(films)).epsilon
    return math.floor(1000.0 * most) / 1000.0
