"""What everybody gets at the end of a run: item factors, or noisy moments. All of it follows from releases, and is free."""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep
from tacit.errors import InvalidMessage
from tacit.messages import fields
from tacit.messages.federated_prototypes_frame import Frame, canonical, sign
from tacit.messages.federated_prototypes_manifest import VERSION, Manifest
from tacit.messages.federated_prototypes_terms import Mechanism
from tacit.models.moments import MOST as MOST_HEAD
from tacit.models.moments import SharedMoments

_NAMES = ("kind", "version", "run", "number", "contributors", "informed", "popularity_sd", "gram_sd", "seen", "model")
_MOST_NUMBER = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class SharedModel:
    """``factors``: one row for each item, of numbers of at least 0; or ``moments``. ``informed`` is False where releases hold no
    information at this budget: entities then stay with their own rows.

    ``number`` counts the models of a run, ``contributors`` whose replies are in it. All entities should have the same ``hash``.
    """

    run: str
    contributors: int
    number: int = 1
    informed: bool = True
    factors: NDArray[np.float32] | None = field(default=None, repr=False)
    moments: SharedMoments | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.factors is None) == (self.moments is None):
            raise InvalidMessage("a model holds factors or moments.")
        if self.factors is not None:
            keep(self, factors=np.ascontiguousarray(self.factors, dtype=np.float32))
        elif self.moments is not None:
            keep(self, informed=self.moments.informative)

    @property
    def hash(self) -> str:
        """Of all that the model holds."""
        digest = sha256(canonical(self._header()))
        for name, values in self._arrays().items():
            digest.update(canonical([name, values.dtype.str, list(values.shape)]) + values.tobytes())
        return digest.hexdigest()

    def signed(self, key: bytes) -> bytes:
        """The signed frame that goes to every member of the roster."""
        return sign(key, {**self._header(), "model": self.hash}, self._arrays())

    @classmethod
    def from_frame(cls, frame: Frame, manifest: Manifest) -> "SharedModel":
        """The model in a frame whose signature was checked, if it is one of this run."""
        found = fields.members(frame.header, "a model", _NAMES)
        if (found["kind"], found["version"], found["run"]) != ("model", VERSION, manifest.run):
            raise InvalidMessage("expected a model of this run.")
        number = fields.whole(found["number"], "$.number", least=1, most=_MOST_NUMBER)
        contributors = fields.whole(found["contributors"], "$.contributors", least=0, most=len(manifest.contributors))
        informed = fields.truth(found["informed"], "$.informed")
        if manifest.mechanism is Mechanism.MOMENTS:
            model = cls(manifest.run, contributors, number, moments=_moments(found, frame, manifest))
        else:
            if (found["popularity_sd"], found["gram_sd"], found["seen"]) != (None, None, None):
                raise InvalidMessage("expected no figures of moments in a model of factors.")
            model = cls(manifest.run, contributors, number, informed, factors=_factors(frame, manifest))
        if model.informed != informed or found["model"] != model.hash:
            raise InvalidMessage("the model is not the one that its hash was computed of.")
        return model

    def _header(self) -> dict[str, Any]:
        moments = self.moments
        return {
            "kind": "model",
            "version": VERSION,
            "run": self.run,
            "number": self.number,
            "contributors": self.contributors,
            "informed": self.informed,
            "popularity_sd": None if moments is None else moments.popularity_sd,
            "gram_sd": None if moments is None else moments.gram_sd,
            "seen": None if moments is None else moments.seen,
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        if self.factors is not None:
            return {"factors": self.factors.astype("<f4")}
        if self.moments is None:
            return {}
        return {
            "popularity": self.moments.popularity.astype("<f8"),
            "head": self.moments.head.astype("<u4"),
            "pseudo_rows": self.moments.pseudo_rows.astype("<f4"),
        }


def _factors(frame: Frame, manifest: Manifest) -> NDArray[np.float32]:
    found = frame.array("factors", "f4", (manifest.items, manifest.rank or 0))
    if set(frame.arrays) != {"factors"} or not np.isfinite(found).all() or (found < 0.0).any():
        raise InvalidMessage("expected finite factors of at least 0.")
    return found


def _moments(found: dict[str, Any], frame: Frame, manifest: Manifest) -> SharedMoments:
    popularity = frame.array("popularity", "f8", (manifest.items,))
    head, rows = frame.arrays.get("head"), frame.arrays.get("pseudo_rows")
    if len(frame.arrays) != 3 or head is None or rows is None:
        raise InvalidMessage("expected a popularity, a head and its rows.")
    size = min(len(head), MOST_HEAD, manifest.items)
    head = frame.array("head", "u4", (size,)).astype(np.int64)
    rows = frame.array("pseudo_rows", "f4", (min(len(rows), size), size))
    if not (np.isfinite(popularity).all() and np.isfinite(rows).all()):
        raise InvalidMessage("expected finite moments.")
    if size and (head[-1] >= manifest.items or (np.diff(head) <= 0).any()):
        raise InvalidMessage("expected places of items, ascending, at $.arrays.head.")
    sds = [fields.real(found[name], f"$.{name}") for name in ("popularity_sd", "gram_sd")]
    if min(sds) < 0.0:
        raise InvalidMessage("expected deviations of at least 0.")
    seen = fields.whole(found["seen"], "$.seen", least=0, most=manifest.items)
    return SharedMoments(popularity.astype(np.float64), head, rows.astype(np.float64), sds[0], sds[1], seen)
