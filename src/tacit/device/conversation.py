"""The conversation of a device with a server: the logic that the sync and the async client share.

The application's calls and the server's answers decide what leaves and when, never the profile.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Generic, NamedTuple, TypedDict

import numpy as np

from tacit.device.catalogue import MOST_BYTES as MOST_CATALOGUE
from tacit.device.catalogue import RemoteCatalogue, RemoteScorer
from tacit.device.device import Device
from tacit.device.limits import Limits, Overall, server_name
from tacit.device.private_selection import MOST_BYTES as MOST_OFFER
from tacit.device.private_selection import Choice, PrivateScorer, read_offer
from tacit.device.wire import (
    BINARY,
    JSON,
    MOST_REPLY,
    Call,
    NoResponse,
    Pause,
    Response,
    Retries,
    Steps,
    T,
    body_of,
    fetch,
    read_json,
)
from tacit.errors import InvalidMessage, InvalidParameter, ServerRefused, ServerUnavailable
from tacit.ledger import Budget, Clock, Head, Period, Settlement, Target
from tacit.mechanisms import Noise
from tacit.messages import values
from tacit.messages.multi_selection import MOST_K, Eta, Reply, Request
from tacit.messages.private_selection import Engagement, Impression, OfferRequest
from tacit.models.scorers import Scorer

FORMS = {"binary": BINARY, "json": JSON}
PATHS = {
    Request: "/v1/multi-selection",
    OfferRequest: "/v1/private-selection/offers",
    Impression: "/v1/private-selection/impressions",
    Engagement: "/v1/private-selection/engagements",
}
PENDING = "pending"
STEP = 0.1  # seconds
_CATALOGUE, _SCORER = "/v1/catalogue", "/v1/private-selection/scorer"
_MOST_OUTCOME = 1 << 12  # bytes
_OVERLOADED = (None, 408, 429, 503)  # no server, or one under load: the next report would fare the same


class DeviceOptions(TypedDict, total=False):
    """The options that a client passes on to its ``Device``, unchanged."""

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
class StepsResult(Generic[T]):
    """The end of a conversation's steps."""

    value: T


class ModelVersion(NamedTuple):
    """The version of a model by the server's headers: its number of parts, and its name if the server states one."""

    parts: str
    version: str | None


class Conversation:
    """One device and one server. ``name`` is the server's name in the device's ledger.

    There is no device until ``begin`` is done, because the device needs the server's catalogue.

    Each report is on the disk before it is sent, and is sent, unchanged, until the server gives a final answer. Final are the
    outcomes of a settlement, and a refusal with a problem of tacit. Silence, the page of a gateway, or an unreadable answer are
    not final: such a report leaves again with the next ``flush``, also after a restart.
    """

    def __init__(self, ledger: Target, name: str, form: str, retries: Retries, options: DeviceOptions) -> None:
        if form not in FORMS:
            raise InvalidParameter(f"form must be one of {', '.join(FORMS)}.")
        self.name, self.lock = server_name(name), Lock()
        self._ledger, self._form, self._retries, self._options = ledger, FORMS[form], retries, options
        self._rng = np.random.default_rng()  # for pauses between retries: privacy does not depend on it
        self._scorer = RemoteScorer()
        self._opened: tuple[RemoteCatalogue, Device] | None = None

    @property
    def catalogue(self) -> RemoteCatalogue:
        return self._require_open()[0]

    @property
    def device(self) -> Device:
        return self._require_open()[1]

    @property
    def opened(self) -> bool:
        return self._opened is not None

    def advance(self, steps: Steps[T], response: Response | NoResponse | None) -> Call | Pause | StepsResult[T]:
        """The next step, or the result. The lock keeps threads from changing the profile while another one draws."""
        with self.lock:
            try:
                return steps.send(response)
            except StopIteration as end:
                return StepsResult(end.value)

    def begin(self) -> Steps[None]:
        """Fetches the catalogue and opens the device. It never asks about a cached copy by its digest: that would be a cookie."""
        if self._opened is not None:
            raise InvalidParameter("this client is open already: create another one.")
        call = Call("GET", _CATALOGUE, JSON, most=MOST_CATALOGUE)
        response = yield from self._fetch(call)
        catalogue = RemoteCatalogue.from_json(read_json(body_of(response, call)))
        options = self._options
        if options.get("private_scorer") is None:
            options = {**options, "private_scorer": self._scorer}
        self._opened = catalogue, Device(self._ledger, catalogue, **options)

    def recommend(self, k: int, t: int, eta: Eta) -> Steps[tuple[int | str, ...]]:
        device, started = self.device, monotonic()
        request = device.request(k, t, eta=eta)
        yield _until_full_step(started)
        reply, _ = yield from self._reply(call_for(request, self._form))
        if reply.k != request.k:
            raise InvalidMessage(f"the client asked for a slate of {request.k} items, and the reply has another size.")
        return device.pick(reply, t)

    def choose(self, context: str) -> Steps[Choice | None]:
        device = self.device
        yield from self._load_scorer()  # before there is an offer, with or without consent
        call = call_for(device.offer_request(context), most=MOST_OFFER)
        response = yield from self._fetch(call)
        if response.status == 204:
            return None
        offer = read_offer(body_of(response, call))
        if offer is None or offer.batch is not None:  # this client has no shuffler, which takes the reports of a batch
            return None
        started = monotonic()
        choice = device.choose(offer, self.name)
        yield _until_full_step(started)
        return choice

    def shown(self, choice: Choice) -> Steps[str]:
        """Marks the choice as shown, then reports it. "pending" without a final answer."""
        if not isinstance(choice, Choice) or choice.server != self.name:
            raise InvalidParameter("only a choice from an offer of this server can be reported to it.")
        impression = self.device.shown(choice)
        try:
            return (yield from self._report(impression, self._retries))
        except (ServerUnavailable, InvalidMessage):
            return PENDING

    def flush(self) -> Steps[int]:
        """Sends the impressions without a final answer. Returns how many still wait; raises a refusal after all were sent."""
        yield from self._send(self.device.pending(self.name))
        return len(self.device.pending(self.name))

    def clicks(self) -> Steps[int]:
        """Sends the bits that are due. Returns how many of them still wait."""
        started, due = monotonic(), self.device.clicks_due(self.name)
        yield _until_full_step(started)
        return (yield from self._send(due))

    def close(self) -> None:
        if self._opened is not None:
            self._opened[1].close()

    def _send(self, reports: Sequence[Impression | Engagement]) -> Steps[int]:
        retries, waiting, refusal = self._retries, 0, None
        for position, report in enumerate(reports):
            try:
                yield from self._report(report, retries)
            except InvalidMessage:
                waiting += 1
            except ServerRefused as refused:
                refusal = refusal or refused
            except ServerUnavailable as problem:
                if problem.status in _OVERLOADED:
                    waiting += len(reports) - position
                    break
                # It may concern this report only: try the others too, once each, so that one report does not hold up all.
                waiting, retries = waiting + 1, Retries(tries=1)
        if refusal is not None:
            raise refusal
        return waiting

    def _report(self, report: Impression | Engagement, retries: Retries) -> Steps[str]:
        call = call_for(report, most=_MOST_OUTCOME)
        response = yield from fetch(call, retries, self._rng)
        try:
            outcome = _read_outcome(body_of(response, call))
        except ServerRefused as refused:
            if refused.problem is None:
                raise InvalidMessage("the answer to a report is not a problem of tacit.") from None
            # The server will never count it. To the device all final answers are alike: it does not send the report again.
            self.device.settled(report, Settlement.UNKNOWN, self.name)
            raise
        self.device.settled(report, outcome, self.name)
        return outcome.value

    def _load_scorer(self) -> Steps[None]:
        """Fetches all parts of the model for offers, once for each version of the server's store."""
        if self._options.get("private_scorer") is not None or self._scorer.model == self.catalogue.model:
            return
        parts = yield from self._scorer_parts()
        if parts is None:  # the server changed its model meanwhile, and will hardly do that twice
            parts = yield from self._scorer_parts()
        if parts is None:
            raise InvalidMessage("the model for offers has changed while it was fetched: try again.")
        self._scorer.learn(self.catalogue.model, parts, self.catalogue.items, self.catalogue.space.dimension)

    def _scorer_parts(self) -> Steps[list[Reply] | None]:
        """The parts of one version of the model; None if they belong to several versions."""
        items = len(self.catalogue.items)
        first, version = yield from self._reply(_part_call(0, self._form))
        # Each part but the last is full: a server cannot keep a client fetching for ever.
        most, count = -(-items // MOST_K), version.parts
        if not (count.isascii() and count.isdigit() and len(count) <= 9 and 1 <= int(count) <= most):
            raise InvalidMessage(f"a model for {items:,} items must have 1 to {most:,} parts.")
        parts = [first]
        for number in range(1, int(count)):
            try:
                part, its_version = yield from self._reply(_part_call(number, self._form))
            except ServerRefused as refused:
                if refused.status != 404:
                    raise
                return None  # the other version has fewer parts
            if its_version != version:
                return None
            parts.append(part)
        return parts

    def _reply(self, call: Call) -> Steps[tuple[Reply, ModelVersion]]:
        response = yield from self._fetch(call)
        body = body_of(response, call)
        reply = Reply.from_bytes(body) if call.accept == BINARY else Reply.from_json(read_json(body))
        return reply, ModelVersion(response.headers.get("tacit-parts", ""), response.headers.get("tacit-version"))

    def _fetch(self, call: Call) -> Steps[Response]:
        return (yield from fetch(call, self._retries, self._rng))

    def _require_open(self) -> tuple[RemoteCatalogue, Device]:
        if self._opened is None:
            raise InvalidParameter("this client is not open: use `async with tacit.AsyncClient(...) as me`.")
        return self._opened


def call_for(
    message: Request | OfferRequest | Impression | Engagement, form: str = JSON, most: int = MOST_REPLY
) -> Call:
    """The call that sends a message to the path for its kind. The response must have the same form.

    Anything that leaves a device over a network leaves through this function, and it takes messages only.
    """
    path = PATHS.get(type(message))
    if path is None:
        raise InvalidParameter(f"only these may leave a device: {', '.join(kind.__name__ for kind in PATHS)}.")
    if form == BINARY and isinstance(message, Request):
        return Call("POST", path, BINARY, message.to_bytes(), BINARY, most)
    body = json.dumps(message.to_json(), separators=(",", ":")).encode()  # one spelling for each message
    return Call("POST", path, JSON, body, JSON, most)


def _read_outcome(content: bytes) -> Settlement:
    outcome = values.members(read_json(content), "an outcome", ("outcome",))["outcome"]
    try:
        return Settlement(outcome)
    except ValueError:
        raise InvalidMessage(f"an outcome is one of {', '.join(Settlement)}.") from None


def _part_call(number: int, form: str) -> Call:
    return Call("GET", f"{_SCORER}?part={number}", form)


def _until_full_step(started: float) -> Pause:
    """Waits for the next full tenth of a second since ``started``.

    Drawing and scoring may take a time that depends on private data. Nothing that leaves or is shown afterwards may reveal it.
    """
    return Pause(STEP - (monotonic() - started) % STEP)
