"""Runs in the peers' environment: for every line on standard input, the seconds of one decision by diffprivlib."""

import json
import sys
import time

import numpy as np
from diffprivlib.mechanisms import Exponential, PermuteAndFlip

KINDS = {"Exponential": Exponential, "PermuteAndFlip": PermuteAndFlip}


def main() -> None:
    for line in sys.stdin:
        ask = json.loads(line)
        kind = KINDS[ask["mechanism"]]
        scores = np.random.default_rng(1).random(ask["k"]).tolist()
        calls, start = 0, time.perf_counter()
        while time.perf_counter() - start < 0.02:
            # the scores are an argument of its constructor, so every decision on new scores builds the mechanism
            kind(epsilon=1.0, sensitivity=1.0, utility=scores).randomise()
            calls += 1
        print((time.perf_counter() - start) / calls, flush=True)


if __name__ == "__main__":
    main()
