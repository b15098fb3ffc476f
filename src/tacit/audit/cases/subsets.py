"""Natural subsets, of any size: the worst kernels that a search finds, every small table of records, hostile records."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from tacit.audit import slate_forms
from tacit.audit.cases import Case, Draws, FromOutside, Twin, slate_draws
from tacit.audit.cases.slate_searches import EPSILONS, subsets_by_search
from tacit.audit.cases.slate_tables import BOTH, HOSTILE, Check, Remembered, over
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.slates import Claiming
from tacit.guarantees import Loss, LossKind, Relation
from tacit.mechanisms import NaturalSubset
from tacit.mechanisms.noise import Noise

_NAME = NaturalSubset.name


def cases() -> list[Case]:
    added, replaced = (Remembered(NaturalSubset(3, 1.0, relation=relation)) for relation in BOTH)
    return [
        *(Case(_NAME, By.EXACT, subsets_by_search(relation, epsilon)) for relation in BOTH for epsilon in EPSILONS),
        *(Case(_NAME, By.EXACT, _records(added, measure)) for measure in (Measure.EPSILON, Measure.RANGE, Measure.RHO)),
        *(Case(_NAME, By.EXACT, _records(replaced, measure)) for measure in (Measure.EPSILON, Measure.RANGE)),
        *(
            Case(_NAME, By.EXACT, over(NaturalSubset(3, 2.0, relation=relation), HOSTILE, "3 items, hostile records"))
            for relation in BOTH
        ),
        Case(_NAME, By.DISTRIBUTION, _draws),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    real, replaced = NaturalSubset(3, 1.0), NaturalSubset(3, 1.0, relation=Relation.REPLACE)
    by_epsilon = replace(real.guarantee, loss=Loss(LossKind.BOUNDED_RANGE, real.epsilon))
    return [
        Twin(
            "epsilon-as-range",
            _NAME,
            "takes epsilon for the range of the loss, and adds up many subsets by it",
            _records(Claiming("epsilon-as-range", real, by_epsilon, real), Measure.RANGE),
        ),
        Twin(
            "subset-replaced-as-added",
            _NAME,
            "the jitter for users added, where they are replaced",
            _records(Claiming("subset-replaced-as-added", replaced, replaced.guarantee, real), Measure.EPSILON),
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(NaturalSubset(2, 1.0, relation=Relation.REPLACE), _empirical)]


def _records(mechanism: Any, measure: Measure) -> Check:
    """Every table of 0/1 records of two users for three items."""
    real = getattr(mechanism, "real", mechanism)
    rho = slate_forms.subset_rho(1, real.bound, real.sigma) if measure is Measure.RHO else None
    return over(
        mechanism,
        list(product((0.0, 1.0), repeat=real.items)),
        f"{real.items} items, records of 2 users",
        measure,
        reference=rho,
        note="no item is as likely as not, which would be the worst",
    )


def _draws(noise: Noise, draws: Draws) -> Finding:
    mechanism = NaturalSubset(5, 1.5, relation=Relation.REPLACE)
    rows = np.array([[0.1, 0.1, 0.0, 0.0, 0.0], [0.0, 0.2, -0.2, 0.0, 0.0], [0.0, 0.0, 0.0, 0.6, 0.0]])
    return slate_draws.fits(mechanism, rows, noise, 3 * draws.slates // 2, case="subsets of 5 items")


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    tables = (np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    return slate_draws.from_outside(
        mechanism, tables, noise, draws.single, case="subsets of 2 items, one user replaced"
    )
