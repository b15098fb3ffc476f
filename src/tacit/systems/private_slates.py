"""Private slates end to end in one process: curator, wire, server or user. For trying and testing.

A planned number of slates goes from the curator to users, one at a time. For any number of slates the curator sends counts or a
kernel to a server once, and the slates come from there.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.curator import Curator
from tacit.curator.private_slates.plan import Plan
from tacit.curator.private_slates.routes import Route
from tacit.messages.private_slates import Popularity, Similarity, Slate
from tacit.server.private_slates import PrivateSlates
from tacit.systems.transcript import Transcript, write


@dataclass(frozen=True, repr=False)
class SlateTranscript(Transcript):
    """``wire`` has the texts that left the curator: all slates, or the one release that they come from.

    The guarantee is that of one slate if each was charged, and that of all if they come from one release.
    """

    plan: Plan
    wire: tuple[str, ...]
    slates: tuple[Slate, ...]

    @property
    def summary(self) -> str:
        return f"{self.plan.route}: {len(self.slates)} slates"


def simulate(
    curator: Curator,
    k: int = 10,
    epsilon: float = 1.0,
    slates: int | None = 1,
    *,
    shown: int | None = None,
    drawn: bool = False,
    rng: np.random.Generator | None = None,
    **options: object,
) -> SlateTranscript:
    """Plans ``slates`` (None: any number) and makes ``shown`` of them, by default all that are planned, or one.

    Every message is written as JSON and read again. ``drawn`` and ``rng`` are for a server that draws its slates.
    ``k`` is a number of items, ``epsilon`` in nats, for all slates together.
    """
    plan = curator.plan(k, epsilon, slates, **options)  # type: ignore[arg-type]  # checked there
    count = slates or 1 if shown is None else shown
    if not plan.once:
        # 1. The curator charges, draws, keeps and sends; the user reads.
        wire = tuple(
            write(curator.slate(k, epsilon, slates=slates, **options).to_json())  # type: ignore[arg-type]
            for _ in range(count)
        )
        return _transcript(plan, wire, wire)
    # 1. The curator releases once. 2. The server makes slates of it, and sends each to a user.
    release_options = {name: value for name, value in options.items() if name in ("likes_each", "delta", "among")}
    if plan.route is Route.COUNTS:
        sent = write(curator.popularity(epsilon, **release_options).to_json())  # type: ignore[arg-type]
        counts = Popularity.from_json(json.loads(sent))
        server = PrivateSlates(counts, curator.features_of(counts.items), rng=rng)
    else:
        release_options = {name: value for name, value in release_options.items() if name == "among"}
        sent = write(curator.similarity(plan.epsilon, plan.delta, **release_options).to_json())  # type: ignore[arg-type]
        server = PrivateSlates(Similarity.from_json(json.loads(sent)), rng=rng)
    return _transcript(plan, (sent,), [write(server.slate(k, drawn=drawn).to_json()) for _ in range(count)])


def _transcript(plan: Plan, wire: tuple[str, ...], texts: Sequence[str]) -> SlateTranscript:
    slates = tuple(Slate.from_json(json.loads(text)) for text in texts)
    guarantee = slates[0].guarantee if slates else plan.each
    return SlateTranscript(guarantee, sum(len(text.encode()) for text in wire), plan, wire, slates)
