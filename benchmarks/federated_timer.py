"""Runs in the peers' environment: for every line on standard input, one fit by implicit or diffprivlib, on one thread.

Answers are JSON: the peer's own seconds, and its loss or the file that its factors were written to.
"""

import json
import os
import sys
import time
import warnings
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402  (threads are counted when it is loaded)
from diffprivlib.models import KMeans  # noqa: E402
from federated_points import blobs, loss  # noqa: E402  (beside this file)
from implicit.als import AlternatingLeastSquares  # noqa: E402
from scipy import sparse  # noqa: E402


def main() -> None:
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        ask = json.loads(line)
        print(json.dumps({"als": _als, "k-means": _k_means}[ask["work"]](ask)), flush=True)


def _als(ask: dict[str, Any]) -> dict[str, Any]:
    rows = sparse.load_npz(ask["rows"]).astype(np.float32)
    model = AlternatingLeastSquares(
        factors=ask["rank"], iterations=ask["iterations"], num_threads=1, random_state=ask["seed"]
    )
    start = time.perf_counter()
    model.fit(rows, show_progress=False)
    passed = time.perf_counter() - start
    np.savez(ask["factors"], users=model.user_factors, items=model.item_factors)
    return {"seconds": passed}


def _k_means(ask: dict[str, Any]) -> dict[str, Any]:
    points = blobs(ask["n"], ask["d"], ask["k"], ask["seed"])
    bounds = (np.zeros(ask["d"]), np.ones(ask["d"]))
    model = KMeans(ask["k"], epsilon=ask["epsilon"], bounds=bounds, random_state=ask["seed"])
    start = time.perf_counter()
    model.fit(points)
    passed = time.perf_counter() - start
    return {"seconds": passed, "loss": loss(points, model.cluster_centers_)}


if __name__ == "__main__":
    main()
