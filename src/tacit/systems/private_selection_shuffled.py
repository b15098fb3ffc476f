"""Private selection with shuffled reports, from end to end in one process: server, wire, devices, wire, shuffler, wire, server.

A real device adds what a simulation has no use for: a ledger that charges, a record of what was shown (tacit.device). Here the
caller says who may choose by her own scores; the others, without consent or budget, show what is publicly best.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.device.blind_tokens import blind
from tacit.device.private_selection import select
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_PROFILE, Guarantee, ShuffleCondition, across_batches, nothing
from tacit.ledger import ImpressionLedger, ItemTotal, Settlement
from tacit.ledger.clock import SECOND, now
from tacit.mechanisms import SYSTEM_NOISE, Noise
from tacit.messages.private_selection import Batch, Impression, Offer, ShuffledReport
from tacit.messages.private_selection_tokens import IssuedToken, TokenRequest
from tacit.server.batch_guarantees import N_MIN
from tacit.server.blind_tokens import Tokens
from tacit.server.policies import View
from tacit.server.shuffled import SettledBatch, ShuffledSelection
from tacit.shuffler import Shuffler

BATCH = "batch"
_HOUR = 3600
_TOGETHER = 500  # reports in one transaction of the shuffler


@dataclass(frozen=True)
class Outcome:
    """What the server holds at the end, and what holds of each user."""

    settled: tuple[SettledBatch, ...]  # one for each group
    totals: tuple[ItemTotal, ...]  # exact
    guarantees: tuple[Guarantee, ...]  # of each group
    accepted: int  # reports that the shuffler acknowledged
    bytes_sent: int = 0  # by all devices to the shuffler, repetitions included

    @property
    def guarantee(self) -> Guarantee:
        """The weakest of the groups: what may be said to a user who does not know hers."""
        return max(self.guarantees, key=lambda one: (one.epsilon, one.delta))

    def after(self, batches: int) -> Guarantee:
        """What holds of a user with a report in each of so many batches like this one."""
        return across_batches([self.guarantee] * batches)


def simulate(
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
) -> Outcome:
    """One batch: a row of private ``scores`` for each device, a column for each candidate of the view.

    ``personal`` says of each device whether it may choose by them (all of them, if it is left out). ``rng`` is the order in which
    reports arrive, and with what repetitions.
    ``delta`` is a probability, ``honest_share`` the share (0 to 1) of the reports that honest devices sent.
    """
    rows, able = _checked(view, scores, personal)
    arrivals = np.random.default_rng(0) if rng is None else rng
    home = Path(folder)
    with ImpressionLedger.create(home / "server.db") as ledger, Shuffler(home / "shuffler.db") as shuffler:
        server = ShuffledSelection(ledger, tokens)
        # 1. The server fixes what everybody will be offered, prices and policy included.
        server.open(BATCH, view.policy, view.candidates, view.prices, now() // SECOND + _HOUR)
        # 2. Each device gets an offer and a token, then chooses; what it sends goes to the shuffler, some of it twice.
        sent = [_device(server, row, bool(may), noise) for row, may in zip(rows, able, strict=True)]
        order = arrivals.permutation(
            np.append(np.arange(len(sent)), arrivals.integers(len(sent), size=len(sent) // 10))
        )
        accepted = 0
        for start in range(0, order.size, _TOGETHER):
            wire = [sent[place] for place in order[start : start + _TOGETHER]]
            answers = shuffler.submit_many(ShuffledReport.from_json(json.loads(text)) for text in wire)
            accepted += sum(answer is Settlement.OK for answer in answers)
        # 3. The batch ends; every group is sent, and sent again, which has no effect.
        released = [json.dumps(batch.to_json()) for batch in shuffler.pass_on(BATCH)]
        settled = tuple(server.settle(Batch.from_json(json.loads(text))) for text in released)
        for text in released:
            server.settle(Batch.from_json(json.loads(text)))
        shuffler.forget(BATCH)
        # 4. What may be claimed.
        found = tuple(
            server.guarantee(one, delta=delta, honest_share=honest_share, stated=stated, n_min=n_min)
            if noise.caveat is None
            else nothing(ONE_PROFILE, noise.caveat)
            for one in settled
        )
        sizes = [len(text.encode()) for text in sent]
        return Outcome(settled, tuple(ledger.items()), found, accepted, sum(sizes[place] for place in order))


def _device(server: ShuffledSelection, scores: NDArray[np.float64], personal: bool, noise: Noise) -> str:
    """The report of one device, which has its own copies of all messages."""
    offer = Offer.from_json(json.loads(json.dumps(server.offer(BATCH).to_json())))
    token = offer.token
    if offer.batch is not None and offer.batch.key:  # asked for before anything is chosen
        blinded = blind(offer, noise)
        request = json.dumps(blinded.request.to_json())
        issued = server.issue(BATCH, TokenRequest.from_json(json.loads(request)))
        token = blinded.finish(IssuedToken.from_json(json.loads(json.dumps(issued.to_json()))))
    applied = offer.policy if personal else offer.policy.without_cost()
    public = [one.public_score for one in offer.candidates]
    (item,) = Impression.from_release(select(applied, scores if personal else None, public, noise), offer).items
    return json.dumps(ShuffledReport(BATCH, offer.group_under(applied), item, token).to_json())


def _checked(
    view: View, scores: ArrayLike, personal: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rows = np.asarray(scores, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] < 1 or rows.shape[1] != len(view.candidates):
        raise InvalidParameter("scores have a row for each device and a column for each candidate of the view.")
    able = np.ones(len(rows), dtype=np.bool_) if personal is None else np.asarray(personal, dtype=np.bool_)
    if able.shape != (len(rows),):
        raise InvalidParameter("personal has one truth value for each device.")
    return rows, able
