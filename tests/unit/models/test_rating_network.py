"""The rating network against a slow plain version; scores by class against scores by item."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import InvalidModel
from tacit.models import scorers
from tacit.models.scorers import RatingNetwork, class_scores
from tests.unit.models import plain_network

RNG = np.random.default_rng(11)
FLAGS = RNG.random((60, plain_network.GENRES)) < 0.12
FLAGS[40:] = FLAGS[:20]  # twins, far apart in the catalogue
NETWORK = RatingNetwork(plain_network.random_weights(RNG), FLAGS)
PROFILES = plain_network.random_profiles(RNG, 5)
ITEMS = np.arange(len(FLAGS))


def test_it_has_49616_weights() -> None:
    assert sum(weight.size for weight in NETWORK.weights.values()) == 49_616
    assert NETWORK.dimension == 38


def test_scores_equal_the_plain_network_item_by_item() -> None:
    users = PROFILES[:2]
    plain = np.array([[plain_network.rating(NETWORK.weights, user, item) for item in FLAGS] for user in users])
    assert plain.std() > 0.05  # a network that says the same of everything would prove nothing
    np.testing.assert_allclose(NETWORK.score(users, ITEMS), plain, atol=2e-5)
    by_class = class_scores(NETWORK, users)
    np.testing.assert_allclose(by_class[:, NETWORK.classes.of], plain, atol=2e-5)


def test_equal_items_have_equal_scores_to_the_last_bit() -> None:
    scores = NETWORK.score(PROFILES, ITEMS)
    assert np.array_equal(scores[:, :20], scores[:, 40:])
    assert np.array_equal(scores, class_scores(NETWORK, PROFILES)[:, NETWORK.classes.of])


def test_every_tower_counts() -> None:
    base = NETWORK.score(PROFILES, ITEMS)
    for tower in scorers.TOWERS:
        changed = {n: w * 0.5 if n.startswith(f"{tower}.") else w for n, w in NETWORK.weights.items()}
        assert np.abs(RatingNetwork(changed, FLAGS).score(PROFILES, ITEMS) - base).max() > 0.01, tower
    assert np.abs(NETWORK.score(PROFILES[:, ::-1].copy(), ITEMS) - base).max() > 0.01


def test_many_users_are_scored_in_parts_that_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = NETWORK.score(PROFILES, ITEMS)
    monkeypatch.setattr(scorers, "_PAIRS", 1)
    np.testing.assert_allclose(NETWORK.score(PROFILES, ITEMS), whole, atol=1e-5)


def test_items_may_be_asked_for_in_any_order_and_twice() -> None:
    whole = NETWORK.score(PROFILES, ITEMS)
    wanted = np.array([50, 3, 3, 10])
    np.testing.assert_allclose(NETWORK.score(PROFILES, wanted), whole[:, wanted], atol=1e-5)


def test_scores_of_extreme_weights_stay_on_the_scale_without_a_warning() -> None:
    for bias in (-500.0, 500.0):
        extreme = NETWORK.weights | {"trunk.3.bias": np.array([bias], dtype=np.float32)}
        scores = class_scores(RatingNetwork(extreme, FLAGS), PROFILES)
        assert scores.min() == scores.max() == (0.0 if bias < 0 else 5.0)


def test_wrong_or_infinite_weights_are_refused() -> None:
    lacking = {name: weight for name, weight in NETWORK.weights.items() if name != "item.1.bias"}
    turned = NETWORK.weights | {"trunk.1.weight": NETWORK.weights["trunk.1.weight"].T}
    infinite = NETWORK.weights | {"liked.0.bias": np.full(19, np.nan, dtype=np.float32)}
    for weights in (lacking, turned, infinite):
        with pytest.raises(InvalidModel):
            replace(NETWORK, weights=weights)


def test_tensors_build_the_same_network() -> None:
    again = RatingNetwork.from_tensors(NETWORK.tensors())
    assert np.array_equal(again.score(PROFILES, ITEMS), NETWORK.score(PROFILES, ITEMS))
