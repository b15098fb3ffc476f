"""Which releases of moments a world is tried with, each with noise of its own."""

from collections.abc import Iterator
from typing import NamedTuple

from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes import names
from tacit.evaluation.federated_prototypes.chance import noise_of
from tacit.evaluation.federated_prototypes.moments import (
    Constants,
    Released,
    of_nobody,
    popularity_alone,
    released,
)  # fmt: skip
from tacit.evaluation.federated_prototypes.splits import Held

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
FURTHER = (0.01, 0.1, 10.0)  # with one noise draw each
SEEDS = {Effort.QUICK: 1, Effort.DEFAULT: 3, Effort.FULL: 3}
POPULAR = (0.5, 1.0, 4.0)  # the whole budget for the popularity
CONTROL = 4.0
APART = (names.MOMENTS_APART, names.MOMENTS_NOT_STOPPED)


class Key(NamedTuple):
    method: str
    epsilon: float | str
    seed: int = 0


def releases(held: Held, constants: Constants, effort: Effort, world: str, seed: int) -> Iterator[tuple[Key, Released]]:
    for epsilon in (1.0, CONTROL) if effort is Effort.QUICK else sorted((*EPSILONS, *FURTHER)):
        for draw in range(SEEDS[effort] if epsilon in EPSILONS else 1):
            noise = noise_of(seed, names.MOMENTS, world, epsilon, draw)
            yield (
                Key(names.MOMENTS, epsilon, draw),
                released(held.train, epsilon, constants.part, held.count, noise, once=True),
            )
            if constants.gamma > 0.0 and epsilon in POPULAR:
                noise = noise_of(seed, names.POPULARITY_PRIOR, world, epsilon, draw)
                yield (
                    Key(names.POPULARITY_PRIOR, epsilon, draw),
                    popularity_alone(held.train, epsilon, held.count, noise),
                )
        yield from _apart(held, constants, world, epsilon, seed)
    real = released(
        held.train, CONTROL, constants.part, held.count, noise_of(seed, names.MOMENTS, world, CONTROL, 0), once=True
    )
    if real.shared.informative:
        noise = noise_of(seed, names.PURE_NOISE, world)
        nobody = of_nobody(real.shared, held.items, constants.part, CONTROL, noise)
        yield Key(names.PURE_NOISE, CONTROL), Released(nobody, real.guarantee)


def _apart(held: Held, constants: Constants, world: str, epsilon: float, seed: int) -> Iterator[tuple[Key, Released]]:
    """With noise per entity; and, of the same noise, what would be released if the rule stopped nothing."""

    def one(*, stops: bool) -> Released:
        noise = noise_of(seed, names.MOMENTS_APART, world, epsilon)
        return released(held.train, epsilon, constants.part, held.count, noise, once=False, stops=stops)

    method = one(stops=True)
    yield Key(names.MOMENTS_APART, epsilon), method
    if epsilon in EPSILONS:
        yield Key(names.MOMENTS_NOT_STOPPED, epsilon), method if method.shared.informative else one(stops=False)
