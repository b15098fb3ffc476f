"""Steps and models: what a coordinator sends after the manifest is checked like anything else."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidMessage
from tacit.messages.federated_prototypes import SharedModel, Step, open_frame
from tacit.models.moments import SharedMoments
from tests.unit.federated_world import ITEMS, World, key_of, resigned

KEY = key_of("coordinator")
TREE = World(Path(), "tree").manifest
SECURE = World(Path(), "moments").manifest
FACTORS = np.linspace(0.0, 1.0, ITEMS * 2, dtype=np.float32).reshape(ITEMS, 2)
MOMENTS = SharedMoments(
    np.linspace(-3.0, 50.0, ITEMS),
    np.array([1, 5, 7]),
    np.array([[0.5, -0.25, 2.0]]),
    1.5,
    0.75,
    12,
)
NOTHING = replace(MOMENTS, head=np.zeros(0, dtype=np.int64), pseudo_rows=np.zeros((0, 0)))


def of_factors(**own: Any) -> SharedModel:
    return SharedModel(TREE.run, 3, factors=FACTORS, **own)


def of_moments(moments: SharedMoments = MOMENTS) -> SharedModel:
    return SharedModel(SECURE.run, 3, moments=moments)


def test_factors_are_read_as_they_were_written() -> None:
    read = SharedModel.from_frame(open_frame(of_factors(number=2).signed(KEY)), TREE)
    assert read.factors is not None
    assert np.array_equal(read.factors, FACTORS)
    assert (read.number, read.contributors, read.informed, read.hash) == (2, 3, True, of_factors(number=2).hash)


@pytest.mark.parametrize("moments", [MOMENTS, NOTHING])
def test_so_are_moments_with_and_without_information(moments: SharedMoments) -> None:
    read = SharedModel.from_frame(open_frame(of_moments(moments).signed(KEY)), SECURE)
    assert read.moments is not None
    assert read.informed == moments.informative == bool(moments.head.size)
    for name in ("popularity", "head", "pseudo_rows"):
        assert np.array_equal(getattr(read.moments, name), getattr(moments, name))
    assert (read.moments.popularity_sd, read.moments.gram_sd, read.moments.seen) == (1.5, 0.75, 12)


def test_the_hash_tells_everything_apart() -> None:
    other = FACTORS.copy()
    other[3, 1] += 1e-6
    models = [of_factors(), of_factors(number=2), of_factors(informed=False), SharedModel(TREE.run, 3, factors=other)]
    models += [SharedModel("0" * 64, 3, factors=FACTORS), SharedModel(TREE.run, 2, factors=FACTORS), of_moments()]
    models += [of_moments(replace(MOMENTS, seen=13)), of_moments(replace(MOMENTS, popularity_sd=2.0))]
    assert len({model.hash for model in models}) == len(models)


def test_it_has_the_size_of_the_paper() -> None:
    """4 m l bytes beside a small header."""
    assert 4 * ITEMS * 2 < len(of_factors().signed(KEY)) < 4 * ITEMS * 2 + 1000


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"run": "0" * 64}, None),
        ({"version": "fp/2"}, None),
        ({"kind": "step"}, None),
        ({"model": "0" * 64}, None),
        ({"number": 0}, None),
        ({"number": 2}, None),  # the hash is of number 1
        ({"contributors": 4}, None),
        ({"informed": 1}, None),
        ({"informed": False}, None),
        ({"seen": 1}, None),
        ({"more": 1}, None),
        ({}, {"factors": FACTORS[:-1]}),
        ({}, {"factors": FACTORS.astype(np.float64)}),
        ({}, {"factors": -FACTORS}),
        ({}, {"factors": FACTORS * np.nan}),
        ({}, {"factors": FACTORS + 1}),  # not what the hash is of
        ({}, {"more": FACTORS}),
    ],
    ids=str,
)
def test_factors_that_are_not_whole_are_refused(header: dict[str, Any], arrays: dict[str, Any] | None) -> None:
    with pytest.raises(InvalidMessage):
        SharedModel.from_frame(open_frame(resigned(of_factors().signed(KEY), KEY, header, arrays)), TREE)


@pytest.mark.parametrize(
    "moments",
    [
        replace(MOMENTS, popularity=MOMENTS.popularity[:-1]),
        replace(MOMENTS, popularity=MOMENTS.popularity * np.inf),
        replace(MOMENTS, head=np.array([1, 5, ITEMS])),
        replace(MOMENTS, head=np.array([5, 1, 7])),
        replace(MOMENTS, head=np.array([1, 1, 7])),
        replace(MOMENTS, pseudo_rows=np.zeros((1, 2))),
        replace(MOMENTS, pseudo_rows=np.zeros((4, 3))),
        replace(MOMENTS, pseudo_rows=np.full((1, 3), np.nan)),
        replace(MOMENTS, popularity_sd=-1.0),
        replace(MOMENTS, seen=ITEMS + 1),
    ],
    ids=str,
)
def test_moments_that_are_not_whole_are_refused(moments: SharedMoments) -> None:
    with pytest.raises(InvalidMessage):
        SharedModel.from_frame(open_frame(of_moments(moments).signed(KEY)), SECURE)


def test_a_model_of_another_kind_is_refused() -> None:
    for model, manifest in ((of_factors(), SECURE), (of_moments(), TREE)):
        with pytest.raises(InvalidMessage):
            SharedModel.from_frame(open_frame(replace(model, run=manifest.run).signed(KEY)), manifest)
    with pytest.raises(InvalidMessage):
        SharedModel(TREE.run, 3)


def test_a_step_is_read_as_it_was_written() -> None:
    head = np.array([0, 3, 39])
    read = Step.from_frame(open_frame(Step(SECURE.run, "gram", "a", head=head).signed(KEY)), SECURE)
    assert (read.stage, read.to, read.head.tolist(), read.body) == ("gram", "a", [0, 3, 39], None)  # type: ignore[union-attr]
    read = Step.from_frame(open_frame(Step(SECURE.run, "shares", "b", body=b"123").signed(KEY)), SECURE)
    assert (read.stage, read.to, read.head, read.body) == ("shares", "b", None, b"123")


@pytest.mark.parametrize(
    "step",
    [
        Step("0" * 64, "gram", "a", head=np.array([1])),
        Step(SECURE.run, "keys", "a", body=b""),  # the manifest opens the first stage
        Step(SECURE.run, "prototypes", "a", body=b""),
        Step(SECURE.run, "model", "a", body=b""),
        Step(SECURE.run, "gram", "a", body=b"1234"),
        Step(SECURE.run, "shares", "a", head=np.array([1])),
        Step(SECURE.run, "gram", "a", head=np.array([], dtype=np.int64)),
        Step(SECURE.run, "gram", "a", head=np.array([1, 1])),
        Step(SECURE.run, "gram", "a", head=np.array([2, 1])),
        Step(SECURE.run, "gram", "a", head=np.array([ITEMS])),
        Step(SECURE.run, "gram", "", head=np.array([1])),
    ],
    ids=str,
)
def test_a_step_that_is_none_of_this_run_is_refused(step: Step) -> None:
    with pytest.raises(InvalidMessage):
        Step.from_frame(open_frame(step.signed(KEY)), SECURE)
