"""Cross-domain recommendation end to end in one process: curator, wire, users. For trying and testing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.checks import whole
from tacit.curator import Curator
from tacit.messages.cross_domain import Replacements, TransferModel
from tacit.systems.transcript import Transcript, write


@dataclass(frozen=True, repr=False)
class TransferTranscript(Transcript):
    """``wire`` is the text that left the curator, or None if its model stays inside. ``served`` are the users' results."""

    wire: str | None
    served: tuple[dict[Any, float], ...]  # target items, best first: predictions, or an alter ego

    @property
    def summary(self) -> str:
        return f"{len(self.served)} served"


def simulate(
    curator: Curator,
    profiles: Sequence[Mapping[Any, float]],
    k: int = 10,
    epsilon: float = 2.0,
    delta: float = 1e-6,
    *,
    mode: str = "moments",
    **options: Any,
) -> TransferTranscript:
    """Serves ``k`` target items to each of ``profiles``: ratings by item, of users who need not be known to the curator.

    Every message is written as JSON and read again. In mode "prs_valid" a user gets an alter ego, which any recommender of the
    target domain accepts. Models of the modes "nx" and "published" stay inside, and the users' profiles go there instead.
    ``epsilon`` is in nats of privacy loss, ``delta`` a probability.
    """
    k = whole("k", k, least=1)
    # 1. The curator charges, draws and keeps. 2. The others read what it sends. 3. Each user computes with their own ratings.
    release = curator.release(epsilon, delta, mode=mode, **options)
    if isinstance(release, TransferModel):
        wire = write(release.to_json())
        model = TransferModel.from_json(json.loads(wire))
        served = tuple(_best(model, profile, k) for profile in profiles)
        return TransferTranscript(model.guarantee, len(wire.encode()), wire, served)
    if isinstance(release, Replacements):
        wire = write(release.to_json())
        table = Replacements.from_json(json.loads(wire))
        egos = [table.alter_ego(profile) for profile in profiles]
        served = tuple(dict(sorted(ego.items(), key=lambda entry: -entry[1])[:k]) for ego in egos)
        return TransferTranscript(table.guarantee, len(wire.encode()), wire, served)
    return TransferTranscript(release.guarantee, 0, None, tuple(_best(release, profile, k) for profile in profiles))


def _best(model: Any, profile: Mapping[Any, float], k: int) -> dict[Any, float]:
    recommended = model.recommend(profile, k)
    predicted = model.predict(profile, recommended)
    return {item: predicted[item] for item in recommended}
