"""One call and its answer, apart from whatever carries them: what is sent, how often, and what counts as an answer.

Nothing here touches a network. A conversation is a generator: it yields a ``Call`` and is sent the ``Answer``, or a ``Pause`` and
is sent nothing. So one text serves a client that waits and one that awaits, and tests need no server.
"""

import json
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np

from tacit.checks import positive, whole
from tacit.errors import InvalidMessage, ServerRefused, ServerUnavailable

BINARY, JSON, PROBLEM = "application/vnd.tacit", "application/json", "application/problem+json"
MOST_REPLY = 1 << 23  # bytes of an answer, unpacked, unless a call says otherwise
MOST_SHOWN = 200  # characters of a server's own words in an error
_LONGEST = 1e9  # seconds: to whoever asks for more, the same is said
_CODE = re.compile(r"[a-z]{1,20}(-[a-z]{1,20}){0,5}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """What is sent. It is a value, so that what is sent again is the same bytes."""

    method: str
    path: str
    accept: str
    body: bytes | None = field(default=None, repr=False)
    content_type: str | None = None
    most: int = MOST_REPLY

    @property
    def headers(self) -> dict[str, str]:
        """All that is said beside the body, but for what is the same in every call of every client."""
        named = {"Accept": self.accept}
        return named if self.content_type is None else {**named, "Content-Type": self.content_type}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Not ``whole`` where it was larger than the call allows, or packed in a way that cannot be undone."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    whole: bool = True

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nobody answered, or not in time."""

    reason: str


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


Steps: TypeAlias = Generator[Call | Pause, Answer | NoAnswer | None, T]


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a call is made, the seconds before the second time (then twice as many, and so on), and the longest wait."""

    tries: int = 4
    first: float = 0.5
    most: float = 30.0

    def __post_init__(self) -> None:
        whole("tries", self.tries, least=1, most=20)
        positive("first", self.first)
        positive("most", self.most)

    def wait(self, turn: int, answer: Answer | NoAnswer | None, rng: np.random.Generator) -> float:
        """Seconds before the next time: what the server asks for, else growing ones, spread lest all devices come together."""
        asked = _retry_after(answer)
        usual = min(self.most, self.first * 2.0**turn) * (0.5 + 0.5 * float(rng.random()))
        return usual if asked is None else max(asked, usual)


def answered(call: Call, patience: Patience, rng: np.random.Generator) -> Steps[Answer]:
    """The final answer to a call, which is made again, the same, after 408, 429, 5xx and silence. ServerUnavailable without one."""
    for turn in range(patience.tries):
        answer = yield call
        if isinstance(answer, Answer) and not (answer.status in (408, 429) or answer.status >= 500):
            return answer
        wait = patience.wait(turn, answer, rng)
        if (
            turn + 1 == patience.tries or wait > patience.most
        ):  # who asks for longer is not asked sooner, nor waited for
            break
        yield Pause(wait)
    raise _unavailable(answer)


def accepted(answer: Answer, call: Call) -> bytes:
    """The body of an answer, if it is of the kind that was asked for."""
    if answer.status != 200:
        raise _refused(answer)
    if not answer.whole:
        raise InvalidMessage(
            f"an answer is larger than {call.most:,} bytes, or packed in a way that was not asked for."
        )
    if answer.content_type != call.accept:
        raise InvalidMessage(f"an answer is not {call.accept}, which was asked for.")
    return answer.body


def read_json(content: bytes) -> Any:
    """JSON in which every name stands once in its object. The error repeats nothing of it."""
    try:
        return json.loads(content, object_pairs_hook=_each_name_once)
    except (ValueError, RecursionError):  # no JSON, no UTF-8, a number of too many digits, too deep
        raise InvalidMessage("an answer is no JSON.") from None


def in_one_line(text: str) -> str:
    """Another's words, fit for an error and a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:MOST_SHOWN]).strip()


def _unavailable(answer: Answer | NoAnswer | None) -> ServerUnavailable:
    after = _retry_after(answer)
    if isinstance(answer, Answer):
        until = "later" if after is None else f"in {after:.0f} seconds"
        said = f"the server answers with status {answer.status}; the same can be sent again {until}."
        return ServerUnavailable(said, status=answer.status, retry_after=after)
    reason = "" if answer is None else answer.reason
    return ServerUnavailable(f"the server does not answer ({reason}); try again later.", status=None, retry_after=None)


def _refused(answer: Answer) -> ServerRefused:
    found = _problem(answer)
    if found is not None:
        code, detail = found
        return ServerRefused(f"the server says {code}: {detail}", status=answer.status, problem=code)
    hint = " Redirects are not followed: name the right address." if 300 <= answer.status < 400 else ""
    said = f"an answer with status {answer.status}, and not in the server's own words.{hint}"
    return ServerRefused(said, status=answer.status, problem=None)


def _problem(answer: Answer) -> tuple[str, str] | None:
    """The stable code and the detail of a problem, if the answer is one."""
    if answer.content_type != PROBLEM or not answer.whole:
        return None
    try:
        found = read_json(answer.body)
    except InvalidMessage:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("code"), str) or not _CODE.fullmatch(found["code"]):
        return None
    detail = found.get("detail")
    return found["code"], in_one_line(detail) if isinstance(detail, str) else "no more was said."


def _retry_after(answer: Answer | NoAnswer | None) -> float | None:
    """In seconds; a date is not read, since two clocks seldom agree."""
    text = answer.headers.get("retry-after", "") if isinstance(answer, Answer) else ""
    return min(float(text), _LONGEST) if text.isascii() and text.isdigit() else None


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found
