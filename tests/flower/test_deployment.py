"""A real deployment on one machine: a SuperLink and SuperNodes as processes, TLS, and SuperNodes known by their keys."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.messages.federated_prototypes.frame import MAGIC
from tests.flower.certificates import Authority, node_key
from tests.flower.conftest import Site, crossed, holds_raw_values, model_of, without_flower
from tests.flower.network import Network
from tests.flower.wire import Wire, wire
from tests.flower.world import NAMES, entity

LEAVES = NAMES[-1]
OVERHEARD = NAMES[0]


class Deployment:
    """The site with its SuperLink, and SuperNodes whose keys the coordinator has registered."""

    def __init__(self, site: Site) -> None:
        self.site, self.net = site, site.net
        self.tls = self.net.folder / "tls"
        self.authority = Authority.make(self.tls, "authority")
        certificate, key = self.authority.server(self.tls)
        self.net.superlink(
            *("--ssl-ca-certfile", self.authority.certificate, "--ssl-certfile", certificate, "--ssl-keyfile", key),
            "--enable-supernode-auth",
        )
        self.net.connection("coordinator", **{"root-certificates": str(self.authority.certificate)})

    def register(self, public: Path, connection: str = "coordinator") -> str:
        done = self.net.flwr("supernode", "register", public, connection)
        return done.stdout + done.stderr

    def node(self, name: str, superlink: str = "") -> None:
        """The node is told its name and its exchange folder; the private folder only to see whether it looks into it."""
        private, public = node_key(self.tls, name)
        assert "registered successfully" in self.register(public)
        self.net.supernode(
            *(name, "--root-certificates", self.authority.certificate, "--auth-supernode-private-key", private),
            config=f'entity="{name}" exchange="{self.site.exchange(name)}" wait=20',
            superlink=superlink,
            **self.site.watched("nodes"),
        )


@pytest.fixture(scope="module")
def deployment(site: Site) -> Deployment:
    return Deployment(site)


@pytest.fixture(scope="module")
def overheard(deployment: Deployment) -> Iterator[Wire]:
    """All nodes are started; one of them speaks over a wire that is listened to."""
    with wire(deployment.net.port) as found:
        for name in NAMES:
            deployment.node(name, found.address if name == OVERHEARD else "")
        yield found


def refused(net: Network, name: str) -> str:
    """What a SuperNode says that could not get in, once it has ended by itself."""
    net.until(f"{name} gives up", lambda: net.processes[name].poll() is not None, 90)
    assert net.processes[name].returncode != 0
    assert "SuperNode ID" not in net.log(name)
    return net.log(name)


def test_prototypes(deployment: Deployment, overheard: Wire) -> None:
    site, manifest = deployment.site, deployment.site.world.prototypes()
    folder = site.begin(manifest)
    run = site.net.run(site.app, "coordinator", **site.settings(folder))
    assert site.net.finished(run, "coordinator", 200) == "finished:completed", site.net.tails()
    model = model_of(folder)
    assert model.contributors == len(NAMES)
    assert model.hash == without_flower(site, manifest).hash


def test_moments_under_secure_aggregation_with_a_node_that_is_switched_off(
    deployment: Deployment, overheard: Wire
) -> None:
    """It leaves when its mask is already in the others' shares: the hardest moment, for its mask must be taken out again."""
    site, manifest = deployment.site, deployment.site.world.moments()
    folder = site.begin(manifest)
    run = site.net.run(site.app, "coordinator", **site.settings(folder, stage_seconds=45))
    site.net.until("the shares are sent", lambda: (folder.folder / "stages" / "keys" / "closed").exists(), 100)
    site.net.until("its own too", lambda: len(site.replies(LEAVES, manifest)) >= 2, 60)
    site.net.until("and taken", lambda: _taken(folder.folder, LEAVES), 60)
    site.net.end(LEAVES)
    assert site.net.finished(run, "coordinator", 300) == "finished:completed", site.net.tails()
    model = model_of(folder)
    assert model.contributors == len(NAMES) - 1
    assert model.hash == without_flower(site, manifest, {LEAVES: "popularity"}).hash
    with entity(site.world.private(OVERHEARD)) as found:
        assert found.shared()[1].hash == model.hash


def _taken(folder: Path, name: str) -> bool:
    digest = [one for one in (folder / "inbox").glob("*.fp") if f'"from":"{name}"'.encode() in one.read_bytes()]
    return bool(digest) or (folder / "stages" / "shares" / f"{name}.fp").exists()


def test_nothing_raw_has_crossed_and_nothing_at_all_is_readable_on_the_wire(
    deployment: Deployment, overheard: Wire
) -> None:
    content = crossed(deployment.site)
    assert content.count(MAGIC) >= 20
    assert not holds_raw_values(content)
    heard = overheard.heard
    own = sum(len(one) for one in deployment.site.replies(OVERHEARD, deployment.site.world.moments()))
    assert len(heard) > own
    for readable in (MAGIC, OVERHEARD.encode(), b"tacit"):
        assert readable not in heard


def test_a_node_has_opened_nothing_private_and_loaded_nothing_that_could(
    deployment: Deployment, overheard: Wire
) -> None:
    """The list of what it opened is short because it looked at nothing: the entities' own processes are listed the same way."""
    nodes, entities = deployment.site.seen("nodes"), deployment.site.seen("entities")
    assert {
        f"open {deployment.site.world.private('east')}/{file}" for file in ("key", "entity.toml", "rows.csv")
    } <= set(entities)
    assert "import tacit.entity" in entities
    assert "import tacit.engines.folders" in nodes
    assert [line for line in nodes if line.startswith("open ")] == []
    assert {line.split()[1].split(".")[0] for line in nodes} == {"tacit"}
    rooms = {line.split(".")[1] for line in nodes if "." in line}
    assert rooms <= {"engines", "errors", "files", "loading", "messages"}  # loading finds lazy names


def test_a_supernode_without_a_key_is_refused(deployment: Deployment) -> None:
    net = deployment.net
    net.supernode("keyless", "--root-certificates", deployment.authority.certificate, config='entity="east"')
    assert "All SuperNodes must be registered" in refused(net, "keyless")


def test_a_supernode_whose_key_nobody_registered_is_refused(deployment: Deployment) -> None:
    private, _ = node_key(deployment.tls, "stranger")
    deployment.net.supernode(
        *("stranger", "--root-certificates", deployment.authority.certificate),
        *("--auth-supernode-private-key", private),
        config='entity="east"',
    )
    assert "Failed to activate SuperNode" in refused(deployment.net, "stranger")


def test_a_superlink_whose_certificate_another_authority_signed_is_not_spoken_to(deployment: Deployment) -> None:
    other = Authority.make(deployment.tls, "other")
    private, public = node_key(deployment.tls, "misled")
    assert "registered successfully" in deployment.register(public)
    deployment.net.supernode(
        *("misled", "--root-certificates", other.certificate, "--auth-supernode-private-key", private),
        config='entity="east"',
    )
    assert "CERTIFICATE_VERIFY_FAILED" in refused(deployment.net, "misled")
    deployment.net.connection("misled", **{"root-certificates": str(other.certificate)})
    assert "registered successfully" not in deployment.register(public, "misled")


def test_nobody_gets_in_without_tls(deployment: Deployment) -> None:
    deployment.net.supernode("plain", "--insecure", config='entity="east"')
    told = refused(deployment.net, "plain")
    assert "Failed to initialize the connection" in told
    assert "must be registered" not in told  # it does not get as far as being asked for a key
