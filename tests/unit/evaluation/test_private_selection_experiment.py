"""The evaluation of private selection as a whole, and claims that figures decide either way."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import UnknownName
from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part
from tacit.evaluation.private_selection import DATA, bandits, evaluate, paper, reference, synthetic
from tacit.evaluation.private_selection.automatic import automatic
from tacit.evaluation.private_selection.cutoff import cutoff
from tacit.evaluation.private_selection.mixing import mixing
from tacit.evaluation.private_selection.pricing import pricing
from tacit.evaluation.private_selection.single import single
from tacit.evaluation.private_selection.sweep import sweep
from tacit.evaluation.private_selection.worlds import World, simulated
from tacit.evaluation.result import Result


@pytest.fixture(scope="module")
def display() -> World:
    return simulated("display", 3000, rng=np.random.default_rng([1, 20, 0]))


@pytest.fixture(scope="module")
def result() -> Result:
    return evaluate("search", Effort.QUICK, seed=2)


def holds(part: Part, words: str) -> bool:
    (claim,) = [claim for claim in part.claims if words in claim.claim]
    return claim.holds


def test_a_run_has_figures_beside_the_references_and_survives_json(result: Result) -> None:
    ours = result.find("CTR lift", "rr", world="search", epsilon=5.0)
    given = result.find("CTR lift", reference.PREFIX + "rr", world="search", epsilon=5.0)
    assert ours is not None
    assert given is not None
    assert ours.stderr is not None
    assert abs(ours.value - given.value) < 0.015 + 3 * ours.stderr
    assert result.find("mean candidates", "paper:display") is not None
    back = Result.from_json(json.loads(json.dumps(result.to_json(), allow_nan=False)))
    assert back == result
    assert {claim.paper for claim in result.claims} == {paper.NAME, paper.OURS, reference.NAME}
    assert result.guarantees["selection, epsilon=1"].epsilon == 1.0


def test_equal_seeds_give_equal_figures(result: Result) -> None:
    again = evaluate("search", "quick", seed=2)
    assert again.rows == result.rows
    assert again.claims == result.claims


def test_unknown_data_is_refused_with_the_names_that_are_known() -> None:
    with pytest.raises(UnknownName, match="trained"):
        evaluate("taobao")
    assert DATA[-1] == "all"


def test_the_main_findings_in_display(display: World) -> None:
    part = sweep(display, Effort.QUICK)
    assert holds(part, "at epsilon 5 rr has more CTR than noisy max")
    assert holds(part, "can have more CTR than rr")
    assert holds(part, "pf clipped 0.5 ends below")
    assert holds(part, "near the private optimum")
    assert not holds(
        part, "raises CTR, surplus and revenue"
    )  # revenue falls: the private winner often has a low public rank
    assert holds(cutoff(display), "has its optimum between gamma 0 and 1")
    assert holds(mixing(display, Effort.QUICK), "the more candidates")


def test_less_informed_prices_bring_more_per_click_and_less_per_impression(display: World) -> None:
    part = pricing(display, rng=np.random.default_rng(1))
    assert holds(part, "paying per click")
    assert not holds(part, "paying per impression")
    assert holds(part, "biased upward")


def test_where_private_data_tells_nothing_claims_of_gain_fail(display: World) -> None:
    blind = replace(display, private=display.public)
    part = sweep(blind, Effort.QUICK)
    assert not holds(part, "raises CTR, surplus and revenue")
    assert not holds(part, "pf clipped 2 ends below")
    assert holds(part, "no mechanism has a higher CTR")
    assert not holds(pricing(blind, rng=np.random.default_rng(1)), "paying per click")


def test_claims_of_auto_fail_if_it_is_handed_wrong_public_scores(display: World) -> None:
    fine = automatic(display, Effort.QUICK)
    statement = "click score: auto is not behind the public choice at any epsilon"
    assert holds(fine, statement)
    assert holds(fine, "click score: auto is ahead of plain rr")
    # public scores that say the contrary of what private ones do: what is publicly best is mostly bad
    wrong = automatic(
        replace(display, private=np.where(display.mask, 0.2 - np.minimum(display.public, 0.19), 0.0)), Effort.QUICK
    )
    assert not holds(wrong, "click score: auto is ahead of plain rr")


def test_six_auctions_are_chosen_by_rule(display: World) -> None:
    part = single(display)
    kinds = {(row.setting["candidates"], row.setting["auction"]) for row in part.rows}
    assert len(kinds) == 6
    for size, kind in kinds:
        at = {"world": "display", "candidates": size, "auction": kind}
        found = {row.method: row.value for row in part.rows if row.setting == at}
        assert (found["greedy"] == found["public"]) == (kind == "no gap")
        best = [row.value for row in part.rows if row.method == "rr" and row.setting == {**at, "epsilon": 10.0}]
        assert best[0] <= found["greedy"]
    assert holds(part, "of 10 or more, clipped noisy max is ahead of rr at epsilon 0.5")


def test_synthetic_scores_agree_with_the_references_and_with_the_closed_form() -> None:
    part = synthetic.run(Effort.QUICK, seed=1)
    assert holds(part, "expected scores agree")
    # rr on k uniform scores: [k/2 + (e^eps - 1) k/(k+1)] / (e^eps + k - 1)
    rise = np.expm1(3.0)
    exact = (7.5 + rise * 15 / 16) / (rise + 15)
    (row,) = [
        row for row in part.rows
        if (row.method, row.metric) == ("rr", synthetic.METRIC)
        and row.setting == {"scores": "uniform", "k": 15, "epsilon": 3.0}
    ]  # fmt: skip
    assert row.stderr is not None
    assert abs(row.value - exact) < 4 * row.stderr


def test_learning_pays_and_noise_costs() -> None:
    def reached(epsilon: float) -> float:
        return float(np.mean([bandits._reached("mean", epsilon, np.random.default_rng(seed)) for seed in range(6)]))

    blind, private, free = reached(1e-6), reached(5.0), reached(np.inf)
    assert blind < 0.5 < private
    assert private < free + 0.1
    assert free < 1.0
