"""A store: everything that a server of multi-selection holds. Items, feature space, scorer, look-alikes, and their guarantees.

A store is one file in the safetensors format, which cannot carry code: tensors, and one JSON text beside them. tacit checks all of
it when it reads it.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep
from tacit.errors import InvalidGuarantee, InvalidModel, InvalidParameter
from tacit.files import OWNER_ONLY, draft
from tacit.guarantees import ONE_USER, Guarantee, Release, compose, nothing, pure
from tacit.guarantees.composition import parallel
from tacit.messages.codec import ReleaseOnly, checked_message, make, value_of
from tacit.models.features import FeatureSpace, FoldedTaste, GenreProfile
from tacit.models.items import Items
from tacit.models.scorers import FactorScorer, OnnxScorer, RatingNetwork, Scorer, TwoTower

Tensors: TypeAlias = dict[str, NDArray[Any]]
Header: TypeAlias = dict[str, Any]
T = TypeVar("T")

FORMAT = 1
MOST = 1 << 20  # look-alikes of a message
WITHOUT_NOISE = nothing(
    ONE_USER, "the model was fitted without noise: its training ratings must be public or consented"
)
REAL_USERS = nothing(ONE_USER, "look-alikes are features of real users, taken as public")
NOBODY_TWICE = "nobody is behind two of the releases that were put together"  # in stored guarantees: never changes
_KIND = "look-alikes/1"
_KEY = "tacit.store"
_NO_STORE = "this is not a store of tacit, or it is cut off. `tacit fit` writes one."
_TOLERANCE = 1e-6  # of a look-alike's coordinate: it was rounded to float32
_LONGEST_NAME = 200

# Stored scorers and feature spaces are rebuilt by these tables: a file names a kind, never code.
SCORERS: dict[str, Callable[[Tensors], Scorer]] = {
    RatingNetwork.kind: RatingNetwork.from_tensors,
    TwoTower.kind: TwoTower.from_tensors,
    FactorScorer.kind: FactorScorer.from_tensors,
    OnnxScorer.kind: OnnxScorer.from_tensors,
}
SPACES: dict[str, Callable[[Tensors], FeatureSpace]] = {
    GenreProfile.kind: GenreProfile.from_tensors,
    FoldedTaste.kind: FoldedTaste.from_tensors,
}


@dataclass(frozen=True, eq=False, repr=False)
class Store(metaclass=ReleaseOnly):
    """Everything that a server needs to answer signals. Two guarantees bound how much it reveals about users.

    `tacit.fit` makes one of ratings, and ``Store.of`` makes one of your own scorer.
    """

    items: Items
    space: FeatureSpace
    scorer: Scorer
    look_alikes: NDArray[np.float32]  # users x features
    model_guarantee: Guarantee  # of the scorer and the space, towards the users whose ratings fitted them
    look_alikes_guarantee: Guarantee
    name: str = "store"
    look_alike_sizes: NDArray[np.float32] | None = None  # the number of people behind each; None: one each

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isprintable() or not 0 < len(self.name) <= _LONGEST_NAME:
            raise InvalidModel(f"the name of a store must be 1 to {_LONGEST_NAME} printable characters.")
        if self.scorer.dimension != self.space.dimension:
            raise InvalidModel(
                f"the scorer takes {self.scorer.dimension} features, the feature space has {self.space.dimension}."
            )
        in_space = _count_items(self.space)
        if self.scorer.classes.n_items != len(self.items) or in_space not in (None, len(self.items)):
            raise InvalidModel(
                f"the scorer and the feature space must know the {len(self.items):,} items of the store."
            )
        keep(self, look_alikes=_checked_rows(self.look_alikes, self.space))
        if self.look_alike_sizes is not None:
            keep(self, look_alike_sizes=_checked_sizes(self.look_alike_sizes, len(self.look_alikes)))

    @classmethod
    def of(
        cls,
        items: Items,
        space: FeatureSpace,
        model: Scorer | Release[Scorer],
        look_alikes: "NDArray[Any] | LookAlikes | None" = None,
        *,
        name: str = "store",
    ) -> "Store":
        """A store with the guarantees of what was released; everything else promises nothing.

        A scorer that no mechanism released was fitted without noise. A bare table of ``look_alikes`` shows real users. A store
        without look-alikes reveals nobody.
        """
        scorer, fitted = (model.value, model.guarantee) if isinstance(model, Release) else (model, WITHOUT_NOISE)
        table: NDArray[Any]
        if look_alikes is None:
            table, sizes, shown = np.zeros((0, space.dimension)), None, pure(0.0, ONE_USER)
        elif isinstance(look_alikes, LookAlikes):
            table, sizes, shown = look_alikes.rows, look_alikes.sizes, look_alikes.guarantee
        else:
            table, sizes, shown = look_alikes, None, REAL_USERS
        return make(cls, items, space, scorer, np.asarray(table, dtype=np.float32), fitted, shown, name, sizes)

    def with_look_alikes(self, look_alikes: "LookAlikes") -> "Store":
        """The same model with these look-alikes."""
        rows, sizes = checked_message(look_alikes, LookAlikes).rows, look_alikes.sizes
        model = (self.items, self.space, self.scorer)
        return make(Store, *model, rows, self.model_guarantee, look_alikes.guarantee, self.name, sizes)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of scorer and look-alikes together. If one of them promises nothing, neither does the store."""
        model, look_alikes = self.model_guarantee, self.look_alikes_guarantee
        silent = next((part for part in (model, look_alikes) if part.promises_nothing), None)
        if silent is not None:  # also if the other one protects another unit: there is nothing to add up
            return silent.assuming(*model.assumes, *look_alikes.assumes)
        return compose([model, look_alikes])

    @cached_property
    def version(self) -> str:
        """A digest of everything in the store. Stores of equal versions give equal answers."""
        return digest(self._header(), self._tensors())

    def save(self, path: str | Path) -> Path:
        """Writes one file, whole or not at all, readable by its owner only."""
        path = Path(path)
        content = self._packed()
        with draft(path, mode=OWNER_ONLY) as temporary:
            _write(temporary, *content)
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Store":
        """The store of a file that `save` wrote, checked again; `InvalidModel` for anything else."""
        return cls._unpacked(*_read_file(Path(path)))

    def to_bytes(self) -> bytes:
        """The store in the compact binary form."""
        return _packed(*self._packed())

    @classmethod
    def from_bytes(cls, content: bytes) -> "Store":
        """The store of such bytes, checked; InvalidModel for anything else."""
        return cls._unpacked(*_unpacked(content))

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

    def _packed(self) -> tuple[Header, Tensors]:
        _require_storable(self.scorer, self.space)
        return self._header() | {"digest": self.version}, self._tensors()

    def _header(self) -> Header:
        return {
            "format": FORMAT,
            "name": self.name,
            "space": self.space.kind,
            "scorer": self.scorer.kind,
            "model_guarantee": self.model_guarantee.to_json(),
            "look_alikes_guarantee": self.look_alikes_guarantee.to_json(),
        }

    def _tensors(self) -> Tensors:
        parts = {
            "items": _items_to_tensors(self.items),
            "space": self.space.tensors(),
            "scorer": self.scorer.tensors(),
        }
        named = {f"{part}.{name}": tensor for part, own in parts.items() for name, tensor in own.items()}
        sizes = {} if self.look_alike_sizes is None else {"look_alike_sizes": self.look_alike_sizes}
        return named | {"look_alikes": self.look_alikes} | sizes

    @classmethod
    def _unpacked(cls, header: Header, tensors: Tensors) -> "Store":
        _require_finite(tensors)
        store = make(
            cls,
            items=_items_from_tensors(_part(tensors, "items")),
            space=_rebuild("feature space", SPACES, header.get("space"), _part(tensors, "space")),
            scorer=_rebuild("scorer", SCORERS, header.get("scorer"), _part(tensors, "scorer")),
            look_alikes=_tensor(tensors, "look_alikes"),
            model_guarantee=_guarantee(header, "model_guarantee"),
            look_alikes_guarantee=_guarantee(header, "look_alikes_guarantee"),
            name=header.get("name", ""),
            look_alike_sizes=tensors.get("look_alike_sizes"),
        )
        # Equal to the digest of the content: no bit changed, no tensor added. Equal to the store's: nothing was lost or converted.
        stated = {name: value for name, value in header.items() if name != "digest"}
        if not header.get("digest") == digest(stated, tensors) == store.version:
            raise InvalidModel("the store was changed or damaged after it was written. Copy it or fit it again.")
        return store


@dataclass(frozen=True, eq=False, repr=False)
class LookAlikes(metaclass=ReleaseOnly):
    """Released look-alikes: ``rows`` of features, the number of people behind each (``sizes``), and their guarantee.

    A server weighs each row by its size.
    """

    rows: NDArray[np.float32]
    sizes: NDArray[np.float32]
    guarantee: Guarantee

    def __post_init__(self) -> None:
        rows = np.array(self.rows, dtype=np.float32)
        if rows.ndim != 2 or not len(rows) <= MOST or not np.isfinite(rows).all():
            raise InvalidModel(f"look-alikes must be a table of finite features, of at most {MOST:,} rows.")
        if not isinstance(self.guarantee, Guarantee):
            raise InvalidModel("released look-alikes state a guarantee.")
        rows.flags.writeable = False
        keep(self, rows=rows, sizes=_checked_sizes(self.sizes, len(rows)))

    @classmethod
    def from_release(cls, release: Release[tuple[NDArray[Any], NDArray[Any]]]) -> "LookAlikes":
        """The message of a release: rows of features, and the size of each."""
        rows, sizes = value_of(release)
        return make(cls, rows, sizes, release.guarantee)

    @classmethod
    def of_nobody(cls, rows: NDArray[Any], sizes: NDArray[Any]) -> "LookAlikes":
        """Look-alikes computed from public numbers alone: a baseline that costs nobody anything."""
        return make(cls, rows, sizes, pure(0.0, ONE_USER))

    @classmethod
    def joined(cls, parts: Sequence["LookAlikes"], *, disjoint: str = NOBODY_TWICE) -> "LookAlikes":
        """The releases of several organisations as one, with the weakest of their guarantees.

        Each release protects its own users. The result assumes that no user is in two of them; ``disjoint`` is that assumption.
        """
        if not parts or len({checked_message(part, LookAlikes).rows.shape[1] for part in parts}) > 1:
            raise InvalidParameter("pass at least one release, and releases of the same features.")
        if len(parts) == 1:
            return parts[0]
        silent = next((part.guarantee for part in parts if part.guarantee.promises_nothing), None)
        together = silent or parallel([part.guarantee for part in parts], disjoint=disjoint)
        return make(
            cls, np.concatenate([part.rows for part in parts]), np.concatenate([part.sizes for part in parts]), together
        )

    def to_bytes(self) -> bytes:
        """The look-alikes in the compact binary form."""
        header: Header = {"format": FORMAT, "kind": _KIND, "guarantee": self.guarantee.to_json()}
        tensors = {"rows": self.rows, "sizes": self.sizes}
        return _packed(header | {"digest": digest(header, tensors)}, tensors)

    @classmethod
    def from_bytes(cls, content: bytes) -> "LookAlikes":
        """The look-alikes that `to_bytes` wrote, checked again; `InvalidModel` for anything else."""
        header, tensors = _unpacked(content)
        stated = {name: value for name, value in header.items() if name != "digest"}
        if header.get("kind") != _KIND or header.get("digest") != digest(stated, tensors):
            raise InvalidModel("the look-alikes were changed or damaged after they were written. Copy them again.")
        if set(tensors) != {"rows", "sizes"}:
            raise InvalidModel("a message of look-alikes has the tensors rows and sizes, and no others.")
        return make(cls, tensors["rows"], tensors["sizes"], _guarantee(header, "guarantee"))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"LookAlikes({len(self):,}; {self.guarantee})"


def digest(header: Header, tensors: Tensors) -> str:
    """SHA-256 over the header and every tensor: its name, type, shape and bytes."""
    total = hashlib.sha256(_canonical(header))
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        total.update(_canonical([name, tensor.dtype.str, tensor.shape]))
        total.update(tensor.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def _write(path: Path, header: Header, tensors: Tensors) -> None:
    from safetensors.numpy import save_file

    save_file(_contiguous(tensors), path, metadata={_KEY: _canonical(header).decode()})


def _packed(header: Header, tensors: Tensors) -> bytes:
    from safetensors.numpy import save

    content: bytes = save(_contiguous(tensors), metadata={_KEY: _canonical(header).decode()})
    return content


def _read_file(path: Path) -> tuple[Header, Tensors]:
    from safetensors import SafetensorError, safe_open

    with path.open("rb"):  # a file that is missing or cannot be read raises OSError
        pass
    try:
        with safe_open(path, framework="numpy") as file:  # maps the file: each tensor is copied once
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as problem:
        raise InvalidModel(f"{path}: {_NO_STORE}") from problem
    return _header(metadata), tensors


def _unpacked(content: bytes) -> tuple[Header, Tensors]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + length]).get("__metadata__")
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as problem:
        raise InvalidModel(_NO_STORE) from problem
    return _header(metadata), tensors


def _tensor(tensors: Tensors, name: str) -> NDArray[Any]:
    if name not in tensors:
        raise InvalidModel(f"the store lacks {name!r}. Fit it again.")
    return tensors[name]


def _part(tensors: Tensors, prefix: str) -> Tensors:
    """The tensors whose names begin with ``prefix``, without it."""
    return {
        name.removeprefix(f"{prefix}."): tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")
    }


def _require_finite(tensors: Tensors) -> None:
    for name, tensor in tensors.items():
        if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise InvalidModel(f"{name!r} of the store holds a number that is not finite. Fit it again.")


def _guarantee(header: Header, name: str) -> Guarantee:
    try:
        return Guarantee.from_json(header[name])
    except (KeyError, TypeError, AttributeError, InvalidGuarantee) as problem:
        raise InvalidModel(f"the store states no valid {name}. Fit it again.") from problem


def _items_to_tensors(items: Items) -> Tensors:
    ids: Tensors = (
        {"ids": items.ids.astype(np.int64)} if items.ids.dtype.kind in "iu" else _texts("ids", items.ids.tolist())
    )
    return ids if items.titles is None else ids | _texts("titles", items.titles)


def _items_from_tensors(tensors: Tensors) -> Items:
    ids = np.array(_listed(tensors, "ids"), dtype=np.str_) if "ids.ends" in tensors else _tensor(tensors, "ids")
    if ids.dtype.kind not in "iU":
        raise InvalidModel("the ids of a store must be whole numbers or texts.")
    return Items(ids, tuple(_listed(tensors, "titles")) if "titles" in tensors else None)


def _texts(name: str, texts: list[str] | tuple[str, ...]) -> Tensors:
    """Texts in UTF-8, one after the other, and where each ends. The format limits the size of a header, not of a tensor."""
    coded = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in coded], dtype=np.int64)
    return {name: np.frombuffer(b"".join(coded), dtype=np.uint8), f"{name}.ends": ends}


def _listed(tensors: Tensors, name: str) -> list[str]:
    joined, ends = _tensor(tensors, name), _tensor(tensors, f"{name}.ends")
    bounds = [0, *ends.tolist()]
    try:
        if joined.dtype != np.uint8 or ends.dtype != np.int64 or ends.ndim != 1 or bounds[-1] != joined.size:
            raise ValueError
        if any(end < start for start, end in pairwise(bounds)):
            raise ValueError
        content = joined.tobytes()
        return [content[start:end].decode() for start, end in pairwise(bounds)]
    except ValueError as problem:
        raise InvalidModel(f"the {name} of the store cannot be read as texts. Fit it again.") from problem


def _header(metadata: object) -> Header:
    try:
        header = json.loads(metadata[_KEY])  # type: ignore[index]
        version = header["format"]
    except (KeyError, TypeError, ValueError, RecursionError) as problem:
        raise InvalidModel(_NO_STORE) from problem
    if version != FORMAT:
        raise InvalidModel(f"the store has a format that this version does not know (it knows {FORMAT}). Update tacit.")
    return dict(header)


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _contiguous(tensors: Tensors) -> Tensors:
    return {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}


def _require_storable(scorer: Scorer, space: FeatureSpace) -> None:
    """Raises InvalidModel for a scorer or space that could be written but not read again."""
    for what, table, kind in (("scorer", SCORERS, scorer.kind), ("feature space", SPACES, space.kind)):
        if kind not in table:
            raise InvalidModel(f"a {what} of kind {kind!r} cannot be stored; these can: {', '.join(table)}.")


def _count_items(space: FeatureSpace) -> int | None:
    """The number of items that a space knows; None if it does not depend on items."""
    if isinstance(space, GenreProfile):
        return int(space.flags.shape[0])
    return getattr(space, "n_items", None)


def _rebuild(what: str, table: dict[str, Callable[[Tensors], T]], kind: object, tensors: Tensors) -> T:
    build = table.get(kind) if isinstance(kind, str) else None
    if build is None:
        raise InvalidModel(
            f"the file holds a {what} of a kind that this version does not know; it knows {', '.join(table)}. Update tacit."
        )
    try:
        return build(tensors)
    except InvalidModel:
        raise
    except (KeyError, IndexError, TypeError, ValueError) as problem:
        raise InvalidModel(
            f"the file lacks a part of its {what} of kind {kind!r}, or holds it in another shape. Fit the store again."
        ) from problem


def _checked_sizes(sizes: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """One finite number above 0 for each look-alike."""
    values = np.array(sizes, dtype=np.float32)
    if values.shape != (count,) or not (np.isfinite(values) & (values > 0.0)).all():
        raise InvalidModel("look-alikes have one size each, a finite number above 0.")
    values.flags.writeable = False
    return values


def _checked_rows(look_alikes: NDArray[np.float32], space: FeatureSpace) -> NDArray[np.float32]:
    rows = np.array(look_alikes, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] != space.dimension:
        raise InvalidModel(f"look-alikes must be a table of {space.dimension} features each.")
    if not ((rows >= space.low - _TOLERANCE) & (rows <= space.high + _TOLERANCE)).all():  # NaN fails too
        raise InvalidModel(
            f"every feature of a look-alike must lie from {space.low:g} to {space.high:g}: clip noisy features."
        )
    rows.flags.writeable = False
    return rows
