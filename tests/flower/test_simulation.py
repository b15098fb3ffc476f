"""Runs in Flower's simulation: nodes are Ray actors, and one of them fails. The hospitals' own processes are real."""

from pathlib import Path

from tacit.messages.federated_prototypes.manifest import Manifest
from tests.flower.conftest import Site, crossed, holds_raw_values, model_of, without_flower
from tests.flower.world import NAMES, entity

NODES = f"num-supernodes={len(NAMES)} client-resources-num-cpus=1 init-args-num-cpus=2"


def simulated(site: Site, manifest: Manifest, **more: object) -> Path:
    """Runs a manifest to its end, and gives the coordinator's folder."""
    folder = site.begin(manifest)
    if "superlink" not in site.net.processes:
        site.net.superlink("--insecure", "--simulation")
        site.net.connection("simulation", insecure=True)
    settings = {**site.settings(folder), "simulated": ",".join(NAMES), "exchanges": str(site.exchanges), **more}
    run = site.net.run(site.app, "simulation", "--federation-config", NODES, **settings)
    assert site.net.finished(run, "simulation", 200) == "finished:completed", site.net.tails()
    return folder.folder


def test_prototypes(site: Site) -> None:
    manifest = site.world.prototypes()
    simulated(site, manifest)
    folder = site.begin(manifest)  # the same run: opening it again changes nothing
    model = model_of(folder)
    assert model.contributors == len(NAMES)
    assert model.hash == without_flower(site, manifest).hash
    for name in NAMES:
        site.net.until(f"{name} has the model", lambda name=name: _has(site, name, model.hash), 30)


def test_moments_under_secure_aggregation_with_a_node_that_fails(site: Site) -> None:
    manifest = site.world.moments()
    broken = site.net.folder / "broken"
    broken.mkdir()
    for name in NAMES[:-1]:
        (broken / name).symlink_to(site.exchange(name))
    (broken / NAMES[-1]).write_text("a file where the last hospital's exchange folder should be")
    simulated(site, manifest, exchanges=str(broken))
    model = model_of(site.begin(manifest))
    assert model.contributors == len(NAMES) - 1
    assert model.hash == without_flower(site, manifest, {NAMES[-1]: "keys"}).hash
    assert site.replies(NAMES[-1], manifest) == []


def test_nothing_raw_has_crossed(site: Site) -> None:
    content = crossed(site)
    assert b"tacit fp/1" in content
    assert not holds_raw_values(content)
    assert holds_raw_values((site.world.private("east") / "rows.csv").read_bytes())


def _has(site: Site, name: str, model: str) -> bool:
    return any(
        file.read_bytes() == b"" and model.encode() in (site.exchange(name) / "inbox" / file.name).read_bytes()
        for file in (site.exchange(name) / "outbox").glob("*.fp")
    )


def test_an_entity_can_use_the_model(site: Site) -> None:
    with entity(site.world.private("east")) as east:
        assert east.shared()[1].informed
