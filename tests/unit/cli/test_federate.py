"""Two kinds of users of the command line, a hospital and a coordinator, with files carried between their folders."""

import csv
import json
import re
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.cli import main
from tests.unit.federated_world import rows_of
from tests.unit.unsynced import unsynced

__all__ = ["unsynced"]

NAMES = ("north", "south", "west")
ITEMS = 40


class Commands:
    """Types commands in a folder; what they print, and their exit status."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._patch, self._capture = folder, monkeypatch, capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        self._patch.setattr(sys, "argv", ["tacit", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capture.readouterr()
        return int(ended.value.code or 0), out, err

    def json(self, *words: str) -> Any:
        status, out, err = self(*words, "--json", "-")
        assert (status, err) == (0, "")
        return json.loads(out)


@pytest.fixture
def tacit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    """Three hospitals and a coordinator, each with keys and settings."""
    monkeypatch.chdir(tmp_path)
    commands = Commands(tmp_path, monkeypatch, capsys)
    Path("items.txt").write_text("".join(f"item-{place}\n" for place in range(ITEMS)))
    for name in ("coordinator", *NAMES):
        assert commands("entity", "keys", f"{name}.key")[0] == 0
    for name in NAMES:
        with Path(f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["user", "item", "value"])
            table = rows_of(name)
            rows.writerows((f"p{user}", f"item-{item}", table[user, item]) for user, item in np.argwhere(table > 0))
            rows.writerows(
                [("p0", "unknown", 3), ("p1", "item-2", "nonsense"), ("p2", "item-3", "nan"), ("p3", "item-1")]
            )
        write_settings(name)
    write_run()
    return commands


def write_settings(name: str, /, **own: str) -> None:
    told = {
        "name": f'"{name}"',
        "key": f'"{name}.key"',
        "coordinator": '"coordinator.key.pub"',
        "catalogue": '"items.txt"',
        "rows": f'"{name}.csv"',
        "ledger": f'"{name}.db"',
        "mailbox": f'"{name}"',
        "budget": "{ epsilon = 8.0, delta = 1e-6 }",
        "policy": "{ epsilon = 8.0 }",
        **own,
    }
    Path(f"{name}.toml").write_text("".join(f"{key} = {value}\n" for key, value in told.items() if value))


def write_run(**own: str) -> None:
    told = {"key": '"coordinator.key"', "catalogue": '"items.txt"', "epsilon": "8.0", "users": "40", **own}
    roster = "".join(f'[[roster]]\nname = "{name}"\nkey = "{name}.key.pub"\n' for name in NAMES)
    Path("run.toml").write_text("".join(f"{key} = {value}\n" for key, value in told.items() if value) + roster)


def carry(tacit: Commands, names: tuple[str, ...] = NAMES) -> None:
    for name in names:
        Path(name, "inbox").mkdir(parents=True, exist_ok=True)
        for file in Path("run", "outbox", name).iterdir():
            shutil.copy(file, Path(name, "inbox", file.name))
        status, out, err = tacit("entity", "release", f"{name}.toml")
        assert (status, err) == (0, ""), out
        for file in Path(name, "outbox").iterdir():
            shutil.copy(file, Path("run", "inbox", file.name))


def test_three_hospitals_and_a_coordinator(tacit: Commands) -> None:
    status, out, err = tacit("federate", "open", "run", "run.toml")
    assert (status, err) == (0, "")
    assert "epsilon = 8, delta = 1e-06" in out
    for _ in range(6):
        carry(tacit)
        assert tacit("federate", "step", "run", "--key", "coordinator.key")[0] == 0
    shown = tacit.json("federate", "show", "run")
    assert (shown["stage"], shown["model"]["informed"]) == ("model", True)
    assert [stage["replied"] for stage in shown["stages"]] == [list(NAMES)] * 6
    assert shown["guarantee"]["epsilon"] == 8.0
    carry(tacit)
    told = tacit.json("entity", "release", "north.toml")
    assert [one["outcome"] for one in told["messages"]] == ["answered", "kept"] + ["answered"] * 5
    assert (told["budget"]["charges"], told["budget"]["windows"][0]["left"]["rho"]) == (2, "0")
    status, out, err = tacit("entity", "fit", "north.toml", "--out", "best.csv", "--top", "3", "--report")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "Wrote 3 items for each user to best.csv (private; mode 600)."  # not how many
    private, taken, held_out, controls = out.splitlines()[1:]
    assert "private" in private
    assert re.fullmatch(r"  taken: (your own rows alone|the blend of your own rows with the shared model)", taken)
    assert re.fullmatch(
        r"  held out \(NDCG of 20 items, higher is better; \d+ users\): "
        r"own rows 0\.\d{4}, blend 0\.\d{4}; blend less own rows [+-]0\.\d{4} ± 0\.\d{4}",
        held_out,
    )
    assert re.match(
        r"  controls: noise without data 0\.\d{4}, constant 0\.\d{4}; (not both )?beaten by the blend", controls
    )
    assert stat.S_IMODE(Path("best.csv").stat().st_mode) == 0o600
    with Path("best.csv").open() as file:
        rows = list(csv.DictReader(file))
    mine = rows_of("north")
    for row in rows:  # nothing that a user has already
        assert mine[int(row["user"][1:]), int(row["item"].removeprefix("item-"))] == 0.0
    assert {row["place"] for row in rows} == {"1", "2", "3"}
    write_settings("north", fit="{ ridge = 9.0, alpha = 0.5, gamma = 0.1 }")
    assert tacit("entity", "fit", "north.toml", "--out", "tuned.csv", "--top", "3")[0] == 0
    assert Path("tuned.csv").read_text() != Path("best.csv").read_text()
    write_settings("north", fit="{ beta = 1.0 }")
    assert tacit("entity", "fit", "north.toml", "--out", "tuned.csv")[0] == 2
    write_settings("north")
    repeated = tacit("entity", "fit", "north.toml", "--out", "again.csv", "--top", "3")
    assert repeated[0] == 0
    assert Path("again.csv").read_text() == Path("best.csv").read_text()


def test_a_run_of_prototypes_takes_one_exchange(tacit: Commands) -> None:
    write_run(mechanism='"tree"', k="3", items_each="8", value_bound="5.0", rank="2", title='"drugs"')
    opened = tacit.json("federate", "open", "run", "run.toml")
    assert (opened["stage"], opened["title"], opened["stages"]) == (
        "prototypes",
        "drugs",
        [{"stage": "prototypes", "replied": [], "closed": False}],
    )
    carry(tacit)
    stepped = tacit.json("federate", "step", "run", "--key", "coordinator.key")
    assert stepped["step"]["closed"] == ["prototypes"]
    assert stepped["step"]["accepted"] == [f"{name} prototypes" for name in NAMES]
    assert stepped["stage"] == "model"
    carry(tacit)
    status, out, _ = tacit("entity", "fit", "west.toml", "--out", "best.csv", "--report")
    assert (status, "own rows" in out, "RMSE, lower is better" in out) == (0, True, True)
    assert "The gate" not in tacit("entity", "fit", "west.toml", "--out", "best.csv")[1]


@pytest.fixture
def courier(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The time between two looks of a watching entity: does what is to happen meanwhile, and notes how long it was."""

    def make(*meanwhile: Any) -> list[float]:
        slept, left = list[float](), list(meanwhile)

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            assert left, "it watches longer than it should"
            left.pop(0)()

        monkeypatch.setattr("tacit.cli.entity.time.sleep", sleep)
        return slept

    return make


def inbox_of(name: str) -> None:
    for file in Path("run", "outbox", name).iterdir():
        shutil.copy(file, Path(name, "inbox", file.name))


def test_a_watching_hospital_goes_on_until_the_model_has_come(tacit: Commands, courier: Any) -> None:
    from tacit.engines.coordinator import CoordinatorFolder
    from tacit.engines.folders import read_key

    write_run(aggregation='"none"')
    tacit("federate", "open", "run", "run.toml")
    others = ("south", "west")

    def replied() -> None:
        for file in Path("north", "outbox").iterdir():
            shutil.copy(file, Path("run", "inbox", file.name))
        CoordinatorFolder("run").step(read_key(Path("coordinator.key")))
        inbox_of("north")

    charges = []
    carry(tacit, others)
    from tacit.engines.settings import entity_settings, open_entity

    def answer_others() -> None:
        from tacit.engines.folders import Mailbox

        for name in others:
            inbox_of(name)
            found = entity_settings(f"{name}.toml")
            with open_entity(found) as entity:
                Mailbox(name).answer(entity)
            for file in Path(name, "outbox").iterdir():
                shutil.copy(file, Path("run", "inbox", file.name))
        with open_entity(entity_settings("north.toml")) as north:  # nothing is locked between two looks
            charges.append(north.statement().charges)

    slept = courier(
        lambda: inbox_of("north"),  # the manifest comes
        lambda: None,
        lambda: (replied(), answer_others()),
        lambda: replied(),
    )
    status, out, err = tacit("entity", "release", "north.toml", "--watch", "7")
    assert (status, err) == (0, "")
    assert slept == [7.0] * 4
    assert charges == [1]
    told = [line.split()[0] for line in out.splitlines() if ".fp" in line]
    assert told == ["answered", "answered", "kept"]  # each once, however often it was looked at
    assert "users: 2 charged" in out
    # That model was there before: the next watch is for the next run, and this one comes to its end without.
    courier()
    status, out, err = tacit("entity", "release", "north.toml", "--watch", "5", "--for", "0")
    assert (status, err) == (1, "tacit: no model has arrived.\n")


def test_a_watch_ends_in_time_and_answers_only_when_something_came(
    tacit: Commands, courier: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.engines.folders import Mailbox

    looks = list[int]()
    answer = Mailbox.answer
    monkeypatch.setattr(Mailbox, "answer", lambda self, entity: looks.append(1) or answer(self, entity))
    now = [0.0]
    monkeypatch.setattr("tacit.cli.entity.time.monotonic", lambda: now[0])

    def later() -> None:
        now[0] += 4.0

    slept = courier(later, later, lambda: now.__setitem__(0, 10.0))
    status, _, err = tacit("entity", "release", "north.toml", "--watch", "4", "--for", "10")
    assert (status, err) == (1, "tacit: no model has arrived.\n")
    assert slept == [4.0, 4.0, 2.0]
    assert len(looks) == 1
    # Junk stays junk: it is refused, and told, once.
    Path("north", "inbox", "bad.fp").write_bytes(b"nonsense")
    now[0], looks[:] = 0.0, []
    courier(later, later, lambda: now.__setitem__(0, 10.0))
    status, out, _ = tacit("entity", "release", "north.toml", "--watch", "4", "--for", "10")
    assert (status, len(looks), out.count("refused")) == (1, 1, 1)
    # What time can cure is tried again, and told once: the rows may be there by then.
    write_run(aggregation='"none"')
    tacit("federate", "open", "run", "run.toml")
    inbox_of("north")
    rows = Path("north.csv").read_bytes()
    Path("north.csv").write_bytes(b"patient,drug\n")
    now[0], looks[:] = 0.0, []
    courier(later, later, lambda: (Path("north.csv").write_bytes(rows), now.__setitem__(0, 10.0)))
    status, out, _ = tacit("entity", "release", "north.toml", "--watch", "4", "--for", "10")
    assert (status, len(looks), out.count("must have the columns"), out.count("answered")) == (1, 4, 1, 1)


def test_a_watch_ends_well_with_a_new_model_only_whatever_else_is_in_the_inbox(tacit: Commands, courier: Any) -> None:
    write_run(mechanism='"tree"', k="3", items_each="8", value_bound="5.0", rank="2")
    tacit("federate", "open", "run", "run.toml")
    carry(tacit)
    tacit("federate", "step", "run", "--key", "coordinator.key")
    Path("north", "inbox", "bad.fp").write_bytes(b"nonsense")
    courier(lambda: inbox_of("north"))
    status, out, err = tacit("entity", "release", "north.toml", "--watch", "7")
    assert (status, err, out.count("refused")) == (0, "", 1)
    assert tacit("entity", "release", "north.toml")[0] == 1  # without a watch, what was refused counts
    (model,) = Path("north", "inbox").glob("*-model.fp")
    shutil.copy(model, model.with_name("copy.fp"))
    shutil.rmtree(Path("north", "outbox"))  # carried away
    courier()
    status, _, err = tacit("entity", "release", "north.toml", "--watch", "5", "--for", "0")
    assert (status, err) == (1, "tacit: no model has arrived.\n")


@pytest.mark.parametrize("words", [(), ("--json", "-")], ids=["text", "json"])
def test_a_name_that_is_no_text_is_told(tacit: Commands, words: tuple[str, ...]) -> None:
    Path("north", "inbox").mkdir(parents=True)
    try:
        with open(b"north/inbox/\xff.fp", "wb") as out:
            out.write(b"nonsense")
    except OSError:
        pytest.skip("this file system has no such names")
    status, told, err = tacit("entity", "release", "north.toml", *words)
    assert (status, err, "udcff.fp" in told) == (1, "", True)


def test_a_watch_is_ended_by_an_interrupt(tacit: Commands, courier: Any) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    courier(interrupt)
    assert tacit("entity", "release", "north.toml", "--watch", "5")[0] == 130


@pytest.mark.parametrize(
    "words", [("--for", "5"), ("--watch", "0"), ("--watch", "nan"), ("--watch", "1", "--for", "-1")]
)
def test_a_wrong_watch_exits_with_2(tacit: Commands, words: tuple[str, ...]) -> None:
    status, out, err = tacit("entity", "release", "north.toml", *words)
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_a_key_is_spoken_of_whoever_it_is_for(tacit: Commands) -> None:
    _, out, _ = tacit("entity", "keys", "another.key")
    assert "coordinator" not in out
    assert (
        f"another.key.pub; others check your signatures with it: {Path('another.key.pub').read_text().strip()}" in out
    )


def test_a_planned_run_that_can_tell_nothing_is_warned_of(tacit: Commands) -> None:
    write_run(mechanism='"grid"', k="10", items_each="8", value_bound="5.0", epsilon="0.1")
    status, _, err = tacit("federate", "open", "run", "run.toml")
    assert status == 0
    assert "no information at this budget" in err


def test_work_that_fails_exits_with_1(tacit: Commands) -> None:
    tacit("federate", "open", "run", "run.toml")
    status, _, err = tacit("federate", "step", "run", "--key", "coordinator.key", "--close")
    assert status == 1
    assert err.startswith("tacit: too-few-entities: ")
    write_settings("north", policy="{ epsilon = 1.0 }")
    Path("north", "inbox").mkdir(parents=True)
    for file in Path("run", "outbox", "north").iterdir():
        shutil.copy(file, Path("north", "inbox"))
    status, out, _ = tacit("entity", "release", "north.toml")
    assert (status, "guarantee-refused" in out) == (1, True)
    assert list(Path("north", "outbox").iterdir()) == []
    assert tacit("federate", "show", "nowhere")[0] == 1
    Path("north.csv").unlink()
    status, _, err = tacit("entity", "release", "north.toml")
    assert (status, "no such file beside north.toml" in err) == (1, True)


def test_a_run_can_be_given_up(tacit: Commands) -> None:
    tacit("federate", "open", "run", "run.toml")
    assert tacit.json("federate", "step", "run", "--key", "coordinator.key", "--give-up")["stage"] == "given-up"
    assert tacit("federate", "step", "run", "--key", "coordinator.key", "--give-up", "--close")[0] == 2
    run = tacit.json("federate", "show", "run")["run"]
    assert tacit("entity", "leave", "north.toml", "--run", run)[0] == 1  # it never saw the manifest
    shutil.copytree(Path("run", "outbox", "north"), Path("north", "inbox"))
    assert tacit("entity", "release", "north.toml")[0] == 0
    assert tacit("entity", "leave", "north.toml", "--run", run)[0] == 0


def test_rejected_replies_are_told(tacit: Commands) -> None:
    tacit("federate", "open", "run", "run.toml")
    Path("run", "inbox", "x.fp").write_bytes(b"nonsense")
    status, _, err = tacit("federate", "step", "run", "--key", "coordinator.key")
    assert (status, err) == (0, "tacit: rejected x.fp: malformed\n")


@pytest.mark.parametrize(
    "own",
    [
        {"epsilon": "0"},
        {"epsilon": '"much"'},
        {"users": ""},
        {"nonsense": "1"},
        {"mechanism": '"magic"'},
        {"mechanism": '"grid"'},
        {"fewest": "1"},
        {"part": "1.0"},
    ],
    ids=str,
)
def test_a_wrong_run_exits_with_2_and_opens_nothing(tacit: Commands, own: dict[str, str]) -> None:
    write_run(**own)
    status, out, err = tacit("federate", "open", "run", "run.toml")
    assert (status, out) == (2, "")
    assert err.startswith("tacit: ")
    assert err.count("\n") == 1
    assert not Path("run").exists()


@pytest.mark.parametrize(
    "own", [{"name": '"NORTH"'}, {"nonsense": "1"}, {"budget": "{ much = 1 }"}, {"key": ""}], ids=str
)
def test_wrong_settings_exit_with_2(tacit: Commands, own: dict[str, str]) -> None:
    write_settings("north", **own)
    status, out, err = tacit("entity", "release", "north.toml")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1


def test_a_key_is_never_overwritten_nor_shown(tacit: Commands) -> None:
    secret = Path("north.key").read_text().strip()
    status, out, err = tacit("entity", "keys", "north.key")
    assert (status, out) == (2, "")
    assert secret not in err
    made = tacit.json("entity", "keys", "new.key")
    assert Path("new.key").read_text().strip() not in json.dumps(made)
    assert made["public"] == Path("new.key.pub").read_text().strip()


@pytest.mark.parametrize("words", [("entity",), ("federate",)])
def test_every_command_has_help_with_an_example(tacit: Commands, words: tuple[str, ...]) -> None:
    commands = {"entity": ("keys", "release", "fit", "leave", "show"), "federate": ("open", "step", "show")}[words[0]]
    for command in commands:
        status, out, _ = tacit(*words, command, "--help")
        assert status == 0
        assert f"Example: tacit {words[0]} {command}" in " ".join(out.split())


def test_rows_may_come_as_parquet_and_the_catalogue_as_json(tacit: Commands) -> None:
    import polars

    frame = polars.read_csv("north.csv", infer_schema=False, truncate_ragged_lines=True)
    frame.write_parquet("north.parquet")
    Path("items.json").write_text(json.dumps([f"item-{place}" for place in range(ITEMS)]))
    from tacit.engines.settings import read_catalogue, read_rows

    items = read_catalogue(Path("items.json"))
    assert items == read_catalogue(Path("items.txt"))
    assert read_rows(Path("north.parquet"), items) == read_rows(Path("north.csv"), items)


def test_a_table_that_cannot_be_read_is_told_without_its_content(tacit: Commands) -> None:
    write_run(aggregation='"none"')
    tacit("federate", "open", "run", "run.toml")
    Path("north.csv").write_text("patient,drug\nsecret,item-1\n")
    Path("north", "inbox").mkdir(parents=True)
    shutil.copy(next(Path("run", "outbox", "north").iterdir()), Path("north", "inbox"))
    status, out, err = tacit("entity", "release", "north.toml")
    assert status == 1
    assert "secret" not in out + err
    assert "must have the columns user and item" in out
    assert "0 charged" in out


def test_every_code_of_a_rejected_reply_is_documented() -> None:
    from tacit.messages.federated_prototypes import Code

    page = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text()
    assert [code.value for code in Code if f"`{code.value}`" not in page] == []


@pytest.mark.parametrize(
    ("file", "named", "holds"),
    [("items.txt", 'catalogue = "items.txt"', "one in each line"),
     ("coordinator.key", 'key = "coordinator.key"', "tacit entity keys"),
     ("west.key.pub", 'key = "west.key.pub"', "a public key")],
)  # fmt: skip
def test_a_file_that_is_not_there_is_named_as_the_run_file_does(
    tacit: Commands, file: str, named: str, holds: str
) -> None:
    Path(file).unlink()
    status, out, err = tacit("federate", "open", "run", "run.toml")
    assert (status, out) == (1, "")
    assert f"run.toml sets {named}, but there is no such file beside run.toml. It should hold " in err
    assert holds in err
    assert "Errno" not in err
    assert str(tacit.folder) not in err


def test_an_organisation_is_told_which_of_its_files_is_missing(tacit: Commands) -> None:
    Path("north.csv").unlink()
    status, _, err = tacit("entity", "show", "north.toml")
    assert status == 1
    assert 'north.toml sets rows = "north.csv"' in err
    assert "columns user, item and optionally value" in err
    Path("items.txt").write_bytes(b"\xff\xfe")
    assert "items.txt is not UTF-8 text" in tacit("federate", "open", "run", "run.toml")[2]
