"""Any number of slates from one release: noisy counts with public genres, or a noisy kernel. Nothing costs more after it."""

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Progress
from tacit.evaluation.private_slates import names
from tacit.evaluation.private_slates.films import Films, Floats, Items
from tacit.evaluation.private_slates.tries import K, Tried, noise_of, rng_of, stacked
from tacit.mechanisms import GaussianKernel, LaplaceSum
from tacit.models.dpp.laws import RngCoins, choose, log_table
from tacit.models.dpp.projection import projection_samples
from tacit.models.dpp.tempered import greedy_map

LAPLACE_EPSILONS = (0.1, 0.3, 1.0, 3.0)
KERNEL_EPSILONS = (0.1, 1.0)
K_DPP_EPSILON = 1.0
LIKES_EACH = 20
QUALITY = 3.0  # a film's row of genres is weighed by e^(3q), q its noisy count as a share of the largest
DELTA = 1e-6
LARGEST = 4000  # films of which a noisy kernel is tried: time grows with the cube of their number
KERNELS = {Effort.QUICK: 2, Effort.DEFAULT: 3, Effort.FULL: 8}  # noise draws


def laplace(films: Films, slates: int, seed: int) -> Iterator[Tried]:
    """Of every user 20 likes at random count; greedy choice by genres and noisy counts, from a new release each time."""
    cut = some_likes(films, LIKES_EACH, rng=rng_of(seed, names.LAPLACE))
    for epsilon in LAPLACE_EPSILONS:
        mechanism = LaplaceSum(films.items, float(LIKES_EACH), epsilon)
        noise = noise_of(seed, names.LAPLACE, epsilon)
        found = (by_quality(films, mechanism.release(cut, noise).value.to_floats()) for _ in range(slates))
        yield Tried(names.LAPLACE, epsilon, stacked(found), mechanism.guarantee)


def by_quality(films: Films, counts: Floats) -> Items:
    """The greedy slate of noisy counts; those below 0 are taken for 0."""
    quality = np.maximum(counts, 0.0) / max(1.0, float(counts.max()))
    # weights of rows count twice in a determinant
    return greedy_map((films.genres, 0.0), K, log_weights=2.0 * QUALITY * quality, fill=True)


def some_likes(films: Films, each: int, *, rng: np.random.Generator) -> sparse.csr_array:
    """At most ``each`` likes of every user, drawn at random."""
    starts = films.likes.indptr
    user = np.repeat(np.arange(films.users), np.diff(starts))
    order = np.lexsort((rng.random(user.size), user))  # every user's likes in random order
    kept = np.sort(order[np.arange(user.size) - starts[user] < each])
    table = (np.ones(kept.size), (user[kept], films.likes.indices[kept]))
    return sparse.csr_array(table, shape=films.likes.shape)


def noisy_kernels(films: Films, effort: Effort, slates: int, seed: int, told: Progress) -> Iterator[Tried]:
    """Noise on the kernel of co-likes; its negative eigenvalues are set to 0. Slates of one kernel are one group."""
    if films.items > LARGEST:
        return
    draws = KERNELS[effort]
    for place, epsilon in enumerate(KERNEL_EPSILONS):
        mechanism = GaussianKernel(films.items, epsilon, DELTA)
        noise = noise_of(seed, names.KERNEL_GREEDY, epsilon)
        greedy, drawn = [], []
        for draw in range(draws):
            told("noisy kernels", place * draws + draw, len(KERNEL_EPSILONS) * draws)
            values, vectors = positive_part(mechanism.release(films.likes, noise).value.to_floats())
            greedy.append(greedy_map((vectors * np.sqrt(values), 0.0), K, fill=True))
            if epsilon == K_DPP_EPSILON:
                coins = RngCoins(rng_of(seed, f"{names.KERNEL_K_DPP} {draw}"))
                columns = choose(log_table(np.log(values), K), np.full(slates, K), coins)
                drawn.append(stacked(np.sort(projection_samples(vectors.T, one[None, :], coins)[0]) for one in columns))
        yield Tried(names.KERNEL_GREEDY, epsilon, stacked(greedy), mechanism.guarantee)
        if drawn:
            groups = np.repeat(np.arange(draws), slates)
            yield Tried(names.KERNEL_K_DPP, epsilon, np.concatenate(drawn), mechanism.guarantee, groups)


def positive_part(matrix: Floats) -> tuple[Floats, Floats]:
    """The eigenvalues above 0 of a symmetric matrix, and their eigenvectors: the nearest kernel is made of them."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > 0.0
    return values[kept], vectors[:, kept]
