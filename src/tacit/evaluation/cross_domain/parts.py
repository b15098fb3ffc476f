"""The parts of the evaluation: made-up worlds, sweeps, theorems in figures, and every real pair of domains."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tacit.evaluation.cross_domain import names, sweeps, theorems
from tacit.evaluation.cross_domain.known import Known
from tacit.evaluation.cross_domain.outcome import Outcome
from tacit.evaluation.cross_domain.plain import METHODS
from tacit.evaluation.cross_domain.reference import LARGE, PLAIN, SMALL
from tacit.evaluation.cross_domain.splits import Held, hidden
from tacit.evaluation.cross_domain.tried import What, tried
from tacit.evaluation.cross_domain.worlds import World
from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes.chance import rng_of

Part = Callable[[], Outcome]

WORLDS = {Effort.QUICK: 1, Effort.DEFAULT: 5, Effort.FULL: 8}
SPLITS = {Effort.QUICK: 1, Effort.DEFAULT: 5, Effort.FULL: 10}
DRAWS = {
    Effort.QUICK: 1,
    Effort.DEFAULT: 1,
    Effort.FULL: 3,
}  # of noise, for each split, which has noise of its own anyhow
MANY = 500_000  # ratings: one split, fewer lists, no links cut
LISTED = {Effort.QUICK: 40, Effort.DEFAULT: 100, Effort.FULL: 1000}
FEW_LISTED = 100
_BESIDE = (names.OWN_MEAN, names.ITEM_AVERAGE, names.USER_MEAN, names.NX, names.ALS)
_SLOW = (names.REMOTE_USER, names.NX_UB_RATED, names.NX_MANY[10])


def made_up(effort: Effort, seed: int) -> dict[str, Part]:
    """By name."""
    chosen: dict[str, Part] = {
        PLAIN: partial(_synthetic, PLAIN, What(prices=True, draws=DRAWS[effort]), effort, seed),
        SMALL: partial(_synthetic, SMALL, What(_BESIDE, published=False, draws=DRAWS[effort]), effort, seed),
        "overlap": partial(sweeps.overlaps, effort, seed),
        "age of ratings": partial(sweeps.of_age, effort, seed),
        "number of users": partial(sweeps.by_users, effort, seed),
        "k, paths and significance": partial(_one_at_a_time, effort, seed),
        "theorems": partial(_theorems, effort, seed),
    }
    if effort is not Effort.QUICK:
        chosen[LARGE] = partial(
            _synthetic, LARGE, What(_BESIDE, published=False, draws=1 + DRAWS[effort]), effort, seed, 1
        )
    return chosen


def real(world: World, effort: Effort, seed: int) -> dict[str, Part]:
    many = len(world.two.source) + len(world.two.target) > MANY
    count = 1 if many else SPLITS[effort]
    splits = [partial(split, world, seed, number) for number in range(count)]
    plain = tuple(name for name in METHODS if not (many and effort is Effort.QUICK and name in _SLOW))
    what = What(
        plain,
        published=not (many and effort is Effort.QUICK),
        draws=1 + DRAWS[effort] if many and effort is not Effort.QUICK else DRAWS[effort],
        listed=min(FEW_LISTED, LISTED[effort]) if many else LISTED[effort],
    )
    chosen: dict[str, Part] = {world.name: partial(tried, splits, what, effort, seed)}
    if effort is not Effort.QUICK:
        chosen[f"{world.name}, k and sensitivities"] = partial(_looked_at, splits[0], seed)
    if effort is not Effort.QUICK and not many:
        chosen[f"{world.name}, links cut"] = partial(_cut, splits[0], seed)
    return chosen


def split(world: World, seed: int, number: int) -> Held:
    return hidden(world.two, world.name, rng=rng_of(seed, "split", world.name, number))


def _synthetic(name: str, what: What, effort: Effort, seed: int, worlds: int | None = None) -> Outcome:
    count = WORLDS[effort] if worlds is None else worlds
    splits = [partial(sweeps.plain_world, sweeps.PLANS[name], name, seed, which) for which in range(count)]
    return tried(splits, what, effort, seed)


def _one_at_a_time(effort: Effort, seed: int) -> Outcome:
    known = Known(sweeps.plain_world(sweeps.PLANS[PLAIN], PLAIN, seed, 0), listed=FEW_LISTED)
    found = sweeps.by_k(known)
    found.join(sweeps.of_paths(known))
    return found


def _looked_at(held: Callable[[], Held], seed: int) -> Outcome:
    known = Known(held(), listed=FEW_LISTED)
    found = sweeps.by_k(known)
    found.add(theorems.sensitivities(known, seed))
    return found


def _cut(held: Callable[[], Held], seed: int) -> Outcome:
    return sweeps.links_cut(held(), seed)


def _theorems(effort: Effort, seed: int) -> Outcome:
    found = Outcome()
    found.add(theorems.drawn(effort, seed))
    plan = sweeps.PLANS[PLAIN]
    found.add(theorems.sensitivities(Known(sweeps.plain_world(plan, PLAIN, seed, 0)), seed))
    few = replace(plan, overlap=min(sweeps.OVERLAPS[Effort.QUICK]))  # so few links that paths are long
    found.add(theorems.two_ways(Known(sweeps.plain_world(few, PLAIN, seed, 0))))
    return found
