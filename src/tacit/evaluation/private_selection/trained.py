"""The world `trained`: both click probabilities are models', fitted to simulated impressions with and without user features.

A click's logit is the item's level, plus the context's, plus taste (user features times the item's), plus a mood that none sees.
The public model sees item and context, the private one the user's features as well. Needs the extra `eval` (scikit-learn).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import MissingExtra
from tacit.evaluation.private_selection.selection_laws import Floats
from tacit.evaluation.private_selection.worlds import (
    AUCTIONS,
    BID_SPREAD,
    DISPLAY,
    World,
    candidates,
    logit,
    sigmoid,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

IMPRESSIONS = 400_000
ITEMS, CONTEXTS, TRAITS = 300, 8, 6
_LEVEL, _ITEM, _CONTEXT, _TASTE, _MOOD = -3.0, 0.47, 0.1, 0.78, 0.33  # the middle and the spreads of logits
# Of seven settings tried, one with areas under the curve and lifts near the reference figures: no independent confirmation of them.
_RIDGE = 10.0


@dataclass(frozen=True)
class Impressions:
    """Who (traits) saw what (item) where (context), and how likely a click was."""

    item: np.ndarray
    context: np.ndarray
    traits: Floats
    truth: Floats


@dataclass(frozen=True)
class Fit:
    """The areas under the curve of truth and models on impressions that no model was fitted to."""

    world: World
    truth_auc: float
    private_auc: float
    public_auc: float


def require_scikit() -> None:
    try:
        import sklearn  # noqa: F401
    except ImportError as missing:
        raise MissingExtra('the world `trained` needs scikit-learn: pip install "tacit[eval]".') from missing


@lru_cache(maxsize=2)
def trained(auctions: int = AUCTIONS, impressions: int = IMPRESSIONS, seed: int = 1) -> Fit:
    """Simulates impressions, fits both models to them, and has both score the same auctions."""
    require_scikit()
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng([seed, 30])
    taste = _TASTE * rng.normal(size=(ITEMS, TRAITS)) / np.sqrt(TRAITS)
    level = _LEVEL + _ITEM * rng.normal(size=ITEMS)
    place = _CONTEXT * rng.normal(size=CONTEXTS)

    def shown(item: np.ndarray, context: np.ndarray, traits: Floats) -> Impressions:
        known = level[item] + place[context] + np.einsum("nt,nt->n", traits, taste[item])
        logits = known + _MOOD * rng.normal(size=item.size)
        return Impressions(item, context, traits, sigmoid(logits))

    def random(count: int) -> Impressions:
        return shown(
            rng.integers(ITEMS, size=count), rng.integers(CONTEXTS, size=count), rng.normal(size=(count, TRAITS))
        )

    seen, test = random(impressions), random(max(10_000, impressions // 4))
    clicks = rng.random(impressions) < seen.truth
    tested = rng.random(test.truth.size) < test.truth
    public, private = _fitted(seen, clicks, with_traits=False), _fitted(seen, clicks, with_traits=True)

    sizes = candidates(DISPLAY, auctions, rng)
    mask = np.arange(sizes.max()) < sizes[:, None]
    offered = np.argsort(rng.random((auctions, ITEMS)), axis=1)[:, : mask.shape[1]]
    context, traits = rng.integers(CONTEXTS, size=auctions), rng.normal(size=(auctions, TRAITS))
    width = mask.shape[1]
    every = shown(offered.ravel(), np.repeat(context, width), np.repeat(traits, width, axis=0))
    seen_by_server, seen_by_device = (
        np.asarray(model.predict_proba(_design(every, with_traits))[:, 1].reshape(mask.shape), dtype=np.float64)
        for model, with_traits in ((public, False), (private, True))
    )
    bids = np.exp(BID_SPREAD * rng.normal(size=mask.shape))
    spread = float(np.std((logit(seen_by_device) - logit(seen_by_server))[mask]))
    world = World("trained", seen_by_server, seen_by_device, bids, mask, spread, every.truth.reshape(mask.shape))
    return Fit(
        world,
        float(roc_auc_score(tested, test.truth)),
        float(roc_auc_score(tested, private.predict_proba(_design(test, True))[:, 1])),
        float(roc_auc_score(tested, public.predict_proba(_design(test, False))[:, 1])),
    )


def _fitted(seen: Impressions, clicks: np.ndarray, *, with_traits: bool) -> Any:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1.0 / _RIDGE, solver="lbfgs", max_iter=1000, tol=1e-6)
    return model.fit(_design(seen, with_traits), clicks)


def _design(seen: Impressions, with_traits: bool) -> "csr_array":
    """One column for each item and context, and with traits one for each item's taste of each trait."""
    from scipy.sparse import csr_array

    count = seen.item.size
    places = [seen.item, ITEMS + seen.context]
    values = [np.ones(count), np.ones(count)]
    if with_traits:
        places += [ITEMS + CONTEXTS + TRAITS * seen.item + trait for trait in range(TRAITS)]
        values += list(seen.traits.T)
    columns = np.stack(places, axis=1)
    starts = np.arange(count + 1) * columns.shape[1]
    wide = ITEMS + CONTEXTS + (TRAITS * ITEMS if with_traits else 0)
    return csr_array((np.stack(values, axis=1).ravel(), columns.ravel(), starts), shape=(count, wide))
