"""Bounds, signal slots and the tempered sampler's invariants: against enumeration, and claims that figures decide either way."""

import math

import numpy as np
import pytest
from scipy import sparse

from tacit.evaluation.private_slates import growth, names, signal, stability, support
from tacit.evaluation.private_slates.films import Films
from tacit.evaluation.private_slates.signal import Signal, epsilon_of_copies, rule_of_thumb, signal_of
from tacit.mechanisms import NaturalSlate
from tacit.mechanisms.slates import sigma_for
from tacit.models.dpp.laws import subsets
from tacit.models.dpp.samplers import SplitSampler


def some_films(users: int, items: int, seed: int = 1) -> Films:
    rng = np.random.default_rng(seed)
    likes = sparse.csr_array((rng.random((users, items)) < 0.4).astype(float))
    genres = rng.random((items, 12))
    return Films("some", likes, likes, genres / np.linalg.norm(genres, axis=1, keepdims=True))


@pytest.mark.parametrize("users", [5, 30])  # fewer and more than films
@pytest.mark.parametrize("sigma", [0.1, 2.0])
def test_the_law_of_signal_slots_is_the_samplers(users: int, sigma: float) -> None:
    films = some_films(users, 12)
    sampler = SplitSampler(films.contributions.T.tocsr(), sigma, 10)
    found = signal_of(films)
    np.testing.assert_allclose(found.slots(sigma), sampler._law, atol=1e-12)
    assert found.expected(sigma) == pytest.approx(float(sampler._law @ np.arange(11)), abs=1e-10)


def test_accepted_proposals_by_enumeration() -> None:
    films, sigma = some_films(9, 7), 0.5
    rows = films.contributions.toarray()
    kernel = rows.T @ rows + sigma * np.eye(7)
    weight = sum(np.linalg.det(kernel[np.ix_(slate, slate)]) for slate in subsets(7, 3))
    assert signal_of(films).accepted(sigma, 3) == pytest.approx(math.factorial(3) * weight / np.trace(kernel) ** 3)


def test_copies_of_every_user_have_the_law_of_less_jitter() -> None:
    films = some_films(6, 5)
    copied = sparse.vstack([films.likes] * 10).tocsr()
    law = NaturalSlate(5, 2, 0.1).pmf(copied)
    np.testing.assert_allclose(law, NaturalSlate(5, 2, epsilon_of_copies(0.1, 10)).pmf(films.likes), atol=1e-8)
    assert epsilon_of_copies(0.1, 1) == pytest.approx(0.1)


def test_more_users_leave_fewer_uniform_slots() -> None:
    films = some_films(200, 40)
    assert 0.0 < rule_of_thumb(films, 1.0) < rule_of_thumb(films, 0.1) < 1.0
    part = signal.signal(films, 5, seed=1)
    slots = {
        (row.setting["copies"]): row.value
        for row in part.rows
        if row.metric == signal.SLOTS and "copies" in row.setting
    }
    assert slots[1] < slots[10] < slots[100] < 10.0
    assert not [claim for claim in part.claims if claim.paper == "reference figures"]  # these are of other data


def test_claims_on_signal_can_fail() -> None:
    films = some_films(40, 40)
    faint = Signal(np.log(np.full(40, 1e-6)), 4e-5, 40)
    loud = Signal(np.zeros(40), 40.0, 40)  # as many users as films, each the only one to like hers
    assert [claim.holds for claim in signal._claims(films, loud)] == [True, True]
    assert [claim.holds for claim in signal._claims(films, faint)] == [False, False]
    popular = {copies: signal.Estimate(given[0], 0.01, 9) for copies, given in signal.reference.REPLICATED.items()}
    assert [claim.holds for claim in signal._reference_claims(faint, popular)] == [False, True, False, False]


def test_bounds_are_those_of_the_theorem_and_of_the_paper() -> None:
    part = growth.growth(3883)
    value = {(row.method, row.setting.get("items"), row.metric): row.value for row in part.rows}
    assert value[names.PUBLISHED, 3883, growth.COST] == pytest.approx(211.2, abs=0.05)
    assert value[names.PUBLISHED, 3883, growth.JITTER] == pytest.approx(124.6, abs=0.05)
    for n in (*growth.ITEMS, 3883):
        assert value[names.NATURAL, n, growth.COST] == pytest.approx(1.0, abs=1e-12)
        assert value[names.NATURAL, n, growth.JITTER] == pytest.approx(1 / math.expm1(1.0), abs=1e-12)
    assert growth.together(100) == pytest.approx(2.419093, abs=1e-6)
    assert growth.together(1) == 0.1  # never more than the sum
    assert all(claim.holds for claim in part.claims)
    assert {row.setting["slates"] for row in part.rows if row.metric == growth.TOGETHER} == set(growth.SLATES)


def test_the_best_independent_slate_by_hand() -> None:
    features = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert stability.best_independent(features, np.array([5.0, 4.0, 1.0, 3.0]), 2).tolist() == [0, 3]


def test_tempered_slates_climb_to_the_best_independent_slate_and_no_further() -> None:
    films = some_films(60, 30)
    part = stability.stability(films)
    assert [claim.holds for claim in part.claims] == [True, True, True]
    shares = [row.value for row in part.rows if row.metric == stability.SCORE]
    assert len(shares) == len(stability.NATS)
    assert shares[0] < shares[-1] <= 1.0


def test_claims_on_stability_can_fail() -> None:
    rising = np.linspace(0.1, 0.9, len(stability.NATS))
    between = (rising[1:] + rising[:-1]) / 2

    def held(expected: np.ndarray, slopes: np.ndarray) -> list[bool]:
        return [claim.holds for claim in stability.claims(expected, slopes)]

    assert held(rising, between) == [True, True, True]
    falling = rising.copy()
    falling[-1] = falling[-2] - 1e-3
    assert held(falling, between)[0] is False
    assert held(rising + 0.2, between + 0.2)[1] is False
    assert held(rising, between + 0.1)[2] is False
    dented = between.copy()
    dented[5] = dented[4] - 1e-3
    assert held(rising, dented)[0] is False


def test_without_jitter_some_slates_tell_that_a_user_is_there() -> None:
    part = support.support()
    told = {row.method: row.value for row in part.rows if row.metric == support.TOLD}
    # film 3 is hers alone: all three slates with it are impossible without her
    assert told == {support.WITHOUT_JITTER: 3.0, names.NATURAL: 0.0, names.TEMPERED: 0.0}
    losses = {row.method: row.value for row in part.rows if row.metric == support.LOSS}
    assert losses.keys() == {names.NATURAL, names.TEMPERED}
    assert all(0.0 < loss <= support.EPSILON for loss in losses.values())
    assert [claim.holds for claim in part.claims] == [True, False]
    wrong = {support.WITHOUT_JITTER: 0, names.NATURAL: 0, names.TEMPERED: 1}
    assert [claim.holds for claim in support.claims(wrong, {names.NATURAL: 0.5})] == [False, True]


def test_the_jitter_of_the_slots_is_that_of_the_mechanism() -> None:
    assert NaturalSlate(50, 10, 1.0).sigma == pytest.approx(sigma_for(1.0), rel=1e-8)
    assert NaturalSlate.published(50, 10, 1.0).sigma == pytest.approx(
        signal._sigmas(50, 1.0)[names.PUBLISHED], rel=1e-8
    )
