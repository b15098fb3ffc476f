"""Guarantees as values, and the arithmetic on them: composition, conversion, amplification."""

from tacit.guarantees.accounting import epsilon_each, tight, times_within, to_approximate
from tacit.guarantees.amplification import (
    ALL_CONDITIONS,
    ShuffleCondition,
    across_batches,
    amplify,
    shuffle,
    shuffle_delta,
)
from tacit.guarantees.composition import anywhere, group, parallel, repeat, replace_from_add_remove, within
from tacit.guarantees.concentrated import (
    delta_of_gaussian,
    epsilon_of_gaussian,
    epsilon_of_rho,
    mu_for,
    rho_for,
    rho_of,
)
from tacit.guarantees.guarantee import Guarantee, Loss, LossKind, approximate, compose, metric, nothing, pure
from tacit.guarantees.neighbours import (
    ONE_IMPRESSION,
    ONE_PROFILE,
    ONE_USER,
    ONE_USER_REPLACED,
    Neighbours,
    Relation,
    Unit,
)
from tacit.guarantees.release import Release

__all__ = [
    "ALL_CONDITIONS",
    "ONE_IMPRESSION",
    "ONE_PROFILE",
    "ONE_USER",
    "ONE_USER_REPLACED",
    "Guarantee",
    "Loss",
    "LossKind",
    "Neighbours",
    "Relation",
    "Release",
    "ShuffleCondition",
    "Unit",
    "across_batches",
    "amplify",
    "anywhere",
    "approximate",
    "compose",
    "delta_of_gaussian",
    "epsilon_each",
    "epsilon_of_gaussian",
    "epsilon_of_rho",
    "group",
    "metric",
    "mu_for",
    "nothing",
    "parallel",
    "pure",
    "repeat",
    "replace_from_add_remove",
    "rho_for",
    "rho_of",
    "shuffle",
    "shuffle_delta",
    "tight",
    "times_within",
    "to_approximate",
    "within",
]
