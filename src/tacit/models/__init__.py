"""Plain arithmetic that no party owns: features, scorers, posterior, greedy choice, local models. Loaded when first used.

`cross_domain`, `dpp` (determinantal point processes) and `secure_sum` are rooms of their own within.
"""

from typing import TYPE_CHECKING

from tacit.loading import on_demand

if TYPE_CHECKING:
    from tacit.models import cross_domain, dpp, secure_sum
    from tacit.models.classes import Classes
    from tacit.models.factors import FactorScorer
    from tacit.models.features import FeatureSpace, GenreProfile
    from tacit.models.folded_taste import FoldedTaste
    from tacit.models.item_ridge import ItemRidge
    from tacit.models.items import Items
    from tacit.models.local_models import LinearMap, PrincipalComponents
    from tacit.models.moments import SharedMoments, gram_from
    from tacit.models.onnx_scorer import OnnxScorer
    from tacit.models.rating_network import RatingNetwork
    from tacit.models.scorer import Scorer
    from tacit.models.tables import Tables, build_tables
    from tacit.models.two_tower import TwoTower

_HOMES = {
    "classes": ["Classes"],
    "factors": ["FactorScorer"],
    "features": ["FeatureSpace", "GenreProfile"],
    "folded_taste": ["FoldedTaste"],
    "item_ridge": ["ItemRidge"],
    "items": ["Items"],
    "local_models": ["LinearMap", "PrincipalComponents"],
    "moments": ["SharedMoments", "gram_from"],
    "onnx_scorer": ["OnnxScorer"],
    "rating_network": ["RatingNetwork"],
    "scorer": ["Scorer"],
    "tables": ["Tables", "build_tables"],
    "two_tower": ["TwoTower"],
}
_MODULES = [
    "cross_domain",
    "dpp",
    "secure_sum",
]

__all__ = [
    "Classes",
    "FactorScorer",
    "FeatureSpace",
    "FoldedTaste",
    "GenreProfile",
    "ItemRidge",
    "Items",
    "LinearMap",
    "OnnxScorer",
    "PrincipalComponents",
    "RatingNetwork",
    "Scorer",
    "SharedMoments",
    "Tables",
    "TwoTower",
    "build_tables",
    "cross_domain",
    "dpp",
    "gram_from",
    "secure_sum",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES, _MODULES)
