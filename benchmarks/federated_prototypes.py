"""Federated prototypes: factorisation against scikit-learn and implicit; then clustering, large entities and sums.

All on one thread. scikit-learn runs in this process, implicit and diffprivlib in the peers' environment, where they report their
own seconds. Ratings: MovieLens 1M where TACIT_DATA holds it, else made-up ones of the same shape, and the notes say so.
"""

import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import federated_clusters, federated_sizes
from benchmarks.peer import Peer
from benchmarks.timing import LOWER, Row, compare
from tacit.data import load
from tacit.errors import TacitError
from tacit.models.nonnegative import factorise

_RANK, _SEED = 10, 5
_SKLEARN_STEPS, _ALS_STEPS = 100, 15
_TEST_USERS, _TEST_CELLS = 0.2, 5


class _Peers(Peer):
    script = "federated_timer.py"


def run() -> list[Row]:
    rows, world = _ratings()
    train, test = _split(rows)
    with _Peers() as peers:
        found = _dense(train, world)
        found += _masked(train, test, peers, world)
        found += federated_clusters.run(peers)
    return found + federated_sizes.run(train, world)


def _ratings() -> tuple[sparse.csr_array, str]:
    try:
        return sparse.csr_array(load("ml-1m").compact().csr(), dtype=np.float64), "MovieLens 1M"
    except TacitError:
        return _made_up(), "made-up ratings of the shape of MovieLens 1M: 6,040 x 3,706, a million cells"


def _made_up() -> sparse.csr_array:
    """Tastes of rank 12 and a long tail of items."""
    rng = np.random.default_rng(_SEED)
    users, items = rng.gamma(0.5, 1.0, (6040, 12)), rng.gamma(0.5, 1.0, (3706, 12))
    popular = (1.0 + np.arange(3706) / 60.0) ** -1.1
    rates = users @ items.T * popular
    seen = rng.random(rates.shape) < 1.0 - np.exp(-rates * (1_000_209 / rates.sum()) * 1.15)
    return sparse.csr_array(np.where(seen, rng.integers(1, 6, rates.shape), 0).astype(np.float64))


def _split(rows: sparse.csr_array) -> tuple[sparse.csr_array, sparse.csr_array]:
    """As in the paper: five cells of each of a fifth of the users are tested, all else trains."""
    rng = np.random.default_rng(_SEED)
    users = rng.choice(rows.shape[0], int(_TEST_USERS * rows.shape[0]), replace=False)
    out = np.zeros(rows.nnz, dtype=np.bool_)
    for user in users.tolist():
        mine = np.arange(rows.indptr[user], rows.indptr[user + 1])
        out[rng.choice(mine, min(_TEST_CELLS, mine.size // 2), replace=False)] = True
    place = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    train, test = (
        sparse.csr_array((rows.data[part], (place[part], rows.indices[part])), shape=rows.shape) for part in (~out, out)
    )
    return train, test


def _dense(train: sparse.csr_array, world: str) -> list[Row]:
    """Zeros observed: 1 where there is a rating. scikit-learn is given the full table, then the sparse one."""
    from sklearn.decomposition import NMF
    from sklearn.exceptions import ConvergenceWarning

    held = sparse.csr_array(train.sign())
    full = held.toarray()
    kept: dict[str, Any] = {}

    def ours(table: Any) -> None:
        kept["ours"] = factorise(table, _RANK, ridge=1e-9, zeros_observed=True, rng=np.random.default_rng(_SEED))

    def theirs(table: Any) -> None:
        model = NMF(_RANK, init="nndsvda", max_iter=_SKLEARN_STEPS, random_state=_SEED)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            kept["theirs"] = model.fit_transform(table), model.components_.T

    note = f"{world}, zeros observed, rank {_RANK}; ours 60 epochs, theirs nndsvda and {_SKLEARN_STEPS} iterations"
    rows = [
        compare("nmf-dense", "scikit-learn NMF, full table", partial(ours, full), partial(theirs, full), target=1 / 0.6,
                rounds=1, note=f"seconds; {note}"),
        compare("nmf-dense, sparse input", "scikit-learn NMF, sparse table", partial(ours, held), partial(theirs, held),
                target=None, rounds=3, note=f"seconds; {note}"),
    ]  # fmt: skip
    mine = _squares(full, kept["ours"].users, kept["ours"].items)
    other = _squares(full, *kept["theirs"])
    rows.append(_loss("nmf-dense loss", "scikit-learn NMF", mine, other, 1.005, f"squared error; {note}"))
    return rows


def _masked(train: sparse.csr_array, test: sparse.csr_array, peers: Peer, world: str) -> list[Row]:
    with tempfile.TemporaryDirectory() as place:
        table, factors = Path(place) / "rows.npz", Path(place) / "factors.npz"
        held = sparse.csr_array(train.sign())
        sparse.save_npz(table, sparse.csr_matrix(held))
        ask = {"work": "als", "rows": str(table), "factors": str(factors), "rank": _RANK, "iterations": _ALS_STEPS,
               "seed": _SEED}  # fmt: skip

        def theirs() -> float:
            return float(peers.answer(ask)["seconds"])

        def ours() -> object:
            return factorise(train, _RANK, rng=np.random.default_rng(_SEED))

        time = compare("nmf-masked", "implicit ALS", ours, theirs, target=1 / 1.2, rounds=3, timed_peer=True,
                       note=f"seconds; {world}, rank {_RANK}; ours 10 epochs on ratings with unknown cells, theirs "
                       f"{_ALS_STEPS} iterations on the same cells")  # fmt: skip
        with np.load(factors) as kept:
            their_rank = _rank(kept["users"], kept["items"], train, test)
    fitted = factorise(held, _RANK, ridge=1e-9, zeros_observed=True, rng=np.random.default_rng(_SEED))
    our_rank = _rank(fitted.users, fitted.items, train, test)
    return [
        time,
        _loss("implicit feedback, mean percentile rank", "implicit ALS", our_rank, their_rank, 1.06,
              f"{world}, five cells of a fifth of the users, rank {_RANK}; ours is the factorisation with zeros observed"),
    ]  # fmt: skip


def _rank(users: np.ndarray, items: np.ndarray, train: sparse.csr_array, test: sparse.csr_array) -> float:
    """(items higher + half of the ties) / (candidates - 1), weighed by the rating: 0 is best, .5 is chance."""
    total = weight = 0.0
    for user in np.flatnonzero(np.diff(test.indptr)).tolist():
        scores = items @ users[user]
        scores[train.indices[train.indptr[user] : train.indptr[user + 1]]] = -np.inf
        cells = slice(test.indptr[user], test.indptr[user + 1])
        own = scores[test.indices[cells]][:, None]
        above = (scores > own).sum(axis=1) + 0.5 * ((scores == own).sum(axis=1) - 1)
        total += float(test.data[cells] @ above) / (np.isfinite(scores).sum() - 1)
        weight += float(test.data[cells].sum())
    return total / weight


def _squares(full: np.ndarray, users: np.ndarray, items: np.ndarray) -> float:
    return float(((full - users @ items.T) ** 2).sum())


def _loss(name: str, peer: str, ours: float, theirs: float, target: float | None, note: str) -> Row:
    return Row(
        name=name, peer=peer, ours=ours, theirs=theirs, ratio=ours / theirs, target=target, note=f"{note}; {LOWER}"
    )
