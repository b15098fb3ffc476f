"""Two files of ratings with shared users: ``movies.tsv`` and ``books.tsv``, or any pair."""

from pathlib import Path

from tacit.data.assemble import Duplicates, Outside
from tacit.data.pairs import TwoDomains
from tacit.data.provenance import AMAZON, Provenance
from tacit.data.ratings import Ratings
from tacit.data.readers.generic import read_table
from tacit.data.scale import STARS, Scale
from tacit.errors import InvalidParameter


def read_pair(
    source: str | Path,
    target: str | Path,
    *,
    user: str = "user_id",
    item: str = "item_id",
    rating: str = "rating",
    time: str | None = None,
    scale: Scale = STARS,
    separator: str | None = None,
    duplicates: Duplicates = "error",
    outside: Outside = "error",
    provenance: Provenance | None = None,
) -> TwoDomains:
    """Two domains from two files with the same columns; a user id means the same person in both."""

    def domain(path: str | Path) -> Ratings:
        return read_table(
            path,
            user=user,
            item=item,
            rating=rating,
            time=time,
            scale=scale,
            separator=separator,
            duplicates=duplicates,
            outside=outside,
            provenance=provenance,
        )

    return TwoDomains.align(domain(source), domain(target))


def read_amazon(folder: str | Path, *, duplicates: Duplicates = "latest", source: str = "movies") -> TwoDomains:
    """Amazon films and books. A twelfth of the pairs come twice, some with two opinions: the last row counts by default."""
    folder = Path(folder)
    if source not in ("movies", "books"):
        raise InvalidParameter("the source domain is movies or books.")
    target = "books" if source == "movies" else "movies"
    return read_pair(folder / f"{source}.tsv", folder / f"{target}.tsv", duplicates=duplicates, provenance=AMAZON)


def is_amazon(folder: Path) -> bool:
    return (folder / "movies.tsv").is_file() and (folder / "books.tsv").is_file()
