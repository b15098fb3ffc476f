"""The page as a browser gets it: its own files and nothing from anywhere else."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import httpx
import pytest

from tests.integration.service.conftest import Running, Serve
from tests.integration.service.talking import require_problem

# What a file may name besides its own server: XML namespaces are names, and hints tell of this machine or of an example.
NO_HOSTS = ("http://www.w3.org/2000/svg", "http://localhost", "http://127.0.0.1", "https://example.org.")
IMPORTED = re.compile(
    r"""^(?:import\b[^"';()]*|export\b[^"';()=]*\bfrom\s*)["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']""",
    re.MULTILINE,
)
URL_IN_STYLE = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")
ADDRESS = re.compile(r"""[a-z]+://[^\s"'`<>)]+|["'`(]//[A-Za-z0-9][^\s"'`]*""")
COMMENT = re.compile(r"/\*.*?\*/|<!--.*?-->|^\s*//[^\n]*$", re.DOTALL | re.MULTILINE)  # types are imported in comments


class References(HTMLParser):
    """Whatever a browser would load for a page, and what would run without being loaded."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.inline: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        loads = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "use": "href"}
        address = found.get(loads.get(tag, ""))
        if address is not None:
            self.loaded.append(address)
        if tag == "script" and "src" not in found:
            self.inline.append("script")
        self.inline += [name for name in found if name == "style" or name.startswith("on")]
        if tag == "style":
            self.inline.append("style")


@pytest.fixture
def client(running: Running) -> Iterator[httpx.Client]:
    with running.client() as client:
        yield client


def fetched(client: httpx.Client) -> dict[str, httpx.Response]:
    """The page and all files that it needs, found as a browser finds them: each has to be there."""
    found = {"/": client.get("/")}
    waiting = ["/"]
    while waiting:
        place = waiting.pop()
        answer = found[place]
        assert answer.status_code == 200, place
        kind, text = answer.headers["content-type"].partition(";")[0], COMMENT.sub("", answer.text)
        if kind == "text/html":
            names = References(text).loaded
        else:
            names = [one or other for one, other in (URL_IN_STYLE if kind == "text/css" else IMPORTED).findall(text)]
        for name in names:
            if name.startswith("data:"):
                continue
            address = httpx.URL("http://here" + place).join(name)
            assert address.host == "here", name
            if address.path not in found:
                found[address.path] = client.get(address.path)
                waiting.append(address.path)
    return found


def test_every_file_that_the_page_needs_is_there_and_says_what_it_is(client: httpx.Client) -> None:
    found = fetched(client)
    kinds = {place: answer.headers["content-type"].partition(";")[0] for place, answer in found.items()}
    assert set(kinds.values()) == {"text/html", "text/css", "text/javascript"}
    assert len(found) > 5
    for answer in found.values():
        assert answer.headers["cache-control"] == "no-cache"
        again = client.get(str(answer.url), headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304


def test_no_file_of_the_page_names_another_host(client: httpx.Client) -> None:
    for place, answer in fetched(client).items():
        text = COMMENT.sub("", answer.text)
        for one in NO_HOSTS:
            text = text.replace(one, "")
        named = ADDRESS.findall(text)
        assert named == [], place


def test_the_page_may_load_and_call_nothing_but_its_own_server(client: httpx.Client) -> None:
    page = client.get("/")
    parts = [part.split() for part in page.headers["content-security-policy"].split(";")]
    policy = {part[0]: part[1:] for part in parts}
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == ["'self'"]
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
    assert References(page.text).inline == []  # the policy would not let it run


def test_no_path_leads_out_of_the_folder_of_the_page(client: httpx.Client) -> None:
    for name in ("..%2Fsettings.py", "%2e%2e/settings.py", "%2Fetc%2Fpasswd", "index.html%00.css", ".", "nothing.js"):
        require_problem(client.get(f"/web/{name}"), 404, "not-found")


def test_the_page_can_be_left_out(serve: Serve) -> None:
    with serve(page="false").start().client() as client:
        for path in ("/", "/web/style.css"):
            require_problem(client.get(path), 404, "not-found")
        assert client.get("/v1/model").status_code == 200
