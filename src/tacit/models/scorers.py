"""Scorers: models of how much users with given features like items. Every scorer that a store may hold is here.

`FactorScorer` multiplies tastes by factors of items, `TwoTower` and `RatingNetwork` are small networks over genres,
and `OnnxScorer` runs any ONNX model. All but the last are served by numpy; the curator trains them (tacit.curator). A
scorer of your own needs the few members of `Scorer`.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import finite, keep, whole
from tacit.errors import InvalidModel, MissingExtra
from tacit.models.items import Classes, classes_of

Progress: TypeAlias = Callable[[int, int], None]  # rows done, rows in total
_ROWS = 256  # look-alikes scored at a time
TOWERS = ("liked", "disliked", "item")  # of `RatingNetwork`
TOWER_WIDTHS = (50, 50)  # after a first layer as wide as its input
TRUNK_WIDTHS = (150, 75, 50, 1)
BEST_RATING = 5.0
_PAIRS = 1 << 15  # (user, class) pairs in a network at a time: they stay in the cache, and memory is bounded
Weights = dict[str, NDArray[np.float32]]
TWO_TOWERS = ("user", "item")  # of `TwoTower`, with these widths
WIDTHS = (64, 32)


class Scorer(Protocol):
    """Utilities of items for users: finite and at least 0, because the greedy choice needs utilities that never fall.

    Items of one class must have equal scores. A model that can go below 0 must shift itself by the catalogue's
    minimum.
    """

    @property
    def kind(self) -> str:
        """The name of this kind of scorer in a store."""

    @property
    def dimension(self) -> int:
        """How many features a user has."""

    @property
    def classes(self) -> Classes:
        """Classes of items that this scorer cannot tell apart: they get the same score."""

    def score(self, features: NDArray[Any], items: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Scores of users x items, for rows of features and codes of items."""

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays to store, from which the same scorer is built again."""


def class_scores(scorer: Scorer, features: NDArray[Any]) -> NDArray[np.float32]:
    """Scores of users x classes, each class scored once by its smallest item.

    Raises InvalidModel if a score is not finite or below 0.
    """
    return checked_scores(scorer.score(features, scorer.classes.first), (len(features), len(scorer.classes)))


def checked_scores(scores: NDArray[Any], shape: tuple[int, int]) -> NDArray[np.float32]:
    """``scores`` as float32. Raises InvalidModel if the shape is wrong or a score is not finite or below 0."""
    scores = np.asarray(scores, dtype=np.float32)
    if scores.shape != shape:
        raise InvalidModel(f"the model returned scores of shape {scores.shape}; expected {shape} (users x items).")
    if not np.isfinite(scores).all() or (scores < 0.0).any():
        raise InvalidModel(
            "the model returned a score that is not finite or is below 0. Utilities must be at least 0: "
            "shift the model by its minimum."
        )
    return scores


def require_usable(scorer: Scorer, look_alikes: NDArray[Any]) -> None:
    """The check at start-up: scores all classes for a few look-alikes (or the origin).

    Raises InvalidModel if a score is unusable.
    """
    sample = look_alikes[:: max(1, len(look_alikes) // 16)] if len(look_alikes) else np.zeros((1, scorer.dimension))
    class_scores(scorer, sample)


def scored_in_parts(
    scorer: Scorer,
    features: NDArray[Any],
    use: Callable[[int, NDArray[np.float32]], None],
    progress: Progress | None = None,
) -> None:
    """Scores all classes for many users in bounded memory: calls ``use(first row, scores)`` for each part."""
    for first in range(0, len(features), _ROWS):
        use(first, class_scores(scorer, features[first : first + _ROWS]))
        if progress is not None:
            progress(min(first + _ROWS, len(features)), len(features))


class ClassScorer(ABC):
    """A scorer that scores each class of items once: a matrix product may round two equal columns differently."""

    @property
    @abstractmethod
    def classes(self) -> Classes:
        """Classes of items that this scorer cannot tell apart: they get the same score."""

    def score(self, features: NDArray[Any], items: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Scores of users x items: one row of features for each user, items by their codes. Larger is better."""
        classes, position = np.unique(self.classes.of[items], return_inverse=True)
        return self._score_classes(np.asarray(features, dtype=np.float32), classes)[:, position.reshape(-1)]

    @abstractmethod
    def _score_classes(self, users: NDArray[np.float32], classes: NDArray[np.int32]) -> NDArray[np.float32]:
        """Scores of users x classes."""


@dataclass(frozen=True, eq=False)
class FactorScorer(ClassScorer):
    """Ratings from 0 to 5: mean + the item's offset + features . the item's factors, clipped.

    The features are those of `FoldedTaste`. A user's generosity moves all their ratings alike, so it is not part of
    the features.
    """

    kind: ClassVar[str] = "factors/1"
    factors: NDArray[np.float32]  # items x rank
    offsets: NDArray[np.float32]
    mean: float

    def __post_init__(self) -> None:
        factors, offsets = checked_factors(self.factors, self.offsets)
        keep(self, factors=factors, offsets=offsets, mean=finite("mean", self.mean))

    @property
    def dimension(self) -> int:
        """How many features a user has."""
        return int(self.factors.shape[1])

    @cached_property
    def classes(self) -> Classes:
        """Each item alone, except items with equal numbers, such as all items without ratings."""
        return classes_of(np.column_stack([self.factors, self.offsets]))

    def _score_classes(self, users: NDArray[np.float32], classes: NDArray[np.int32]) -> NDArray[np.float32]:
        first = self.classes.first[classes]
        scores: NDArray[np.float32] = users @ self.factors[first].T
        scores += self.offsets[first] + np.float32(self.mean)
        return np.clip(scores, 0.0, BEST_RATING, out=scores)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays, by name, from which ``from_tensors`` builds the same scorer again."""
        return {"factors": self.factors, "offsets": self.offsets, "mean": np.array([self.mean])}

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]]) -> "FactorScorer":
        """The scorer from the arrays of a store. Raises InvalidModel if they do not fit."""
        return cls(tensors["factors"], tensors["offsets"], float(tensors["mean"][0]))


def checked_factors(factors: ArrayLike, offsets: ArrayLike) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Read-only copies. Raises InvalidModel unless every item has finite factors and one finite offset."""
    table, column = np.array(factors, dtype=np.float32), np.array(offsets, dtype=np.float32)
    if table.ndim != 2 or not table.shape[1] or column.shape != table.shape[:1]:
        raise InvalidModel("factors must be a table with one row for each item, and offsets one number for each row.")
    if not (np.isfinite(table).all() and np.isfinite(column).all()):
        raise InvalidModel("factors and offsets must be finite.")
    table.flags.writeable = column.flags.writeable = False
    return table, column


@dataclass(frozen=True, eq=False)
class GenreNetwork(ClassScorer):
    """The weights of a network that reads nothing but genres: those a user liked and disliked, and those of an item."""

    weights: Weights
    flags: NDArray[np.bool_]  # items x genres, public

    @property
    def genres(self) -> int:
        """How many genres an item can have."""
        return int(self.flags.shape[1])

    @property
    def dimension(self) -> int:
        """How many features a user has."""
        return 2 * self.genres

    @cached_property
    def classes(self) -> Classes:
        """Classes of items that this scorer cannot tell apart: they get the same score."""
        return classes_of(self.flags)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays, by name, from which ``from_tensors`` builds the same scorer again."""
        return {**self.weights, "flags": self.flags.astype(np.uint8)}

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]]) -> Self:
        """The scorer from the arrays of a store. Raises InvalidModel if they do not fit."""
        weights = {name: tensor.astype(np.float32) for name, tensor in tensors.items() if name != "flags"}
        return cls(weights, tensors["flags"].astype(np.bool_))

    def _layers(self, name: str, inputs: NDArray[np.float32], layers: range) -> NDArray[np.float32]:
        """The output of these layers of a tower or the trunk, with ReLU between them."""
        for layer in layers:
            if layer > layers.start:
                np.maximum(inputs, 0.0, out=inputs)
            inputs = inputs @ self.weights[f"{name}.{layer}.weight"]
            inputs += self.weights[f"{name}.{layer}.bias"]
        return inputs


@dataclass(frozen=True, eq=False)
class RatingNetwork(GenreNetwork):
    """A network for ratings from 0 to 5: three towers, then a common trunk.

    The towers read liked genres, disliked genres and the item's genres. Each is g -> g -> 50 -> 50, the trunk 150 ->
    150 -> 75 -> 50 -> 1, with ReLU between and a sigmoid times 5 at the end: 49,616 weights for 19 genres.
    """

    kind: ClassVar[str] = "rating-network/1"

    def __post_init__(self) -> None:
        require_weights("rating network", self.weights, self.genres, shapes(self.genres))

    def _score_classes(self, users: NDArray[np.float32], classes: NDArray[np.int32]) -> NDArray[np.float32]:
        # The first trunk layer is linear in the joined towers: add the users' and the classes' parts instead of recomputing.
        user_part = self._user_part(users)
        class_part = self._class_part[classes]
        scores = np.empty((len(users), classes.size), dtype=np.float32)
        rows = max(1, _PAIRS // max(1, classes.size))
        for first in range(0, len(users), rows):
            part = user_part[first : first + rows, None, :] + class_part
            scores[first : first + rows] = self._trunk(part.reshape(-1, part.shape[2])).reshape(-1, classes.size)
        return scores

    def _tower(self, name: str, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        outputs = self._layers(name, inputs, range(1 + len(TOWER_WIDTHS)))
        return np.maximum(outputs, 0.0, out=outputs)

    def _user_part(self, users: NDArray[np.float32]) -> NDArray[np.float32]:
        width, entry = TOWER_WIDTHS[-1], self.weights["trunk.0.weight"]
        liked = self._tower("liked", users[:, : self.genres]) @ entry[:width]
        disliked = self._tower("disliked", users[:, self.genres :]) @ entry[width : 2 * width]
        joined: NDArray[np.float32] = liked + disliked + self.weights["trunk.0.bias"]
        return joined

    @cached_property
    def _class_part(self) -> NDArray[np.float32]:
        flags = self.flags[self.classes.first].astype(np.float32)
        part: NDArray[np.float32] = self._tower("item", flags) @ self.weights["trunk.0.weight"][2 * TOWER_WIDTHS[-1] :]
        return part

    def _trunk(self, joined: NDArray[np.float32]) -> NDArray[np.float32]:
        np.maximum(joined, 0.0, out=joined)
        return _stars(self._layers("trunk", joined, range(1, len(TRUNK_WIDTHS))))


def shapes(genres: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the weights of a `RatingNetwork`.

    They are '<tower>.<layer>.weight' (inputs x outputs) and '.bias', and the same for 'trunk'.
    """
    named: dict[str, tuple[int, ...]] = {}
    widths: tuple[int, ...] = (genres, genres, *TOWER_WIDTHS)
    for tower in TOWERS:
        for layer, (inputs, outputs) in enumerate(pairwise(widths)):
            named |= {f"{tower}.{layer}.weight": (inputs, outputs), f"{tower}.{layer}.bias": (outputs,)}
    widths = (len(TOWERS) * TOWER_WIDTHS[-1], *TRUNK_WIDTHS)
    for layer, (inputs, outputs) in enumerate(pairwise(widths)):
        named |= {f"trunk.{layer}.weight": (inputs, outputs), f"trunk.{layer}.bias": (outputs,)}
    return named


@dataclass(frozen=True, eq=False)
class TwoTower(GenreNetwork):
    """A network for ratings from 0 to 5: one vector for the user, one for the item, and their product is the rating.

    The user tower is 2g -> 64 -> 32, the item tower g -> 64 -> 32, with ReLU after the first layer, and the score is
    5 sigmoid(product + bias): 7,937 weights for 19 genres. The items' vectors are computed once; a request costs one
    small tower and one matrix product.
    """

    kind: ClassVar[str] = "two-tower/1"

    def __post_init__(self) -> None:
        require_weights("two-tower model", self.weights, self.genres, two_tower_shapes(self.genres))

    @cached_property
    def class_vectors(self) -> NDArray[np.float32]:
        """classes x 32: the vectors of the items."""
        return self._layers("item", self.flags[self.classes.first].astype(np.float32), range(len(WIDTHS)))

    def _score_classes(self, users: NDArray[np.float32], classes: NDArray[np.int32]) -> NDArray[np.float32]:
        vectors = self._layers("user", users, range(len(WIDTHS)))
        return _stars(vectors @ self.class_vectors[classes].T + self.weights["bias"])


def two_tower_shapes(genres: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the weights of a `TwoTower`.

    They are '<tower>.<layer>.weight' (inputs x outputs) and '.bias', and one 'bias'.
    """
    named: dict[str, tuple[int, ...]] = {"bias": (1,)}
    for tower, inputs in zip(TWO_TOWERS, (2 * genres, genres), strict=True):
        for layer, outputs in enumerate(WIDTHS):
            named |= {f"{tower}.{layer}.weight": (inputs, outputs), f"{tower}.{layer}.bias": (outputs,)}
            inputs = outputs
    return named


def _stars(outputs: NDArray[np.float32]) -> NDArray[np.float32]:
    """A network's outputs as ratings from 0 to 5."""
    with np.errstate(over="ignore"):  # an overflow of e^-x is a score of 0
        return (BEST_RATING / (1.0 + np.exp(-outputs))).astype(np.float32, copy=False)


def require_weights(model: str, weights: Weights, genres: int, wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Raises InvalidModel if names or shapes of the weights differ from ``wanted``, or a weight is not finite."""
    if {name: weight.shape for name, weight in weights.items()} != wanted:
        raise InvalidModel(
            f"a {model} for {genres} genres must have {len(wanted)} weights with its own names and shapes."
        )
    if not all(np.isfinite(weight).all() for weight in weights.values()):
        raise InvalidModel(f"the weights of the {model} must be finite.")


@dataclass(frozen=True, eq=False, repr=False)
class OnnxScorer(ClassScorer):
    """Scores from an ONNX model: (features: n x d, items: n x m) -> n, or one input n x (d + m) with the features first.

    The model is data until the first score: nothing in it is loaded or run before. ``vectors`` describe the items and
    are public. ``shift`` is added to every score, because utilities must be at least 0. The first axis of every input
    must be free, and all numbers float32. Two inputs named ``features`` and ``items`` may be in any order.
    """

    kind: ClassVar[str] = "onnx/1"
    model: bytes
    vectors: NDArray[np.float32]  # items x m
    dimension: int
    shift: float = 0.0

    def __post_init__(self) -> None:
        vectors = np.array(self.vectors, dtype=np.float32)
        if not isinstance(self.model, bytes) or not self.model:
            raise InvalidModel("model must be the bytes of an ONNX file, such as Path('model.onnx').read_bytes().")
        if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
            raise InvalidModel("vectors must be a table of finite numbers with one row for each item.")
        vectors.flags.writeable = False
        dimension = whole("dimension", self.dimension, least=1)
        keep(self, vectors=vectors, dimension=dimension, shift=finite("shift", self.shift))

    def __repr__(self) -> str:
        return f"OnnxScorer({len(self.model):,} bytes, {len(self.vectors):,} items)"

    @cached_property
    def classes(self) -> Classes:
        """Classes of items that this scorer cannot tell apart: they get the same score."""
        return classes_of(self.vectors)

    def _score_classes(self, users: NDArray[np.float32], classes: NDArray[np.int32]) -> NDArray[np.float32]:
        vectors = self.vectors[self.classes.first[classes]]
        scores = np.empty((len(users), classes.size), dtype=np.float32)
        for user in range(0, len(users), rows := max(1, _PAIRS // max(1, classes.size))):
            for item in range(0, classes.size, _PAIRS):
                part, chosen = users[user : user + rows], vectors[item : item + _PAIRS]
                scores[user : user + rows, item : item + _PAIRS] = self._run(part, chosen)
        if self.shift:
            scores += np.float32(self.shift)
        return checked_scores(scores, scores.shape)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays, by name, from which ``from_tensors`` builds the same scorer again."""
        return {
            "model": np.frombuffer(self.model, dtype=np.uint8),
            "vectors": self.vectors,
            "dimension": np.array([self.dimension]),
            "shift": np.array([self.shift]),
        }

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]]) -> "OnnxScorer":
        """The scorer from the arrays of a store. Raises InvalidModel if they do not fit."""
        model = tensors["model"].astype(np.uint8, casting="no").tobytes()
        return cls(model, tensors["vectors"], int(tensors["dimension"][0]), float(tensors["shift"][0]))

    def _run(self, users: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of users x classes: every pair is one row of the model's batch."""
        left, right = np.repeat(users, len(vectors), axis=0), np.tile(vectors, (len(users), 1))
        session, names = self._session
        joined = (
            {names[0]: np.concatenate([left, right], axis=1)}
            if len(names) == 1
            else dict(zip(names, (left, right), strict=True))
        )
        try:
            (scores,) = session.run(None, joined)
        except Exception as problem:  # onnxruntime's errors have no common class, and their text may show an input
            raise InvalidModel(f"the ONNX model failed on {len(left)} pairs ({type(problem).__name__}).") from None
        scores = np.asarray(scores)
        if scores.dtype != np.float32 or scores.shape not in ((len(left),), (len(left), 1)):
            raise InvalidModel(
                f"the ONNX model returned {scores.dtype} of shape {scores.shape} for {len(left)} pairs; expected one float32 each."
            )
        return scores.reshape(len(users), len(vectors))

    @cached_property
    def _session(self) -> tuple[Any, tuple[str, ...]]:
        """The loaded model and the names of its inputs: one for both, or one for the features and one for the items."""
        try:
            import onnxruntime
        except ImportError as missing:
            raise MissingExtra("an ONNX model needs onnxruntime: pip install 'tacit[onnx]'.") from missing
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # errors are raised, not printed
        # A model may refer to files with weights. This one must bring all it needs, so its folder of files cannot exist.
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
        try:
            session = onnxruntime.InferenceSession(self.model, options, providers=["CPUExecutionProvider"])
        except Exception as problem:
            reason = str(problem).strip().split("\n")[0][:200]
            raise InvalidModel(f"the ONNX model could not be loaded: {reason}") from None
        inputs = list(session.get_inputs())
        if {part.name for part in inputs} == {"features", "items"}:
            inputs.sort(key=lambda part: str(part.name))
        widths = (self.dimension, self.vectors.shape[1])
        if not (_fits(inputs, widths) or _fits(inputs, (sum(widths),))) or len(session.get_outputs()) != 1:
            raise InvalidModel(
                f"the ONNX model must have float32 inputs of shape n x {widths[0]} (features) and n x {widths[1]} (items), or one "
                f"of n x {sum(widths)}, with n left free, and one output of n scores. Export it again with these shapes."
            )
        return session, tuple(str(part.name) for part in inputs)


def _fits(inputs: list[Any], widths: tuple[int, ...]) -> bool:
    """Whether these are inputs of shape n x width. A free axis has a name or None instead of a number."""
    return len(inputs) == len(widths) and all(
        part.type == "tensor(float)" and len(part.shape) == 2 and not isinstance(part.shape[0], int)
        and (part.shape[1] == width or not isinstance(part.shape[1], int))
        for part, width in zip(inputs, widths, strict=True)
    )  # fmt: skip
