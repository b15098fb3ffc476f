"""From the shared model to an entity's own fit, by whatever mechanism the model came: the gate is inside, and stays there."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from tacit.entity.blend import BlendedFit, BlendSettings, fit_blend
from tacit.entity.gate import data_free_items, gated_fit
from tacit.entity.local_fit import FitSettings, Kind, LocalFit, fit_local
from tacit.entity.uploads import prototype_mechanism
from tacit.errors import InvalidParameter
from tacit.mechanisms import Noise
from tacit.messages.federated_prototypes_manifest import Manifest
from tacit.messages.federated_prototypes_model import SharedModel
from tacit.models.nonnegative_stack import Factorisation

CONTROLS = 5  # releases of nobody's rows that the gate compares prototypes with: noise alone beats all of them once in six times


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Public constants of the fit, from public data or the documentation. ``blend`` is for 'moments', ``fit`` for prototypes.

    Without a ``gate`` the shared model is used whatever held-out cells say of it, unless it says itself that it tells nothing.
    """

    blend: BlendSettings | None = None
    fit: FitSettings | None = None
    gate: bool = True


def fit_model(
    rows: sparse.csr_array,
    manifest: Manifest,
    model: SharedModel,
    tuning: Tuning,
    *,
    rng: np.random.Generator,
    noise: Noise,
) -> LocalFit | BlendedFit:
    """``rng`` picks held-out cells and starts; ``noise`` draws the releases of nobody's rows that the gate compares with."""
    if model.moments is not None:
        shared = model.moments if model.informed else None
        return fit_blend(rows, shared, _blend(manifest, tuning), rng=rng, gate=tuning.gate)
    if model.factors is None or manifest.rank is None or manifest.value_bound is None:
        raise InvalidParameter("the model holds neither moments nor factors.")
    settings = tuning.fit or FitSettings(
        value_bound=manifest.value_bound,
        ridge=manifest.ridge,
        regulariser=str(manifest.regulariser),
        zeros_observed=bool(manifest.zeros_observed),
    )
    items = model.factors.astype(np.float64)
    if not tuning.gate:
        return fit_local(rows, items, Kind.GLOBAL, settings, rng=rng)
    mechanism, how = prototype_mechanism(manifest), factorisation_of(manifest)
    entities = max(1, model.contributors)
    nobody = [data_free_items(mechanism, manifest.items, entities, how, noise=noise) for _ in range(CONTROLS)]
    return gated_fit(rows, items, nobody, settings, rng=rng)


def factorisation_of(manifest: Manifest) -> Factorisation:
    return Factorisation(
        rank=manifest.rank or 0,
        seed=manifest.seed,
        ridge=manifest.ridge,
        regulariser=str(manifest.regulariser),
        zeros_observed=bool(manifest.zeros_observed),
        most_weight=manifest.most_weight,
    )


def _blend(manifest: Manifest, tuning: Tuning) -> BlendSettings:
    """The measured defaults: little weight for a noisy release, more from epsilon 4 on."""
    users = manifest.users * len(manifest.contributors)
    if tuning.blend is not None:
        return tuning.blend if tuning.blend.users > 1 else replace(tuning.blend, users=users)
    return BlendSettings(alpha=0.03 if manifest.epsilon <= 1.0 else 0.1, users=users)
