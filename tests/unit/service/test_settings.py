"""Settings: which of three places wins, what is refused, and what is never printed."""

import os
from pathlib import Path

import pytest

from tacit.errors import InvalidParameter
from tacit.service.settings import FILE, PREFIX, Settings, export, read_settings

SECRET = "postgresql://shop:hunter2@db/impressions"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tacit.toml"
    monkeypatch.setenv(FILE, str(path))
    return path


def test_a_flag_wins_over_the_environment_which_wins_over_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text('host = "file"\nport = 1\nworkers = 3\n')
    monkeypatch.setenv(f"{PREFIX}HOST", "environment")
    monkeypatch.setenv(f"{PREFIX}PORT", "2")
    found = read_settings(host="flag")
    assert (found.host, found.port, found.workers, found.burst) == ("flag", 2, 3, 400)


def test_a_flag_that_is_not_given_is_not_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}PORT", "2")
    assert read_settings(port=None).port == 2


def test_what_is_exported_is_what_another_process_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOME", "PORT", "OPEN_COUNTS", "HOST"):  # so that they are taken back when the test ends
        monkeypatch.setenv(PREFIX + name, "")
    monkeypatch.setenv(f"{PREFIX}HOST", "as it was")
    export(home=tmp_path / "my home", port=0, open_counts=True, host=None)
    found = read_settings()
    assert (found.home, found.port, found.open_counts, found.host) == (tmp_path / "my home", 0, True, "as it was")


@pytest.mark.parametrize("name", ["prot", "DATABASE_URL", "settings"])
def test_an_unknown_name_is_refused_in_the_file_and_as_a_flag(file: Path, name: str) -> None:
    file.write_text(f'{name} = "hunter2"\n')
    with pytest.raises(InvalidParameter, match=name) as told:
        read_settings()
    assert "hunter2" not in str(told.value)
    file.write_text("")
    with pytest.raises(InvalidParameter, match=name) as told:
        read_settings(**{name: "hunter2"})
    assert "hunter2" not in str(told.value)


def test_an_unknown_name_is_refused_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}PROT", "hunter2")
    with pytest.raises(InvalidParameter, match=f"{PREFIX}PROT") as told:
        read_settings()
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "70123"),
        ("port", "hunter2"),
        ("workers", "0"),
        ("rate", "-7.25"),
        ("body_seconds", "0"),
        ("epsilon", "nan"),
        ("budget_delta", "1"),
        ("most_body", "12"),
        ("open_counts", "hunter2"),
    ],
)
def test_a_wrong_value_is_one_line_that_names_the_setting_and_not_the_value(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PREFIX + name.upper(), value)
    with pytest.raises(InvalidParameter) as told:
        read_settings()
    text = str(told.value)
    assert f"settings: {name}: " in text
    assert "\n" not in text
    assert told.value.__cause__ is None
    assert told.value.__suppress_context__  # the error behind it is not shown either
    if len(value) > 3:
        assert value not in text


def test_where_the_ledgers_are_is_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = read_settings(database=SECRET, ledger=SECRET)
    for text in (repr(found), str(found), f"{found.database}", repr(found.model_dump()), found.model_dump_json()):
        assert "hunter2" not in text
    assert found.database_target == found.ledger_target == SECRET  # but it can be opened
    with pytest.raises(InvalidParameter) as told:
        read_settings(database={"text": SECRET})
    assert "hunter2" not in str(told.value)
    with pytest.raises(InvalidParameter) as told:
        read_settings(database=SECRET, port="x")
    assert "hunter2" not in str(told.value)


def test_what_is_not_named_lies_in_the_home() -> None:
    found = read_settings(home="there")
    assert found.models_folder == Path("there/models")
    assert found.keys_file == Path("there/keys.json")
    assert (found.database_target, found.ledger_target) == ("there/server.db", "there/curator.db")
    found = read_settings(home="there", models="m", keys="k", database="d")
    assert (found.models_folder, found.keys_file, found.database_target) == (Path("m"), Path("k"), "d")


def test_a_delta_without_an_epsilon_is_no_budget() -> None:
    """Else it would be left out silently, for good."""
    with pytest.raises(InvalidParameter, match="budget_epsilon"):
        read_settings(budget_delta=1e-6)
    assert read_settings(budget_epsilon=2.0, budget_delta=1e-6).budget_delta == 1e-6


def test_origins_are_a_list_with_commas_between(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ("https://a.example", "https://b.example")
    file.write_text('origins = ["https://a.example", "https://b.example"]')
    assert read_settings().origins == wanted
    monkeypatch.setenv(f"{PREFIX}ORIGINS", " https://a.example,https://b.example, ,")
    assert read_settings().origins == wanted
    monkeypatch.setenv(f"{PREFIX}ORIGINS", "")
    assert read_settings().origins == ()


def test_a_file_that_is_not_there_or_no_toml_is_one_line(file: Path) -> None:
    with pytest.raises(InvalidParameter, match="no file of settings"):
        read_settings()
    file.write_text(f'port = 1\ndatabase = "{SECRET}\n"\n')  # the text does not end
    with pytest.raises(InvalidParameter, match="line 2") as told:
        read_settings()
    assert "hunter2" not in str(told.value)
    assert "\n" not in str(told.value)


def test_a_file_named_env_in_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"{PREFIX}PORT=1\n")
    assert Path.cwd() == tmp_path
    assert read_settings().port == 8000


def test_settings_do_not_change_while_a_service_runs() -> None:
    found = read_settings()
    with pytest.raises(ValueError, match="frozen"):
        found.port = 1  # type: ignore[misc]
    assert FILE not in os.environ
    assert isinstance(found, Settings)
