"""Runs in the peers' environment: for every line on standard input, the seconds that DPPy takes for one slate.

Kernels are drawn from the seed that ours are drawn from, so both sample the same ones. A process is kept for a whole run: what DPPy
works out once (eigenvectors) is not timed, unless the line asks for the first slate.
"""

import contextlib
import io
import json
import sys
import time
from typing import Any

import numpy as np
from dppy.finite_dpps import FiniteDPP


def main() -> None:
    made: dict[str, Any] = {}
    for line in sys.stdin:
        ask = json.loads(line)
        key = json.dumps({name: ask[name] for name in ("n", "d", "sigma", "seed")})
        with contextlib.redirect_stdout(io.StringIO()):  # it reports on standard output, where our answers go
            start = time.perf_counter()
            if ask["first"]:
                _model(ask).sample_exact_k_dpp(size=ask["k"])
                passed, calls = time.perf_counter() - start, 1
            else:
                if key not in made:
                    made.clear()  # one at a time: a million rows fill the memory
                    made[key] = _model(ask)
                    made[key].sample_exact_k_dpp(size=ask["k"])
                calls, start = 0, time.perf_counter()
                while calls < 2 or time.perf_counter() - start < 0.05:
                    made[key].sample_exact_k_dpp(size=ask["k"])
                    calls += 1
                passed = time.perf_counter() - start
        print(passed / calls, flush=True)


def _model(ask: dict[str, Any]) -> FiniteDPP:
    rows = np.random.default_rng(ask["seed"]).normal(size=(ask["n"], ask["d"])) / np.sqrt(ask["d"])
    if ask["sigma"] == 0.0:
        return FiniteDPP("likelihood", L_gram_factor=rows.T)
    return FiniteDPP("likelihood", L=ask["sigma"] * np.eye(ask["n"]) + rows @ rows.T)


if __name__ == "__main__":
    main()
