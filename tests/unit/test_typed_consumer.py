"""py.typed is a promise: a strict type checker sees types in a user's program, and no Any."""

import subprocess
import sys
from pathlib import Path

CONSUMER = Path(__file__).with_name("typed_consumer.py")
SOURCE = Path(__file__).parents[2] / "src"
STRICT = [
    "--strict",
    "--warn-unused-ignores",
    "--ignore-missing-imports",
    "--follow-imports=silent",
    "--no-error-summary",
]


def test_the_readmes_program_is_typed_for_a_strict_user(tmp_path: Path) -> None:
    """As somebody who installed tacit: with settings of their own, from a folder of their own, tacit found as a package."""
    words = [sys.executable, "-m", "mypy", "--config-file=", *STRICT, f"--cache-dir={tmp_path}", str(CONSUMER)]
    done = subprocess.run(
        words, capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": str(SOURCE)}, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
