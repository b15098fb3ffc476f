"""A MovieLens folder of any release; the layout is told by the names of its files."""

from pathlib import Path
from typing import Protocol

from tacit.data.assemble import Duplicates
from tacit.data.ratings import Ratings
from tacit.data.readers import movielens_1m, movielens_100k, movielens_latest
from tacit.errors import InvalidData


class _Layout(Protocol):
    def ratings_file(self, folder: Path, /) -> Path | None: ...

    def read(self, folder: Path, file: Path, /, *, duplicates: Duplicates, zip_digits: int, name: str) -> Ratings: ...


_LAYOUTS: tuple[_Layout, ...] = (movielens_100k, movielens_1m, movielens_latest)


def read_movielens(
    folder: str | Path, *, duplicates: Duplicates = "error", zip_digits: int = 1, name: str | None = None
) -> Ratings:
    """Ratings with titles and the 19 genres; where ZIP codes are listed, entities by their first ``zip_digits``.

    Every listed film is in the catalogue, rated or not; ``compact()`` leaves the unrated out.
    """
    folder = Path(folder)
    for layout in _LAYOUTS:
        file = layout.ratings_file(folder)
        if file is not None:
            return layout.read(folder, file, duplicates=duplicates, zip_digits=zip_digits, name=name or folder.name)
    raise InvalidData(
        f"{folder} has no MovieLens layout: expected u.data (100K), ratings.dat or ratings.parquet with movies.dat (1M, 10M), "
        "or ratings.csv, also .gz or .zst (latest, 20M and later)."
    )


def is_movielens(folder: Path) -> bool:
    return any(layout.ratings_file(folder) is not None for layout in _LAYOUTS)
