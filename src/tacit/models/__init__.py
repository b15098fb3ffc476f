"""Plain arithmetic without privacy: features, scorers, posteriors, greedy slates, local models, factorisations, secure sums.

`cross_domain` and `dpp` (determinantal point processes) are packages of their own. Names are loaded when they are
first used.
"""

from typing import TYPE_CHECKING

from tacit.loading import lazy

if TYPE_CHECKING:
    from tacit.models import cross_domain, dpp, secure_sum
    from tacit.models.features import FeatureSpace, FoldedTaste, GenreProfile
    from tacit.models.items import Classes, Items
    from tacit.models.moments import ItemRidge, SharedMoments, gram_from
    from tacit.models.multi_selection import LinearMap, PrincipalComponents
    from tacit.models.scorers import FactorScorer, OnnxScorer, RatingNetwork, Scorer, TwoTower
    from tacit.models.tables import Tables, build_tables
else:
    __getattr__, __dir__ = lazy(
        __name__,
        "cross_domain dpp secure_sum",
        features="FeatureSpace FoldedTaste GenreProfile",
        items="Classes Items",
        moments="ItemRidge SharedMoments gram_from",
        multi_selection="LinearMap PrincipalComponents",
        scorers="FactorScorer OnnxScorer RatingNetwork Scorer TwoTower",
        tables="Tables build_tables",
    )

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
