"""From a guess and a slate to the local model that is sent along."""

import numpy as np
from numpy.typing import NDArray

from tacit.models.local_models import (
    LinearMap,
    PrincipalComponents,
    gram_of,
    principal_components,
    ridge_from_gram,
    temperature,
)
from tacit.models.scorer import checked_scores
from tacit.server.algorithms import BY_WEIGHTS, LocalModel, Posterior
from tacit.server.guessing import Guess


def fitted(guess: Guess, items: NDArray[np.int64]) -> LinearMap | PrincipalComponents | LocalModel:
    """The local model for a slate; where nothing is to be sent, its name."""
    kind = guess.settings.local_model
    if kind in (LocalModel.NETWORK, LocalModel.NONE):
        return kind
    classes = guess.scorer.classes.of[items]
    if kind is LocalModel.RIDGE:
        rows, weights = guess.weighted(temperature(guess.eta))
        return ridge_from_gram(guess.gram(rows, weights / weights.sum(), classes), len(items), guess.settings.strength)
    model = principal_components(_gram(guess, classes), len(items), guess.settings.components)
    return model.as_map() if kind is LocalModel.PCA_MAP else model


def _gram(guess: Guess, classes: NDArray[np.int32]) -> NDArray[np.float64]:
    """Of rows [1, features, utilities] over the posterior: by draws, or by its weights where the algorithm weighs all of it."""
    settings = guess.settings
    if settings.posterior is Posterior.CAP:
        features = guess.capped(settings.model_draws)
        scores = guess.scorer.score(features, guess.scorer.classes.first[classes])
        return gram_of(features, checked_scores(scores, (len(features), len(classes))), np.ones(len(features)))
    if settings.algorithm in BY_WEIGHTS:
        rows, weights = guess.weighted(guess.eta)
    else:
        counts = np.bincount(guess.draws(settings.model_draws), minlength=len(guess.known))
        rows = np.flatnonzero(counts)
        weights = counts[rows].astype(np.float64)
    return guess.gram(rows, weights, classes)
