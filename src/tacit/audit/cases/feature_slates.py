"""Feature slates: hostile tastes over public features."""

import math
from itertools import product
from typing import Any

import numpy as np

from tacit.audit.cases import Case, Draws, FromOutside, Twin, slate_draws
from tacit.audit.cases.slate_tables import Check, over
from tacit.audit.cases.slates import SMALL_RECORDS
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.slates import CutBeforeFeatures
from tacit.guarantees import Relation
from tacit.mechanisms import FeatureSlate
from tacit.mechanisms.noise import Noise

_NAME = FeatureSlate.name
_MIXED = np.array(
    [[2.0, 1.0], [1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]
)  # a user moves two items at once, and two not at all
_ALONE = np.array([[2.0, 0.0], [0.0, -3.0], [0.0, 0.0], [0.0, 0.0]])
_TASTES = list(product((-3.0, 0.2, 1e308, math.nan), repeat=2))


def cases() -> list[Case]:
    replaced = Relation.REPLACE
    return [
        Case(_NAME, By.EXACT, _hostile(FeatureSlate(_MIXED, 2, 1.0), Measure.RANGE, users=2)),
        Case(_NAME, By.EXACT, _hostile(FeatureSlate(_ALONE, 1, 1.0, relation=replaced))),
        Case(_NAME, By.EXACT, _hostile(FeatureSlate(_ALONE, 3, 2.0, bound=5.0, relation=replaced))),
        Case(_NAME, By.EXACT, _hostile(FeatureSlate(_ALONE, 4, 2.0))),
        Case(_NAME, By.DISTRIBUTION, _draws),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    return [
        Twin(
            CutBeforeFeatures.name,
            _NAME,
            "cuts a user's own vector, not what the features make of it",
            _hostile(CutBeforeFeatures(FeatureSlate(_ALONE, 1, 1.0)), Measure.RANGE),
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(FeatureSlate(_ALONE, 1, 1.0, relation=Relation.REPLACE), _empirical)]


def _hostile(mechanism: Any, measure: Measure = Measure.EPSILON, *, users: int = 1) -> Check:
    """Tastes that are too long, tiny or not numbers."""
    real = getattr(mechanism, "real", mechanism)
    return over(mechanism, _TASTES, f"{real.k} of {real.items} items, hostile tastes", measure, users=users)


def _draws(noise: Noise, draws: Draws) -> Finding:
    features = SMALL_RECORDS.T * [1.0, 4.0, 4.0]  # the records of the natural slate, by three features
    tastes = np.diag([1.0, 0.25, 0.25])
    return slate_draws.fits(FeatureSlate(features, 3, 4.3), tastes, noise, draws.slates, case="3 of 6 items")


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    tables = (np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    return slate_draws.from_outside(mechanism, tables, noise, draws.single, case="1 of 4 items, one user replaced")
