"""Any ONNX model as a scorer: the rating network exported by hand, and models that must be refused."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from tacit.errors import InvalidModel, InvalidParameter, MissingExtra
from tacit.models import scorers
from tacit.models.scorers import OnnxScorer, RatingNetwork, class_scores
from tests.unit.models import onnx_models, plain_network

RNG = np.random.default_rng(21)
FLAGS = RNG.random((80, 19)) < 0.12
FLAGS[60:] = FLAGS[:20]
NETWORK = RatingNetwork(plain_network.random_weights(RNG), FLAGS)
PROFILES = plain_network.random_profiles(RNG, 40)
ITEMS = np.arange(80)
VECTORS = np.array([[0.0, 0.0, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 0.5]], dtype=np.float32)
SUMS = OnnxScorer(onnx_models.sums(2, 3), VECTORS, 2)


def slate(scores: NDArray[np.float32], k: int = 5) -> list[int]:
    """Greedy for one result each, as plainly as can be."""
    best, chosen = np.zeros(len(scores)), []
    for _ in range(k):
        gains = [
            np.maximum(scores[:, item] - best, 0.0).sum() if item not in chosen else -1.0
            for item in range(scores.shape[1])
        ]
        chosen.append(int(np.argmax(gains)))
        best = np.maximum(best, scores[:, chosen[-1]])
    return chosen


@pytest.mark.parametrize("one_input", [False, True])
def test_the_exported_rating_network_scores_as_numpy_does(one_input: bool) -> None:
    exported = OnnxScorer(onnx_models.rating_network(NETWORK.weights, one_input=one_input), FLAGS, 38)
    by_numpy, by_onnx = NETWORK.score(PROFILES, ITEMS), exported.score(PROFILES, ITEMS)
    assert by_numpy.std() > 0.05
    np.testing.assert_allclose(by_onnx, by_numpy, atol=1e-5)
    assert exported.classes.of.tolist() == NETWORK.classes.of.tolist()
    for first in range(0, 40, 10):
        assert slate(by_onnx[first : first + 10]) == slate(by_numpy[first : first + 10])


def test_scores_are_what_the_model_says() -> None:
    scores = SUMS.score(np.array([[1.0, 2.0], [0.5, 0.5]]), np.array([1, 0, 2, 1]))
    assert scores.tolist() == [[2.0, 2.5, 2.5, 2.0], [0.0, 0.5, 0.5, 0.0]]
    assert scores.dtype == np.float32


def test_an_output_without_a_second_axis_will_do() -> None:
    flat = OnnxScorer(onnx_models.sums(2, 3, output=("n",)), VECTORS, 2)
    assert flat.score(np.array([[1.0, 2.0]]), np.arange(3)).tolist() == [[2.5, 2.0, 2.5]]


def test_inputs_are_told_apart_by_name_where_they_have_the_known_ones() -> None:
    square = VECTORS[:, :2] * 2.0
    nodes = [
        helper.make_node("Sub", ["features", "items"], ["difference"]),
        helper.make_node("ReduceSum", ["difference", "axis"], ["scores"], keepdims=1),
    ]
    inputs = {"items": ("n", 2), "features": ("n", 2)}  # items first
    turned = OnnxScorer(onnx_models.model(nodes, inputs, {"axis": np.array([1])}), square, 2)
    assert turned.score(np.array([[3.0, 4.0]]), np.arange(3)).tolist() == [[7.0, 5.0, 7.0]]


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs each run of a model was given."""
    pairs: list[int] = []
    run = OnnxScorer._run

    def watched(self: OnnxScorer, users: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        pairs.append(len(users) * len(vectors))
        return run(self, users, vectors)

    monkeypatch.setattr(OnnxScorer, "_run", watched)
    return pairs


def test_equal_items_are_scored_once_and_alike_to_the_last_bit(batches: list[int]) -> None:
    exported = OnnxScorer(onnx_models.rating_network(NETWORK.weights), FLAGS, 38)
    scores = exported.score(PROFILES, ITEMS)
    assert sum(batches) == 40 * len(exported.classes) < 40 * 80
    assert np.array_equal(scores[:, :20], scores[:, 60:])
    assert np.array_equal(scores, class_scores(exported, PROFILES)[:, exported.classes.of])


@pytest.mark.parametrize("most", [1, 7, 100])
def test_batches_are_bounded_and_change_nothing(most: int, batches: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    exported = OnnxScorer(onnx_models.rating_network(NETWORK.weights), FLAGS, 38)
    whole = exported.score(PROFILES[:3], ITEMS)
    batches.clear()
    monkeypatch.setattr(scorers, "_PAIRS", most)
    np.testing.assert_allclose(exported.score(PROFILES[:3], ITEMS), whole, atol=1e-5)
    assert max(batches) <= most


def test_a_shift_lifts_scores_above_zero() -> None:
    low = np.array([[0.0, 0.0]])
    with pytest.raises(InvalidModel, match="shift"):
        SUMS.score(low, np.arange(3))
    lifted = OnnxScorer(SUMS.model, VECTORS, 2, shift=1.0)
    assert lifted.score(low, np.arange(3)).tolist() == [[0.5, 0.0, 0.5]]


def test_scores_that_are_not_finite_are_refused() -> None:
    nodes = [*onnx_models.layer("one", "pair", "out", relu=False), helper.make_node("Log", ["out"], ["scores"])]
    weights = {"one.weight": np.zeros((5, 1), dtype=np.float32), "one.bias": np.zeros(1, dtype=np.float32)}
    infinite = OnnxScorer(onnx_models.model(nodes, {"pair": ("n", 5)}, weights), VECTORS, 2)
    with pytest.raises(InvalidModel, match="not finite"):
        infinite.score(np.zeros((1, 2)), np.arange(3))


def test_nothing_is_loaded_before_the_first_score() -> None:
    rubbish = OnnxScorer(b"no model at all", VECTORS, 2)
    assert len(rubbish.classes) == 2
    assert OnnxScorer.from_tensors(rubbish.tensors()).model == b"no model at all"
    with pytest.raises(InvalidModel, match="could not be loaded"):
        rubbish.score(np.zeros((1, 2)), np.arange(3))


def identity(shape: tuple[int | str, ...], kind: int = TensorProto.FLOAT) -> bytes:
    nodes = [
        helper.make_node("Cast", ["pair"], ["cast"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["cast", "axis"], ["scores"], keepdims=1),
    ]
    return onnx_models.model(nodes, {"pair": shape}, {"axis": np.array([1])}, type_of_input=kind)


BAD = {
    "other widths": onnx_models.sums(3, 3),
    "a fixed first axis": identity((1, 5)),
    "float64": identity(("n", 5), TensorProto.DOUBLE),
    "one axis": onnx_models.model(
        [helper.make_node("Identity", ["pair"], ["scores"])], {"pair": ("n",)}, output=("n",)
    ),
    "three inputs": onnx_models.model(
        [helper.make_node("Sum", ["a", "b", "c"], ["scores"])],
        {"a": ("n", 2), "b": ("n", 1), "c": ("n", 1)},
        output=("n", 2),
    ),
    "many scores for one pair": onnx_models.model(
        [helper.make_node("Identity", ["pair"], ["scores"])], {"pair": ("n", 5)}, output=("n", 5)
    ),
    "a failing step": onnx_models.model(
        [
            helper.make_node("Cast", ["pair"], ["places"], to=TensorProto.INT64),
            helper.make_node("Gather", ["table", "places"], ["found"], axis=0),
            helper.make_node("ReduceSum", ["found", "axis"], ["scores"], keepdims=1),
        ],
        {"pair": ("n", 5)},
        {"table": np.zeros(2, dtype=np.float32), "axis": np.array([1])},
    ),
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_a_model_that_does_not_fit_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidModel) as refused:
        OnnxScorer(content, VECTORS, 2).score(np.full((1, 2), 73519.0), np.arange(3))
    assert "73519" not in str(refused.value)


@pytest.mark.parametrize("name", ["other widths", "a fixed first axis", "float64", "one axis", "three inputs"])
def test_wrong_inputs_are_seen_before_anything_is_run(name: str) -> None:
    with pytest.raises(InvalidModel, match="n left free"):
        OnnxScorer(BAD[name], VECTORS, 2).score(np.zeros((1, 2)), np.arange(3))


def test_a_model_may_not_read_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.ones((5, 1), dtype=np.float32).tofile("weights.bin")
    outside = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[5, 1], data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="weights.bin")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["pair", "w"], ["scores"])],
        "reader",
        [helper.make_tensor_value_info("pair", TensorProto.FLOAT, ("n", 5))],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ("n", 1))],
        [outside],
    )
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
    # by our own guard: without it onnxruntime happens to refuse too, for want of a model's path, and need not do so for ever
    with pytest.raises(InvalidModel, match=r"could not be loaded: .*External data path"):
        OnnxScorer(content, VECTORS, 2).score(np.ones((1, 2)), np.arange(3))


def test_bad_parts_are_refused() -> None:
    for content, vectors in ((b"", VECTORS), ("text", VECTORS), (b"x", VECTORS[0]), (b"x", VECTORS * np.nan)):
        with pytest.raises(InvalidModel):
            OnnxScorer(content, vectors, 2)  # type: ignore[arg-type]
    for dimension, shift in ((0, 0.0), (2, np.inf)):
        with pytest.raises(InvalidParameter):
            OnnxScorer(b"x", VECTORS, dimension, shift)


def test_without_onnxruntime_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"tacit\[onnx\]"):
        OnnxScorer(SUMS.model, VECTORS, 2).score(np.ones((1, 2)), np.arange(3))


def test_its_repr_is_short() -> None:
    assert repr(SUMS) == f"OnnxScorer({len(SUMS.model):,} bytes, 3 items)"
