"""Tested similarity: who passes, how often in error, and what is then added."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER
from tacit.mechanisms import ReplayedNoise, SimilarityAfterTest
from tacit.mechanisms.smooth_similarity import STEPS
from tests.contracts.mechanism import SECRET

PAIR = ((0, 1),)


def agree(users: int) -> np.ndarray:
    return np.full((users, 2), 2.0)


@pytest.mark.parametrize(("epsilon", "delta", "needed"), [(1.0, 1e-6, 50), (0.3, 0.01, 7), (8.0, 1e-3, 1)])
def test_a_norm_below_what_is_needed_passes_with_probability_at_most_delta(
    epsilon: float, delta: float, needed: int
) -> None:
    mechanism = SimilarityAfterTest(2, PAIR, epsilon, delta, needed)
    just_below = np.concatenate([agree(needed - 1), [[1.999, 1.999]]])
    assert delta / 3.0 < mechanism.laws(just_below)[0].answered <= delta
    margin = math.log(1.0 / delta) / mechanism.test_epsilon
    assert mechanism.threshold / STEPS**2 == pytest.approx(needed + margin, rel=1e-6)


def test_epsilon_is_shared_between_test_and_noise_and_between_pairs() -> None:
    mechanism = SimilarityAfterTest(3, ((0, 1), (1, 2)), 2.0, 1e-6, 10, share=0.25)
    assert mechanism.test_epsilon == pytest.approx(0.25)
    assert mechanism.noise_epsilon == pytest.approx(0.75)
    assert 2 * (Fraction(mechanism.test_epsilon) + Fraction(mechanism.noise_epsilon)) <= 2
    assert mechanism.test_scale == STEPS**2 / Fraction(mechanism.test_epsilon)
    assert mechanism.scale == (Fraction(2 * mechanism.grid, 10) + 1) / Fraction(mechanism.noise_epsilon)
    assert (mechanism.guarantee.epsilon, mechanism.guarantee.delta) == (2.0, 1e-6)
    assert mechanism.guarantee.protects == ONE_USER
    single = SimilarityAfterTest(3, ((0, 1),), 1.0, 5e-7, 10, share=0.25)
    assert single.threshold == mechanism.threshold  # half of delta for each of two


def test_one_user_moves_the_test_by_at_most_its_epsilon(rng: np.random.Generator) -> None:
    mechanism = SimilarityAfterTest(2, PAIR, 1.0, 0.01, 5, share=0.4)
    for _ in range(20):
        rows = rng.choice([-2.0, -1.0, 0.0, 0.5, 2.0], size=(12, 2))
        here = mechanism.laws(rows)[0].answered
        for user in range(12):
            there = mechanism.laws(np.delete(rows, user, axis=0))[0].answered
            for one, other in ((here, there), (1.0 - here, 1.0 - there)):
                assert abs(math.log(one / other)) <= 0.4 + 1e-9


def test_where_enough_was_rated_one_user_moves_the_answer_within_its_noise() -> None:
    mechanism = SimilarityAfterTest(2, PAIR, 1.0, 0.01, 5)
    for users in (5, 6, 30):
        rows = agree(users)
        rows[-1, 1] = -2.0  # the worst there is
        here, there = (mechanism.laws(table)[0].centre for table in (rows, rows[:-1]))
        assert abs(here - there) <= mechanism.noise_epsilon * mechanism.scale
    assert abs(here - there) * 5 < mechanism.noise_epsilon * mechanism.scale


def test_the_smaller_norm_is_tested() -> None:
    mechanism = SimilarityAfterTest(2, PAIR, 1.0, 0.01, 5)
    lopsided = np.concatenate([agree(4), np.tile([[2.0, 0.0]], (50, 1))])
    for rows in (lopsided, lopsided[:, ::-1]):
        assert mechanism.laws(rows)[0].answered == mechanism.laws(agree(4))[0].answered


def test_the_smaller_norm_is_tested_also_of_what_is_released() -> None:
    """What is stated and what is released are computed apart from each other."""
    mechanism = SimilarityAfterTest(2, ((0, 1), (1, 0)) * 500, 1000.0, 1e-6, 20)
    lopsided = np.concatenate([agree(4), np.tile([[2.0, 0.0]], (500, 1))])
    assert mechanism.laws(lopsided)[0].answered < 1e-9
    assert np.isnan(mechanism.release(lopsided, ReplayedNoise(3)).value).all()
    assert not np.isnan(mechanism.release(agree(504), ReplayedNoise(3)).value).any()


def test_answers_and_silence_come_as_often_and_as_wide_as_the_law_says() -> None:
    mechanism = SimilarityAfterTest(2, PAIR * 4000, 8000.0, 0.004, 20)
    rows = np.tile([[2.0, 1.0], [-1.0, -2.0]], (44, 1))
    law = mechanism.laws(rows)[0]
    value = mechanism.release(rows, ReplayedNoise(4)).value
    answered = ~np.isnan(value)
    assert 0.05 < law.answered < 0.95
    assert abs(answered.mean() - law.answered) < 6.0 * math.sqrt(0.25 / 4000)
    spread = np.abs(value[answered] - law.centre / mechanism.grid).mean()
    assert spread == pytest.approx(float(mechanism.scale) / mechanism.grid, rel=0.15)
    assert np.abs(value[answered]).max() <= 1.0


def test_pairs_keep_their_places_and_few_raters_get_no_answer() -> None:
    rows = np.zeros((2000, 3))
    rows[:, 0], rows[:, 1] = 2.0, -2.0
    rows[:3, 2] = 2.0
    mechanism = SimilarityAfterTest(3, ((0, 2), (0, 1), (1, 2)), 6.0, 1e-6, 500)
    found = mechanism.release(rows, ReplayedNoise(1)).value
    assert np.isnan(found).tolist() == [True, False, True]
    assert found[1] == pytest.approx(-1.0, abs=0.1)


def test_replayed_noise_promises_nothing() -> None:
    mechanism = SimilarityAfterTest(2, PAIR, 1.0, 1e-6, 5)
    assert mechanism.release(agree(3)).guarantee == mechanism.guarantee
    assert mechanism.release(agree(3), ReplayedNoise(1)).guarantee.promises_nothing


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: SimilarityAfterTest(2, PAIR, 0.0, 1e-6, 5),
        lambda: SimilarityAfterTest(2, PAIR, 1.0, 0.0, 5),
        lambda: SimilarityAfterTest(2, PAIR, 1.0, 1e-6, 0),
        lambda: SimilarityAfterTest(2, PAIR, 1.0, 1e-6, 5, share=1.0),
        lambda: SimilarityAfterTest(2, PAIR, 1.0, 1e-6, 5, share=0.0),
        lambda: SimilarityAfterTest(2, ((0, 0),), 1.0, 1e-6, 5),
        lambda: SimilarityAfterTest(2, PAIR, 1e-30, 1e-6, 5),
        lambda: SimilarityAfterTest(2, PAIR, 5e-324, 1e-6, 5),
    ],
)
def test_bad_parameters_are_refused(attempt) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidParameter):
        attempt()


def test_bad_rows_are_refused_and_not_shown() -> None:
    with pytest.raises(InvalidInput) as caught:
        SimilarityAfterTest(2, PAIR, 1.0, 1e-6, 5).release([[SECRET]])
    assert "4242" not in str(caught.value)
