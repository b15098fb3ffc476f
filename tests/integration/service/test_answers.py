"""The documents that are the same for everybody, and the form that every answer has, whatever was asked for."""

import gzip
import json
from collections.abc import Iterator

import httpx
import pytest

from tacit.messages.private_slates import Popularity, Slate
from tacit.messages.store import Store
from tests.integration.service.conftest import Published, Running, Serve
from tests.integration.service.talking import (
    BINARY,
    IMPRESSIONS,
    MULTI_SELECTION,
    OFFERS,
    request_of,
    require_problem,
)

FRIEND, STRANGER = "https://films.example", "https://elsewhere.example"


@pytest.fixture
def client(running: Running) -> Iterator[httpx.Client]:
    with running.client() as client:
        yield client


def test_the_catalogue_is_what_the_store_says(client: httpx.Client, store: Store) -> None:
    catalogue = client.get("/v1/catalogue").json()
    assert (catalogue["version"], catalogue["name"], catalogue["model"]) == (1, "films 1", store.version)
    assert catalogue["ids"] == store.items.ids.tolist() == sorted(catalogue["ids"])
    assert catalogue["titles"] == [f"Synthetic {item}" for item in catalogue["ids"]]
    features = catalogue["features"]
    assert (features["kind"], features["dimension"], len(features["names"])) == ("genre-profile/1", 38, 19)
    places = {place for genres in catalogue["genres"] for place in genres}
    assert len(catalogue["genres"]) == len(catalogue["ids"])
    assert places <= set(range(19))


def test_the_catalogue_is_packed_for_those_who_can_unpack_and_not_sent_twice(client: httpx.Client) -> None:
    plain = client.get("/v1/catalogue", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    with client.stream("GET", "/v1/catalogue", headers={"Accept-Encoding": "gzip"}) as packed:
        content = b"".join(packed.iter_raw())
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(content) == plain.content
    assert len(content) < len(plain.content) / 3
    tag = plain.headers["etag"]
    again = client.get("/v1/catalogue", headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert client.get("/v1/catalogue", headers={"If-None-Match": '"another"'}).status_code == 200


def test_the_model_says_which_version_answers_and_what_it_promises(
    client: httpx.Client, published: Published, store: Store
) -> None:
    about = client.get("/v1/model").json()
    assert (about["version"], about["store"], about["name"]) == (published.first, store.version, "films 1")
    assert (about["items"], about["look_alikes"]) == (len(store.items), len(store.look_alikes))
    assert about["guarantee"] == json.loads(json.dumps(store.guarantee.to_json()))
    assert about["guarantee"]["epsilon"] == "inf"  # of real users, taken as public: nothing is promised, and it is said


def test_slates_come_from_releases_with_their_guarantees(client: httpx.Client) -> None:
    listed = client.get("/v1/slates").json()
    promised = {one["name"]: one["guarantee"]["epsilon"] for one in listed["releases"]}
    assert promised == {"counts-1": 1.0, "counts-4": 4.0}
    assert listed["together"]["epsilon"] == 5.0
    for name, epsilon in promised.items():
        answer = client.get(f"/v1/slates/{name}", params={"k": 6, "alpha": 2.5}).json()
        slate = Slate.from_json(answer["slate"])
        assert len(set(slate.items)) == 6
        assert slate.guarantee.epsilon == epsilon
        assert answer["titles"] == [f"Synthetic {item}" for item in slate.items]
        assert 0.0 <= answer["diversity"] <= 1.0
        assert 0.0 <= answer["liking"] <= 1.0


def test_a_greedy_slate_is_always_the_same_and_a_drawn_one_is_not(client: httpx.Client) -> None:
    def items(drawn: bool) -> tuple[int, ...]:
        answer = client.get("/v1/slates/counts-4", params={"k": 10, "drawn": str(drawn).lower()})
        return tuple(answer.json()["slate"]["items"])

    assert len({items(False) for _ in range(5)}) == 1
    assert len({items(True) for _ in range(8)}) > 1


def test_a_release_is_sent_as_it_was_made(client: httpx.Client, published: Published) -> None:
    listed = client.get("/v1/releases").json()["releases"]
    assert {(one["name"], one["kind"]) for one in listed} == {("counts-1", "popularity"), ("counts-4", "popularity")}
    for one in listed:
        content = client.get(f"/v1/releases/{one['name']}").content
        assert content == (published.models / published.first / one["name"]).read_bytes()
        release = Popularity.from_json(json.loads(content))
        assert json.loads(json.dumps(release.guarantee.to_json())) == one["guarantee"]
    for name in ("store.tacit", "manifest.json", "none", "..%2Fcurrent"):  # look-alikes are no release
        require_problem(client.get(f"/v1/releases/{name}"), 404, "not-found")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not-found"),
        ("GET", "/v1/slates/nothing", 404, "not-found"),
        ("GET", "/v1/catalogue/", 404, "not-found"),
        ("GET", "/docs", 404, "not-found"),
        ("DELETE", "/v1/catalogue", 405, "method-not-allowed"),
        ("PUT", OFFERS, 405, "method-not-allowed"),
        ("GET", IMPRESSIONS, 405, "method-not-allowed"),
        ("POST", MULTI_SELECTION, 415, "unsupported-media-type"),
        ("GET", "/v1/slates/counts-1?k=0", 422, "invalid-parameter"),
        ("GET", "/v1/slates/counts-1?alpha=nan", 422, "invalid-parameter"),
        ("GET", "/v1/slates/counts-1?k=101", 422, "invalid-parameter"),
        ("GET", "/metrics", 401, "unauthorised"),
    ],
)
def test_what_cannot_be_answered_is_a_problem_with_a_stable_code(
    client: httpx.Client, method: str, path: str, status: int, code: str
) -> None:
    answer = client.request(method, path, content=b"hello" if method in ("POST", "PUT") else None)
    require_problem(answer, status, code)


def test_a_head_is_answered_without_a_body_and_names_what_is_allowed(client: httpx.Client) -> None:
    answer = client.head("/v1/catalogue")
    assert answer.content == b""
    assert answer.status_code in (200, 405)
    assert answer.status_code == 200 or "GET" in answer.headers["allow"]


def test_every_answer_has_the_headers_that_protect_and_none_that_names_the_server(client: httpx.Client) -> None:
    answers = [
        client.get(path)
        for path in ("/", "/web/style.css", "/v1/catalogue", "/v1/model", "/v1/slates", "/v1/releases/counts-1")
    ]
    answers += [client.get(path) for path in ("/healthz", "/readyz", "/openapi.json", "/metrics", "/nothing")]
    answers += [client.delete("/v1/model"), client.head("/"), client.options(OFFERS)]
    answers += [client.post(MULTI_SELECTION, content=request_of().to_bytes(), headers={"Content-Type": BINARY})]
    answers += [client.post(path, json={}) for path in (OFFERS, IMPRESSIONS, MULTI_SELECTION)]
    answers += [client.get("/v1/catalogue", headers={"If-None-Match": answers[2].headers["etag"]})]
    assert {answer.status_code for answer in answers} >= {200, 304, 401, 404, 405, 422}
    for answer in answers:
        headers = answer.headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "cache-control" in headers
        assert "server" not in headers
        assert "set-cookie" not in headers
        assert not [name for name in headers if name.startswith("access-control-")]


def test_what_is_somebodys_alone_is_not_kept_by_caches(client: httpx.Client) -> None:
    asked = {"Content-Type": BINARY}
    for answer in (
        client.post(MULTI_SELECTION, content=request_of().to_bytes(), headers=asked),
        client.post(OFFERS, json={"version": 1, "context": "", "consent": 1}),
        client.get("/v1/slates/counts-1", params={"drawn": "true"}),
    ):
        assert answer.headers["cache-control"] == "no-store"


def test_only_named_origins_may_read_answers_also_those_that_are_problems(serve: Serve) -> None:
    service = serve(origins=FRIEND, rate=1, burst=20).start()
    before = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    with service.client() as client:
        asked = client.options(OFFERS, headers={"Origin": FRIEND, **before})
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, FRIEND)
        asked = client.options(OFFERS, headers={"Origin": STRANGER, **before})
        assert asked.headers.get("access-control-allow-origin") is None
        require_problem(asked, 403, "forbidden")
        statuses = set()
        for _ in range(20):
            for path in ("/v1/model", "/nothing"):
                friend, stranger = (client.get(path, headers={"Origin": one}) for one in (FRIEND, STRANGER))
                assert friend.headers["access-control-allow-origin"] == FRIEND
                assert "access-control-allow-origin" not in stranger.headers
                assert "access-control-allow-credentials" not in friend.headers
                statuses |= {friend.status_code, stranger.status_code}
        assert statuses == {200, 404, 429}
        assert "Retry-After" in friend.headers["access-control-expose-headers"]
