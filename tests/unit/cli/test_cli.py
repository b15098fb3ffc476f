"""The command as a user types it: a real process, its output, its exit status."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tacit.cli.demo_private_slates import show as private_slates
from tacit.cli.showcase import curator_releases, device_releases
from tacit.data import read

TACIT = Path(sys.executable).with_name("tacit")
ROOT = Path(__file__).parents[3]


def tacit(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(TACIT), *words], capture_output=True, text=True, timeout=240, check=False)


def test_version_is_printed() -> None:
    done = tacit("--version")
    assert (done.returncode, done.stdout) == (0, "tacit 0.1.0\n")


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tacit", "--version"], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout) == (0, "tacit 0.1.0\n")
    done = subprocess.run(
        [sys.executable, "-m", "tacit", "no-such"], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"tacit: .+\n", done.stderr)


def test_a_wrong_call_exits_with_2() -> None:
    for words in (("no-such-command",), ("demo", "--no-such-option"), ("audit", "--json", "no/such/folder/x.json")):
        done = tacit(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(r"tacit: .+\n", done.stderr)


def test_a_failing_disk_is_one_line_on_standard_error_and_exits_with_1() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no device that is always full")
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(TACIT), "data", "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"tacit: .+\n", done.stderr)


@pytest.mark.parametrize(
    "words", [("data", "describe", "no-such-data"), ("audit", "no-such-mechanism"), ("demo", "--data", "no-such")]
)
def test_an_unknown_name_is_one_line_on_standard_error_and_exits_with_2(words: tuple[str, ...]) -> None:
    done = tacit(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"tacit: unknown-name: .+\n", done.stderr)


@pytest.mark.parametrize(
    "words", [(), ("demo",), ("audit",), ("data", "list"), ("data", "describe"), ("data", "import")]
)
def test_every_command_has_help_with_an_example(words: tuple[str, ...]) -> None:
    done = tacit(*words, "--help")
    assert done.returncode == 0
    assert not words or "Example" in done.stdout


def test_every_command_has_its_place_in_the_docs() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    for command in ("demo", "audit", "fit", "evaluate", "data list", "data describe", "data import"):
        assert f"tacit {command}" in page


def test_demo_releases_adds_up_and_audits(tmp_path: Path) -> None:
    out = tmp_path / "demo.json"
    done = tacit("demo", "--data", "synthetic", "--json", str(out))
    assert done.returncode == 0, done.stderr
    assert "refused (mixed-units" in done.stdout
    shown = json.loads(out.read_text())
    assert {release["mechanism"] for release in shown["releases"]} == {
        "exponential", "gaussian-sum", "laplace-sum", "noisy-max", "permute-and-flip", "randomised-response", "sparse-vector",
        "top-k", "vector-laplace",
    }  # fmt: skip
    assert all(release["guarantee"]["epsilon"] != "inf" for release in shown["releases"])
    assert 0 < shown["total"]["epsilon"] <= 4.0  # 0.5 + 1 + 1 + 0.5 + 1 by basic composition
    assert all(row["holds"] for row in shown["audit"]["mechanisms"])
    assert all(row["caught"] for row in shown["audit"]["twins"])
    asked = shown["multi_selection"]
    assert len(asked["slate"]) == 5
    assert not asked["signal"]["simulated"]
    assert "picked" not in asked
    kept = {way["algorithm"]: way["kept"] for way in asked["ways"]}
    assert 0.5 < kept["nopost"] < kept["exact"] <= 1.0
    assert "stays on the device" in done.stdout
    drawn = shown["private_slates"]
    assert len(drawn["titles"]) == len(drawn["slate"]["items"]) == 10
    assert drawn["slate"]["route"] == drawn["route"]
    assert drawn["slate"]["guarantee"]["epsilon"] == 1.0
    ways = {way["route"]: way for way in drawn["ways"]}
    assert ways["uniform"]["epsilon"] == 0.0
    assert ways["natural"]["epsilon"] == 1.0
    assert 0.0 < ways["published"]["epsilon"] < 0.1  # what is proved of a jitter that large
    assert ways["not private"]["epsilon"] == "inf"
    assert 0.0 < ways["uniform"]["popularity"] < ways["not private"]["popularity"] <= 1.0
    assert drawn["why"] in done.stdout.replace("\n", " ")
    federated = shown["federated_prototypes"]
    assert {way["method"] for way in federated["ways"]} >= {"individual", "federated", "not private"}
    assert [promised["epsilon"] for promised in federated["guarantees"]] == [1.0, 4.0]
    assert federated["verdict"].split(".")[0] in done.stdout.replace("\n", " ")
    carried = shown["cross_domain"]
    assert [promised["epsilon"] for promised in carried["guarantees"]] == pytest.approx([2.0, 8.0])
    assert {way["method"] for way in carried["ways"]} == {
        "own mean", "moments", "item average", "user mean + item offset", "NX-Map",
    }  # fmt: skip
    assert carried["verdict"].split(".")[0] in done.stdout.replace("\n", " ")


def test_demo_works_on_ratings_without_genres(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = {(int(user), int(item)): int(stars) for user, item, stars in rng.integers([0, 0, 1], [60, 12, 6], (500, 3))}
    file, stored = tmp_path / "plain.csv", tmp_path / "plain.parquet"
    file.write_text("who,what,stars\n" + "".join(f"{u},{i},{r}\n" for (u, i), r in rows.items()))
    words = ["--user", "who", "--item", "what", "--rating", "stars", "--scale", "1", "5", "--out", str(stored)]
    assert tacit("data", "import", str(file), *words).returncode == 0
    shown = [row.guarantee.epsilon for row in (*curator_releases(read(stored)), *device_releases(read(stored)))]
    assert len(shown) == 9
    slates = private_slates(read(stored), Console(quiet=True))
    assert slates is not None
    assert slates.route == "natural"  # nothing public says what is alike
    assert len(slates.titles) == 10
    assert all(way.diversity is None for way in slates.ways)


def test_audit_json_has_the_promised_shape(tmp_path: Path) -> None:
    out = tmp_path / "audit.json"
    done = tacit("audit", "randomised-response", "exponential", "--json", str(out))
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text())
    assert {row["name"] for row in report["mechanisms"]} == {"randomised-response", "exponential"}
    for row in report["mechanisms"]:
        assert set(row) >= {"name", "claim", "by", "loss", "holds"}
        assert set(row["claim"]) >= {"epsilon", "delta", "unit"}
        assert row["by"] in {"exact", "distribution", "empirical"}
        assert row["holds"] is True
    assert report["twins"]
    assert all(set(row) >= {"name", "of", "caught"} and row["caught"] is True for row in report["twins"])
