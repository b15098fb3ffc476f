"""The fixed table by which stored scorers and feature spaces are rebuilt: a file names a kind, and never code."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from numpy.typing import NDArray

from tacit.errors import InvalidModel
from tacit.models.factors import FactorScorer
from tacit.models.features import FeatureSpace, GenreProfile
from tacit.models.folded_taste import FoldedTaste
from tacit.models.onnx_scorer import OnnxScorer
from tacit.models.rating_network import RatingNetwork
from tacit.models.scorer import Scorer
from tacit.models.two_tower import TwoTower

Tensors: TypeAlias = dict[str, NDArray[Any]]
T = TypeVar("T")

SCORERS: dict[str, Callable[[Tensors], Scorer]] = {
    RatingNetwork.kind: RatingNetwork.from_tensors,
    TwoTower.kind: TwoTower.from_tensors,
    FactorScorer.kind: FactorScorer.from_tensors,
    OnnxScorer.kind: OnnxScorer.from_tensors,
}
SPACES: dict[str, Callable[[Tensors], FeatureSpace]] = {
    GenreProfile.kind: GenreProfile.from_tensors,
    FoldedTaste.kind: FoldedTaste.from_tensors,
}


def scorer_of(kind: object, tensors: Tensors) -> Scorer:
    return _rebuilt("scorer", SCORERS, kind, tensors)


def space_of(kind: object, tensors: Tensors) -> FeatureSpace:
    return _rebuilt("feature space", SPACES, kind, tensors)


def require_storable(scorer: Scorer, space: FeatureSpace) -> None:
    """Refuses what could be written but never read again."""
    for what, table, kind in (("scorer", SCORERS, scorer.kind), ("feature space", SPACES, space.kind)):
        if kind not in table:
            raise InvalidModel(f"a {what} of kind {kind!r} cannot be stored; these can: {', '.join(table)}.")


def items_of(space: FeatureSpace) -> int | None:
    """For how many items a space knows what it needs; None where it does not say."""
    if isinstance(space, GenreProfile):
        return int(space.flags.shape[0])
    return getattr(space, "n_items", None)


def _rebuilt(what: str, table: dict[str, Callable[[Tensors], T]], kind: object, tensors: Tensors) -> T:
    build = table.get(kind) if isinstance(kind, str) else None
    if build is None:
        raise InvalidModel(
            f"the file holds a {what} of a kind that this version does not know; it knows {', '.join(table)}. Update tacit."
        )
    try:
        return build(tensors)
    except InvalidModel:
        raise
    except (KeyError, IndexError, TypeError, ValueError) as problem:
        raise InvalidModel(
            f"the file lacks what a {what} of kind {kind!r} needs, or holds it in another shape. Fit the store again."
        ) from problem
