"""One world, every method: what promises nothing, what was published, and the releases that promise something."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.evaluation.cross_domain import names, paper
from tacit.evaluation.cross_domain.known import Known
from tacit.evaluation.cross_domain.measures import scored
from tacit.evaluation.cross_domain.moments import moments
from tacit.evaluation.cross_domain.outcome import Gathering, Outcome
from tacit.evaluation.cross_domain.plain import METHODS
from tacit.evaluation.cross_domain.published import (
    A_DRAW,
    Drawn,
    by_price,
    by_price_of_items,
    positive,
    published,
    whole_table,
)
from tacit.evaluation.cross_domain.splits import Held
from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes.chance import noise_of, rng_of
from tacit.evaluation.result import Claim, Row, sizes
from tacit.mechanisms import Noise

EPSILONS = {Effort.QUICK: (8.0, 2.0), Effort.DEFAULT: (8.0, 4.0, 2.0, 1.0, 0.5)}
PRICES = {Effort.QUICK: (0.3, 300.0), Effort.DEFAULT: (0.3, 3.0, 30.0, 100.0, 300.0, 1000.0)}
PRICES_OF_ITEMS = {Effort.QUICK: (0.8,), Effort.DEFAULT: (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)}
WITHOUT_END = 1e5  # an epsilon for one draw at which the largest X-SIM is all that is left
SAME = "same replacement as NX-Map"


@dataclass(frozen=True)
class What:
    """Which methods a world is tried with."""

    plain: tuple[str, ...] = tuple(METHODS)
    published: bool = True
    moments: bool = True
    prices: bool = False
    draws: int = 2  # of noise, for each split
    listed: int = 200


def tried(splits: Sequence[Callable[[], Held]], what: What, effort: Effort, seed: int) -> Outcome:
    """The splits are made one after the other, since all of them together may be large."""
    gathered, same = Gathering(), []
    for number, split in enumerate(splits):
        gathered.next_split()
        known = Known(split(), listed=what.listed)
        world: dict[str, int | float | str] = {"world": known.held.world, "epsilon": names.INF}
        for method in what.plain:
            scores = METHODS[method](known, rng_of(seed, method, known.held.world, number))
            gathered.add(method, world, scored(known.held, scores))
        for draw in range(what.draws):
            _drawn(gathered, known, what, effort, seed, (number, draw))
        if what.prices:
            same.append(_same(known, seed, number))
    found = gathered.outcome()
    users, items = known.held.ratings.shape
    found.rows += sizes({"users": users, "items": items}, world=known.held.world)
    if same:
        share, world_name = float(np.mean(same)), str(world["world"])
        setting: dict[str, int | float | str] = {"world": world_name, A_DRAW: WITHOUT_END}
        found.rows.append(Row(names.POSITIVE_RATED, setting, SAME, share, None, len(same)))
        found.claims.append(
            Claim(
                paper.OURS,
                "as epsilon grows without end, PRS over a public list replaces at least 97 % of mapped items as NX-Map does",
                share >= 0.97,
                f"{share:.1%} at epsilon {WITHOUT_END:g} for one draw",
            )
        )
    return found


def _drawn(gathered: Gathering, known: Known, what: What, effort: Effort, seed: int, which: tuple[int, int]) -> None:
    held = known.held

    def noise(*of: object) -> Callable[[str], Noise]:
        return lambda name: noise_of(seed, held.world, *which, *of, name)

    def add(one: Drawn) -> None:
        setting = {"world": held.world, "epsilon": names.INF, **one.setting}
        gathered.add(one.method, setting, scored(held, one.scores), one.guarantee)

    if what.published:
        for one in published(known, noise("published"), rated=not what.prices):
            add(one)
    if what.prices:
        for one in by_price(known, PRICES.get(effort, PRICES[Effort.DEFAULT]), noise("price")):
            add(one)
        wanted = PRICES_OF_ITEMS.get(effort, PRICES_OF_ITEMS[Effort.DEFAULT])
        for one in by_price_of_items(known, wanted, noise("price")):
            add(one)
    if not what.moments:
        return
    for epsilon in EPSILONS.get(effort, EPSILONS[Effort.DEFAULT]):
        if what.published:
            add(whole_table(known, epsilon, noise_of(seed, held.world, *which, names.TABLE, epsilon)))
        for tried_one in moments(known, epsilon, noise("moments", epsilon)):
            setting: dict[str, int | float | str] = {"world": held.world, "epsilon": epsilon}
            gathered.add(tried_one.method, setting, scored(held, tried_one.scores), tried_one.guarantee, tried_one.told)
    if which[1] == 0:  # without noise every draw is alike, but for which of a user's ratings count
        for tried_one in moments(known, names.INF, noise("moments")):
            setting = {"world": held.world, "epsilon": names.INF}
            gathered.add(tried_one.method, setting, scored(held, tried_one.scores), None, tried_one.told)


def _same(known: Known, seed: int, number: int) -> float:
    chosen, _ = positive(known, WITHOUT_END, noise_of(seed, known.held.world, number, SAME))
    mapped = known.replacement >= 0
    return float((chosen[mapped] == known.replacement[mapped]).mean())
