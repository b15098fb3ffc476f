"""A synthetic world of counts, as of drugs given to patients: Poisson with a low-rank rate."""

from typing import Literal, TypeAlias, get_args

import numpy as np

from tacit.checks import whole
from tacit.data.assemble import Columns, assemble
from tacit.data.draw import generator
from tacit.data.entities import Entities
from tacit.data.provenance import GENERATED
from tacit.data.ratings import Ratings
from tacit.data.scale import COUNTS
from tacit.data.source import Source
from tacit.errors import InvalidParameter

Law: TypeAlias = Literal["lognormal", "gamma"]
_CELLS_PER_CHUNK = 1 << 22


def synthetic_counts(
    *,
    users: int = 1000,
    items: int = 200,
    rank: int = 10,
    law: Law = "lognormal",
    entities: int = 0,
    rng: np.random.Generator,
) -> Ratings:
    """Counts with rate exp(U V^T), scaled so that the exponent has variance 1, or with a truly low-rank gamma rate.

    Unscaled, as published, a rank of 100 gives an exponent of standard deviation 10 and counts beyond any integer.
    ``entities`` deals the users out at random.
    """
    whole("users", users, least=1)
    whole("items", items, least=1)
    whole("rank", rank, least=1)
    whole("entities", entities, least=0)
    generator(rng)
    if law not in get_args(Law):
        raise InvalidParameter(f"law must be one of {', '.join(get_args(Law))}, not {law!r}.")
    if law == "lognormal":
        left, right = (rank**-0.25 * rng.standard_normal((side, rank)) for side in (users, items))
    else:
        left, right = (rng.gamma(1.0, rank**-0.5, (side, rank)) for side in (users, items))  # the mean rate is 1
    parts = []
    step = max(1, _CELLS_PER_CHUNK // items)
    for start in range(0, users, step):
        rate = left[start : start + step] @ right.T
        counts = rng.poisson(np.exp(rate) if law == "lognormal" else rate)
        rows, columns = np.nonzero(counts)
        parts.append(
            (
                rows.astype(np.int32) + np.int32(start),
                columns.astype(np.int32),
                counts[rows, columns].astype(np.float32),
            )
        )
    who, what, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    ids = [np.arange(1, side + 1, dtype=np.int64) for side in (users, items)]
    ratings = assemble(
        Columns((ids[0], who), (ids[1], what), values),
        scale=COUNTS,
        source=Source("synthetic counts"),
        name="synthetic counts",
        provenance=GENERATED,
    )
    if not entities:
        return ratings
    names = tuple(str(number) for number in range(1, entities + 1))
    return ratings.with_entities(Entities("entity", names, rng.integers(entities, size=users, dtype=np.int32)))
