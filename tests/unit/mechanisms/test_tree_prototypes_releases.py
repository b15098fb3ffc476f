"""Prototypes by a tree: what is released, what is refused, and what is shown."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, LossKind
from tacit.mechanisms import SYSTEM_NOISE, FeatureBox, ReplayedNoise, TreePrototypes
from tacit.mechanisms.inputs import ProfileBounds
from tests.unit.mechanisms.trees import BOX, DELTA, PROFILES, groups, tree

# --- releases


def test_planted_groups_are_found(rng: np.random.Generator) -> None:
    rows = groups(rng, 8000)
    made = tree(4.0).release(rows).value
    assert made.centres.shape == (4, 3)
    signs = {tuple(np.sign(centre)) for centre in made.centres}
    assert len(signs) == 4
    assert np.abs(np.abs(made.centres) - 0.7).max() < 0.05
    assert np.abs(made.sizes - 2000).max() < 400


def test_signed_and_non_negative_profiles_keep_to_their_bounds(rng: np.random.Generator) -> None:
    rows = sparse.csr_array(5.0 * (rng.random((3000, 6)) < 0.4))
    plain = tree(0.2, bounds=PROFILES).release(rows).value
    assert np.nanmin(plain.centres) >= 0.0
    assert np.nanmax(plain.centres) <= 5.0
    signed = tree(0.2, bounds=replace(PROFILES, signed=True)).release(-rows).value
    assert np.nanmin(signed.centres) < 0.0


@pytest.mark.parametrize(
    "rows", [[], np.zeros(0), np.zeros((0, 3)), np.zeros((1, 3))], ids=["none", "empty", "no rows", "one"]
)
@pytest.mark.parametrize("lloyd", [0, 2])
def test_an_entity_without_users_releases_all_the_same(rows: Any, lloyd: int) -> None:
    made = tree(lloyd=lloyd).release(rows).value
    assert made.centres.shape == (4, 3)
    assert made.sizes.shape == (4,)
    told = ~np.isnan(made.centres).any(axis=1)
    assert told[0]
    assert (made.sizes[~told] == 0.0).all()
    assert np.abs(made.centres[told]).max() <= 1.0


def test_more_prototypes_than_leaves_are_left_out_and_few_are_made_of_many(rng: np.random.Generator) -> None:
    rows = groups(rng, 4000)
    many, one = tree(8.0, k=500, lloyd=0).release(rows).value, tree(8.0, k=1).release(rows).value
    told = ~np.isnan(many.centres).any(axis=1)
    assert 4 <= told.sum() < 400
    assert abs(many.sizes.sum() - 4000) < 400
    assert one.centres.shape == (1, 3)
    assert abs(one.sizes[0] - 4000) < 100
    assert np.abs(one.centres[0] - [0.0, 0.0, 0.7]).max() < 0.1


def test_a_release_carries_the_guarantee_and_replayed_noise_promises_nothing() -> None:
    mechanism = tree(3.0)
    promised = mechanism.release([], SYSTEM_NOISE).guarantee
    assert promised == mechanism.guarantee
    assert (promised.epsilon, promised.delta, promised.protects, promised.proof) == (
        3.0,
        DELTA,
        ONE_USER,
        "tree-prototypes",
    )
    assert promised.loss is not None
    assert (promised.loss.kind, promised.loss.value) == (LossKind.ZCDP, mechanism.rho)
    assert mechanism.release([], ReplayedNoise(1)).guarantee.promises_nothing


def test_two_releases_differ() -> None:
    assert (tree().release([]).value.sizes != tree().release([]).value.sizes).any()


class Unread:
    """A table that must not be looked at."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0}, {"k": 1.5}, {"epsilon": 0.0}, {"epsilon": math.nan}, {"epsilon": math.inf}, {"epsilon": -1.0},
        {"delta": 0.0}, {"delta": 1.0}, {"delta": math.nan}, {"depth": 0}, {"depth": 17}, {"lloyd": -1}, {"seed": -1},
        {"bounds": None}, {"bounds": 3}, {"bounds": ProfileBounds(1 << 22, 1 << 20, 1.0)},
    ],
    ids=str,
)  # fmt: skip
def test_public_parameters_are_refused_before_rows_are_read(wrong: dict[str, Any]) -> None:
    given = {"bounds": BOX, "k": 4, "epsilon": 1.0, "delta": DELTA} | wrong
    with pytest.raises(InvalidParameter):
        TreePrototypes(**given).release(Unread())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"lower": ()}, {"upper": (1.0,)}, {"lower": (1.0, 1.0)}, {"lower": (math.nan, 0.0)}, {"upper": (math.inf, 1.0)},
        {"l2_bound": 0.0}, {"l2_bound": math.inf}, {"centre": (0.5,)}, {"centre": (0.5, 1.5)}, {"lower": "00"}, {"lower": 0.0},
    ],
    ids=str,
)  # fmt: skip
def test_a_box_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        FeatureBox(**({"lower": (0.0, 0.0), "upper": (1.0, 1.0)} | wrong))


def test_nothing_private_is_shown() -> None:
    mechanism = tree()
    answers = mechanism.ask(np.full((3, 3), 0.4242), ReplayedNoise(1))
    assert "0.4242" not in repr(answers)
    assert "rows" not in repr(answers)
