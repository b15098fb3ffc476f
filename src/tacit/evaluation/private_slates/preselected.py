"""Slates from candidates that were released first: the most liked by Gumbel noise, or those above a threshold by sparse vector."""

from collections.abc import Iterator

import numpy as np

from tacit.evaluation.private_slates import names
from tacit.evaluation.private_slates.films import Films, Items
from tacit.evaluation.private_slates.tries import K, Tried, noise_of, rng_of, stacked
from tacit.guarantees import compose
from tacit.mechanisms import GumbelTopK, NaturalSlate, SparseVector, VoteTotals
from tacit.models.dpp.laws import Coins, RngCoins, rank_of
from tacit.models.dpp.samplers import DenseSampler

EPSILONS = (0.1, 0.3, 1.0, 3.0)
CANDIDATES = 100
HITS = 50
THRESHOLD = 0.1  # of the users; a public constant, like the range of likes


def two_stage(films: Films, slates: int, seed: int) -> Iterator[Tried]:
    """Half of epsilon for the candidates, half for the slate; records are cut anew to the candidates."""
    for epsilon in EPSILONS:
        first = GumbelTopK(VoteTotals(), min(CANDIDATES, films.items), epsilon / 2.0)
        second = NaturalSlate(films.items, K, epsilon / 2.0)
        noise = noise_of(seed, names.TWO_STAGE, epsilon)
        found = []
        for _ in range(slates):
            candidates = first.release(films.likes, noise).value
            found.append(second.prepare(films.likes, among=candidates).release(noise).value)
        yield Tried(names.TWO_STAGE, epsilon, stacked(found), compose([first.guarantee, second.guarantee]))


def sparse_vector(films: Films, slates: int, seed: int) -> Iterator[Tried]:
    """Films in a new random order for every slate: of those above the threshold the first ones are found."""
    rng = rng_of(seed, names.SPARSE)
    for epsilon in EPSILONS:
        mechanism = SparseVector(VoteTotals(), round(THRESHOLD * films.users), epsilon, HITS)
        noise = noise_of(seed, names.SPARSE, epsilon)
        found = []
        for _ in range(slates):
            order = rng.permutation(films.items)
            answers = np.array(mechanism.release(films.likes[:, order], noise).value)
            found.append(public_slate(films, order[: answers.size][answers], rng=rng))
        yield Tried(names.SPARSE, epsilon, stacked(found), mechanism.guarantee)


def public_slate(films: Films, candidates: Items, *, rng: np.random.Generator) -> Items:
    """A k-DPP of the candidates' genres. What their genres, or their number, cannot fill is filled uniformly, never refused."""
    coins: Coins = RngCoins(rng)
    size = min(K, rank_of(films.genres[candidates])) if candidates.size else 0
    chosen = candidates[:0]
    if size:
        genres = films.genres[candidates]
        chosen = candidates[DenseSampler(genres @ genres.T, size).draw(coins)]
    for rest in (np.setdiff1d(candidates, chosen), np.setdiff1d(np.arange(films.items), candidates)):
        chosen = np.concatenate([chosen, rng.permutation(rest)[: K - chosen.size]])
    return chosen
