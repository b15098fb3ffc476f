"""A slow, obvious reader of the impression book, straight from the file: what a stranger with the format in hand would write."""

import hashlib
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any


def rows(path: Path, sql: str, *parameters: Any) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql, parameters).fetchall()
    finally:
        connection.close()


def alter(path: Path, *statements: str) -> None:
    """What somebody with a database tool and no idea of links does."""
    connection = sqlite3.connect(path)
    try:
        for statement in statements:
            assert connection.execute(statement).rowcount > 0, "the statement changed nothing"
        connection.commit()
    finally:
        connection.close()


def hashed(before: bytes, *fields: object) -> bytes:
    return hashlib.sha256(before + "\n".join(str(field) for field in fields).encode()).digest()


def faults(path: Path) -> list[str]:
    """Everything wrong with the book, recomputed from nothing but the rows."""
    facts = dict(rows(path, "SELECT name, value FROM facts"))
    lanes = int(facts["lanes"])
    accounts = {row[0]: row for row in rows(path, "SELECT number, item, lane, impressions, micros, seal FROM accounts")}
    found, counts, sums, opened = [], Counter[int](), Counter[int](), dict[int, int]()
    for lane, position, tip, at in rows(
        path, "SELECT lane, position, link, at FROM lanes WHERE book = 'impressions' ORDER BY lane"
    ):
        link, expected, latest = hashed(b"", "tacit ledger", facts["ledger"], "impressions", lane, lanes), 0, 0
        for number, id, account, day, micros, written in rows(
            path,
            "SELECT number, id, account, day, micros, link FROM impressions WHERE number % ? = ? ORDER BY number",
            lanes,
            lane,
        ):
            expected += 1
            item = accounts[account][1] if account in accounts else ""
            link = hashed(link, number, id.hex(), account, item, day, micros)
            if number != expected * lanes + lane or written != link or id[0] % lanes != lane or day < latest:
                found.append(f"impression {number}")
            latest = day
            opened.setdefault(account, number)
            counts[account] += 1
            sums[account] += micros
        if (position, tip, at) != (expected, link, latest * 86_400_000_000):
            found.append(f"end of lane {lane}")
    for number, item, lane, impressions, micros, seal in accounts.values():
        text = "\n".join(map(str, (number, item, lane, impressions, micros)))
        if seal != hashlib.sha256(text.encode()).digest()[:8] or number % lanes != lane:
            found.append(f"seal of account {number}")
        if opened.get(number) != number:
            found.append(f"opening of account {number}")
        if (impressions, micros) != (counts.pop(number, 0), sums[number]):
            found.append(f"sums of account {number}")
    return found + [f"no account {number}" for number in counts]
