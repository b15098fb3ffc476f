"""Every situation has one answer: a system, its baseline, or an explained none; and the figures beside it are read with care."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from tacit.errors import InvalidData, InvalidParameter
from tacit.evaluation.advice import Holder, Situation, System, Verdict, Wants, Worth, advise, decide, measured
from tacit.evaluation.advice.gather import gathered, main
from tacit.evaluation.advice.measured import Measured, curves_in, curves_of
from tacit.evaluation.curve import NATS_PER_DISTANCE, Better, Curve, Level, Line, Point, Role


def curve(
    system: System, *, users: int | None = 6000, items: int | None = 4000, world: str = "made up", **other: object
) -> Curve:
    """Utility that grows from nothing (0) to everything (1) with epsilon."""
    points = tuple(Point(epsilon, value, 0.001) for epsilon, value in ((0.1, 0.02), (0.3, 0.2), (1.0, 0.5), (3.0, 0.9)))
    lines = (
        Line("default", Role.DEFAULT, points),
        Line("noisy counts", Role.OTHER, points),
        Line("noise per entity", Role.OTHER, points),
    )
    found = Curve(
        system, world, "utility", "shares", Better.HIGHER, lines, Level("plain", 1.0), Level("nothing", 0.0), told_at=1.0,
        users=users, items=items,
    )  # fmt: skip
    return replace(found, **other)  # type: ignore[arg-type]


CURVES = [curve(system) for system in System]

CANONICAL = {  # the table of the README
    System.MULTI_SELECTION: Situation(holder=Holder.DEVICE, epsilon=10, users=5000, items=4000, releases=30),
    System.PRIVATE_SELECTION: Situation(
        holder=Holder.DEVICE, epsilon=10, users=5000, items=1000, releases=10, server_sees_choice=True
    ),
    System.FEDERATED_PROTOTYPES: Situation(holder=Holder.ENTITY, entities=144, epsilon=1, users=1400, items=250),
    System.CROSS_DOMAIN: Situation(holder=Holder.CURATOR, epsilon=2, users=6000, items=3000, two_domains=True),
    System.PRIVATE_SLATES: Situation(holder=Holder.CURATOR, epsilon=1, users=6000, items=4000, wants=Wants.SLATE),
}  # fmt: skip


def grid() -> list[Situation]:
    """Every answer to every question, with sizes at their ends."""
    found = []
    sizes = [(1, 1, 1, 1e-9), (1, 2, 1, 0.5), (50, 12, 3, 1e4), (5000, 4000, 400, 1.0), (10**9, 10**6, 1, 8.0)]
    for holder, sees, two, wants, (users, items, releases, epsilon), delta in product(
        Holder, (False, True), (False, True), Wants, sizes, (0.0, 1e-6)
    ):
        entities = min(users, 5) if holder is Holder.ENTITY else None
        found.append(
            Situation(
                holder=holder, epsilon=epsilon, users=users, items=items, releases=releases, server_sees_choice=sees,
                two_domains=two, wants=wants, entities=entities, delta=delta,
            )
        )  # fmt: skip
    return found


@pytest.mark.parametrize(("system", "at"), CANONICAL.items())
def test_the_five_situations_of_the_readme_have_the_five_systems(system: System, at: Situation) -> None:
    found = advise(at, CURVES)
    assert found.system is system
    assert found.guarantee is not None
    assert found.mode
    assert found.python
    assert set(found.rejected) == set(System) - {system}


def test_every_situation_has_one_answer_that_keeps_to_its_budget() -> None:
    seen = set()
    for at in grid():
        found = advise(at, CURVES)
        seen.add((found.system, found.verdict))
        assert found.system is decide(at).system
        assert found.why
        if found.system is None:
            assert found.verdict is Verdict.NONE
            assert found.guarantee is None
            assert not found.commands
            assert set(found.rejected) == set(System)
            continue
        assert found.baseline
        assert found.guarantee is not None
        assert found.each is not None
        assert found.each.epsilon <= found.guarantee.epsilon <= at.epsilon * (1 + 1e-12)
        assert found.guarantee.delta <= at.delta
        assert found.each.protects == found.guarantee.protects
        if not found.mode:
            assert found.verdict is Verdict.BASELINE
            assert found.guarantee.epsilon == 0.0
            assert found.warnings
    assert {system for system, _ in seen} == {*System, None}
    assert {verdict for _, verdict in seen} == set(Verdict)


@pytest.mark.parametrize("system", [one for one in System if one is not System.PRIVATE_SLATES])
def test_more_releases_never_leave_more_to_each(system: System) -> None:
    found = [advise(replace(CANONICAL[system], releases=n), CURVES).each for n in (1, 2, 3, 10, 11, 100)]
    epsilons = [one.epsilon for one in found if one is not None]
    assert epsilons == sorted(epsilons, reverse=True)
    assert (epsilons[-1] < epsilons[0]) == (system is not System.MULTI_SELECTION)  # whose one signal is sent again


def test_many_slates_are_made_from_counts_that_are_released_once() -> None:
    few, many = (advise(replace(CANONICAL[System.PRIVATE_SLATES], releases=n), CURVES) for n in (3, 10_000))
    assert few.mode.startswith("tempered")
    assert few.each is not None
    assert few.each.epsilon < 0.6
    assert many.mode.startswith("counts")
    assert many.each == many.guarantee
    drawn = [advise(replace(CANONICAL[System.PRIVATE_SLATES], releases=n), CURVES) for n in (1, 2, 4, 8, 16, 32)]
    epsilons = [one.each.epsilon for one in drawn if one.each is not None and one.mode.startswith("tempered")]
    assert len(epsilons) > 3
    assert epsilons == sorted(epsilons, reverse=True)


@pytest.mark.parametrize("system", System)
def test_more_users_never_lower_what_is_expected(system: System) -> None:
    at = replace(CANONICAL[system], epsilon=10.0 if system is System.PRIVATE_SELECTION else 1.0)
    worths = []
    for users in (200, 400, 600, 2000, 6000, 10**6):
        found = advise(replace(at, users=users), CURVES).expected
        assert found is not None
        worths.append(found.worth)
    assert worths == sorted(worths)
    if system not in (System.MULTI_SELECTION, System.PRIVATE_SELECTION):  # which do not hide in sums over users
        assert worths[0] is Worth.NOTHING
        assert worths[-1] is Worth.SOME


def test_fewer_users_are_read_at_a_smaller_epsilon_and_that_is_said() -> None:
    found = advise(replace(CANONICAL[System.PRIVATE_SLATES], users=500), CURVES)
    assert found.expected is not None
    assert found.expected.read_at == pytest.approx(500 / 6000)
    assert found.expected.private.epsilon == 0.1
    assert any(
        "500 users are 12 times fewer than the evaluated 6,000: expect less" in note for note in found.expected.notes
    )
    assert found.verdict is Verdict.BASELINE
    assert "do without" in found.to_json()["verdict"]


def test_more_users_than_were_evaluated_are_not_counted_on() -> None:
    found = advise(replace(CANONICAL[System.PRIVATE_SLATES], users=60_000_000), CURVES)
    assert found.expected is not None
    assert found.expected.read_at == 1.0
    assert any("not counted on" in note for note in found.expected.notes)


def test_an_epsilon_far_below_what_was_tried_is_worth_nothing() -> None:
    found = advise(replace(CANONICAL[System.PRIVATE_SLATES], epsilon=0.01), [curve(System.PRIVATE_SLATES, users=None)])
    assert found.expected is not None
    assert found.expected.worth is Worth.NOTHING
    assert any("smallest epsilon that was tried is 0.1" in note for note in found.expected.notes)


def test_the_closest_evaluation_is_taken() -> None:
    worlds = [curve(System.CROSS_DOMAIN, users=users, items=items, world=f"{users} {items}") for users, items in
              ((100, 3000), (5000, 3000), (5000, 100_000), (10**6, 3000))]  # fmt: skip
    found = advise(CANONICAL[System.CROSS_DOMAIN], [curve(System.PRIVATE_SLATES), *worlds])
    assert found.expected is not None
    assert found.expected.curve.world == "5000 3000"


def test_where_less_did_better_that_is_the_figure() -> None:
    wavy = (Point(0.1, 0.5), Point(1.0, 0.3))
    one = curve(System.PRIVATE_SLATES, lines=(Line("default", Role.DEFAULT, wavy),))
    found = advise(CANONICAL[System.PRIVATE_SLATES], [one])
    assert found.expected is not None
    assert found.expected.private == wavy[0]


def test_a_lower_error_is_better_where_the_metric_says_so() -> None:
    errors = (Line("default", Role.DEFAULT, (Point(1.0, 0.75, 0.001),)),)
    one = curve(
        System.CROSS_DOMAIN, better=Better.LOWER, lines=errors, plain=Level("all", 0.7), nothing=Level("none", 0.8)
    )
    found = advise(CANONICAL[System.CROSS_DOMAIN], [one])
    assert found.expected is not None
    assert found.expected.share == pytest.approx(0.5)
    assert found.verdict is Verdict.USE


def test_a_gain_within_its_error_is_told() -> None:
    vague = (Line("default", Role.DEFAULT, (Point(1.0, 0.5, 0.4),)),)
    found = advise(CANONICAL[System.PRIVATE_SLATES], [curve(System.PRIVATE_SLATES, lines=vague)])
    assert found.expected is not None
    assert any("two standard errors" in note for note in found.expected.notes)


def test_without_an_evaluation_that_is_said_and_nothing_is_invented() -> None:
    found = advise(CANONICAL[System.CROSS_DOMAIN], [])
    assert found.expected is None
    assert found.verdict is Verdict.USE
    assert any("No evaluation" in line for line in found.warnings)


def test_a_metric_epsilon_is_also_told_for_any_two_users() -> None:
    found = advise(CANONICAL[System.MULTI_SELECTION], [])
    assert found.guarantee is not None
    assert found.guarantee.per_distance
    told = next(line for line in found.warnings if "any two users" in line)
    assert "it is 320 with the 16 factors that the command fits" in told
    assert "40 where features are made of genres" in told
    assert "ask with 0.3125 or 2.5" in told


def test_a_run_that_cannot_tell_anybody_anything_is_not_advised() -> None:
    found = advise(Situation(holder=Holder.ENTITY, entities=3, epsilon=0.1, users=30, items=4000), [])
    assert found.verdict is Verdict.BASELINE
    assert any("no information" in line for line in found.warnings)


@pytest.mark.parametrize(
    "wrong",
    [
        {"holder": "cloud"}, {"epsilon": 0.0}, {"epsilon": float("nan")}, {"epsilon": float("inf")}, {"users": 0}, {"items": 0},
        {"releases": 0}, {"releases": 1.5}, {"delta": 1.0}, {"delta": -0.1}, {"wants": "all"}, {"two_domains": 1},
        {"server_sees_choice": None}, {"entities": 3}, {"holder": "entity"}, {"holder": "entity", "entities": 0},
        {"holder": "entity", "entities": 20, "users": 19}, {"holder": "entity", "entities": 10_001, "users": 10**6},
    ],
)  # fmt: skip
def test_a_situation_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    usual: dict[str, object] = {"holder": "curator", "epsilon": 1.0, "users": 100, "items": 100}
    with pytest.raises(InvalidParameter, match=r"must|belongs"):
        Situation(**(usual | wrong))  # type: ignore[arg-type]


def test_the_figures_of_the_package_are_curves_of_the_systems_that_are_here() -> None:
    found = measured()
    assert found.command
    assert found.date
    assert found.versions["tacit"]
    assert isinstance(found.seed, int)
    assert {one.system for one in found.curves} <= set(System)
    assert found.curves
    assert curves_of(found.to_json()) == found.curves
    assert all(one.measured_in == NATS_PER_DISTANCE for one in found.curves if one.system == System.MULTI_SELECTION)


@pytest.mark.parametrize("content", [{}, [], None, {"curves": 3}, {"curves": [{}]}, {"curves": ["x"]}])
def test_a_report_without_curves_is_refused(content: object) -> None:
    with pytest.raises(InvalidData, match="curves"):
        curves_of(content)


def test_figures_are_gathered_from_results_of_one_seed_only(tmp_path: Path) -> None:
    one = curve(System.CROSS_DOMAIN)
    report = {
        "curves": [one.to_json()], "seed": 1, "versions": {"numpy": "2"}, "command": "tacit report", "made": "2026-11-18 05:00 UTC",
    }  # fmt: skip
    made = gathered([report, {**report, "versions": {"tacit": "0"}}])
    assert made == Measured("tacit report", "2026-11-18", 1, {"numpy": "2", "tacit": "0"}, (one, one))
    with pytest.raises(InvalidData, match="one seed"):
        gathered([report, {**report, "seed": 2}])
    (tmp_path / "report.json").write_text(json.dumps(report))
    main([str(tmp_path / "report.json"), "--out", str(tmp_path / "measured.json")])
    assert curves_in(tmp_path / "measured.json") == (one,)


def test_results_without_their_command_are_refused() -> None:
    result = {
        "system": "cross-domain",
        "data": "none",
        "rows": [],
        "claims": [],
        "guarantees": {},
        "seed": 1,
        "versions": {},
        "notes": [],
    }
    assert gathered([result], "tacit evaluate cross-domain").curves == ()
    with pytest.raises(InvalidData, match="which command"):
        gathered([result])


def test_an_epsilon_that_hardly_promises_anything_is_called_so() -> None:
    found = [advise(replace(CANONICAL[System.PRIVATE_SLATES], epsilon=epsilon), []) for epsilon in (1.0, 30.0)]
    assert [any("hardly a promise" in line for line in one.warnings) for one in found] == [False, True]


def test_too_many_releases_are_told_in_the_words_of_the_system() -> None:
    found = advise(replace(CANONICAL[System.CROSS_DOMAIN], releases=10**12), CURVES)
    assert found.headline == "Do without. cross-domain would fit, but nothing can be released."
    assert "1,000,000,000,000 releases have no share in epsilon 2" in found.warnings[0]


def test_a_figure_of_a_larger_epsilon_than_asked_for_is_not_shown() -> None:
    at = replace(CANONICAL[System.PRIVATE_SLATES], epsilon=2.9)
    found = advise(at, CURVES).expected
    assert found is not None
    assert found.private.epsilon == 1.0  # 3 was tried, and is closer


def test_an_epsilon_below_all_that_were_tried_is_said() -> None:
    at = replace(CANONICAL[System.PRIVATE_SLATES], epsilon=0.09)
    found = advise(at, CURVES).expected
    assert found is not None
    assert found.private.epsilon == 0.1
    assert any("The smallest epsilon that was tried is 0.1" in note for note in found.notes)


@pytest.mark.parametrize("better", Better)
def test_what_is_worse_than_asking_nobody_is_never_advised(better: Better) -> None:
    """Also where what promises nothing is worse still."""
    sign = 1.0 if better is Better.HIGHER else -1.0
    points = tuple(Point(epsilon, 2.0 - sign * 0.2, 0.001) for epsilon in (0.1, 0.3, 1.0))
    worse = curve(
        System.PRIVATE_SLATES, better=better, lines=(Line("default", Role.DEFAULT, points),), nothing=Level("nothing", 2.0),
        plain=Level("plain", 2.0 - sign * 0.1),
    )  # fmt: skip
    found = advise(CANONICAL[System.PRIVATE_SLATES], [worse])
    assert found.verdict is Verdict.BASELINE
    assert found.expected is not None
    assert found.expected.share is None


def test_several_models_are_promised_together_and_not_one_by_one() -> None:
    found = advise(replace(CANONICAL[System.CROSS_DOMAIN], releases=4), CURVES)
    assert found.each is not None
    assert found.guarantee is not None
    assert found.each.epsilon < found.guarantee.epsilon <= 2.0


@pytest.mark.parametrize("at", grid(), ids=lambda at: f"{at.holder}-{at.wants}-{at.users}-{at.releases}-{at.delta:g}")
def test_a_curator_is_never_told_to_publish_a_model_that_promises_nothing(at: Situation) -> None:
    """`tacit fit` stores the features of real users: for a curator who promises her users an epsilon that is none."""
    found = advise(at, CURVES)
    if at.holder is not Holder.DEVICE:
        assert [line for line in found.commands if "tacit fit" in line] == []


def test_a_gain_that_does_not_stand_out_is_not_worth_an_epsilon() -> None:
    points = tuple(Point(epsilon, 0.4, 0.2) for epsilon in (0.1, 1.0))
    noisy = curve(
        System.PRIVATE_SLATES, lines=(Line("default", Role.DEFAULT, points),), nothing=Level("nothing", 0.0, 0.2)
    )
    found = advise(CANONICAL[System.PRIVATE_SLATES], [noisy])
    assert found.verdict is Verdict.BASELINE
    sure = tuple(replace(point, stderr=0.001) for point in points)
    shown = replace(noisy, nothing=Level("nothing", 0.0, 0.001), lines=(Line("default", Role.DEFAULT, sure),))
    assert advise(CANONICAL[System.PRIVATE_SLATES], [shown]).verdict is Verdict.USE
