"""A whole federation whose messages go over HTTP: every entity has a key for its own, and for nobody else's."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tacit.engines.coordinator import CoordinatorFolder
from tacit.ledger.verification import check
from tacit.messages.federated_prototypes.frame import open_frame
from tacit.service.keys import Scope, issue
from tests.integration.service.conftest import Published
from tests.integration.service.serving import Service
from tests.integration.service.talking import require_problem
from tests.unit.federated_world import World

NAMES = ("a", "b", "c")
MEDIA_TYPE = "application/vnd.tacit.federation"
RUN, OTHER = "run-1", "run-2"  # c takes no part in the other one


@dataclass
class Federated:
    """Two runs in one service, and the keys of the entities."""

    service: Service
    runs: Path
    keys: dict[str, dict[str, str]]
    world: World

    def client(self, name: str) -> httpx.Client:
        return self.service.client(headers=self.keys[name])


@pytest.fixture(scope="module")
def federated(tmp_path_factory: pytest.TempPathFactory, published: Published) -> Iterator[Federated]:
    folder = tmp_path_factory.mktemp("federated")
    runs = folder / "runs"
    world = World(folder, "moments", NAMES, aggregation="secure")
    CoordinatorFolder.open(runs / RUN, world.manifest, world.key)
    other = World(folder, "tree", ("a", "b"))
    CoordinatorFolder.open(runs / OTHER, other.manifest, other.key)
    service = Service(folder / "service", models=published.models, rate=0, federations=runs, most_body=2048)
    file = service.home / "keys.json"
    keys = {name: issue(file, name, Scope.ENTITY, entity=name) for name in (*NAMES, "z")}
    keys["operator"] = issue(file, "operator", Scope.OPERATOR)
    service.start()
    try:
        yield Federated(service, runs, {name: {"Authorization": f"Bearer {key}"} for name, key in keys.items()}, world)
    finally:
        world.close()
        service.kill()


def names_for(client: httpx.Client, run: str = RUN) -> list[str]:
    answer = client.get(f"/v1/federations/{run}/messages")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["messages"])


def left(client: httpx.Client, content: bytes, run: str = RUN, kind: str = MEDIA_TYPE) -> httpx.Response:
    return client.post(f"/v1/federations/{run}/replies", content=content, headers={"Content-Type": kind})


def test_an_entity_sees_its_own_messages_in_its_own_runs(federated: Federated) -> None:
    with federated.client("a") as a, federated.client("c") as c, federated.client("z") as z:
        (own,) = names_for(a, OTHER)
        content = a.get(f"/v1/federations/{OTHER}/messages/{own}")
        assert content.headers["content-type"] == MEDIA_TYPE
        assert content.content == (federated.runs / OTHER / "outbox" / "a" / own).read_bytes()
        theirs = [file.name for file in (federated.runs / OTHER / "outbox" / "b").iterdir()]
        for name in (*theirs, "..%2Fb%2F" + theirs[0], "../b/" + theirs[0], "nothing.fp"):
            require_problem(a.get(f"/v1/federations/{OTHER}/messages/{name}"), 404, "not-found")
        require_problem(c.get(f"/v1/federations/{OTHER}/messages"), 403, "forbidden")
        require_problem(z.get(f"/v1/federations/{RUN}/messages"), 403, "forbidden")
        for run in ("none", "..", "%2e%2e", ".", "run-1%2Foutbox"):
            require_problem(a.get(f"/v1/federations/{run}/messages"), 404, "not-found")


def test_a_reply_is_left_only_by_an_entity_of_that_run_and_only_if_it_is_a_message(federated: Federated) -> None:
    inbox = federated.runs / OTHER / "inbox"
    before = sorted(inbox.iterdir())
    message = next((federated.runs / OTHER / "outbox" / "a").iterdir()).read_bytes()
    with federated.client("a") as a, federated.client("c") as c, federated.client("operator") as operator:
        require_problem(left(c, message, OTHER), 403, "forbidden")
        require_problem(left(operator, message, OTHER), 403, "forbidden")
        require_problem(left(a, message, "none"), 404, "not-found")
        require_problem(left(a, message, OTHER, "application/json"), 415, "unsupported-media-type")
        for content in (b"", b"hello", message[:-1], message + b"x", b"tacit fp/1\n" + bytes(100)):
            require_problem(left(a, content, OTHER), 422, "invalid-message")
    with federated.service.client() as nobody:
        require_problem(left(nobody, message, OTHER), 401, "unauthorised")
    assert sorted(inbox.iterdir()) == before


def test_a_federation_runs_to_its_model_over_http_and_charges_every_entity_once(federated: Federated) -> None:
    world, folder = federated.world, CoordinatorFolder(federated.runs / RUN)
    clients = {name: federated.client(name) for name in NAMES}
    seen: dict[str, set[str]] = {name: set() for name in NAMES}
    sizes = []
    for _ in range(len(world.manifest.stages) + 1):
        for name, client in clients.items():
            for message in names_for(client):
                if message in seen[name]:
                    continue
                seen[name].add(message)
                asked = client.get(f"/v1/federations/{RUN}/messages/{message}").content
                reply = world.entity(name).answer(asked)
                if reply:
                    kept = left(client, reply)
                    assert kept.status_code == 200, kept.text
                    assert left(client, reply).json() == kept.json()  # again changes nothing
                    sizes.append(len(reply))
        run, taken = folder.step(world.key)
        assert taken.rejected == {}
        if run.done:
            break
    assert run.model is not None
    assert max(sizes) > 2048  # a federation's messages may be longer than a device's
    for name, client in clients.items():
        last = client.get(f"/v1/federations/{RUN}/messages/{names_for(client)[-1]}").content
        assert open_frame(last).header["kind"] == "model"
        world.entity(name).answer(last)
        assert world.entity(name).statement().charges == 2  # popularity and gram, whatever was sent again
        client.close()
    assert list((federated.runs / RUN / "inbox").glob("*.fp")) == []
    world.close()
    for name in NAMES:
        assert check(str(world.folder / f"{name}.db")).sound
