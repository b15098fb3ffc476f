"""A master and two workers as processes of their own: the commands run there, and the loss of an executor changes nothing."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit.engines.spark.__main__ as program
from tacit.ledger import PrivacyLedger
from tacit.mechanisms.rating_rows import RatingBounds
from tacit.mechanisms.transfer_moments import OffsetSums
from tacit.messages.cross_domain import TransferModel
from tacit.models.cross_domain.similarities import edges_of
from tests.spark.cluster import Cluster, cluster
from tests.spark.world import World, layered

WORLD = layered(users=300)


def write(world: World, folder: Path) -> tuple[Path, Path]:
    """The ratings in several files, and the list of items: as another program would have written them."""
    ratings = folder / "ratings"
    ratings.mkdir()
    domain = np.array(["source", "target"])
    for number, rows in enumerate(np.array_split(np.arange(world.users.size), 3)):
        items = world.items[rows]
        columns = {"user": world.users[rows], "item": items, "value": world.values[rows].astype(np.float32)}
        table = pa.table({**columns, "domain": domain[(items >= world.n_source).astype(int)]})
        pq.write_table(table, ratings / f"{number}.parquet")
    listed = np.arange(world.n_items)
    side = domain[(listed >= world.n_source).astype(int)]
    pq.write_table(pa.table({"item": listed, "domain": side}), folder / "items.parquet")
    return ratings, folder / "items.parquet"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def executors(running: Cluster) -> int:
    """How many were started so far, over all applications."""
    return sum(1 for number in (1, 2) for _ in (running.folder / f"work{number}").glob("app-*/*"))


def test_totals_are_exact_although_an_executor_is_lost_on_the_way(running: Cluster, tmp_path: Path) -> None:
    ratings, items = write(WORLD, tmp_path)
    note, out = tmp_path / "note", tmp_path / "totals.npy"
    ran = running.submit(Path(__file__).parent / "lossy.py", ratings, items, out, note, partitions=10)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert note.read_text() == "killed"
    assert executors(running) >= 3  # two, and another in place of the one that was killed
    step = OffsetSums(WORLD.n_items, RatingBounds(1.0, 5.0), mu=0.5, delta=1e-6)
    assert np.array_equal(np.load(out), step.totals(WORLD.table()[0]))


def test_a_private_release_is_charged_once_and_is_that_of_exact_totals(running: Cluster, tmp_path: Path) -> None:
    """With all but no noise (an epsilon of a million) the model is what one machine makes of the totals."""
    ratings, items = write(WORLD, tmp_path)
    words = [
        "moments",
        ratings,
        "--items",
        items,
        "--scale",
        1,
        5,
        "--least",
        1,
        "--users",
        300,
        "--subject",
        "readers",
    ]
    words += ["--epsilon", "1e6", "--budget", "1e6", "1e-6", "--ledger", tmp_path / "curator.db"]
    for name in ("model.json", "again.json"):
        ran = running.submit(str(program.__file__), *words, "--out", tmp_path / name)
        assert ran.returncode == 0, ran.stderr[-3000:]
    assert "the same release as before" in ran.stdout
    assert (tmp_path / "model.json").read_bytes() == (tmp_path / "again.json").read_bytes()
    with PrivacyLedger.open(tmp_path / "curator.db") as ledger:
        assert ledger.statement("readers").charges == 1
    model = TransferModel.load(tmp_path / "model.json")
    table, _ = WORLD.table()
    means = np.asarray(table.sum(axis=0) / np.maximum(np.bincount(table.indices, minlength=WORLD.n_items), 1))
    predicted = model.predict({}, list(range(WORLD.n_items)))
    told = np.array([predicted[item] for item in range(WORLD.n_items)])
    assert np.corrcoef(told, means)[0, 1] > 0.9


def test_the_command_runs_on_the_cluster(running: Cluster, tmp_path: Path) -> None:
    ratings, _ = write(WORLD, tmp_path)
    words = ["similarities", ratings, "--out", tmp_path / "out", "--scale", 1, 5, "--least", 1]
    ran = running.submit(str(program.__file__), *words)
    assert ran.returncode == 0, ran.stderr[-3000:]
    expected = edges_of(WORLD.table()[0])
    upper = expected.rows < expected.items
    found = pq.read_table(tmp_path / "out" / "edges").sort_by([("first", "ascending"), ("second", "ascending")])
    assert found.column("first").to_pylist() == expected.rows[upper].tolist()
    assert found.column("second").to_pylist() == expected.items[upper].tolist()
    assert np.allclose(found.column("cosine").to_numpy(), expected.cosine[upper], rtol=0, atol=1e-9)
    assert found.column("significance").to_pylist() == expected.significance[upper].tolist()
    assert str(found.num_rows) in ran.stdout.replace(",", "")
