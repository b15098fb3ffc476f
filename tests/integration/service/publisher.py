"""Makes a small world and publishes two versions of it, in a process of its own: what trains a network starts threads, and other
tests fork."""

import sys
from pathlib import Path

import numpy as np

from tacit.curator import Curator, fit
from tacit.data import synthetic, write
from tacit.ledger import Budget
from tacit.service.versions import publish, use

EPSILONS = (1.0, 4.0)


def main(folder: Path) -> None:
    ratings = synthetic(users=240, items=120, ratings_per_user=40, rng=np.random.default_rng(5))
    write(ratings, folder / "films.parquet")
    curator = Curator(ratings, ledger=str(folder / "curator.db"), budget=Budget(epsilon=sum(EPSILONS)))
    releases = {f"counts-{epsilon:g}": curator.popularity(epsilon) for epsilon in EPSILONS}
    curator.ledger.close()
    names = []
    for seed in (1, 2):
        store = fit(ratings, rows=3000, epochs=1, name=f"films {seed}", rng=np.random.default_rng(seed))
        version = publish(folder / "models", store, feature_names=ratings.catalogue.vocabulary, releases=dict(releases))
        names.append(version.name)
    use(folder / "models", names[0])
    (folder / "versions").write_text("\n".join(names))  # the last thing: who finds it finds all


if __name__ == "__main__":
    main(Path(sys.argv[1]))
