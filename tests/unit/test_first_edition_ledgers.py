"""Ledgers that version 0.1.0 wrote: sound, with the same figures; what was released is the same again, and costs nothing."""

import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from tacit import Budget, Curator, Device, Store
from tacit.curator import PrivateLookAlikes
from tacit.data import load_ratings
from tacit.device import Limits, Overall
from tacit.errors import BudgetExhausted, Conflict, LedgerBehind
from tacit.guarantees import Guarantee
from tacit.ledger import (
    DisplayLedger,
    Head,
    ImpressionLedger,
    MailLedger,
    PrivacyLedger,
    check,
    export,
    month,
    open_store,
    recompute,
)
from tacit.server import BlindTokens, Listings, OnDisk, PlainTokens, PrivateSelection, ShuffledSelection
from tacit.shuffler import Shuffler
from tests.releases import message_of
from tests.unit.first_edition import At, IssuedToken, TokenRequest, cd, ms, ps, recorded, sl, unpacked, unsynced

__all__ = ["unsynced"]

SAID = recorded("ledgers.json")
LEDGERS = sorted(SAID["checked"])
DECEMBER = month(2026, 12)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return unpacked("ledgers", tmp_path)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    return unpacked("stores", tmp_path / "inputs")


def nothing_is_drawn() -> NoReturn:
    raise AssertionError("something was drawn that had been kept")


def test_every_ledger_is_sound_and_holds_what_it_held(folder: Path) -> None:
    assert sorted(file.name for file in folder.glob("*.db")) == LEDGERS
    for name in LEDGERS:
        found = check(folder / name)
        assert found.to_json() == SAID["checked"][name]
        assert found.sound


@pytest.mark.parametrize("name", [name for name in LEDGERS if "head" in SAID[name.removesuffix(".db")]])
def test_a_head_that_was_noted_is_still_in_its_ledger(folder: Path, name: str) -> None:
    head = Head.from_json(SAID[name.removesuffix(".db")]["head"])
    assert check(folder / name, head=head).sound
    with PrivacyLedger.open(folder / name, head=head) as ledger:
        assert ledger.head() == head
    book, tips = next((book, tips) for book, tips in head.books.items() if any(position for position, _ in tips))
    later = replace(head, books={**head.books, book: tuple((position + 1, link) for position, link in tips)})
    with pytest.raises(LedgerBehind):
        PrivacyLedger.open(folder / name, head=later)


# --- budgets, charges and kept releases of every kind


@pytest.fixture
def privacy(folder: Path) -> Iterator[PrivacyLedger]:
    with PrivacyLedger.open(folder / "privacy.db", clock=At(*SAID["privacy"]["at"])) as ledger:
        yield ledger


def test_statements_of_all_kinds_of_accounting_are_the_same(privacy: PrivacyLedger) -> None:
    said = SAID["privacy"]
    assert list(privacy.subjects()) == said["subjects"]
    assert {subject: privacy.statement(subject).to_json() for subject in said["subjects"]} == said["statements"]
    assert {one["terms"]["accounting"] for one in said["statements"].values()} == {"basic", "zcdp", "pld"}


def test_a_kept_release_is_the_same_bytes_again_for_the_same_charge(privacy: PrivacyLedger) -> None:
    said = SAID["privacy"]
    for subject, releases in said["releases"].items():
        for release_id, (guarantee, content) in releases.items():
            again = privacy.release(subject, release_id, Guarantee.from_json(guarantee), nothing_is_drawn)
            assert again.hex() == content
        assert {one.release_id: one.content.hex() for one in privacy.stored(subject)} == {
            release_id: content for release_id, (_, content) in releases.items()
        }
    assert {subject: privacy.statement(subject).to_json() for subject in said["subjects"]} == said["statements"]


def test_what_did_not_fit_does_not_fit_and_what_fits_is_charged(privacy: PrivacyLedger, folder: Path) -> None:
    too_much = Guarantee.from_json(SAID["privacy"]["refused"])
    with pytest.raises(BudgetExhausted):
        privacy.charge("ward 7, é", "too much", too_much)
    with pytest.raises(Conflict):
        privacy.charge("ward 7, é", "mean-2026-02", too_much)  # an id that was used with another guarantee
    before = SAID["privacy"]["statements"]["twin 2"]["charges"]
    privacy.charge("twin 2", "new", replace(too_much, protects=privacy.terms("twin 2").protects))
    assert privacy.statement("twin 2").charges == before + 1
    assert check(folder / "privacy.db").sound


def test_an_export_says_the_same_and_can_be_recomputed(folder: Path) -> None:
    written = (folder / "privacy.jsonl").read_text(encoding="utf-8")
    store, text = open_store(folder / "privacy.db"), StringIO()
    export(store, text)
    store.close()
    assert text.getvalue() == written
    found, at = recompute(written.splitlines()), At(*SAID["privacy"]["at"])()
    assert found.findings.sound
    for subject, said in SAID["privacy"]["statements"].items():
        assert found.statement(subject, at).to_json() == said


def test_impressions_add_up_to_the_same(folder: Path) -> None:
    said = SAID["impressions"]
    with ImpressionLedger.open(folder / "impressions.db", clock=At(2026, 2, 3, 12)) as ledger:
        assert [one.to_json() for one in ledger.items()] == said["items"]
        assert ledger.statement(*month(2026, 2)).to_json() == said["statement"]
        assert not any(ledger.report(*one).fresh for one in said["reports"])
        assert ledger.report("id-4", "a", 1).fresh
        assert ledger.balanced()


# --- a device


def device(folder: Path, inputs: Path, *moment: int) -> Device:
    store = Store.load(inputs / "factors.tacit")
    return Device(
        folder / "device.db",
        store,
        scorer=store.scorer,
        private_scorer=lambda features, items: np.arange(len(items), dtype=float),
        clock=At(*moment),
        budget=Budget(epsilon=30, per="month"),
        refresh="month",
        per_period=2,
        limits=Limits(
            budget=Budget(5, per="day", sliding=True),
            lifetime=50.0,
            most_epsilon=1.5,
            click_epsilon=0.5,
            click_window=60,
        ),
        overall=Overall(2.0, Budget(300, per="day")),
    )


def test_a_device_answers_with_the_signals_it_has_drawn(folder: Path, inputs: Path) -> None:
    said = SAID["device"]
    with device(folder, inputs, *said["at"]) as opened:
        assert opened.ask(0.5).to_bytes().hex() == said["december"]
        assert opened.statement().to_json() == said["statement"]
    with device(folder, inputs, 2026, 11, 3, 10) as earlier:
        assert earlier.ask(0.5).to_bytes().hex() == said["november"]
        assert earlier.ask("1/4").to_bytes().hex() == said["november, finer"]
        earlier.rate(dict(said["rates"]))
        assert list(earlier.pick(ms.Reply.from_bytes(bytes.fromhex(said["reply"])), 2)) == said["picked"]
    with device(folder, inputs, *said["at"]) as opened:
        assert opened.statement().to_json() == said["statement"]
        opened.ask(1.0)
        assert opened.statement().charges == said["statement"]["charges"] + 1
    assert check(folder / "device.db").sound


def test_a_device_shows_and_reports_what_it_has_chosen(folder: Path, inputs: Path) -> None:
    said = SAID["device"]
    with device(folder, inputs, *said["at"]) as opened:
        for name, one in said["choices"].items():
            choice = opened.choose(one["offer"], "other shop" if name == "elsewhere" else "shop")
            assert choice is not None
            assert (list(choice.items), choice.consented) == (one["items"], one["consented"])
        settled = opened.choose(said["choices"]["settled"]["offer"], "shop")
        assert settled is not None
        for clicked in (True, False):
            engagement = opened.clicked(settled, clicked)
            assert engagement is not None
            assert engagement.to_json() == said["engaged"]
        assert [one.to_json() for one in opened.pending("shop")] == said["pending"]
        reports = sorted((one.to_json() for one in opened.pending_reports("shop")), key=lambda one: str(one["token"]))
        assert reports == said["pending_reports"]
        assert opened.statement("shop").to_json() == said["shop"]
        assert opened.statement("other shop").to_json() == said["other"]
        assert opened.statement(overall=True).to_json() == said["overall"]
        opened.settled(opened.pending("shop")[0], "ok", "shop")
        assert opened.pending("shop") == []
        opened.shown(opened.choose(said["choices"]["chosen"]["offer"], "shop"))  # type: ignore[arg-type]
        assert len(opened.pending("shop")) == 1


def test_consents_stay_given_and_revoked(folder: Path, inputs: Path) -> None:
    said = SAID["device"]
    with device(folder, inputs, *said["at"]) as opened:
        state = opened.consent_state()
        assert [state.granted, str(state.day)] == said["consent"]
    with DisplayLedger.open(folder / "device.db") as displays:
        assert [[one.granted, str(one.day)] for one in displays.consents()] == said["consents"]


def test_a_device_with_other_limits_is_refused(folder: Path, inputs: Path) -> None:
    with pytest.raises(Conflict):
        Device(folder / "device.db", Store.load(inputs / "factors.tacit"), limits=Limits(lifetime=49.0))


# --- a server and a shuffler


@pytest.fixture
def shop(folder: Path) -> Iterator[PrivateSelection]:
    listings = Listings(
        ["3", "10", "é", "b"], [2_000_000, 1_500_000, 1_000_000, 500_000], [40_000, 50_000, 60_000, 70_000]
    )
    with PrivateSelection(
        listings,
        folder / "shop.db",
        epsilon=1.0,
        explore=0.0,
        contexts=("", "sport"),
        click_epsilon=0.5,
        reserve_micros=1000,
        rng=np.random.default_rng(2),
        clock=At(*SAID["device"]["at"]),
    ) as opened:
        yield opened


def test_a_server_bills_what_it_billed_and_settles_what_it_offered(shop: PrivateSelection, folder: Path) -> None:
    said, choices = SAID["shop"], SAID["device"]["choices"]
    assert shop.statement(*DECEMBER).to_json() == said["statement"]
    assert [one.to_json() for one in shop.ledger.items()] == said["items"]
    assert list(shop.ledger.engagements(said["engaged_item"])) == said["clicks"]
    settled = message_of(ps.Impression, choices["settled"]["offer"]["token"], tuple(choices["settled"]["items"]))
    assert shop.bill(settled).value == "duplicate"
    other = next(one["item"] for one in choices["settled"]["offer"]["candidates"] if one["item"] != settled.items[0])
    assert shop.bill(message_of(ps.Impression, settled.token, (other,))).value == "conflict"
    assert shop.engage(ps.Engagement.from_json(SAID["device"]["engaged"])).value == "duplicate"
    assert shop.statement(*DECEMBER).to_json() == said["statement"]
    before = shop.statement(*DECEMBER).micros
    pending = ps.Impression.from_json(SAID["device"]["pending"][0])
    never = ps.Offer.from_json(said["never"])
    assert [shop.bill(one).value for one in (pending, pending)] == ["ok", "duplicate"]
    assert shop.bill(message_of(ps.Impression, never.token, never.items[:1])).value == "ok"
    assert shop.statement(*DECEMBER).micros > before
    assert shop.offer("sport") is not None
    assert shop.ledger.balanced()
    assert check(folder / "shop.db").sound


def test_a_batch_is_opened_again_and_settled_once(shop: PrivateSelection) -> None:
    said, clock = SAID["shop"], At(*SAID["device"]["at"])
    opened = said["opened"]
    view = (ps.Policy.from_json(opened["policy"]), [ps.Candidate.from_json(one) for one in opened["candidates"]])
    tokens = BlindTokens(b"s" * 32, OnDisk(MailLedger.beside(shop.ledger)))
    batches = ShuffledSelection(shop.ledger, tokens, clock=clock)
    offer = batches.open("blind", *view, opened["prices"], opened["expires"])
    assert offer.batch is not None
    assert offer.batch.key == said["key"]
    request = TokenRequest.from_json(said["token"]["request"])
    issued = IssuedToken.from_json(said["token"]["issued"])
    assert batches.issue("blind", request).evaluated[128:] == issued.evaluated[128:]  # its proof is drawn anew
    with pytest.raises(Conflict):
        batches.issue("blind", replace(request, blinded=issued.evaluated[128:]))
    for batch, (_, counted, refused) in zip(said["passed"], said["settled"], strict=True):
        found = batches.settle(ps.Batch.from_json(batch))
        assert (found.settlement.value, found.counted, found.refused) == ("duplicate", counted, refused)
    plain = ShuffledSelection(shop.ledger, PlainTokens(b"p" * 32), clock=clock)
    plain.open("plain", *view, [7, 5, 3], opened["expires"])
    odd = ps.Batch.from_json(said["odd"])
    assert plain.settle(replace(odd, reports=odd.reports[:1])).settlement.value == said["refused"] == "conflict"
    assert shop.ledger.refused("plain", odd.group)
    assert shop.statement(*DECEMBER).to_json() == said["statement"]


def test_a_shuffler_passes_on_what_waits(folder: Path) -> None:
    said = SAID["shuffler"]
    letter = ps.ShuffledReport.from_json(said["letter"])
    with Shuffler(folder / "shuffler.db") as shuffler:
        assert shuffler.submit(letter).value == "duplicate"
        assert (
            shuffler.submit(ps.ShuffledReport.from_json(said["letter"] | {"token": "0a" * 96})).value == "expired"
        )  # its batch is closed
        assert [one.to_json() for one in shuffler.pass_on("blind")] == SAID["shop"]["passed"]
        assert shuffler.pass_on("plain") == []  # forgotten
        waiting = {one.group: [list(report) for report in one.reports] for one in shuffler.pass_on("waiting")}
        assert waiting == said["waiting"]
    assert check(folder / "shuffler.db").sound


# --- curators


def test_a_curator_gives_what_it_gave_for_the_same_id(folder: Path, inputs: Path) -> None:
    said, ratings = SAID["curator"], load_ratings(inputs / "data" / "ratings.parquet")
    slates = {name: sl.Slate.from_json(one) for name, one in said["slates"].items()}
    weights: dict[Any, float] = {int(item): weight for item, weight in said["weights"].items()}
    with Curator(ratings, ledger=folder / "curator.db", subject="people", clock=At(*said["at"])) as curator:
        assert curator.statement().to_json() == said["statement"]
        assert curator.slate(3, 0.2, request_id="monday") == slates["monday"]
        assert curator.sent_again
        assert curator.slate(3, 0.2, request_id="first of december") == slates["first of december"]
        weighed = curator.slate(2, 0.2, request_id="tuesday", request=weights, route="feature")
        assert weighed == slates["tuesday"]
        assert curator.slate(3, 0.3, slates=None) == slates["greedy"]
        assert curator.slate(3, 0.3, slates=None, request_id="seeded") == slates["seeded"]
        assert curator.popularity(0.3).to_json() == said["counts"]
        assert curator.popularity(0.3, request_id="december").to_json() == said["again"]
        assert curator.similarity(0.5, 1e-6, among=said["among"]).to_json() == said["kernel"]
        assert curator.statement().to_json() == said["statement"]
        with pytest.raises(Conflict):
            curator.slate(2, 0.2, request_id="monday")  # the same id for something else
        curator.slate(3, 0.2, request_id="second of december")
        assert curator.statement().charges == said["statement"]["charges"] + 1
    assert check(folder / "curator.db").sound


def test_so_does_a_curator_of_two_domains(folder: Path, inputs: Path) -> None:
    said = SAID["transfers"]
    source, target = (load_ratings(inputs / "data" / f"{name}.parquet") for name in ("source", "target"))
    with Curator(source, target, folder / "transfers.db", clock=At(*said["at"])) as curator:
        assert curator.release(2.0, 1e-6, least=1) == cd.TransferModel.from_json(said["model"])
        assert curator.sent_again
        replaced = curator.release(1.0, 1e-6, mode="prs_valid", request_id="r1")
        assert replaced == cd.Replacements.from_json(said["replacements"])
        assert curator.statement().to_json() == said["statement"]


def test_look_alikes_that_were_released_are_released_again(inputs: Path) -> None:
    said = recorded("stores.json")["look_alikes"]
    store = Store.load(inputs / "factors-private-look-alikes.tacit")
    wish = PrivateLookAlikes(epsilon=2.0, delta=None, count=20, grid_prototypes=2, users=60)
    head = Head.from_json(said["head"])
    with PrivacyLedger.open(inputs / "look-alikes.db", head=head) as ledger:
        again: Any = wish.charged(nothing_is_drawn, store.space, ledger, "users", whose="of at least 4 ratings")
        assert ledger.statement("users").charges == said["charges"] == 1
    assert np.array_equal(again.rows, store.look_alikes)
    assert store.look_alike_sizes is not None
    assert np.array_equal(again.sizes, store.look_alike_sizes)
    assert again.guarantee == store.look_alikes_guarantee


def test_what_is_recorded_is_no_less_than_it_was() -> None:
    assert len(LEDGERS) == 7
    assert len(json.dumps(SAID)) > 30_000
