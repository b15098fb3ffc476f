"""The file of a store: tensors in the safetensors format, and one JSON text beside them."""

import hashlib
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidGuarantee, InvalidModel
from tacit.guarantees.guarantee import Guarantee
from tacit.messages.scorers import Tensors
from tacit.models.items import Items

FORMAT = 1
Header: TypeAlias = dict[str, Any]
_KEY = "tacit.store"
_NO_STORE = "this is not a store of tacit, or it is cut off. `tacit fit` writes one."


def digest(header: Header, tensors: Tensors) -> str:
    """SHA-256 over the header and every tensor: its name, type, shape and bytes."""
    total = hashlib.sha256(_canonical(header))
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        total.update(_canonical([name, tensor.dtype.str, tensor.shape]))
        total.update(tensor.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def write(path: Path, header: Header, tensors: Tensors) -> None:
    from safetensors.numpy import save_file

    save_file(_contiguous(tensors), path, metadata={_KEY: _canonical(header).decode()})
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def to_bytes(header: Header, tensors: Tensors) -> bytes:
    from safetensors.numpy import save

    content: bytes = save(_contiguous(tensors), metadata={_KEY: _canonical(header).decode()})
    return content


def read(path: Path) -> tuple[Header, Tensors]:
    from safetensors import SafetensorError, safe_open

    with path.open("rb"):  # a file that is missing or locked away is the system's error, and says so
        pass
    try:
        with safe_open(path, framework="numpy") as file:  # maps the file: each tensor is copied once
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as problem:
        raise InvalidModel(f"{path}: {_NO_STORE}") from problem
    return _header(metadata), tensors


def from_bytes(content: bytes) -> tuple[Header, Tensors]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + length]).get("__metadata__")
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as problem:
        raise InvalidModel(_NO_STORE) from problem
    return _header(metadata), tensors


def named(tensors: Tensors, name: str) -> NDArray[Any]:
    if name not in tensors:
        raise InvalidModel(f"the store lacks {name!r}. Fit it again.")
    return tensors[name]


def part(tensors: Tensors, prefix: str) -> Tensors:
    """The tensors of one part, without its prefix."""
    return {name.removeprefix(f"{prefix}."): one for name, one in tensors.items() if name.startswith(f"{prefix}.")}


def require_finite(tensors: Tensors) -> None:
    for name, tensor in tensors.items():
        if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise InvalidModel(f"{name!r} of the store holds a number that is not finite. Fit it again.")


def guarantee(header: Header, name: str) -> Guarantee:
    try:
        return Guarantee.from_json(header[name])
    except (KeyError, TypeError, AttributeError, InvalidGuarantee) as problem:
        raise InvalidModel(f"the store states no valid {name}. Fit it again.") from problem


def items_to_tensors(items: Items) -> Tensors:
    ids: Tensors = (
        {"ids": items.ids.astype(np.int64)} if items.ids.dtype.kind in "iu" else _texts("ids", items.ids.tolist())
    )
    return ids if items.titles is None else ids | _texts("titles", items.titles)


def items_from_tensors(tensors: Tensors) -> Items:
    ids = np.array(_listed(tensors, "ids"), dtype=np.str_) if "ids.ends" in tensors else named(tensors, "ids")
    if ids.dtype.kind not in "iU":
        raise InvalidModel("the ids of a store must be whole numbers or texts.")
    return Items(ids, tuple(_listed(tensors, "titles")) if "titles" in tensors else None)


def _texts(name: str, texts: list[str] | tuple[str, ...]) -> Tensors:
    """Texts one behind the other in UTF-8, and where each of them ends. (The header of the format is limited, tensors are not.)"""
    coded = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in coded], dtype=np.int64)
    return {name: np.frombuffer(b"".join(coded), dtype=np.uint8), f"{name}.ends": ends}


def _listed(tensors: Tensors, name: str) -> list[str]:
    joined, ends = named(tensors, name), named(tensors, f"{name}.ends")
    bounds = [0, *ends.tolist()]
    try:
        if joined.dtype != np.uint8 or ends.dtype != np.int64 or ends.ndim != 1 or bounds[-1] != joined.size:
            raise ValueError
        if any(end < start for start, end in pairwise(bounds)):
            raise ValueError
        content = joined.tobytes()
        return [content[start:end].decode() for start, end in pairwise(bounds)]
    except ValueError as problem:
        raise InvalidModel(f"the {name} of the store are no texts. Fit it again.") from problem


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
