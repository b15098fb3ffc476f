"""Look-alikes with sizes: one of size n counts as n equal ones, in every posterior, draw and local model."""

from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidModel
from tacit.messages.store import Store
from tacit.models import loops
from tacit.models.tables import build_tables
from tacit.server import listings
from tacit.server.multi_selection import Algorithm, AnswerSettings, Guess, LocalModel, MultiSelection
from tests.releases import changed
from tests.unit.server.small_store import random_features, signal_of, small_store

SIZES = np.array([3, 1, 5, 2] * 20)
WEIGHED = changed(small_store(), look_alike_sizes=SIZES.astype(np.float32))
REPEATED = changed(small_store(), look_alikes=np.repeat(WEIGHED.look_alikes, SIZES, axis=0))
ALL = 1.0 - 1e-12  # of the weight
USER = random_features(1, seed=4)[0]


def guess(store: Store, algorithm: Algorithm, compiled: bool, eta: float = 0.2, **more: Any) -> Guess:
    tables = build_tables(store.scorer, store.look_alikes)
    settings = AnswerSettings(algorithm, LocalModel.RIDGE, coverage=ALL, most_rows=10_000, **more)
    rng = np.random.default_rng(2)
    return Guess(settings, store.scorer, tables, USER, eta, loops.choose(compiled), rng, sizes=store.look_alike_sizes)


@pytest.mark.parametrize("compiled", [False, None])
@pytest.mark.parametrize("eta", [0.05, 1.0])
def test_weights_are_those_of_as_many_equal_look_alikes(compiled: bool, eta: float) -> None:
    for wider in (eta, 3.0 * eta):  # a local model may look wider than the posterior: sizes count the same
        rows, weights = guess(WEIGHED, Algorithm.EXACT, compiled, eta).weighted(wider)
        there, repeated = guess(REPEATED, Algorithm.EXACT, compiled, eta).weighted(wider)
        one, many = np.zeros(80), np.zeros(80)
        np.add.at(one, rows, weights / weights.sum())
        np.add.at(many, np.repeat(np.arange(80), SIZES)[there], repeated / repeated.sum())
        assert np.abs(one - many).max() < 1e-4
        assert np.abs(one - many / SIZES * SIZES.mean()).max() > 1e-3  # unweighed it would be another posterior


@pytest.mark.parametrize("algorithm", [Algorithm.SAT_REALUSER, Algorithm.IG_SIG])
def test_draws_are_in_proportion_to_sizes(algorithm: Algorithm) -> None:
    drawn = guess(WEIGHED, algorithm, False, eta=50.0).draws(40_000)
    counts = np.bincount(SIZES[drawn], minlength=6)[[1, 2, 3, 5]]
    assert np.abs(counts / 40_000 - np.array([1, 2, 3, 5]) / 11).max() < 0.02


@pytest.mark.parametrize("algorithm", ["exact", "sat-realuser", "ig-sig", "nopost-realuser", "dpp"])
def test_the_server_answers_with_sizes(algorithm: str) -> None:
    server = MultiSelection(WEIGHED, algorithm, rng=np.random.default_rng(1))
    reply = server.answer(signal_of(USER), k=4)
    assert len(reply.items) == 4


def test_exact_answers_are_those_of_the_repeated_store() -> None:
    for seed in range(8):
        signal = signal_of(random_features(1, seed=20 + seed)[0])
        one, many = (
            MultiSelection(store, "exact", rng=np.random.default_rng(1), coverage=ALL).answer(signal, k=4)
            for store in (WEIGHED, REPEATED)
        )
        assert one.items == many.items


def test_sizes_decide_the_answer() -> None:
    """All weight on one look-alike: the slate has her favourite first."""
    for favourite in (3, 40):
        heavy = np.full(80, 1e-6, dtype=np.float32)
        heavy[favourite] = 1e6
        store = changed(WEIGHED, look_alike_sizes=heavy)
        reply = MultiSelection(store, "exact", rng=np.random.default_rng(1)).answer(signal_of(USER), k=1)
        scores = store.scorer.score(store.look_alikes[favourite][None], np.arange(60))[0]
        assert reply.items[0] == store.items.numbers[int(scores.argmax())]


def test_what_is_good_for_everybody_asks_each_look_alike_as_often_as_its_size_says() -> None:
    asked = np.bincount(listings._even_sample(WEIGHED), minlength=80)
    assert np.abs(asked - SIZES / SIZES.sum() * 2000).max() <= 1.0
    assert (listings._even_sample(small_store()) == np.arange(80)).all()
    named = [int(WEIGHED.items.ids[place]) for place in (0, 5, 9)]
    assert len(listings.listings_of(WEIGHED, named)) == 2


@pytest.mark.parametrize("sizes", [np.ones(79), np.zeros(80), -np.ones(80), np.full(80, np.nan), np.full(80, np.inf)])
def test_a_store_refuses_sizes_that_are_no_weights(sizes: Any) -> None:
    with pytest.raises(InvalidModel, match="size"):
        changed(WEIGHED, look_alike_sizes=sizes)


def test_sizes_are_part_of_a_stores_version_and_stores_without_them_are_what_they_were() -> None:
    plain = small_store()
    assert plain.version == changed(WEIGHED, look_alike_sizes=None).version
    versions = {plain.version, WEIGHED.version, changed(WEIGHED, look_alike_sizes=np.ones(80)).version}
    assert len(versions) == 3
    assert Store.from_bytes(WEIGHED.to_bytes()).version == WEIGHED.version
    assert "look_alike_sizes" not in plain._tensors()
