"""Cross-domain recommendation from end to end in one process: curator, wire, served users, in that order. For trying it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tacit.checks import whole
from tacit.curator import Curator
from tacit.guarantees import Guarantee
from tacit.messages.cross_domain import Replacements, TransferModel

Profile: TypeAlias = Mapping[Any, float]  # item -> rating


@dataclass(frozen=True)
class Outcome:
    """What left the curator, as text (None where nothing does), and what each served user computed or was told."""

    guarantee: Guarantee
    wire: str | None
    served: tuple[dict[Any, float], ...]  # target items, best first: predictions, or an alter ego

    @property
    def bytes_sent(self) -> int:
        """How many bytes left the curator; 0 where what it made stays inside."""
        return 0 if self.wire is None else len(self.wire.encode())

    def __repr__(self) -> str:
        return f"Outcome({len(self.served)} served, {self.bytes_sent:,} bytes sent)"


def simulate(
    curator: Curator,
    profiles: Sequence[Profile],
    k: int = 10,
    epsilon: float = 2.0,
    delta: float = 1e-6,
    *,
    mode: str = "moments",
    **options: Any,
) -> Outcome:
    """Serves each of ``profiles``, the own ratings of people whom the curator need not know, with ``k`` target items.

    Every message is written as JSON and read again. In mode "prs_valid" a user is served her alter ego, which any recommender of
    the target domain takes; modes "nx" and "published" stay inside, and the users' profiles go there instead.
    ``epsilon`` is in nats of privacy loss, ``delta`` a probability.
    """
    k = whole("k", k, least=1)
    # 1. The curator charges, draws, keeps; 2. what it sends is read by everybody; 3. each user computes with ratings of her own.
    made = curator.release(epsilon, delta, mode=mode, **options)
    if isinstance(made, TransferModel):
        wire = _wire(made.to_json())
        model = TransferModel.from_json(json.loads(wire))
        return Outcome(model.guarantee, wire, tuple(_best(model, own, k) for own in profiles))
    if isinstance(made, Replacements):
        wire = _wire(made.to_json())
        table = Replacements.from_json(json.loads(wire))
        return Outcome(table.guarantee, wire, tuple(_ranked(table.alter_ego(own), k) for own in profiles))
    return Outcome(made.guarantee, None, tuple(_best(made, own, k) for own in profiles))


def _best(model: Any, own: Profile, k: int) -> dict[Any, float]:
    chosen = model.recommend(own, k)
    predicted = model.predict(own, chosen)
    return {item: predicted[item] for item in chosen}


def _ranked(ego: Mapping[Any, float], k: int) -> dict[Any, float]:
    return dict(sorted(ego.items(), key=lambda one: -one[1])[:k])


def _wire(message: dict[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"), allow_nan=False)
