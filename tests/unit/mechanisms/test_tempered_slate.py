"""Tempered slates: the published vectors, the cap on votes, what is refused on public grounds and what never is."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, ONE_USER_REPLACED, LossKind, Relation, tight
from tacit.mechanisms import ReplayedNoise, TemperedSlate
from tacit.mechanisms.tempered_slate import capped_totals
from tacit.models.dpp.laws import log_determinants
from tacit.models.dpp.tempered import TemperedSampler
from tests.contracts.mechanism import ALARM, chi_square, log_ratio
from tests.unit.mechanisms.cases import added, replaced
from tests.unit.mechanisms.slate_feature_cases import public, shared, slates_of

SIMILAR = [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
HALVES = [[1.0, 0.0, 0.0], [0.5, math.sqrt(0.75), 0.0], [0.0, 0.0, 1.0]]  # features with that similarity
COUNTS = [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]  # totals 3, 2, 0
DEPENDENT = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 0], [0, 1, 1, 1]]


# --- the law


@pytest.mark.parametrize("source", ["features", "kernel"])
def test_counts_and_similarity_make_the_known_law(source: str) -> None:
    epsilon = 2.0 * math.log(2.0)  # theta = log 2
    if source == "features":
        mechanism = TemperedSlate(public(HALVES), 2, epsilon, high=10.0)
    else:
        mechanism = TemperedSlate.from_kernel(SIMILAR, 2, epsilon, high=10.0)
    assert mechanism.theta == pytest.approx(math.log(2.0), abs=1e-15)
    assert mechanism.outcomes() == [(0, 1), (0, 2), (1, 2)]
    np.testing.assert_allclose(mechanism.pmf(COUNTS), [2 / 3, 2 / 9, 1 / 9], rtol=0.0, atol=1e-12)
    drawn = slates_of(mechanism, COUNTS, ReplayedNoise(1), 20_000)
    assert chi_square(np.bincount(drawn, minlength=3), mechanism.pmf(COUNTS)) > ALARM


def test_dependent_favourites_are_never_a_slate_at_the_limit_of_40_nats_and_beyond_it_are_refused() -> None:
    votes = [[1.0, 1.0, 1.0, 1.0, 0.0, 0.0]] * 40
    mechanism = TemperedSlate(public(DEPENDENT), 4, 4.0, high=40.0)
    assert mechanism.theta * 40.0 == 40.0
    law = dict(zip(mechanism.outcomes(), mechanism.pmf(votes), strict=True))
    assert law[0, 1, 2, 3] == 0.0
    for three in combinations(range(4), 3):
        for other in (4, 5):
            assert law[(*three, other)] == pytest.approx(1 / 8, abs=1e-15)
    drawn = np.bincount(slates_of(mechanism, votes, ReplayedNoise(2), 4_000), minlength=15)
    assert chi_square(drawn, mechanism.pmf(votes)) > ALARM  # 0 if the impossible slate is drawn once
    for epsilon in (math.nextafter(4.0, 5.0), 4.1, 7.5, 12.2):
        with pytest.raises(InvalidParameter, match=r"epsilon must be at most 4\b"):
            TemperedSlate(public(DEPENDENT), 4, epsilon, high=40.0)


def test_slates_have_their_law_and_an_epsilon_off_by_ten_percent_is_seen(rng: np.random.Generator) -> None:
    features = public(rng.normal(size=(6, 4)))
    votes = (rng.random((30, 6)) < np.linspace(0.9, 0.1, 6)).astype(np.float64)
    mechanism = TemperedSlate(features, 3, 1.0, high=30.0)
    counts = np.bincount(slates_of(mechanism, votes, ReplayedNoise(3), 20_000), minlength=20)
    assert chi_square(counts, mechanism.pmf(votes)) > ALARM
    for factor in (0.9, 1.1):
        assert chi_square(counts, replace(mechanism, epsilon=factor).pmf(votes)) < ALARM
    one_by_one = [tuple(mechanism.release(votes, ReplayedNoise(seed)).value) for seed in range(300)]
    assert all(tuple(sorted(slate)) == slate and len(set(slate)) == 3 for slate in one_by_one)


def test_popularity_never_falls_as_epsilon_rises_and_stays_below_the_best_independent_set() -> None:
    votes = np.repeat([[1.0, 1.0, 1.0, 1.0, 0.0, 0.0]], 40, axis=0)
    totals, last = votes.sum(axis=0), 0.0
    for epsilon in (0.01, 0.1, 0.5, 1.0, 2.0, 4.0):
        mechanism = TemperedSlate(public(DEPENDENT), 4, epsilon, high=40.0)
        chosen = mechanism.prepare(votes).release_many(400, ReplayedNoise(4)).value
        expected = sum(
            p * totals[list(y)].sum() for p, y in zip(mechanism.pmf(votes), mechanism.outcomes(), strict=True)
        )
        assert expected >= last
        last = expected
        assert totals[chosen].sum(axis=1).max() <= 120.0  # three of the four: all four are dependent
    assert last == pytest.approx(120.0, abs=1e-9)


# --- what one user can do


@pytest.mark.parametrize("items_each", [1, 2, 5])
@pytest.mark.parametrize("relation", list(Relation))
def test_no_user_costs_more_than_epsilon_however_few_of_her_votes_count(items_each: int, relation: Relation) -> None:
    mechanism = TemperedSlate(
        public(np.eye(4)[:, :3] + 0.1), 2, 1.0, high=3.0, items_each=items_each, relation=relation
    )
    assert mechanism.votes_each == min(2, items_each)
    pairs = shared(added(1, 4) if relation is Relation.ADD_REMOVE else replaced(1, 4))
    laws = {key: mechanism.pmf(raw) for key, raw in {id(raw): raw for pair in pairs for raw in pair}.items()}
    worst = max(log_ratio(laws[id(here)], laws[id(there)]) for here, there in pairs)
    spread = max(float(np.ptp(np.log(laws[id(here)]) - np.log(laws[id(there)]))) for here, there in pairs)
    assert worst <= 1.0 + 1e-12
    assert spread <= 1.0 + 1e-12  # the range that the guarantee states
    assert spread >= 1.0 - 1e-9


def test_without_the_cap_the_claim_would_break(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = TemperedSlate(public(np.eye(4)), 2, 1.0, high=3.0, items_each=1)
    pairs = added(1, 4)

    def spread() -> float:
        return max(float(np.ptp(np.log(mechanism.pmf(here)) - np.log(mechanism.pmf(there)))) for here, there in pairs)

    assert spread() <= 1.0 + 1e-12
    monkeypatch.setattr(
        "tacit.mechanisms.tempered_slate.capped_totals",
        lambda rows, n, steps, each: capped_totals(rows, n, steps, None),
    )
    assert spread() > 1.9


def test_adding_a_user_is_charged_half_of_what_replacing_one_is() -> None:
    """The supremum of replacing: one vote moves from a dominant item to another."""
    votes = np.zeros((30, 2))
    votes[:, 0] = 1.0
    moved = votes.copy()
    moved[0] = [0.0, 1.0]
    for relation, loss in ((Relation.ADD_REMOVE, 2.0), (Relation.REPLACE, 1.0)):
        mechanism = TemperedSlate(public(np.eye(2)), 1, 1.0, high=30.0, relation=relation)
        assert log_ratio(mechanism.pmf(votes), mechanism.pmf(moved)) == pytest.approx(loss, abs=1e-6)
        assert log_ratio(mechanism.pmf(votes), mechanism.pmf(votes[1:])) <= 1.0 + 1e-12


@pytest.mark.parametrize(("k", "items_each"), [(1, None), (3, None), (3, 1), (3, 2), (3, 7)])
@pytest.mark.parametrize("relation", list(Relation))
def test_theta_times_what_a_user_can_move_is_at_most_epsilon(
    k: int, items_each: int | None, relation: Relation
) -> None:
    moves = min(k, items_each or k) * (1 if relation is Relation.ADD_REMOVE else 2)
    for epsilon in (0.1, 0.3, 0.7, 1 / 3, 1.1, 9.9):
        mechanism = TemperedSlate(public(np.eye(4)), k, epsilon, high=1.0, items_each=items_each, relation=relation)
        assert Fraction(mechanism.theta) * moves <= Fraction(epsilon)
        assert Fraction(mechanism.theta) * moves >= Fraction(epsilon) * (1 - Fraction(1, 1 << 50))


def test_guarantee_says_range_unit_and_real_arithmetic() -> None:
    for relation, protects in ((Relation.ADD_REMOVE, ONE_USER), (Relation.REPLACE, ONE_USER_REPLACED)):
        guarantee = TemperedSlate(public(np.eye(4)), 2, 0.1, high=3.0, relation=relation).guarantee
        assert (guarantee.epsilon, guarantee.delta, guarantee.protects) == (0.1, 0.0, protects)
        assert guarantee.assumes == {"real arithmetic in the sampler"}
        assert guarantee.loss is not None
        assert (guarantee.loss.kind, guarantee.loss.value) == (LossKind.BOUNDED_RANGE, 0.1)
        assert tight({guarantee: 100}, 1e-6, "zcdp").epsilon == pytest.approx(2.419093, abs=1e-6)


def test_many_slates_carry_the_guarantee_of_all_of_them() -> None:
    prepared = TemperedSlate(public(np.eye(4)), 2, 0.1, high=3.0).prepare(np.ones((3, 4)))
    assert prepared.release_many(5).guarantee.epsilon == pytest.approx(0.5)
    assert prepared.release().guarantee.epsilon == 0.1
    assert prepared.release_many(5).value.shape == (5, 2)
    assert "3" not in repr(prepared)  # not how many users there are


def test_the_only_slate_costs_nothing_and_is_not_drawn() -> None:
    mechanism = TemperedSlate(public(np.eye(3)), 3, 1e6, high=100.0)  # 33 million nats: nothing depends on them
    release = mechanism.release(np.ones((5, 3)))
    assert release.value.tolist() == [0, 1, 2]
    assert release.guarantee.epsilon == 0.0
    assert release.guarantee.assumes == frozenset()
    assert mechanism.prepare(np.ones((5, 3))).release_many(4).guarantee.epsilon == 0.0


# --- votes


def test_votes_are_cut_to_one_and_what_is_no_number_is_no_vote() -> None:
    rows = [[7.0, -3.0, math.nan, 1.0], [math.inf, -math.inf, 0.99, "text"], [None, 10**400, 0.5, True]]
    assert capped_totals(rows, 4, 1, None).tolist() == [1, 0, 0, 2]
    assert capped_totals(rows, 4, 4, None).tolist() == [4, 0, 3 + 2, 8]
    assert capped_totals(sparse.csr_array((0, 4)), 4, 1, 2).tolist() == [0] * 4
    assert capped_totals([], 4, 1, 2).tolist() == [0] * 4


def test_of_each_user_the_largest_votes_count_and_no_more_than_allowed(rng: np.random.Generator) -> None:
    for _ in range(200):
        row = np.floor(rng.random(9) * 6) / 4  # also above 1, also 0
        for each in (1, 2, 4, 20):
            counted = capped_totals([row], 9, 4, each)
            votes = np.minimum(row, 1.0) * 4
            assert counted.sum() == np.sort(votes)[::-1][:each].sum()
            assert np.count_nonzero(counted) <= each
            assert set(zip(counted[counted > 0], np.flatnonzero(counted), strict=True)) <= set(
                zip(votes, range(9), strict=True)
            )


def test_which_votes_count_depends_on_the_users_own_record_alone(rng: np.random.Generator) -> None:
    table = (rng.random((40, 30)) < 0.5).astype(np.float64)
    each = [capped_totals(table[[user]], 30, 1, 5) for user in range(40)]
    assert (capped_totals(table, 30, 1, 5) == np.sum(each, axis=0)).all()
    assert (capped_totals(table[::-1], 30, 1, 5) == np.sum(each, axis=0)).all()
    places, starts = np.tile(np.arange(30), 40), np.arange(0, 1201, 30)
    stored = sparse.csr_array((table.ravel(), places, starts), shape=(40, 30))
    assert stored.nnz == 1200
    assert (capped_totals(stored, 30, 1, 5) == capped_totals(table, 30, 1, 5)).all()  # a 0 that is stored is no vote


def test_no_item_is_always_counted_first(rng: np.random.Generator) -> None:
    """Taking the first five of each record would never count the last items of the list."""
    table = np.zeros((6_000, 40))
    for row in table:
        row[rng.choice(40, 25, replace=False)] = 1.0
    totals = capped_totals(table, 40, 1, 5)
    assert totals.sum() == 30_000
    assert chi_square(totals, np.full(40, 1 / 40)) > ALARM


def test_scores_are_cut_to_the_public_range() -> None:
    mechanism = TemperedSlate(public(np.eye(3)), 1, 1.0, low=2.0, high=4.0)

    def law(*totals: int) -> list[float]:
        votes = np.array([[float(user < total) for total in totals] for user in range(max(totals, default=0))])
        return mechanism.pmf(votes.reshape(-1, 3)).round(12).tolist()

    assert law(0, 1, 2) == [round(1 / 3, 12)] * 3
    assert law(9, 4, 0) == law(4, 7, 1)
    weights = [math.exp(2.0), math.exp(1.0), 1.0]
    assert law(6, 3, 1) == [round(one / sum(weights), 12) for one in weights]


def test_what_the_sampler_is_given_lies_within_the_public_limit(rng: np.random.Generator) -> None:
    for low, high in ((0.0, 5.0), (3.0, 4.5), (-7.0, 2.0), (2.0**40, 2.0**40 + 3.0)):
        mechanism = TemperedSlate.capped(public(np.eye(9)), 1, 1e9, low=low, high=high)
        given = mechanism._log_weights((rng.random((6, 9)) < 0.5).astype(np.float64))
        assert given.min() >= 0.0
        assert given.max() <= 40.0


# --- what is refused, and what never is


def test_the_largest_epsilon_that_is_named_is_taken_and_the_next_one_is_not() -> None:
    for k, each, relation, high in product((1, 3), (None, 1), Relation, (7.0, 2750.0, 0.3)):
        small = TemperedSlate(public(np.eye(4)), k, 1e-3, high=high, items_each=each, relation=relation)
        largest = small.largest_epsilon
        assert Fraction(replace(small, epsilon=largest).theta) * Fraction(high) <= 40
        with pytest.raises(InvalidParameter, match="epsilon must be at most") as caught:
            replace(small, epsilon=math.nextafter(largest, math.inf))
        assert repr(largest).removesuffix(".0") in str(caught.value)
        capped = TemperedSlate.capped(small.features, k, 1e9, high=high, items_each=each, relation=relation)
        assert capped.epsilon == capped.guarantee.epsilon == largest
        assert TemperedSlate.capped(small.features, k, 1e-3, high=high).epsilon == 1e-3


def test_movielens_figures_of_the_limit() -> None:
    mechanism = TemperedSlate.capped(public(np.eye(11)), 10, 1.0, low=0.0, high=2750.0)
    assert mechanism.epsilon == pytest.approx(0.145, abs=5e-4)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_capping_takes_no_bad_epsilon(epsilon: float) -> None:
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        TemperedSlate.capped(public(np.eye(4)), 2, epsilon, high=3.0)


def test_a_range_that_is_left_out_is_asked_for() -> None:
    with pytest.raises(InvalidParameter, match="public range"):
        TemperedSlate(public(np.eye(4)), 2, 1.0)


def test_slates_longer_than_the_rank_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="rank 4"):
        TemperedSlate(public(DEPENDENT), 5, 1.0, high=3.0)
    with pytest.raises(InvalidParameter, match="rank 1"):
        TemperedSlate.from_kernel(np.ones((3, 3)), 2, 0.1, high=3.0)


def squeezed(bits: int) -> np.ndarray:
    """Features in which only unpopular items have a direction of their own, 2^-bits long; all of it exact in floats."""
    own = np.array([1.0, -1.0, -1.0, 1.0]) / 2.0
    mix = np.array([[2.0, 1, 0, -1], [0, 1, 3, 1], [1, 0, 1, 0], [-1, 2, 0, 1]])
    return np.asarray(DEPENDENT @ (np.eye(4) - (1 - 2.0**-bits) * np.outer(own, own)) @ mix)


def off_by(features: np.ndarray, nats: float) -> float:
    """The error of the sampler's normaliser in logs, where the dependent items lead by so many nats."""
    weights = np.array([nats] * 4 + [0.0, 0.0])
    slates = np.array(list(combinations(range(6), 4)))
    logs = log_determinants(features @ features.T, 4, exact=True) + weights[slates].sum(axis=1)
    return abs(TemperedSampler(features, weights, 4).log_normaliser - float(np.logaddexp.reduce(logs)))


@pytest.mark.parametrize("bits", [16, 19, 22])
def test_nearly_dependent_features_are_tempered_less_because_floats_would_lose_them(bits: int) -> None:
    features = squeezed(bits)
    assert off_by(features, 40.0) > 1e-5
    with pytest.raises(InvalidParameter, match=r"nearly dependent.*most_nats = (\d+)") as caught:
        TemperedSlate(public(features), 4, 0.1, high=3.0)
    allowed = int(str(caught.value).rstrip(".").split("= ")[1])
    assert off_by(features, allowed) < 1e-6
    mechanism = TemperedSlate(public(features), 4, 0.1, high=3.0, most_nats=allowed)
    assert mechanism.largest_epsilon == pytest.approx(allowed * 4 / 3)
    with pytest.raises(InvalidParameter, match="nearly dependent"):
        TemperedSlate(public(features), 4, 0.1, high=3.0, most_nats=allowed + 1)


def test_errors_of_squeezed_and_mixed_features_are_those_of_the_proof_page(rng: np.random.Generator) -> None:
    """Below 10^-7 up to a condition of 10^4; at 40 nats above 10^-5 beyond 10^5; at the nats that are then allowed below 10^-6."""
    seen = {"sound": 0, "lost": 0}
    for _ in range(60):
        features = squeezed(int(rng.integers(0, 16))) @ rng.integers(-3, 4, size=(4, 4))
        if np.linalg.matrix_rank(features, tol=1e-9) < 4:
            continue
        condition = float(np.linalg.cond(features))
        if condition <= 1e4:
            seen["sound"] += 1
            assert off_by(features, 40.0) < 1e-7
        else:
            seen["lost"] += off_by(features, 40.0) > 1e-5
            assert off_by(features, 40.0 - 2.0 * math.log(condition / 1e4)) < 1e-6
    assert min(seen.values()) >= 3


def test_features_of_condition_ten_thousand_may_take_all_40_nats() -> None:
    features = squeezed(8)
    assert 1e3 < np.linalg.cond(features) < 1e4
    assert TemperedSlate(public(features), 4, 0.1, high=3.0).most_nats == 40.0
    assert off_by(features, 40.0) < 1e-6


def test_features_that_repeat_each_other_are_not_nearly_dependent() -> None:
    doubled = np.hstack([DEPENDENT, DEPENDENT])
    assert TemperedSlate(public(doubled), 4, 4.0, high=40.0).most_nats == 40.0


def test_a_kernel_of_dependent_items_that_has_lost_digits_is_tempered_less() -> None:
    features = np.array(DEPENDENT) * [1.0, 1.0, 1.0, 1e-3]
    mechanism = TemperedSlate.from_kernel(features @ features.T, 4, 1e3, capped=True, high=10.0)
    assert 15.0 < mechanism.most_nats < 30.0
    assert mechanism.epsilon == pytest.approx(mechanism.most_nats * 4 / 10)
    with pytest.raises(InvalidParameter, match="epsilon must be at most"):
        TemperedSlate.from_kernel(features @ features.T, 4, mechanism.epsilon * 1.01, high=10.0)
    votes = np.ones((4, 6))
    same = TemperedSlate(public(features), 4, mechanism.epsilon, high=10.0)
    np.testing.assert_allclose(mechanism.pmf(votes), same.pmf(votes), atol=1e-8)


def test_no_record_is_refused_whatever_is_in_it(rng: np.random.Generator) -> None:
    odd: list[Any] = [math.nan, math.inf, -math.inf, 1e308, -1e308, 1e-320, 0.0, 1.0, 1e6, None, "x", 10**400]
    mechanism = TemperedSlate(public(DEPENDENT), 4, 3.0, high=40.0, items_each=3)
    tables = [[[odd[i] for i in rng.integers(0, len(odd), 6)] for _ in range(users)] for users in (0, 1, 2, 60) * 5]
    for table in tables:
        assert mechanism.release(table, ReplayedNoise(1)).value.shape == (4,)


def test_nothing_private_is_refused_but_a_shape() -> None:
    mechanism = TemperedSlate(public(np.eye(3)), 2, 1.0, high=3.0)
    for rows in (np.zeros((2, 4)), sparse.csr_array((2, 2)), np.zeros(3)):
        with pytest.raises(InvalidInput):
            mechanism.release(rows)


def test_features_are_copied_and_the_mechanism_does_not_print_them() -> None:
    features = np.eye(3) * 4242.0
    mechanism = TemperedSlate(features, 2, 1.0, high=3.0)
    features[:] = 0.0
    assert mechanism.features[0, 0] == 4242.0 / 8192.0  # scaled by a power of 2
    assert not mechanism.features.flags.writeable
    assert "4242" not in repr(mechanism)


def test_so_many_slates_are_not_listed() -> None:
    with pytest.raises(InvalidParameter, match="fewer items"):
        TemperedSlate(public(np.eye(60)), 8, 1.0, high=3.0).pmf(np.zeros((0, 60)))


def test_votes_do_not_decide_which_directions_count() -> None:
    """A row too small for the rank is left out whatever its votes: else the one vote that lifts it above another would show."""
    theta, most = 0.2495, 160
    small = 1.2e-4
    features = np.zeros((2_000, 3))
    features[[0, 1, 2], [0, 1, 2]] = 1.0, small, small * np.exp(-theta * (most - 0.5) / 2.0)
    mechanism = TemperedSlate(features, 2, 2.0 * theta, high=float(most))
    assert mechanism.features.shape == (2_000, 2)
    drawn = [
        set(map(tuple, mechanism.prepare(_votes_for(2, count, 2_000)).release_many(50).value.tolist()))
        for count in (most, most - 1)
    ]
    assert drawn == [{(0, 1)}, {(0, 1)}]


def _votes_for(item: int, count: int, items: int) -> sparse.csr_array:
    cells = (np.ones(count), (np.arange(count), np.full(count, item)))
    return sparse.csr_array(sparse.coo_array(cells, shape=(count, items)))


def test_dependent_features_keep_their_law_along_fewer_axes(rng: np.random.Generator) -> None:
    narrow = rng.integers(-2, 3, size=(6, 3)).astype(np.float64)
    narrow[:3] = np.eye(3)
    wide = np.hstack([narrow, narrow[:, :1] + narrow[:, 1:2]])
    votes = (rng.random((9, 6)) < 0.5).astype(np.float64)
    mechanism = TemperedSlate(wide, 2, 1.0, high=9.0)
    assert mechanism.features.shape == (6, 3)
    gram = wide @ wide.T
    weights = np.exp(mechanism.theta * votes.sum(axis=0))
    law = np.array([np.linalg.det(gram[np.ix_(y, y)]) * weights[list(y)].prod() for y in mechanism.outcomes()])
    assert mechanism.pmf(votes) == pytest.approx(law / law.sum(), abs=1e-12)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1.0, 1e300])
def test_the_scale_of_features_changes_nothing(scale: float) -> None:
    """Beside e^(nats/2) numbers near the smallest of all would vanish or not, by their votes."""
    mechanism = TemperedSlate(np.full((2, 1), scale), 1, 0.1, high=100.0)
    votes = _votes_for(0, 14, 2)
    slates = mechanism.prepare(votes).release_many(20_000, ReplayedNoise(3)).value
    assert mechanism.pmf(votes)[0] == pytest.approx(1.0 / (1.0 + np.exp(-1.4)), abs=1e-9)
    assert (slates == 0).mean() == pytest.approx(1.0 / (1.0 + np.exp(-1.4)), abs=0.02)
