"""Private slates from end to end in one process: curator, wire, server or user, in that order. For trying and testing.

One slate at a time goes from the curator to a user; where any number are wanted, counts or a kernel go to a server once, and the
slates come from there.
"""

import json
from dataclasses import dataclass

import numpy as np

from tacit.curator import Curator
from tacit.curator.slate_plan import Plan
from tacit.curator.slate_routes import Route
from tacit.guarantees import Guarantee
from tacit.messages.private_slates import Popularity, Similarity, Slate
from tacit.server.private_slates import PrivateSlates


@dataclass(frozen=True)
class Outcome:
    """What left the curator, as text, and the slates that users got."""

    plan: Plan
    wire: tuple[str, ...]
    slates: tuple[Slate, ...]

    @property
    def guarantee(self) -> Guarantee:
        """Of one slate where each was charged, of all where they come from one release."""
        return self.slates[0].guarantee

    @property
    def bytes_sent(self) -> int:
        """How many bytes left the curator: all slates, or the one release that they come from."""
        return sum(len(text.encode()) for text in self.wire)

    def __repr__(self) -> str:
        return f"Outcome({self.plan.route}: {len(self.slates)} slates, {self.bytes_sent:,} bytes sent)"


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
) -> Outcome:
    """``slates`` planned (None: any number), ``shown`` of them made (by default all that are planned, or one).

    Every message is written as JSON and read again. ``drawn`` and ``rng`` are for a server that draws its slates.
    ``k`` is a number of items, ``epsilon`` in nats, for all slates together.
    """
    plan = curator.plan(k, epsilon, slates, **options)  # type: ignore[arg-type]  # checked there
    count = slates or 1 if shown is None else shown
    if not plan.once:
        # 1. The curator charges, draws, keeps and sends; the user reads.
        wire = tuple(
            _wire(curator.slate(k, epsilon, slates=slates, **options).to_json())  # type: ignore[arg-type]
            for _ in range(count)
        )
        return Outcome(plan, wire, tuple(Slate.from_json(json.loads(text)) for text in wire))
    # 1. The curator releases once. 2. The server makes slates of it, and sends each to a user.
    asked = {name: value for name, value in options.items() if name in ("likes_each", "delta", "among")}
    if plan.route is Route.COUNTS:
        sent = _wire(curator.popularity(epsilon, **asked).to_json())  # type: ignore[arg-type]
        counts = Popularity.from_json(json.loads(sent))
        server = PrivateSlates(counts, curator.features_of(counts.items), rng=rng)
    else:
        asked = {name: value for name, value in asked.items() if name == "among"}
        sent = _wire(curator.similarity(plan.epsilon, plan.delta, **asked).to_json())  # type: ignore[arg-type]
        server = PrivateSlates(Similarity.from_json(json.loads(sent)), rng=rng)
    made = (_wire(server.slate(k, drawn=drawn).to_json()) for _ in range(count))
    return Outcome(plan, (sent,), tuple(Slate.from_json(json.loads(text)) for text in made))


def _wire(message: dict[str, object]) -> str:
    return json.dumps(message, separators=(",", ":"), allow_nan=False)
