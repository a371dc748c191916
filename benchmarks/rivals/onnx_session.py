# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime on the perceptron, whose gradient is a graph of ONNX operators written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from case import Case
from loops import PythonLoop
from rivals import NotApplicableError, Rival

_NAMES = ("w1", "b1", "w2", "b2", "w3", "b3", "x", "target")
_RESULTS = ("loss", "dw1", "db1", "dw2", "db2", "dw3", "db3")
# operator, inputs, output
_FORWARD = (
    ("MatMul", "x w1", "m1"),
    ("Add", "m1 b1", "a1"),
    ("Tanh", "a1", "h1"),
    ("MatMul", "h1 w2", "m2"),
    ("Add", "m2 b2", "a2"),
    ("Tanh", "a2", "h2"),
    ("MatMul", "h2 w3", "m3"),
    ("Add", "m3 b3", "prediction"),
    ("Sub", "prediction target", "error"),
    ("Mul", "error error", "square"),
    ("ReduceMean", "square", "loss"),
    ("Mul", "error scale", "d3"),
)


def _layer_gradient(layer: int, below: str) -> list[tuple[str, str, str]]:
    """From d<layer> to the gradients of that layer's weights and biases."""
    return [
        ("Transpose", below, f"t{layer}"),
        ("MatMul", f"t{layer} d{layer}", f"dw{layer}"),
        ("ReduceSum", f"d{layer} rows", f"db{layer}"),
    ]


def _propagation(layer: int) -> list[tuple[str, str, str]]:
    """From d<layer> to that of the layer below."""
    below = layer - 1
    return [
        ("Transpose", f"w{layer}", f"wt{layer}"),
        ("MatMul", f"d{layer} wt{layer}", f"p{below}"),
        ("Mul", f"h{below} h{below}", f"s{below}"),
        ("Sub", f"one s{below}", f"o{below}"),
        ("Mul", f"p{below} o{below}", f"d{below}"),
    ]


def _model(case: Case) -> bytes:
    from onnx import TensorProto, helper, numpy_helper

    operations = [*_FORWARD, *_layer_gradient(3, "h2"), *_propagation(3)]
    operations += [*_layer_gradient(2, "h1"), *_propagation(2), *_layer_gradient(1, "x")]
    nodes = [
        helper.make_node(
            operator, inputs.split(), [output], **({"keepdims": 0} if "Reduce" in operator else {})
        )
        for operator, inputs, output in operations
    ]
    size = case.inputs[_NAMES.index("target")].size
    constants = {
        "scale": np.float32(2 / size),
        "one": np.float32(1),
        "rows": np.array([0], np.int64),
    }

    def values(names: tuple[str, ...], shapes: list[tuple[int, ...]]) -> list[Any]:
        return [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in zip(names, shapes, strict=True)
        ]

    graph = helper.make_graph(
        nodes,
        "perceptron",
        values(_NAMES, [array.shape for array in case.inputs]),
        values(_RESULTS, [shape.shape for shape in case.output_shapes]),
        [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()],
    )
    # An IR version that every ONNX Runtime of the last years reads.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    serialized: bytes = model.SerializeToString()
    return serialized


def _session(case: Case) -> PythonLoop:
    if case.task.name != "mlp":
        raise NotApplicableError("only the perceptron is written as an ONNX graph")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # faster than its default on a graph this small
    session = onnxruntime.InferenceSession(
        _model(case), options, providers=["CPUExecutionProvider"]
    )
    feeds = dict(zip(_NAMES, case.inputs, strict=True))
    names, run = list(_RESULTS), session.run
    return PythonLoop(lambda: run(names, feeds))


RIVALS = (Rival("onnxruntime", "ONNX Runtime, one thread", "Python", _session),)
