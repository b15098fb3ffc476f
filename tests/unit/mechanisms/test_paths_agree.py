"""A decision is the same by every path: alone or in a block, in floats or in unlimited precision.

The paths read the same random bytes in the same order, so that agreement is exact and no statistics are needed. Sending
every draw down the exact path also checks the exponents that this path is given, which otherwise count once in 65,000 draws.
"""

from functools import partial

import numpy as np
import pytest

from tacit.mechanisms import (
    ExponentialMechanism,
    GumbelTopK,
    PermuteAndFlip,
    ProfileScores,
    ReplayedNoise,
    selection,
    top_k,
)
from tacit.mechanisms.samplers.coins import exponential_coins, few_exponential_coins
from tacit.mechanisms.samplers.subsets import choose, choose_one, choose_weighted

SCORES = ProfileScores(0.0, 1.0)
ROWS = np.random.default_rng(5).random((400, 6))
ALWAYS = 2.0  # a guard that leaves every draw to the exact path


@pytest.mark.parametrize("epsilon", [0.3, 3.0, 30.0])
def test_the_exponential_mechanism_decides_alone_as_in_a_block(epsilon: float) -> None:
    mechanism = ExponentialMechanism(SCORES, epsilon)
    for seed, row in enumerate(ROWS):
        alone = mechanism.release(row, ReplayedNoise(seed)).value
        assert alone == mechanism.release_many(row[None, :], ReplayedNoise(seed)).value[0]


@pytest.mark.parametrize("epsilon", [0.3, 3.0, 30.0])
def test_the_coins_fall_alone_as_in_a_block(epsilon: float) -> None:
    rate = PermuteAndFlip(SCORES, epsilon).rate
    for seed, row in enumerate(SCORES.integers(ROWS)):
        behind = row.max() - row
        exact = [int(steps) * rate for steps in behind]
        few = few_exponential_coins([float(x) for x in exact], exact.__getitem__, ReplayedNoise(seed))
        many = exponential_coins(behind * float(rate), exact.__getitem__, ReplayedNoise(seed))
        assert few == many.tolist()


def test_the_exponential_mechanism_decides_in_floats_as_in_unlimited_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = ExponentialMechanism(SCORES, 3.0)
    alone = [mechanism.release(row, ReplayedNoise(seed)).value for seed, row in enumerate(ROWS)]
    block = mechanism.release_many(ROWS, ReplayedNoise(1)).value
    monkeypatch.setattr(selection, "choose_one", partial(choose_one, guard=ALWAYS))
    monkeypatch.setattr(selection, "choose", partial(choose, guard=ALWAYS))
    assert [mechanism.release(row, ReplayedNoise(seed)).value for seed, row in enumerate(ROWS)] == alone
    assert (mechanism.release_many(ROWS, ReplayedNoise(1)).value == block).all()


def test_permute_and_flip_decides_in_floats_as_in_unlimited_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = PermuteAndFlip(SCORES, 3.0)
    alone = [mechanism.release(row, ReplayedNoise(seed)).value for seed, row in enumerate(ROWS)]
    block = mechanism.release_many(ROWS, ReplayedNoise(1)).value
    monkeypatch.setattr(selection, "few_exponential_coins", partial(few_exponential_coins, guard=ALWAYS))
    monkeypatch.setattr(selection, "exponential_coins", partial(exponential_coins, guard=ALWAYS))
    assert [mechanism.release(row, ReplayedNoise(seed)).value for seed, row in enumerate(ROWS)] == alone
    assert (mechanism.release_many(ROWS, ReplayedNoise(1)).value == block).all()


def test_top_k_decides_in_floats_as_in_unlimited_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = GumbelTopK(SCORES, k=4, epsilon=12.0)
    block = mechanism.release_many(ROWS, ReplayedNoise(1)).value
    monkeypatch.setattr(top_k, "choose", partial(choose, guard=ALWAYS))
    assert (mechanism.release_many(ROWS, ReplayedNoise(1)).value == block).all()


@pytest.mark.parametrize("epsilon", [0.3, 12.0, 400.0])  # at 400 the weights are formed anew between the picks
def test_top_k_decides_alone_as_in_a_block_and_as_in_unlimited_precision(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = GumbelTopK(SCORES, k=4, epsilon=epsilon)
    block = [
        mechanism.release_many(row[None, :], ReplayedNoise(seed)).value[0].tolist() for seed, row in enumerate(ROWS)
    ]
    assert [mechanism.release(row, ReplayedNoise(seed)).value.tolist() for seed, row in enumerate(ROWS)] == block
    monkeypatch.setattr(top_k, "choose_weighted", partial(choose_weighted, guard=ALWAYS))
    assert [mechanism.release(row, ReplayedNoise(seed)).value.tolist() for seed, row in enumerate(ROWS)] == block
