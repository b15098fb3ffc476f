"""A process of its own: opens the device in a file, waits for a line, chooses from offers, and prints the rules it applied."""

import sys
from pathlib import Path

from small_world import SHOP, Clock  # beside this file

from tacit.device import Device
from tacit.messages.private_selection import Candidate, Offer, Policy, Rule

CANDIDATES = tuple(Candidate(item, 0.5) for item in ("21", "3", "8", "5"))


def offered(number: int) -> Offer:
    return Offer(f"{number:032x}", 1_794_834_000, Policy(Rule.RR, 4, 1.0), CANDIDATES)


if __name__ == "__main__":
    place, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with Device(place, SHOP, private_scorer=lambda _, items: [0.0] * len(items), clock=Clock()) as device:
        device.consent()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        chosen = [device.choose(offered(number)) for number in range(first, first + count)]
        sys.stdout.write(" ".join(one.policy.rule.value for one in chosen if one is not None))
