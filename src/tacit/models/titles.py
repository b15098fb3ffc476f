"""Titles of items: finding the one that a person means."""

import re
from collections.abc import Sequence

from tacit.errors import UnknownName

_YEAR = re.compile(r"\s*\(\d{4}\)\s*$")
_LATE_ARTICLE = re.compile(r"^(.*), (The|A|An|Le|La|Les|L'|Der|Die|Das|El|Il)$", re.IGNORECASE)


class Titles:
    """A list of titles that is searched by name; case, a year and a leading article may differ from the list's."""

    def __init__(self, titles: Sequence[str]) -> None:
        self._titles = titles
        self._by_title = _places([_plain(title) for title in titles])
        self._by_bare_title = _places([_plain(_YEAR.sub("", title)) for title in titles])

    def find(self, title: str) -> int:
        """The place of the one item with this title."""
        found = self._by_title.get(_plain(title), [])
        if not _YEAR.search(title):
            found = found or self._by_bare_title.get(_plain(title), [])
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownName(f"{title!r} may be {' or '.join(self._titles[code] for code in found)}: say which.")
        bare = _plain(_YEAR.sub("", title))
        close = [code for key, codes in self._by_bare_title.items() if bare in key for code in codes][:3]
        hint = f"; near it: {', '.join(self._titles[code] for code in close)}" if close else ""
        raise UnknownName(f"no item is called {title!r}{hint}.")


def _plain(title: str) -> str:
    """``"Matrix, The (1999)"`` and ``"The Matrix (1999)"`` meet as ``"the matrix (1999)"``."""
    year = _YEAR.search(title)
    name = _YEAR.sub("", title).strip()
    late = _LATE_ARTICLE.match(name)
    name = f"{late[2]} {late[1]}" if late else name
    return (f"{name} {year[0].strip()}" if year else name).casefold()


def _places(keys: list[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for code, key in enumerate(keys):
        places.setdefault(key, []).append(code)
    return places
