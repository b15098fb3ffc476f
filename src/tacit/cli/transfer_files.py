"""What ``tacit transfer`` reads: ratings of two domains, public lists of items, releases, and one person's own ratings."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from tacit.data import Ratings, TwoDomains

_HEADERS = ("item", "item_id", "itemid", "items", "id", "ids")  # first lines that are no ids
_AROUND = "\r "  # an id: no other character ends it, as none does where ratings are read
_MOST_ID = 2**53  # of a whole number in a release
_NO_TEXT = "{} is no text in UTF-8: write it in UTF-8, as plain text."


def read_domains(
    source: str, target: str | None, columns: dict[str, Any]
) -> "tuple[Ratings | TwoDomains, Ratings | None]":
    """Two files with the same columns, or what was stored, or a data set that has two domains by itself.

    Two files stay apart: what people rated in either is for the curator to look at, once public lists say what counts.
    """
    from tacit.data import TwoDomains, load, load_ratings, read_table
    from tacit.data.store import is_stored

    if target is None and Path(source).is_file():
        raise typer.BadParameter(
            f"{source} is one file, and there is no second: name the ratings of the target after it.",
            param_hint="TARGET",
        )
    if target is not None:

        def ratings(place: str) -> "Ratings":
            stored = place.endswith(".parquet") and is_stored(Path(place))
            return load_ratings(place) if stored else read_table(place, **columns)

        return ratings(source), ratings(target)
    found = load(source, second_domain=True) if source == "synthetic" else load(source)
    if not isinstance(found, TwoDomains):
        raise typer.BadParameter(
            f"{source!r} holds one domain: name the ratings of the target, too.", param_hint="TARGET"
        )
    return found, None


def require_lists(domains: "Iterable[Ratings]") -> None:
    """Refuses ratings that came without a list of items, in the words of the command line."""
    if not all(part.catalogue.listed.any() for part in domains):
        raise typer.BadParameter(
            "the ratings came without a list of items, and which items were rated at all is private: give public lists, "
            "--source-items FILE and --target-items FILE; or say --public-catalogue if the rated items are public, which the "
            "guarantee then assumes."
        )


def read_lists(source: Path, target: Path, column: str) -> tuple[list[Any], list[Any]]:
    """One id in each line; empty lines are passed over. Whole numbers where all of both are written as such, whatever was rated,
    and a release can carry them."""
    both = [_lines(file, column) for file in (source, target)]
    ids = [one for part in both for one in part]
    if set(both[0]) & set(both[1]):
        raise typer.BadParameter(f"{source} and {target} both name an item; each must be in one domain.")
    if all(_is_number(one) for one in ids):
        return [int(one) for one in both[0]], [int(one) for one in both[1]]
    return both[0], both[1]


def _lines(file: Path, column: str) -> list[str]:
    """A first line that is the name of a column would be an item that nobody rated, released with the others: it is refused."""
    from tacit.errors import InvalidData

    try:
        content = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidData(_NO_TEXT.format(file)) from None
    if "\0" in content:  # UTF-16 without a mark is UTF-8 as well, and no text
        raise InvalidData(_NO_TEXT.format(file))
    lines = [line.strip(_AROUND) for line in content.split("\n") if line.strip()]
    if not lines:
        raise InvalidData(f"{file} holds no ids: a list has one id in each line.")
    first = lines[0].replace("\t", ",").split(",")[0].strip(' "').lower()
    if first in {column.lower(), *_HEADERS}:
        raise InvalidData(
            f"{file}: the first line is the name of a column. A list has one id in each line, and no header: delete that line; an "
            "item of this name may stand in any other."
        )
    return lines


def require_rated(places: Iterable[tuple[Path, str]], found: "Iterable[Ratings]", lists: Iterable[list[Any]]) -> None:
    """Refuses a list of which nobody rated any item, before anything is charged, for the curator's own eyes.

    Lists that were swapped or belong to something else would leave out every rating, and use up the budget all the same. How many
    were rated is not told: that would be a number about the ratings which nobody paid for.
    """
    import numpy as np

    for (file, ratings_file), ratings, ids in zip(places, found, lists, strict=True):
        rated = np.asarray(ratings.catalogue.ids)[ratings.item_counts > 0].astype(str)
        if not {str(one) for one in ids}.intersection(rated.tolist()):
            raise typer.BadParameter(
                f"no item of {file} was rated in {ratings_file}: is it the list of the other domain, or are ids written "
                "differently? Nothing was charged. --yes releases all the same."
            )


def _is_number(written: str) -> bool:
    """As it is usually written ("007" is not, and loses its zeros as one), and no larger than a release carries."""
    digits = written.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(written)) == written
    return plain and abs(int(written)) <= _MOST_ID


def read_release(file: Path) -> Any:
    """Whichever of the two releases the file holds."""
    from tacit.errors import InvalidMessage
    from tacit.messages import cross_domain, cross_domain_parts, cross_domain_replacements

    try:
        value = cross_domain_parts.load(file)
        is_table = isinstance(value, dict) and value.get("format") == cross_domain_replacements.FORMAT
        return (cross_domain.Replacements if is_table else cross_domain.TransferModel).from_json(value)
    except InvalidMessage as problem:
        raise InvalidMessage(f"{file}: {problem.args[0]}") from None


def read_profile(
    file: Path, items: tuple[Any, ...], item: str | None = None, rating: str = "rating"
) -> tuple[dict[Any, float], int]:
    """One person's ratings, by the ids of the model, and how many are of items that it does not know."""
    written = _json_ratings(file) if file.suffix == ".json" else _csv_ratings(file, item, rating)
    known = {str(item): item for item in items}
    return {known[item]: rating for item, rating in written.items() if item in known}, len(set(written) - set(known))


def _csv_ratings(file: Path, item: str | None, rating: str) -> dict[str, float]:
    import csv

    from tacit.errors import InvalidData

    try:
        return _csv_rows(file, item, rating)
    except UnicodeDecodeError:
        raise InvalidData(_NO_TEXT.format(file)) from None
    except csv.Error:  # its own words may show what is in the file
        raise InvalidData(
            f"{file}: a cell is longer than {csv.field_size_limit():,} characters, or this is no CSV. Is a quote left open?"
        ) from None


def _csv_rows(file: Path, item: str | None, rating: str) -> dict[str, float]:
    import csv

    from tacit.errors import InvalidData

    with file.open(encoding="utf-8-sig", newline="") as content:
        rows = csv.DictReader(content)
        names = list(rows.fieldnames or ())
        named = next((one for one in ("item_id", "item") if one in names), "item_id") if item is None else item
        if names.count(named) != 1 or names.count(rating) != 1:
            raise InvalidData(
                f"{file}: expected columns {named} and {rating}, each once, between commas; --item and --rating name others."
            )
        found: dict[str, float] = {}
        for row in rows:
            try:
                place, value = row[named].strip(_AROUND), float(row[rating])
            except (AttributeError, TypeError, ValueError):
                raise InvalidData(f"{file}, line {rows.line_num}: expected an item and a number.") from None
            if None in row:  # where csv puts what has no column
                raise InvalidData(f"{file}, line {rows.line_num}: more cells than the first line has.")
            if place in found:
                raise InvalidData(
                    f"{file}, line {rows.line_num}: an item that was rated before; keep one of its ratings."
                )
            found[place] = value
    return found


def _json_ratings(file: Path) -> dict[str, float]:
    import json

    from tacit.errors import InvalidData, InvalidMessage
    from tacit.messages.cross_domain_parts import load

    try:
        found = load(file)
    except InvalidMessage:
        found = None
    if not isinstance(found, dict) or not all(type(value) in (int, float) for value in found.values()):
        raise InvalidData(f"{file}: expected an object of items and their ratings.")
    if len(json.loads(file.read_bytes(), object_pairs_hook=list)) > len(found):
        raise InvalidData(f"{file}: an item is rated twice; keep one of its ratings.")
    try:
        return {item: float(value) for item, value in found.items()}
    except OverflowError:
        raise InvalidData(f"{file}: a rating is too large a number; correct it or leave its item out.") from None
