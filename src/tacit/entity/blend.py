"""An entity's recommendations from its own rows and the shared moments, and the gate that lets the latter in.

Scores are those of the item-item ridge on the entity's rows and, for the items of the head, on the shared pseudo-rows at weight
``alpha``; plus gamma times (shared popularity per user + .3 of the entity's own). Everything here stays inside the entity: which of
the two was chosen, the held-out figures and the number of users are functions of private rows.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.checks import finite, keep, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.models.item_ridge import Blend, Floats, ItemRidge, item_ridge, unit_rows
from tacit.models.moments import SharedMoments, constant, data_free

LOCAL = 0.3  # weight of the entity's own popularity beside the shared one
TOP = 20
LEFT = 3  # items that a user keeps when some are held out
_CELLS = 1 << 22  # scores at a time


@dataclass(frozen=True, slots=True)
class BlendSettings:
    """Public constants of a blend. Chosen from an entity's rows they would be a part of what its rows decide, inside it only."""

    ridge: float = 2.0
    alpha: float = 0.1
    gamma: float = 0.0
    users: int = 1  # of all entities, as declared: what the shared popularity is divided by

    def __post_init__(self) -> None:
        alpha, gamma = finite("alpha", self.alpha), finite("gamma", self.gamma)
        if alpha < 0.0 or gamma < 0.0:
            raise InvalidParameter("alpha and gamma must be at least 0.")
        users = whole("users", self.users, least=1)
        keep(self, ridge=positive("ridge", self.ridge), alpha=alpha, gamma=gamma, users=users)


@dataclass(frozen=True, repr=False)
class BlendReport:
    """How the gate decided. Private: to publish any of it is a release, which needs a budget."""

    means: dict[str, float]  # held-out NDCG of "local", "blend" and the controls "data-free", "constant"
    difference: float  # of blend and local, user by user
    stderr: float
    compared: int  # users

    def __repr__(self) -> str:
        return "BlendReport(private)"

    @property
    def keeps_blend(self) -> bool:
        """Unless the difference is below minus one standard error. Where nothing can be compared nothing speaks against it."""
        return not self.difference < -self.stderr

    @property
    def informative(self) -> bool:
        """Whether the blend does better than the same noise without data and than a constant: if not, it tells nothing here."""
        return self.means["blend"] > max(self.means["data-free"], self.means["constant"])


@dataclass(frozen=True, eq=False, repr=False)
class BlendedFit:
    """Scores for the entity's users, or for other rows. ``report`` is None where there was nothing to blend in."""

    base: ItemRidge
    blend: Blend | None  # None: the gate kept the entity to its own rows
    settings: BlendSettings
    popularity: Floats = field(default_factory=lambda: np.zeros(0))  # what is added to every user's scores
    report: BlendReport | None = None

    def __repr__(self) -> str:
        return f"BlendedFit({self.base.items} items)"

    def scores(self, rows: Any = None, users: slice = slice(None)) -> Floats:
        """One number for each user and item, higher for better; of the entity's own users, or of ``rows``."""
        if self.blend is None:
            return np.asarray(self.base.scores(rows, users) + self.popularity)
        return np.asarray(self.blend.scores(self.settings.alpha, rows, users) + self.popularity)


def fit_blend(
    rows: Any, shared: SharedMoments | None, settings: BlendSettings, *, rng: np.random.Generator, gate: bool = True
) -> BlendedFit:
    """The entity's fit: blended if the release tells anything and the gate has nothing against it, else of its own rows.

    ``rng`` picks the cells that the gate holds out, and draws the noise of a control. Without a ``gate`` the blend is taken.
    """
    marks = _marks(rows, None if shared is None else shared.popularity.size)
    if shared is None or not shared.informative:
        return _local(item_ridge(marks, settings.ridge), settings)
    report = gate_report(marks, shared, settings, rng=rng) if gate else None
    base = item_ridge(marks, settings.ridge)
    if report is not None and not report.keeps_blend:
        return _local(base, settings, report)
    return _blended(base, shared, settings, report)


def gate_report(rows: Any, shared: SharedMoments, settings: BlendSettings, *, rng: np.random.Generator) -> BlendReport:
    """A tenth of each user's items held out, and found again by: her entity alone, the blend, and the blend of two controls."""
    train, held = held_out(_marks(rows, shared.popularity.size), rng)
    base = item_ridge(train, settings.ridge)
    fits = {
        "local": _local(base, settings),
        "blend": _blended(base, shared, settings),
        "data-free": _blended(base, data_free(shared, rng), settings),
        "constant": _blended(base, constant(shared), settings),
    }
    gains = {name: held_out_gains(fit, train, held) for name, fit in fits.items()}
    asked = np.diff(held.indptr) > 0
    apart = gains["blend"][asked] - gains["local"][asked]
    return BlendReport(
        {name: float(values[asked].mean()) if asked.any() else math.nan for name, values in gains.items()},
        float(apart.mean()) if apart.size else math.nan,
        float(apart.std(ddof=1) / math.sqrt(apart.size)) if apart.size > 1 else math.nan,
        apart.size,
    )


def held_out(rows: sparse.csr_array, rng: np.random.Generator) -> tuple[sparse.csr_array, sparse.csr_array]:
    """What trains and what is held out: of each user a tenth of her items, at least one, and none where fewer than three stay."""
    sizes = np.diff(rows.indptr)
    count = np.maximum(0, np.minimum(np.maximum(1, sizes // 10), sizes - LEFT))
    user = np.repeat(np.arange(rows.shape[0]), sizes)
    shuffled = np.lexsort((rng.random(rows.nnz), user))  # each user's cells in a random order
    place = np.empty(rows.nnz, dtype=np.int64)
    place[shuffled] = np.arange(rows.nnz) - rows.indptr[user]
    out = place < count[user]
    return _only(rows, ~out), _only(rows, out)


def held_out_gains(fit: BlendedFit, train: sparse.csr_array, held: sparse.csr_array) -> NDArray[np.float64]:
    """Each user's NDCG of 20 items, all but those she trains with being candidates; 0 for a user with nothing held out."""
    users, items = train.shape
    gains = np.zeros(users)
    step = max(1, _CELLS // items)
    for first in range(0, users, step):
        scores = fit.scores(users=slice(first, first + step))
        mine = train[first : first + step]
        scores[np.repeat(np.arange(len(scores)), np.diff(mine.indptr)), mine.indices] = -np.inf
        for user in range(len(scores)):
            wanted = held.indices[held.indptr[first + user] : held.indptr[first + user + 1]]
            if wanted.size:
                gains[first + user] = _gain(scores[user], wanted)
    return gains


def _gain(scores: Floats, wanted: NDArray[np.integer[Any]]) -> float:
    if np.isnan(scores).any():  # of a broadcast that is out of all bounds; NaN is above nothing and would win
        return 0.0
    own = scores[wanted][:, None]
    # half of the ties stand above: an order that happens to put the wanted item first must not count
    places = (scores > own).sum(axis=1) + 0.5 * ((scores == own).sum(axis=1) - 1)
    best = (1.0 / np.log2(np.arange(min(TOP, wanted.size)) + 2.0)).sum()
    return float(((places < TOP) / np.log2(places + 2.0)).sum() / best)


def _local(base: ItemRidge, settings: BlendSettings, report: BlendReport | None = None) -> BlendedFit:
    return BlendedFit(base, None, settings, settings.gamma * LOCAL * _own_popularity(base), report)


def _blended(
    base: ItemRidge, shared: SharedMoments, settings: BlendSettings, report: BlendReport | None = None
) -> BlendedFit:
    everywhere = np.maximum(shared.popularity, 0.0) / settings.users
    popularity = settings.gamma * (everywhere + LOCAL * _own_popularity(base))
    return BlendedFit(base, Blend(base, shared.head, shared.pseudo_rows), settings, popularity, report)


def _own_popularity(base: ItemRidge) -> Floats:
    """The mean of the entity's unit rows: on the scale of the shared popularity per user."""
    return np.asarray(base.unit.sum(axis=0) / max(1, base.unit.shape[0])).reshape(-1)


def _marks(rows: Any, items: int | None) -> sparse.csr_array:
    unit, _ = unit_rows(rows)
    if items is not None and unit.shape[1] != items:
        raise InvalidInput(f"expected rows of {items} numbers.")
    return _only(unit, np.ones(unit.nnz, dtype=np.bool_))


def _only(rows: sparse.csr_array, kept: NDArray[np.bool_]) -> sparse.csr_array:
    ends = np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
    return sparse.csr_array((np.ones(int(kept.sum())), rows.indices[kept], ends), shape=rows.shape)
