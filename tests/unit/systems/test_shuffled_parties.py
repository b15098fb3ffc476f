"""Real devices, the shuffler and the server, over one batch: what each of them keeps, sends again and counts."""

import json
from pathlib import Path

import pytest

from tacit.device import Device
from tacit.device.catalogue import blind
from tacit.ledger import ImpressionLedger, Settlement
from tacit.messages.private_selection import Candidate, Offer, Policy, Rule
from tacit.server import BlindTokens, ShuffledSelection
from tacit.shuffler import Shuffler
from tests.unit.device.offering import EXPIRES, FAVOURS_LAST, LIKED, PUBLIC, Taste, selecting
from tests.unit.device.small_world import SHOP, Clock

POLICY = Policy(Rule.RR, 4, 1.0)
PRICES = (400, 300, 200, 100)


@pytest.fixture
def parties(tmp_path: Path):
    with (
        ImpressionLedger.create(tmp_path / "server.db", clock=Clock()) as ledger,
        Shuffler(tmp_path / "mail.db") as mail,
    ):
        server = ShuffledSelection(ledger, BlindTokens(), clock=Clock())
        server.open("monday", POLICY, tuple(map(Candidate, LIKED, PUBLIC)), PRICES, EXPIRES)
        yield server, mail, ledger


def token_for(server: ShuffledSelection, offer: Offer) -> str:
    blinded = blind(offer)
    return blinded.finish(server.issue("monday", blinded.request))


def test_every_report_is_counted_once_whatever_is_sent_again(parties, tmp_path: Path):
    server, mail, ledger = parties
    shown = []
    for number in range(8):
        with selecting(tmp_path / f"{number}.db") as device:
            offer = server.offer("monday")
            choice = device.choose(json.dumps(offer.to_json()), token=token_for(server, offer))
            assert choice is not None
            report = device.shuffled_report(choice)
            shown.append(choice.item)
            assert mail.submit(report) is Settlement.OK
            # The answer is lost: the device sends the same again, and is told so.
            (again,) = device.pending_reports()
            assert again == report
            device.settled(again, mail.submit(again))
            assert device.pending_reports() == []
    (batch,) = mail.pass_on("monday")
    assert [server.settle(batch).settlement for _ in range(2)] == ["ok", "duplicate"]
    prices = dict(zip(LIKED, PRICES, strict=True))
    assert sum(total.micros for total in ledger.items()) == sum(prices[item] for item in shown)
    assert {total.item: total.impressions for total in ledger.items()} == {
        item: shown.count(item) for item in set(shown)
    }


def test_a_device_that_crashed_reports_under_the_same_token(parties, tmp_path: Path):
    server, mail, _ = parties
    with selecting(tmp_path / "me.db") as device:
        offer = server.offer("monday")
        first = device.shuffled_report(device.choose(offer, token=token_for(server, offer)))
    with Device(tmp_path / "me.db", SHOP, private_scorer=Taste(FAVOURS_LAST), clock=Clock()) as device:
        assert device.pending_reports() == [first]
    mail.submit(first)
    assert server.settle(mail.pass_on("monday")[0]).counted == 1


def test_without_consent_she_reports_in_the_public_group(parties, tmp_path: Path):
    server, mail, _ = parties
    with selecting(tmp_path / "me.db") as device:
        device.revoke()
        offer = server.offer("monday")
        mail.submit(device.shuffled_report(device.choose(offer, token=token_for(server, offer))))
    settled = server.settle(mail.pass_on("monday")[0])
    assert (settled.policy.rule, settled.counted) == (Rule.PUBLIC, 1)


def test_a_second_offer_of_a_batch_is_not_answered_by_her_own_scores(parties, tmp_path: Path):
    """One report per user and batch, or the bound for it is not true of her: more offers of it are answered publicly."""
    server, _, _ = parties
    with selecting(tmp_path / "me.db") as device:
        rules = []
        for _ in range(3):
            offer = server.offer("monday")
            choice = device.choose(offer, token=token_for(server, offer))
            assert choice is not None
            rules.append(choice.policy.rule)
    assert rules == [Rule.RR, Rule.PUBLIC, Rule.PUBLIC]
