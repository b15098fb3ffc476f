"""ONNX models built by hand, operator by operator."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tacit.models.scorers import TOWERS, Weights


def model(
    nodes: Sequence[NodeProto],
    inputs: dict[str, Sequence[int | str]],
    weights: dict[str, NDArray[np.float32]] | None = None,
    *,
    output: Sequence[int | str] = ("n", 1),
    type_of_input: int = TensorProto.FLOAT,
) -> bytes:
    """A model whose last node writes ``scores``."""
    graph = helper.make_graph(
        list(nodes),
        "scores",
        [helper.make_tensor_value_info(name, type_of_input, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, output)],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    made: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return made.SerializeToString()


def layer(name: str, source: str, out: str, *, relu: bool = True) -> list[NodeProto]:
    last = [helper.make_node("Relu", [f"{name}.sum"], [out])] if relu else []
    return [
        helper.make_node("MatMul", [source, f"{name}.weight"], [f"{name}.product"]),
        helper.make_node("Add", [f"{name}.product", f"{name}.bias"], [f"{name}.sum" if relu else out]),
        *last,
    ]


def rating_network(
    weights: Weights, genres: int = 19, *, names: tuple[str, str] = ("features", "items"), one_input: bool = False
) -> bytes:
    """The rating network as MatMul, Add, Relu, Sigmoid and a factor of 5."""
    five = {"five": np.array([5.0], dtype=np.float32)}
    if one_input:
        inputs: dict[str, Sequence[int | str]] = {"pair": ("n", 3 * genres)}
        nodes = [helper.make_node("Split", ["pair"], list(TOWERS), axis=1, num_outputs=3)]
    else:
        inputs = {names[0]: ("n", 2 * genres), names[1]: ("n", genres)}
        nodes = [
            helper.make_node("Split", [names[0]], ["liked", "disliked"], axis=1, num_outputs=2),
            helper.make_node("Identity", [names[1]], ["item"]),
        ]
    for tower in TOWERS:
        for number in range(3):
            source = tower if number == 0 else f"{tower}.{number - 1}.out"
            nodes += layer(f"{tower}.{number}", source, f"{tower}.{number}.out")
    nodes.append(helper.make_node("Concat", [f"{tower}.2.out" for tower in TOWERS], ["joined"], axis=1))
    for number in range(4):
        source = "joined" if number == 0 else f"trunk.{number - 1}.out"
        nodes += layer(f"trunk.{number}", source, f"trunk.{number}.out", relu=number < 3)
    nodes += [
        helper.make_node("Sigmoid", ["trunk.3.out"], ["share"]),
        helper.make_node("Mul", ["share", "five"], ["scores"]),
    ]
    return model(nodes, inputs, weights | five)


def sums(
    features: int, items: int, *, names: tuple[str, str] = ("features", "items"), output: Sequence[int | str] = ("n", 1)
) -> bytes:
    """The sum of the features minus the sum of the item's numbers: easy to check, and it can fall below 0."""
    keep = int(len(output) == 2)
    nodes = [
        helper.make_node("ReduceSum", [names[0], "axis"], ["left"], keepdims=keep),
        helper.make_node("ReduceSum", [names[1], "axis"], ["right"], keepdims=keep),
        helper.make_node("Sub", ["left", "right"], ["scores"]),
    ]
    return model(nodes, {names[0]: ("n", features), names[1]: ("n", items)}, {"axis": np.array([1])}, output=output)
