"""A device's displays as rows: how far each has come, how a row is sealed."""

import json
from enum import IntEnum
from hashlib import sha256
from typing import NamedTuple

from tacit.errors import LedgerDamaged
from tacit.ledger.stores.interface import Row


class DisplayState(IntEnum):
    """How far a display has come. It only ever goes on."""

    CHOSEN = 0
    SHOWN = 1
    REPORTED = 2


class Display(NamedTuple):
    """What was chosen for an offer of a server, one item for each slot."""

    server: str
    token: str
    items: tuple[str, ...]
    expires: int  # seconds since 1970
    state: DisplayState = DisplayState.CHOSEN
    extra: bytes = b""  # whatever else the device has to remember

    def __repr__(self) -> str:
        return f"Display({self.state.name.lower()})"  # what was chosen is nobody's business in a log


def row_of(display: Display) -> Row:
    server, token, items, expires, state, extra = display
    content = (server, token, json.dumps(items), expires, int(state), extra)
    return (*content, seal_of_display(*content))


def seal_of_display(server: str, token: str, items: str, expires: int, state: int, extra: bytes) -> bytes:
    return sha256(f"{server}\n{token}\n{items}\n{expires}\n{state}\n".encode() + extra).digest()[:8]


def sealed_display(row: Row) -> Display:
    *content, seal = row
    if type(content[5]) is not bytes or seal_of_display(*content) != seal:
        raise LedgerDamaged("a display is not what was written. Run `tacit ledger check`, restore a backup.")
    server, token, items, expires, state, extra = content
    return Display(server, token, tuple(json.loads(items)), expires, DisplayState(state), extra)
