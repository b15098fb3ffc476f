"""``python -m tacit.engines.flower FOLDER`` writes the app that ``flwr run FOLDER`` runs.

The app is one file that names two modules of tacit and contains no code. Nodes run their own installation of tacit, not code
that the coordinator sends. Flower does not force a dishonest coordinator to work this way, so a node must never be able to
reach rows.
"""

import sys
from pathlib import Path

from tacit import __version__

# Flower passes a setting to a run only if the app names it.
_APP = f"""\
[project]
name = "tacit-federation"
version = "{__version__}"
description = "Federated recommendation with differentially private releases"
license = "Apache-2.0"
dependencies = []  # nothing is installed when a run begins

[tool.flwr.app]
publisher = "tacit"

[tool.flwr.app.components]
serverapp = "tacit.engines.flower.server_app:app"
clientapp = "tacit.engines.flower.client_app:app"

[tool.flwr.app.config]
federation = ""       # the folder of the run, on the coordinator's machine
key = ""              # the file of the coordinator's key, on the same machine
start-seconds = 600   # how long to wait for the entities that are needed
stage-seconds = 3600  # how long to wait for the replies of a stage
simulated = ""        # in a simulation only: the names of the entities, separated by commas
exchanges = ""        # in a simulation only: the folder that has an exchange folder for each entity
"""


def write_app(folder: Path | str) -> Path:
    """Writes the app into a folder, creates the folder if necessary, and returns it for ``flwr run FOLDER``."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(_APP)
    return folder


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Name the folder to write to: python -m tacit.engines.flower FOLDER")
    sys.stdout.write(f"{write_app(sys.argv[1])}\n")
