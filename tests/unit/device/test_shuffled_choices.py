"""Choices that are reported through a shuffler."""

import dataclasses
import json
from pathlib import Path

import pytest

from tacit.device import Limits
from tacit.errors import InvalidParameter
from tacit.ledger import Budget
from tacit.messages.private_selection import BatchTerms, Rule
from tests.unit.device.choices import chosen
from tests.unit.device.offering import FAVOURS_LAST, RR, Taste, offered, selecting

# --- shuffled reports


TERMS = BatchTerms("monday", (40, 30, 20, 10), "ab" * 32)
BLIND, OTHER = "5e" * 48, "6f" * 48


def test_a_shuffled_report_names_item_group_and_its_own_token_and_nothing_of_the_offer(place: Path) -> None:
    with selecting(place) as device:
        offer = offered(batch=TERMS)
        choice = device.choose(offer, token=BLIND)
        assert choice is not None
        with pytest.raises(InvalidParameter, match="shuffled"):
            device.shown(choice)
        report = device.shuffled_report(choice)
        assert report.to_json() == {
            "version": 1,
            "batch": "monday",
            "group": offer.group_under(RR),
            "item": choice.item,
            "token": BLIND,
        }
        assert offer.token not in json.dumps(report.to_json())
        assert device.pending() == []  # never with the offer's token
        assert device.pending_reports() == [report]
    with selecting(place) as device:
        assert device.pending_reports() == [report]  # also after a crash
        assert device.shuffled_report(device.choose(offer), OTHER) == report  # type: ignore[arg-type]
        device.settled(report, "ok")
        assert device.pending_reports() == []


def test_the_token_given_with_the_choice_stands_before_any_other(place: Path) -> None:
    offer = offered(batch=TERMS)
    with selecting(place) as device:
        choice = device.choose(offer, token=BLIND)
        assert choice is not None
        assert device.shuffled_report(choice, OTHER).token == BLIND
    with selecting(place) as device:
        assert device.shuffled_report(choice, OTHER).token == BLIND
        again = device.choose(offer, token=OTHER)
        assert again is not None
        assert again.report_token == BLIND


def test_a_report_token_that_comes_late_stands_as_long_as_the_device_runs(place: Path) -> None:
    with selecting(place) as device:
        choice = chosen(device, batch=TERMS)
        assert device.pending_reports() == []
        with pytest.raises(InvalidParameter, match="token"):
            device.shuffled_report(choice)
        report = device.shuffled_report(choice, BLIND)
        assert device.shuffled_report(choice, OTHER) == report
        assert device.pending_reports() == [report]
        assert device.shuffled_report(chosen(device, 2, batch=TERMS), OTHER).token == OTHER
        device.settled(report, "duplicate")
        assert [one.token for one in device.pending_reports()] == [OTHER]


def test_whoever_is_out_of_budget_reports_in_the_group_of_the_public_policy(place: Path) -> None:
    offers = [offered(number, batch=dataclasses.replace(TERMS, id=f"day {number}")) for number in range(4)]
    with selecting(place, limits=Limits(budget=Budget(2))) as device:
        choices = [device.choose(offer) for offer in offers]
    applied = [RR, RR, RR.without_cost(), RR.without_cost()]
    assert [one.policy for one in choices if one is not None] == applied
    groups = [offer.group_under(policy) for offer, policy in zip(offers, applied, strict=True)]
    assert [one.group for one in choices if one is not None] == groups
    assert len(set(groups)) == 4


def test_of_one_batch_one_report_is_randomised_and_the_others_are_public(place: Path) -> None:
    """The bound for shuffled reports is for one report of each user."""
    taste = Taste(FAVOURS_LAST)
    with selecting(place, private_scorer=taste) as device:
        assert [chosen(device, number, batch=TERMS).policy.rule.value for number in range(3)] == [
            "rr",
            "public",
            "public",
        ]
        assert (len(taste.asked), device.statement("server").charges) == (1, 1)
    with selecting(place, private_scorer=taste) as device:
        assert chosen(device, 9, batch=TERMS).policy.rule is Rule.PUBLIC
        assert chosen(device, 10, batch=dataclasses.replace(TERMS, id="tuesday")).policy.rule is Rule.RR
        assert chosen(device, 11).policy.rule is Rule.RR


def test_an_offer_that_is_not_of_a_batch_has_no_shuffled_report(place: Path) -> None:
    with selecting(place) as device:
        choice = chosen(device)
        assert (choice.batch, choice.group) == (None, None)
        with pytest.raises(InvalidParameter):
            device.shuffled_report(choice, BLIND)
