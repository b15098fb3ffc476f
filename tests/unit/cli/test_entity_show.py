"""`tacit entity show`: what a manifest asks for, before anything is answered."""

import shutil
from pathlib import Path

import pytest

from tests.unit.cli.test_federate import NAMES, Commands, tacit, write_run, write_settings
from tests.unit.unsynced import unsynced

__all__ = ["tacit", "unsynced"]


def brought(tacit: Commands, **own: str) -> None:
    """A run's manifest, in the inbox of the first hospital."""
    write_run(**own)
    assert tacit("federate", "open", "run", "run.toml")[0] == 0
    Path("north", "inbox").mkdir(parents=True, exist_ok=True)
    for file in Path("run", "outbox", "north").iterdir():
        shutil.copy(file, Path("north", "inbox", file.name))


def pinned(*names: str) -> str:
    inner = ", ".join(f'{name} = "{name}.key.pub"' for name in names)
    return f"{{ epsilon = 8.0, peers = {{ {inner} }} }}"


def test_a_manifest_is_shown_with_its_roster_its_cost_and_what_is_left(tacit: Commands) -> None:
    brought(tacit, title='"spring"')
    write_settings("north", policy=pinned("south", "west"))
    status, out, err = tacit("entity", "show", "north.toml")
    assert (status, err) == (0, "")
    shown = tacit.json("entity", "show", "north.toml")
    (one,) = shown["manifests"]
    assert out.startswith(f"run {one['run']} ('spring')\n  moments, aggregation secure\n  guarantee: epsilon = 8")
    assert "no user is in two entities" in out
    assert [member["name"] for member in one["roster"]] == list(NAMES)
    assert all(member["known"] for member in one["roster"])
    south = Path("south.key.pub").read_text().strip()
    assert f"    known   south (contributor) {south}\n" in out
    assert one["cost"]["rho"] == one["windows"][0]["left"]["rho"] != "0"  # the budget is just this run's
    assert f"costs {one['cost']['rho']} rho in all\n" in out
    assert f": {one['cost']['rho']} rho is left\n" in out
    assert out.endswith("would be answered\n")
    assert (one["refusal"], one["joined"], shown["unreadable"]) == (None, False, {})


def test_showing_charges_and_answers_nothing(tacit: Commands) -> None:
    brought(tacit, aggregation='"none"')
    for _ in range(2):
        assert tacit("entity", "show", "north.toml")[0] == 0
    assert not Path("north.db.runs").exists()
    assert list(Path("north", "outbox").iterdir()) == []
    tacit("entity", "release", "north.toml")
    (one,) = tacit.json("entity", "show", "north.toml")["manifests"]
    assert one["joined"] is True
    assert float(one["windows"][0]["left"]["rho"]) < float(one["cost"]["rho"])
    assert "joined this run" in tacit("entity", "show", "north.toml")[1]


def test_entities_that_nobody_knows_are_pointed_out_and_refused(tacit: Commands) -> None:
    brought(tacit)
    write_settings("north", policy=pinned("south"))
    status, out, _ = tacit("entity", "show", "north.toml")
    assert status == 1
    assert "3 contributors, 2 of them known to you" in out
    assert "    known   north (contributor)" in out
    assert "    UNKNOWN west (contributor)" in out
    assert "would be refused: guarantee-refused: 2 of the 3 contributors" in out
    status, out, _ = tacit("entity", "release", "north.toml")
    assert status == 1
    assert "guarantee-refused" in out


def test_a_peer_with_another_key_is_unknown(tacit: Commands) -> None:
    brought(tacit)
    write_settings("north", policy=pinned("south", "west"))
    Path("west.key.pub").write_text("ab" * 32 + "\n")
    assert tacit("entity", "show", "north.toml")[0] == 1


def test_peers_may_stand_in_a_table_of_their_own(tacit: Commands) -> None:
    brought(tacit)
    write_settings("north", policy="")
    with Path("north.toml").open("a") as file:
        file.write(
            f'[policy]\nknown = 3\n[policy.peers]\nsouth = "south.key.pub"\nwest = "{Path("west.key.pub").read_text().strip()}"\n'
        )
    assert tacit("entity", "show", "north.toml")[0] == 0
    write_settings("north", policy='{ peers = "south" }')
    assert tacit("entity", "show", "north.toml")[0] != 0


@pytest.mark.parametrize("budget", ["{ epsilon = 7.0, delta = 1e-6 }"])
def test_a_run_beyond_the_budget_is_told_with_both_numbers(tacit: Commands, budget: str) -> None:
    brought(tacit)
    write_settings("north", budget=budget)
    status, out, _ = tacit("entity", "show", "north.toml")
    assert status == 1
    assert "would be refused: budget-exhausted" in out


def test_a_run_without_information_is_warned_of(tacit: Commands) -> None:
    brought(tacit, epsilon="0.01")
    assert "warning: no information at this budget" in tacit("entity", "show", "north.toml")[1]


def test_what_is_no_manifest_is_passed_over_and_what_is_unreadable_is_named(tacit: Commands) -> None:
    Path("north", "inbox").mkdir(parents=True)
    status, out, err = tacit("entity", "show", "north.toml")
    assert (status, out, err) == (0, "There is no manifest in the inbox.\n", "")
    Path("north", "inbox", "x.tacit").write_bytes(b"x")
    Path("north", "inbox", "x.fp").write_bytes(b"x")
    status, out, err = tacit("entity", "show", "north.toml")
    assert status == 1
    assert "invalid-message" in err


def test_a_title_cannot_write_to_the_terminal(tacit: Commands) -> None:
    brought(tacit, title='"\\u001b[2J"')
    out = tacit("entity", "show", "north.toml")[1]
    assert "\x1b" not in out


def test_help_has_an_example(tacit: Commands) -> None:
    status, out, _ = tacit("entity", "show", "--help")
    assert status == 0
    assert "Example: tacit entity show" in " ".join(out.split())


def test_a_ledger_that_is_lost_is_refused_until_another_subject_is_named(tacit: Commands) -> None:
    brought(tacit, aggregation='"none"')
    assert tacit("entity", "release", "north.toml")[0] == 0
    for file in Path.cwd().glob("north.db*"):
        if file.is_file():
            file.unlink()
    for command in ("show", "release"):
        status, _, err = tacit("entity", command, "north.toml")
        assert status == 1
        assert "older than the journal" in err
    write_settings("north", subject='"users after the loss"', budget="{ epsilon = 1.0, delta = 1e-6 }")
    told = tacit.json("entity", "release", "north.toml")
    assert (told["budget"]["subject"], told["budget"]["charges"]) == ("users after the loss", 0)
