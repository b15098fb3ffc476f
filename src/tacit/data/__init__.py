"""Ratings, impressions, pairs of domains; readers for the public data sets; splits; synthetic worlds.

Everything is imported when first used: ``import tacit.data`` loads neither polars nor pyarrow nor scipy.

    import numpy as np
    import tacit.data

    ratings = tacit.data.load("movielens-small")
    split = tacit.data.holdout(ratings, 0.2, rng=np.random.default_rng(1))
"""

from typing import TYPE_CHECKING

from tacit.loading import on_demand

if TYPE_CHECKING:
    from tacit.data.assemble import Duplicates, Outside, from_arrays
    from tacit.data.catalogue import Catalogue
    from tacit.data.clock import MISSING_TIME
    from tacit.data.counts import synthetic_counts
    from tacit.data.describe import Description
    from tacit.data.entities import Entities
    from tacit.data.genres import GENRES
    from tacit.data.ids import ItemId, UserId
    from tacit.data.impressions import Impressions
    from tacit.data.mixture import mix
    from tacit.data.pairs import TwoDomains
    from tacit.data.provenance import Provenance
    from tacit.data.ratings import Ratings
    from tacit.data.readers.eicu import read_eicu
    from tacit.data.readers.generic import read_table
    from tacit.data.readers.movielens import read_movielens
    from tacit.data.readers.movielens_small import read_movielens_small
    from tacit.data.readers.open_bandit import read_open_bandit
    from tacit.data.readers.two_domains import read_amazon, read_pair
    from tacit.data.registry import DataSet, Entry, available, load, load_ratings
    from tacit.data.scale import COUNTS, HALF_STARS, STARS, Scale
    from tacit.data.splits import Split, by_time, crossfold, hold_out_users, holdout, leave_out_per_user
    from tacit.data.store import read, write
    from tacit.data.world import synthetic

_HOMES = {
    "assemble": ["Duplicates", "Outside", "from_arrays"],
    "catalogue": ["Catalogue"],
    "clock": ["MISSING_TIME"],
    "counts": ["synthetic_counts"],
    "describe": ["Description"],
    "entities": ["Entities"],
    "genres": ["GENRES"],
    "ids": ["ItemId", "UserId"],
    "impressions": ["Impressions"],
    "mixture": ["mix"],
    "pairs": ["TwoDomains"],
    "provenance": ["Provenance"],
    "ratings": ["Ratings"],
    "readers.eicu": ["read_eicu"],
    "readers.generic": ["read_table"],
    "readers.movielens": ["read_movielens"],
    "readers.movielens_small": ["read_movielens_small"],
    "readers.open_bandit": ["read_open_bandit"],
    "readers.two_domains": ["read_amazon", "read_pair"],
    "registry": ["DataSet", "Entry", "available", "load", "load_ratings"],
    "scale": ["COUNTS", "HALF_STARS", "STARS", "Scale"],
    "splits": ["Split", "by_time", "crossfold", "hold_out_users", "holdout", "leave_out_per_user"],
    "store": ["read", "write"],
    "world": ["synthetic"],
}

__all__ = [
    "COUNTS",
    "GENRES",
    "HALF_STARS",
    "MISSING_TIME",
    "STARS",
    "Catalogue",
    "DataSet",
    "Description",
    "Duplicates",
    "Entities",
    "Entry",
    "Impressions",
    "ItemId",
    "Outside",
    "Provenance",
    "Ratings",
    "Scale",
    "Split",
    "TwoDomains",
    "UserId",
    "available",
    "by_time",
    "crossfold",
    "from_arrays",
    "hold_out_users",
    "holdout",
    "leave_out_per_user",
    "load",
    "load_ratings",
    "mix",
    "read",
    "read_amazon",
    "read_eicu",
    "read_movielens",
    "read_movielens_small",
    "read_open_bandit",
    "read_pair",
    "read_table",
    "synthetic",
    "synthetic_counts",
    "write",
]


if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
