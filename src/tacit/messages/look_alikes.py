"""Released look-alikes: rows of features, how many people each stands for, and what protects those people."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep
from tacit.errors import InvalidModel, InvalidParameter
from tacit.guarantees.composition import parallel
from tacit.guarantees.guarantee import Guarantee
from tacit.messages import store_file

MOST = 1 << 20  # look-alikes of a message
NOBODY_TWICE = "nobody is behind two of the releases that were put together"
_KIND = "look-alikes/1"


@dataclass(frozen=True, eq=False, repr=False)
class LookAlikes:
    """``rows`` of features and their ``sizes``, above 0, which a server takes as weights. Nothing else of anybody is in it."""

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
        keep(self, rows=rows, sizes=checked_sizes(self.sizes, len(rows)))

    @classmethod
    def joined(cls, parts: Sequence["LookAlikes"], *, disjoint: str = NOBODY_TWICE) -> "LookAlikes":
        """The releases of several organisations as one, which promises what the weakest of them does.

        Each protects its own users; that no user is in two of them is assumed, and said in ``disjoint``.
        """
        if not parts or len({part.rows.shape[1] for part in parts}) > 1:
            raise InvalidParameter("look-alikes are put together from one release or more, of the same features.")
        if len(parts) == 1:
            return parts[0]
        silent = next((part.guarantee for part in parts if part.guarantee.promises_nothing), None)
        together = silent or parallel([part.guarantee for part in parts], disjoint=disjoint)
        return cls(
            np.concatenate([part.rows for part in parts]), np.concatenate([part.sizes for part in parts]), together
        )

    def to_bytes(self) -> bytes:
        """The look-alikes in the compact binary form."""
        header: store_file.Header = {"format": store_file.FORMAT, "kind": _KIND, "guarantee": self.guarantee.to_json()}
        tensors = {"rows": self.rows, "sizes": self.sizes}
        return store_file.to_bytes(header | {"digest": store_file.digest(header, tensors)}, tensors)

    @classmethod
    def from_bytes(cls, content: bytes) -> "LookAlikes":
        """What `to_bytes` wrote, checked again; `InvalidModel` where it is anything else."""
        header, tensors = store_file.from_bytes(content)
        said = {name: value for name, value in header.items() if name != "digest"}
        if header.get("kind") != _KIND or header.get("digest") != store_file.digest(said, tensors):
            raise InvalidModel("these are not the look-alikes that were written: copy them again.")
        if set(tensors) != {"rows", "sizes"}:
            raise InvalidModel("a message of look-alikes holds rows and sizes, and nothing else.")
        return cls(tensors["rows"], tensors["sizes"], store_file.guarantee(header, "guarantee"))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"LookAlikes({len(self):,}; {self.guarantee})"


def checked_sizes(sizes: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """One finite number above 0 for each look-alike."""
    values = np.array(sizes, dtype=np.float32)
    if values.shape != (count,) or not (np.isfinite(values) & (values > 0.0)).all():
        raise InvalidModel("look-alikes have one size each, a finite number above 0.")
    values.flags.writeable = False
    return values
