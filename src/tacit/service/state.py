"""What the routes of the server's application share, in one worker."""

import asyncio
import multiprocessing
import os
import signal
from dataclasses import dataclass, field
from typing import cast

from starlette.requests import Request as HttpRequest

from tacit.errors import TacitError
from tacit.ledger import ImpressionLedger, Settlement
from tacit.messages.private_selection import Engagement, Impression, Offer, OfferRequest
from tacit.service.batching import Batches
from tacit.service.keys import Key, Keys, Scope
from tacit.service.logs import LOG
from tacit.service.pacing import Pacing
from tacit.service.problems import TRY_AGAIN, Problem
from tacit.service.served import Served, Shelf
from tacit.service.settings import Settings

_KEYS_EVERY, _PARENT_EVERY = 2.0, 1.0  # seconds
_KEYS_UNREAD = "the keys cannot be read again; those that were known hold on, also if they were revoked since"
_UNAUTHORISED = {"WWW-Authenticate": "Bearer"}


@dataclass
class State:
    settings: Settings
    keys: Keys
    ledger: ImpressionLedger
    shelf: Shelf
    offers: Batches[OfferRequest, Offer | None] = field(init=False)
    bills: Batches[Impression, Settlement] = field(init=False)
    engages: Batches[Engagement, Settlement] = field(init=False)
    worked_out: Pacing = field(default_factory=Pacing)

    def __post_init__(self) -> None:
        most = self.settings.most_waiting
        self.offers = Batches("offers", lambda asked: self.served.private_selection.offer_many(asked), most)
        self.bills = Batches("impressions", lambda shown: self.served.private_selection.bill_many(shown), most)
        self.engages = Batches("engagements", self._engaged, most)

    @property
    def served(self) -> Served:
        found = self.shelf.served
        if found is None:
            raise Problem("not-ready", "there is no model to answer with yet.", TRY_AGAIN)
        return found

    def _engaged(self, bits: list[Engagement]) -> list[Settlement | Exception]:
        """Each by itself: clicks are rare beside offers and reports."""
        found: list[Settlement | Exception] = []
        for bit in bits:
            try:
                found.append(self.served.private_selection.engage(bit))
            except Exception as problem:
                found.append(problem)
        return found

    async def close(self) -> None:
        await self.offers.close()
        await self.bills.close()
        await self.engages.close()
        self.worked_out.close()
        self.ledger.close()


def state_of(request: HttpRequest) -> State:
    return cast(State, request.app.state.service)


def allowed(keys: Keys, request: HttpRequest, *scopes: Scope) -> Key:
    """The caller's key, if it has one of these scopes."""
    key = keys.find(request.headers.get("authorization", ""))
    if key is None:
        raise Problem("unauthorised", "this needs a key that holds: Authorization: Bearer tacit_...", _UNAUTHORISED)
    if key.scope not in scopes:
        raise Problem("forbidden", f"this needs a key with the scope {' or '.join(scopes)}.")
    return key


async def watch_parent() -> None:
    """Ends this worker when the process that started it is gone: nobody would stop it, and nobody else could have its port."""
    started_by = multiprocessing.parent_process()  # it may be gone already
    parent = os.getppid() if started_by is None else started_by.pid
    while os.getppid() == parent:
        await asyncio.sleep(_PARENT_EVERY)
    os.kill(os.getpid(), signal.SIGTERM)


async def watch_keys(keys: Keys) -> None:
    """A key that was revoked ends soon; one that was added begins. Where the file cannot be read, that is told once, and what is
    known goes on."""
    told = False
    while True:
        await asyncio.sleep(_KEYS_EVERY)
        try:
            await asyncio.to_thread(keys.refresh)
            told = False
        except (TacitError, OSError) as problem:
            if not told:
                LOG.error(_KEYS_UNREAD, extra={"about": {"because": str(problem)}})
            told = True
