"""On a process's path, this writes down which files below a folder it opens, and whether it imports tacit or readers of tables."""

import os
import sys

_FOLDER, _LOG = os.environ.get("TACIT_WATCHED"), os.environ.get("TACIT_WATCH_LOG")
_OPENS = ("open", "os.listdir", "os.scandir", "sqlite3.connect")

if _FOLDER and _LOG:
    _FILE = os.open(_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def _watch(event: str, arguments: tuple[object, ...]) -> None:
        if event == "import" and str(arguments[0]).split(".")[0] in ("tacit", "polars", "pyarrow"):
            os.write(_FILE, f"import {arguments[0]}\n".encode())
        elif event in _OPENS and isinstance(arguments[0], (str, bytes, os.PathLike)):
            path = os.path.abspath(os.fsdecode(arguments[0]))
            if path.startswith(str(_FOLDER)):
                os.write(_FILE, f"open {path}\n".encode())

    sys.addaudithook(_watch)
