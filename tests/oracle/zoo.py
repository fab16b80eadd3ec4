#!/usr/bin/env python3
"""usage: zoo.py [--small | --export] [--seed N] OUT [NET...]

Runs nets of MXNet's model zoo in MXNet, in the environment that `setup mxnet` makes, and writes into the folder OUT what
Tenon's results are compared with. Weights and inputs follow rule.py. For each net:

    NET.json.gz        the graph, as MXNet exports it
    NET.params         shape (of the input), seed, output: inference
    NET-train.json.gz  the same graph with Dropout's p = 0, its variables without a data type
    NET-train.params   shape, seed, output, and grad:NAME for each parameter: training mode, the gradient of
                       sum(output * head), batch 2

--small: inference alone, at the sizes of the recordings in the source tree; and rule.txt, CRC-32 of what the rule gives.
--export: runs nothing; NET-symbol.json and NET-0000.params, as MXNet saves models, and NET-shapes.json, the shapes of parameters.
"""
import argparse
import gzip
import json
import os
import sys
import zlib

os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"  # each operator by itself: nothing is fused or folded

import mxnet as mx  # noqa: E402
from mxnet.gluon.model_zoo import vision  # noqa: E402

from rule import numbers  # noqa: E402

# Size of the input image: in inference (batch 1), for gradients (batch 2), of the small recording (batch 2; 0: none). Pooling
# windows as large as the last map keep three nets from smaller images.
NETS = {
    "alexnet": (224, 64, 0),
    "vgg16": (224, 64, 0),
    "resnet18_v1": (224, 64, 64),
    "resnet50_v1": (224, 64, 0),
    "resnet50_v2": (224, 64, 0),
    "squeezenet1.1": (224, 224, 224),
    "densenet121": (224, 224, 0),
    "inceptionv3": (299, 299, 0),
    "mobilenet1.0": (224, 64, 0),
    "mobilenetv2_1.0": (224, 64, 64),
}


# A parameter or input of each role, for tests/zoo/test_rule.c.
RULE_CASES = (
    ("net_conv0_weight", (64, 3, 7, 7)),
    ("net_stage1_conv2_weight", (256, 64, 1, 1)),
    ("net_stage1_conv3_weight", (256, 64, 3, 3)),
    ("net_fire0_weight", (64, 16, 1, 1)),
    ("net_dense0_weight", (1000, 512)),
    ("net_batchnorm0_gamma", (64,)),
    ("net_batchnorm0_beta", (64,)),
    ("net_batchnorm0_running_mean", (64,)),
    ("net_batchnorm0_running_var", (64,)),
    ("net_dense0_bias", (1000,)),
    ("data", (2, 3, 64, 64)),
    ("head", (2, 1000)),
)


def graph_write(path, text):
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as out:
        out.write(text.encode("utf-8"))


def bound(symbol, shape, seed, gradients):
    """An executor with all values filled in."""
    arguments, _, states = symbol.infer_shape(data=shape)

    def filled(names, shapes):
        return {name: mx.nd.array(numbers(name, s, seed)) for name, s in zip(names, shapes)}

    args = filled(symbol.list_arguments(), arguments)
    aux = filled(symbol.list_auxiliary_states(), states)
    grads = {name: mx.nd.zeros(a.shape) for name, a in args.items() if name != "data"} if gradients else None
    return symbol.bind(mx.cpu(), args, args_grad=grads, aux_states=aux, grad_req="write" if gradients else "null")


def record_of(shape, seed, output):
    return {"shape": mx.nd.array(shape, dtype="int64"), "seed": mx.nd.array([seed], dtype="int64"), "output": output}


def report(name, shape, output):
    values = output.asnumpy().astype("float64")
    spread = values.std()
    print("%-24s %-18s deviation %8.4f, largest %9.4f" % (name, shape, spread, abs(values).max()), flush=True)
    if not 0.1 <= spread <= 100:
        sys.exit("%s: the outputs' standard deviation is %g, not within 0.1 and 100: the rule does not fit" % (name, spread))


def inference(name, symbol, shape, seed, out):
    executor = bound(symbol, shape, seed, False)
    output = executor.forward(is_train=False)[0]
    report(name, shape, output)
    graph_write(os.path.join(out, name + ".json.gz"), symbol.tojson())
    mx.nd.save(os.path.join(out, name + ".params"), record_of(shape, seed, output))


def training_graph(symbol):
    graph = json.loads(symbol.tojson())
    for node in graph["nodes"]:
        attrs = node.get("attrs", {})
        attrs.pop("__dtype__", None)
        if node["op"] == "Dropout":
            attrs["p"] = "0"
    return json.dumps(graph)


def training(name, symbol, shape, seed, out):
    text = training_graph(symbol)
    executor = bound(mx.sym.load_json(text), shape, seed, True)
    output = executor.forward(is_train=True)[0]
    executor.backward([mx.nd.array(numbers("head", output.shape, seed))])
    record = record_of(shape, seed, output)
    record.update({"grad:" + key: value for key, value in executor.grad_dict.items() if value is not None})
    graph_write(os.path.join(out, name + "-train.json.gz"), text)
    mx.nd.save(os.path.join(out, name + "-train.params"), record)


def rule_write(path):
    with open(path, "w") as out:
        for seed in (0, 1, 0xFFFFFFFF):
            for name, shape in RULE_CASES:
                crc = zlib.crc32(numbers(name, shape, seed).astype("<f4").tobytes())
                out.write("%s %d %d %s %08x\n" % (name, seed, len(shape), " ".join(map(str, shape)), crc))


def export(name, symbol, shape, seed, out):
    executor = bound(symbol, shape, seed, False)
    args = {key: value for key, value in executor.arg_dict.items() if key != "data"}
    prefix = os.path.join(out, name)
    mx.model.save_checkpoint(prefix, 0, symbol, args, executor.aux_dict)
    with open(prefix + "-shapes.json", "w") as file:
        json.dump({key: value.shape for key, value in dict(args, **executor.aux_dict).items()}, file)


def main():
    options = argparse.ArgumentParser(usage=__doc__.split("\n")[0][7:], description=__doc__)
    options.add_argument("--small", action="store_true")
    options.add_argument("--export", action="store_true")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("out")
    options.add_argument("nets", nargs="*")
    given = options.parse_args()
    os.makedirs(given.out, exist_ok=True)
    if given.small:
        rule_write(os.path.join(given.out, "rule.txt"))
    for name in given.nets or NETS:
        if name not in NETS:
            sys.exit("zoo.py: no net %s; there are %s" % (name, " ".join(NETS)))
        real, half, small = NETS[name]
        if given.small and not small:
            continue
        symbol = vision.get_model(name, prefix="net_")(mx.sym.var("data"))
        if given.export:
            export(name, symbol, (1, 3, real, real), given.seed, given.out)
        elif given.small:
            inference(name, symbol, (2, 3, small, small), given.seed, given.out)
        else:
            inference(name, symbol, (1, 3, real, real), given.seed, given.out)
            training(name, symbol, (2, 3, half, half), given.seed, given.out)


main()
