"""What a person keeps to herself, in all forms in which it might be found among bytes: titles, ids, true features."""

import base64
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, quote_plus

import numpy as np
from numpy.typing import NDArray

from tacit.messages.store import Store

GRID = 1 << 20  # steps of a signal in 1


@dataclass(frozen=True)
class Private:
    """The ratings of one person, by title, and what follows from them."""

    ratings: dict[str, int]
    store: Store

    @cached_property
    def codes(self) -> list[int]:
        titles = list(self.store.items.titles or ())
        return [titles.index(title) for title in self.ratings]

    @cached_property
    def ids(self) -> list[int]:
        return [int(self.store.items.id(code)) for code in self.codes]

    @cached_property
    def features(self) -> NDArray[np.float64]:
        return self.store.space.of(np.array(self.codes), np.array([*self.ratings.values()], dtype=np.float64))

    @property
    def steps(self) -> list[int]:
        """Features on the grid of signals, as they would leave without noise."""
        return [round(feature * GRID) for feature in self.features]

    def found_in(self, raw: bytes) -> list[str]:
        """Which of it occurs in these bytes, as words for a person who reads a failed test.

        One number of four bytes may occur by chance, say where noise is 0: for one signal with a probability of about 1e-3. Two of
        them do with one of about 1e-6, and count.
        """
        found = [f"the title {title}" for title in self.ratings if any(form in raw for form in _texts_of(title))]
        found += [f"the id {id}" for id in self.ids if _has_number(raw, str(id))]
        found += [f"the feature {one:.4f}" for one in self._shares if any(form in raw for form in _decimals_of(one))]
        found += [
            f"the step {step}" for step in sorted({*self.steps} - {0}) if step > 999 and _has_number(raw, str(step))
        ]
        for kind in ("<d", ">d", "<q", ">q"):
            found += [f"{number} as {kind}" for number in self._numbers(kind) if struct.pack(kind, number) in raw]
        for kind in ("<f", ">f", "<i", ">i"):
            some = [number for number in self._numbers(kind) if struct.pack(kind, number) in raw]
            found += [f"{some} as {kind}"] if len(some) > 1 else []
        return found

    @property
    def _shares(self) -> list[float]:
        """Features that are told from other numbers by their digits: not 0, not a plain fraction such as 0.5."""
        return sorted({float(one) for one in self.features if abs(one - round(one, 3)) > 1e-9})

    def _numbers(self, kind: str) -> list[float]:
        if kind[1] in "df":
            return sorted({*self._shares, *map(float, self.ids)})
        return sorted({*self.ids, *(step for step in self.steps if step)})


def _texts_of(title: str) -> Iterator[bytes]:
    """With and without the year, as it stands and as the web writes it."""
    for text in (title, title.rsplit(" (", 1)[0]):
        yield from (text.encode(), text.lower().encode(), text.encode("utf-16-le"), text.encode().hex().encode())
        yield json.dumps(text)[1:-1].encode()
        yield from (quote(text).encode(), quote(text, safe="()").encode(), quote_plus(text).encode())
        for shift in range(3):  # base64 of a longer text that has it inside: the ends depend on what stands beside it
            coded = base64.b64encode(b"\0" * shift + text.encode())[4:-4]
            if len(coded) > 6:
                yield coded


def _has_number(raw: bytes, digits: str) -> bool:
    """As a number by itself, and not as a part of a longer one, or of a token, whose letters and digits are drawn by chance."""
    at = raw.find(digits.encode())
    while at >= 0:
        beside = raw[max(at - 1, 0) : at] + raw[at + len(digits) : at + len(digits) + 1]
        if not any(bytes([byte]).isalnum() for byte in beside):
            return True
        at = raw.find(digits.encode(), at + 1)
    return False


def _decimals_of(share: float) -> Iterator[bytes]:
    yield f"{share:.3f}"[1:].encode()  # ".143"
    yield f"{share:.6f}"[1:5].encode()  # ".142"
