"""Natural subsets: known laws, the bound and where it is attained, the range, and odd tables."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.audit.exact import loss_range, zcdp
from tacit.guarantees import Loss, LossKind, Relation, repeat, rho_of
from tacit.mechanisms import NaturalSubset, ReplayedNoise, natural_slate
from tacit.mechanisms.slates import SQUARE, STEPS, subset_epsilon, subset_sigma_for, whole_rows
from tacit.models.dpp.samplers import UnconstrainedSampler
from tests.contracts.mechanism import chi_square, log_ratio

NAN, INF = math.nan, math.inf
TABLE = np.array([[1.0, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1], [0, 1, 0, 0]])


def test_the_law_of_a_known_kernel() -> None:
    """L = [[2,1,0],[1,2,0],[0,0,1]] is I plus one user of the items 0 and 1, whose squared norm is 2 of the bound 4."""
    epsilon = subset_epsilon(4.0, 1.0)
    mechanism = NaturalSubset(3, epsilon, bound=4.0)
    assert mechanism.sigma == pytest.approx(1.0, rel=1e-8)
    law = dict(zip(mechanism.outcomes(), mechanism.pmf([[1.0, 1.0, 0.0]]).tolist(), strict=True))
    known = {(): 1, (0,): 2, (1,): 2, (2,): 1, (0, 1): 3, (0, 2): 2, (1, 2): 2, (0, 1, 2): 3}
    assert law == pytest.approx({subset: weight / 16 for subset, weight in known.items()}, abs=1e-8)


@pytest.mark.parametrize("bound", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.05, 0.405465108, 1.0, 4.0])
def test_a_first_user_with_one_item_attains_the_bound(epsilon: float, bound: float) -> None:
    mechanism = NaturalSubset(3, epsilon, bound)
    loss = log_ratio(mechanism.pmf(np.zeros((0, 3))), mechanism.pmf([[9.0, 0, 0]]))
    assert epsilon * (1 - 1e-5) <= loss <= epsilon + 1e-12
    swapped = NaturalSubset(3, epsilon, bound, Relation.REPLACE)
    loss = log_ratio(*(swapped.pmf([row]) for row in ([9.0, 0, 0], [0, 9.0, 0])))
    assert epsilon * (1 - 1e-5) <= loss <= epsilon + 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_no_pair_of_tables_exceeds_the_claim_or_its_range(epsilon: float, rng: np.random.Generator) -> None:
    add, swap = (NaturalSubset(3, epsilon, 0.8, relation) for relation in Relation)
    rows: list[Any] = [rng.normal(size=3) * 10.0 ** rng.integers(-3, 4) for _ in range(30)]
    rows += [np.array(row) for row in ([1e300] * 3, [NAN, INF, 1], [1.0, 0, 0], [0, 0, 0], [0, 1.0, 0])]
    assert add.guarantee.loss is not None
    assert swap.guarantee.loss is not None
    for _ in range(60):
        others = np.array([rows[i] for i in rng.integers(0, len(rows), rng.integers(0, 5))]).reshape(-1, 3)
        tables = [others, *(np.concatenate([others, [rows[i]]]) for i in rng.integers(0, len(rows), 2))]
        laws, swapped = ([one.pmf(table) for table in tables] for one in (add, swap))
        assert max(log_ratio(laws[0], laws[1]), log_ratio(laws[0], laws[2])) <= epsilon + 1e-12
        assert loss_range(laws, [[0, 1], [0, 2]]) <= add.guarantee.loss.value + 1e-12
        assert log_ratio(swapped[1], swapped[2]) <= epsilon + 1e-12
        assert loss_range(swapped, [[1, 2]]) <= swap.guarantee.loss.value + 1e-12
        assert zcdp(laws[:2]) <= rho_of(add.guarantee) + 1e-12


def test_the_guarantee_states_the_range_and_not_epsilon_as_one() -> None:
    added, replaced = (NaturalSubset(5, 1.0, relation=relation).guarantee for relation in Relation)
    sigma = subset_sigma_for(1.0)
    assert added.loss is not None
    assert added.loss.kind is LossKind.BOUNDED_RANGE
    assert added.loss.value == pytest.approx(math.log1p(1.0 / sigma), rel=1e-12)
    assert added.loss.value > 1.5
    assert replaced.loss == Loss(LossKind.BOUNDED_RANGE, 2.0)
    assert added.assumes == replaced.assumes == {"real arithmetic in the sampler"}
    assert NaturalSubset(5, 1e-3).guarantee.loss.value >= 1e-3  # type: ignore[union-attr]


def test_less_jitter_is_needed_than_for_a_replaced_user() -> None:
    added, replaced = (NaturalSubset(5, 1.0, relation=relation) for relation in Relation)
    assert added.sigma == pytest.approx(subset_sigma_for(1.0), rel=1e-8)
    assert replaced.sigma == pytest.approx(1.0 / math.expm1(1.0), rel=1e-8)
    assert added.sigma < replaced.sigma


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("bound", [0.3, 1.0, 4.0, 1e6])
@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.7, 1.0, 5.0, 19.0, 40.0])
def test_the_jitter_is_never_below_what_epsilon_asks_for(epsilon: float, bound: float, relation: Relation) -> None:
    mechanism = NaturalSubset(4, epsilon, bound, relation)
    asked, step = Fraction(subset_sigma_for(epsilon, bound, relation)), Fraction(bound) / SQUARE
    held = mechanism.sigma_in_squares * step
    assert asked <= held < asked + step
    assert held <= Fraction(mechanism.sigma) <= held * (1 + Fraction(1, 2**51))


@pytest.mark.parametrize("bound", [1.0, 4.0, 2.5])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_sampler_gets_the_whole_numbers_and_all_of_the_jitter(
    epsilon: float, bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(
        natural_slate, "UnconstrainedSampler", lambda *what: given.append(what) or UnconstrainedSampler(*what)
    )
    mechanism = NaturalSubset(4, epsilon, bound)
    mechanism.prepare(TABLE).release()
    ((rows, sigma),) = given
    assert Fraction(sigma) >= Fraction(mechanism.sigma_in_squares, SQUARE) * Fraction(bound)
    assert sigma == mechanism.sigma
    whole = whole_rows(TABLE, 4, bound).toarray().T
    np.testing.assert_allclose(rows.toarray(), whole * (math.sqrt(bound) / STEPS), rtol=1e-15)


def test_draws_have_the_stated_law_and_the_test_tells_another_epsilon() -> None:
    mechanism = NaturalSubset(4, 1.0, bound=2.5)
    subsets = mechanism.prepare(TABLE).release_many(6_000, ReplayedNoise(5)).value
    found = Counter(tuple(subset.tolist()) for subset in subsets)
    counts = np.array([found[outcome] for outcome in mechanism.outcomes()])
    assert counts.sum() == 6_000
    assert chi_square(counts, mechanism.pmf(TABLE)) > 1e-9
    for factor in (0.65, 1.4):
        assert chi_square(counts, NaturalSubset(4, factor, bound=2.5).pmf(TABLE)) < 1e-9


@pytest.mark.parametrize(
    "rows",
    [
        [],
        np.zeros((3, 4)),
        [[NAN, INF, -INF, NAN]],
        [[1e308] * 4, [-1e308] * 4],
        [[1.0, None, "text", 10**400]],
        sparse.csr_array((2, 4)),
        np.ones((300, 4)),
    ],
    ids=repr,
)
def test_no_record_is_ever_refused(rows: Any) -> None:
    mechanism = NaturalSubset(4, 1.0)
    subset = mechanism.release(rows).value
    assert subset.dtype == np.int64
    assert set(subset.tolist()) <= {0, 1, 2, 3}
    assert mechanism.pmf(rows).sum() == pytest.approx(1.0)


def test_many_subsets_are_composed_and_show_no_more_than_sizes() -> None:
    mechanism = NaturalSubset(4, 0.1)
    prepared = mechanism.prepare(TABLE)
    assert repr(prepared) == "PreparedSlates(subsets from 4 items)"
    many = prepared.release_many(7)
    assert len(many.value) == 7
    assert many.guarantee == repeat(mechanism.guarantee, 7)
    assert prepared.release(ReplayedNoise(1)).guarantee.promises_nothing


def test_requests_and_candidates_are_as_for_a_slate() -> None:
    mechanism = NaturalSubset(4, 5.0)
    rows = np.tile(TABLE, (500, 1))
    prepared = mechanism.prepare(rows, among=[3, 1])
    assert {item for subset in prepared.release_many(50).value for item in subset.tolist()} == {1, 3}
    quiet = mechanism.prepare(rows, request=[0.0, 1.0, 0.0, 0.0]).release_many(300, ReplayedNoise(1)).value
    often = np.bincount(np.concatenate(quiet), minlength=4) / 300
    assert often[1] > 0.95
    assert often[0] == pytest.approx(mechanism.sigma / (1 + mechanism.sigma), abs=0.1)
