"""One release for the whole system, everything else being post-processing: the moments, with noise of the mechanisms themselves."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tacit.evaluation.cross_domain import names
from tacit.evaluation.cross_domain.known import Known
from tacit.evaluation.cross_domain.outcome import DIRECTIONS, LINKING
from tacit.evaluation.cross_domain.splits import Floats, Held
from tacit.guarantees import Guarantee, mu_for
from tacit.mechanisms import Noise
from tacit.mechanisms.rating_moments import NoisyMoments, RatingMoments
from tacit.mechanisms.rating_rows import MOST_COLUMNS, RatingBounds
from tacit.mechanisms.transfer_moments import NoisyOffsets, NoisyPairs, NoisyTransfer, TransferMoments
from tacit.models.cross_domain.transfer import Transfer, TransferSettings
from tacit.models.cross_domain.transfer_models import EDGE, bridge, factor_posterior, honest_x_map

MOST_ITEMS = 50  # ratings of a user in the first release
NOISE_EDGE = 2.0  # of B2: where noise ends
_NEVER = 1e-9  # an edge below every eigenvalue
NoiseOf = Callable[[str], Noise]


class Tried(NamedTuple):
    method: str
    scores: Floats
    guarantee: Guarantee | None = None  # None: no noise, no privacy
    told: Mapping[str, int] | None = None  # what the model says of itself


def order_of_magnitude(users: int) -> int:
    """One leading digit: what would be known in public of the number of users."""
    power = 10 ** math.floor(math.log10(users))
    return int(users / power) * int(power)


def settings_of(held: Held) -> TransferSettings:
    """The library's defaults for the scale and for a public order of magnitude of the number of users."""
    return TransferSettings.for_scale(held.low, held.high, users=order_of_magnitude(held.ratings.shape[0]))


def moments(known: Known, epsilon: float | str, noise_of: NoiseOf, *, first: bool = True) -> Iterator[Tried]:
    """Every method at one epsilon (names.INF: the same sums without noise). ``first``: the release of B1 and B2 as well."""
    held = known.held
    if first and held.ratings.shape[1] <= MOST_COLUMNS:
        yield from _first(known, epsilon, noise_of(names.B1))
    settings = settings_of(held)
    versions = {
        names.B3_OFFSETS: replace(settings, head=0),
        names.B3_OWN: replace(settings, centre=None),
        names.B3: settings,
    }
    for method, chosen in versions.items():
        yield transferred(known, method, chosen, epsilon, noise_of(method))


def predicted(known: Known, model: Transfer) -> Floats:
    """By the model alone and the asked users' own ratings."""
    asked, first = known.held.asked, known.held.n_source
    return known.table(lambda users, items: model.predict_many(known.held.ratings, asked[users], items + first))


def _first(known: Known, epsilon: float | str, noise: Noise) -> Iterator[Tried]:
    held, settings = known.held, replace(settings_of(known.held), centre=None)
    bounds = RatingBounds(held.low, held.high, None, settings.clip)
    mu = 1.0 if epsilon == names.INF else mu_for(float(epsilon), names.DELTA)
    items = int(held.ratings.shape[1])
    mechanism = RatingMoments(
        items, held.n_source, bounds, mu, names.DELTA, most_items=min(MOST_ITEMS, items), norm=settings.pair_norm
    )
    if epsilon == names.INF:
        none = (0.0, 0.0, 0.0, 0.0)
        found = NoisyMoments(mechanism.totals(held.ratings, noise), items, held.n_source, mechanism.step, none)
    else:
        found = mechanism.release(held.ratings, noise).value
    guarantee = None if epsilon == names.INF else mechanism.guarantee
    parts = found.matrix(), found.values, found.counts
    mapped = honest_x_map(*parts, found.sds, held.n_source, settings, edge=_NEVER, anyway=True)
    yield Tried(names.B1, predicted(known, mapped), guarantee, {LINKING: mapped.crossing})
    careful = honest_x_map(*parts, found.sds, held.n_source, settings)
    yield Tried(names.B1_CAREFUL, predicted(known, careful), guarantee, _told(careful))
    for method, edge in ((names.B2, NOISE_EDGE), (names.B2_CAREFUL, EDGE)):
        crossed = bridge(*parts, found.users, found.sds, held.n_source, settings, edge=edge)
        yield Tried(method, predicted(known, crossed), guarantee, _told(crossed))
    yield Tried(names.OFFSETS, predicted(known, crossed.offsets), guarantee)


def transferred(known: Known, method: str, settings: TransferSettings, epsilon: float | str, noise: Noise) -> Tried:
    """B3 with these settings: one release of two steps, and the posterior of every asked user's taste."""
    held, mu = known.held, math.inf if epsilon == names.INF else mu_for(float(epsilon), names.DELTA)
    found, guarantee = released(held, settings, mu, noise)
    model = factor_posterior(
        found.offsets.values, found.offsets.counts, found.offsets.value_sd, found.offsets.count_sd, found.head, found.matrix(),
        found.pair_sd, held.n_source, settings,
    )  # fmt: skip
    return Tried(method, predicted(known, model), guarantee, _told(model))


def _told(model: Transfer) -> dict[str, int]:
    return {DIRECTIONS: model.directions, LINKING: model.crossing}


def released(held: Held, settings: TransferSettings, mu: float, noise: Noise) -> tuple[NoisyTransfer, Guarantee | None]:
    """At a Gaussian loss of mu; infinite: the exact sums, over as many items as a head may have."""
    items = int(held.ratings.shape[1])
    known = mu if math.isfinite(mu) else 100.0
    mechanism = TransferMoments(
        items,
        held.n_source,
        RatingBounds(held.low, held.high, settings.centre, settings.clip),
        known,
        names.DELTA,
        head_size=settings.head_size(items, known),
        offset_share=min(settings.share_of_offsets(known), 1.0 - 1e-9),
        offset_norm=settings.offset_norm,
        mask=settings.mask,
        pair_norm=settings.pair_norm,
    )
    if math.isfinite(mu):
        return mechanism.release(held.ratings, noise).value, mechanism.guarantee
    first = mechanism.offsets
    sums = NoisyOffsets(
        first.totals(held.ratings), first.noise_law.step, first.mask_in_steps * first.noise_law.step, 0.0
    )
    pairs: Any = None
    if mechanism.head_size:
        second = mechanism.pairs(mechanism.head_of(sums))
        pairs = NoisyPairs(second.totals(held.ratings), second.noise_law.step, np.array(second.head), 0.0)
    return NoisyTransfer(sums, pairs, held.n_source), None
