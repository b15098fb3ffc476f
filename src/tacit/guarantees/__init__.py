"""Guarantees as values, and the arithmetic on them: composition, conversion, amplification."""

from tacit.guarantees.accounting import epsilon_each, tight, times_within
from tacit.guarantees.amplification import shuffle, shuffle_delta
from tacit.guarantees.composition import compose, parallel, repeat
from tacit.guarantees.conversion import anywhere, group, replace_from_add_remove, to_approximate, within
from tacit.guarantees.gaussian import delta_of_gaussian, epsilon_of_gaussian, mu_for
from tacit.guarantees.guarantee import Guarantee, Loss, LossKind, approximate, metric, nothing, pure
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
from tacit.guarantees.shuffled_reports import ALL_CONDITIONS, ShuffleCondition, across_batches, amplify
from tacit.guarantees.zcdp import epsilon_of_rho, rho_for, rho_of

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
