"""The search for the worst kernel against the claims of natural slates and subsets; and the kernel where theory has it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from tacit.audit import check, slate_search
from tacit.audit.cases import Draws
from tacit.audit.cases.slate_tables import BOTH, Check
from tacit.audit.findings import Finding, Measure
from tacit.audit.slate_pairs import Lost, Pair, Setting, lost
from tacit.guarantees import Relation
from tacit.mechanisms import NaturalSlate, NaturalSubset
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.slates import natural_epsilon, subset_epsilon

LARGEST = 6  # items of which all slates are enumerated
LARGEST_SUBSETS = 4
ROOMS = (0.1, 1.0, 10.0)  # bound / sigma
EPSILONS = (0.1, 1.0, 3.0)  # of subsets
_SEED = 20_260_713  # the search is an experiment: the same in every run
_MANY = 2.0**40  # the weight of items that very many like


@lru_cache(maxsize=1)
def slates_searched() -> tuple[tuple[Setting, Lost], ...]:
    """The worst pair that the search finds for all k < n <= 6, in fractions. About two seconds."""
    rng = np.random.default_rng(_SEED)
    found = [
        pair
        for settings in slate_search.every_size(LARGEST, [room(x) for x in ROOMS], BOTH)
        for pair in slate_search.climb(settings, rng=rng)
    ]
    return tuple((pair.setting, lost(pair)) for pair in found)


@lru_cache(maxsize=1)
def subsets_searched() -> tuple[tuple[Setting, Lost], ...]:
    """The same for subsets of up to four items."""
    rng = np.random.default_rng(_SEED)
    found = []
    for items in range(1, LARGEST_SUBSETS + 1):
        settings = [
            subset_setting(items, relation, epsilon)
            for relation in BOTH
            for epsilon in EPSILONS
            if items > 1 or relation is Relation.ADD_REMOVE  # where there is one item, none can be left for another
        ]
        found += slate_search.climb(settings, rng=rng)
    return tuple((pair.setting, lost(pair)) for pair in found)


def extremal(setting: Setting) -> Pair:
    """Where a bound is attained. Replaced: one item for another, and nobody else is there. Added: to an item that nobody has."""
    nobody, alone = np.zeros(setting.items), np.zeros((setting.items, setting.items))
    user = np.eye(setting.items) * math.sqrt(setting.bound)
    if setting.relation is Relation.REPLACE:
        return Pair(setting, alone, user[1], user[0])
    others = alone if setting.k is None else np.diag([0.0] + [_MANY] * (setting.items - 1))
    return Pair(setting, others, nobody, user[0])


def slates_by_search(relation: Relation, x: float, measure: Measure = Measure.EPSILON) -> Check:
    def run(noise: Noise, draws: Draws) -> Finding:
        found = [(one, loss) for one, loss in slates_searched() if one.relation is relation and one.bound == room(x)]
        case = f"search, all k < n <= {LARGEST}, bound {x:g} sigma, one {relation}"
        return _judged(_with_room(x, relation), case, measure, found, natural_epsilon(room(x), 1.0), LARGEST)

    return run


def subsets_by_search(relation: Relation, epsilon: float) -> Check:
    def run(noise: Noise, draws: Draws) -> Finding:
        one = subset_setting(LARGEST_SUBSETS, relation, epsilon)
        found = [(s, loss) for s, loss in subsets_searched() if s.relation is relation and s.sigma == one.sigma]
        mechanism = NaturalSubset(LARGEST_SUBSETS, epsilon, relation=relation)
        case = f"search, n <= {LARGEST_SUBSETS}, one {relation}"
        true = subset_epsilon(one.bound, one.sigma, relation)
        return _judged(mechanism, case, Measure.EPSILON, found, true, LARGEST_SUBSETS)

    return run


def _judged(
    mechanism: NaturalSlate | NaturalSubset,
    case: str,
    measure: Measure,
    found: Sequence[tuple[Setting, Lost]],
    true: float,
    largest: int,
) -> Finding:
    """The worst of what was found and of where theory has it; and how near the search came, in its worst setting."""
    known = [lost(extremal(setting)) for setting, _ in found if setting.items == largest]
    losses = [*known, *(loss for _, loss in found)]
    worst = max(loss.epsilon if measure is Measure.EPSILON else loss.range for loss in losses)
    share = min(loss.epsilon for _, loss in found) / true
    note = f"the search alone finds {share:.7f} of it in every setting"
    return replace(check.judged(mechanism, case, measure, worst, reference=true), note=note)


def room(x: float) -> float:
    """bound / sigma of the mechanism itself, whose sigma is rounded up to its grid."""
    return float(1 / Fraction(_with_room(x, Relation.ADD_REMOVE).sigma))


def _with_room(x: float, relation: Relation) -> NaturalSlate:
    return NaturalSlate(LARGEST, 3, natural_epsilon(x, 1.0), relation=relation)


def subset_setting(items: int, relation: Relation, epsilon: float) -> Setting:
    mechanism = NaturalSubset(items, epsilon, relation=relation)
    return Setting(items, None, mechanism.bound, relation, mechanism.sigma)
