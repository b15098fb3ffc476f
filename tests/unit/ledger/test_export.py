"""An export alone is enough: every figure of the ledger follows from it, and nothing in it can be altered unseen."""

import io
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import LedgerDamaged, UnknownSubject
from tacit.ledger import PrivacyLedger
from tacit.ledger.chain import DAY
from tacit.ledger.impressions import ImpressionLedger
from tacit.ledger.stores import open_store
from tacit.ledger.verification.export import export, line_of, recompute
from tests.unit.ledger.small_ledger import TERMS, Hand, build


@pytest.fixture(scope="module", params=[1, 4], ids=["1 lane", "4 lanes"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Hand, list[str]]:
    path = tmp_path_factory.mktemp("export") / "ledger.db"
    clock = build(path, request.param)
    return path, clock, exported(path)


def exported(path: Path) -> list[str]:
    store, out = open_store(path), io.StringIO()
    try:
        written = export(store, out)
    finally:
        store.close()
    lines = out.getvalue().splitlines(keepends=True)
    assert written == len(lines)
    return lines


def found(lines: list[str]) -> str:
    return "\n".join(map(str, recompute(lines).findings.findings))


def test_an_export_says_what_the_ledger_says(made: tuple[Path, Hand, list[str]]) -> None:
    path, clock, lines = made
    recomputed = recompute(lines)
    assert recomputed.findings.to_json() == {
        "sound": True, "entries": 71, "subjects": 9, "impressions": 12, "findings": [], "more": 0,
    }  # fmt: skip
    assert set(recomputed.subjects) == set(TERMS)
    for later in (0, DAY // 3, DAY, 20 * DAY, 60 * DAY):
        at = clock.at + later
        with PrivacyLedger.open(path, clock=Hand(at)) as ledger:
            for subject in TERMS:
                assert recomputed.statement(subject, at) == ledger.statement(subject)
    with ImpressionLedger.open(path) as shop:
        assert recomputed.items == tuple(sorted(shop.items()))


def test_the_latest_charge_can_still_be_seen_in_a_sliding_window(made: tuple[Path, Hand, list[str]]) -> None:
    recomputed = recompute(made[2])
    last = recomputed.statement("sliding", 0)
    assert [window.spent.amount for window in last.windows] == [350_000_000, 4 * 350_000_000]
    assert [w.spent.amount for w in recomputed.statement("sliding", last.at + DAY).windows] == [0, 3 * 350_000_000]


def test_an_unknown_subject_is_an_error(made: tuple[Path, Hand, list[str]]) -> None:
    with pytest.raises(UnknownSubject):
        recompute(made[2]).statement("nobody")


def test_no_stored_release_is_exported(made: tuple[Path, Hand, list[str]]) -> None:
    contents = [json.loads(line) for line in made[2]]
    assert {content["kind"] for content in contents} == {"header", "text", "enrolment", "charge", "impression", "end"}
    assert not any("content" in content for content in contents)
    assert contents[0]["format"] == "tacit-ledger-export"


def test_an_altered_character_of_any_class_is_found_in_every_line(made: tuple[Path, Hand, list[str]]) -> None:
    """Of every line: one digit, one letter, one sign and one blank more."""
    lines = made[2]
    for number in [*range(0, len(lines), 9), len(lines) - 1]:
        line = lines[number]
        for belongs in (str.isdigit, str.isalpha, '{}[]":,'.__contains__):
            places = [place for place, one in enumerate(line) if belongs(one)]
            for place in places[:: max(1, len(places) // 4)]:
                other = {"digit": "8", "letter": "q"}.get(_class(line[place]), ";")
                if line[place] == other:
                    continue
                altered = line[:place] + other + line[place + 1 :]
                assert found([*lines[:number], altered, *lines[number + 1 :]]), (number, place)
        assert found([*lines[:number], line.replace(":", ": ", 1), *lines[number + 1 :]]), number


def _class(one: str) -> str:
    return "digit" if one.isdigit() else "letter" if one.isalpha() else "sign"


def test_a_cut_off_file_is_found_wherever_it_ends(made: tuple[Path, Hand, list[str]]) -> None:
    lines = made[2]
    for end in range(len(lines)):
        assert found(lines[:end])
    assert found([*lines[:-1], lines[-1][:-20]])


def test_lost_moved_and_repeated_lines_are_found(made: tuple[Path, Hand, list[str]]) -> None:
    lines = made[2]
    for number in range(0, len(lines), 5):
        assert found(lines[:number] + lines[number + 1 :]), number
        assert found([*lines[:number], lines[number], *lines[number:]]), number
        assert found([*lines[1 : number + 1], lines[0], *lines[number + 1 :]] if number else [*lines, lines[0]]), number
        assert found([*lines[:number], "\n", *lines[number:]]), number
    assert found([*lines, "\n"])


def resealed(lines: list[str], alter: Callable[[dict[str, Any]], None]) -> list[str]:
    """The lines after ``alter``, with the sum in the last one mended: as one who knows the format would leave them."""
    import hashlib

    contents = [json.loads(line) for line in lines]
    for content in contents:
        alter(content)
    body = [line_of(content) for content in contents[:-1]]
    contents[-1]["sha256"] = hashlib.sha256("".join(body).encode()).hexdigest()
    return [*body, line_of(contents[-1])]


FIELDS = {
    "header": ["ledger", "lanes", "format", "version"],
    "text": ["digest", "text"],
    "enrolment": ["number", "subject", "at", "windowed", "link", "terms"],
    "charge": ["number", "subject", "at", "windowed", "link", "release_id", "guarantee", "cost", "total"],
    "impression": ["number", "id", "item", "day", "micros", "link"],
    "end": ["head", "entries", "subjects", "impressions"],
}


def test_the_lines_hold_these_fields_and_no_others(made: tuple[Path, Hand, list[str]]) -> None:
    further = {"header": {"kind", "created"}, "end": {"kind", "sha256"}}
    for content in map(json.loads, made[2]):
        assert set(content) == {*FIELDS[content["kind"]], *further.get(content["kind"], {"kind"})}


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, fields in FIELDS.items() for field in fields])
def test_every_field_is_verified_without_the_sum_over_the_file(
    made: tuple[Path, Hand, list[str]], kind: str, field: str
) -> None:
    lines = made[2]
    assert not found(resealed(lines, lambda content: None))

    def changed(value: Any) -> list[Any]:
        match value:
            case int():
                return [value + 1, str(value), float(value), None, 2**70]
            case str():
                other = "01" if set(value) <= set("0123456789abcdef") else "x"
                return [value + other, value[:-1], 7, None, [value], value + "\ud800"]
            case list():
                return [[value[0] + 1, *value[1:]], value[:-1], None, [2**70, *value[1:]]]
            case _:
                return [{**value, "ledger": "else"}, {"ledger": value["ledger"], "books": {}}, None]

    sample = next(content for content in map(json.loads, lines) if content["kind"] == kind)
    for place, other in enumerate(changed(sample[field])):
        seen = []

        def alter(content: dict[str, Any], other: Any = other, seen: list[int] = seen) -> None:
            if content["kind"] == kind and not seen:
                seen.append(1)
                content[field] = other

        assert found(resealed(lines, alter)), place


def test_garbage_is_a_finding_and_no_error() -> None:
    for lines in (
        [],
        [""],
        ["{}"],
        ["[1]"],
        ["null"],
        ["{" * 10_000],
        ['{"kind":"header"}'],
        ["\ud800"],
        ["9" * 5_000],
    ):
        assert not recompute(lines).findings.sound
        assert recompute(lines).subjects == ()


def test_a_damaged_ledger_is_not_exported(made: tuple[Path, Hand, list[str]], tmp_path: Path) -> None:
    for statement in ("DELETE FROM subjects", "UPDATE entries SET link = 'x'", "DELETE FROM accounts"):
        path = tmp_path / "damaged.db"
        path.write_bytes(made[0].read_bytes())
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.commit()
        connection.close()
        with pytest.raises(LedgerDamaged, match="tacit ledger check"):
            exported(path)
