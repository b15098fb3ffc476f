"""What a guarantee accepts, how it is printed, and what may be read back."""

import json
import math

import numpy as np
import pytest

from tacit.errors import InvalidGuarantee
from tacit.guarantees import (
    ONE_PROFILE,
    ONE_USER,
    Guarantee,
    Loss,
    LossKind,
    Neighbours,
    Relation,
    Unit,
    approximate,
    metric,
    pure,
    tight,
)


class TestPrinting:
    def test_costs_are_printed_rounded_up(self):
        assert str(pure(1.0000004, ONE_USER)).startswith("epsilon = 1.00001;")
        assert ", delta = 1.01e-06;" in str(approximate(0.1, 1.0049e-6, ONE_USER))

    def test_short_costs_are_printed_as_they_are(self):
        assert str(pure(1.0, ONE_USER)).startswith("epsilon = 1;")
        assert str(approximate(0.5, 1e-6, ONE_USER)).startswith("epsilon = 0.5, delta = 1e-06;")

    def test_the_rounding_of_a_metric_guarantee_is_printed(self):
        assert str(metric(10.0, rounding=38 * 2.0**-20)).startswith(
            "epsilon = 10 per unit of L1 distance (+ 3.63e-05 rounding);"
        )
        assert "rounding" not in str(metric(10.0))

    def test_the_radius_is_printed_exactly(self):
        assert str(Neighbours.features("L1", 1.0000004)) == "features within L1 distance 1.0000004"
        assert str(Neighbours.features("L1", 0.9999999999)) == "features within L1 distance 0.9999999999"
        assert str(Neighbours.features("L1", 4.0)) == "features within L1 distance 4"


class TestNumbers:
    @pytest.mark.parametrize("number", [np.float32(0.5), np.float64(0.5), np.float16(0.5)])
    def test_numpy_numbers_become_plain_ones(self, number):
        for built in (
            pure(number, ONE_USER),
            approximate(number, number, ONE_USER),
            metric(number, rounding=number),
            pure(number, Neighbours.features("L1", number)),
        ):
            numbers = [built.epsilon, built.delta, built.rounding, *([built.loss.value] if built.loss else [])]
            assert {type(one) for one in numbers} == {float}
            assert Guarantee.from_json(json.loads(json.dumps(built.to_json()))) == built

    def test_whole_numbers_become_floats_and_group_sizes_ints(self):
        assert type(pure(np.int64(2), ONE_USER).epsilon) is float
        assert type(pure(2, ONE_USER).epsilon) is float
        assert type(Neighbours(Unit.USER_ROWS, Relation.REPLACE, group=np.int8(3)).group) is int

    @pytest.mark.parametrize(
        "bad", [True, np.True_, "1", None, math.nan, -1.0, pytest.param(10**400, id="huge"), np.ones(1)]
    )
    def test_what_is_no_number_is_refused(self, bad):
        for build in (
            lambda: pure(bad, ONE_USER),
            lambda: Guarantee(bad, ONE_USER),
            lambda: approximate(1.0, bad, ONE_USER),
            lambda: Guarantee(1.0, ONE_USER, delta=bad),
            lambda: metric(1.0, rounding=bad),
            lambda: Loss(LossKind.PURE, bad),
        ):
            with pytest.raises(InvalidGuarantee):
                build()

    @pytest.mark.parametrize("bad", [True, np.True_, "1", None, 1.0, 0, np.ones(1)])
    def test_a_group_is_a_whole_number(self, bad):
        with pytest.raises(InvalidGuarantee, match="group"):
            Neighbours(Unit.USER_ROWS, Relation.REPLACE, group=bad)

    @pytest.mark.parametrize("bad", [True, "1", math.nan, math.inf, 0.0, pytest.param(10**400, id="huge")])
    def test_a_radius_is_a_finite_number(self, bad):
        with pytest.raises(InvalidGuarantee, match="radius"):
            Neighbours.features("L1", bad)

    def test_kinds_and_units_are_known_ones(self):
        assert Loss("pure", 1.0) == Loss(LossKind.PURE, 1.0)
        assert Loss("pure", 1.0).kind is LossKind.PURE
        with pytest.raises(InvalidGuarantee, match="`kind` of a loss"):
            Loss("moments", 1.0)
        with pytest.raises(InvalidGuarantee, match="unit"):
            Neighbours("a household", Relation.REPLACE)
        with pytest.raises(InvalidGuarantee, match="distance"):
            Neighbours.features(1)


class TestAssumptions:
    def test_any_collection_of_texts_is_frozen(self):
        assert Guarantee(1.0, ONE_USER, assumes=["a", "b"]).assumes == frozenset({"a", "b"})

    @pytest.mark.parametrize("bad", ["honest server", b"x", None, 1, ["a", 1]])
    def test_anything_else_is_refused(self, bad):
        with pytest.raises(InvalidGuarantee, match="assumes"):
            Guarantee(1.0, ONE_USER, assumes=bad)

    def test_a_proof_is_a_text(self):
        with pytest.raises(InvalidGuarantee, match="proof"):
            Guarantee(1.0, ONE_USER, proof=None)


class TestJson:
    @pytest.mark.parametrize(
        "change",
        [
            {"assumes": "abc"},
            {"assumes": {"abc": 1}},
            {"assumes": [1]},
            {"epsilon": True},
            {"epsilon": "1"},
            pytest.param({"epsilon": 10**400}, id="huge"),
            {"delta": False},
            {"proof": None},
            {"loss": {"kind": "pure", "value": True}},
            {"loss": {"kind": "pure", "value": 0.001}},
            {"loss": {"kind": "moments", "value": 1.0}},
            {"metric": {"distance": "L1", "rounding": 0.0}},
        ],
    )
    def test_what_no_guarantee_wrote_is_refused(self, change):
        with pytest.raises(InvalidGuarantee):
            Guarantee.from_json({**pure(5.0, ONE_USER).to_json(), **change})

    def test_the_distance_is_stated_twice_and_must_agree(self):
        written = metric(5.0, rounding=0.5).to_json()
        assert Guarantee.from_json(written) == metric(5.0, rounding=0.5)
        with pytest.raises(InvalidGuarantee, match="`metric` and `protects` must name the same"):
            Guarantee.from_json({**written, "metric": {"distance": "L2", "rounding": 0.5}})


class TestAgreement:
    @pytest.mark.parametrize(
        ("epsilon", "delta", "kind", "value"),
        [
            (5.0, 0.0, LossKind.PURE, 0.001),
            (5.0, 0.0, LossKind.PURE, 6.0),
            (5.0, 0.0, LossKind.BOUNDED_RANGE, 4.9),
            (1.0, 1e-9, LossKind.PURE, 1.1),
            (1.0, 1e-9, LossKind.BOUNDED_RANGE, 1.1),
        ],
    )
    def test_a_loss_that_contradicts_epsilon_is_refused(self, epsilon, delta, kind, value):
        with pytest.raises(InvalidGuarantee, match="contradicts epsilon"):
            Guarantee(epsilon, ONE_USER, delta=delta, loss=Loss(kind, value))

    @pytest.mark.parametrize(
        ("epsilon", "delta", "kind", "value"),
        [
            (5.0, 0.0, LossKind.PURE, math.nextafter(5.0, 0.0)),
            (5.0, 0.0, LossKind.BOUNDED_RANGE, 5.0),
            (5.0, 0.0, LossKind.BOUNDED_RANGE, 10.0),
            (5.0, 0.0, LossKind.ZCDP, 0.01),
            (1.0, 1e-9, LossKind.PURE, 1.0),
            (1.0, 1e-9, LossKind.PURE, 0.5),
            (0.0, 0.0, LossKind.PURE, 0.0),
        ],
    )
    def test_a_loss_that_agrees_is_kept(self, epsilon, delta, kind, value):
        assert Guarantee(epsilon, ONE_USER, delta=delta, loss=Loss(kind, value)).loss == Loss(kind, value)

    def test_a_distance_has_no_loss(self):
        with pytest.raises(InvalidGuarantee, match="per distance"):
            Guarantee(1.0, Neighbours.features(), per_distance=True, loss=Loss(LossKind.PURE, 1.0))

    def test_ten_of_what_is_read_cost_what_was_written(self):
        read = Guarantee.from_json(json.loads(json.dumps(pure(5.0, ONE_PROFILE).to_json())))
        assert tight([read] * 10, 1e-9, "pld").epsilon > 40.0
