#!/usr/bin/env python3
"""usage: peers_onnx.py NET-symbol.json NET-shapes.json N,C,H,W MODEL.onnx INPUT.f32

Writes a net of MXNet's model zoo as ONNX, with the weights of tests/oracle/rule.py, and its input as raw float32. Runs in the
environment of `tests/oracle/setup peers`. MXNet's own exporter needs onnx.mapping, which onnx has no more.
"""
import ast
import json
import os
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "tests", "oracle"))
from rule import numbers  # noqa: E402

OPSET = 17


class Graph:
    """A symbol on its way to ONNX; every tensor is called after the node of the symbol that makes it."""

    def __init__(self, symbol, shapes):
        self.nodes = symbol["nodes"]
        self.heads = symbol["heads"]
        self.shapes = shapes  # of parameters, by name
        self.made, self.initial = [], {}

    def value(self, name, array):
        self.initial[name] = numpy_helper.from_array(array, name)
        return name

    def add(self, op, node, inputs, **attrs):
        self.made.append(helper.make_node(op, inputs, [node["name"]], name=node["name"], **attrs))


def pair(attrs, name, default):
    return list(ast.literal_eval(attrs[name])) if attrs.get(name, "()") not in ("()", "None") else [default, default]


def flag(attrs, name):
    return attrs.get(name, "False") in ("True", "1", "true")


def convolution(graph, node, inputs, attrs):
    graph.add("Conv", node, inputs, kernel_shape=pair(attrs, "kernel", 1), strides=pair(attrs, "stride", 1),
              pads=pair(attrs, "pad", 0) * 2, dilations=pair(attrs, "dilate", 1), group=int(attrs.get("num_group", 1)))


def batch_norm(graph, node, inputs, attrs):
    if flag(attrs, "fix_gamma"):
        inputs[1] = graph.value(inputs[1] + "_ones", np.ones(graph.shapes[inputs[1]], np.float32))
    graph.add("BatchNormalization", node, inputs, epsilon=float(attrs.get("eps", 1e-3)))


def activation(graph, node, inputs, attrs):
    graph.add({"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}[attrs["act_type"]], node, inputs)


def pooling(graph, node, inputs, attrs):
    kind = {"max": "MaxPool", "avg": "AveragePool"}[attrs.get("pool_type", "max")]
    if flag(attrs, "global_pool"):
        graph.add("Global" + kind, node, inputs)
        return
    more = {"count_include_pad": int(attrs.get("count_include_pad", "True") != "False")} if kind == "AveragePool" else {}
    graph.add(kind, node, inputs, kernel_shape=pair(attrs, "kernel", 1), strides=pair(attrs, "stride", 1),
              pads=pair(attrs, "pad", 0) * 2, ceil_mode=int(attrs.get("pooling_convention") == "full"), **more)


def dense(graph, node, inputs, attrs):
    flat = node["name"] + "_flat"
    graph.made.append(helper.make_node("Flatten", inputs[:1], [flat], name=flat))
    graph.add("Gemm", node, [flat] + inputs[1:], transB=1)


def clip(graph, node, inputs, attrs):
    limits = [graph.value("%s_%s" % (node["name"], end), np.float32(attrs["a_" + end])) for end in ("min", "max")]
    graph.add("Clip", node, inputs + limits)


CONVERTERS = {
    "Convolution": convolution,
    "BatchNorm": batch_norm,
    "Activation": activation,
    "Pooling": pooling,
    "FullyConnected": dense,
    "clip": clip,
    "Flatten": lambda graph, node, inputs, attrs: graph.add("Flatten", node, inputs),
    "elemwise_add": lambda graph, node, inputs, attrs: graph.add("Add", node, inputs),
    "Dropout": lambda graph, node, inputs, attrs: graph.add("Identity", node, inputs),
    "Concat": lambda graph, node, inputs, attrs: graph.add("Concat", node, inputs, axis=int(attrs.get("dim", 1))),
}


def convert(symbol, shapes, shape):
    graph = Graph(symbol, shapes)
    for node in graph.nodes:
        attrs = node.get("attrs", {})
        if node["op"] == "null":
            if node["name"] != "data":
                graph.value(node["name"], numbers(node["name"], tuple(shapes[node["name"]])))
            continue
        if node["op"] not in CONVERTERS:
            sys.exit("peers_onnx.py: no converter for %s" % node["op"])
        CONVERTERS[node["op"]](graph, node, [graph.nodes[entry[0]]["name"] for entry in node["inputs"]], attrs)
    head = graph.nodes[graph.heads[0][0]]["name"]
    tensor = onnx.TensorProto.FLOAT
    made = helper.make_graph(graph.made, "net", [helper.make_tensor_value_info("data", tensor, shape)],
                             [helper.make_tensor_value_info(head, tensor, None)], list(graph.initial.values()))
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = 8
    return model


def json_read(path):
    with open(path, encoding="utf-8") as source:
        return json.load(source)


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__.strip())
    shape = [int(size) for size in sys.argv[3].split(",")]
    onnx.save(convert(json_read(sys.argv[1]), json_read(sys.argv[2]), shape), sys.argv[4])
    numbers("data", shape).tofile(sys.argv[5])


main()
