"""Runs in the peers' environment: for every line on standard input, the CPU seconds of one fit by implicit, on one thread."""

import json
import os
import sys
import time
import warnings

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402  (threads are counted when it is loaded)
from implicit.nearest_neighbours import CosineRecommender  # noqa: E402
from scipy import sparse  # noqa: E402


def main() -> None:
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        ask = json.loads(line)
        rows = sparse.load_npz(ask["rows"]).astype(np.float64)
        model = CosineRecommender(K=ask["k"], num_threads=1)
        start = time.process_time()
        model.fit(rows, show_progress=False)
        print(time.process_time() - start, flush=True)


if __name__ == "__main__":
    main()
