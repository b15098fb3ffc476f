"""The commands: from Parquet to Parquet and to a model, one line for each error, and nothing that escapes the ledger."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tacit.curator import Curator
from tacit.curator.cross_domain.domains import BothDomains
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Scale
from tacit.engines.spark.__main__ import main
from tacit.engines.spark.rows import SparkRows
from tacit.engines.spark.tables import coded
from tacit.ledger import Budget, PrivacyLedger
from tacit.mechanisms.noise import ReplayedNoise
from tacit.messages.cross_domain import TransferModel
from tests.spark.world import World, layered, small

SCALE = Scale(1.0, 5.0)


def write(world: World, session: SparkSession, folder: Path) -> tuple[str, str]:
    places = str(folder / "ratings.parquet"), str(folder / "items.parquet")
    world.frame(session).write.parquet(places[0])
    world.listed(session).write.parquet(places[1])
    return places


def test_similarities_then_x_sim(session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ratings, _ = write(small(), session, tmp_path)
    out = str(tmp_path / "out")
    assert (
        main(["similarities", ratings, "--out", out, "--shrink", "0", "--least", "1", "--scale", "1", "5"], session)
        == 0
    )
    assert main(["x-sim", out, "--out", out], session) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "6 edges of 6 items",
        "X-SIM of 6 pairs",
    ]
    found = {
        (row["source_item"], row["target_item"]): row["x_sim"] for row in pq.read_table(f"{out}/x_sim").to_pylist()
    }
    assert found[0, 3] == pytest.approx(0.237541, abs=5e-7)
    chosen = pq.read_table(f"{out}/replacements").to_pylist()
    assert {row["source_item"]: row["target_item"] for row in chosen} == {0: 3, 1: 3}
    assert pq.read_table(f"{out}/items").column_names == ["code", "item", "domain", "layer"]


def test_moments_are_charged_once_and_sent_again(
    session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ratings, items = write(layered(users=200), session, tmp_path)
    ledger, out = tmp_path / "curator.db", tmp_path / "model.json"
    words = ["moments", ratings, "--items", items, "--scale", "1", "5", "--epsilon", "1.5", "--ledger", str(ledger)]
    words += ["--budget", "2", "1e-6"]
    words += ["--subject", "all", "--users", "200", "--post", "bridge"]
    for place in (out, tmp_path / "again.json"):
        assert main([*words, "--out", str(place)], session) == 0
    assert out.read_bytes() == (tmp_path / "again.json").read_bytes()
    model = TransferModel.load(out)
    assert (model.guarantee.epsilon, model.guarantee.delta) == (pytest.approx(1.5, abs=1e-6), 1e-6)
    assert model.kind == "bridge"
    assert len(model.source) == len(model.target) == 48
    with PrivacyLedger.open(ledger) as opened:
        assert opened.statement("all").charges == 1
    capsys.readouterr()
    assert main([*words, "--request-id", "another", "--out", str(tmp_path / "more.json")], session) == 1
    told = capsys.readouterr().err
    assert told.startswith("tacit: budget-exhausted")
    assert told.count("\n") == 1
    assert not (tmp_path / "more.json").exists()


def test_the_model_is_the_one_that_one_machine_makes(session: SparkSession, tmp_path: Path) -> None:
    world = layered(users=300)
    ids = np.arange(world.n_items)
    lists = Catalogue(ids[: world.n_source]), Catalogue(ids[world.n_source :])
    spread = SparkRows(world.frame(session), coded(world.listed(session)))
    models = []
    for name, rows in (("one", world.table()[0]), ("spark", spread)):
        noise = ReplayedNoise(11)
        domains = BothDomains(*lists, SCALE, lambda least, rows=rows: rows, "two domains")
        curator = Curator(
            domains, ledger=tmp_path / f"{name}.db", budget=Budget(2, 1e-6), noise=noise, unprotected=[noise.caveat]
        )
        models.append(curator.release(8.0, users=300, least=1))
        curator.close()
    assert models[0].to_json() == models[1].to_json()
    assert models[0].predict({0: 5.0, 1: 1.0}) == models[1].predict({0: 5.0, 1: 1.0})


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["--epsilon", "0"], 2, "epsilon must be"),
        (["--delta", "1"], 2, "delta must"),
        (["--scale", "5", "1"], 2, "the low end of the scale must be below"),
        (["--items", "nowhere.parquet"], 1, "nowhere.parquet"),
        (["--out", "no/such/model.json"], 2, "--out must name a file in a folder"),
        (["--out", "/"], 2, "--out must name a file"),
    ],
)
def test_a_wrong_call_is_one_line_and_charges_nothing(
    session: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    status: int,
    told: str,
) -> None:
    place, out = str(tmp_path / "items.parquet"), str(tmp_path / "model.json")
    pq.write_table(pa.table({"item": [1, 2], "domain": ["source", "target"]}), place)
    ledger = tmp_path / "curator.db"
    asked = ["moments", place, "--items", place, "--scale", "1", "5", "--ledger", str(ledger), "--out", out]
    asked += ["--subject", "all"]
    assert main([*asked, *words], session) == status
    found = capsys.readouterr().err
    assert told in found
    assert found.count("\n") == 1
    assert not ledger.exists()


@pytest.mark.parametrize(
    ("name", "value"), [("spark.submit.deployMode", "cluster"), ("spark.kubernetes.submitInDriver", "true")]
)
def test_a_ledger_in_a_file_is_refused_where_the_driver_does_not_last(
    session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    place, ledger = str(tmp_path / "items.parquet"), tmp_path / "curator.db"
    pq.write_table(pa.table({"item": [1, 2], "domain": ["source", "target"]}), place)
    words = [
        "moments",
        place,
        "--items",
        place,
        "--scale",
        "1",
        "5",
        "--subject",
        "all",
        "--out",
        str(tmp_path / "m.json"),
    ]

    class Away:  # these settings cannot be changed in a session that runs
        def __init__(self) -> None:
            self.conf = {name: value}

        def __getattr__(self, other: str) -> object:
            return getattr(session, other)

    assert main([*words, "--ledger", str(ledger)], Away()) == 2  # type: ignore[arg-type]
    assert "do not last" in capsys.readouterr().err
    assert not ledger.exists()


def test_a_model_is_not_written_over_the_ledger(
    session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, ledger = str(tmp_path / "items.parquet"), tmp_path / "curator.db"
    same = ["--subject", "all", "--ledger", str(ledger), "--out", f"{tmp_path}/./curator.db"]
    assert main(["moments", place, "--items", place, "--scale", "1", "5", *same], session) == 2
    assert "name the same file" in capsys.readouterr().err
    assert not ledger.exists()


def test_users_must_be_named_and_a_refused_first_release_settles_nothing(
    session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ratings, items = write(small(), session, tmp_path)
    words = ["moments", ratings, "--items", items, "--scale", "1", "5", "--least", "1"]
    words += ["--ledger", str(tmp_path / "curator.db"), "--out", str(tmp_path / "model.json")]
    with pytest.raises(SystemExit) as end:  # files are not who is in them
        main(words)
    assert end.value.code == 2
    assert "--subject" in capsys.readouterr().err
    words += ["--subject", "readers"]
    assert main([*words, "--epsilon", "3"], session) == 1
    assert "--budget" in capsys.readouterr().err
    assert main([*words, "--budget", "3", "1e-6"], session) == 0
    with PrivacyLedger.open(tmp_path / "curator.db") as opened:
        assert list(opened.subjects()) == ["readers"]


def test_an_error_of_spark_is_one_line_without_its_text(
    session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "ratings.parquet"
    table = {"user": ["telltale"], "item": [1], "value": [4.0], "domain": ["source"]}
    pq.write_table(pa.table(table), place)
    content = bytearray(place.read_bytes())
    content[4:40] = bytes(36)  # the footer says what is there, and it is not
    place.write_bytes(content)
    assert main(["similarities", str(place), "--out", str(tmp_path / "out")], session) == 1
    told = capsys.readouterr().err
    assert "Spark failed" in told
    assert "telltale" not in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    "words", [[], ["moments"], ["similarities", "a"], ["x-sim", "a", "--out", "b", "--by", "size"]]
)
def test_a_call_without_its_words_has_status_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    assert "spark-submit" in capsys.readouterr().out
