#!/usr/bin/env python3
"""Loads every golden file with MXNet itself and compares what it makes of them with ours. Not run in CI.

    pip install "numpy<1.24" mxnet==1.9.1
    tests/golden/json/check_mxnet.py [RECORD]

Prints one line per file. With RECORD = "record", mxnet-1.9-symbol.json and the *.upgraded.json files are written
anew: what MXNet 1.9.1 writes after loading each file. Its oneDNN build gives Pooling a second, hidden output, which
shows in node_row_ptr only; that list is rebuilt here with one.
"""
import json
import os
import sys

import mxnet as mx

HERE = os.path.dirname(os.path.abspath(__file__))
OUTPUTS = {"BatchNorm": 3, "Dropout": 2}


def net_1_9():
    """The net of the older files, as a user of 1.9 writes it."""
    x = mx.sym.Variable("data", shape=(0, 1, 28, 28))
    w = mx.sym.Variable("conv1_weight", lr_mult=0.5, wd_mult=0.0)
    x = mx.sym.Convolution(x, w, kernel=(5, 5), num_filter=20, no_bias=True, name="conv1")
    x = mx.sym.BatchNorm(x, name="bn1", eps=1e-5)
    x = mx.sym.Activation(x, act_type="relu", name="relu1")
    x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool1")
    x = mx.sym.Dropout(mx.sym.Flatten(x, name="flatten0"), p=0.25, name="drop1")
    x = mx.sym.FullyConnected(x, num_hidden=10, name="fc1")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def rows(text):
    """node_row_ptr as a build without oneDNN writes it."""
    data = json.loads(text)
    row = [0]
    for node in data["nodes"]:
        row.append(row[-1] + OUTPUTS.get(node["op"], 1))
    if len(row) <= 10:
        return text
    head, rest = text.split('"node_row_ptr": [', 1)
    tail = rest.split("]", 1)[1]
    return head + '"node_row_ptr": [\n' + ", \n".join("    %d" % r for r in row) + "\n  ]" + tail


def main():
    record = sys.argv[1:] == ["record"]
    if record:
        with open(os.path.join(HERE, "mxnet-1.9-symbol.json"), "w") as f:
            f.write(rows(net_1_9().tojson()))
    for name in sorted(os.listdir(HERE)):
        if not name.endswith("-symbol.json"):
            continue
        s = mx.sym.load(os.path.join(HERE, name))
        text = rows(s.tojson())
        path = os.path.join(HERE, name.replace("-symbol.json", ".upgraded.json"))
        if record:
            with open(path, "w") as f:
                f.write(text)
        with open(path) as f:
            same = f.read() == text
        shapes = s.infer_shape(data=(4, 1, 28, 28))[0]
        print(name, "same" if same else "DIFFERS", s.list_arguments(), s.list_auxiliary_states(), shapes)


main()
