"""Both moments of all entities' rows, released by the real mechanisms; and an entity's scores with them.

The sum of H shares whose noise is added once has the law of one release over all rows (up to a factor that the proof of the
shares bounds): with H_min - t = H, that is what is simulated here. Without secure sums every share carries the whole noise; their
sum has the law of one release at rho / H.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from tacit.entity.fit import LOCAL
from tacit.evaluation.federated_prototypes.measures import Floats
from tacit.evaluation.federated_prototypes.names import DELTA
from tacit.guarantees import Guarantee, rho_for, tight
from tacit.mechanisms import Noise
from tacit.mechanisms.moment_shares import GramShare, PopularityShare, moment_rhos
from tacit.models.moments import FEWEST, Blend, ItemRidge, SharedMoments, item_ridge, largest
from tacit.server.secure_sums import HeadChoice, choose_head, no_information, shared_moments


@dataclass(frozen=True, slots=True)
class Constants:
    """Public constants, as published: none is chosen here. ``alphas``: weight of the pseudo-rows by epsilon, at least."""

    part: float  # of the budget for the popularity
    ridge: float
    gamma: float
    alphas: tuple[tuple[float, float], ...]
    central_ridge: float

    def alpha(self, epsilon: float, spread: int = 1) -> float:
        """For a sum whose noise has ``spread`` times the variance: that of the epsilon which is as noisy when added once."""
        epsilon /= math.sqrt(spread)
        return max((least, alpha) for least, alpha in self.alphas if epsilon >= least)[1]


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """``guarantee`` is what one user has, who is in one entity."""

    shared: SharedMoments
    guarantee: Guarantee


def released(
    rows: sparse.csr_array,
    epsilon: float,
    part: float,
    entities: int,
    noise: Noise,
    *,
    once: bool,
    stops: bool = True,
) -> Released:
    """Popularity, then the Gram matrix on the head that the noisy popularity leaves; no head, no second release.

    Without ``stops``, which is not the method: where there would be no head, the smallest one that there can be.
    """
    items, spread, honest = rows.shape[1], 1 if once else entities, entities if once else 1
    rhos = moment_rhos(epsilon, DELTA, part)
    first = PopularityShare(items, rhos[0] / spread, DELTA)
    choice = choose_head(first.release(rows, noise).value.steps, items, first.noise_law.sd)
    if not stops and not choice.informative:
        choice = replace(choice, head=largest(choice.popularity, min(items, FEWEST)))
    promised = PopularityShare(items, rhos[0], DELTA, honest).guarantee
    second = GramShare(items, tuple(choice.head.tolist()) or (0,), rhos[1] / spread, DELTA)
    if not choice.informative:
        return Released(no_information(choice, second.noise_law.sd), promised)
    shared = shared_moments(choice, second.release(rows, noise).value.steps, second.noise_law.sd)
    both = (promised, GramShare(items, (0,), rhos[1], DELTA, honest).guarantee)
    return Released(shared, tight(both, DELTA, "zcdp"))


def popularity_alone(rows: sparse.csr_array, epsilon: float, entities: int, noise: Noise) -> Released:
    """The whole budget for the popularity, noise once."""
    rho = rho_for(epsilon, DELTA)
    share = PopularityShare(rows.shape[1], rho, DELTA)
    choice = choose_head(share.release(rows, noise).value.steps, rows.shape[1], share.noise_law.sd)
    promised = PopularityShare(rows.shape[1], rho, DELTA, entities).guarantee
    return Released(no_information(choice, share.noise_law.sd), promised)  # there is no Gram matrix to have noise


def of_nobody(real: SharedMoments, items: int, part: float, epsilon: float, noise: Noise) -> SharedMoments:
    """Control: noise of the same size, and a head of the same size, of no rows at all."""
    rhos, nobody = moment_rhos(epsilon, DELTA, part), sparse.csr_array((0, items))
    first = PopularityShare(items, rhos[0], DELTA)
    popularity = first.release(nobody, noise).value.to_floats()
    choice = HeadChoice(popularity, first.noise_law.sd, real.seen, largest(popularity, real.head.size))
    second = GramShare(items, tuple(choice.head.tolist()), rhos[1], DELTA)
    return shared_moments(choice, second.release(nobody, noise).value.steps, second.noise_law.sd)


def prior(shared: SharedMoments, users: int) -> Floats:
    """The noisy popularity over the declared number of users."""
    return np.asarray(np.maximum(shared.popularity, 0.0) / max(1, users))


def own_scores(base: ItemRidge, constants: Constants) -> Floats:
    """What an entity does by itself: its own regression, and its own popularity."""
    return np.asarray(base.scores() + constants.gamma * LOCAL * _own(base))


def blended_scores(base: ItemRidge, shared: SharedMoments, alpha: float, constants: Constants, users: int) -> Floats:
    """Its own rows and the pseudo-rows at weight ``alpha``; items outside the head keep the score they had."""
    if not shared.informative:
        return own_scores(base, constants)
    popular = constants.gamma * (prior(shared, users) + LOCAL * _own(base))
    return np.asarray(Blend(base, shared.head, shared.pseudo_rows).scores(alpha) + popular)


def popular_scores(base: ItemRidge, shared: SharedMoments, constants: Constants, users: int) -> Floats:
    """An entity's own regression, and the popularity of its own rows and of all: what is left of a blend without pseudo-rows."""
    return np.asarray(base.scores() + constants.gamma * (prior(shared, users) + LOCAL * _own(base)))


def alone_scores(rows: sparse.csr_array, *, shared: SharedMoments, constants: Constants, users: int) -> Floats:
    """The release without an entity's rows: pseudo-rows take the place of all rows, plus the noisy popularity."""
    popular = np.tile(prior(shared, users), (rows.shape[0], 1))
    if not shared.informative:
        return popular
    nobody = item_ridge(sparse.csr_array((0, rows.shape[1])), constants.central_ridge)
    return np.asarray(Blend(nobody, shared.head, shared.pseudo_rows).scores(1.0, rows) + popular)


def _own(base: ItemRidge) -> Floats:
    """The mean of an entity's unit rows: on the scale of the shared popularity per user."""
    return np.asarray(base.unit.sum(axis=0) / max(1, base.unit.shape[0])).ravel()
