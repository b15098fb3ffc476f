"""A whole batch in one process: exact counts and money, the law of the choices, and what is claimed for it."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tacit.device.private_selection import probabilities
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_PROFILE, ONE_USER_REPLACED, ShuffleCondition, shuffle
from tacit.ledger import Settlement
from tacit.mechanisms import ReplayedNoise
from tacit.messages.private_selection import Candidate, Policy, Rule
from tacit.server import BlindTokens, Listings, PlainTokens, PrivateSelection
from tacit.server.private_selection import View
from tacit.shuffler import Shuffler
from tacit.systems import private_selection as system

VIEW = View(
    Policy(Rule.RR, 3, 1.0), (Candidate("a", 3.0), Candidate("b", 2.0), Candidate("c", 1.0)), (1_000_000, 700_001, 3)
)


def scores(n: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).random((n, 3))


def test_a_batch_of_blind_reports_is_counted_exactly_and_amplified(tmp_path: Path):
    outcome = system.simulate_shuffled(VIEW, scores(1200), tmp_path, BlindTokens())
    (group,) = outcome.settled
    assert (group.settlement, group.counted, group.refused, outcome.accepted) == (Settlement.OK, 1200, 0, 1200)
    assert sum(total.impressions for total in outcome.totals) == 1200
    prices = dict(zip(VIEW.items, VIEW.prices, strict=True))
    assert all(total.micros == total.impressions * prices[total.item] for total in outcome.totals)
    assert outcome.guarantee.epsilon == shuffle(1.0, 1200, 1e-6, "blanket", 3)
    assert (outcome.guarantee.delta, outcome.guarantee.protects) == (1e-6, ONE_USER_REPLACED)


def test_with_plain_tokens_the_local_epsilon_stands(tmp_path: Path):
    outcome = system.simulate_shuffled(VIEW, scores(1200), tmp_path, PlainTokens())
    assert (outcome.guarantee.epsilon, outcome.guarantee.delta) == (1.0, 0.0)
    assert outcome.guarantee.protects == ONE_PROFILE
    assert "not amplified: UNLINKABLE_TOKENS not stated" in outcome.guarantee.assumes


def test_devices_without_consent_or_budget_are_billed_and_hide_nobody(tmp_path: Path):
    personal = np.arange(1500) % 3 > 0
    outcome = system.simulate_shuffled(VIEW, scores(1500), tmp_path, BlindTokens(), personal=personal)
    by_rule = {group.policy.rule: group.counted for group in outcome.settled}
    assert by_rule == {Rule.RR: 1000, Rule.PUBLIC: 500}
    assert outcome.guarantee.epsilon == shuffle(1.0, 1000, 1e-6, "blanket", 3)
    assert min(one.epsilon for one in outcome.guarantees) == 0.0
    assert sum(total.impressions for total in outcome.totals) == 1500


def test_the_server_cannot_recognise_an_offer_in_what_the_shuffler_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """All that it has seen of each device, against all that comes back: no text of 16 digits is in both."""
    seen, released = set(), []
    issue, passed_on = BlindTokens.issue, Shuffler.pass_on

    def watched(self, scope, request):
        answer = issue(self, scope, request)
        whole = (request.token, request.blinded, answer.evaluated)
        seen.update(text[start : start + 16] for text in whole for start in range(len(text) - 15))
        return answer

    def caught(self, batch):
        found = passed_on(self, batch)
        released.extend(found)
        return found

    monkeypatch.setattr(BlindTokens, "issue", watched)
    monkeypatch.setattr(Shuffler, "pass_on", caught)
    system.simulate_shuffled(VIEW, scores(60), tmp_path, BlindTokens())
    tokens = [token for batch in released for token, _ in batch.reports]
    assert len(tokens) == 60
    assert tokens == sorted(tokens)
    assert not {token[start : start + 16] for token in tokens for start in range(len(token) - 15)} & seen


def test_the_choices_follow_the_law_of_the_policy(tmp_path: Path):
    """Every device has the same scores: the counts are multinomial, here within five standard deviations."""
    row = np.array([0.1, 0.9, 0.4])
    n = 3000
    outcome = system.simulate_shuffled(VIEW, np.tile(row, (n, 1)), tmp_path, PlainTokens(), noise=ReplayedNoise(11))
    law = probabilities(VIEW.policy, row, [3.0, 2.0, 1.0])
    counts = Counter({total.item: total.impressions for total in outcome.totals})
    for item, chance in zip(VIEW.items, law, strict=True):
        assert abs(counts[item] - n * chance) < 5 * np.sqrt(n * chance * (1 - chance))


def test_replayed_noise_promises_nothing(tmp_path: Path):
    outcome = system.simulate_shuffled(VIEW, scores(30), tmp_path, BlindTokens(), noise=ReplayedNoise(1), n_min=10)
    assert outcome.guarantee.promises_nothing


def test_a_missing_statement_leaves_the_local_epsilon(tmp_path: Path):
    stated = [ShuffleCondition.ONE_REPORT_EACH]
    outcome = system.simulate_shuffled(VIEW, scores(50), tmp_path, BlindTokens(), stated=stated, n_min=10, delta=1e-3)
    assert (outcome.guarantee.epsilon, outcome.guarantee.delta) == (1.0, 0.0)


def test_the_view_of_a_server_goes_straight_into_a_batch(tmp_path: Path):
    listings = Listings(["a", "b", "c"], [2_000_000, 1_500_000, 4_000_000], [50_000, 80_000, 20_000])
    shop = PrivateSelection(
        listings, tmp_path / "shop.db", policy="rr", epsilon=2.0, gamma=1.0, rng=np.random.default_rng(1)
    )
    view = shop.view()
    assert view is not None
    outcome = system.simulate_shuffled(view, scores(40), tmp_path, BlindTokens(), n_min=10, delta=1e-3)
    assert outcome.settled[0].counted == 40
    assert outcome.guarantee.epsilon == shuffle(2.0, 40, 1e-3, "blanket", 3)


def test_the_shape_of_the_scores_is_checked(tmp_path: Path):
    with pytest.raises(InvalidParameter, match="column for each candidate"):
        system.simulate_shuffled(VIEW, scores(4)[:, :2], tmp_path, PlainTokens())
    with pytest.raises(InvalidParameter, match="one truth value"):
        system.simulate_shuffled(VIEW, scores(4), tmp_path, PlainTokens(), personal=[True])
