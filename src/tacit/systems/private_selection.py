"""Private selection end to end in one process: device, server, device, server, as in the paper. For trying and testing.

``simulate`` runs the system alone. ``billed_slate`` joins two systems: a slate made by multi-selection is the candidate set of
private selection, for a server that must bill. The offer then depends on the signal, which was paid for, so the two guarantees add
up. ``simulate_shuffled`` runs one batch of shuffled reports: server, devices, shuffler, server.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.device import Choice, Device, blind, select
from tacit.device.private_selection import guarantee_of
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_PROFILE, Guarantee, ShuffleCondition, nothing, pure
from tacit.ledger import ImpressionLedger, ItemTotal, Settlement
from tacit.ledger.chain import SECOND, now
from tacit.mechanisms import SYSTEM_NOISE, Noise
from tacit.messages.multi_selection import Eta, Reply, Request, Signal
from tacit.messages.private_selection import (
    Batch,
    Impression,
    IssuedToken,
    Offer,
    OfferRequest,
    ShuffledReport,
    TokenRequest,
)
from tacit.server.multi_selection import MultiSelection
from tacit.server.private_selection import PrivateSelection, View
from tacit.server.shuffled import N_MIN, SettledBatch, ShuffledSelection, Tokens
from tacit.shuffler import Shuffler
from tacit.systems.transcript import Transcript, write

BATCH = "batch"
_HOUR = 3600  # seconds
_SUBMIT_SIZE = 500  # reports in one transaction of the shuffler


@dataclass(frozen=True, repr=False)
class BillTranscript(Transcript):
    """What went over the wire, and the result. ``choice`` names the policy that was applied; its items were shown.

    The guarantee is that of the one choice. Without an offer nothing private left, and epsilon is 0. The request for an offer and
    the impression left the device.
    """

    request: str
    offer: str | None
    impression: str | None
    choice: Choice | None
    settlement: Settlement | None

    @property
    def summary(self) -> str:
        return str(self.settlement or "no fill")


@dataclass(frozen=True)
class BilledSlate:
    """A signal, the slate that answered it, and the bill for the one item that was shown."""

    signal: Signal
    slate: tuple[str, ...]
    outcome: BillTranscript

    def __repr__(self) -> str:
        return f"BilledSlate({len(self.slate)} items, {self.outcome!r})"


def simulate(
    device: Device,
    shop: PrivateSelection,
    context: str = "",
    *,
    among: tuple[str, ...] | None = None,
    server: str = "server",
) -> BillTranscript:
    """One offer, from the request to the bill. Every message is written as JSON and read again."""
    # 1. The device asks: a context, and whether the user consents.
    request = write(device.offer_request(context).to_json())
    # 2. The server scores, ranks, prices and writes the offer down, then sends it.
    offered = shop.offer(OfferRequest.from_json(json.loads(request)), among=among)
    offer = None if offered is None else write(offered.to_json())
    # 3. The device scores every candidate, pays, draws, writes, shows.
    choice = device.choose(offer, server)
    if choice is None:
        return BillTranscript(pure(0.0, ONE_PROFILE), len(request.encode()), request, offer, None, None, None)
    impression = write(device.shown(choice).to_json())
    # 4. The server counts and bills, exactly.
    report = Impression.from_json(json.loads(impression))
    settlement = shop.bill(report)
    device.settled(report, settlement, server)
    # What the policy's mechanism promises, unless the ledger says that it is nothing (replayed noise, `greedy`).
    guarantee = device.statement(server).promised
    if not guarantee.promises_nothing:
        public = [] if offered is None else [candidate.public_score for candidate in offered.candidates]
        guarantee = guarantee_of(choice.policy, public)
    sent = len(request.encode()) + len(impression.encode())
    return BillTranscript(guarantee, sent, request, offer, impression, choice, settlement)


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

    Give the device an ``overall`` budget (tacit.device.Overall): its ledger then adds up both guarantees, for features within the
    stated radius of each other.
    ``k`` is the number of items in the slate; ``eta`` is the L1 distance of features between which one nat is lost.
    """
    signal = device.ask(eta)
    reply = Reply.from_bytes(slates.answer_bytes(Request(signal, k).to_bytes()))
    items = slates.store.items
    slate = tuple(str(items.id(items.code_of_number(number))) for number in reply.items)
    return BilledSlate(signal, slate, simulate(device, shop, context, among=slate, server=server))


@dataclass(frozen=True, repr=False)
class BatchTranscript(Transcript):
    """What the server holds at the end of a batch.

    The guarantee is the weakest of all groups: a user does not know their group. The bytes are those that all devices sent to the
    shuffler, with repetitions.
    """

    settled: tuple[SettledBatch, ...]  # one for each group
    totals: tuple[ItemTotal, ...]  # exact
    guarantees: tuple[Guarantee, ...]  # of each group
    accepted: int  # reports that the shuffler acknowledged

    @property
    def summary(self) -> str:
        return f"{self.accepted:,} reports"


def simulate_shuffled(
    view: View,
    scores: ArrayLike,
    folder: str | PathLike[str],
    tokens: Tokens,
    *,
    delta: float = 1e-6,
    honest_share: float = 1.0,
    stated: Collection[ShuffleCondition] = (ShuffleCondition.ONE_REPORT_EACH, ShuffleCondition.NO_OTHER_PATH),
    n_min: int = N_MIN,
    personal: ArrayLike | None = None,
    noise: Noise = SYSTEM_NOISE,
    rng: np.random.Generator | None = None,
) -> BatchTranscript:
    """One batch: ``scores`` has a row of private scores for each device, and a column for each candidate of the view.

    ``personal`` has a truth value for each device: whether it may choose by its scores (default: all may). The others, without
    consent or budget, show the publicly best item. A real device (tacit.device) also charges a ledger and records what was shown.
    ``rng`` decides the order in which reports arrive, and which are repeated.
    ``delta`` is a probability, ``honest_share`` the share (0 to 1) of the reports that honest devices sent.
    """
    rows, able = _checked(view, scores, personal)
    arrivals = np.random.default_rng(0) if rng is None else rng
    home = Path(folder)
    with ImpressionLedger.create(home / "server.db") as ledger, Shuffler(home / "shuffler.db") as shuffler:
        server = ShuffledSelection(ledger, tokens)
        # 1. The server fixes the offer for everybody, with prices and policy.
        server.open(BATCH, view.policy, view.candidates, view.prices, now() // SECOND + _HOUR)
        # 2. Each device gets an offer and a token, then chooses. Its report goes to the shuffler, some reports twice.
        sent = [_report(server, row, bool(may), noise) for row, may in zip(rows, able, strict=True)]
        order = arrivals.permutation(
            np.append(np.arange(len(sent)), arrivals.integers(len(sent), size=len(sent) // 10))
        )
        accepted = 0
        for start in range(0, order.size, _SUBMIT_SIZE):
            wire = [sent[device] for device in order[start : start + _SUBMIT_SIZE]]
            answers = shuffler.submit_many(ShuffledReport.from_json(json.loads(text)) for text in wire)
            accepted += sum(answer is Settlement.OK for answer in answers)
        # 3. The batch ends. Every group is sent twice; the repetition has no effect.
        released = [json.dumps(batch.to_json()) for batch in shuffler.pass_on(BATCH)]
        settled = tuple(server.settle(Batch.from_json(json.loads(text))) for text in released)
        for text in released:
            server.settle(Batch.from_json(json.loads(text)))
        shuffler.forget(BATCH)
        # 4. The guarantee of each group.
        guarantees = tuple(
            server.guarantee(group, delta=delta, honest_share=honest_share, stated=stated, n_min=n_min)
            if noise.caveat is None
            else nothing(ONE_PROFILE, noise.caveat)
            for group in settled
        )
        weakest = max(guarantees, key=lambda guarantee: (guarantee.epsilon, guarantee.delta))
        bytes_sent = sum(len(sent[device].encode()) for device in order)
        return BatchTranscript(weakest, bytes_sent, settled, tuple(ledger.items()), guarantees, accepted)


def _report(server: ShuffledSelection, scores: NDArray[np.float64], personal: bool, noise: Noise) -> str:
    """The report of one device. Every message is written as JSON and read again."""
    offer = Offer.from_json(json.loads(json.dumps(server.offer(BATCH).to_json())))
    token = offer.token
    if offer.batch is not None and offer.batch.key:  # the token comes before the choice
        blinded = blind(offer, noise)
        request = json.dumps(blinded.request.to_json())
        issued = server.issue(BATCH, TokenRequest.from_json(json.loads(request)))
        token = blinded.finish(IssuedToken.from_json(json.loads(json.dumps(issued.to_json()))))
    applied = offer.policy if personal else offer.policy.without_cost()
    public = [candidate.public_score for candidate in offer.candidates]
    release = select(applied, scores if personal else None, public, noise)
    return json.dumps(ShuffledReport.from_release(release, offer, applied, token).to_json())


def _checked(
    view: View, scores: ArrayLike, personal: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rows = np.asarray(scores, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] < 1 or rows.shape[1] != len(view.candidates):
        raise InvalidParameter("scores must have a row for each device and a column for each candidate of the view.")
    able = np.ones(len(rows), dtype=np.bool_) if personal is None else np.asarray(personal, dtype=np.bool_)
    if able.shape != (len(rows),):
        raise InvalidParameter("personal must have one truth value for each device.")
    return rows, able
