"""Drugs of patients as counts, in the paper's split (its Figure 2): all regions together, each by itself, private prototypes.

The full eICU database, which the paper used, is not open; this is the open demo, a hundredth of it, with drugs and no
laboratories.
"""

from collections.abc import Iterator

import numpy as np

from tacit.data import Ratings
from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes import factored, names
from tacit.evaluation.federated_prototypes.chance import noise_of, rng_of
from tacit.evaluation.federated_prototypes.factored import How, Tested
from tacit.evaluation.federated_prototypes.splits import paper_split
from tacit.evaluation.result import Row, Setting
from tacit.evaluation.statistics import Estimate
from tacit.guarantees import Guarantee
from tacit.mechanisms import GridPrototypes, ProfileBounds

RANKS = {Effort.QUICK: (10,), Effort.DEFAULT: (10, 30, 50), Effort.FULL: (10, 20, 30, 40, 50)}
K, EPSILON = 10, 0.1  # the paper's
USERS, EACH, MOST = 250, 30, 10.0  # public: order of an entity's patients, drugs of a patient, orders of a drug
EPOCHS = 30


def rows(ratings: Ratings, effort: Effort, *, seed: int) -> Iterator[tuple[Row, Guarantee | None, Estimate]]:
    held = paper_split(ratings, rng=rng_of(seed, "paper split", ratings.name))
    tested = Tested.of(held, 0.0, np.inf)
    bounds = ProfileBounds(held.items, EACH, MOST)
    mechanism = GridPrototypes(bounds, K, EPSILON, USERS, seed=factored.SERVER_SEED)
    released = [
        mechanism.release(held.train[held.members(entity)], noise_of(seed, names.REGIONS, "grid", entity)).value
        for entity in range(held.count)
    ]
    for rank in RANKS[effort]:
        how = How(rank, "sum", dense=True, epochs=EPOCHS)
        rng = rng_of(seed, names.REGIONS, "factors", rank)
        tables = factored.exact_prototypes(held, K, factored.zero_filled, rng_of(seed, names.REGIONS, names.K_MEANS))
        figures = {
            names.CENTRAL: factored.central(held, tested, how, rng),
            names.INDIVIDUAL: factored.individual(held, tested, how, rng),
            names.K_MEANS: factored.shared(tested, how, factored.from_exact(tables, how, rng)),
            names.GRID: factored.shared(tested, how, how.of_prototypes(released, by_size=True)),
            names.RANDOM_V: factored.shared(tested, how, rng.random((held.items, rank))),
        }
        for method, found in figures.items():
            private = method == names.GRID
            setting: Setting = {
                "world": names.REGIONS,
                "rank": rank,
                **({"epsilon": EPSILON, "k": K} if private else {}),
            }
            for metric, one in found.items():
                yield Row.of(method, metric, one, **setting), mechanism.guarantee if private else None, one
