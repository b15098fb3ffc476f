"""Entities by ZIP code, from a MovieLens list of users whose last field it is."""

from pathlib import Path

from tacit.checks import whole
from tacit.data.entities import Entities
from tacit.data.ratings import Ratings
from tacit.data.readers.lines import read_lines, whole_numbers


def with_zip_entities(ratings: Ratings, path: Path, separator: str, digits: int) -> Ratings:
    """The ratings with one entity for each beginning of a ZIP code; unchanged if there is no such list."""
    whole("zip_digits", digits, least=1, most=5)
    if not path.is_file():
        return ratings
    rows = read_lines(path, separator, 5)
    place = dict(zip(whole_numbers(path, rows, 0, "user"), (_beginning(row[4], digits) for row in rows), strict=True))
    labels = [place.get(user, "unknown") for user in ratings.user_ids.tolist()]
    kind = "ZIP digit" if digits == 1 else f"{digits} ZIP digits"
    return ratings.with_entities(Entities.from_labels(kind, labels))


def _beginning(code: str, digits: int) -> str:
    """The first digits; codes of other countries, which have letters, are one entity of their own."""
    start = code[:digits]
    return start if start.isascii() and start.isdigit() else "other"
