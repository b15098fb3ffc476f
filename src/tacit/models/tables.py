"""Tables that a server computes once for each model: utilities of all look-alikes, and the top of each one's ranking.

For each look-alike they hold its features (float32), the utility of every class (16-bit fixed point, error below 1e-4
of the best score), and its r best items as a list of classes, members kept and exact utilities. That is about 2 bytes
per class, and a few hundred bytes besides.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import whole
from tacit.errors import InvalidModel, NoLookAlikes
from tacit.models import loops
from tacit.models.items import Classes
from tacit.models.scorers import Progress, Scorer, require_usable, scored_in_parts

FORMAT = "tacit-tables/1"
_LEVELS = 65535  # of a 16-bit utility


@dataclass(frozen=True, eq=False, repr=False)
class Tables:
    """Row a of every field belongs to look-alike a. Columns of ``utilities`` are classes, candidates first."""

    version: str  # of the store that they were computed from, with r
    r: int
    features: NDArray[np.float32]
    starts: NDArray[np.signedinteger[Any]]  # where each list begins, and the end of the last
    listed: NDArray[Any]  # classes of the top-r lists, by utility descending
    kept: NDArray[Any]  # how many members of each are among the r best items
    exact: NDArray[np.float32]  # their utilities
    utilities: NDArray[np.uint16]  # look-alikes x columns, in units of ``scale``
    scale: np.float32
    columns: NDArray[np.int32]  # the class of each column
    tops: NDArray[np.uint16]  # the largest utility of each row among candidates
    items: NDArray[np.int64]  # the smallest item of each candidate
    sizes: NDArray[np.int32]  # how many members each candidate has
    members: NDArray[np.int32]  # where its members begin in `Classes.members`

    @property
    def candidates(self) -> int:
        """How many classes stand in some top-r list. Their columns come first."""
        return int(self.items.size)

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        return f"Tables({len(self):,} look-alikes, {self.columns.size:,} classes, {self.bytes / 1e6:,.1f} MB)"

    @property
    def bytes(self) -> int:
        """How many bytes of memory the tables take."""
        return sum(array.nbytes for array in self._arrays().values())

    @cached_property
    def column_of(self) -> NDArray[np.int32]:
        """The column of each class."""
        columns = np.empty_like(self.columns)
        columns[self.columns] = np.arange(self.columns.size, dtype=np.int32)
        return columns

    @cached_property
    def reach(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The least and the largest value of each feature among look-alikes."""
        return self.features.min(axis=0), self.features.max(axis=0)

    def utilities_of(self, rows: NDArray[np.integer[Any]], classes: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Utilities of rows x classes, as floats."""
        values: NDArray[np.float64] = self.utilities[rows[:, None], self.column_of[classes]] * np.float64(self.scale)
        return values

    def save(self, path: str | Path) -> None:
        """Writes the tables to a file (safetensors), with a digest of their contents."""
        from safetensors.numpy import save_file

        arrays = self._arrays()
        about = {"format": FORMAT, "version": self.version, "r": self.r, "digest": _digest(arrays)}
        save_file(arrays, path, metadata={"tables": json.dumps(about)})

    @classmethod
    def load(cls, path: str | Path, version: str, *, mapped: bool = False) -> "Tables":
        """The tables that were saved for this version of a store.

        Raises InvalidModel for the tables of another model, and for damaged ones, because compiled loops do not check
        indices. ``mapped`` tables stay in the file: processes that map the same file share its pages. Replace such a
        file, never write to it.
        """
        from safetensors import SafetensorError

        try:
            about, arrays = _read_mapped(Path(path)) if mapped else _read(path)
            if about["format"] != FORMAT:
                raise ValueError
            sound = _digest(arrays) == about["digest"]
            tables = cls(about["version"], int(about["r"]), scale=np.float32(arrays.pop("scale")[0]), **arrays)
        except FileNotFoundError:
            raise
        except (SafetensorError, OSError, ValueError, LookupError, TypeError, AttributeError) as problem:
            raise InvalidModel(f"{path} has no tables of this version of tacit: build them again.") from problem
        if tables.version != version:
            raise InvalidModel(f"the tables in {path} belong to another model or r: build them again.")
        if not sound or not tables._consistent():
            raise InvalidModel(f"the tables in {path} are damaged: build them again.")
        return tables

    def _arrays(self) -> dict[str, NDArray[Any]]:
        named = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in named.items() if isinstance(value, np.ndarray)} | {
            "scale": np.array([self.scale], dtype=np.float32)
        }

    def _consistent(self) -> bool:
        """Whether every index lies within the array it points into."""
        n, classes, candidates = len(self.features), self.columns.size, self.items.size
        return bool(
            self.features.ndim == 2
            and self.utilities.shape == (n, classes)
            and self.starts.shape == (n + 1,)
            and self.starts[0] == 0
            and (np.diff(self.starts) >= 0).all()
            and self.starts[-1] == self.listed.size == self.kept.size == self.exact.size
            and int(self.listed.max(initial=0)) < classes
            and (np.sort(self.columns) == np.arange(classes)).all()
            and self.tops.shape == (n,)
            and 0 < candidates <= classes
            and self.sizes.shape == self.members.shape == (candidates,)
            and (self.sizes > 0).all()
            and np.isfinite(self.features).all()
            and np.isfinite(self.scale)
        )


def build_tables(
    scorer: Scorer,
    look_alikes: NDArray[Any],
    *,
    r: int = 100,
    store_version: str = "",
    progress: Progress | None = None,
    compiled: bool | None = None,
) -> Tables:
    """Scores every class for every look-alike once.

    ``r`` is the number of items in a top list. Memory beside the tables is bounded.
    """
    whole("r", r, least=1)
    if not len(look_alikes):
        raise NoLookAlikes("the store has no look-alikes, and tables need them. Fit the store with look-alikes.")
    require_usable(scorer, look_alikes)
    classes, work = scorer.classes, loops.choose(compiled)
    r = min(r, classes.n_items)
    utilities = np.empty((len(look_alikes), len(classes)), dtype=np.uint16)
    lists: list[tuple[NDArray[Any], NDArray[Any], NDArray[np.float32], NDArray[np.int64]]] = []
    # The best score is not known beforehand: if a score exceeds the scale, the scale grows and earlier rows are rescaled.
    scale = np.float32(0.0)

    def use(first: int, scores: NDArray[np.float32]) -> None:
        nonlocal scale
        top = np.float32(max(float(scores.max(initial=0.0)), 1e-6) / _LEVELS)
        if top > scale:
            if first and scale > 0.0:
                utilities[:first] = np.rint(utilities[:first] * (float(scale) / float(top * 1.25))).astype(np.uint16)
            scale = top if not first else np.float32(top * 1.25)
        utilities[first : first + len(scores)] = np.rint(scores / scale)
        lists.append(tops_of(work, scores, classes, r))

    scored_in_parts(scorer, np.asarray(look_alikes, dtype=np.float32), use, progress)
    listed = np.concatenate([part[0] for part in lists])
    ends = np.concatenate([[0], np.cumsum(np.concatenate([part[3] for part in lists]))])
    is_candidate = np.zeros(len(classes), dtype=np.bool_)
    is_candidate[listed] = True
    candidates = np.flatnonzero(is_candidate)
    columns = np.concatenate([candidates, np.flatnonzero(~is_candidate)]).astype(np.int32)
    for first in range(0, len(utilities), 1024):  # in place and in parts, because the table is large
        utilities[first : first + 1024] = utilities[first : first + 1024][:, columns]
    return Tables(
        version=tables_version(store_version, r),
        r=r,
        features=np.ascontiguousarray(look_alikes, dtype=np.float32),
        starts=ends.astype(np.int32 if ends[-1] < 1 << 31 else np.int64),
        listed=listed,
        kept=np.concatenate([part[1] for part in lists]),
        exact=np.concatenate([part[2] for part in lists]),
        utilities=utilities,
        scale=scale,
        columns=columns,
        tops=utilities[:, : candidates.size].max(axis=1),
        items=classes.first[candidates].astype(np.int64),
        sizes=classes.sizes[candidates],
        members=classes.starts[candidates],
    )


def tops_of(
    work: ModuleType, scores: NDArray[np.float32], classes: Classes, r: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float32], NDArray[np.int64]]:
    """The top-r lists of some rows, one after another: classes, members kept, utilities; and each list's length."""
    classes_listed, kept, lengths = work.top_lists(scores, classes.sizes, classes.starts, classes.members, r)
    inside = np.arange(classes_listed.shape[1]) < lengths[:, None]
    rows = np.repeat(np.arange(len(scores)), lengths)
    listed = classes_listed[inside]
    small = np.uint16 if len(classes) <= 1 << 16 else np.int32
    few = np.uint8 if r < 256 else np.int32
    return listed.astype(small), kept[inside].astype(few), scores[rows, listed], lengths


def tables_version(store_version: str, r: int) -> str:
    """The version of tables for this store and list length."""
    return f"{store_version}/r={r}"


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What `Tables.save` wrote, and its metadata."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        about = json.loads((file.metadata() or {}).get("tables", "{}"))
        return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)


# The format's names of the types that tables have.
_TYPES = {"U8": "u1", "U16": "<u2", "I32": "<i4", "I64": "<i8", "F32": "<f4"}


def _read_mapped(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """`_read` from a mapped file: 8 bytes with the length of the header, the header in JSON, then the arrays."""
    # Mode "c" keeps writes in this process. Nothing is written, but read-only arrays would make numba compile all loops again.
    content = np.memmap(path, dtype=np.uint8, mode="c")
    start = 8 + int.from_bytes(content[:8].tobytes(), "little")
    header = json.loads(content[8:start].tobytes())
    about = json.loads(header.pop("__metadata__", {}).get("tables", "{}"))
    arrays: dict[str, NDArray[Any]] = {}
    for name, tensor in header.items():
        first, end = tensor["data_offsets"]
        part = np.asarray(content[start + first : start + end])
        arrays[name] = part.view(_TYPES[tensor["dtype"]]).reshape(tensor["shape"])
    return about, arrays


def _digest(arrays: dict[str, NDArray[Any]]) -> str:
    digest = sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()
