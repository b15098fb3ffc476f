"""The simulated worlds meet the facts that they were made from; both models of `trained` see what they may and no more."""

import numpy as np
import pytest

from tacit.evaluation.private_selection import trained as trained_world
from tacit.evaluation.private_selection.trained import trained
from tacit.evaluation.private_selection.worlds import World, expected, logit, sigmoid, simulated


def world(name: str, auctions: int = 20_000, seed: int = 3) -> World:
    return simulated(name, auctions, rng=np.random.default_rng(seed))


def test_display_meets_the_facts() -> None:
    one = world("display")
    assert one.sizes.mean() == pytest.approx(3.9, abs=0.1)
    assert (one.sizes <= 3).mean() == pytest.approx(0.59, abs=0.015)
    assert (one.sizes >= 10).mean() == pytest.approx(0.06, abs=0.01)
    assert np.median(one.apart) == pytest.approx(0.026, abs=0.001)
    assert np.log(one.bids[one.mask]).std() == pytest.approx(0.9, abs=0.01)


def test_search_meets_the_facts() -> None:
    one = world("search")
    assert one.sizes.max() == 15
    assert one.sizes.mean() == pytest.approx(13.9, abs=0.1)
    assert np.median(one.apart) == pytest.approx(0.009, abs=0.0004)


def test_the_public_probability_is_the_mean_of_the_private_one() -> None:
    one = world("display")
    public, private = one.public[one.mask], one.private[one.mask]
    for low, high in ((0.0, 0.05), (0.05, 0.08), (0.08, 1.0)):
        inside = (public > low) & (public <= high)
        error = private[inside].std() / np.sqrt(inside.sum())
        assert abs(private[inside].mean() - public[inside].mean()) < 4 * error


def test_the_mean_of_a_logit_normal_is_that_of_draws() -> None:
    drawn = sigmoid(-2.5 + 0.8 * np.random.default_rng(1).normal(size=400_000))
    assert expected(np.array([-2.5]), 0.8)[0] == pytest.approx(drawn.mean(), abs=3e-4)
    np.testing.assert_allclose(logit(sigmoid(np.array([-3.0, 0.5]))), [-3.0, 0.5])


def test_equal_seeds_give_equal_worlds_and_others_do_not() -> None:
    one, same, other = world("search", 50), world("search", 50), world("search", 50, seed=4)
    np.testing.assert_array_equal(one.private, same.private)
    assert not np.array_equal(one.private, other.private)


def test_mixing_moves_the_private_probability_towards_the_public_one() -> None:
    one = world("display", 100)
    np.testing.assert_allclose(one.mixed(0.25).apart, 0.25 * one.apart, rtol=1e-9)
    np.testing.assert_array_equal(one.mixed(1.0).private, one.private)
    assert len(one.of(one.sizes == 3)) == (one.sizes == 3).sum()


def test_trained_models_are_ranked_as_they_should_be_and_the_public_one_sees_no_user() -> None:
    fit = trained(400, 60_000, 5)
    assert fit.truth_auc > fit.private_auc + 0.01
    assert fit.private_auc > fit.public_auc + 0.03
    assert fit.public_auc > 0.55
    one = fit.world
    assert one.truth is not None
    assert np.corrcoef(logit(one.private)[one.mask], logit(one.truth)[one.mask])[0, 1] > 0.6
    assert trained(400, 60_000, 5) is fit  # kept in memory
    rng = np.random.default_rng(1)
    item, context = rng.integers(trained_world.ITEMS, size=9), rng.integers(trained_world.CONTEXTS, size=9)
    designs = [
        trained_world._design(trained_world.Impressions(item, context, traits, np.zeros(9)), False).toarray()
        for traits in rng.normal(size=(2, 9, trained_world.TRAITS))
    ]
    np.testing.assert_array_equal(*designs)
