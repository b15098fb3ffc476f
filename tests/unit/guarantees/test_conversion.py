import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import InvalidGuarantee, InvalidParameter
from tacit.guarantees import (
    ONE_IMPRESSION,
    ONE_PROFILE,
    ONE_USER,
    ONE_USER_REPLACED,
    Guarantee,
    Loss,
    LossKind,
    Neighbours,
    anywhere,
    approximate,
    group,
    metric,
    nothing,
    pure,
    replace_from_add_remove,
    rho_of,
    to_approximate,
    within,
)

TABLE = [
    (0.05, {0.1: 2, 0.2: 4, 0.5: 10, 1: 20, 4: 80}),
    (0.1, {0.1: 1, 0.2: 2, 0.5: 5, 1: 10, 4: 40}),
    (0.2, {0.1: 0.5, 0.2: 1, 0.5: 2.5, 1: 5, 4: 20}),
]


class TestWithin:
    @pytest.mark.parametrize(("scale", "radius", "epsilon"), [(s, r, e) for s, row in TABLE for r, e in row.items()])
    def test_the_table_of_radii(self, scale, radius, epsilon):
        local = within(metric(1 / scale), radius)
        assert local.epsilon == pytest.approx(epsilon, rel=1e-15)
        assert local.epsilon >= Fraction(1 / scale) * Fraction(radius)
        assert local.protects == Neighbours.features("L1", radius)
        assert local.loss == Loss(LossKind.PURE, local.epsilon)

    def test_the_grid_is_charged(self):
        slack = 38 * 2.0**-20
        assert within(metric(20.0, rounding=slack), 0.1).epsilon == pytest.approx(2 + 7.2e-4, abs=1e-5)

    def test_assumptions_stay(self):
        assert within(metric(1.0, assumes=frozenset({"real arithmetic"})), 1.0).assumes == {"real arithmetic"}

    def test_no_promise_stays_none(self):
        lost = Guarantee(math.inf, Neighbours.features(), per_distance=True, assumes=frozenset({"lost"}))
        assert within(lost, 1.0).promises_nothing

    @pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "1"])
    def test_the_radius_must_be_finite_and_above_zero(self, bad):
        with pytest.raises(InvalidParameter, match="radius must be a finite number above 0"):
            within(metric(1.0), bad)
        with pytest.raises(InvalidParameter, match="diameter must be a finite number above 0"):
            anywhere(metric(1.0), bad)

    @pytest.mark.parametrize("other", [pure(1.0, ONE_PROFILE), pure(1.0, Neighbours.features("L1", 1.0))])
    def test_only_metric_guarantees_have_a_radius_to_state(self, other):
        with pytest.raises(InvalidGuarantee, match="per distance"):
            within(other, 1.0)


class TestAnywhere:
    @pytest.mark.parametrize(("scale", "epsilon"), [(0.2, 20), (0.1, 40), (0.05, 80)])
    def test_the_whole_domain(self, scale, epsilon):
        local = anywhere(metric(1 / scale), 4.0)
        assert local.epsilon == pytest.approx(epsilon)
        assert local.protects == ONE_PROFILE
        assert "features lie in a public domain of L1 diameter 4" in local.assumes

    def test_features_are_not_a_whole_profile(self):
        with pytest.raises(InvalidGuarantee, match="within"):
            anywhere(metric(1.0), 4.0, Neighbours.features("L1", 1.0))

    def test_who_is_added_or_removed_has_no_distance(self):
        with pytest.raises(InvalidGuarantee, match="added or removed"):
            anywhere(metric(1.0), 4.0, ONE_USER)
        assert anywhere(metric(1.0), 4.0, ONE_USER_REPLACED).epsilon == 4.0

    def test_the_diameter_is_stated_exactly(self):
        assert "features lie in a public domain of L1 diameter 1.0000004" in anywhere(metric(1.0), 1.0000004).assumes


class TestGroup:
    def test_a_pure_guarantee_grows_linearly(self):
        three = group(pure(0.5, ONE_USER), 3)
        assert (three.epsilon, three.delta, three.protects.group) == (1.5, 0.0, 3)
        assert three.loss == Loss(LossKind.PURE, 1.5)

    def test_delta_grows_geometrically(self):
        three = group(approximate(0.5, 1e-6, ONE_USER), 3)
        assert three.delta == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.exp(1.0)), rel=1e-14)

    def test_groups_of_groups_multiply(self):
        assert group(group(pure(0.5, ONE_USER), 2), 3) == group(pure(0.5, ONE_USER), 6)

    def test_one_is_no_group(self):
        assert group(pure(0.5, ONE_USER), 1) == pure(0.5, ONE_USER)

    @pytest.mark.parametrize(
        ("kind", "factor"),
        [(LossKind.PURE, 3), (LossKind.BOUNDED_RANGE, 3), (LossKind.GAUSSIAN, 3), (LossKind.ZCDP, 9)],
    )
    def test_the_loss_follows(self, kind, factor):
        assert group(Guarantee(1.0, ONE_USER, delta=1e-9, loss=Loss(kind, 0.5)), 3).loss == Loss(kind, 0.5 * factor)

    def test_the_square_of_the_size_is_needed(self):
        """Three steps of a Gaussian shift 1/2 are a shift 3/2: rho grows from 1/8 to 9/8, not to 3/8."""
        step = Guarantee(1.0, ONE_USER, delta=1e-6, loss=Loss(LossKind.GAUSSIAN, 0.5))
        assert rho_of(group(step, 3)) == pytest.approx(9 * rho_of(step))

    def test_delta_that_reaches_one_leaves_no_promise(self):
        for lost in (group(approximate(3.0, 1e-6, ONE_USER), 10), group(approximate(1.0, 1e-300, ONE_USER), 10**6)):
            assert lost.promises_nothing
            assert any("steps" in reason for reason in lost.assumes)

    def test_epsilon_zero_adds_deltas(self):
        assert group(approximate(0.0, 0.1, ONE_USER), 3).delta == pytest.approx(0.3)

    def test_no_promise_stays_none(self):
        assert group(nothing(ONE_USER, "raw"), 2).promises_nothing

    @pytest.mark.parametrize("bad", [0, -1, 1.5, True])
    def test_the_size_must_be_a_whole_number(self, bad):
        with pytest.raises(InvalidParameter, match="size must be a whole number at least 1"):
            group(pure(1.0, ONE_USER), bad)

    @pytest.mark.parametrize("features", [metric(1.0), pure(1.0, Neighbours.features("L1", 1.0))])
    def test_features_are_grouped_by_distance(self, features):
        with pytest.raises(InvalidGuarantee, match="radius"):
            group(features, 2)

    def test_the_bound_holds_along_a_chain(self):
        """Random chains of four laws: each step (epsilon, delta)-close, the ends within the group bound."""
        rng = np.random.default_rng(11)
        for _ in range(200):
            laws = [rng.dirichlet(np.ones(5) * 3)]
            for _ in range(3):
                law = laws[-1] * np.exp(rng.uniform(-0.2, 0.2, 5))
                law[rng.integers(5)] += 0.01
                laws.append(law / law.sum())

            def hockey(p, q, epsilon):
                return float(np.maximum(p - np.exp(epsilon) * q, 0).sum())

            steps = [(laws[i], laws[i + 1]) for i in range(3)] + [(laws[i + 1], laws[i]) for i in range(3)]
            delta = max(hockey(p, q, 0.1) for p, q in steps)
            if delta == 0.0:
                continue
            claim = group(approximate(0.1, delta, ONE_USER), 3)
            assert hockey(laws[0], laws[3], claim.epsilon) <= claim.delta + 1e-12
            assert hockey(laws[3], laws[0], claim.epsilon) <= claim.delta + 1e-12


class TestReplace:
    def test_it_is_two_steps(self):
        both = replace_from_add_remove(approximate(0.5, 1e-6, ONE_USER))
        assert both.protects == ONE_USER_REPLACED
        assert both.epsilon == 1.0
        assert both.delta == pytest.approx(1e-6 * (1 + math.exp(0.5)))

    def test_a_range_doubles_and_rho_quadruples(self):
        once = Guarantee(0.1, ONE_USER, loss=Loss(LossKind.BOUNDED_RANGE, 0.1))
        assert replace_from_add_remove(once).loss == Loss(LossKind.BOUNDED_RANGE, 0.2)
        assert rho_of(replace_from_add_remove(once)) == pytest.approx(4 * rho_of(once))

    @pytest.mark.parametrize("protects", [ONE_PROFILE, ONE_USER_REPLACED, ONE_IMPRESSION])
    def test_what_is_replaced_already_is_refused(self, protects):
        with pytest.raises(InvalidGuarantee, match="added or removed"):
            replace_from_add_remove(pure(1.0, protects))


def test_an_approximate_statement_of_a_known_loss():
    shape = Guarantee(20.0, ONE_USER, delta=1e-9, loss=Loss(LossKind.ZCDP, 0.024355))
    assert to_approximate(shape, 1e-6).epsilon == pytest.approx(1.0, abs=1e-4)
