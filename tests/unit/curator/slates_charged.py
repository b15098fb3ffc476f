"""What a curator of slates was charged and keeps."""

from collections.abc import Callable
from typing import Any

from tacit.curator import Curator, Route
from tacit.ledger import Budget

DELTA = Budget(100.0, 1e-6)
RELEASES: dict[str, Callable[[Curator], object]] = {
    "slate": lambda holder: holder.slate(3, 0.5, route="natural", request_id="monday"),
    "popularity": lambda holder: holder.popularity(0.5),
    "similarity": lambda holder: holder.similarity(0.5, 1e-7),
    "counts": lambda holder: holder.slate(3, 0.5, slates=None, request_id="monday"),
}
OPTIONS: dict[Route, dict[str, Any]] = {Route.TWO_STAGE: {"candidates": 6}, Route.SPARSE: {"threshold": 10}}


def charges(holder: Curator) -> int:
    return holder.statement().charges


def stored(holder: Curator) -> list[bytes]:
    return [one.content for one in holder.ledger.stored("users of films")]
