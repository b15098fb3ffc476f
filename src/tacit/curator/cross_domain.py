"""Releases of two domains: which modes there are, what is public about the ratings, what is refused before a charge."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from inspect import Parameter, signature
from typing import Any, TypeAlias

from tacit.checks import member, positive, probability
from tacit.curator import cross_domain_moments, cross_domain_replacements, nx_map, published_x_map
from tacit.curator.cross_domain_modes import Asked, Mode
from tacit.curator.cross_domain_rows import BothDomains, name_of, one_scale
from tacit.curator.nx_map import NXMap
from tacit.curator.published_x_map import PublishedXMap
from tacit.curator.slate_account import Kind, SlateAccount
from tacit.curator.slate_request import checked_id
from tacit.data.pairs import TwoDomains
from tacit.data.ratings import Ratings
from tacit.errors import InvalidParameter
from tacit.ledger import Budget
from tacit.mechanisms import Noise
from tacit.messages.cross_domain import Replacements, TransferModel

Released: TypeAlias = TransferModel | Replacements | NXMap | PublishedXMap
Catalogues: TypeAlias = tuple[Sequence[Any], Sequence[Any]]

TRANSFERS = Kind(
    Budget(epsilon=2.0, delta=1e-6),
    "release",
    concentrated=False,
    used_up="",
    reasons={"published": published_x_map.REASONS, "nx": nx_map.REASONS},
)
_MODES: Mapping[Mode, Any] = {
    Mode.MOMENTS: cross_domain_moments.release,
    Mode.PRS_VALID: cross_domain_replacements.release,
    Mode.PUBLISHED: published_x_map.release,
    Mode.NX: nx_map.release,
}


class Transfers:
    """Two domains that a curator holds. ``domains`` is None where the ratings lie elsewhere, and only totals of them come here."""

    def __init__(
        self,
        name: str,
        domains: TwoDomains | None,
        listed: BothDomains | None = None,
        *,
        catalogues: Catalogues | None = None,
        public_catalogue: bool = False,
    ) -> None:
        self.name, self._domains, self._listed = name, domains, listed
        self._catalogues, self._public = catalogues, public_catalogue

    @classmethod
    def of(
        cls, source: object, target: object, *, catalogues: Catalogues | None = None, public_catalogue: bool = False
    ) -> "Transfers":
        """From two sets of ratings, which share the users whose ids are equal, from two domains, or from totals elsewhere."""
        if isinstance(source, Ratings) and isinstance(target, Ratings):
            source, target = TwoDomains.align(source, target), None
        if isinstance(source, TwoDomains) and target is None:
            one_scale(source)  # refused at once, whatever is asked for
            return cls(name_of(source), source, catalogues=catalogues, public_catalogue=public_catalogue)
        if isinstance(source, BothDomains) and target is None:
            if catalogues is not None or public_catalogue:
                raise InvalidParameter(
                    "these domains have their catalogues: leave `catalogues` and `public_catalogue` out."
                )
            return cls(source.name, None, source)
        raise InvalidParameter(
            "a curator holds Ratings, tacit.data.load('movielens-small'); or two of them, "
            "Curator(source, target, ledger='curator.db'); or TwoDomains, Curator(domains, ledger='curator.db')."
        )

    def __repr__(self) -> str:
        return f"{self.name!r}: two domains"

    @cached_property
    def listed(self) -> BothDomains:
        """What private modes may speak of. Refused where nothing is listed, or where ratings have no bounds."""
        if self._listed is not None:
            return self._listed
        if self._domains is None:
            raise InvalidParameter("this curator holds no ratings.")
        return BothDomains.of(self._domains, catalogues=self._catalogues, public_catalogue=self._public)

    @property
    def domains(self) -> TwoDomains:
        """The ratings themselves, which modes without a promise need as they are."""
        if self._domains is None:
            raise InvalidParameter(
                "these ratings lie elsewhere, and only totals of them come here: use mode 'moments'."
            )
        return self._domains

    def release(
        self,
        account: SlateAccount,
        epsilon: float,
        delta: float,
        *,
        mode: str,
        request_id: str | None,
        noise: Noise,
        **options: Any,
    ) -> Released:
        """By mode; ``options`` are those of its own function: see cross_domain_moments, cross_domain_replacements, nx_map and
        published_x_map."""
        found = _MODES[member("mode", Mode, mode)]
        known = [name for name, one in signature(found).parameters.items() if one.kind is Parameter.KEYWORD_ONLY]
        for name in options:
            if name not in known:
                raise InvalidParameter(
                    f"mode {str(mode)!r} has no option {name!r}; its options are {', '.join(known)}."
                )
        asked = Asked(
            positive("epsilon", epsilon),
            probability("delta", delta),
            None if request_id is None else checked_id(request_id),
        )
        made: Released = found(self, account, asked, noise, **options)
        return made
