import math

import pytest

from tacit.errors import InvalidGuarantee, InvalidParameter
from tacit.guarantees import (
    ALL_CONDITIONS,
    ONE_PROFILE,
    ONE_USER,
    ONE_USER_REPLACED,
    ShuffleCondition,
    across_batches,
    amplify,
    approximate,
    compose,
    nothing,
    pure,
    repeat,
    shuffle,
)

LOCAL = pure(1.0, ONE_PROFILE, assumes=frozenset({"exact sampler"}))
RESPONSE = pure(1.0, ONE_PROFILE, proof="randomised-response")
ALL = {"n": 10**4, "delta": 1e-6, "conditions": ALL_CONDITIONS}


def test_with_all_conditions_the_guarantee_is_central():
    central = amplify(LOCAL, **ALL)
    assert central.epsilon == shuffle(1.0, 10**4, 1e-6)
    assert central.delta == 1e-6
    assert central.protects == ONE_USER_REPLACED
    assert central.proof == "shuffle-amplification"
    assert {condition.value for condition in ShuffleCondition} < central.assumes
    assert "the shuffler does not collude with the reader" in central.assumes
    assert "exact sampler" in central.assumes


def test_randomised_response_takes_the_blanket_and_says_for_how_many_items():
    central = amplify(RESPONSE, **ALL, k=15)
    assert central.epsilon == shuffle(1.0, 10**4, 1e-6, "blanket", 15)
    assert "k-ary randomised response with k = 15" in central.assumes
    assert not any("k-ary" in reason for reason in amplify(RESPONSE, **ALL).assumes)


@pytest.mark.parametrize("other", [LOCAL, pure(1.0, ONE_PROFILE, proof="permute-and-flip"), repeat(RESPONSE, 2)])
@pytest.mark.parametrize("conditions", [ALL_CONDITIONS, frozenset()])
def test_the_blanket_is_refused_for_other_mechanisms(other, conditions):
    with pytest.raises(InvalidParameter, match="numerical bound"):
        amplify(other, **{**ALL, "conditions": conditions}, k=15)
    with pytest.raises(InvalidParameter, match="numerical bound"):
        amplify(other, **{**ALL, "conditions": conditions}, k=15, method="blanket")


def test_k_has_a_limit():
    assert amplify(RESPONSE, **ALL, k=1 << 20).epsilon < 1.0
    with pytest.raises(InvalidParameter, match="k must be a whole number from 2 to 1048576"):
        amplify(RESPONSE, **ALL, k=(1 << 20) + 1)
    with pytest.raises(InvalidParameter, match="k must be a whole number from 2 to 1048576"):
        shuffle(1.0, 1000, 1e-6, "blanket", (1 << 20) + 1)


def test_the_honest_share_is_rounded_down():
    assert amplify(LOCAL, **{**ALL, "n": 10**4 + 1}, honest_share=0.5).epsilon == shuffle(1.0, 5000, 1e-6)
    assert amplify(LOCAL, **{**ALL, "n": 1999}, honest_share=0.5).epsilon == 1.0  # 999 and a half


@pytest.mark.parametrize("missing", list(ShuffleCondition))
def test_without_one_condition_the_local_guarantee_stands(missing):
    same = amplify(LOCAL, **{**ALL, "conditions": ALL_CONDITIONS - {missing}})
    assert (same.epsilon, same.delta, same.protects, same.loss) == (1.0, 0.0, ONE_PROFILE, LOCAL.loss)
    assert any(missing.name in note for note in same.assumes)


def test_small_batches_are_not_amplified():
    same = amplify(LOCAL, **{**ALL, "n": 999})
    assert same.epsilon == 1.0
    assert any("fewer than 1000" in note for note in same.assumes)
    assert amplify(LOCAL, **{**ALL, "n": 999}, least=500).epsilon < 1.0


def test_only_honest_reports_hide():
    assert amplify(LOCAL, **ALL, honest_share=0.5).epsilon == shuffle(1.0, 5000, 1e-6)
    assert amplify(LOCAL, **ALL, honest_share=0.05).epsilon == 1.0


def test_where_nothing_is_gained_purity_is_kept():
    strong = pure(9.0, ONE_PROFILE)
    same = amplify(strong, **{**ALL, "n": 1000}, method="closed")
    assert (same.epsilon, same.delta) == (9.0, 0.0)


def test_purity_is_not_given_up_for_a_gain_that_nobody_would_notice():
    """Epsilon 15 at n = 1000: the bound is 14.9999992, for a delta of 1e-6."""
    strong, given = pure(15.0, ONE_PROFILE), {**ALL, "n": 1000}
    assert 14.99 < shuffle(15.0, 1000, 1e-6) < 15.0
    for same in (amplify(strong, **given), amplify(pure(5.0, ONE_PROFILE), **given, reports_each=3)):
        assert (same.epsilon, same.delta, same.protects) == (15.0, 0.0, ONE_PROFILE)
        assert "not amplified: nothing is gained at n = 1000" in same.assumes


@pytest.mark.parametrize(("gain", "kept"), [(0.0099, True), (0.0101, False)])
def test_a_gain_is_one_percent_of_the_local_epsilon(monkeypatch, gain, kept):
    monkeypatch.setattr("tacit.guarantees.amplification.shuffle", lambda epsilon0, *_: (1.0 - gain) * epsilon0)
    assert amplify(pure(4.0, ONE_PROFILE), **ALL).is_pure is kept
    assert amplify(pure(2.0, ONE_PROFILE), **ALL, reports_each=2).is_pure is kept
    assert amplify(pure(4.0, ONE_PROFILE), **ALL, reports_each=2, everybody=False).is_pure is kept


def test_several_reports_are_composed_before_they_are_shuffled():
    assert amplify(repeat(LOCAL, 2), **ALL).epsilon == shuffle(2.0, 10**4, 1e-6)


@pytest.mark.parametrize(
    "other",
    [pure(1.0, ONE_USER), approximate(1.0, 1e-9, ONE_PROFILE), nothing(ONE_PROFILE, "raw"), pure(0.0, ONE_PROFILE)],
)
def test_only_pure_local_guarantees_are_amplified(other):
    with pytest.raises(InvalidGuarantee, match="only a local guarantee"):
        amplify(other, **ALL)


def test_the_unproven_bound_makes_no_guarantee():
    with pytest.raises(InvalidParameter, match="informative only"):
        amplify(LOCAL, **ALL, method="two-point-2023")


@pytest.mark.parametrize(
    "change",
    [
        {"n": 0},
        {"delta": 0.0},
        {"delta": math.nan},
        {"honest_share": 0.0},
        {"honest_share": 1.1},
        {"k": 1},
        {"least": 0},
    ],
)
def test_parameters_are_checked(change):
    with pytest.raises(InvalidParameter, match="invalid-parameter"):
        amplify(LOCAL, **{**ALL, **change})


class TestSeveralReportsOfOneUser:
    def test_if_everybody_sends_r_they_are_one_report_at_r_epsilon(self):
        central = amplify(LOCAL, **ALL, reports_each=3)
        assert (central.epsilon, central.delta) == (shuffle(3.0, 10**4, 1e-6), 1e-6)
        assert central.protects == ONE_USER_REPLACED
        assert "every user sends 3 reports to a batch, and the public view is fixed within it" in central.assumes
        assert ShuffleCondition.ONE_REPORT_EACH.value not in central.assumes

    def test_if_only_some_do_it_is_a_group_of_r_reports(self):
        one = shuffle(1.0, 10**4, 1e-6)
        central = amplify(LOCAL, **ALL, reports_each=3, everybody=False)
        assert central.epsilon == pytest.approx(3 * one, rel=1e-12)
        assert central.delta == pytest.approx(1e-6 * math.expm1(3 * one) / math.expm1(one), rel=1e-12)
        assert central.epsilon >= 3 * one
        assert (central.protects, central.proof) == (ONE_USER_REPLACED, "shuffle-amplification")
        assert "no user sends more than 3 reports to a batch, and the public view is fixed within it" in central.assumes

    def test_one_report_each_is_the_same_either_way(self):
        assert amplify(LOCAL, **ALL, everybody=False) == amplify(LOCAL, **ALL)

    @pytest.mark.parametrize("everybody", [True, False])
    @pytest.mark.parametrize("change", [{"conditions": ()}, {"n": 999}])
    def test_what_stands_without_amplification_is_r_times_the_local_epsilon(self, everybody, change):
        same = amplify(LOCAL, **{**ALL, **change}, reports_each=3, everybody=everybody)
        assert (same.epsilon, same.delta, same.protects) == (3.0, 0.0, ONE_PROFILE)
        assert any(note.startswith("not amplified") for note in same.assumes)

    @pytest.mark.parametrize("everybody", [True, False])
    def test_where_nothing_is_gained_it_is_r_times_the_local_epsilon_too(self, everybody):
        local = pure(5.0, ONE_PROFILE)
        same = amplify(local, **{**ALL, "n": 1000}, reports_each=30, everybody=everybody)
        assert (same.epsilon, same.delta, same.protects) == (150.0, 0.0, ONE_PROFILE)
        assert "not amplified: nothing is gained at n = 1000" in same.assumes

    def test_a_group_whose_delta_reaches_one_promises_what_its_reports_do(self):
        same = amplify(LOCAL, **{**ALL, "delta": 0.4}, reports_each=40, everybody=False)
        assert (same.epsilon, same.delta) == (40.0, 0.0)
        assert any("nothing is gained" in note for note in same.assumes)

    def test_the_blanket_is_for_one_report(self):
        with pytest.raises(InvalidParameter, match="numerical bound"):
            amplify(RESPONSE, **ALL, k=4, reports_each=2)
        some = amplify(RESPONSE, **ALL, k=4, reports_each=2, everybody=False)
        assert some.epsilon == pytest.approx(2 * shuffle(1.0, 10**4, 1e-6, "blanket", 4), rel=1e-12)

    @pytest.mark.parametrize("bad", [0, -1, 1.5, True])
    def test_the_number_is_checked(self, bad):
        with pytest.raises(InvalidParameter, match="reports_each"):
            amplify(LOCAL, **ALL, reports_each=bad)


class TestSeveralBatches:
    def test_epsilons_and_deltas_add(self):
        batch = amplify(LOCAL, **ALL)
        both = across_batches([batch, batch])
        assert both.epsilon == pytest.approx(2 * batch.epsilon, rel=1e-12)
        assert both.epsilon >= 2 * batch.epsilon
        assert both.delta == pytest.approx(2e-6, rel=1e-12)

    def test_a_batch_that_was_not_amplified_counts_with_its_local_epsilon(self):
        batch, small = amplify(LOCAL, **ALL), amplify(LOCAL, **{**ALL, "n": 999})
        both = across_batches([batch, small])
        assert both.protects == ONE_USER_REPLACED
        assert both.epsilon == pytest.approx(1.0 + batch.epsilon, rel=1e-12)
        assert any("fewer than 1000" in note for note in both.assumes)

    def test_local_ones_alone_stay_local(self):
        small = amplify(LOCAL, **{**ALL, "n": 999})
        assert across_batches([small, small]) == compose([small, small])
        assert across_batches([small, small]).protects == ONE_PROFILE

    def test_one_that_promises_nothing_spoils_them_all(self):
        assert across_batches([amplify(LOCAL, **ALL), nothing(ONE_PROFILE, "greedy")]).promises_nothing
