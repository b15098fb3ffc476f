"""A store: what a server may hold. Items, feature space, scorer, look-alikes, and what each of them promises.

One file in the safetensors format: open, and unable to carry code. What is read is checked whole, or refused.
"""

import os
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep
from tacit.errors import InvalidModel
from tacit.guarantees.composition import compose
from tacit.guarantees.guarantee import Guarantee
from tacit.messages import store_file
from tacit.messages.look_alikes import checked_sizes
from tacit.messages.scorers import Tensors, items_of, require_storable, scorer_of, space_of
from tacit.models.features import FeatureSpace
from tacit.models.items import Items
from tacit.models.scorer import Scorer

_TOLERANCE = 1e-6  # of a look-alike's coordinate: it was rounded to float32
_LONGEST_NAME = 200


@dataclass(frozen=True, eq=False, repr=False)
class Store:
    """Everything that a server needs to answer signals. Nothing in it may be private, beyond what the guarantees promise."""

    items: Items
    space: FeatureSpace
    scorer: Scorer
    look_alikes: NDArray[np.float32]  # users x features
    model_guarantee: Guarantee  # of the scorer and the space, towards the users whose ratings fitted them
    look_alikes_guarantee: Guarantee
    name: str = "store"
    look_alike_sizes: NDArray[np.float32] | None = None  # how many people each stands for; None: one each

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isprintable() or not 0 < len(self.name) <= _LONGEST_NAME:
            raise InvalidModel(f"the name of a store must be 1 to {_LONGEST_NAME} printable characters.")
        if self.scorer.dimension != self.space.dimension:
            raise InvalidModel(
                f"the scorer takes {self.scorer.dimension} features, the feature space has {self.space.dimension}."
            )
        known = items_of(self.space)
        if self.scorer.classes.n_items != len(self.items) or known not in (None, len(self.items)):
            raise InvalidModel(
                f"the scorer and the feature space must know the {len(self.items):,} items of the store."
            )
        keep(self, look_alikes=_checked(self.look_alikes, self.space))
        if self.look_alike_sizes is not None:
            keep(self, look_alike_sizes=checked_sizes(self.look_alike_sizes, len(self.look_alikes)))

    @property
    def guarantee(self) -> Guarantee:
        """What scorer and look-alikes promise together; nothing, with every reason, where either promises nothing."""
        model, look_alikes = self.model_guarantee, self.look_alikes_guarantee
        silent = next((one for one in (model, look_alikes) if one.promises_nothing), None)
        if silent is not None:  # also where the other one protects another unit: there is nothing to add up
            return silent.assuming(*model.assumes, *look_alikes.assumes)
        return compose([model, look_alikes])

    @cached_property
    def version(self) -> str:
        """A digest of all that the store holds: equal versions give equal answers."""
        return store_file.digest(self._header(), self._tensors())

    def save(self, path: str | Path) -> Path:
        """One file, whole or not at all, readable by its owner only."""
        path = Path(path)
        content = self._packed()
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
        os.close(handle)
        try:
            store_file.write(Path(partial), *content)
            os.replace(partial, path)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Store":
        """What `save` wrote, checked again; `InvalidModel` where it is anything else."""
        return cls._unpacked(*store_file.read(Path(path)))

    def to_bytes(self) -> bytes:
        """The store in the compact binary form."""
        return store_file.to_bytes(*self._packed())

    @classmethod
    def from_bytes(cls, content: bytes) -> "Store":
        """The store of such bytes, checked; InvalidModel for anything else."""
        return cls._unpacked(*store_file.from_bytes(content))

    def __repr__(self) -> str:
        return f"Store({self.name!r}: {len(self.items):,} items, {len(self.look_alikes):,} look-alikes)"

    def __str__(self) -> str:
        classes, space = len(self.scorer.classes), self.space
        weighed = "" if self.look_alike_sizes is None else ", weighed by size"
        return (
            f"store {self.name!r}, version {self.version[:12]}\n"
            f"  items        {len(self.items):,}, of which {classes:,} differ to the scorer\n"
            f"  features     {space.dimension} ({space.kind}), L1 diameter {space.diameter:g}\n"
            f"  scorer       {self.scorer.kind}: {self.model_guarantee}\n"
            f"  look-alikes  {len(self.look_alikes):,}{weighed}: {self.look_alikes_guarantee}"
        )

    def _packed(self) -> tuple[store_file.Header, Tensors]:
        require_storable(self.scorer, self.space)
        return self._header() | {"digest": self.version}, self._tensors()

    def _header(self) -> store_file.Header:
        return {
            "format": store_file.FORMAT,
            "name": self.name,
            "space": self.space.kind,
            "scorer": self.scorer.kind,
            "model_guarantee": self.model_guarantee.to_json(),
            "look_alikes_guarantee": self.look_alikes_guarantee.to_json(),
        }

    def _tensors(self) -> Tensors:
        parts = {
            "items": store_file.items_to_tensors(self.items),
            "space": self.space.tensors(),
            "scorer": self.scorer.tensors(),
        }
        named = {f"{part}.{name}": tensor for part, held in parts.items() for name, tensor in held.items()}
        sizes = {} if self.look_alike_sizes is None else {"look_alike_sizes": self.look_alike_sizes}
        return named | {"look_alikes": self.look_alikes} | sizes

    @classmethod
    def _unpacked(cls, header: store_file.Header, tensors: Tensors) -> "Store":
        store_file.require_finite(tensors)
        store = cls(
            items=store_file.items_from_tensors(store_file.part(tensors, "items")),
            space=space_of(header.get("space"), store_file.part(tensors, "space")),
            scorer=scorer_of(header.get("scorer"), store_file.part(tensors, "scorer")),
            look_alikes=store_file.named(tensors, "look_alikes"),
            model_guarantee=store_file.guarantee(header, "model_guarantee"),
            look_alikes_guarantee=store_file.guarantee(header, "look_alikes_guarantee"),
            name=header.get("name", ""),
            look_alike_sizes=tensors.get("look_alike_sizes"),
        )
        # Of what was read: no bit changed, no tensor too many. Of what was rebuilt: nothing was lost or converted on the way.
        said = {name: value for name, value in header.items() if name != "digest"}
        if not header.get("digest") == store_file.digest(said, tensors) == store.version:
            raise InvalidModel(
                "the store is not what was written: a part of it was changed or damaged. Copy or fit it again."
            )
        return store


def _checked(look_alikes: NDArray[np.float32], space: FeatureSpace) -> NDArray[np.float32]:
    rows = np.array(look_alikes, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] != space.dimension:
        raise InvalidModel(f"look-alikes must be a table of {space.dimension} features each.")
    if not ((rows >= space.low - _TOLERANCE) & (rows <= space.high + _TOLERANCE)).all():  # NaN fails too
        raise InvalidModel(
            f"every feature of a look-alike must lie from {space.low:g} to {space.high:g}: clip what was released with noise."
        )
    rows.flags.writeable = False
    return rows
