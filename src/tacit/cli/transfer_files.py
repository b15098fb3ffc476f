"""What ``tacit transfer`` reads: ratings of two domains, public lists of items, releases, and one person's own ratings."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from tacit.data import Ratings, TwoDomains


def read_domains(
    source: str, target: str | None, columns: dict[str, Any]
) -> "tuple[Ratings | TwoDomains, Ratings | None]":
    """Two files with the same columns, or what was stored, or a data set that has two domains by itself.

    Two files stay apart: what people rated in either is for the curator to look at, once public lists say what counts.
    """
    from tacit.data import TwoDomains, load, load_ratings, read_table
    from tacit.data.store import is_stored

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


def read_lists(source: Path, target: Path) -> tuple[list[Any], list[Any]]:
    """One id in each line; empty lines are passed over. Whole numbers where all of both are written as such, whatever was rated."""
    both = [
        [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        for file in (source, target)
    ]
    ids = [one for part in both for one in part]
    if all(_is_number(one) for one in ids):
        return [int(one) for one in both[0]], [int(one) for one in both[1]]
    return both[0], both[1]


def _is_number(written: str) -> bool:
    """As it is usually written: "007" is not, and loses its zeros as one."""
    digits = written.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(written)) == written


def read_release(file: Path) -> Any:
    """Whichever of the two releases the file holds."""
    from tacit.messages import cross_domain, cross_domain_parts, cross_domain_replacements

    value = cross_domain_parts.load(file)
    is_table = isinstance(value, dict) and value.get("format") == cross_domain_replacements.FORMAT
    return (cross_domain.Replacements if is_table else cross_domain.TransferModel).from_json(value)


def read_profile(file: Path, items: tuple[Any, ...]) -> tuple[dict[Any, float], int]:
    """One person's ratings, by the ids of the model, and how many are of items that it does not know."""
    written = _json_ratings(file) if file.suffix == ".json" else _csv_ratings(file)
    known = {str(item): item for item in items}
    return {known[item]: rating for item, rating in written.items() if item in known}, len(set(written) - set(known))


def _csv_ratings(file: Path) -> dict[str, float]:
    import csv

    from tacit.errors import InvalidData

    with file.open(encoding="utf-8", newline="") as content:
        rows = csv.DictReader(content)
        if not {"item", "rating"} <= set(rows.fieldnames or ()):
            raise InvalidData(f"{file}: expected the columns item and rating.")
        found: dict[str, float] = {}
        for line, row in enumerate(rows, start=2):
            try:
                found[row["item"].strip()] = float(row["rating"])
            except (AttributeError, TypeError, ValueError):
                raise InvalidData(f"{file}, line {line}: expected an item and a number.") from None
    return found


def _json_ratings(file: Path) -> dict[str, float]:
    from tacit.errors import InvalidData
    from tacit.messages.cross_domain_parts import load

    found = load(file)
    if not isinstance(found, dict) or not all(type(value) in (int, float) for value in found.values()):
        raise InvalidData(f"{file}: expected an object of items and their ratings.")
    return {item: float(value) for item, value in found.items()}
