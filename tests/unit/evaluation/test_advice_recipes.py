"""What is advised can be run: commands are commands of tacit, files are read by it, and the Python lines do what they say."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import tacit
from tacit.cli import app
from tacit.curator import Curator
from tacit.data import Ratings
from tacit.engines.folders import new_key
from tacit.engines.settings import read_manifest
from tacit.errors import BudgetExhausted
from tacit.evaluation.advice import Advice, Holder, Situation, System, Wants, advise
from tacit.evaluation.advice.recipe import digits
from tacit.service.settings import PREFIX, Settings

DEVICE = Situation(holder=Holder.DEVICE, epsilon=10, users=5000, items=4000, releases=7)
ENTITY = Situation(holder=Holder.ENTITY, entities=5, epsilon=8, users=1000, items=60)
CURATOR = Situation(holder=Holder.CURATOR, epsilon=3, users=2000, items=4000, wants=Wants.SLATE)
TWO = Situation(holder=Holder.CURATOR, epsilon=2, users=2000, items=100, two_domains=True)
SITUATIONS = {
    "multi-selection": DEVICE,
    "multi-selection, diversified": replace(DEVICE, wants=Wants.SLATE),
    "private selection": replace(DEVICE, server_sees_choice=True),
    "secure sums": ENTITY,
    "two entities": replace(ENTITY, entities=2),
    "several runs": replace(ENTITY, releases=3),
    "a tree": replace(ENTITY, items=8, entities=3, users=3000),
    "a grid": replace(ENTITY, delta=0.0, entities=3),
    "cross-domain": TWO,
    "several models": replace(TWO, releases=4),
    "one slate": CURATOR,
    "several slates": replace(CURATOR, releases=4),
    "counts": replace(CURATOR, releases=5000),
    "an entity's slate": replace(ENTITY, wants=Wants.SLATE, epsilon=1 / 3),
    "a curator's item": replace(CURATOR, wants=Wants.ITEM),
}


@pytest.fixture(scope="module")
def tiny() -> Ratings:
    return tacit.data.synthetic(users=60, items=60, ratings_per_user=25, rng=np.random.default_rng(3))


def advice(name: str) -> Advice:
    return advise(SITUATIONS[name], [])


def commands() -> Iterator[str]:
    for name in SITUATIONS:
        found = advice(name)
        yield from (found.evaluate, *found.commands)


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_every_command_is_one_of_tacit(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        field = name.removeprefix(PREFIX).lower()
        assert name.startswith(PREFIX)
        assert field in Settings.model_fields
        monkeypatch.setenv(name, value)
    for word in words:  # files that have to be there
        if re.fullmatch(r"[a-z-]+\.(csv|toml|txt|json|key|parquet)", word):
            (tmp_path / word).touch()
    assert words.pop(0) == "tacit"
    parsed: Any = typer.main.get_command(app)
    context = parsed.make_context("tacit", [], resilient_parsing=True)
    while hasattr(parsed, "commands"):
        parsed = parsed.commands[words.pop(0)]
    parsed.make_context(parsed.name, words, parent=context)  # refuses unknown options, wrong types, missing arguments
    Settings()


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_file_that_a_command_reads_is_made_shown_or_described(name: str) -> None:
    found = advice(name)
    known = {*found.files, *", ".join(found.needs).split(", ")}
    for command in found.commands:
        words = shlex.split(command)
        made = {after for word, after in pairwise(words) if word in ("--out", "keys", "--ledger", "init")}
        read = {word for word in words if re.fullmatch(r"[a-z-]+\.(csv|toml|txt|json|key|parquet)", word)}
        assert read - made <= known, command
        known |= made


@pytest.mark.parametrize("name", SITUATIONS)
def test_where_a_described_file_has_an_example_the_page_has_that_section(name: str) -> None:
    told = re.findall(r'An example: (docs/[a-z-]+\.md), "([^"]+)"', " ".join(advice(name).needs.values()))
    assert told or not advice(name).needs
    for page, section in told:
        assert f"# {section}\n" in (Path(__file__).parents[3] / page).read_text()


def test_a_single_answer_is_told_what_the_next_would_cost() -> None:
    once, often = (advise(replace(DEVICE, releases=count), []).reasons[0] for count in (1, 7000))
    assert "sent again: a second answer would cost nothing. A fresh one" in once
    assert "sent again: 7,000 answers cost what one does. A fresh one" in often


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_python_lines_run(name: str, tiny: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tacit.data, "load", lambda _: tiny)
    ids = iter(tiny.catalogue.ids.tolist())
    lines = re.sub(r'"[^"]+ \(\d{4}\)"', lambda _: repr(next(ids)), advice(name).python)  # films of the tiny world
    lines = re.sub(r"items=100\b", "items=40", lines.replace("users=2_000", "users=200"))
    if "federated_prototypes" in lines:
        lines = re.sub(r"items_each=\d+", "items_each=8", lines)
    names: dict[str, Any] = {"__name__": "__advice__"}
    exec(compile(lines, name, "exec"), names)
    promised = advice(name).each
    assert promised is not None
    drawn = next((names[one].guarantee for one in ("signal", "model", "slate", "counts") if one in names), None)
    if drawn is None:
        drawn = names["run"].guarantee if "run" in names else None
    if drawn is None:
        assert names["choice"].item in names["listings"].items
    else:
        assert drawn.epsilon <= promised.epsilon * (1 + 1e-9)
        assert drawn.epsilon >= promised.epsilon * (1 - 1e-4)
        assert drawn.protects == promised.protects


@pytest.mark.parametrize("name", ["secure sums", "two entities", "several runs", "a tree", "a grid"])
def test_a_coordinator_reads_the_run_file(name: str, tmp_path: Path) -> None:
    found, at = advice(name), SITUATIONS[name]
    new_key(tmp_path / "coordinator.key")
    roster = ""
    for number in range(at.entities or 0):
        new_key(tmp_path / f"north{number}.key")
        roster += f'[[roster]]\nname = "north{number}"\nkey = "north{number}.key.pub"\n'
    (tmp_path / "items.txt").write_text("\n".join(f"item-{n}" for n in range(at.items)))
    told = found.files["run.toml"]
    (tmp_path / "run.toml").write_text(told[: told.index("[[roster]]")] + roster)
    manifest, _ = read_manifest(tmp_path / "run.toml")
    assert manifest.guarantee == found.each


def test_as_many_models_as_planned_fit_into_the_budget_and_no_more(tmp_path: Path) -> None:
    at = SITUATIONS["several models"]
    each = advise(at, []).each
    assert each is not None
    both = tacit.data.synthetic(users=40, items=20, second_domain=True, rng=np.random.default_rng(1))
    budget = tacit.Budget(epsilon=at.epsilon, delta=at.delta)
    curator = Curator(both, ledger=tmp_path / "two.db", budget=budget, accounting="zcdp")
    epsilon = float(digits(each.epsilon))
    for number in range(at.releases):
        curator.release(epsilon=epsilon, delta=at.delta, users=at.users, request_id=str(number))
    with pytest.raises(BudgetExhausted):
        curator.release(epsilon=epsilon, delta=at.delta, users=at.users, request_id="one more")


def test_as_many_slates_as_planned_fit_into_the_budget_and_no_more(tiny: Ratings, tmp_path: Path) -> None:
    at = SITUATIONS["several slates"]
    found = advise(at, [])
    assert found.guarantee is not None
    budget = tacit.Budget(epsilon=at.epsilon, delta=found.guarantee.delta)
    curator = Curator(tiny, ledger=tmp_path / "slates.db", budget=budget)
    for number in range(at.releases):
        curator.slate(k=5, epsilon=at.epsilon, slates=at.releases, request_id=str(number))
    with pytest.raises(BudgetExhausted):
        curator.slate(k=5, epsilon=at.epsilon, slates=at.releases, request_id="one more")


def test_impressions_of_a_device_add_up_to_its_budget() -> None:
    found = advice("private selection")
    assert found.each is not None
    assert found.guarantee is not None
    assert round(found.each.epsilon * 1e9) * 7 <= 10 * 10**9
    assert found.guarantee.epsilon == pytest.approx(10.0)
    assert any("73%" not in line and "shuffler" in line for line in found.reasons)


def test_a_device_that_would_not_answer_privately_is_told_to_do_without() -> None:
    found = advise(replace(DEVICE, server_sees_choice=True, releases=100_000), [])
    assert found.system is System.PRIVATE_SELECTION
    assert not found.mode
    assert any("0.001" in line for line in found.warnings)


@pytest.mark.parametrize(
    ("value", "typed"), [(1 / 3, "0.333333"), (2.0, "2"), (1e-6, "1e-06"), (2 / 3, "0.666666"), (1e9, "1e+09")]
)
def test_what_is_typed_is_never_more(value: float, typed: str) -> None:
    assert digits(value) == typed
    assert float(typed) <= value
