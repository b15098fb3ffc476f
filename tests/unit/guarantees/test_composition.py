import math

import pytest

from tacit.errors import InvalidParameter, MixedUnits
from tacit.guarantees import (
    ONE_IMPRESSION,
    ONE_PROFILE,
    ONE_USER,
    ONE_USER_REPLACED,
    Guarantee,
    Loss,
    LossKind,
    Neighbours,
    approximate,
    compose,
    group,
    metric,
    nothing,
    parallel,
    pure,
    repeat,
    rho_of,
)


def gaussian(mu, delta=1e-6, protects=ONE_USER):
    return Guarantee(1.0, protects, delta=delta, loss=Loss(LossKind.GAUSSIAN, mu))


def ranged(eta, protects=ONE_PROFILE):
    return Guarantee(eta, protects, loss=Loss(LossKind.BOUNDED_RANGE, eta))


def test_epsilons_and_deltas_add_up():
    both = compose([approximate(0.5, 1e-7, ONE_USER), approximate(0.25, 3e-7, ONE_USER)])
    assert both.epsilon == 0.75
    assert both.delta == pytest.approx(4e-7, rel=1e-15)
    assert both.proof == "composition"


def test_three_tenths_do_not_add_up_to_less_than_three_tenths():
    assert compose([pure(0.1, ONE_USER)] * 3).epsilon > 0.3  # 0.1 as a float is a little more than a tenth


def test_then_is_compose():
    assert pure(1.0, ONE_USER).then(pure(2.0, ONE_USER)) == compose([pure(1.0, ONE_USER), pure(2.0, ONE_USER)])


def test_one_guarantee_composes_to_itself():
    only = pure(1.0, ONE_USER, proof="laplace")
    assert compose([only]) is only
    assert repeat(only, 1) is only


def test_repeating_equals_composing_as_often():
    once = Guarantee(0.1, ONE_USER, delta=1e-9)
    assert repeat(once, 7) == compose([once] * 7)
    assert repeat(pure(0.1, ONE_USER), 7) == compose([pure(0.1, ONE_USER)] * 7)


def test_units_are_not_mixed_and_the_message_names_both_and_the_remedy():
    with pytest.raises(MixedUnits) as caught:
        compose([pure(1.0, ONE_PROFILE), pure(1.0, ONE_IMPRESSION)])
    message = str(caught.value)
    assert message.startswith("mixed-units: ")
    assert "one profile, replaced by any other" in message
    assert "one impression" in message
    assert "Convert them" in message


@pytest.mark.parametrize(
    "other",
    [pure(1.0, ONE_USER_REPLACED), pure(1.0, ONE_PROFILE), metric(1.0), group(pure(1.0, ONE_USER), 2)],
)
def test_every_difference_in_what_is_protected_is_refused(other):
    with pytest.raises(MixedUnits):
        compose([pure(1.0, ONE_USER), other])


def test_metric_guarantees_of_one_distance_add_up_and_keep_the_larger_rounding():
    both = compose([metric(5.0, rounding=1e-3), metric(2.5, rounding=2e-3)])
    assert (both.epsilon, both.rounding, both.per_distance) == (7.5, 2e-3, True)
    with pytest.raises(MixedUnits):
        compose([metric(5.0), metric(5.0, distance="L2")])


def test_no_promise_absorbs_all_and_keeps_its_reason():
    total = compose([pure(1.0, ONE_USER), nothing(ONE_USER, "published verbatim"), approximate(1.0, 1e-6, ONE_USER)])
    assert total.promises_nothing
    assert "published verbatim" in total.assumes
    lost = Guarantee(math.inf, metric(1.0).protects, per_distance=True, assumes=frozenset({"lost"}))
    metrics = compose([metric(1.0), lost])
    assert metrics.promises_nothing
    assert metrics.per_distance


def test_deltas_that_reach_one_promise_nothing():
    total = compose([approximate(1.0, 0.5, ONE_USER)] * 2)
    assert total.promises_nothing
    assert any("delta of 1" in reason for reason in total.assumes)


def test_assumptions_unite():
    total = compose([pure(1.0, ONE_USER, assumes=frozenset({"a"})), pure(1.0, ONE_USER, assumes=frozenset({"b"}))])
    assert total.assumes == {"a", "b"}


def test_nothing_to_compose_is_refused():
    with pytest.raises(InvalidParameter, match="at least one"):
        compose([])


@pytest.mark.parametrize("times", [0, -1, 1.5, math.nan, True])
def test_times_must_be_a_whole_number_from_one(times):
    with pytest.raises(InvalidParameter, match="invalid-parameter: times must be a whole number at least 1"):
        repeat(pure(1.0, ONE_USER), times)


class TestLossOfAComposition:
    def test_pure_losses_become_a_rho_beside_the_summed_epsilon(self):
        total = compose([pure(0.3, ONE_USER), pure(0.4, ONE_USER)])
        assert total.epsilon == pytest.approx(0.7)
        assert total.loss.kind is LossKind.ZCDP
        assert total.loss.value == pytest.approx((0.09 + 0.16) / 2)

    def test_a_pure_guarantee_without_a_stated_loss_counts_as_pure(self):
        assert compose([Guarantee(0.3, ONE_USER), pure(0.4, ONE_USER)]).loss.value == pytest.approx(0.125)

    def test_gaussians_add_in_squares(self):
        assert compose([gaussian(3.0), gaussian(4.0)]).loss == Loss(LossKind.GAUSSIAN, 5.0)

    def test_ranges_become_an_eighth_of_their_squares_and_never_a_range(self):
        total = compose([ranged(0.1)] * 100)
        assert total.loss.kind is LossKind.ZCDP
        assert total.loss.value == pytest.approx(100 * 0.01 / 8)

    def test_mixed_shapes_become_a_rho(self):
        parts = [ranged(0.2), pure(0.2, ONE_PROFILE), gaussian(0.2, protects=ONE_PROFILE)]
        assert compose(parts).loss.value == pytest.approx(0.04 / 8 + 0.02 + 0.02)

    def test_an_unknown_shape_leaves_none(self):
        assert compose([approximate(1.0, 1e-6, ONE_USER), pure(1.0, ONE_USER)]).loss is None

    def test_a_loss_that_holds_except_with_a_probability_is_not_passed_on_as_a_rho(self):
        except_for = Guarantee(1.0, ONE_USER, delta=1e-9, loss=Loss(LossKind.PURE, 1.0))
        assert compose([except_for, gaussian(1.0)]).loss is None
        assert compose([except_for, except_for]).loss == Loss(LossKind.PURE, 2.0)

    def test_composing_a_composition_loses_nothing_of_rho(self):
        parts = [pure(0.1, ONE_USER)] * 4
        assert rho_of(compose([compose(parts[:2]), compose(parts[2:])])) == pytest.approx(
            rho_of(compose(parts)), rel=1e-15
        )


class TestParallel:
    parts = (pure(0.5, ONE_USER), approximate(1.0, 1e-7, ONE_USER), approximate(0.75, 2e-7, ONE_USER))

    def test_disjoint_parts_cost_the_largest_of_each(self):
        total = parallel(self.parts, disjoint="each user has one hospital")
        assert (total.epsilon, total.delta) == (1.0, 2e-7)
        assert "each user has one hospital" in total.assumes

    def test_order_does_not_matter(self):
        assert parallel(self.parts, disjoint="x") == parallel(self.parts[::-1], disjoint="x")

    def test_a_user_in_two_parts_pays_for_the_two_largest(self):
        total = parallel(self.parts, most_per_user=2)
        assert total.epsilon == 1.75
        assert total.delta == pytest.approx(3e-7, rel=1e-15)
        assert "no user is in more than 2 of the parts" in total.assumes

    def test_a_user_in_all_parts_pays_for_all(self):
        total = parallel(self.parts, most_per_user=9)
        assert (total.epsilon, total.delta) == (compose(self.parts).epsilon, compose(self.parts).delta)

    def test_a_replaced_user_may_move_to_another_part(self):
        parts = [pure(0.5, ONE_USER_REPLACED), pure(1.0, ONE_USER_REPLACED), pure(0.75, ONE_USER_REPLACED)]
        assert parallel(parts, disjoint="one shop each").epsilon == 1.75
        assert parallel(parts, most_per_user=2).epsilon == 2.25
        fixed = parallel(parts, disjoint="one shop each", stays="the shop is public")
        assert fixed.epsilon == 1.0
        assert "the shop is public" in fixed.assumes

    def test_moving_really_costs_the_sum(self):
        """Counts of two parts with two-sided geometric noise: a move from one to the other is exactly e^(2 epsilon)."""
        a = math.exp(-1.0)
        noise = {z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-40, 41)}
        before, after = (1, 0), (0, 1)  # where the one user sits
        worst = max(
            abs(sum(math.log(noise[y - x]) for y, x in zip(out, before, strict=True))
                - sum(math.log(noise[y - x]) for y, x in zip(out, after, strict=True)))
            for out in [(y, z) for y in range(-20, 21) for z in range(-20, 21)]
        )  # fmt: skip
        claim = parallel([pure(1.0, ONE_USER_REPLACED)] * 2, disjoint="by user").epsilon
        assert worst == pytest.approx(2.0)
        assert worst <= claim + 1e-12

    @pytest.mark.parametrize("protects", [ONE_PROFILE, ONE_IMPRESSION, Neighbours.features("L1", 1.0)])
    def test_whatever_is_replaced_may_move_unless_it_stays(self, protects):
        parts = [pure(1.0, protects), pure(2.0, protects), pure(4.0, protects)]
        moved = parallel(parts, disjoint="one device each")
        assert moved.epsilon == 6.0
        assert f"each part's guarantee covers replacing {protects.unit} by none" in moved.assumes
        fixed = parallel(parts, disjoint="one device each", stays="a device keeps its part")
        assert fixed.epsilon == 4.0
        assert "a device keeps its part" in fixed.assumes
        assert parallel([metric(1.0), metric(2.0)], disjoint="x").epsilon == 3.0

    def test_one_part_has_no_other_to_move_to(self):
        assert parallel([pure(1.0, ONE_PROFILE)], disjoint="x").epsilon == 1.0

    def test_a_group_may_sit_in_as_many_parts(self):
        pairs = [group(pure(1.0, ONE_USER), 2)] * 3
        assert parallel(pairs, disjoint="by user").epsilon == 4.0

    def test_the_loss_of_the_worst_part_is_kept(self):
        assert parallel([gaussian(1.0), gaussian(2.0)], disjoint="x").loss == Loss(LossKind.GAUSSIAN, 2.0)
        assert parallel([ranged(1.0), ranged(2.0)], disjoint="x", stays="y").loss == Loss(LossKind.BOUNDED_RANGE, 2.0)
        mixed = parallel([ranged(1.0), pure(2.0, ONE_PROFILE)], disjoint="x", stays="y").loss
        assert mixed == Loss(LossKind.ZCDP, 2.0)

    def test_a_loss_that_does_not_fit_the_largest_costs_is_left_out(self):
        wide = Guarantee(0.5, ONE_USER, loss=Loss(LossKind.BOUNDED_RANGE, 1.0))
        except_for = Guarantee(0.6, ONE_USER, delta=1e-9, loss=Loss(LossKind.BOUNDED_RANGE, 0.6))
        both = parallel([wide, except_for], disjoint="x")
        assert (both.epsilon, both.delta, both.loss) == (0.6, 1e-9, None)

    def test_a_part_that_promises_nothing_leaves_its_users_nothing(self):
        assert parallel([pure(1.0, ONE_USER), nothing(ONE_USER, "raw")], disjoint="x").promises_nothing

    @pytest.mark.parametrize(
        "how",
        [{}, {"disjoint": ""}, {"disjoint": "  "}, {"disjoint": "x", "most_per_user": 2}, {"most_per_user": 0}],
    )
    def test_without_a_reason_it_is_refused(self, how):
        with pytest.raises(InvalidParameter):
            parallel(self.parts, **how)

    def test_units_are_not_mixed(self):
        with pytest.raises(MixedUnits):
            parallel([pure(1.0, ONE_USER), pure(1.0, ONE_PROFILE)], disjoint="x")
