"""The audit of replacements: every published shortcut is caught, at the loss that its arithmetic gives."""

import math

import numpy as np
import pytest

from tacit.audit import AuditReport, By, exact, suite
from tacit.audit.cases import x_map
from tacit.audit.twins.x_map import CandidatesFromRecords, PrintedRate, PrintedScale, RedrawnReplacement, SignedScores
from tacit.mechanisms import PrivateReplacement

REAL = PrivateReplacement(3, 1, 1.0)


@pytest.fixture(scope="module")
def report() -> AuditReport:
    return suite.run(["private-replacement"], by=[By.EXACT])


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("candidates-with-a-similarity", math.inf),
        ("candidates-of-the-largest-similarities", math.inf),
        ("replacement-at-the-full-rate", 2.5 + math.log((1.0 + 14.0 * math.exp(2.5)) / (math.exp(2.5) + 14.0))),
        ("signed-scores-at-half-their-range", 1.0 + math.log((1.0 + 7.0 * math.e) / (math.e + 7.0))),
        ("redrawn-replacement", 2.5 + 2.0 * math.log((1.0 + 14.0 * math.exp(1.25)) / (math.exp(1.25) + 14.0))),
        ("draws-charged-as-one", 1.5),
        ("printed-scale-one-item-only", 0.4 * (2.0 / 3.0) * math.sqrt(17.0)),
        ("printed-scale-negative-products", 0.64),
        ("printed-scale-dropped-term", 0.950589),
        ("printed-scale-without-absolute-values", math.inf),
        ("printed-scale-of-each-database", math.inf),
        ("rate-by-the-printed-sensitivity", 18.4883),
    ],
)
def test_every_twin_loses_what_its_fault_costs(report: AuditReport, name: str, loss: float) -> None:
    twin = next(twin for twin in report.twins if twin.name == name)
    assert twin.caught
    assert twin.finding.loss == pytest.approx(loss, rel=1e-5)


def test_every_claim_holds_and_is_explained(report: AuditReport) -> None:
    assert len(report.mechanisms) >= 6
    assert all(finding.holds and finding.explained for finding in report.mechanisms)


@pytest.mark.parametrize(("output", "loss"), [(1.0, 3.39), (0.7265, 8.50), (2.0, 33.1), (10.0, 325.0)])
def test_the_loss_at_the_printed_scales_grows_with_the_output(output: float, loss: float) -> None:
    twin = PrintedScale("twin")
    with_her, without = x_map._with("dropped-term")
    assert twin.law(without)[1] == pytest.approx(0.025)
    assert twin.law(with_her)[1] == pytest.approx(0.2877, abs=5e-5)
    assert twin.loss_at(output, with_her, without) == pytest.approx(loss, rel=2e-3)


def test_the_rival_is_all_but_impossible_without_one_user() -> None:
    with_her, without = x_map.rivals()
    twin = PrintedRate()
    assert twin.pmf(without)[1] == pytest.approx(2.06e-9, rel=1e-2)
    assert twin.pmf(with_her)[1] == pytest.approx(0.2205, abs=5e-5)


def test_a_scale_that_both_databases_share_and_that_covers_the_change_is_sound() -> None:
    users = [(1.0, 1.0), (-1.0, -1.0), (1.0, 1.0)]
    twin = PrintedScale("twin", generous=True)
    assert twin.loss(users, users[:2]) == 0.0  # all agree, with or without her
    assert twin.loss([*users, (0.1, -0.1)], users) > 0.0


def test_twins_of_replacement_are_laws_and_broken_only_where_they_say() -> None:
    scores = np.array([[0.0, 0.5, 1.0]])
    np.testing.assert_allclose(SignedScores(REAL).pmf(scores), REAL.pmf(scores), rtol=1e-9)
    halved = PrivateReplacement(3, 1, 0.5)  # the published rate is half as large, for twice the range
    np.testing.assert_allclose(CandidatesFromRecords(REAL).pmf(scores), halved.pmf(scores), rtol=1e-6)
    assert CandidatesFromRecords(REAL, kept=1).pmf(scores).tolist() == [0.0, 0.0, 1.0]
    assert RedrawnReplacement(REAL).pmf(scores).sum() == pytest.approx(1.0)
    for twin in (SignedScores(REAL), CandidatesFromRecords(REAL), RedrawnReplacement(REAL)):
        assert twin.guarantee == REAL.guarantee


def test_the_binomial_formula_agrees_with_enumeration() -> None:
    heads = 1.0 / (1.0 + math.exp(-0.4))
    law = np.array([heads, 1.0 - heads])
    joint = [np.kron(np.kron(coin, coin), coin) for coin in (law, law[::-1])]
    assert x_map.coins_epsilon(3, 0.4, 0.05) == pytest.approx(exact.epsilon_at(joint, 0.05), abs=1e-9)
