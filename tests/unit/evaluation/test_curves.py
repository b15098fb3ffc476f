"""Every system's figures in one shape: private lines between what learns nothing and what promises nothing."""

import json

import pytest

from tacit.evaluation.cross_domain import names as cross
from tacit.evaluation.cross_domain.curves import curves as cross_domain
from tacit.evaluation.curve import NATS_PER_DISTANCE, Better, Curve, Level, Line, Point, Role
from tacit.evaluation.curve_rows import level as level_from
from tacit.evaluation.curve_rows import line as line_from
from tacit.evaluation.federated_prototypes import names as federated
from tacit.evaluation.federated_prototypes.curves import curves as federated_prototypes
from tacit.evaluation.multi_selection.curves import curves as multi_selection
from tacit.evaluation.private_selection.curves import curves as private_selection
from tacit.evaluation.private_slates.curves import curves as private_slates
from tacit.evaluation.result import Result, Row, sizes
from tests.unit.evaluation.told import result


def of(system: str, *rows: Row) -> Result:
    return Result(system, "small-world", rows, (), {}, 1)


def test_slates_lie_between_chance_and_the_most_liked() -> None:
    (curve,) = private_slates(result())
    assert [(line.method, line.role) for line in curve.lines] == [
        ("tempered slate", Role.DEFAULT), ("natural slate", Role.OTHER),
    ]  # fmt: skip
    assert [point.epsilon for point in curve.default.points] == [0.03, 0.1]
    assert (curve.nothing.value, curve.plain.value, curve.users, curve.items) == (0.07, 1.0, 4832, 3706)
    assert curve.told == Point(0.1, 0.97, 0.002)


def test_multi_selection_is_told_per_unit_of_distance_and_for_five_items() -> None:
    at = {"k": 5, "draws": 25, "local_model": "ridge"}
    (curve,) = multi_selection(
        of(
            "multi-selection",
            *sizes({"look-alikes": 300, "items": 9000}),
            Row("exact", {"eta": 0.1, **at}, "kept", 0.99, 0.001),
            Row("exact", {"eta": 0.2, **at}, "kept", 0.98, 0.001),
            Row("exact", {"eta": 0.1, **at, "k": 2}, "kept", 0.5, 0.001),
            Row("ig-sig", at, "kept", 0.97, 0.002),
        )
    )
    assert [(point.epsilon, point.value) for point in curve.default.points] == [(5.0, 0.98), (10.0, 0.99)]
    assert (curve.measured_in, curve.users) == (NATS_PER_DISTANCE, 300)
    assert curve.share(curve.told.value) == pytest.approx(2 / 3)


def test_private_selection_lies_above_the_public_choice() -> None:
    films = {"data": "ml", "model": "sharp"}
    clicks = {"world": "display", "score": "click"}
    found = list(
        private_selection(
            of(
                "private-selection",
                *sizes({"users": 943, "items": 1682}, data="ml"),
                Row("public", films, "expected rating", 4.2),
                Row("greedy", films, "expected rating", 4.4),
                Row("auto", {**films, "epsilon": 3.0}, "expected rating", 4.3),
                Row("rr", {**clicks, "epsilon": "inf"}, "CTR lift", 0.3),
                Row("rr", {**clicks, "epsilon": 1.0}, "CTR lift", -0.1),
                Row("auto", {**clicks, "epsilon": 1.0}, "CTR lift", 0.05),
            )
        )
    )
    assert [(one.nothing.value, one.told.value, one.plain.value, one.users) for one in found] == [
        (4.2, 4.3, 4.4, 943), (0.0, 0.05, 0.3, None),
    ]  # fmt: skip
    assert [line.role for line in found[1].lines] == [Role.DEFAULT, Role.PUBLISHED]


def test_entities_lie_between_themselves_and_all_rows_in_one_place() -> None:
    at = {"world": federated.HOSPITALS}
    (curve,) = federated_prototypes(
        of(
            "federated-prototypes",
            *sizes({"users": 1300, "items": 250, "entities": 144}, world=federated.HOSPITALS),
            Row(federated.INDIVIDUAL, {**at, "epsilon": "inf"}, "NDCG@20", 0.33),
            Row(federated.CENTRAL, {**at, "epsilon": "inf"}, "NDCG@20", 0.4),
            Row(federated.MOMENTS, {**at, "epsilon": 1.0}, "NDCG@20", 0.37),
        )
    )
    assert (curve.nothing.value, curve.told.value, curve.plain.value, curve.entities) == (0.33, 0.37, 0.4, 144)


def test_errors_across_domains_are_better_where_they_are_lower() -> None:
    at = {"world": "films"}
    (curve,) = cross_domain(
        of(
            "cross-domain",
            Row(cross.OWN_MEAN, {**at, "epsilon": "inf"}, "MAE", 0.8),
            Row(cross.NX, {**at, "epsilon": "inf"}, "MAE", 0.7),
            Row(cross.NX_SOURCE, {**at, "epsilon": "inf"}, "MAE", 0.72),
            Row(cross.B3, {**at, "epsilon": 2.0}, "MAE", 0.75),
            Row(cross.B3, {**at, "epsilon": "inf"}, "MAE", 0.69),
        )
    )
    assert curve.better is Better.LOWER
    assert curve.plain.value == 0.7
    assert curve.default.points == (Point(2.0, 0.75),)
    assert curve.share(0.75) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "curves", [private_slates, multi_selection, private_selection, federated_prototypes, cross_domain]
)
def test_a_result_without_the_rows_has_no_curve(curves) -> None:  # type: ignore[no-untyped-def]
    assert list(curves(of("any"))) == []


def test_a_curve_survives_json() -> None:
    (curve,) = private_slates(result())
    assert Curve.from_json(json.loads(json.dumps(curve.to_json()))) == curve


def test_the_closest_epsilon_is_by_ratio() -> None:
    line = Line("m", Role.DEFAULT, (Point(0.1, 1.0), Point(1.0, 2.0), Point(10.0, 3.0)))
    assert [line.at(epsilon).epsilon for epsilon in (0.01, 0.3, 0.4, 4.0, 99.0)] == [0.1, 0.1, 1.0, 10.0, 10.0]


@pytest.mark.parametrize(
    ("better", "nothing", "plain", "value", "share"),
    [
        (Better.HIGHER, 1.0, 1.0, 1.0, None),  # no way
        (Better.HIGHER, 0.9, 0.8, 0.7, None),  # what promises nothing is worse than what asks nobody
        (Better.LOWER, 0.8, 0.85, 0.9, None),
        (Better.LOWER, 0.8, 0.6, 0.7, 0.5),
        (Better.HIGHER, 0.6, 0.8, 0.5, -0.5),
    ],
)
def test_there_is_a_share_only_of_a_way_to_something_better(
    better: Better, nothing: float, plain: float, value: float, share: float | None
) -> None:
    line = Line("m", Role.DEFAULT, (Point(1.0, value),))
    found = Curve("s", "w", "m", "u", better, (line,), Level("p", plain), Level("n", nothing), 1.0).share(value)
    assert found == (None if share is None else pytest.approx(share))


def test_what_was_spent_is_never_more_than_was_asked_for_unless_all_was() -> None:
    line = Line("m", Role.DEFAULT, (Point(1.0, 2.0), Point(4.0, 3.0)))
    assert [[point.epsilon for point in line.within(epsilon)] for epsilon in (0.5, 1.0, 3.9, 4.0)] == [
        [1.0], [1.0], [1.0], [1.0, 4.0],
    ]  # fmt: skip


def test_only_rows_with_exactly_the_setting_are_taken() -> None:
    rows = (
        Row("m", {"epsilon": 1.0}, "x", 1.0), Row("m", {"epsilon": 1.0, "copies": 10}, "x", 2.0),
        Row("m", {"epsilon": 2.0, "copies": 10}, "x", 3.0),
    )  # fmt: skip
    found = line_from(of("any", *rows), "x", "m")
    assert found is not None
    assert found.points == (Point(1.0, 1.0),)
    backwards = of("any", *reversed(rows))
    assert level_from(backwards, "x", "m") == Level("m", 1.0)


def test_multi_selection_is_told_at_the_most_draws() -> None:
    few, many = ({"k": 5, "draws": draws, "local_model": "ridge"} for draws in (5, 25))
    (curve,) = multi_selection(
        of(
            "multi-selection",
            Row("ig-sig", few, "kept", 0.1), Row("ig-sig", many, "kept", 0.2),
            Row("exact", {"eta": 0.1, **few}, "kept", 0.3), Row("exact", {"eta": 0.1, **many}, "kept", 0.4),
        )
    )  # fmt: skip
    assert (curve.nothing.value, curve.told.value) == (0.2, 0.4)
