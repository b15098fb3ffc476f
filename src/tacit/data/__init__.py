"""Ratings, impressions and pairs of domains: readers for tables and public data sets, splits, synthetic data.

Every name is loaded on first use: ``import tacit.data`` imports neither polars nor pyarrow nor scipy.

    import numpy as np
    import tacit.data

    ratings = tacit.data.load("movielens-small")
    split = tacit.data.holdout(ratings, 0.2, rng=np.random.default_rng(1))
"""

from typing import TYPE_CHECKING

from tacit.loading import lazy

if TYPE_CHECKING:
    from tacit.data.assemble import Duplicates, Outside, from_arrays, mix
    from tacit.data.catalogue import GENRES, Catalogue, ItemId, UserId
    from tacit.data.pairs import TwoDomains
    from tacit.data.ratings import (
        COUNTS,
        HALF_STARS,
        MISSING_TIME,
        STARS,
        Description,
        Entities,
        Provenance,
        Ratings,
        Scale,
    )
    from tacit.data.readers import read_amazon, read_pair, read_table
    from tacit.data.readers.eicu import read_eicu
    from tacit.data.readers.movielens import read_movielens, read_movielens_small
    from tacit.data.readers.open_bandit import Impressions, read_open_bandit
    from tacit.data.registry import DataSet, DataSetInfo, available, load, load_ratings
    from tacit.data.splits import Split, by_time, crossfold, hold_out_users, holdout, leave_out_per_user
    from tacit.data.store import read, write
    from tacit.data.world import synthetic, synthetic_counts
else:
    __getattr__, __dir__ = lazy(
        __name__,
        assemble="Duplicates Outside from_arrays mix",
        catalogue="GENRES Catalogue ItemId UserId",
        pairs="TwoDomains",
        ratings="COUNTS HALF_STARS MISSING_TIME STARS Description Entities Provenance Ratings Scale",
        readers="read_amazon read_pair read_table",
        registry="DataSet DataSetInfo available load load_ratings",
        splits="Split by_time crossfold hold_out_users holdout leave_out_per_user",
        store="read write",
        world="synthetic synthetic_counts",
        **{
            "readers.eicu": "read_eicu",
            "readers.movielens": "read_movielens read_movielens_small",
            "readers.open_bandit": "Impressions read_open_bandit",
        },
    )

__all__ = [
    "COUNTS",
    "GENRES",
    "HALF_STARS",
    "MISSING_TIME",
    "STARS",
    "Catalogue",
    "DataSet",
    "DataSetInfo",
    "Description",
    "Duplicates",
    "Entities",
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
