"""Offers, settlements, batches, displays and mail under kills, races and a full disk: exact, and nothing acknowledged is lost."""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tacit.errors import LedgerUnavailable
from tacit.ledger import DisplayLedger, ImpressionLedger, MailLedger, Settlement
from tacit.ledger.verification import check
from tests.integration import offer_writers as writers
from tests.integration.offer_writers import EACH, EXPIRES, ITEMS, JOBS, SERVER
from tests.integration.racing import raced
from tests.integration.test_faults_disk import _reset_read_only, mounted
from tests.integration.writers import noted

KILLS = 160
PROCESSES, THREADS, IDS = 3, 3, 30


def command(program: str, **arguments: object) -> list[str]:
    return [sys.executable, writers.__file__, program, json.dumps(arguments)]


def run(program: str, **arguments: object) -> list[object]:
    """What a program of ``offer_writers`` printed; it has to end well."""
    done = subprocess.run(command(program, **arguments), capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def require_what_was_noted(target: str, notes: Path) -> None:
    """Everything that was acknowledged is there; whatever a device had billed, it had shown; one draw for each token."""
    lines = noted(notes)
    assert not lines["failed"], lines["failed"][:3]
    with ImpressionLedger.open(target) as shop, DisplayLedger.open(target) as device, MailLedger.open(target) as mail:
        offered = {(int(number), int(place)) for number, place in lines["offered"]}
        settled = {(int(number), int(place)) for number, place in lines["settled"]}
        for number, place in settled:
            outcome = shop.settle(f"t-{number}-{place}", writers.shown_of(number, place))
            assert outcome is Settlement.DUPLICATE, "an impression was acknowledged, and is lost"
        for number, place in offered - settled:
            not_offered = shop.settle(f"t-{number}-{place}", ("quince",))
            assert not_offered is Settlement.CONFLICT, "an offer was acknowledged, and is lost"
        for (number,) in lines["batched"]:
            assert shop.settle_batch(*writers.batch_of(int(number))) is Settlement.DUPLICATE
        for group, item, token in {tuple(line) for line in lines["mailed"]}:
            assert not mail.add("post", group, item, token), "a letter was acknowledged, and is lost"
        shown: dict[str, set[str]] = defaultdict(set)
        for token, item in lines["showed"]:
            shown[token].add(item)
        assert all(len(items) == 1 for items in shown.values()), "two draws were shown for one token"
        for token, item in {tuple(line) for line in lines["reported"]}:
            assert shop.settle(token, (item,)) is Settlement.DUPLICATE
        for token, items in shown.items():
            kept = device.find(SERVER, token)
            assert kept is not None
            assert set(kept.items) == items
        for number in set(range(3, JOBS, 8)) - {int(token.split("-")[1]) for token in shown}:
            # A bit is taken for what was counted, and only for that.
            assert shop.engage(f"t-{number}-0", 1) is Settlement.UNKNOWN, "a charge without a display"
        assert shop.balanced()
    findings = check(target)
    assert findings.sound, findings.to_json()


def test_kills_lose_nothing_that_was_acknowledged_and_resending_reaches_the_exact_sums(
    target: str, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    ImpressionLedger.create(target).close()
    for round_ in range(4):
        (killed,) = run("nursery", target=target, notes=str(notes), kills=KILLS // 4, at_once=3, seed=round_)
        assert killed == KILLS // 4
        require_what_was_noted(target, notes)
    lines = noted(notes)
    assert len(lines["started"]) > KILLS, "the writers were killed before they did anything"
    kinds = ("offered", "settled", "batched", "showed", "reported", "mailed")
    assert min(len(lines[kind]) for kind in kinds) > 5, {kind: len(lines[kind]) for kind in kinds}
    run("do_all", target=target, notes=str(notes))
    run("do_all", target=target, notes=str(notes))
    require_what_was_noted(target, notes)
    wanted: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    charged: list[tuple[str, int]] = []
    shown = dict(noted(notes)["showed"])
    for number in range(JOBS):
        prices = writers.prices_of(number)
        if number % 4 in (0, 1):
            charged += [(item, prices[item]) for place in range(EACH) for item in writers.shown_of(number, place)]
        elif number % 4 == 2:
            charged += [(item, prices[item]) for _, item in writers.batch_of(number)[2]]
        elif number % 8 == 3:
            charged.append((shown[f"t-{number}-0"], prices[shown[f"t-{number}-0"]]))
    for item, micros in charged:
        wanted[item][0] += 1
        wanted[item][1] += micros
    with ImpressionLedger.open(target) as shop:
        assert {one.item: [one.impressions, one.micros] for one in shop.items()} == wanted
        assert shop.balanced()
    with MailLedger.open(target) as mail:
        letters = sum(EACH for number in range(JOBS) if number % 8 == 7)
        assert sum(mail.groups("post").values()) == letters


def race(target: str, tmp_path: Path, kind: str) -> dict[str, list[list[object]]]:
    """For every id, what each thread of each process brought and what it was told."""
    go = tmp_path / "go"
    commands = [
        command("race", target=target, go=str(go), kind=kind, threads=THREADS, ids=IDS, seed=seed)
        for seed in range(PROCESSES)
    ]
    results = raced(commands, go, THREADS)
    found: dict[str, list[list[object]]] = defaultdict(list)
    for result in results:
        for id, outcome in result.items():
            found[id].append(outcome)
    assert len(found) == IDS
    return found


@pytest.mark.parametrize("kind", ["settle", "batch"])
def test_racing_writers_count_each_token_and_each_batch_once(target: str, tmp_path: Path, kind: str) -> None:
    with ImpressionLedger.create(target) as shop:
        shop.offer_many(
            writers.Offered(f"r-{number}", tuple((item, 7) for item in ITEMS), "", EXPIRES) for number in range(IDS)
        )
    wanted: Counter[str] = Counter()
    for outcomes in race(target, tmp_path, kind).values():
        (winner,) = [item for item, outcome in outcomes if outcome == "ok"]
        for item, outcome in outcomes:
            assert outcome in (("ok", "duplicate") if item == winner else ("conflict",))
        wanted[str(winner)] += 1 if kind == "settle" else 3
    with ImpressionLedger.open(target) as shop:
        price = 7 if kind == "settle" else 5
        assert {one.item: one.impressions for one in shop.items()} == wanted
        assert {one.item: one.micros for one in shop.items()} == {item: price * n for item, n in wanted.items()}
        assert shop.balanced()
    assert check(target).sound


def test_racing_offers_of_one_token_keep_one_of_them(target: str, tmp_path: Path) -> None:
    ImpressionLedger.create(target).close()
    for outcomes in race(target, tmp_path, "offer").values():
        kept = {item for item, outcome in outcomes if outcome == "kept"}
        assert len(kept) == 1
        assert {outcome for item, outcome in outcomes if item not in kept} == {"conflict"}
    assert check(target).sound


def test_racing_devices_show_one_choice_and_racing_letters_are_taken_once(target: str, tmp_path: Path) -> None:
    ImpressionLedger.create(target).close()
    for outcomes in race(target, tmp_path, "choose").values():
        assert len({kept for _, kept in outcomes}) == 1
    (tmp_path / "go").unlink()
    for outcomes in race(target, tmp_path, "mail").values():
        assert [taken for _, taken in outcomes].count(True) == 1
    with MailLedger.open(target) as mail:
        assert mail.groups("post") == {"g": IDS}
    assert check(target).sound


@pytest.mark.parametrize("spare", [0, 40_000])
def test_full_disk_refuses_and_loses_nothing_that_was_acknowledged(tmp_path: Path, spare: int) -> None:
    target = str(tmp_path / "ledger.db")
    ImpressionLedger.create(target).close()
    ((made, refused, codes, again, left, last),) = run("meet_a_limit", target=target, spare=spare)
    assert refused == "ledger-unavailable"
    assert codes == ["ledger-unavailable"] * 3
    assert again == ([] if not made else ["duplicate"])
    assert left[:2] == [True, {}]  # nothing of what was refused is there
    assert last == "ok"
    with ImpressionLedger.open(target) as shop:
        assert sum(one.impressions for one in shop.items()) == made + 1
        assert shop.balanced()
    assert check(target).sound


def takes_nothing(target: str) -> None:
    """Every kind of write is refused."""
    with ImpressionLedger.open(target) as shop, DisplayLedger.open(target) as device, MailLedger.open(target) as mail:
        for write in (
            lambda: shop.offer(writers.offer_of(2, 0)),
            lambda: shop.settle("t-0-0", writers.shown_of(0, 0)),
            lambda: shop.settle_batch(*writers.batch_of(2)),
            lambda: device.choose(SERVER, "u", ("pear",), EXPIRES),
            lambda: device.mark_shown(SERVER, "t"),
            lambda: device.consent(True),
            lambda: mail.add("b", "g", "pear", "t"),
            lambda: mail.close_batch("b"),
        ):
            with pytest.raises(LedgerUnavailable):
                write()


def takes_everything_again(target: str) -> None:
    with ImpressionLedger.open(target) as shop, DisplayLedger.open(target) as device, MailLedger.open(target) as mail:
        assert shop.settle("t-0-0", writers.shown_of(0, 0)) is Settlement.OK
        assert shop.settle("t-2-0", writers.shown_of(2, 0)) is Settlement.UNKNOWN
        assert shop.settle_batch(*writers.batch_of(2)) is Settlement.OK
        assert [display.state for display in (device.find(SERVER, "t"), device.mark_shown(SERVER, "t"))] == [0, 1]
        assert device.find(SERVER, "u") is None
        assert device.consents() == []
        assert mail.add("b", "g", "pear", "t")
    assert check(target).sound


def with_something_begun(target: str) -> str:
    with ImpressionLedger.create(target) as shop, DisplayLedger.open(target) as device:
        shop.offer(writers.offer_of(0, 0))
        device.choose(SERVER, "t", ("pear",), EXPIRES)
    return target


def test_place_that_is_mounted_read_only_takes_nothing(tmp_path: Path) -> None:
    folder, view = tmp_path / "folder", tmp_path / "view"
    folder.mkdir()
    target = with_something_begun(str(folder / "ledger.db"))
    with ImpressionLedger.open(target), mounted(view, "--bind", str(folder)):  # whose log a reader needs
        subprocess.run(["mount", "-o", "remount,bind,ro", str(view)], check=True)
        takes_nothing(str(view / "ledger.db"))
    takes_everything_again(target)


@pytest.mark.parametrize("target", ["postgresql"], indirect=True)
def test_database_that_is_read_only_takes_nothing(target: str, postgresql) -> None:
    with_something_begun(target)
    postgresql.set("default_transaction_read_only", "on")
    try:
        takes_nothing(target)
    finally:
        _reset_read_only(postgresql)
    takes_everything_again(target)


@pytest.mark.parametrize("target", ["postgresql"], indirect=True)
def test_server_that_crashes_loses_no_acknowledged_settlement(target: str, postgresql, tmp_path: Path) -> None:
    with ImpressionLedger.create(target) as shop:
        shop.offer_many(writers.offer_of(2 * number, 0) for number in range(200))
        sure = 0
        for number in range(200):
            if number in (60, 130):
                postgresql.stop("immediate")
                with pytest.raises(LedgerUnavailable):
                    shop.settle(f"t-{2 * number}-0", writers.shown_of(2 * number, 0))
                postgresql.start()
            assert shop.settle(f"t-{2 * number}-0", writers.shown_of(2 * number, 0)) in ("ok", "duplicate")
            sure += 1
        assert sum(one.impressions for one in shop.items()) == sure == 200
        assert shop.balanced()
    assert check(target).sound
