"""Any ONNX model as a scorer. It is data until the first score: nothing in it is loaded or run before."""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite, keep, whole
from tacit.errors import InvalidModel, MissingExtra
from tacit.models.classes import Classes, classes_of
from tacit.models.scorer import checked_scores

_PAIRS = 1 << 15  # (user, class) pairs that pass the model at a time: memory does not grow with the table


@dataclass(frozen=True, eq=False, repr=False)
class OnnxScorer:
    """Scores from an ONNX model: (features: n x d, items: n x m) -> n, or one input n x (d + m) with the features first.

    ``vectors`` describe the items, publicly. ``shift`` is added to every score: utilities must be at least 0. The first axis of
    every input must be free, all numbers float32. Two inputs called ``features`` and ``items`` may stand in any order.
    """

    kind: ClassVar[str] = "onnx/1"
    model: bytes
    vectors: NDArray[np.float32]  # items x m
    dimension: int
    shift: float = 0.0

    def __post_init__(self) -> None:
        vectors = np.array(self.vectors, dtype=np.float32)
        if not isinstance(self.model, bytes) or not self.model:
            raise InvalidModel("the model must be the bytes of an ONNX file, such as Path('model.onnx').read_bytes().")
        if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
            raise InvalidModel("vectors must be a table of finite numbers, one row for each item.")
        vectors.flags.writeable = False
        dimension = whole("dimension", self.dimension, least=1)
        keep(self, vectors=vectors, dimension=dimension, shift=finite("shift", self.shift))

    def __repr__(self) -> str:
        return f"OnnxScorer({len(self.model):,} bytes, {len(self.vectors):,} items)"

    @cached_property
    def classes(self) -> Classes:
        """Which items are the same to this scorer, and get the same score."""
        return classes_of(self.vectors)

    def score(self, features: NDArray[Any], items: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Scores of users x items: one row of features for each user, items by their codes. Larger is better."""
        wanted, place = np.unique(self.classes.of[items], return_inverse=True)  # each class is scored once
        users, vectors = np.asarray(features, dtype=np.float32), self.vectors[self.classes.first[wanted]]
        scores = np.empty((len(users), wanted.size), dtype=np.float32)
        for user in range(0, len(users), rows := max(1, _PAIRS // max(1, wanted.size))):
            for item in range(0, wanted.size, _PAIRS):
                part, chosen = users[user : user + rows], vectors[item : item + _PAIRS]
                scores[user : user + rows, item : item + _PAIRS] = self._run(part, chosen)
        if self.shift:
            scores += np.float32(self.shift)
        return checked_scores(scores, scores.shape)[:, place.reshape(-1)]

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays of which ``from_tensors`` makes the same again, by name."""
        return {
            "model": np.frombuffer(self.model, dtype=np.uint8),
            "vectors": self.vectors,
            "dimension": np.array([self.dimension]),
            "shift": np.array([self.shift]),
        }

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]]) -> "OnnxScorer":
        """The same again, from the arrays of a store; InvalidModel where they do not fit."""
        model = tensors["model"].astype(np.uint8, casting="no").tobytes()
        return cls(model, tensors["vectors"], int(tensors["dimension"][0]), float(tensors["shift"][0]))

    def _run(self, users: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """users x classes: every pair is one row of the model's batch."""
        left, right = np.repeat(users, len(vectors), axis=0), np.tile(vectors, (len(users), 1))
        session, names = self._session
        joined = (
            {names[0]: np.concatenate([left, right], axis=1)}
            if len(names) == 1
            else dict(zip(names, (left, right), strict=True))
        )
        try:
            (scores,) = session.run(None, joined)
        except Exception as problem:  # onnxruntime's errors share no class; their text may show an input
            raise InvalidModel(f"the ONNX model failed on {len(left)} pairs ({type(problem).__name__}).") from None
        scores = np.asarray(scores)
        if scores.dtype != np.float32 or scores.shape not in ((len(left),), (len(left), 1)):
            raise InvalidModel(
                f"the ONNX model gave {scores.dtype} of shape {scores.shape} for {len(left)} pairs, not one float32 each."
            )
        return scores.reshape(len(users), len(vectors))

    @cached_property
    def _session(self) -> tuple[Any, tuple[str, ...]]:
        """The loaded model, and the names of its inputs: of both together, or of the features and of the items."""
        try:
            import onnxruntime
        except ImportError as missing:
            raise MissingExtra("an ONNX model needs onnxruntime: pip install 'tacit[onnx]'.") from missing
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what goes wrong is raised, not printed
        # A model may ask for weights from files; this one has to bring all it needs: its files are looked for where none can be.
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
        try:
            session = onnxruntime.InferenceSession(self.model, options, providers=["CPUExecutionProvider"])
        except Exception as problem:
            raise InvalidModel(f"the ONNX model could not be loaded: {_first_line(problem)}") from None
        inputs = list(session.get_inputs())
        if {one.name for one in inputs} == {"features", "items"}:
            inputs.sort(key=lambda one: str(one.name))
        widths = (self.dimension, self.vectors.shape[1])
        if not (_fits(inputs, widths) or _fits(inputs, (sum(widths),))) or len(session.get_outputs()) != 1:
            raise InvalidModel(
                f"the ONNX model must have float32 inputs of shape n x {widths[0]} (features) and n x {widths[1]} (items), or one "
                f"of n x {sum(widths)}, with n left free, and one output of n scores. Export it so."
            )
        return session, tuple(str(one.name) for one in inputs)


def _fits(inputs: list[Any], widths: tuple[int, ...]) -> bool:
    """Whether these are inputs n x width; an axis that the model leaves free has a name or nothing instead of a number."""
    return len(inputs) == len(widths) and all(
        one.type == "tensor(float)" and len(one.shape) == 2 and not isinstance(one.shape[0], int)
        and (one.shape[1] == width or not isinstance(one.shape[1], int))
        for one, width in zip(inputs, widths, strict=True)
    )  # fmt: skip


def _first_line(problem: Exception) -> str:
    return str(problem).strip().split("\n")[0][:200]
