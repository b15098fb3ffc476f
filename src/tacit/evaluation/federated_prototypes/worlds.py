"""The worlds that are tried: two data sets, each divided in two ways, counts that are made up, and groups that are planted."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.data import Ratings, available, read_eicu, read_movielens, synthetic_counts
from tacit.data.readers.eicu import is_eicu
from tacit.data.readers.movielens import is_movielens
from tacit.errors import InvalidParameter

NAMES = {"movielens-1m": "ml-1m", "movielens-100k": "ml-100k", "eicu": "eicu-demo"}
FILMS, DRUGS = "movielens-1m", "eicu"
MADE_UP = "made-up"  # the synthetic worlds alone
ALL = "all"

RANK = 100  # of the synthetic world's logarithm, as published
ITEMS = 500
ENTITIES = 10

GROUPS, PLANTED_RANK, PLANTED_ITEMS = 12, 8, 100
BOUND = 30.0  # of a value
_SHAPE, _APART, _MEAN = 0.35, 0.2, 3.1  # gamma factors, users around their group, mean count
CONTRIBUTORS, RECEIVERS, RECEIVED = (
    5,
    20,
    50,
)  # entities that release, entities that only receive, users of one of these


@dataclass(frozen=True, slots=True)
class Source:
    """A data set found: which kind, its folder, and whether reference figures are of it."""

    kind: str  # FILMS or DRUGS
    folder: Path
    known: bool


def sources(data: str | Path | None) -> list[Source]:
    """The data sets that ``data`` names; None and ``all``: those that ``TACIT_DATA`` has. Empty: made-up worlds alone."""
    if data is None or data == ALL:
        return [
            Source(kind, Path(entry.where), True)
            for kind in (FILMS, DRUGS)
            for entry in available()
            if entry.ready and entry.name == NAMES[kind]
        ]
    if data == MADE_UP:
        return []
    name = NAMES.get(str(data), str(data))
    root = os.environ.get("TACIT_DATA")
    folder = Path(root) / name if root and (Path(root) / name).is_dir() else Path(name)
    if folder.is_dir() and is_eicu(folder):
        return [Source(DRUGS, folder, folder.name == NAMES[DRUGS])]
    if folder.is_dir() and is_movielens(folder):
        return [Source(FILMS, folder, folder.name == NAMES[FILMS])]
    raise InvalidParameter(
        f"{str(data)!r} is neither {ALL}, {MADE_UP}, {', '.join(NAMES)}, nor a folder of MovieLens or of the eICU demo; names are "
        "found in the folder that TACIT_DATA names."
    )


def films(folder: Path, digits: int) -> Ratings:
    """MovieLens by the first ``digits`` of ZIP codes; films that somebody rated."""
    ratings = read_movielens(folder, zip_digits=digits).compact()
    if ratings.entities is None:
        raise InvalidParameter(
            f"{ratings.name!r} lists no ZIP codes, which entities are told by; MovieLens 1M and 100K do."
        )
    return ratings


def drugs(folder: Path, *, regions: bool) -> Ratings:
    return read_eicu(folder, entity="region" if regions else "hospital")


def counts(users: int, *, rng: np.random.Generator) -> Ratings:
    """Ten entities of ``users`` users each on average, 500 items, exponents of rank 100 scaled to variance 1."""
    return synthetic_counts(users=ENTITIES * users, items=ITEMS, rank=RANK, entities=ENTITIES, rng=rng)


@dataclass(frozen=True, eq=False, repr=False)
class Planted:
    """Dense rows of the entities that contribute, and of those that receive; ``seen``: which cells the latter may train with."""

    contributors: list[NDArray[np.float64]]
    receivers: list[NDArray[np.float64]]
    seen: list[NDArray[np.bool_]]

    def __repr__(self) -> str:
        return f"Planted({len(self.contributors)} contributors, {len(self.receivers)} receivers)"


def planted(users: int, *, rng: np.random.Generator) -> Planted:
    """Counts of users in 12 groups over 100 items, of rank 8: five entities of ``users`` users, twenty of 50."""
    items = rng.gamma(_SHAPE, 1.0 / _SHAPE, (PLANTED_ITEMS, PLANTED_RANK))
    groups = rng.gamma(_SHAPE, 1.0 / _SHAPE, (GROUPS, PLANTED_RANK))
    scale = _MEAN / float((groups @ items.T).mean())

    def people(count: int) -> NDArray[np.float64]:
        tastes = groups[rng.integers(GROUPS, size=count)] * rng.gamma(_APART**-2, _APART**2, (count, PLANTED_RANK))
        return np.minimum(rng.poisson(scale * tastes @ items.T), BOUND).astype(np.float64)

    contributors = [people(users) for _ in range(CONTRIBUTORS)]
    receivers = [people(RECEIVED) for _ in range(RECEIVERS)]
    return Planted(contributors, receivers, [rng.random(rows.shape) < 0.5 for rows in receivers])
