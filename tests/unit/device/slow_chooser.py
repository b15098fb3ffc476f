"""A process of its own: chooses from one offer, says that it is scoring, waits for a line, and prints what it shows."""

import sys
from pathlib import Path

from chooser import offered  # beside this file
from small_world import SHOP, Clock

from tacit.device import Device


def slow(features: object, items: tuple[str, ...]) -> list[float]:
    sys.stdout.write("scoring\n")
    sys.stdout.flush()
    sys.stdin.readline()
    return [0.0] * len(items)


if __name__ == "__main__":
    with Device(Path(sys.argv[1]), SHOP, private_scorer=slow, clock=Clock()) as device:
        device.consent()
        choice = device.choose(offered(int(sys.argv[2])))
        sys.stdout.write("nothing" if choice is None else choice.item)
