"""One transaction for a whole batch: all reports of a group that a shuffler sent, once, or none of them.

That a version of a group was refused is kept, for good: what was claimed of the group may rest on there being one version.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise

from tacit.errors import InvalidParameter, LedgerDamaged
from tacit.ledger.booking import Account, Booking, beyond, micros_of
from tacit.ledger.chain import digest, lane_of
from tacit.ledger.clock import day_of
from tacit.ledger.impression_rows import REPORTED, lane_of_impression
from tacit.ledger.names import name
from tacit.ledger.offers import MOST_TOKEN
from tacit.ledger.settling import Settlement, refuse
from tacit.ledger.stores.interface import Query, Reader, Row, Writer
from tacit.ledger.stores.schema import BATCHES, REFUSALS

MOST_REPORTS = 10**6
BATCH = Query("SELECT digest, reports, day, seal FROM batches WHERE batch = ? AND group_id = ?", ("text", "text"))
_REFUSAL = Query("SELECT 1 FROM refusals WHERE batch = ? AND group_id = ?", ("text", "text"))


class Batched:
    """The reports of one (batch, group), in the order of their tokens: an order that says nothing."""

    __slots__ = ("batch", "content", "group", "keys", "prices", "reports")

    def __init__(self, batch: str, group: str, reports: Iterable[tuple[str, str]], prices: Mapping[str, int]) -> None:
        self.batch, self.group = name("a batch", batch), name("a group", group)
        pairs = list(reports)
        if len(pairs) > MOST_REPORTS or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
            raise InvalidParameter(f"a batch holds at most {MOST_REPORTS:,} reports (token, item).")
        for token, item in pairs:
            name("a token", token, MOST_TOKEN)
            name("an item", item)
        self.reports = sorted(pairs)
        self.prices = {name("an item", item): micros_of(micros) for item, micros in prices.items()}
        self.content = sha256(json.dumps(self.reports, separators=(",", ":")).encode()).digest()[:16]
        # A token counts once in its batch, whatever the group: the group is what its sender says it is.
        self.keys = [digest(f"batch\n{batch}\n{token}") for token, _ in self.reports]

    def lanes(self, lanes: int) -> list[int]:
        """Those of its impressions, and one for the batch itself."""
        return sorted({lane_of(f"{self.batch}\n{self.group}", lanes)} | {key[0] % lanes for key in self.keys})

    def why_not(self) -> str | None:
        if any(first[0] == second[0] for first, second in pairwise(self.reports)):
            return "its batch holds a token twice."
        if not self.prices.keys() >= {item for _, item in self.reports}:
            return "its batch holds an item without a price."
        return None


def commit_batch(writer: Writer, lanes: int, moment: int, batched: Batched) -> Settlement:
    """Counts all reports or none. The caller's transaction makes it durable, and a refusal as well."""
    known = writer.ask(BATCH, [(batched.batch, batched.group)])
    impressions = writer.ask(REPORTED, [(key,) for key in batched.keys])
    places = [lane_of_impression(key, lanes) for key in batched.keys]
    wanted = [(item, lane) for (_, item), lane in zip(batched.reports, places, strict=True)]
    booking = Booking(writer, lanes, moment, wanted)
    (row,) = known()
    if row is not None:
        if _sealed(batched, row)[0] == batched.content:
            return Settlement.DUPLICATE
        return _refuse(writer, moment, batched, "its batch and group were settled before, with other reports.")
    reason = batched.why_not()
    if reason is None and any(found is not None for found in impressions()):
        reason = "a token of it was counted in this batch before."
    if reason is not None:
        return _refuse(writer, moment, batched, reason)
    for key, place in zip(batched.keys, wanted, strict=True):
        account = booking.accounts[place]
        if not isinstance(account, Account):
            raise account
        micros = batched.prices[place[0]]
        if not account.fits(micros):
            raise beyond()  # the transaction is rolled back
        booking.count(key, account, micros)
    booking.write()
    content = (batched.content, len(batched.keys), day_of(moment))
    writer.insert(
        BATCHES, [(batched.batch, batched.group, *content, seal_of_batch(batched.batch, batched.group, *content))]
    )
    return Settlement.OK


def was_refused(reader: Reader, batch: str, group: str) -> bool:
    """Whether a version of this group ever was. A row that is there counts, whatever its seal says."""
    return reader.ask(_REFUSAL, [(name("a batch", batch), name("a group", group))])()[0] is not None


def seal_of_refusal(batch: str, group: str, day: int) -> bytes:
    return sha256(f"refused\n{batch}\n{group}\n{day}".encode()).digest()[:8]


def seal_of_batch(batch: str, group: str, content: bytes, reports: int, day: int) -> bytes:
    return sha256(f"{batch}\n{group}\n{content.hex()}\n{reports}\n{day}".encode()).digest()[:8]


def _refuse(writer: Writer, moment: int, batched: Batched, reason: str) -> Settlement:
    content = (batched.batch, batched.group, day_of(moment))
    writer.insert(REFUSALS, [(*content, seal_of_refusal(*content))], unless_there=True)  # the first one stands
    return refuse(reason)


def _sealed(batched: Batched, row: Row) -> Sequence[object]:
    *content, seal = row
    if type(content[0]) is not bytes or seal_of_batch(batched.batch, batched.group, *content) != seal:
        raise LedgerDamaged("a settled batch is not what was written. Run `tacit ledger check`, restore a backup.")
    return content
