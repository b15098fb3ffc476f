"""The messages of cross-domain: what a curator of two domains releases, for anybody to keep and to compute with.

curator -> anybody  TransferModel  offsets and directions of taste, from noisy moments: predictions from one's own ratings
curator -> anybody  Replacements   one target item for each of a public list of source items: alter egos of one's own ratings

Whoever is served keeps her own ratings: they are put in on her side, and nothing of them goes back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tacit.checks import keep, whole
from tacit.errors import InvalidMessage
from tacit.guarantees import Guarantee
from tacit.messages import cross_domain_models as models
from tacit.messages.cross_domain_parts import (
    asked_places,
    checked_catalogues,
    checked_promise,
    checked_scale,
    known_ratings,
    load,
    of_format,
    save,
)
from tacit.messages.cross_domain_replacements import Replacements
from tacit.messages.private_slates_parts import Item, read_guarantee
from tacit.models.cross_domain.transfer import Transfer

__all__ = ["Item", "Replacements", "TransferModel"]

FORMAT = "tacit transfer/1"
_NAMES = ("format", "kind", "source", "target", "scale", "model", "guarantee")


@dataclass(frozen=True, eq=False, repr=False)
class TransferModel:
    """Predictions in the target from ratings in the source. All that they depend on is in here; any number of them cost nothing.

    ``source`` and ``target`` are the public catalogues, in the order of the model's codes. The guarantee protects those whose
    ratings were added up. It says nothing of who is served: a prediction tells of the profile it was made from.
    """

    source: tuple[Item, ...]
    target: tuple[Item, ...]
    model: Transfer
    guarantee: Guarantee

    def __post_init__(self) -> None:
        source, target = checked_catalogues(self.source, self.target)
        checked_promise(self.guarantee, gaussian=True)
        kind, scale = models.kind_of(self.model), checked_scale(models.scale_of(self.model))
        n_source, n_items = len(source), len(source) + len(target)
        if (self.model.n_source, self.model.n_items) != (n_source, n_items):
            raise InvalidMessage("expected a model of the items of these catalogues.")
        # read from its own JSON: checked as one that arrives, and nobody else holds its arrays
        model = models.from_json(kind, models.to_json(self.model), n_source, n_items, scale)
        keep(self, source=source, target=target, model=model)

    @property
    def kind(self) -> str:
        """How predictions are made: factor-posterior, bridge, honest-x-map or offsets."""
        return models.kind_of(self.model)

    @property
    def scale(self) -> tuple[float, float]:
        """The lowest and the highest rating, in stars: predictions lie within."""
        return models.scale_of(self.model)

    @property
    def directions(self) -> int:
        """Of taste, above the noise. 0: the budget supports averages and the user's own level, and no transfer of taste."""
        return self.model.directions

    @property
    def crossing(self) -> int:
        """Of the directions, those that link the domains. 0: no taste is carried from one to the other."""
        return self.model.crossing

    @property
    def remark(self) -> str:
        """In one sentence, how much taste the noise left to carry over."""
        return self.model.remark

    def predict(self, profile: Mapping[Any, float], items: Iterable[Any] | None = None) -> dict[Item, float]:
        """Ratings on the scale, not rounded: of ``items``, or of every target item.

        Items of the profile that neither catalogue lists are passed over; 17 and "17" are one.
        """
        if items is None:
            wanted, names = np.arange(len(self.source), self.model.n_items), list(self.target)
        else:
            names, wanted = asked_places(items, self._places)
        rated, values = known_ratings(profile, self._places, self.scale)
        return dict(zip(names, self.model.predict(rated, values, wanted).tolist(), strict=True))

    def recommend(self, profile: Mapping[Any, float], k: int = 10) -> tuple[Item, ...]:
        """The k target items of highest prediction that the profile does not hold; of equal ones the first of the catalogue."""
        k = whole("k", k, least=1)
        rated, _ = known_ratings(profile, self._places, self.scale)
        held = {self.target[place - len(self.source)] for place in rated.tolist() if place >= len(self.source)}
        left = {item: value for item, value in self.predict(profile).items() if item not in held}
        return tuple(sorted(left, key=lambda item: -left[item])[:k])  # sorting keeps the order of equals

    def alter_ego(self, profile: Mapping[Any, float]) -> dict[Item, float]:
        """A profile in the target: what the user really rated there, and the prediction of every other target item."""
        first, (rated, values) = len(self.source), known_ratings(profile, self._places, self.scale)
        pairs = zip(rated.tolist(), values.tolist(), strict=True)
        real = {self.target[place - first]: value for place, value in pairs if place >= first}
        return self.predict(profile) | real

    def to_json(self) -> dict[str, Any]:
        """The model as values for JSON."""
        return {
            "format": FORMAT,
            "kind": self.kind,
            "source": list(self.source),
            "target": list(self.target),
            "scale": list(self.scale),
            "model": models.to_json(self.model),
            "guarantee": self.guarantee.to_json(),
        }

    @classmethod
    def from_json(cls, value: object) -> "TransferModel":
        """What ``to_json`` wrote, checked whole; `InvalidMessage` where it is anything else."""
        found = of_format(value, "a transfer model", _NAMES, FORMAT)
        source, target = checked_catalogues(found["source"], found["target"])
        scale = checked_scale(found["scale"])
        model = models.from_json(found["kind"], found["model"], len(source), len(source) + len(target), scale)
        return cls(source, target, model, read_guarantee(found["guarantee"]))

    def save(self, path: str | Path) -> Path:
        """As JSON: one file, whole or not at all, readable by its owner only."""
        return save(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> "TransferModel":
        """The model of a file that ``save`` wrote; InvalidMessage where it holds none."""
        return cls.from_json(load(path))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TransferModel) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        sizes = f"{len(self.source):,} + {len(self.target):,} items"
        found = f"directions: {self.directions}, crossing: {self.crossing}"
        return f"TransferModel({self.kind}; {sizes}; {found}; {self.guarantee}). {self.remark}"

    @cached_property
    def _places(self) -> dict[Item, int]:
        return {item: place for place, item in enumerate((*self.source, *self.target))}
