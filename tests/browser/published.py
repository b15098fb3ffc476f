"""Publishes what the browser tests are served, in a process of its own: real films and ratings, a network trained for a moment."""

import sys
from pathlib import Path

import numpy as np

from tacit.curator import Curator, fit
from tacit.data import load_ratings
from tacit.ledger import Budget
from tacit.service.versions import publish

EPSILONS = (1.0, 4.0)  # of counts for slates


def main(folder: Path) -> None:
    ratings = load_ratings("movielens-small")
    store = fit(ratings, rows=20_000, epochs=2, rng=np.random.default_rng(1))
    curator = Curator(ratings, ledger=str(folder / "curator.db"), budget=Budget(epsilon=sum(EPSILONS)))
    releases = {f"counts-{epsilon:g}": curator.popularity(epsilon) for epsilon in EPSILONS}
    curator.ledger.close()
    publish(folder / "models", store, feature_names=ratings.catalogue.vocabulary, releases=releases)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
