"""Multi-selection end to end in one process: device, wire, server, wire, device, as in the paper. For trying and testing.

A real device (tacit.device) also has a profile, a ledger that charges, and a memo of the signal. A simulation needs none of them.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from tacit.device.multi_selection import best, codes_of, estimator, mechanism_of
from tacit.mechanisms import SYSTEM_NOISE, Noise
from tacit.messages.multi_selection import Reply, Request, Signal, exact_eta
from tacit.messages.store import Store
from tacit.models.scorers import class_scores
from tacit.models.tables import Tables
from tacit.server.multi_selection import Algorithm, LocalModel, MultiSelection
from tacit.systems.transcript import Transcript


@dataclass(frozen=True, repr=False)
class PickTranscript(Transcript):
    """What was sent, what came back, what was picked, and what privacy cost. Utilities are the server's model at the true features.

    Only ``request`` leaves the device, and the guarantee is that of its signal. The rest is private: it is for experiments.
    """

    request: bytes
    reply: bytes
    slate: tuple[int, ...]  # codes of items
    picked: tuple[int, ...]
    best: float  # the utility of the t best of all items
    offered: float  # of the t best items of the slate; the regret of the slate, d_i, is best - offered
    taken: float  # of the picked items; the regret of the pick, d_f, is best - taken

    @property
    def summary(self) -> str:
        return f"{len(self.slate)} items, {len(self.reply):,} bytes received"


def simulate(
    store: Store,
    features: ArrayLike,
    eta: float | str | Decimal | Fraction = 0.1,
    k: int = 5,
    t: int = 1,
    algorithm: Algorithm | str = Algorithm.EXACT,
    local_model: LocalModel | str = LocalModel.RIDGE,
    noise: Noise = SYSTEM_NOISE,
    rng: np.random.Generator | None = None,
    tables: Tables | None = None,
) -> PickTranscript:
    """One user with these features asks once. ``rng`` is the server's randomness; ``tables`` save it from computing them again.

    ``eta`` is the L1 distance of features between which one nat is lost; ``k`` items are offered, ``t`` of them picked.
    """
    # 1. The device perturbs and sends. Features outside the domain raise an error before any noise is drawn.
    true, exact = store.space.check(features), exact_eta(eta)
    signal = Signal.from_release(mechanism_of(store.space, exact).release(true, noise), exact)
    request = Request(signal, k, t).to_bytes()
    # 2. The server guesses, chooses and fits.
    server = MultiSelection(store, algorithm, local_model, tables=tables, rng=rng)
    reply = server.answer_bytes(request)
    # 3. The device picks. Nothing is sent.
    read = Reply.from_bytes(reply)
    slate = codes_of(read, store.items)
    picked = [
        slate[position] for position in best(estimator(read, slate, store.space.dimension, store.scorer)(true), t)
    ]
    scores = class_scores(store.scorer, true[None])[0].astype(np.float64)[store.scorer.classes.of]
    offered = np.sort(scores[slate])[::-1][:t]
    return PickTranscript(
        signal.guarantee,
        len(request),
        request,
        reply,
        tuple(slate),
        tuple(picked),
        best=float(np.sort(scores)[::-1][:t].sum()),
        offered=float(offered.sum()),
        taken=float(scores[picked].sum()),
    )
