"""Many equal items: closed forms against enumeration, against the laws, and against figures found independently."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tacit.evaluation.effort import Effort
from tacit.evaluation.private_selection import many_equal, selection_laws
from tacit.evaluation.private_selection.envelope_optimum import best_envelope
from tacit.evaluation.private_selection.further_reference import agreement
from tacit.evaluation.private_selection.many_equal import (
    METRIC,
    best_d,
    flip_of_bernoulli,
    largest_of_bernoulli,
    largest_of_uniform,
    response_values,
)
from tacit.evaluation.result import Row


def vectors(k: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    draws = np.array(list(product([0.0, 1.0], repeat=k)))
    ones = draws.sum(axis=1)
    return draws, share**ones * (1.0 - share) ** (k - ones)


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_bernoulli_by_enumeration(share: float) -> None:
    draws, weights = vectors(7, share)
    for epsilon in (0.5, 3.0):
        expected = [weights @ (selection_laws.response(draws, epsilon, d) * draws).sum(axis=1) for d in range(1, 8)]
        np.testing.assert_allclose(response_values(largest_of_bernoulli(7, share), epsilon), expected, atol=1e-12)
        flipped = selection_laws.permute_and_flip(selection_laws.scaled(draws), epsilon / 2.0)
        assert flip_of_bernoulli(7, share, epsilon) == pytest.approx(weights @ (flipped * draws).sum(axis=1), abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_best_d_is_the_best_of_all_private_rules(epsilon: float) -> None:
    draws, weights = vectors(7, 0.2)
    assert best_envelope(draws, epsilon, weights).value == pytest.approx(
        best_d(largest_of_bernoulli(7, 0.2), epsilon).value, rel=1e-7
    )


def test_uniform_scores_by_drawing() -> None:
    falling = -np.sort(-np.random.default_rng(1).random((20_000, 9)), axis=1)
    np.testing.assert_allclose(largest_of_uniform(9), np.cumsum(falling, axis=1).mean(axis=0), atol=0.02)
    assert largest_of_uniform(9)[0] == pytest.approx(0.9)
    assert largest_of_uniform(9)[-1] == pytest.approx(4.5)


def test_all_of_them_is_the_plain_mean() -> None:
    assert response_values(largest_of_bernoulli(20, 0.1), 3.0)[-1] == pytest.approx(0.1)


def test_the_figures_are_those_found_independently() -> None:
    # The independent figures are means over 100 drawn score sets; their error is about .003.
    part = many_equal.run(Effort.QUICK, seed=0)
    found = {
        (row.method, row.setting["scores"], row.setting["k"], row.setting["epsilon"]): row
        for row in part.rows
        if row.metric == METRIC
    }
    expected = {
        ("Bernoulli(0.1)", 100, 3.0): (0.245, 0.334, 0.615),
        ("uniform", 100, 3.0): (0.579, 0.623, 0.813),
    }
    for key, values in expected.items():
        for method, value in zip(("rr", "pf", "rr, best d"), values, strict=True):
            assert found[method, *key].value == pytest.approx(value, abs=0.004)
    # rr and pf, uniform scores of 15 items, and Bernoulli(.9) of 100.
    assert found["rr", "uniform", 15, 1.0].value == pytest.approx(0.545, abs=5e-4)
    assert found["pf", "uniform", 15, 1.0].value == pytest.approx(0.546, abs=0.007)
    assert found["rr", "uniform", 15, 3.0].value == pytest.approx(0.746, abs=2e-3)
    assert found["pf", "uniform", 15, 3.0].value == pytest.approx(0.635, abs=0.007)
    assert found["rr", "Bernoulli(0.9)", 100, 3.0].value == pytest.approx(0.915, abs=2e-3)
    assert found["pf", "Bernoulli(0.9)", 100, 3.0].value == pytest.approx(0.976, abs=1e-3)


def test_the_run_repeats_itself_and_its_claim_holds() -> None:
    one, other = many_equal.run(Effort.QUICK, seed=3), many_equal.run(Effort.QUICK, seed=3)
    assert one == other
    assert many_equal.run(Effort.QUICK, seed=4).rows != one.rows
    assert [claim.holds for claim in one.claims] == [True, True]
    drawn = [row for row in one.rows if row.stderr is not None]
    assert {(row.method, row.setting["scores"]) for row in drawn} == {("pf", "uniform")}


def test_agreement_is_asked_of_every_reference_figure() -> None:
    setting, other = {"scores": "a", "epsilon": 1.0}, {"scores": "b", "epsilon": 1.0}
    ours = [Row("rr", setting, METRIC, 0.5), Row("rr", other, METRIC, 0.5), Row("rr", other, "else", 9.0)]
    near = [Row("reference:rr", setting, METRIC, 0.52), Row("reference:rr", other, METRIC, 0.49)]
    assert agreement("x", ours + near, METRIC, 0.03).holds
    for place in (0, 1):  # either of them alone is enough to disagree
        far = [replace(row, value=0.6) if one == place else row for one, row in enumerate(near)]
        assert not agreement("x", ours + far, METRIC, 0.03).holds
    assert not agreement("x", ours, METRIC, 0.03).holds  # nothing to agree with
