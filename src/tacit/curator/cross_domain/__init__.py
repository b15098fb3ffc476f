"""Releases of two domains: the modes, and the part of a curator that makes them.

`MODES` maps each mode to a class that holds its options. Its ``release`` plans from public numbers, states the promise, checks that
the ledger has room, and then draws: `Moments` in `moments`, the systems of the X-Map paper in `x_map`.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, TypeAlias

from tacit.checks import positive, probability
from tacit.curator.account import CuratorAccount, ReleaseKind, wording
from tacit.curator.cross_domain.domains import Domains, ReleaseRequest
from tacit.curator.cross_domain.moments import Moments
from tacit.curator.cross_domain.x_map import (
    PLAIN_REASONS,
    PUBLISHED_REASONS,
    NXMap,
    Plain,
    Published,
    PublishedXMap,
    ValidReplacements,
)
from tacit.errors import InvalidParameter
from tacit.ledger import Budget
from tacit.mechanisms import Noise
from tacit.messages.cross_domain import Replacements, TransferModel

TransferMode: TypeAlias = Moments | ValidReplacements | Published | Plain
TransferRelease: TypeAlias = TransferModel | Replacements | NXMap | PublishedXMap

MODES: Final[Mapping[str, type[TransferMode]]] = {
    Moments.name: Moments,
    ValidReplacements.name: ValidReplacements,
    Published.name: Published,
    Plain.name: Plain,
}
TRANSFERS = ReleaseKind(
    Budget(epsilon=2.0, delta=1e-6),
    wording("release"),
    concentrated=False,
    reasons={Published.name: PUBLISHED_REASONS, Plain.name: PLAIN_REASONS},
    late=True,
)


class Transfers:
    """The part of a curator that holds two domains."""

    def __init__(self, domains: Domains, account: CuratorAccount, noise: Noise) -> None:
        self.domains, self._account, self._noise = domains, account, noise

    def release(
        self, epsilon: float, delta: float, mode: str, request_id: str | None, **options: Any
    ) -> TransferRelease:
        """The release of this mode, with the options of its class. Wrong options raise before anything is charged."""
        wanted = mode_of(mode, options)
        request = ReleaseRequest(positive("epsilon", epsilon), probability("delta", delta), request_id)
        return wanted.release(self.domains, self._account, request, self._noise)


def mode_of(mode: str, options: Mapping[str, Any]) -> TransferMode:
    """The mode of this name with these options. Raises InvalidParameter for an unknown mode or option."""
    if mode not in MODES:
        raise InvalidParameter(f"mode must be one of {', '.join(map(repr, MODES))}, not {mode!r}.")
    kind = MODES[mode]
    known = [option.name for option in fields(kind)]
    for name in options:
        if name not in known:
            raise InvalidParameter(f"mode {str(mode)!r} has no option {name!r}; its options are {', '.join(known)}.")
    return kind(**options)
