"""Genres of films: one fixed vocabulary for every MovieLens release, in one fixed order."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidData

GENRES: tuple[str, ...] = (
    "Action", "Adventure", "Animation", "Children", "Comedy", "Crime", "Documentary", "Drama", "Fantasy", "Film-Noir",
    "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western", "None",
)  # fmt: skip

_SAME = {"Children's": "Children", "(no genres listed)": "None", "unknown": "None", "": "None"}
_DROPPED = {"IMAX"}  # a way to show a film, not a genre
_PLACE = {genre: place for place, genre in enumerate(GENRES)} | {old: GENRES.index(new) for old, new in _SAME.items()}
_NONE = GENRES.index("None")


def genre_flags(texts: Sequence[str], where: Callable[[int], str]) -> NDArray[np.bool_]:
    """One row of flags over `GENRES` for each text like ``"Comedy|Drama"``; a film without any genre has the flag None.

    A genre outside the vocabulary is an error; ``where(place)`` says where the text stands.
    """
    rows: dict[str, NDArray[np.bool_]] = {}  # 62,423 films share about 1,600 texts
    flags = np.zeros((len(texts), len(GENRES)), dtype=np.bool_)
    for place, text in enumerate(texts):
        if text not in rows:
            strange = [genre for genre in text.split("|") if genre not in _PLACE and genre not in _DROPPED]
            if strange:
                raise InvalidData(f"{where(place)}: {strange[0]!r} is not a genre; allowed: {', '.join(GENRES)}.")
            rows[text] = _flags(text)
        flags[place] = rows[text]
    return flags


def _flags(text: str) -> NDArray[np.bool_]:
    flags = np.zeros(len(GENRES), dtype=np.bool_)
    flags[[_PLACE[genre] for genre in text.split("|") if genre not in _DROPPED]] = True
    flags[_NONE] = not np.delete(flags, _NONE).any()
    return flags
