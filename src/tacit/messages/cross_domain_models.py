"""Models of a transfer as JSON, by a fixed table of kinds; what is read is checked whole, or refused."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.errors import InvalidMessage
from tacit.messages import fields
from tacit.messages.cross_domain_parts import MOST, numbers, places, table
from tacit.models.cross_domain.bridge import Bridge
from tacit.models.cross_domain.factor_posterior import FactorPosterior
from tacit.models.cross_domain.honest_x_map import NONE, HonestXMap
from tacit.models.cross_domain.offsets import Offsets
from tacit.models.cross_domain.settings import MOST_DIRECTIONS
from tacit.models.cross_domain.transfer import Transfer

_OFFSETS = ("values", "means", "share", "few")
_NAMES = {
    "factor-posterior": ("offsets", "directions", "crossing", "head", "loadings", "noise", "reach"),
    "bridge": ("offsets", "directions", "crossing", "weights", "loadings", "clip", "norm", "reach"),
    "honest-x-map": ("offsets", "directions", "crossing", "replacements", "similar", "cosines"),
    "offsets": ("offsets",),
}
_MOST_SIMILAR = 1_000
_FLATTEST = (
    1e-6  # least variance of what is left, for one of loadings: with less of it a posterior cannot be solved for
)


def kind_of(model: Transfer) -> str:
    for kind, of_kind in zip(_NAMES, (FactorPosterior, Bridge, HonestXMap, Offsets), strict=True):
        if type(model) is of_kind:
            return kind
    raise InvalidMessage(f"a message carries one of these models: {', '.join(_NAMES)}.")


def scale_of(model: Transfer) -> tuple[float, float]:
    base = model if isinstance(model, Offsets) else model.offsets  # type: ignore[attr-defined]
    return base.low, base.high


def to_json(model: Any) -> dict[str, Any]:
    """All that predictions depend on, but the catalogues and the scale."""
    if isinstance(model, Offsets):
        return {"offsets": _offsets_to_json(model)}
    common = {"offsets": _offsets_to_json(model.offsets), "directions": model.directions, "crossing": model.crossing}
    names = [name for name in _NAMES[kind_of(model)] if name not in common]
    found = {name: getattr(model, name) for name in names}
    return common | {name: one.tolist() if isinstance(one, np.ndarray) else one for name, one in found.items()}


def from_json(kind: object, value: object, n_source: int, n_items: int, scale: tuple[float, float]) -> Transfer:
    if not isinstance(kind, str) or kind not in _NAMES:
        raise InvalidMessage(f"expected one of {', '.join(_NAMES)} at $.kind.")
    found = fields.members(value, "a model", _NAMES[kind])
    said = fields.members(found["offsets"], "offsets", _OFFSETS)
    means = numbers(said["means"], "$.model.offsets.means", length=2)
    base = Offsets(
        n_source,
        _frozen(numbers(said["values"], "$.model.offsets.values", length=n_items)),
        (float(means[0]), float(means[1])),
        _size(said["share"], "$.model.offsets.share"),
        _size(said["few"], "$.model.offsets.few"),
        *scale,
    )
    if kind == "offsets":
        return base
    rank = fields.whole(found["directions"], "$.model.directions", least=0, most=MOST_DIRECTIONS)
    crossing = fields.whole(found["crossing"], "$.model.crossing", least=0, most=rank)
    read: dict[str, Callable[[dict[str, Any], Offsets, int, int], Transfer]] = {
        "factor-posterior": _factor_posterior,
        "bridge": _bridge,
        "honest-x-map": _honest_x_map,
    }
    return read[kind](found, base, rank, crossing)


def _factor_posterior(found: dict[str, Any], base: Offsets, rank: int, crossing: int) -> FactorPosterior:
    size = min(len(fields.listed(found["head"], "$.model.head")), base.n_items)
    head = places(found["head"], "$.model.head", length=size, least=0, most=base.n_items - 1)
    if (np.diff(head) <= 0).any():
        raise InvalidMessage("expected places of items, ascending, at $.model.head.")
    loadings = table(found["loadings"], "$.model.loadings", rows=size, columns=rank)
    noise = _size(found["noise"], "$.model.noise")
    if noise <= _FLATTEST * float(np.square(loadings).sum(axis=1).max(initial=0.0)):
        raise InvalidMessage("expected a variance above 0, not far below that of the loadings, at $.model.noise.")
    reach = _size(found["reach"], "$.model.reach")
    return FactorPosterior(base, _frozen(head), _frozen(loadings), noise, reach, crossing)


def _bridge(found: dict[str, Any], base: Offsets, rank: int, crossing: int) -> Bridge:
    weights = table(found["weights"], "$.model.weights", rows=base.n_source, columns=rank)
    loadings = table(found["loadings"], "$.model.loadings", rows=base.n_items - base.n_source, columns=rank)
    clip, norm, reach = (_size(found[name], f"$.model.{name}") for name in ("clip", "norm", "reach"))
    if norm == 0.0:
        raise InvalidMessage("expected a number above 0 at $.model.norm.")
    return Bridge(base, _frozen(weights), _frozen(loadings), clip, norm, reach, crossing)


def _honest_x_map(found: dict[str, Any], base: Offsets, rank: int, crossing: int) -> HonestXMap:
    n_target = base.n_items - base.n_source
    chosen = places(found["replacements"], "$.model.replacements", length=base.n_source, least=NONE, most=n_target - 1)
    rows = fields.listed(found["similar"], "$.model.similar", length=n_target)
    width = min(len(fields.listed(rows[0], "$.model.similar")), _MOST_SIMILAR)
    similar = [places(row, "$.model.similar", length=width, least=NONE, most=n_target - 1) for row in rows]
    for row in similar:
        items = row[row != NONE]
        if np.unique(items).size < items.size:
            raise InvalidMessage("expected each similar item once at $.model.similar.")
    cosines = table(found["cosines"], "$.model.cosines", rows=n_target, columns=width)
    if np.abs(cosines).max(initial=0.0) > 1.0:
        raise InvalidMessage("expected cosines from -1 to 1 at $.model.cosines.")
    alike = _frozen(np.array(similar, dtype=np.int64))
    return HonestXMap(base, _frozen(chosen), alike, _frozen(cosines), rank, crossing)


def _offsets_to_json(base: Offsets) -> dict[str, Any]:
    return {"values": base.values.tolist(), "means": list(base.means), "share": base.share, "few": base.few}


def _size(value: object, path: str) -> float:
    number = fields.real(value, path)
    if not 0.0 <= number <= MOST:
        raise InvalidMessage(f"expected a number from 0 to {MOST:g} at {path}.")
    return number


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array
