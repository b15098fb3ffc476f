"""Open Bandit: the items a fashion shop showed, under a uniform policy or Thompson sampling, and the clicks on them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from tacit.data.assemble import RowSource
from tacit.data.catalogue import Codes, Ids, encode, lock_arrays
from tacit.data.ratings import OPEN_BANDIT, UNKNOWN, Provenance
from tacit.data.readers.table import Kind, read_columns
from tacit.errors import InvalidData, InvalidParameter

if TYPE_CHECKING:
    import polars as pl

Policy: TypeAlias = Literal["random", "bts"]
Campaign: TypeAlias = Literal["all", "men", "women"]
_USER = [f"user_feature_{number}" for number in range(4)]
_ITEM = [f"item_feature_{number}" for number in range(1, 4)]
_TEXT: Kind = "text"
_AFFINITY: Kind = "number"
_CONTEXT: dict[str, Kind] = {"item_id": "integer", "item_feature_0": "precise number", **dict.fromkeys(_ITEM, _TEXT)}
_KINDS: dict[str, Kind] = {
    "timestamp": "time",
    "item_id": "integer",
    "position": "integer",
    "click": "integer",
    "propensity_score": "precise number",
    **dict.fromkeys(_USER, _TEXT),
}


@dataclass(frozen=True, eq=False, repr=False)
class Impressions:
    """A recommender's log: one row for each item shown, whether it was clicked, and how probable it was to be shown.

    Private, like ratings: ``repr`` shows sizes only.
    """

    items: Codes  # the item that was shown
    positions: NDArray[np.int8]  # from 1
    clicks: NDArray[np.bool_]
    propensities: NDArray[np.float64]  # the probability that the logging policy shows the item at that position
    times: NDArray[np.int64]  # seconds since 1970
    user_features: NDArray[np.int32]  # rows x features, as codes of categories
    affinities: NDArray[np.float32]  # rows x items: the user's earlier behaviour towards each candidate
    item_ids: Ids
    item_numbers: NDArray[np.float64]  # items x numeric features
    item_categories: NDArray[np.int32]  # items x features, as codes of categories
    name: str = "impressions"
    policy: str = "unknown"
    provenance: Provenance = UNKNOWN

    def __post_init__(self) -> None:
        rows, items = self.items.size, self.item_ids.size
        lengths = {
            self.positions.size,
            self.clicks.size,
            self.propensities.size,
            self.times.size,
            len(self.user_features),
        }
        if lengths != {rows} or self.affinities.shape != (rows, items):
            raise InvalidData(
                "the columns of impressions must have the same length, and affinities one column for each item."
            )
        if len(self.item_numbers) != items or len(self.item_categories) != items:
            raise InvalidData("item features must have one row for each item.")
        if rows and not 0 <= int(self.items.min()) <= int(self.items.max()) < items:
            raise InvalidData("every item code must be an index into item_ids.")
        lock_arrays(self)

    def __len__(self) -> int:
        return int(self.items.size)

    def __repr__(self) -> str:
        return f"Impressions({self.name!r}: {len(self):,} shown, {self.n_items:,} items, policy {self.policy!r})"

    @property
    def n_items(self) -> int:
        """The number of items, shown or not."""
        return int(self.item_ids.size)


def read_open_bandit(folder: str | Path, *, policy: Policy = "random", campaign: Campaign = "all") -> Impressions:
    """The log of one campaign under one policy: ``random`` (uniform) or ``bts`` (Thompson sampling)."""
    for name, value, allowed in (("policy", policy, get_args(Policy)), ("campaign", campaign, get_args(Campaign))):
        if value not in allowed:
            raise InvalidParameter(f"{name} must be one of {', '.join(allowed)}, not {value!r}.")
    folder = Path(folder)
    context = read_columns(folder / f"item_context_{campaign}.csv", _CONTEXT)[0].sort("item_id")
    item_ids = context["item_id"].to_numpy()
    affinities = [f"user-item_affinity_{item}" for item in item_ids.tolist()]
    log, source = read_columns(_log(folder, policy, campaign), _KINDS | dict.fromkeys(affinities, _AFFINITY))
    _check(log, item_ids, source)
    return Impressions(
        items=np.searchsorted(item_ids, log["item_id"].to_numpy()).astype(np.int32),
        positions=log["position"].to_numpy().astype(np.int8),
        clicks=log["click"].to_numpy() == 1,
        propensities=log["propensity_score"].to_numpy(),
        times=log["timestamp"].to_numpy(),
        user_features=_codes(log, _USER),
        affinities=log.select(affinities).to_numpy(),
        item_ids=item_ids,
        item_numbers=context.select("item_feature_0").to_numpy(),
        item_categories=_codes(context, _ITEM),
        name=f"open-bandit, {campaign}",
        policy=policy,
        provenance=OPEN_BANDIT,
    )


def is_open_bandit(folder: Path) -> bool:
    """Whether a folder holds Open Bandit logs."""
    return any(folder.glob("item_context_*.csv"))


def _log(folder: Path, policy: Policy, campaign: Campaign) -> Path:
    files = [folder / f"{policy}_{campaign}.parquet", folder / f"{policy}_{campaign}.csv"]
    return next((file for file in files if file.is_file()), files[0])


def _codes(frame: "pl.DataFrame", columns: list[str]) -> NDArray[np.int32]:
    return np.column_stack([encode(np.asarray(frame[column].to_list(), dtype=str))[1] for column in columns])


def _check(log: "pl.DataFrame", item_ids: NDArray[Any], source: RowSource) -> None:
    rules = {
        "item_id": (np.isin(log["item_id"].to_numpy(), item_ids), "an item of the context file"),
        "position": ((log["position"] >= 1).to_numpy() & (log["position"] <= 3).to_numpy(), "1, 2 or 3"),
        "click": (np.isin(log["click"].to_numpy(), [0, 1]), "0 or 1"),
        "propensity_score": (
            (log["propensity_score"] > 0).to_numpy() & (log["propensity_score"] <= 1).to_numpy(),
            "a probability above 0",
        ),
        "timestamp": (log["timestamp"].is_not_null().to_numpy(), "a time"),
    }
    for column, (right, expected) in rules.items():
        if not right.all():
            raise InvalidData(f"{source.at(int(np.argmin(right)), column)}: expected {expected}.")
