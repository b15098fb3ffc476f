"""Releases of two domains: which modes there are, what is public about the ratings, what is refused before a charge."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from inspect import Parameter, signature
from typing import Any, TypeAlias, cast

from tacit.checks import member, positive, probability
from tacit.curator import cross_domain_moments, cross_domain_replacements, nx_map, published_x_map
from tacit.curator.cross_domain_lists import Domains, require_apart
from tacit.curator.cross_domain_modes import Asked, Mode
from tacit.curator.cross_domain_rows import BothDomains, name_of, one_scale, people_of
from tacit.curator.nx_map import NXMap
from tacit.curator.published_x_map import PublishedXMap
from tacit.curator.slate_account import Kind, SlateAccount
from tacit.curator.slate_request import checked_id
from tacit.data.ids import code_of
from tacit.data.pairs import TwoDomains
from tacit.data.ratings import Ratings
from tacit.errors import InvalidParameter, UnknownName
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
    late=True,
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
        people: str,
        domains: Domains | None,
        listed: BothDomains | None = None,
        *,
        catalogues: Catalogues | None = None,
        public_catalogue: bool = False,
    ) -> None:
        self.name, self.people, self._domains, self._listed = name, people, domains, listed
        self._catalogues, self._public = catalogues, public_catalogue

    @classmethod
    def of(
        cls, source: object, target: object, *, catalogues: Catalogues | None = None, public_catalogue: bool = False
    ) -> "Transfers":
        """From two sets of ratings, which share the users whose ids are equal, from two domains, or from totals elsewhere."""
        domains: Domains | None = None
        if isinstance(source, Ratings) and isinstance(target, Ratings):
            domains = source, target
        elif isinstance(source, TwoDomains) and target is None:
            domains = source
        if domains is not None:
            one_scale(domains)  # refused at once, whatever is asked for
            if catalogues is None:
                require_apart(domains)
            names = name_of(domains), people_of(domains)
            return cls(*names, domains, catalogues=catalogues, public_catalogue=public_catalogue)
        if isinstance(source, BothDomains) and target is None:
            if catalogues is not None or public_catalogue:
                raise InvalidParameter(
                    "these domains have their catalogues: leave `catalogues` and `public_catalogue` out."
                )
            return cls(source.name, source.people or source.name, None, source)
        raise InvalidParameter(
            "a curator holds Ratings, tacit.data.load('movielens-small'); or two of them, "
            "Curator(source, target, ledger='curator.db'); or TwoDomains, Curator(domains, ledger='curator.db')."
        )

    def __repr__(self) -> str:
        return f"{self.name!r}: two domains"

    def title(self, item: Any) -> str:
        """The title of a listed item of either domain; its id where there are none."""
        for part in (self.listed.target, self.listed.source):
            place = code_of(part.ids, item)
            if place is not None:
                return part.title(place)
        raise UnknownName(f"no item {item!r} is listed in either of these domains.")

    @cached_property
    def listed(self) -> BothDomains:
        """What private modes may speak of. Refused where nothing is listed, or where ratings have no bounds."""
        if self._listed is not None:
            return self._listed
        if self._domains is None:
            raise InvalidParameter("this curator holds no ratings.")
        return BothDomains.of(self._domains, catalogues=self._catalogues, public_catalogue=self._public)

    def require_rows(self) -> None:
        """Refuses where only totals of the ratings come here."""
        if self._domains is None:
            raise InvalidParameter(
                "these ratings lie elsewhere, and only totals of them come here: use mode 'moments'."
            )

    @cached_property
    def domains(self) -> TwoDomains:
        """The ratings themselves, which modes without a promise need as they are. An item that was rated in both domains is
        refused: that tells of ratings, and is for those modes alone."""
        self.require_rows()
        held = cast(Domains, self._domains)
        return held if isinstance(held, TwoDomains) else TwoDomains.align(*held)

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
