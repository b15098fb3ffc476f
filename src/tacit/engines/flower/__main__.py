"""``python -m tacit.engines.flower FOLDER`` writes the app that ``flwr run FOLDER`` runs."""

import sys

from tacit.engines.flower.application import write_app

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Say into which folder: python -m tacit.engines.flower FOLDER")
    sys.stdout.write(f"{write_app(sys.argv[1])}\n")
