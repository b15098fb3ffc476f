"""Documents that are the same for everybody: packed once, and sent to a caller only if she does not have them."""

import gzip

import pytest
from starlette.requests import Request
from starlette.responses import Response

from tacit.service.bodies import Packed
from tests.unit.service.asking import scope_of

CONTENT = b'{"ids": [1, 2, 3]}' * 40
PACKED = Packed(CONTENT)


def sent(packed: Packed = PACKED, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return packed.sent(Request(scope_of("GET", "/", named)), "public, max-age=60")


def test_it_is_sent_as_it_is_or_packed_if_the_caller_can_unpack() -> None:
    plain, small = sent(), sent(accept_encoding="br, GZIP;q=0.5")
    assert (plain.status_code, plain.body, "content-encoding" in plain.headers) == (200, CONTENT, False)
    assert (small.status_code, small.headers["content-encoding"]) == (200, "gzip")
    assert gzip.decompress(small.body) == CONTENT
    assert len(small.body) < len(CONTENT)
    for answer in (plain, small):
        assert answer.headers["content-length"] == str(len(answer.body))
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "public, max-age=60"
        assert answer.headers["vary"] == "Accept-Encoding"  # else a cache would send either to everybody


@pytest.mark.parametrize("encoding", ["", "identity", "br", "gzip;q=0", "br, gzip; q=0.000"])
def test_who_cannot_unpack_gets_it_plain(encoding: str) -> None:
    assert sent(accept_encoding=encoding).body == CONTENT


def test_who_has_it_gets_nothing_again() -> None:
    tag = sent().headers["etag"]
    assert tag.startswith('W/"')  # it stands for both encodings
    assert tag.endswith('"')
    for said in (tag, tag[2:], f'"other", {tag}', f'{tag},"other"', "*"):
        again = sent(if_none_match=said)
        assert (again.status_code, again.body, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["cache-control"] == "public, max-age=60"
    for said in ('"other"', f'"x{tag[3:]}', f'"other{tag[2:]}', tag[2:-1]):
        assert sent(if_none_match=said).status_code == 200
    assert sent(if_none_match="").status_code == 200


def test_the_tag_is_that_of_the_content_in_every_worker() -> None:
    """A tag that held the time or the process would have every device fetch it again and again."""
    assert Packed(CONTENT).tag == PACKED.tag
    assert Packed(CONTENT).gzipped == PACKED.gzipped
    assert PACKED.gzipped[4:8] == bytes(4)  # where the format would have a time
    assert Packed(CONTENT + b" ").tag != PACKED.tag


def test_other_kinds_of_documents_say_what_they_are() -> None:
    assert sent(Packed(b"<html>", "text/html")).headers["content-type"] == "text/html; charset=utf-8"
