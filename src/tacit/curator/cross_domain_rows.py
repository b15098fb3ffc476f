"""Two domains as mechanisms and models take them: one coding of all items, the source first, and one row for each person.

What is listed, and on what scale, is public and known at once. Ratings are read when ``rows`` is called, and not before.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from tacit.curator.cross_domain_lists import Domains, both, list_of, listed, over_both
from tacit.curator.cross_domain_union import union
from tacit.curator.fit import RATED_AT_ALL
from tacit.data.catalogue import Catalogue
from tacit.data.scale import Scale
from tacit.errors import InvalidMessage, InvalidParameter
from tacit.messages.cross_domain_parts import LARGEST
from tacit.messages.private_slates_parts import checked_items
from tacit.models.cross_domain.settings import LEAST_RATINGS as LEAST_RATINGS

Rows: TypeAlias = Any  # a csr_array of users x items, or an object with ``totals(of)`` that adds such rows up elsewhere


@dataclass(frozen=True, eq=False, repr=False)
class BothDomains:
    """Public: two catalogues, one scale, a name. Private: what ``read`` gives, which is asked only once a charge stands.

    ``read(least)`` gives the rows of users with at least ``least`` ratings in a domain, over the source's items and then the
    target's: as a csr_array, or as an object that gives exact totals of them (``totals``), where they lie on another machine.
    """

    source: Catalogue
    target: Catalogue
    scale: Scale
    read: Callable[[int], Rows] = field(repr=False)
    name: str  # by which their users are known, if they have no other name: other ratings, another one
    assumed: tuple[str, ...] = ()
    people: str = ""  # what their users are called; by default as the domains are

    def __post_init__(self) -> None:
        for part, named in ((self.source, "source"), (self.target, "target")):
            _require_ids(part, named)
        if np.isin(self.source.ids.astype(str), self.target.ids.astype(str)).any():
            raise InvalidParameter("an item is in both domains; each must be in one.")
        if (self.source.ids.dtype.kind == "U") != (self.target.ids.dtype.kind == "U"):
            raise InvalidParameter(
                "one domain names its items by whole numbers, the other by texts: name all by texts."
            )
        if math.isinf(self.scale.high):
            raise InvalidParameter(
                f"ratings on the scale {self.scale} have no bound, and what a rating may change would have none: state a scale "
                "with two ends when reading them, Scale(low, high); outside='clip' moves what lies outside."
            )
        if max(abs(self.scale.low), abs(self.scale.high)) > LARGEST:
            raise InvalidParameter(f"ratings must lie within {LARGEST:g} of 0: give them in another unit.")

    def __repr__(self) -> str:
        return f"BothDomains({self.name!r}: {len(self.source):,} and {len(self.target):,} items)"

    @property
    def n_source(self) -> int:
        """How many items the source domain has."""
        return len(self.source)

    @property
    def n_items(self) -> int:
        """How many items both domains have together."""
        return len(self.source) + len(self.target)

    @cached_property
    def digest(self) -> str:
        """Of both lists of items, which comes first, and of the scale."""
        parts = [self.source.ids.tolist(), self.target.ids.tolist(), self.scale.low, self.scale.high]
        return sha256(json.dumps(parts).encode()).hexdigest()

    @cached_property
    def id_bytes(self) -> int:
        """How long all ids are in a message, with their commas."""
        ids = [*self.source.ids.tolist(), *self.target.ids.tolist()]
        return sum(len(json.dumps(one)) + 1 for one in ids)

    @classmethod
    def of(
        cls,
        domains: Domains,
        *,
        catalogues: tuple[Sequence[Any], Sequence[Any]] | None = None,
        public_catalogue: bool = False,
    ) -> "BothDomains":
        """The items that a list names; those that are known only because somebody rated them are left out, with their ratings.

        ``catalogues`` are public lists of the source's and of the target's items, for ratings that came without, or instead of
        theirs; released are these ids as they are written there. Where a domain has no list at all, that is refused, unless
        ``public_catalogue`` says that its items are public all the same: then the guarantee assumes so.
        """
        scale = one_scale(domains)
        if catalogues is None:
            lists = [list_of(part.catalogue) for part in both(domains)]
        else:
            if not isinstance(catalogues, tuple | list) or len(catalogues) != 2:
                raise InvalidParameter("catalogues are two lists of ids: (source_items, target_items).")
            lists = [listed(ids) for ids in catalogues]
        without = [f"the {side}" for side, found in zip(("source", "target"), lists, strict=True) if found is None]
        if without and not public_catalogue:
            raise InvalidParameter(
                f"{' and '.join(without)} came without a list of items, and which items were rated at all is private. Give public "
                "lists, catalogues=(source_items, target_items); or, if the rated items are public, say public_catalogue=True: the "
                "guarantee then says that it assumes so."
            )
        source, target = (found or part.catalogue for found, part in zip(lists, both(domains), strict=True))

        def read(least: int) -> sparse.csr_array:
            return union(over_both(domains, source, target), least)[0]

        assumed = (RATED_AT_ALL,) if without else ()
        return cls(source, target, scale, read, name_of(domains), assumed, people_of(domains))


def name_of(domains: Domains) -> str:
    return " and ".join(part.name for part in both(domains))


def people_of(domains: Domains) -> str:
    """As ``name_of``, in alphabetical order: whichever domain is the source, the users are the same, and so is their budget."""
    return " and ".join(sorted(part.name for part in both(domains)))


def one_scale(domains: Domains) -> Scale:
    """The scale of both domains: a rating is carried from one to the other as it is."""
    first, second = (part.scale for part in both(domains))
    if (first.low, first.high) != (second.low, second.high):
        raise InvalidParameter(
            f"the source is rated on the scale {first}, the target on {second}: bring the ratings to one scale, and state it when "
            "reading both."
        )
    return first if first == second else first.without_step()


def _require_ids(catalogue: Catalogue, side: str) -> None:
    """Refuses now what messages would refuse once something is drawn: that refusal would tell what was drawn."""
    if not len(catalogue):
        raise InvalidParameter(f"the {side} has no listed items.")
    try:
        checked_items(catalogue.ids.tolist(), most=len(catalogue))
    except InvalidMessage:
        raise InvalidParameter(
            f"the ids of the {side}'s items must be whole numbers from -2^53 to 2^53, or texts of 1 to 200 characters, for "
            "messages to carry them: give the catalogue shorter ids."
        ) from None
