"""Replacements: one target item for each of a public list of source items, drawn once and never again."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tacit.checks import keep
from tacit.errors import UnknownName
from tacit.guarantees import Guarantee
from tacit.messages import fields
from tacit.messages.cross_domain_parts import (
    checked_catalogues,
    checked_promise,
    checked_scale,
    known_ratings,
    load,
    of_format,
    place_of,
    places,
    save,
)
from tacit.messages.private_slates_parts import Item, read_guarantee

FORMAT = "tacit replacements/1"
_NAMES = ("format", "source", "target", "chosen", "scale", "guarantee")


@dataclass(frozen=True, eq=False, repr=False)
class Replacements:
    """For each item of a public list of source items, one of a public list of target items: ``chosen`` are its places there."""

    source: tuple[Item, ...]
    target: tuple[Item, ...]
    chosen: tuple[int, ...]
    scale: tuple[float, float]  # the lowest and the highest rating, in stars
    guarantee: Guarantee

    def __post_init__(self) -> None:
        source, target = checked_catalogues(self.source, self.target)
        drawn = places(list(self.chosen), "$.chosen", length=len(source), least=0, most=len(target) - 1)
        keep(self, source=source, target=target, chosen=tuple(drawn.tolist()), scale=checked_scale(self.scale))
        checked_promise(self.guarantee)

    def replacement(self, item: Any) -> Item:
        """The target item that stands in for a source item of the list."""
        place = place_of(item, self._places)
        if place is None or place >= len(self.source):
            raise UnknownName("this is no item of the list of source items that were replaced.")
        return self.target[self.chosen[place]]

    def alter_ego(self, profile: Mapping[Any, float]) -> dict[Item, float]:
        """A profile over the target items of the list, in its order: of source items with one replacement the mean rating.

        What the user really rated there wins. Items on neither list are passed over.
        """
        rated, values = known_ratings(profile, self._places, self.scale)
        first, n_target = len(self.source), len(self.target)
        from_source = rated < first
        to = np.array(self.chosen, dtype=np.int64)[rated[from_source]]
        count = np.bincount(to, minlength=n_target)
        mean = np.bincount(to, values[from_source], n_target) / np.maximum(count, 1)
        mean[rated[~from_source] - first] = values[~from_source]
        count[rated[~from_source] - first] = 1
        return {self.target[place]: float(mean[place]) for place in np.flatnonzero(count).tolist()}

    def to_json(self) -> dict[str, Any]:
        """The table as values for JSON."""
        return {
            "format": FORMAT,
            "source": list(self.source),
            "target": list(self.target),
            "chosen": list(self.chosen),
            "scale": list(self.scale),
            "guarantee": self.guarantee.to_json(),
        }

    @classmethod
    def from_json(cls, value: object) -> "Replacements":
        """What ``to_json`` wrote, checked whole; `InvalidMessage` where it is anything else."""
        found = of_format(value, "replacements", _NAMES, FORMAT)
        chosen = tuple(fields.listed(found["chosen"], "$.chosen"))
        return cls(found["source"], found["target"], chosen, found["scale"], read_guarantee(found["guarantee"]))

    def save(self, path: str | Path) -> Path:
        """As JSON: one file, whole or not at all, readable by its owner only."""
        return save(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> "Replacements":
        """The table of a file that ``save`` wrote; InvalidMessage where it holds none."""
        return cls.from_json(load(path))

    def __len__(self) -> int:
        return len(self.source)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Replacements) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Replacements({len(self.source):,} items by one of {len(self.target):,}; {self.guarantee})"

    @cached_property
    def _places(self) -> dict[Item, int]:
        return {item: place for place, item in enumerate((*self.source, *self.target))}
