"""What a device and a server say to each other, whatever carries it: the part that both clients share.

What leaves, and when, follows from what the application calls and from what the server said: never from the profile.
"""

from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Generic, NamedTuple, TypedDict

import numpy as np

from tacit.device.choice import MOST_BYTES as MOST_OFFER
from tacit.device.choice import Choice, read_offer
from tacit.device.device import Device
from tacit.device.exchange import (
    BINARY,
    JSON,
    Answer,
    Call,
    NoAnswer,
    Patience,
    Pause,
    Steps,
    T,
    accepted,
    answered,
    read_json,
)
from tacit.device.limits import Limits, Overall, server_name
from tacit.device.outbox import Outbox
from tacit.device.outgoing import posted
from tacit.device.remote_catalogue import MOST_BYTES as MOST_CATALOGUE
from tacit.device.remote_catalogue import RemoteCatalogue
from tacit.device.remote_scorer import RemoteScorer
from tacit.device.scoring import PrivateScorer
from tacit.errors import InvalidMessage, InvalidParameter, ServerRefused
from tacit.ledger import Budget, Head, Period
from tacit.ledger.clock import Clock
from tacit.ledger.stores import Target
from tacit.mechanisms import Noise
from tacit.messages.multi_selection import MOST_K, Eta, Reply
from tacit.models.scorer import Scorer

FORMS = {"binary": BINARY, "json": JSON}
STEP = 0.1  # seconds
_CATALOGUE, _SCORER = "/v1/catalogue", "/v1/private-selection/scorer"


class DeviceOptions(TypedDict, total=False):
    """What a client passes on to its ``Device``, as it is."""

    budget: Budget | None
    refresh: Period | str
    per_period: int
    reinstalled: bool
    head: Head | None
    noise: Noise
    scorer: Scorer | None
    private_scorer: PrivateScorer | None
    limits: Limits | None
    overall: Overall | None
    clock: Clock


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    value: T


class Whole(NamedTuple):
    """What a part of a model belongs to, as the server says it: how many parts there are, and of which version, if it says so."""

    parts: str
    version: str | None


class Conversation:
    """``name`` is the server's in the device's ledger. Until ``begin`` is done there is no device: the catalogue comes first."""

    def __init__(self, place: Target, name: str, form: str, patience: Patience, options: DeviceOptions) -> None:
        if form not in FORMS:
            raise InvalidParameter(f"form must be one of {', '.join(FORMS)}.")
        self.name, self.lock = server_name(name), Lock()
        self._place, self._form, self._patience, self._options = place, FORMS[form], patience, options
        self._rng = np.random.default_rng()  # of the pauses between retries: no privacy hangs on it
        self._scorer = RemoteScorer()
        self._opened: tuple[RemoteCatalogue, Device] | None = None

    @property
    def catalogue(self) -> RemoteCatalogue:
        return self._known()[0]

    @property
    def device(self) -> Device:
        return self._known()[1]

    @property
    def opened(self) -> bool:
        return self._opened is not None

    def advance(self, steps: Steps[T], answer: Answer | NoAnswer | None) -> Call | Pause | Done[T]:
        """The next step, or the end. One at a time: threads share the profile, and none changes it while another draws."""
        with self.lock:
            try:
                return steps.send(answer)
            except StopIteration as end:
                return Done(end.value)

    def begin(self) -> Steps[None]:
        """The catalogue, then the device. No copy is kept and asked about by its digest: that would be a cookie by another name."""
        if self._opened is not None:
            raise InvalidParameter("this client is open already: make another one.")
        call = Call("GET", _CATALOGUE, JSON, most=MOST_CATALOGUE)
        answer = yield from self._answered(call)
        catalogue = RemoteCatalogue.from_json(read_json(accepted(answer, call)))
        options = self._options
        if options.get("private_scorer") is None:
            options = {**options, "private_scorer": self._scorer}
        self._opened = catalogue, Device(self._place, catalogue, **options)

    def recommend(self, k: int, t: int, eta: Eta) -> Steps[tuple[int | str, ...]]:
        device, started = self.device, monotonic()
        request = device.request(k, t, eta=eta)
        yield _full_step(started)
        reply, _ = yield from self._reply(posted(request, self._form))
        if reply.k != request.k:
            raise InvalidMessage(f"a slate of {request.k} items was asked for, and the answer is one of another size.")
        return device.pick(reply, t)

    def choose(self, context: str) -> Steps[Choice | None]:
        device = self.device
        yield from self._learn()  # before there is an offer, and whether she consents or not
        call = posted(device.offer_request(context), most=MOST_OFFER)
        answer = yield from self._answered(call)
        if answer.status == 204:
            return None
        offer = read_offer(accepted(answer, call))
        if offer is None or offer.batch is not None:  # reports of a batch go to a shuffler, and this client has none
            return None
        started = monotonic()
        choice = device.choose(offer, self.name)
        yield _full_step(started)
        return choice

    def shown(self, choice: Choice) -> Steps[str]:
        return (yield from self._outbox().shown(choice))

    def flush(self) -> Steps[int]:
        return (yield from self._outbox().flush())

    def clicks(self) -> Steps[int]:
        started, due = monotonic(), self.device.clicks_due(self.name)
        yield _full_step(started)
        return (yield from self._outbox().clicks(due))

    def close(self) -> None:
        if self._opened is not None:
            self._opened[1].close()

    def _learn(self) -> Steps[None]:
        """All parts of the model for offers, once for each version of the server's store."""
        if self._options.get("private_scorer") is not None or self._scorer.model == self.catalogue.model:
            return
        parts = yield from self._parts()
        if parts is None:  # the server took up another model meanwhile: it will hardly do so again
            parts = yield from self._parts()
        if parts is None:
            raise InvalidMessage("the model for offers has changed while it was fetched: try again.")
        self._scorer.learn(self.catalogue.model, parts, self.catalogue.items, self.catalogue.space.dimension)

    def _parts(self) -> Steps[list[Reply] | None]:
        """The parts of one version of the model; None where they are of several. A mixture would be nobody's model."""
        items = len(self.catalogue.items)
        first, said = yield from self._reply(_part(0, self._form))
        # Each part but the last is full, so that nobody is kept fetching for ever.
        most, count = -(-items // MOST_K), said.parts
        if not (count.isascii() and count.isdigit() and len(count) <= 9 and 1 <= int(count) <= most):
            raise InvalidMessage(f"a model for {items:,} items has 1 to {most:,} parts.")
        parts = [first]
        for number in range(1, int(count)):
            try:
                part, again = yield from self._reply(_part(number, self._form))
            except ServerRefused as refused:
                if refused.status != 404:
                    raise
                return None  # the other version has fewer parts
            if again != said:
                return None
            parts.append(part)
        return parts

    def _reply(self, call: Call) -> Steps[tuple[Reply, Whole]]:
        """A reply, and of what its sender says that it is a part."""
        answer = yield from self._answered(call)
        body = accepted(answer, call)
        reply = Reply.from_bytes(body) if call.accept == BINARY else Reply.from_json(read_json(body))
        return reply, Whole(answer.headers.get("tacit-parts", ""), answer.headers.get("tacit-version"))

    def _answered(self, call: Call) -> Steps[Answer]:
        return (yield from answered(call, self._patience, self._rng))

    def _outbox(self) -> Outbox:
        return Outbox(self.device, self.name, self._patience, self._rng)

    def _known(self) -> tuple[RemoteCatalogue, Device]:
        if self._opened is None:
            raise InvalidParameter("this client is not open: async with tacit.AsyncClient(...) as me.")
        return self._opened


def _part(number: int, form: str) -> Call:
    return Call("GET", f"{_SCORER}?part={number}", form)


def _full_step(started: float) -> Pause:
    """Until the next full tenth of a second since ``started``: drawing and scoring take a time that may follow from what is
    private, and what leaves after them, or is shown, is not to tell it."""
    return Pause(STEP - (monotonic() - started) % STEP)
