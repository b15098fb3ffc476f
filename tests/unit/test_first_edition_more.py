"""Rarer ledgers of version 0.1.0: with lanes, of older schemas, failed draws, charges that promise nothing, lost devices."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit import Budget, Curator, Device, Store
from tacit.data import load_ratings
from tacit.device import Limits, Overall
from tacit.errors import Conflict
from tacit.guarantees import ONE_USER, Guarantee, pure
from tacit.ledger import Head, ImpressionLedger, Offered, PrivacyLedger, check, export, month, open_store, recompute
from tests.unit.cli.called import Command
from tests.unit.curator.slates_world import CountedNoise
from tests.unit.first_edition import At, recorded, require_settled, unpacked, unsynced

__all__ = ["unsynced"]

SAID = recorded("more.json")
LEDGERS = sorted(SAID["ledgers"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return unpacked("more", tmp_path)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    return unpacked("stores", tmp_path / "inputs")


@pytest.fixture
def tacit(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capfd)


def never() -> bytes:
    raise AssertionError("something was drawn that had been kept")


def digests(ledger: PrivacyLedger, names: list[str]) -> dict[str, str]:
    return {name: sha256(json.dumps(ledger.statement(name).to_json()).encode()).hexdigest() for name in names}


# --- several lanes, and earlier schemas


@pytest.mark.parametrize("name", LEDGERS)
def test_ledgers_with_lanes_and_of_earlier_schemas_say_the_same(folder: Path, name: str) -> None:
    said, clock = SAID["ledgers"][name], At(*SAID["at"])
    head = Head.from_json(said["head"])
    lanes, schema = {"lanes.db": (4, "3"), "version-1.db": (2, "1"), "version-2.db": (1, "2")}[name]
    assert {len(tips) for tips in head.books.values()} == {lanes}
    with closing(sqlite3.connect(folder / name)) as database:
        assert database.execute("SELECT value FROM facts WHERE name = 'version'").fetchone() == (schema,)
    with PrivacyLedger.open(folder / name, head=head, clock=clock) as ledger:
        assert ledger.head() == head
        assert sorted(ledger.subjects()) == sorted(said["names"])
        assert digests(ledger, said["names"]) == said["digests"]
        assert {one: ledger.statement(one).to_json() for one in said["statements"]} == said["statements"]
        for subject, (guarantee, content) in said["kept"].items():
            assert ledger.release(subject, "kept", Guarantee.from_json(guarantee), never).hex() == content
        assert digests(ledger, said["names"]) == said["digests"]
        with ImpressionLedger.beside(ledger) as shop:
            assert [one.to_json() for one in shop.items()] == said["items"]
            assert shop.statement(*month(2026, 4)).to_json() == said["month"]
    assert check(folder / name, head=head).to_json() == said["checked"]


@pytest.mark.parametrize("name", LEDGERS)
def test_they_are_charged_and_appended_to(folder: Path, name: str, tacit: Command) -> None:
    said, clock = SAID["ledgers"][name], At(*SAID["at"])
    with PrivacyLedger.open(folder / name, clock=clock) as ledger, ImpressionLedger.open(folder / name) as shop:
        before = {one: ledger.statement(one).charges for one in said["names"]}
        for subject in said["names"]:
            ledger.charge(subject, "more", pure(0.125, ONE_USER))
        with pytest.raises(Conflict):
            ledger.charge(said["names"][0], "c0", pure(0.125, ONE_USER))  # an id that was used for something else
        assert {one: ledger.statement(one).charges for one in said["names"]} == {
            one: charges + 1 for one, charges in before.items()
        }
        known = sum(one["impressions"] for one in said["items"])
        assert not any(shop.report(f"id-{place}", "aé3"[place % 3], 10 * place).fresh for place in range(12) if known)
        assert all(shop.report(f"new-{place}", "a", 1).fresh for place in range(8))
        shop.offer(Offered("new", (("a", 5), ("b", 7)), "", 4_000_000_000))
        assert shop.settle("new", ("b",)).value == "ok"
        assert sum(one.impressions for one in shop.items()) == known + 9
        assert shop.balanced()
    assert check(folder / name, head=Head.from_json(said["head"])).sound
    done = tacit("ledger", "check", folder / name)
    assert done.returncode == 0, done.stdout


def test_offers_batches_and_clicks_of_several_lanes_are_known(folder: Path) -> None:
    said = SAID["ledgers"]["lanes.db"]
    with ImpressionLedger.open(folder / "lanes.db", clock=At(*SAID["at"])) as shop:
        require_settled(shop, said)
    assert check(folder / "lanes.db").sound


def test_an_export_of_several_lanes_says_the_same(folder: Path) -> None:
    written, text = (folder / "lanes.jsonl").read_text(encoding="utf-8"), StringIO()
    store = open_store(folder / "lanes.db")
    export(store, text)
    store.close()
    assert text.getvalue() == written
    found, said = recompute(written.splitlines()), SAID["ledgers"]["lanes.db"]
    assert found.findings.sound
    for subject, statement in said["statements"].items():
        assert found.statement(subject, At(*SAID["at"])()).to_json() == statement


# --- curators: draws that failed, and charges that promise nothing


def test_an_id_whose_draw_failed_stays_used_up(folder: Path, inputs: Path) -> None:
    said, ratings = SAID["curator"], load_ratings(inputs / "data" / "ratings.parquet")
    noise, head = CountedNoise(), Head.from_json(said["head"])
    terms: dict[str, Any] = {"budget": Budget(20, 1e-5), "unprotected": ["published"]}  # as they were agreed
    with Curator(
        ratings, ledger=folder / "used-up.db", head=head, noise=noise, clock=At(*said["at"]), **terms
    ) as curator:
        failed: list[Callable[[], object]] = [
            lambda: curator.slate(3, 0.2, request_id="monday"),
            lambda: curator.popularity(0.3, request_id="december"),
            lambda: curator.popularity(0.3),
        ]
        for ask in failed:
            with pytest.raises(Conflict, match="used up"):
                ask()
        with pytest.raises(Conflict, match="of another kind"):
            curator.slate(2, 0.2, request_id="monday")
        published = curator.slate(3, 0.4, request_id="as published", route="published")
        assert (published.to_json(), curator.sent_again) == (said["published"], True)
        assert (noise.draws, curator.statement().to_json()) == (0, said["statement"])
        curator.slate(3, 0.2, request_id="tuesday")
        assert noise.draws > 0
        curator.slate(3, 0.4, request_id="as published, too", route="published")
        after = curator.statement()
        assert (after.charges, after.spent.unprotected) == (said["statement"]["charges"] + 2, 2)
    assert check(folder / "used-up.db", head=head).sound


@pytest.mark.filterwarnings("ignore")
def test_charges_of_modes_that_promise_nothing_are_known(folder: Path, inputs: Path) -> None:
    said = SAID["transfers"]
    source, target = (load_ratings(inputs / "data" / f"{name}.parquet") for name in ("source", "target"))
    noise, head = CountedNoise(), Head.from_json(said["head"])
    terms: dict[str, Any] = {"budget": Budget(4, 1e-5), "unprotected": ["published", "nx"], "noise": noise}
    with Curator(source, target, folder / "unprotected.db", head=head, clock=At(*said["at"]), **terms) as curator:
        assert curator.statement().to_json() == said["statement"]
        for request_id in (None, "r1"):
            again = curator.release(mode="nx", request_id=request_id, least=1)
            assert {str(item): image for item, image in again.replacements.items()} == said["nx"]
        for request_id in (None, "r2"):
            curator.release(mode="published", request_id=request_id, least=1)
        assert curator.statement().to_json() == said["statement"]  # the same ids, the same charges
        draws = noise.draws
        with pytest.raises(Conflict, match="used up"):
            curator.release(1.0, 1e-6, least=1, request_id="r3")
        assert noise.draws == draws
        curator.release(mode="nx", request_id="r4", least=1)
        after = curator.statement()
        before = said["statement"]
        assert (after.charges, after.spent.unprotected) == (before["charges"] + 1, before["spent"]["unprotected"] + 1)
    assert check(folder / "unprotected.db", head=head).sound


# --- devices that were lost, or choose without noise


@pytest.fixture
def opened(folder: Path, inputs: Path) -> Iterator[Callable[..., Device]]:
    store, devices = Store.load(inputs / "factors.tacit"), []

    def open_device(name: str, at: list[int], **more: Any) -> Device:
        devices.append(
            Device(
                folder / name,
                store,
                scorer=store.scorer,
                private_scorer=lambda features, items: np.arange(len(items), dtype=float),
                clock=At(*at),
                **more,
            )
        )
        return devices[-1]

    yield open_device
    for device in devices:
        device.close()


def test_a_reinstalled_device_is_silent_until_its_periods_are_over(folder: Path, opened: Callable[..., Device]) -> None:
    said, at = SAID["devices"]["reinstalled.db"], SAID["devices"]["at"]
    terms: dict[str, Any] = {
        "budget": Budget(30, per="month"),
        "refresh": "month",
        "per_period": 2,
        "limits": Limits(budget=Budget(5, per="day", sliding=True)),
        "overall": Overall(2.0, Budget(300, per="day")),
    }
    for again in (False, True):
        device = opened("reinstalled.db", at, reinstalled=again, **terms)
        assert device.ask(0.5).to_bytes().hex() == said["signal"]
        choice = device.choose(said["offer"], "shop")
        assert choice is not None
        assert [list(choice.items), choice.policy.rule.value] == [said["chosen"][0], "public"]
        assert device.statement().to_json() == said["statement"]
        assert device.statement("shop").to_json() == said["shop"]
        assert device.statement(overall=True).to_json() == said["overall"]
        device.close()
        if not again:
            later = opened("reinstalled.db", [2026, 11, 20, 10, 1], **terms)
            silent = later.choose({**said["offer"], "token": "0a" * 16}, "shop")
            assert silent is not None
            assert silent.policy.rule.value == "public"
            later.close()
    later = opened("reinstalled.db", [2026, 12, 3, 10], **terms)
    later.rate({1: 5.0})
    assert later.ask(0.5).to_bytes().hex() != said["signal"]
    choice = later.choose(said["later"], "shop")
    assert choice is not None
    assert choice.policy.rule.value == "rr"
    charges = [later.statement().charges, later.statement("shop").charges, later.statement(overall=True).charges]
    before = [said[name]["charges"] for name in ("statement", "shop", "overall")]
    assert charges == [before[0] + 1, before[1] + 1, before[2] + 2]
    later.close()
    assert check(folder / "reinstalled.db").sound


def test_with_a_budget_for_a_lifetime_it_is_silent_for_ever(folder: Path, opened: Callable[..., Device]) -> None:
    said = SAID["devices"]["reinstalled-for-ever.db"]
    with opened("reinstalled-for-ever.db", SAID["devices"]["at"], budget=Budget(30)) as device:
        assert device.statement().to_json() == said["statement"]
    with opened("reinstalled-for-ever.db", [2036, 1, 1], budget=Budget(30)) as device:
        assert device.ask(0.5).to_bytes().hex() == said["signal"]
        assert device.statement().charges == said["statement"]["charges"]
    assert check(folder / "reinstalled-for-ever.db").sound


def test_a_device_that_chose_without_noise_still_says_so(folder: Path, opened: Callable[..., Device]) -> None:
    said, at = SAID["devices"]["greedy.db"], SAID["devices"]["at"]
    limits = Limits(non_private=True, lifetime=50.0, budget=Budget(5, per="day"))
    terms: dict[str, Any] = {"budget": Budget(30, per="month"), "overall": Overall(2.0, Budget(300, per="day"))}
    with pytest.raises(Conflict):
        opened("greedy.db", at, limits=Limits(lifetime=50.0, budget=Budget(5, per="day")), **terms)
    with opened("greedy.db", at, limits=limits, **terms) as device:
        assert device.ask(0.5).to_bytes().hex() == said["signal"]
        chosen = [device.choose(offer, "shop") for offer in said["offers"]]
        assert [list(one.items) for one in chosen if one is not None] == said["chosen"]
        assert device.statement().to_json() == said["statement"]
        assert device.statement("shop").to_json() == said["shop"]
        assert device.statement(overall=True).to_json() == said["overall"]
    with opened("greedy.db", [2026, 12, 3, 10], limits=limits, **terms) as device:
        choice = device.choose(said["later"], "shop")
        assert choice is not None
        assert (choice.policy.rule.value, choice.items) == ("greedy", ("7",))
        for statement, name in ((device.statement("shop"), "shop"), (device.statement(overall=True), "overall")):
            assert statement.spent.unprotected == said[name]["spent"]["unprotected"] + 1 == 2
    assert check(folder / "greedy.db").sound
