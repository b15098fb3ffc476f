"""The Flower app of a federation: one file that names two parts of tacit, and no code.

Nodes run the tacit that is installed with them, not what a coordinator sends. This is how an honest coordinator runs Flower;
nothing in Flower makes another one do the same, so a node must not be able to reach rows in any case.
"""

from pathlib import Path

from tacit import __version__

# Flower takes settings of a run only where the app names them.
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
key = ""              # the file of the coordinator's key, there too
start-seconds = 600   # to wait for the entities that are needed
stage-seconds = 3600  # to wait for the replies of a stage
simulated = ""        # of a simulation only: the names of the entities, with commas between them
exchanges = ""        # of a simulation only: the folder with an exchange folder for each
"""


def write_app(folder: Path | str) -> Path:
    """Writes the app into a folder, which is made if it is not there, and gives the folder: ``flwr run FOLDER``."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(_APP)
    return folder
