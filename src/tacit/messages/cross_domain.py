"""The messages of cross-domain, which a curator of two domains releases for anybody to keep and compute with.

curator -> anybody  TransferModel  offsets and directions of taste, from noisy moments: predicts from a reader's own ratings
curator -> anybody  Replacements   one target item for each of a public list of source items: rewrites a reader's own ratings

Readers keep their ratings. Predictions are computed on their side, and nothing goes back to the curator.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypeVar

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from tacit.checks import keep, whole
from tacit.errors import InvalidMessage, UnknownName
from tacit.files import OWNER_ONLY, draft
from tacit.guarantees import Guarantee, LossKind, Release, delta_of_gaussian, epsilon_of_rho
from tacit.messages.codec import (
    ArrayMessage,
    Form,
    Promise,
    Real,
    Schema,
    make,
    read,
    read_guarantee,
    schema_of,
    value_of,
)
from tacit.messages.items import Item, Items, checked_items, index_of, indices_of, known_ratings
from tacit.models.cross_domain.transfer import MOST_DIRECTIONS, Offsets, Transfer
from tacit.models.cross_domain.transfer_models import NONE, Bridge, FactorPosterior, HonestXMap

__all__ = ["Item", "Replacements", "TransferModel"]

FORMAT = "tacit transfer/1"
REPLACEMENTS_FORMAT = "tacit replacements/1"
LARGEST = 1e6  # of a number on a scale
MOST = 1e13  # of any other number: above the square of LARGEST, and sums of products over all items stay finite
_MOST_BYTES = 1 << 29
_ROUNDED = 1e-9  # relative: the difference that rounding may make between two claims
_MOST_SIMILAR = 1_000
_FLATTEST = 1e-6  # least ratio of the noise's variance to that of the loadings: below it a posterior cannot be solved
T = TypeVar("T")


class _TwoCatalogues(ArrayMessage):
    """A release for the items of two domains, kept in a file of JSON."""

    source: Items
    target: Items

    def save(self, path: str | Path) -> Path:
        """Writes JSON: one file, whole or not at all, readable by its owner only."""
        path = Path(path)
        with draft(path, mode=OWNER_ONLY) as temporary, temporary.open("w", encoding="utf-8") as file:
            json.dump(self.to_json(), file, allow_nan=False, separators=(",", ":"))
        return path

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The message of a file that ``save`` wrote; InvalidMessage for any other file."""
        return cls.from_json(load(path))

    @cached_property
    def _indices(self) -> dict[Item, int]:
        return {item: index for index, item in enumerate((*self.source, *self.target))}


@dataclass(frozen=True, eq=False, repr=False)
class TransferModel(_TwoCatalogues):
    """Predictions in the target domain from ratings in the source domain. Any number of them costs nothing more.

    ``source`` and ``target`` are the public catalogues, in the order of the model's codes. The guarantee protects the users whose
    ratings were added up. It does not protect a reader: a prediction depends on the profile that it was computed from.
    """

    form: ClassVar[Form] = Form("a transfer model", format=FORMAT)

    source: Items
    target: Items
    model: Transfer
    guarantee: Guarantee

    def __post_init__(self) -> None:
        source, target = _checked_catalogues(self.source, self.target)
        _check_promise(self.guarantee, gaussian=True)
        n_source, n_items = len(source), len(source) + len(target)
        kind, scale = _kind_of(self.model), _checked_scale(_scale_of(self.model))
        if (self.model.n_source, self.model.n_items) != (n_source, n_items):
            raise InvalidMessage("expected a model of the items of these catalogues.")
        # Read from its own JSON: so it is checked like a model that arrives, and nobody else holds its arrays.
        keep(
            self,
            source=source,
            target=target,
            model=_read_model(kind, _model_to_json(self.model), n_source, n_items, scale),
        )

    @classmethod
    def from_release(
        cls, release: Release[Transfer], source: Iterable[Item], target: Iterable[Item]
    ) -> "TransferModel":
        """The message of a release: noisy moments, mapped to a model."""
        return make(cls, tuple(source), tuple(target), value_of(release), release.guarantee)

    @property
    def kind(self) -> str:
        """The kind of model: factor-posterior, bridge, honest-x-map or offsets."""
        return _kind_of(self.model)

    @property
    def scale(self) -> tuple[float, float]:
        """The lowest and the highest rating, in stars: predictions lie within."""
        return _scale_of(self.model)

    @property
    def directions(self) -> int:
        """The number of directions of taste above the noise. With 0 the model knows only averages and the reader's own level."""
        return self.model.directions

    @property
    def crossing(self) -> int:
        """The number of directions that link the domains. With 0 the model carries no taste from one to the other."""
        return self.model.crossing

    @property
    def remark(self) -> str:
        """One sentence on how much taste the noise left to carry over."""
        return self.model.remark

    def predict(self, profile: Mapping[Any, float], items: Iterable[Any] | None = None) -> dict[Item, float]:
        """Ratings on the scale, not rounded: of ``items``, or of every target item.

        Items of the profile that neither catalogue lists are ignored. 17 and "17" are the same item.
        """
        if items is None:
            indices, names = np.arange(len(self.source), self.model.n_items), list(self.target)
        else:
            names, indices = indices_of(items, self._indices)
        rated, values = known_ratings(profile, self._indices, self.scale)
        return dict(zip(names, self.model.predict(rated, values, indices).tolist(), strict=True))

    def recommend(self, profile: Mapping[Any, float], k: int = 10) -> tuple[Item, ...]:
        """The k target items with the highest predictions that the profile lacks. Ties go to the first in the catalogue."""
        k, first = whole("k", k, least=1), len(self.source)
        rated, _ = known_ratings(profile, self._indices, self.scale)
        rated_items = {self.target[index - first] for index in rated.tolist() if index >= first}
        unrated = {item: value for item, value in self.predict(profile).items() if item not in rated_items}
        return tuple(sorted(unrated, key=lambda item: -unrated[item])[:k])  # sorting keeps the order of equals

    def alter_ego(self, profile: Mapping[Any, float]) -> dict[Item, float]:
        """A profile in the target: the ratings that the reader gave there, and a prediction for every other target item."""
        first, (rated, values) = len(self.source), known_ratings(profile, self._indices, self.scale)
        pairs = zip(rated.tolist(), values.tolist(), strict=True)
        ratings = {self.target[index - first]: value for index, value in pairs if index >= first}
        return self.predict(profile) | ratings

    def to_json(self) -> dict[str, Any]:
        """The model as values for JSON."""
        return {
            "format": FORMAT,
            "kind": self.kind,
            "source": list(self.source),
            "target": list(self.target),
            "scale": list(self.scale),
            "model": _model_to_json(self.model),
            "guarantee": self.guarantee.to_json(),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The model that ``to_json`` wrote, checked; `InvalidMessage` for anything else."""
        sent: _TransferForm = read(value, _TransferForm, cls.form.title)
        source, target = _checked_catalogues(sent.source, sent.target)
        n_source, n_items = len(source), len(source) + len(target)
        model = _read_model(sent.kind, sent.model, n_source, n_items, _checked_scale(sent.scale))
        return make(cls, source, target, model, read_guarantee(sent.guarantee))

    @classmethod
    def schema(cls) -> Schema:
        """The model as JSON Schema. The members of ``model`` depend on ``kind``."""
        return schema_of(_TransferForm)

    def __repr__(self) -> str:
        sizes = f"{len(self.source):,} + {len(self.target):,} items"
        taste = f"directions: {self.directions}, crossing: {self.crossing}"
        return f"TransferModel({self.kind}; {sizes}; {taste}; {self.guarantee}). {self.remark}"


@dataclass(frozen=True, eq=False, repr=False)
class Replacements(_TwoCatalogues):
    """For each of a public list of source items one of a public list of target items, drawn once.

    ``chosen`` are indices into ``target``, one for each source item.
    """

    form: ClassVar[Form] = Form("replacements", format=REPLACEMENTS_FORMAT)

    source: Items
    target: Items
    chosen: tuple[int, ...]
    scale: tuple[Real, Real]  # the lowest and the highest rating, in stars
    guarantee: Promise

    def _check(self) -> None:
        """Raises InvalidMessage if the parts of the table do not fit together."""
        source, target = _checked_catalogues(self.source, self.target)
        _indices(list(self.chosen), "$.chosen", length=len(source), least=0, most=len(target) - 1)
        keep(self, source=source, target=target, scale=_checked_scale(self.scale))
        _check_promise(self.guarantee)

    @classmethod
    def from_release(
        cls,
        release: Release[NDArray[np.int64]],
        source: Iterable[Item],
        target: Iterable[Item],
        scale: tuple[float, float],
    ) -> "Replacements":
        """The message of a release: indices into ``target``, one for each item of ``source``."""
        return make(cls, tuple(source), tuple(target), tuple(value_of(release).tolist()), scale, release.guarantee)

    def replacement(self, item: Any) -> Item:
        """The target item that stands in for a source item of the list."""
        index = index_of(item, self._indices)
        if index is None or index >= len(self.source):
            raise UnknownName("this item is not in the list of replaced source items.")
        return self.target[self.chosen[index]]

    def alter_ego(self, profile: Mapping[Any, float]) -> dict[Item, float]:
        """A profile over the target items of the list, in its order. Source items with the same replacement give their mean rating.

        A rating that the reader gave in the target itself takes precedence. Items on neither list are ignored.
        """
        rated, values = known_ratings(profile, self._indices, self.scale)
        first, n_target = len(self.source), len(self.target)
        from_source = rated < first
        to = np.array(self.chosen, dtype=np.int64)[rated[from_source]]
        count = np.bincount(to, minlength=n_target)
        mean = np.bincount(to, values[from_source], n_target) / np.maximum(count, 1)
        mean[rated[~from_source] - first] = values[~from_source]
        count[rated[~from_source] - first] = 1
        return {self.target[index]: float(mean[index]) for index in np.flatnonzero(count).tolist()}

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"Replacements({len(self.source):,} items by one of {len(self.target):,}; {self.guarantee})"


def load(path: str | Path) -> object:
    """The JSON of a file. A file that is missing or cannot be read raises OSError, one that is not JSON InvalidMessage."""
    with Path(path).open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise InvalidMessage(f"expected a file of at most {_MOST_BYTES:,} bytes.")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidMessage("this file holds no message of tacit, or it is cut off.") from None


def _checked_catalogues(source: object, target: object) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Public ids of both domains. Each id stands once, in one domain."""
    first, second = checked_items(source, least=1), checked_items(target, least=1)
    checked_items(first + second)
    return first, second


def _checked_scale(scale: tuple[float, float]) -> tuple[float, float]:
    low, high = read(scale, tuple[Real, Real], "a message of cross-domain", "$.scale")
    if not -LARGEST <= low < high <= LARGEST:
        raise InvalidMessage(f"expected a scale that rises, within {LARGEST:g} of 0, at $.scale.")
    return low, high


def _check_promise(promise: Guarantee, *, gaussian: bool = False) -> None:
    """Raises InvalidMessage unless epsilon and delta follow from the loss beside them: nobody proved a smaller epsilon.

    Without a delta a Gaussian loss promises no epsilon at all, a range is at most epsilon, and rho is at most epsilon^2 / 2. If a
    release is ``gaussian``, its promise needs such a loss, or it could not be checked.
    """
    if not isinstance(promise, Guarantee):
        raise InvalidMessage("a released message carries a Guarantee.")
    loss = promise.loss
    if gaussian and not promise.promises_nothing and (loss is None or loss.kind is not LossKind.GAUSSIAN):
        raise InvalidMessage("expected a gaussian loss, from which epsilon follows, at $.guarantee.loss.")
    if loss is None:
        return
    epsilon, delta, size, follows = promise.epsilon, promise.delta, loss.value, True
    if loss.kind is LossKind.GAUSSIAN:  # above 0: a release that depends on nobody needs no noise
        follows = size > 0.0 and delta > 0.0 and delta_of_gaussian(size, epsilon) <= delta * (1.0 + _ROUNDED)
    elif loss.kind is LossKind.BOUNDED_RANGE:
        follows = size <= epsilon * (1.0 + _ROUNDED)
    elif loss.kind is LossKind.ZCDP and delta > 0.0 and size > 0.0:
        follows = epsilon_of_rho(size, delta) <= epsilon * (1.0 + _ROUNDED)
    elif loss.kind is LossKind.ZCDP:
        follows = 2.0 * size <= epsilon * epsilon * (1.0 + _ROUNDED)
    if not follows:
        raise InvalidMessage("expected an epsilon that follows from delta and the loss at $.guarantee.")


# The models of a transfer in JSON, by a fixed table of kinds. A field has the name of the model's attribute.

Number: TypeAlias = Annotated[float, Meta(ge=-MOST, le=MOST)]
Size: TypeAlias = Annotated[float, Meta(ge=0, le=MOST)]
Rank: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_DIRECTIONS)]


class _OffsetsForm(Struct, forbid_unknown_fields=True):
    values: list[Number]
    means: tuple[Number, Number]
    share: Size
    few: Size


class _OffsetsOnly(Struct, forbid_unknown_fields=True):
    offsets: _OffsetsForm


class _FactorPosteriorForm(_OffsetsOnly, forbid_unknown_fields=True):
    directions: Rank
    crossing: Rank
    head: list[int]
    loadings: list[list[Number]]
    noise: Size
    reach: Size


class _BridgeForm(_OffsetsOnly, forbid_unknown_fields=True):
    directions: Rank
    crossing: Rank
    weights: list[list[Number]]
    loadings: list[list[Number]]
    clip: Size
    norm: Size
    reach: Size


class _HonestXMapForm(_OffsetsOnly, forbid_unknown_fields=True):
    directions: Rank
    crossing: Rank
    replacements: list[int]
    similar: list[list[int]]
    cosines: list[list[Annotated[float, Meta(ge=-1, le=1)]]]


class _TransferForm(Struct, forbid_unknown_fields=True):
    format: Literal["tacit transfer/1"]
    kind: Literal["factor-posterior", "bridge", "honest-x-map", "offsets"]
    source: list[Item]
    target: list[Item]
    scale: tuple[Real, Real]
    model: Any
    guarantee: Any


_KINDS: dict[str, tuple[type[Any], Any]] = {
    "factor-posterior": (FactorPosterior, _FactorPosteriorForm),
    "bridge": (Bridge, _BridgeForm),
    "honest-x-map": (HonestXMap, _HonestXMapForm),
    "offsets": (Offsets, _OffsetsOnly),
}


def _kind_of(model: Transfer) -> str:
    for kind, (of_kind, _) in _KINDS.items():
        if type(model) is of_kind:
            return kind
    raise InvalidMessage(f"a message carries one of these models: {', '.join(_KINDS)}.")


def _scale_of(model: Any) -> tuple[float, float]:
    base: Offsets = model if isinstance(model, Offsets) else model.offsets
    return base.low, base.high


def _model_to_json(model: Any) -> dict[str, Any]:
    """Everything that predictions depend on, except the catalogues and the scale."""
    if isinstance(model, Offsets):
        return {"offsets": _attributes(model, _OffsetsForm)}
    return _attributes(model, _KINDS[_kind_of(model)][1])


def _attributes(model: Any, form: type[Struct]) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for name in form.__struct_fields__:
        value = getattr(model, name)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, Offsets):
            value = _attributes(value, _OffsetsForm)
        written[name] = list(value) if isinstance(value, tuple) else value
    return written


def _read_model(kind: str, value: object, n_source: int, n_items: int, scale: tuple[float, float]) -> Transfer:
    sent = read(value, _KINDS[kind][1], "a transfer model", "$.model")
    if len(sent.offsets.values) != n_items:
        raise InvalidMessage(f"expected a list of {n_items} at $.model.offsets.values.")
    values, (share, few) = np.array(sent.offsets.values, dtype=np.float64), (sent.offsets.share, sent.offsets.few)
    offsets = Offsets(n_source, _frozen(values), sent.offsets.means, share, few, *scale)
    if kind == "offsets":
        return offsets
    if sent.crossing > sent.directions:
        raise InvalidMessage("expected a whole number of at most $.model.directions at $.model.crossing.")
    if kind == "factor-posterior":
        return _factor_posterior(sent, offsets)
    return _bridge(sent, offsets) if kind == "bridge" else _honest_x_map(sent, offsets)


def _factor_posterior(sent: _FactorPosteriorForm, offsets: Offsets) -> FactorPosterior:
    size = min(len(sent.head), offsets.n_items)
    head = _indices(sent.head, "$.model.head", length=size, least=0, most=offsets.n_items - 1)
    if (np.diff(head) <= 0).any():
        raise InvalidMessage("expected indices of items, ascending, at $.model.head.")
    loadings = _table(sent.loadings, "$.model.loadings", rows=size, columns=sent.directions)
    if sent.noise <= _FLATTEST * float(np.square(loadings).sum(axis=1).max(initial=0.0)):
        raise InvalidMessage("expected a variance above 0, not far below that of the loadings, at $.model.noise.")
    return FactorPosterior(offsets, _frozen(head), _frozen(loadings), sent.noise, sent.reach, sent.crossing)


def _bridge(sent: _BridgeForm, offsets: Offsets) -> Bridge:
    n_target = offsets.n_items - offsets.n_source
    weights = _table(sent.weights, "$.model.weights", rows=offsets.n_source, columns=sent.directions)
    loadings = _table(sent.loadings, "$.model.loadings", rows=n_target, columns=sent.directions)
    if sent.norm == 0.0:
        raise InvalidMessage("expected a number above 0 at $.model.norm.")
    return Bridge(offsets, _frozen(weights), _frozen(loadings), sent.clip, sent.norm, sent.reach, sent.crossing)


def _honest_x_map(sent: _HonestXMapForm, offsets: Offsets) -> HonestXMap:
    n_target = offsets.n_items - offsets.n_source
    bounds = {"least": NONE, "most": n_target - 1}
    chosen = _indices(sent.replacements, "$.model.replacements", length=offsets.n_source, **bounds)
    if len(sent.similar) != n_target:
        raise InvalidMessage(f"expected a list of {n_target} at $.model.similar.")
    width = min(len(sent.similar[0]), _MOST_SIMILAR)
    similar = np.array([_indices(row, "$.model.similar", length=width, **bounds) for row in sent.similar])
    for row in similar:
        items = row[row != NONE]
        if np.unique(items).size < items.size:
            raise InvalidMessage("expected each similar item once at $.model.similar.")
    cosines = _table(sent.cosines, "$.model.cosines", rows=n_target, columns=width)
    return HonestXMap(offsets, _frozen(chosen), _frozen(similar), _frozen(cosines), sent.directions, sent.crossing)


def _table(rows_sent: list[list[float]], path: str, *, rows: int, columns: int) -> NDArray[np.float64]:
    if len(rows_sent) != rows or any(len(row) != columns for row in rows_sent):
        raise InvalidMessage(f"expected {rows} lists of {columns} numbers at {path}.")
    return np.array(rows_sent, dtype=np.float64).reshape(rows, columns)


def _indices(sent: list[int], path: str, *, length: int, least: int, most: int) -> NDArray[np.int64]:
    if len(sent) != length or not all(least <= index <= most for index in sent):
        raise InvalidMessage(f"expected {length} whole numbers from {least} to {most} at {path}.")
    return np.array(sent, dtype=np.int64)


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array
