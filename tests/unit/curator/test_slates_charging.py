"""One charge, one answer: what fails after the charge is never drawn again, and an id stands for one thing."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.curator.account import RequestDigest
from tacit.errors import Conflict, InvalidMessage, InvalidParameter
from tacit.guarantees import Release
from tacit.ledger import PrivacyLedger, account, privacy
from tacit.mechanisms import NaturalSlate
from tacit.messages.private_slates import Popularity, Similarity, Slate
from tests.unit.curator.slates_charged import DELTA, RELEASES, charges, stored
from tests.unit.curator.slates_world import FILMS, CountedNoise, curator


class BrokenNoise:
    """Noise that ends in an error which tells how often it was asked for."""

    caveat = None

    def __init__(self) -> None:
        self.draws = 0

    def draw(self, count: int) -> bytes:
        self.draws += 1
        raise ValueError(f"draw number {self.draws} of {count} bytes")


@pytest.mark.parametrize("kind", RELEASES)
def test_an_error_while_drawing_uses_the_id_up_and_tells_nothing(tmp_path: Path, kind: str) -> None:
    told = set()
    noise = BrokenNoise()
    with curator(tmp_path, budget=DELTA, noise=noise) as holder:
        for _ in range(3):
            with pytest.raises(Conflict) as refused:
                RELEASES[kind](holder)
            told.add(str(refused.value))
            assert refused.value.__cause__ is None
            assert refused.value.__context__ is None
        assert noise.draws == 1  # the id never draws again
        assert charges(holder) == 1
        assert [content.split(b"\n")[2] for content in stored(holder)] == [b"null"]
    sound = CountedNoise()
    with curator(tmp_path, budget=DELTA, noise=sound) as holder:  # nor does it in another process, with better noise
        with pytest.raises(Conflict) as refused:
            RELEASES[kind](holder)
        told.add(str(refused.value))
        assert sound.draws == 0
        assert charges(holder) == 1
        assert len(holder.slate(3, 0.5, route="natural", request_id="tuesday")) == 3  # another id does
    assert len(told) == 1
    assert not re.search(r"\d", told.pop())


@pytest.mark.parametrize(
    ("kind", "message"), [("slate", Slate), ("popularity", Popularity), ("similarity", Similarity)]
)
def test_a_message_that_refuses_what_was_drawn_uses_the_id_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, message: type
) -> None:
    drawn = []

    def refuse(release: Release[Any], *_: object) -> None:
        drawn.append(release)
        raise InvalidMessage("this tells what was drawn")

    noise = CountedNoise()
    with curator(tmp_path, budget=DELTA, noise=noise) as holder:
        with monkeypatch.context() as patched:
            patched.setattr(message, "from_release", refuse)
            for _ in range(2):
                with pytest.raises(Conflict):
                    RELEASES[kind](holder)
        draws = noise.draws
        with pytest.raises(Conflict):
            RELEASES[kind](holder)
        assert noise.draws == draws
        assert len(drawn) == 1


def test_what_is_too_long_to_be_kept_uses_the_id_up_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with curator(tmp_path) as holder:
        monkeypatch.setattr(holder._account, "require_room", lambda *_: None)
        monkeypatch.setattr(account, "MOST_BYTES", 300)  # room for the digests and no more
        for _ in range(2):
            with pytest.raises(Conflict, match="used up"):
                holder.popularity(1.0)
        monkeypatch.undo()
        with pytest.raises(Conflict, match="used up"):
            holder.popularity(1.0)
        assert charges(holder) == 1


def test_what_is_exactly_as_long_as_may_be_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with curator(tmp_path) as holder:
        promise = NaturalSlate(FILMS, 3, 0.5).guarantee
        found = holder._account.release("a", RequestDigest("b"), promise, lambda: b'"' + b"x" * 98 + b'"')
        (content,) = stored(holder)
        monkeypatch.setattr(account, "MOST_BYTES", len(content))
        assert holder._account.release("c", RequestDigest("b"), promise, lambda: b'"' + b"x" * 98 + b'"') == found
        with pytest.raises(Conflict, match="used up"):
            holder._account.release("d", RequestDigest("b"), promise, lambda: b'"' + b"x" * 99 + b'"')


def test_an_id_that_is_used_up_is_still_not_anothers(tmp_path: Path) -> None:
    with curator(tmp_path, noise=BrokenNoise()) as holder:
        for k in (3, 4):
            with pytest.raises(Conflict, match="used up" if k == 3 else "of another kind"):
                holder.slate(k, 0.5, route="natural", request_id="monday")


def test_what_a_caller_has_set_in_numpy_makes_no_error_of_a_draw(tmp_path: Path) -> None:
    def draw() -> bytes:
        return b'"%d"' % int(np.isinf(np.ones(1) / np.zeros(1))[0])

    with curator(tmp_path) as holder, np.errstate(all="raise"):
        assert holder._account.release("a", RequestDigest("b"), NaturalSlate(FILMS, 3, 0.5).guarantee, draw) == "1"


def test_the_refusal_of_a_long_release_does_not_say_how_long_it_is(tmp_path: Path) -> None:
    told = set()
    with PrivacyLedger.create(tmp_path / "ledger.db") as ledger:
        for more in (1, 2):
            with pytest.raises(InvalidParameter, match="at most 16,777,216 bytes") as refused:
                ledger.keep("people", "a", bytes(privacy.MOST_BYTES + more))
            told.add(str(refused.value))
    assert len(told) == 1
