"""What an entity releases in a stage: the mechanism that the manifest asks for, its guarantee, and its release as arrays."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, Loss, epsilon_of_rho
from tacit.guarantees.rounding import up
from tacit.guarantees.zcdp import epsilon_within
from tacit.mechanisms.drawn import released
from tacit.mechanisms.grid_prototypes import GridPrototypes
from tacit.mechanisms.grid_shares import GridShares
from tacit.mechanisms.moment_shares import GramShare, PopularityShare
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.profile_bounds import ProfileBounds
from tacit.mechanisms.prototypes import Prototypes
from tacit.mechanisms.tree_prototypes import TreePrototypes
from tacit.messages.federated_prototypes_manifest import Manifest
from tacit.messages.federated_prototypes_replies import shapes
from tacit.messages.federated_prototypes_terms import Mechanism

Arrays: TypeAlias = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Upload:
    """One release, ready to be charged: all public numbers are checked, and no row has been read."""

    guarantee: Guarantee
    draw: Callable[[sparse.csr_array], Arrays] = field(repr=False)


def upload_of(manifest: Manifest, stage: str, head: NDArray[np.int64] | None, noise: Noise) -> Upload:
    """The release of a stage; ``head`` is for the Gram matrix."""
    if stage == "prototypes":
        return _prototypes(manifest, noise)
    if manifest.delta is None:
        raise InvalidParameter("moments need a delta.")
    popularity, gram = manifest.rhos
    share: PopularityShare | GramShare
    if stage == "popularity":
        share = PopularityShare(manifest.items, popularity, manifest.delta, manifest.honest)
    else:
        places = () if head is None else tuple(head.tolist())
        share = GramShare(manifest.items, places, gram, manifest.delta, manifest.honest)
    charged = _of_the_run(share.guarantee, manifest)
    return Upload(_with(charged, noise), lambda rows: {"steps": share.release(rows, noise).value.steps})


def all_guarantees(manifest: Manifest, noise: Noise) -> dict[str, Guarantee]:
    """What every release of the run promises by itself, by its stage. Refuses numbers that a mechanism cannot work with."""
    first = np.zeros(1, dtype=np.int64)
    stages = [stage for stage in manifest.stages if stage in ("prototypes", "popularity", "gram")]
    return {stage: upload_of(manifest, stage, first, noise).guarantee for stage in stages}


def packed(arrays: Arrays) -> bytes:
    """The arrays of a release, one after the other: their types and shapes follow from the manifest."""
    return b"".join(np.ascontiguousarray(values).tobytes() for values in arrays.values())


def unpacked(content: bytes, forms: dict[str, tuple[str, tuple[int, ...]]]) -> Arrays:
    found, start = {}, 0
    for name, (kind, shape) in forms.items():
        count = int(np.prod(shape))
        found[name] = np.frombuffer(content, f"<{kind}", count, start).reshape(shape)
        start += found[name].nbytes
    return found


def _prototypes(manifest: Manifest, noise: Noise) -> Upload:
    mechanism = prototype_mechanism(manifest)
    charged = _of_the_run(mechanism.guarantee, manifest)
    return Upload(_with(charged, noise), lambda rows: _arrays(mechanism.release(rows, noise).value, manifest))


def prototype_mechanism(manifest: Manifest) -> GridPrototypes | TreePrototypes:
    k, each, bound = manifest.k, manifest.items_each, manifest.value_bound
    if k is None or each is None or bound is None or manifest.depth is None:
        raise InvalidParameter("prototypes need k, items_each, value_bound and depth.")
    bounds = ProfileBounds(manifest.items, each, bound, manifest.l1_bound, manifest.l2_bound)
    if manifest.mechanism is Mechanism.TREE and manifest.delta is not None and manifest.lloyd is not None:
        epsilon = epsilon_within(manifest.epsilon, manifest.delta)
        return TreePrototypes(
            bounds, k, epsilon, manifest.delta, depth=manifest.depth, lloyd=manifest.lloyd, seed=manifest.seed
        )
    return GridPrototypes(
        bounds,
        k,
        manifest.epsilon,
        users=manifest.users,
        p=manifest.dimension,
        depth=manifest.depth,
        swaps=manifest.swaps,
        trials=manifest.trials or 1,
        picked=manifest.picked,
        shares=GridShares(*(manifest.shares or ())),
        seed=manifest.seed,
    )


def _arrays(released_value: Prototypes, manifest: Manifest) -> Arrays:
    """As the wire has them: sizes, and for every prototype the same number of cells, wherever there is noise or nothing.

    A prototype that a tree had no use for is sent as zeros of size 0.
    """
    forms = shapes(manifest, "prototypes") or {}
    bound = np.float32(manifest.value_bound or 0.0)
    sizes = np.nan_to_num(released_value.sizes).astype(np.float32)
    if "index" not in forms:
        return {"sizes": sizes, "values": _cut(np.nan_to_num(released_value.centres), bound)}
    index = np.stack(
        [np.flatnonzero(~np.isnan(row)) for row in released_value.centres]
    )  # fails unless all have as many
    values = np.take_along_axis(released_value.centres, index, axis=1)
    return {"sizes": sizes, "index": index.astype(np.uint32), "values": _cut(values, bound)}


def _cut(values: NDArray[np.float64], bound: np.float32) -> NDArray[np.float32]:
    return np.clip(values.astype(np.float32), np.float32(0.0), bound)


def _of_the_run(guarantee: Guarantee, manifest: Manifest) -> Guarantee:
    """What one of the q entities of a user is charged, so that all q together are charged what the run costs her.

    Under noise of their own the q releases add up. Under one noise for all she moves the sum q times as far, and pays q^2 rho: q
    rho in each entity. Either way it is assumed that there are no more than q of them.
    """
    each, stated = manifest.entities_each, guarantee.assuming(*manifest.guarantee.assumes)
    if each == 1 or not manifest.is_secure or stated.loss is None:
        return stated
    rho = up(Fraction(stated.loss.value) * each)
    return replace(stated, epsilon=epsilon_of_rho(rho, stated.delta), loss=Loss(stated.loss.kind, rho))


def _with(guarantee: Guarantee, noise: Noise) -> Guarantee:
    """What is charged: with replayed noise, nothing is promised."""
    return released(None, guarantee, noise).guarantee
