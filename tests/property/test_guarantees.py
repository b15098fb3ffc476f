"""Laws of the arithmetic on guarantees, for all inputs."""

import json
import math
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidGuarantee, InvalidParameter, MixedUnits
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
    compose,
    delta_of_gaussian,
    epsilon_of_gaussian,
    epsilon_of_rho,
    group,
    metric,
    mu_for,
    parallel,
    pure,
    repeat,
    replace_from_add_remove,
    rho_for,
    rho_of,
    shuffle,
    shuffle_delta,
    tight,
    within,
)
from tacit.guarantees.arithmetic import sqrt_down, sqrt_up

epsilons = st.floats(1e-6, 20.0)
deltas = st.floats(1e-12, 0.01)
units = st.sampled_from([ONE_PROFILE, ONE_USER, ONE_USER_REPLACED, ONE_IMPRESSION])
quick = settings(max_examples=40, deadline=None)
slow = settings(max_examples=15, deadline=None)
not_epsilons = st.one_of(
    st.floats(max_value=0.0), st.sampled_from([math.nan, math.inf, -math.inf, None, "1", True]), st.booleans()
)
not_deltas = st.one_of(
    st.floats(max_value=0.0), st.floats(min_value=1.0), st.sampled_from([math.nan, math.inf, None, "0.5", True])
)


@st.composite
def guarantees(draw, protects=ONE_USER):
    """A guarantee whose (epsilon, delta) follows from its loss, or that has none."""
    kind = draw(st.sampled_from([None, *LossKind]))
    epsilon, delta = draw(epsilons), draw(st.one_of(st.just(0.0), deltas))
    assumes = frozenset(draw(st.sets(st.sampled_from(["a", "b", "c"]))))
    if kind is None:
        return Guarantee(epsilon, protects, delta=delta, assumes=assumes)
    if kind in (LossKind.PURE, LossKind.BOUNDED_RANGE):
        return Guarantee(epsilon, protects, delta=delta, assumes=assumes, loss=Loss(kind, epsilon))
    delta = delta or 1e-9
    value = draw(st.floats(1e-4, 3.0))
    found = epsilon_of_rho(value, delta) if kind is LossKind.ZCDP else epsilon_of_gaussian(value, delta)
    return Guarantee(found, protects, delta=delta, assumes=assumes, loss=Loss(kind, value))


several = st.lists(guarantees(), min_size=1, max_size=6)


@quick
@given(several)
def test_composition_is_never_below_the_exact_sum(parts):
    total = compose(parts)
    assert Fraction(total.epsilon) >= sum(Fraction(part.epsilon) for part in parts)
    assert Fraction(total.delta) >= sum(Fraction(part.delta) for part in parts)
    assert total.epsilon <= math.fsum(part.epsilon for part in parts) * (1 + 1e-15)


@quick
@given(several, guarantees())
def test_composition_only_grows(parts, further):
    before, after = compose(parts), compose([*parts, further])
    assert after.epsilon >= before.epsilon
    assert after.delta >= before.delta
    assert after.assumes >= before.assumes


@quick
@given(several, st.randoms(use_true_random=False))
def test_order_does_not_matter(parts, shuffler):
    mixed = list(parts)
    shuffler.shuffle(mixed)
    assert compose(mixed) == compose(parts)
    assert parallel(mixed, disjoint="x") == parallel(parts, disjoint="x")


@quick
@given(several, st.integers(1, 6))
def test_parallel_lies_between_one_part_and_all(parts, allowed):
    some, all_of_them = parallel(parts, most_per_user=allowed), compose(parts)
    assert max(part.epsilon for part in parts) <= some.epsilon <= all_of_them.epsilon
    assert max(part.delta for part in parts) <= some.delta <= all_of_them.delta


@quick
@given(several)
def test_the_rho_of_a_composition_is_never_below_the_sum_of_what_is_known(parts):
    total = compose(parts)
    if total.loss is not None and total.loss.kind in (LossKind.ZCDP, LossKind.GAUSSIAN) and len(parts) > 1:
        known = rho_of(total)
        if total.delta == 0.0:
            known = total.loss.value
        for_each = [rho_of(part) for part in parts]  # no part has exceptions, or the whole would have no rho
        assert known >= math.fsum(for_each) * (1 - 1e-14)


@quick
@given(guarantees(), units)
def test_units_are_never_mixed(part, other):
    assume(part.protects != other)
    with pytest.raises(MixedUnits):
        compose([part, pure(1.0, other)])


@slow
@given(several, deltas)
def test_tight_is_never_above_basic_where_the_deltas_fit(parts, delta):
    basic = compose(parts)
    assume(basic.delta <= delta)
    total = tight(parts, delta)
    assert total.epsilon <= basic.epsilon
    assert total.delta <= delta
    assert total.assumes >= basic.assumes


@slow
@given(epsilons, st.integers(2, 200), st.sampled_from([1e-9, 1e-6, 1e-3]))
def test_every_method_is_at_least_the_exact_optimum(epsilon, times, delta):
    """The exact epsilon of composed randomised responses is a lower bound for any correct method."""
    assume(times * epsilon < 600.0)  # beyond it `pld` declines
    parts = [pure(epsilon, ONE_USER)] * times

    def exact(at):  # ln of each term, so that nothing overflows
        total = 0.0
        for wrong in range(times + 1):
            gap = (times - 2 * wrong) * epsilon - at
            if gap > 0:
                log_ways = math.lgamma(times + 1) - math.lgamma(wrong + 1) - math.lgamma(times - wrong + 1)
                log_mass = log_ways - wrong * epsilon - times * math.log1p(math.exp(-epsilon))
                total += math.exp(log_mass) * -math.expm1(-gap)
        return total

    for method in ("basic", "zcdp", "rdp", "pld"):
        assert exact(tight(parts, delta, method).epsilon) <= delta * (1 + 1e-9)


@quick
@given(epsilons, deltas)
def test_conversions_of_rho_and_mu_never_understate(epsilon, delta):
    assert epsilon_of_rho(rho_for(epsilon, delta), delta) <= epsilon
    assert delta_of_gaussian(mu_for(epsilon, delta), epsilon) <= delta
    assert mu_for(epsilon, delta) ** 2 / 2 >= rho_for(epsilon, delta) * (1 - 1e-12)  # what is exact allows more


@quick
@given(st.floats(1e-3, 100.0), st.floats(1e-3, 10.0), st.floats(1e-3, 10.0), st.floats(0.0, 0.1))
def test_metric_conversions_grow_with_the_radius_and_are_never_below_the_product(epsilon, radius, more, rounding):
    local, wider = (within(metric(epsilon, rounding=rounding), r) for r in (radius, radius + more))
    assert Fraction(local.epsilon) >= Fraction(epsilon) * (Fraction(radius) + Fraction(rounding))
    assert wider.epsilon >= local.epsilon
    assert anywhere(metric(epsilon, rounding=rounding), radius).epsilon == local.epsilon


@quick
@given(guarantees(), st.integers(1, 5), st.integers(1, 5))
def test_groups_only_cost_more_when_they_grow(part, size, more):
    small, large = group(part, size), group(part, size + more)
    assert large.epsilon >= small.epsilon
    assert large.promises_nothing or large.delta >= small.delta
    if not small.promises_nothing:
        assert Fraction(small.epsilon) >= size * Fraction(part.epsilon)


@quick
@given(guarantees(), st.integers(1, 50))
def test_every_result_survives_json(part, times):
    results = [repeat(part, times), group(part, 3), replace_from_add_remove(part), parallel([part, part], disjoint="x")]
    results.append(within(metric(part.epsilon), 0.5))
    for result in results:
        assert Guarantee.from_json(json.loads(json.dumps(result.to_json()))) == result


@slow
@given(st.floats(0.01, 6.0), st.integers(1, 3000), st.floats(1e-10, 1e-2), st.integers(2, 20))
def test_shuffling_never_costs_and_more_reports_never_harm(epsilon0, n, delta, k):
    for method, items in (("numerical", None), ("closed", None), ("blanket", k)):
        few, many = shuffle(epsilon0, n, delta, method, items), shuffle(epsilon0, 4 * n, delta, method, items)
        assert 0.0 <= many <= few * (1 + 1e-6) <= epsilon0 * (1 + 1e-6)
    found = shuffle(epsilon0, n, delta)
    assert found == epsilon0 or shuffle_delta(epsilon0, n, found) <= delta * (1 + 1e-9)


@quick
@given(st.fractions(0, 10**9))
def test_roots_round_outwards(value):
    assert Fraction(sqrt_down(value)) ** 2 <= value <= Fraction(sqrt_up(value)) ** 2


@quick
@given(not_epsilons)
def test_what_is_no_epsilon_is_refused_everywhere(bad):
    calls = [
        lambda: rho_for(bad, 1e-6),
        lambda: mu_for(bad, 1e-6),
        lambda: shuffle(bad, 100, 1e-6),
        lambda: within(metric(1.0), bad),
        lambda: anywhere(metric(1.0), bad),
        lambda: Neighbours.features("L1", bad) if isinstance(bad, float) else rho_for(bad, 1e-6),
    ]
    for call in calls:
        with pytest.raises(InvalidParameter) as caught:
            call()
        assert caught.value.code in ("invalid-parameter", "invalid-guarantee")


@quick
@given(not_deltas)
def test_what_is_no_delta_is_refused_everywhere(bad):
    calls = [
        lambda: rho_for(1.0, bad),
        lambda: mu_for(1.0, bad),
        lambda: shuffle(1.0, 100, bad),
        lambda: tight([pure(1.0, ONE_USER)], bad),
    ]
    for call in calls:
        with pytest.raises(InvalidParameter, match="strictly between 0 and 1"):
            call()


@quick
@given(st.integers(max_value=0))
def test_counts_start_at_one(bad):
    for call in (
        lambda: repeat(pure(1.0, ONE_USER), bad),
        lambda: group(pure(1.0, ONE_USER), bad),
        lambda: shuffle(1.0, bad, 1e-6),
        lambda: shuffle(1.0, 10, 1e-6, "blanket", bad + 1),
        lambda: parallel([pure(1.0, ONE_USER)], most_per_user=bad),
    ):
        with pytest.raises(InvalidParameter, match="whole number"):
            call()


def test_no_guarantee_is_built_from_a_bad_epsilon():
    for bad in (-1.0, math.nan):
        with pytest.raises(InvalidGuarantee):
            Guarantee(bad, ONE_USER)
