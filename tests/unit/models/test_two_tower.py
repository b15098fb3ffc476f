"""The two-tower model against a slow plain version; scores by class against scores by item."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.errors import InvalidModel
from tacit.models.scorers import TwoTower, Weights, class_scores
from tacit.models.scorers import two_tower_shapes as shapes
from tests.unit.models import plain_network

RNG = np.random.default_rng(12)
FLAGS = RNG.random((60, plain_network.GENRES)) < 0.12
FLAGS[40:] = FLAGS[:20]  # twins, far apart in the catalogue
WEIGHTS: Weights = {
    name: RNG.normal(scale=1.4 / math.sqrt(shape[0]) if len(shape) == 2 else 0.1, size=shape).astype(np.float32)
    for name, shape in shapes(plain_network.GENRES).items()
}
MODEL = TwoTower(WEIGHTS, FLAGS)
PROFILES = plain_network.random_profiles(RNG, 5)
ITEMS = np.arange(len(FLAGS))


def plain(weights: Weights, profile: NDArray[np.float64], flags: NDArray[np.bool_]) -> float:
    """One rating, number by number, in float64."""

    def vector(tower: str, inputs: list[float]) -> list[float]:
        for layer in range(2):
            weight, bias = (weights[f"{tower}.{layer}.{part}"].astype(float) for part in ("weight", "bias"))
            inputs = [max(0.0, x) if layer else x for x in inputs]
            inputs = [
                sum(x * w for x, w in zip(inputs, column, strict=True)) + b
                for column, b in zip(weight.T, bias, strict=True)
            ]
        return inputs

    product = sum(u * i for u, i in zip(vector("user", list(profile)), vector("item", list(flags * 1.0)), strict=True))
    return 5.0 / (1.0 + math.exp(-product - float(weights["bias"][0])))


def test_it_has_7937_weights() -> None:
    assert sum(weight.size for weight in MODEL.weights.values()) == 7_937
    assert MODEL.dimension == 38


def test_scores_equal_the_plain_model_item_by_item() -> None:
    wanted = np.array([[plain(WEIGHTS, user, item) for item in FLAGS] for user in PROFILES[:2]])
    assert wanted.std() > 0.05  # a model that says the same of everything would prove nothing
    np.testing.assert_allclose(MODEL.score(PROFILES[:2], ITEMS), wanted, atol=2e-5)
    np.testing.assert_allclose(class_scores(MODEL, PROFILES[:2])[:, MODEL.classes.of], wanted, atol=2e-5)


def test_both_towers_and_the_bias_count() -> None:
    base = MODEL.score(PROFILES, ITEMS)
    for part in ("user", "item", "bias"):
        changed = {n: w * 0.5 if n.startswith(part) else w for n, w in WEIGHTS.items()}
        assert np.abs(TwoTower(changed, FLAGS).score(PROFILES, ITEMS) - base).max() > 1e-3, part


def test_equal_items_have_equal_scores_to_the_last_bit() -> None:
    scores = MODEL.score(PROFILES, ITEMS)
    assert np.array_equal(scores[:, :20], scores[:, 40:])


def test_items_may_be_asked_for_in_any_order_and_twice() -> None:
    wanted = np.array([50, 3, 3, 10])
    np.testing.assert_allclose(MODEL.score(PROFILES, wanted), MODEL.score(PROFILES, ITEMS)[:, wanted], atol=1e-5)


def test_scores_of_extreme_weights_stay_on_the_scale_without_a_warning() -> None:
    for bias in (-500.0, 500.0):
        scores = class_scores(TwoTower(WEIGHTS | {"bias": np.array([bias], dtype=np.float32)}, FLAGS), PROFILES)
        assert scores.min() == scores.max() == (0.0 if bias < 0 else 5.0)


def test_wrong_or_infinite_weights_are_refused() -> None:
    lacking = {name: weight for name, weight in WEIGHTS.items() if name != "item.1.bias"}
    infinite = WEIGHTS | {"user.0.bias": np.full(64, np.nan, dtype=np.float32)}
    for weights in (lacking, infinite):
        with pytest.raises(InvalidModel):
            replace(MODEL, weights=weights)


def test_tensors_build_the_same_model() -> None:
    again = TwoTower.from_tensors(MODEL.tensors())
    assert np.array_equal(again.score(PROFILES, ITEMS), MODEL.score(PROFILES, ITEMS))
