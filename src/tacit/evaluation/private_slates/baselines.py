"""Slates without privacy, or without data: uniform, the most liked, and the kernel of co-likes by greedy choice and by chance."""

from collections.abc import Iterator

import numpy as np

from tacit.evaluation.private_slates import names
from tacit.evaluation.private_slates.films import Films
from tacit.evaluation.private_slates.tries import INF, K, Tried, noise_of, rng_of, stacked
from tacit.guarantees import ONE_USER, pure
from tacit.mechanisms import NaturalSlate
from tacit.models.dpp.tempered import greedy_map

WITHOUT = 20.0  # an epsilon so large that the jitter, 2e-9, moves no figure


def baselines(films: Films, slates: int, seed: int) -> Iterator[Tried]:
    rng = rng_of(seed, names.UNIFORM)
    uniform = stacked(rng.choice(films.items, K, replace=False) for _ in range(slates))
    yield Tried(names.UNIFORM, 0.0, uniform, pure(0.0, ONE_USER))
    yield Tried(names.TOP, INF, stacked([np.argsort(-films.counts, kind="stable")[:K]]))
    # Greedy wants the films that are worth most after what is chosen explains; jitter adds the same to all and is left out.
    yield Tried(names.GREEDY, INF, stacked([greedy_map((films.contributions.T.toarray(), 0.0), K, fill=True)]))
    free = NaturalSlate(films.items, K, WITHOUT).prepare(films.likes)
    yield Tried(names.K_DPP, INF, free.release_many(slates, noise_of(seed, names.K_DPP, INF)).value)
