"""Private selection from end to end in one process: device, server, device, server, in the paper's order. For trying and testing.

``simulate`` is the system alone. ``billed_slate`` joins two: a slate made by multi-selection is the candidate set of private
selection, for a server that must bill. What the offer then depends on is the signal, which was paid for: the two add up.
"""

import json
from dataclasses import dataclass

from tacit.device import Device
from tacit.device.choice import Choice
from tacit.device.private_selection import guarantee_of
from tacit.guarantees import ONE_PROFILE, Guarantee, pure
from tacit.ledger import Settlement
from tacit.messages.multi_selection import Eta, Reply, Request, Signal
from tacit.messages.private_selection import Impression, Offer, OfferRequest
from tacit.server.multi_selection import MultiSelection
from tacit.server.private_selection import PrivateSelection


@dataclass(frozen=True)
class Outcome:
    """What went over the wire, and what came of it. ``choice`` says which policy applied; its items were shown.

    ``guarantee`` is that of the one choice; with an offer of no fill nothing private left, and epsilon is 0.
    """

    guarantee: Guarantee
    request: str
    offer: str | None
    impression: str | None
    choice: Choice | None
    settlement: Settlement | None

    @property
    def bytes_sent(self) -> int:
        """How many bytes left the device: the request for an offer, and the impression."""
        return len(self.request.encode()) + len((self.impression or "").encode())

    def __repr__(self) -> str:
        return f"Outcome({self.settlement or 'no fill'}, {self.bytes_sent:,} bytes sent)"


@dataclass(frozen=True)
class BilledSlate:
    """A signal, the slate that answered it, and the one item of it that was shown and billed."""

    signal: Signal
    slate: tuple[str, ...]
    outcome: Outcome

    def __repr__(self) -> str:
        return f"BilledSlate({len(self.slate)} items, {self.outcome!r})"


def simulate(
    device: Device,
    shop: PrivateSelection,
    context: str = "",
    *,
    among: tuple[str, ...] | None = None,
    server: str = "server",
) -> Outcome:
    """One offer, from the request to the bill. Every message is written as JSON and read again."""
    # 1. The device asks: a context, and whether she consents.
    request = _wire(device.offer_request(context).to_json())
    # 2. The server scores, ranks, prices and writes the offer down, then sends it.
    made = shop.offer(OfferRequest.from_json(json.loads(request)), among=among)
    offer = None if made is None else _wire(made.to_json())
    # 3. The device scores every candidate, pays, draws, writes, shows.
    choice = device.choose(offer, server)
    if choice is None:
        return Outcome(pure(0.0, ONE_PROFILE), request, offer, None, None, None)
    impression = _wire(device.shown(choice).to_json())
    # 4. The server counts and bills, exactly.
    report = Impression.from_json(json.loads(impression))
    settlement = shop.bill(report)
    device.settled(report, settlement, server)
    return Outcome(_promised(device, choice, made, server), request, offer, impression, choice, settlement)


def billed_slate(
    device: Device,
    slates: MultiSelection,
    shop: PrivateSelection,
    *,
    k: int = 5,
    eta: Eta = 0.1,
    context: str = "",
    server: str = "server",
) -> BilledSlate:
    """The device asks for a slate with its signal, and chooses from that slate by a private mechanism.

    Give the device an ``overall`` budget (tacit.device.Overall): its ledger then adds up both guarantees, between features
    within the stated radius.
    ``k`` items make the slate; ``eta`` is the L1 distance of features between which one nat is lost.
    """
    signal = device.ask(eta)
    reply = Reply.from_bytes(slates.answer_bytes(Request(signal, k).to_bytes()))
    items = slates.store.items
    slate = tuple(str(items.id(items.code_of_number(number))) for number in reply.items)
    return BilledSlate(signal, slate, simulate(device, shop, context, among=slate, server=server))


def _promised(device: Device, choice: Choice, offer: Offer | None, server: str) -> Guarantee:
    """What the mechanism of the policy promises; what the ledger says, where that is nothing (replayed noise, `greedy`)."""
    so_far = device.statement(server).promised
    public = [] if offer is None else [one.public_score for one in offer.candidates]
    return so_far if so_far.promises_nothing else guarantee_of(choice.policy, public)


def _wire(message: dict[str, object]) -> str:
    return json.dumps(message, separators=(",", ":"), allow_nan=False)
