"""Noisy counts and means of items: what a federation can tell about items without prototypes, and what entities make of it.

Every user gives (1, (x - 3.5) / 2) on her items, cut to length 1, to one sum with Gaussian noise: of each entity, or once over all
(the law of the sum of shares whose noise adds up to that). Items' means are then shrunk by the noise, which is public.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes import names
from tacit.evaluation.federated_prototypes.chance import noise_of, rng_of
from tacit.evaluation.federated_prototypes.factored import Tested
from tacit.evaluation.federated_prototypes.measures import RMSE, Floats
from tacit.evaluation.federated_prototypes.rated import STARS, biased
from tacit.evaluation.federated_prototypes.residuals import residual_scores
from tacit.evaluation.federated_prototypes.splits import Held
from tacit.evaluation.result import Row
from tacit.evaluation.statistics import Estimate
from tacit.guarantees import Guarantee
from tacit.mechanisms import GaussianSum

EPSILONS = (0.1, 1.0, 10.0)
PRIOR_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
CENTRE, HALF = 3.5, 2.0
SPREAD = 0.25  # of items' means, in units of 2 stars: how far an item is expected to be from all
LOCAL = 10.0  # so many of an entity's own ratings weigh as much as what is told of an item
PAPER, EVERY = "paper split", "every user"


class Told(NamedTuple):
    """Noisy weighted counts, and item means shrunk towards the mean of all."""

    counts: Floats
    means: Floats
    guarantee: Guarantee | None


def contributions(train: sparse.csr_array) -> sparse.csr_array:
    """Users x 2 items: 1 and (x - 3.5) / 2 for every rating. The mechanism cuts rows to length 1."""
    centred = sparse.csr_array(((train.data - CENTRE) / HALF, train.indices, train.indptr), shape=train.shape)
    ones = sparse.csr_array((np.ones(train.nnz), train.indices, train.indptr), shape=train.shape)
    return sparse.csr_array(sparse.hstack([ones, centred], format="csr"))


def told(held: Held, epsilon: float, seed: int, *, once: bool, where: str) -> Told:
    mechanism = GaussianSum(2 * held.items, 1.0, epsilon, names.DELTA)
    rows = contributions(held.train)
    shares = [rows] if once else [rows[held.members(entity)] for entity in range(held.count)]
    noisy = sum(
        mechanism.release(share, noise_of(seed, "item statistics", where, epsilon, once, place)).value.to_floats()
        for place, share in enumerate(shares)
    )
    variance = len(shares) / (2.0 * mechanism.rho)
    guarantee = mechanism.guarantee
    if once:
        guarantee = guarantee.assuming(
            "only the sum of the shares is seen",
            f"at least {held.count} shares in it have noise that the adversary does not know",
        )
    return Told(*shrunk(np.asarray(noisy), variance), guarantee)


def exactly(held: Held) -> Told:
    """Without privacy: every rating counts in full."""
    counts = np.bincount(held.train.indices, minlength=held.items).astype(np.float64)
    whole = float(held.train.data.mean())
    sums = np.bincount(held.train.indices, weights=held.train.data - whole, minlength=held.items)
    return Told(counts, whole + sums / (counts + 1.0), None)


def shrunk(noisy: Floats, variance: float) -> tuple[Floats, Floats]:
    """Counts c and means from sums s of centred values: c s / (c^2 + variance / spread^2) is the best guess of s / c."""
    counts, sums = np.split(noisy, 2)
    positive = np.maximum(counts, 0.0)
    total = float(positive.sum())
    whole = float(np.clip(sums.sum() / total, -1.0, 1.0)) if total > 0.0 else 0.0
    apart = positive * (sums - whole * positive) / (positive**2 + variance / SPREAD**2)
    return counts, np.clip(CENTRE + HALF * (whole + apart), *STARS)


def local_means(train: sparse.csr_array, prior: Floats, weight: float = LOCAL) -> Floats:
    """An entity's own item means, with ``prior`` as so many further ratings."""
    items = train.shape[1]
    counts = np.bincount(train.indices, minlength=items)
    sums = np.bincount(train.indices, weights=train.data, minlength=items)
    return np.asarray((sums + weight * prior) / (counts + weight))


def rows(held: Held, effort: Effort, seed: int) -> Iterator[tuple[Row, Guarantee | None]]:
    """In the paper's split: ranks by noisy counts, errors by noisy means, and with both as prior of an entity's own."""
    tested = Tested.of(held, *STARS)
    shape = tested.rows.shape

    def figures(
        method: str, one: Estimate, metric: str, epsilon: float | str, guarantee: Guarantee | None
    ) -> tuple[Row, Guarantee | None]:
        return Row.of(method, metric, one, world=names.ZIP1, epsilon=epsilon), guarantee

    alone = _with_prior(held, tested, None, rng_of(seed, "residual factors", names.LOCAL_RESIDUAL))
    yield figures(names.LOCAL_RESIDUAL, tested.error(alone, tested.held), RMSE, names.INF, None)
    for epsilon in (1.0,) if effort is Effort.QUICK else EPSILONS:
        for once in (False, True):
            said = told(held, epsilon, seed, once=once, where=PAPER)
            ranked = tested.ranked(np.tile(said.counts, (shape[0], 1))).estimates()
            counts, means = (
                (names.DP_POPULARITY_ONCE, names.DP_MEANS_ONCE) if once else (names.DP_POPULARITY, names.DP_MEANS)
            )
            for metric, one in ranked.items():
                yield figures(counts, one, metric, epsilon, said.guarantee)
            predicted = biased(tested.rows, np.tile(said.means, (shape[0], 1)))
            yield figures(means, tested.error(predicted, tested.held), RMSE, epsilon, said.guarantee)
            method = names.PRIOR_RESIDUAL_ONCE if once else names.PRIOR_RESIDUAL
            scores = _with_prior(held, tested, said.means, rng_of(seed, "residual factors", method, epsilon))
            yield figures(method, tested.error(scores, tested.held), RMSE, epsilon, said.guarantee)


def prior_rows(world: str, held: Held, effort: Effort, seed: int) -> Iterator[tuple[Row, Guarantee | None]]:
    """Cells of every user held out: an entity's own item means and user biases, with noisy means of all as prior."""
    tested = Tested.of(held, *STARS)

    def error(prior: Floats | None) -> Estimate:
        return tested.error(_means(held, tested, prior), tested.held)

    setting = {"world": world, "split": EVERY}
    yield Row.of(names.INDIVIDUAL, RMSE, error(None), **setting, epsilon=names.INF), None
    everything = exactly(held)
    central = biased(tested.rows, np.tile(everything.means, (tested.rows.shape[0], 1)))
    yield Row.of(names.CENTRAL, RMSE, tested.error(central, tested.held), **setting, epsilon=names.INF), None
    for epsilon in (1.0,) if effort is Effort.QUICK else PRIOR_EPSILONS:
        for once in (True, False):
            said = told(held, epsilon, seed, once=once, where=f"{EVERY} {world}")
            method = names.PRIOR_ONCE if once else names.PRIOR
            yield Row.of(method, RMSE, error(said.means), **setting, epsilon=epsilon), said.guarantee


def _means(held: Held, tested: Tested, prior: Floats | None) -> Floats:
    """Item means of each tested user's entity, moved by her bias."""
    found = np.empty(tested.rows.shape)
    for entity in range(held.count):
        mine, own = tested.entities == entity, held.train[held.members(entity)]
        if not mine.any():
            continue
        base = np.full(held.items, float(own.data.mean()) if own.nnz else CENTRE) if prior is None else prior
        found[mine] = local_means(own, base)
    return biased(tested.rows, found)


def _with_prior(held: Held, tested: Tested, prior: Floats | None, rng: np.random.Generator) -> Floats:
    """The same, and signed factors of what is left, found by each entity from its own rows."""
    found = np.empty(tested.rows.shape)
    for entity in range(held.count):
        members = held.members(entity)
        mine, own = tested.entities == entity, held.train[members]
        if not mine.any():
            continue
        base = np.full(held.items, float(own.data.mean())) if prior is None else prior
        predicted = biased(own, np.tile(local_means(own, base), (own.shape[0], 1)))
        found[mine] = (predicted + residual_scores(own, predicted, rng=rng))[held.reported[members]]
    return found
