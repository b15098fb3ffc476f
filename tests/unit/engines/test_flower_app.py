"""The app's file, and the pins of the environment that Flower has for itself. Neither needs Flower."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tacit import __version__
from tacit.engines.flower import __main__ as application

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "tacit" / "engines" / "flower"


def test_the_app_is_one_file_that_names_two_modules_of_tacit(tmp_path: Path) -> None:
    folder = application.write_app(tmp_path / "new" / "app")
    assert [file.name for file in folder.iterdir()] == ["pyproject.toml"]
    written = tomllib.loads((folder / "pyproject.toml").read_text())
    assert (written["project"]["version"], written["project"]["dependencies"]) == (__version__, [])
    for part in written["tool"]["flwr"]["app"]["components"].values():
        module, _, name = part.partition(":")
        tree = ast.parse((ROOT / "src" / Path(*module.split("."))).with_suffix(".py").read_text())
        targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
        assert name in {target.id for target in targets if isinstance(target, ast.Name)}


def test_every_setting_that_the_apps_read_is_one_that_a_run_can_give(tmp_path: Path) -> None:
    """Flower passes on only those that the app's file names."""
    text = (application.write_app(tmp_path) / "pyproject.toml").read_text()
    settings = set(tomllib.loads(text)["tool"]["flwr"]["app"]["config"])
    sources = (SOURCE / "server_app.py").read_text() + (SOURCE / "client_app.py").read_text()
    assert set(re.findall(r'(?:settings|run_config)\["([a-z-]+)"\]', sources)) == settings


def test_it_can_be_written_from_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tacit.engines.flower"]
    done = subprocess.run([*command, str(tmp_path / "app")], capture_output=True, text=True, check=True)
    assert (Path(done.stdout.strip()) / "pyproject.toml").is_file()
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_the_pins_of_flower_are_bare() -> None:
    lines = (ROOT / "flower-constraints.txt").read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)] == []
    assert "flwr==1.41.0" in lines
