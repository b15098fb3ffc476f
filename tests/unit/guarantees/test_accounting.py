import math
import subprocess
import sys

import mpmath
import numpy as np
import pytest

from tacit.errors import InvalidGuarantee, InvalidParameter, MixedUnits
from tacit.guarantees import (
    ONE_PROFILE,
    ONE_USER,
    Guarantee,
    Loss,
    LossKind,
    approximate,
    compose,
    epsilon_each,
    epsilon_of_gaussian,
    metric,
    nothing,
    pure,
    repeat,
    tight,
    times_within,
)
from tacit.guarantees.accounting import _merge_levels, response_curve


def ranged(eta):
    return Guarantee(eta, ONE_PROFILE, loss=Loss(LossKind.BOUNDED_RANGE, eta))


def gaussian(mu, delta=1e-6):
    return Guarantee(epsilon_of_gaussian(mu, delta), ONE_USER, delta=delta, loss=Loss(LossKind.GAUSSIAN, mu))


def exact_delta(epsilons, epsilon):
    """delta of composed randomised responses, the worst case of pure mechanisms, by every combination of answers."""
    with mpmath.workdps(40):
        laws = {mpmath.mpf(0): mpmath.mpf(1)}  # loss -> probability, as counts of equal losses
        for each, times in epsilons:
            e = mpmath.mpf(each)
            p = 1 / (1 + mpmath.exp(-e))
            step = {
                (2 * i - times) * e: mpmath.binomial(times, i) * p**i * (1 - p) ** (times - i) for i in range(times + 1)
            }
            mixed: dict = {}
            for loss, mass in laws.items():
                for other, more in step.items():
                    mixed[loss + other] = mixed.get(loss + other, 0) + mass * more
            laws = mixed
        return sum(mass * (1 - mpmath.exp(epsilon - loss)) for loss, mass in laws.items() if loss > epsilon)


def delta_of_equal(each, times, epsilon):
    """The same for equal releases, 50 digits, downwards from the first answer that matters until terms vanish."""
    with mpmath.workdps(50):
        e = mpmath.mpf(each)
        wrong = 1 / (1 + mpmath.exp(e))
        top = min(times, int((times - epsilon / e) / 2) + 1)
        log_ways = mpmath.loggamma(times + 1) - mpmath.loggamma(top + 1) - mpmath.loggamma(times - top + 1)
        mass = mpmath.exp(log_ways + top * mpmath.log(wrong) + (times - top) * mpmath.log(1 - wrong))
        total = mpmath.mpf(0)
        for count in range(top, -1, -1):
            term = mass * max(0, -mpmath.expm1(epsilon - (times - 2 * count) * e))
            total += term
            if count < times * wrong and 0 < term < total * mpmath.mpf(10) ** -20:
                break
            mass *= count / (times - count + 1) * (1 - wrong) / wrong
        return total


def delta_on_a_lattice(steps, unit, epsilon):
    """delta of randomised responses of ``steps`` units each: positive terms only, so floats keep 13 digits of it."""
    reach = sum(steps)
    law = np.zeros(2 * reach + 1)
    law[reach] = 1.0
    for step in steps:
        right = 1 / (1 + math.exp(-step * unit))
        law = right * np.roll(law, step) + (1 - right) * np.roll(law, -step)
    losses = np.arange(-reach, reach + 1) * unit
    return float(law @ np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - losses))))


class TestManyReleases:
    """Errors of a convolution grow with the number of releases: equal ones are summed, too many others are declined."""

    @pytest.mark.parametrize(("times", "each"), [(10**4, 0.01), (10**5, 0.003), (10**6, 0.001), (10**6, 1e-4)])
    @pytest.mark.parametrize("delta", [1e-10, 1e-9, 1e-6])
    @pytest.mark.parametrize("method", ["pld", "rdp", "auto"])
    def test_the_true_delta_is_never_above_the_claim_and_pld_is_near_it(self, times, each, delta, method):
        part = pure(each, ONE_USER)
        found = mpmath.mpf(tight([part] * times, delta, method).epsilon)
        true = delta_of_equal(each, times, found)
        assert true <= mpmath.mpf(delta)
        assert method == "rdp" or true >= mpmath.mpf(delta) * (1 - mpmath.mpf(10) ** -6)

    @pytest.mark.parametrize("times", [10**4, 10**6])
    @pytest.mark.parametrize("delta", [1e-10, 1e-6])
    def test_the_share_of_each_of_many_keeps_the_total(self, times, delta):
        each = epsilon_each(times, 5.0, delta)
        true = delta_of_equal(each, times, mpmath.mpf(5))
        assert 0.999 * delta <= true <= mpmath.mpf(delta)

    def test_the_two_exact_sums_agree(self):
        assert delta_of_equal(0.1, 100, mpmath.mpf(3)) == pytest.approx(float(exact_delta([(0.1, 100)], mpmath.mpf(3))))
        lattice = delta_on_a_lattice([100] * 100, 0.001, 3.0)
        assert lattice == pytest.approx(float(delta_of_equal(0.1, 100, mpmath.mpf(3))), rel=1e-9)

    @pytest.mark.parametrize("delta", [1e-8, 1e-6])
    @pytest.mark.parametrize("times", [10, 100, 1000, 5000])
    def test_different_releases_are_safe_or_declined(self, times, delta):
        parts = [pure(8 * 2.0**-10, ONE_USER)] * times + [pure(11 * 2.0**-10, ONE_USER)] * times
        try:
            found = tight(parts, delta, "pld").epsilon
        except InvalidGuarantee:
            assert (times >= 1000, delta) == (True, 1e-8)
        else:
            assert delta_on_a_lattice([8] * times + [11] * times, 2.0**-10, found) <= delta

    def test_too_many_different_releases_are_declined(self):
        parts = [pure(0.001, ONE_USER)] * 10**5 + [pure(0.002, ONE_USER)] * 10**5
        with pytest.raises(InvalidGuarantee, match="too little for so many releases"):
            tight(parts, 1e-9, "pld")
        assert tight(parts, 1e-9).epsilon < 10.0

    def test_more_releases_than_it_can_sum_are_declined(self):
        from tacit.guarantees.accounting import MOST_TIMES, equal_epsilon

        assert equal_epsilon(1e-6, MOST_TIMES, 1e-6) is not None
        assert equal_epsilon(1e-6, MOST_TIMES + 1, 1e-6) is None


class TestPld:
    @pytest.mark.parametrize(("times", "each"), [(1, 1.0), (2, 3.0), (10, 0.5), (100, 0.1), (1000, 0.01), (300, 1.0)])
    @pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
    def test_equal_releases_are_within_a_thousandth_of_the_exact_delta_and_never_above_it(self, times, each, delta):
        found = tight([pure(each, ONE_USER)] * times, delta, "pld").epsilon
        assert exact_delta([(each, times)], mpmath.mpf(found)) <= delta
        slightly_less = mpmath.mpf(found) * (1 - mpmath.mpf(10) ** -4) - mpmath.mpf(10) ** -3 * each
        assert exact_delta([(each, times)], slightly_less) > delta * 0.999

    def test_unequal_releases_stay_above_the_exact_delta_and_near_it(self):
        parts = [pure(0.3, ONE_USER)] * 20 + [pure(0.171, ONE_USER)] * 50
        found = tight(parts, 1e-6, "pld").epsilon
        exact = exact_delta([(0.3, 20), (0.171, 50)], mpmath.mpf(found))
        assert exact <= 1e-6
        assert exact_delta([(0.3, 20), (0.171, 50)], mpmath.mpf(found * 0.99)) > 1e-6

    def test_many_different_epsilons_are_rounded_up_together(self):
        many = [pure(0.1 + 0.001 * i, ONE_USER) for i in range(80)]
        fewest = tight([pure(0.1, ONE_USER)] * 80, 1e-6, "pld").epsilon
        most = tight([pure(0.18, ONE_USER)] * 80, 1e-6, "pld").epsilon
        found = tight(many, 1e-6, "pld").epsilon
        assert fewest < found < most
        assert found < tight(many, 1e-6, "zcdp").epsilon

    STEPS = sorted({round(10 * 1.15**i) for i in range(34)})

    def test_many_levels_are_above_the_exact_delta_with_their_deltas_paid(self):
        assert len(self.STEPS) > 24
        parts = [approximate(step * 2.0**-10, 2e-8, ONE_USER) for step in self.STEPS]
        found = tight(parts, 1e-6, "pld").epsilon
        assert delta_on_a_lattice(self.STEPS, 2.0**-10, found) + 2e-8 * len(parts) <= 1e-6
        unpaid = tight([pure(part.epsilon, ONE_USER) for part in parts], 1e-6, "pld").epsilon
        paid = tight([pure(part.epsilon, ONE_USER) for part in parts], 1e-6 - 2e-8 * len(parts), "pld").epsilon
        assert unpaid < paid == pytest.approx(found, rel=1e-6)
        with pytest.raises(InvalidGuarantee, match="`pld` does not apply"):
            tight(parts, 2e-8 * len(parts), "pld")

    def test_levels_are_only_ever_rounded_up_and_none_is_lost(self):
        parts = tuple((step * 2.0**-10, 1 + step % 3) for step in self.STEPS)
        fewer = _merge_levels(parts)
        assert len(fewer) <= 24
        before, after = (sorted(e for e, times in levels for _ in range(times)) for levels in (parts, fewer))
        assert len(before) == len(after)
        assert all(old <= new <= 2 * old for old, new in zip(before, after, strict=True))

    def test_parts_that_cost_nothing_but_a_delta(self):
        assert tight([approximate(0.0, 1e-8, ONE_USER)] * 3, 1e-6).epsilon == 0.0
        assert tight([approximate(0.0, 1e-8, ONE_USER)] * 3, 1e-6, "pld").epsilon == 0.0

    @pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
    @pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
    def test_a_gaussian_agrees_with_the_exact_formula_from_above(self, mu, delta):
        exact = epsilon_of_gaussian(mu, delta)
        assert exact <= tight([gaussian(mu)], delta, "pld").epsilon <= exact * 1.0005

    def test_deltas_of_the_parts_are_paid(self):
        parts = [approximate(0.1, 1e-8, ONE_USER)] * 50
        with_deltas, without = tight(parts, 1e-6, "pld"), tight([pure(0.1, ONE_USER)] * 50, 5e-7, "pld")
        assert with_deltas.epsilon >= without.epsilon * (1 - 1e-3)
        with pytest.raises(InvalidGuarantee, match="`pld` does not apply"):
            tight(parts, 4e-7, "pld")

    def test_it_declines_deltas_that_its_arithmetic_cannot_resolve(self):
        with pytest.raises(InvalidGuarantee, match="less than 1e-10 of delta"):
            tight([pure(0.1, ONE_USER)] * 100, 1e-12, "pld")
        assert tight([pure(0.1, ONE_USER)] * 100, 1e-12).epsilon < 10.0  # others still apply

    def test_losses_beyond_all_floats_are_left_to_other_methods(self):
        assert tight([pure(1000.0, ONE_USER), pure(1.0, ONE_USER)], 1e-6).epsilon == 1001.0
        assert tight([pure(1.0, ONE_USER)] * 3000, 0.99999).epsilon < 3000.0
        assert tight([pure(16.5, ONE_USER)] * 44, 1e-9).epsilon <= 726.0


class TestRdp:
    @pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 3.0, 40.0])
    @pytest.mark.parametrize("order", [1.1, 2.0, 7.5, 64.0, 1024.0])
    def test_the_curve_is_that_of_randomised_response(self, epsilon, order):
        with mpmath.workdps(60):
            e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
            p, q = 1 / (1 + mpmath.exp(-e)), 1 / (1 + mpmath.exp(e))
            exact = mpmath.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)
            assert exact <= response_curve(order, epsilon) * (1 + 1e-15)
            assert response_curve(order, epsilon) <= exact * (1 + mpmath.mpf(10) ** -11)

    def test_no_pure_mechanism_is_above_that_curve(self):
        rng = np.random.default_rng(5)
        for _ in range(200):
            q = rng.dirichlet(np.ones(4))
            p = q * np.exp(rng.uniform(-0.4, 0.4, 4))
            p /= p.sum()
            epsilon = float(np.abs(np.log(p / q)).max())
            for order in (1.5, 3.0, 20.0):
                assert (
                    np.log(np.sum(p**order * q ** (1 - order))) / (order - 1) <= response_curve(order, epsilon) + 1e-12
                )

    def test_a_gaussian_agrees_with_the_best_order(self):
        assert tight([gaussian(1.0)], 1e-6, "rdp").epsilon == pytest.approx(
            tight([gaussian(1.0)], 1e-6, "zcdp").epsilon, rel=1e-4
        )

    def test_it_is_never_below_the_exact_composition(self):
        found = tight([pure(0.5, ONE_USER)] * 10, 1e-6, "rdp").epsilon
        assert exact_delta([(0.5, 10)], mpmath.mpf(found)) <= 1e-6

    def test_exceptions_are_taken_from_delta(self):
        except_for = Guarantee(0.1, ONE_USER, delta=5e-9, loss=Loss(LossKind.PURE, 0.1))
        found = tight([except_for] * 100, 1e-6, "rdp").epsilon
        plain = [pure(0.1, ONE_USER)] * 100
        assert found == pytest.approx(tight(plain, 5e-7, "rdp").epsilon, rel=1e-9)
        assert found > tight(plain, 1e-6, "rdp").epsilon
        with pytest.raises(InvalidGuarantee):
            tight([except_for] * 200, 1e-6, "rdp")


class TestAuto:
    def test_a_hundred_slates(self):
        total = tight([ranged(0.1)] * 100, 1e-6)
        assert total.epsilon == pytest.approx(2.419093, abs=5e-7)
        assert total.delta == 1e-6
        assert "accounting: zcdp" in total.assumes
        assert total.proof == "composition"

    def test_it_takes_the_smallest(self):
        parts = [pure(0.1, ONE_USER)] * 100
        each = {method: tight(parts, 1e-6, method).epsilon for method in ("basic", "zcdp", "rdp", "pld")}
        assert tight(parts, 1e-6).epsilon == min(each.values()) == each["pld"]
        assert each["pld"] < each["rdp"] < each["zcdp"] < each["basic"]

    def test_gaussians_are_one_gaussian(self):
        total = tight([gaussian(0.3), gaussian(0.4)], 1e-6)
        assert total.epsilon == pytest.approx(epsilon_of_gaussian(0.5, 1e-6), rel=1e-12)
        assert total.loss.kind is LossKind.GAUSSIAN

    def test_purity_is_kept_where_a_delta_would_gain_nothing(self):
        assert tight([pure(1.0, ONE_USER)], 1e-6) == pure(1.0, ONE_USER)
        assert tight([pure(0.5, ONE_USER)] * 3, 1e-9).delta == 0.0

    def test_epsilon_and_delta_alone_go_through_pld_and_basic_only(self):
        parts = [approximate(0.1, 1e-9, ONE_USER)] * 100
        assert tight(parts, 1e-6).epsilon < 5.0
        for method in ("zcdp", "rdp"):
            with pytest.raises(InvalidGuarantee, match=f"`{method}` does not apply.*\\(epsilon, delta\\) alone"):
                tight(parts, 1e-6, method)

    def test_basic_needs_room_for_the_deltas(self):
        with pytest.raises(InvalidGuarantee, match="`basic` does not apply"):
            tight([approximate(0.1, 1e-6, ONE_USER)] * 2, 1e-6, "basic")

    def test_a_loss_that_holds_except_with_a_probability_pays_for_it(self):
        except_for = Guarantee(0.1, ONE_USER, delta=1e-8, loss=Loss(LossKind.PURE, 0.1))
        plain = tight([pure(0.1, ONE_USER)] * 100, 1e-6, "zcdp").epsilon
        assert tight([except_for] * 99 + [except_for.assuming("x")], 2e-6, "zcdp").epsilon == pytest.approx(
            plain, rel=1e-9
        )
        with pytest.raises(InvalidGuarantee):
            tight([except_for] * 100, 1e-6, "zcdp")

    def test_a_running_composition_is_accounted_as_its_parts(self):
        running = ranged(0.1)
        for _ in range(99):
            running = running.then(ranged(0.1))
        assert tight([running], 1e-6).epsilon == pytest.approx(2.419093, abs=5e-7)

    def test_a_result_can_be_accounted_again(self):
        once = tight([ranged(0.1)] * 50, 1e-6)
        assert tight([once, once], 1e-6, "zcdp").epsilon == pytest.approx(2.419093, abs=5e-7)

    def test_no_promise_stays_none(self):
        assert tight([pure(1.0, ONE_USER), nothing(ONE_USER, "raw")], 1e-6).promises_nothing

    def test_metric_guarantees_need_a_radius_first(self):
        with pytest.raises(InvalidGuarantee, match="within"):
            tight([metric(1.0)], 1e-6)

    def test_units_are_not_mixed(self):
        with pytest.raises(MixedUnits):
            tight([pure(1.0, ONE_USER), pure(1.0, ONE_PROFILE)], 1e-6)

    def test_unknown_methods_and_bad_deltas_are_refused(self):
        with pytest.raises(InvalidParameter, match="auto, basic, gaussian, zcdp, rdp, pld"):
            tight([pure(1.0, ONE_USER)], 1e-6, "moments")
        for bad in (0.0, 1.0, math.nan, -1.0):
            with pytest.raises(InvalidParameter, match="strictly between 0 and 1"):
                tight([pure(1.0, ONE_USER)], bad)


class TestEach:
    def test_a_thousand_slates(self):
        assert epsilon_each(1000, 1.0, 1e-6, LossKind.BOUNDED_RANGE) == pytest.approx(0.013959, abs=5e-7)

    @pytest.mark.parametrize("kind", list(LossKind))
    @pytest.mark.parametrize("times", [1, 3, 200])
    def test_that_many_releases_fit_and_a_little_more_does_not(self, kind, times):
        each = epsilon_each(times, 1.0, 1e-6, kind)

        def cost(value):
            delta = 1e-6 if kind in (LossKind.ZCDP, LossKind.GAUSSIAN) else 0.0
            one = Guarantee(value if not delta else 1e6, ONE_USER, delta=delta, loss=Loss(kind, value))
            best = tight([one] * times, 1e-6).epsilon
            return min(best, repeat(one, times).epsilon if not delta else math.inf)

        assert cost(each) <= 1.0 + 1e-12
        assert cost(each * 1.01) > 1.0

    def test_a_pure_mechanism_gains_over_both_closed_forms(self):
        each = epsilon_each(1000, 1.0, 1e-6)
        assert each > math.sqrt(2 * 0.024355 / 1000)
        assert exact_delta([(each, 1000)], mpmath.mpf(1)) <= 1e-6

    @pytest.mark.parametrize("bad", [0, -1, 1.5])
    def test_times_is_checked(self, bad):
        with pytest.raises(InvalidParameter, match="times must be"):
            epsilon_each(bad, 1.0, 1e-6)


def test_importing_the_package_stays_light():
    code = "import sys, tacit.guarantees; print([m for m in ('dp_accounting', 'scipy', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_composition_and_accounting_agree_on_basic():
    parts = [pure(0.25, ONE_USER), approximate(0.5, 1e-9, ONE_USER)]
    assert tight(parts, 1e-6, "basic") == compose(parts)


@pytest.mark.parametrize(
    "each", [pure(0.1, ONE_USER), ranged(0.2), Guarantee(1.0, ONE_USER, delta=1e-7, loss=Loss(LossKind.GAUSSIAN, 0.2))]
)
def test_as_many_releases_as_are_counted_stay_within_and_one_more_does_not(each):
    times = times_within(each, 2.0, 1e-6)
    assert times > 2.0 / each.epsilon
    assert tight({each: times}, 1e-6).epsilon <= 2.0 < tight({each: times + 1}, 1e-6).epsilon


def test_no_release_fits_where_one_is_too_much():
    assert times_within(pure(3.0, ONE_USER), 2.0, 1e-6) == 0


@pytest.mark.parametrize("each", [pure(0.0, ONE_USER), metric(0.1), nothing(ONE_USER, "no proof")])
def test_only_releases_with_a_fixed_cost_are_counted(each):
    with pytest.raises(InvalidGuarantee):
        times_within(each, 2.0, 1e-6)
