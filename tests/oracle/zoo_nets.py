#!/usr/bin/env python3
"""usage: zoo_nets.py [--build FOLDER] [--seed N] [--graphs] [NET...] | --record

Holds the nets of nn's zoo against MXNet's gluon.model_zoo.vision, all 34 of them or NET..., in the environment that
`setup mxnet` makes: "$(tests/oracle/setup)/bin/python" tests/oracle/zoo_nets.py. For each net, values by rule.py, batch 2:

    graph      our exported graph is MXNet's: nodes in their order, operators, attributes as MXNet writes them, inputs, heads,
               names of parameters and of their layers behind the net's own prefix. The names of other nodes are made up on
               both sides; attributes of variables (__shape__, __init__ ...) are what Gluon's initializers read, and ours
               has none, but __creation_index__ on nodes that were not made in the order of the file
    output     largest |Tenon - MXNet| / largest |MXNet| in inference, float32, at most 1e-5; with Gluon's save_parameters in
               our net, with Gluon's export in our net, and by Gluon's exported graph
    f64        training mode, Dropout's p = 0, gradient of sum(output * head) in float64: for each parameter
               max|Tenon - MXNet| / max(max|MXNet|, 1e-6 * the net's largest), the largest of these, at most 1e-7
    f32        the same step in float32: |Tenon - g64| / |MXNet's float32 - g64| over all parameters, g64 MXNet's in float64, at
               most 1.5. Where rounding turns a ReLU or a maximum the other way, on either side, this is chance: above 1.5
               it is shown how many inputs of ReLUs lie nearer to 0 in float64 than MXNet's float32 is to that (ties), and
               the same ratio for both graphs with softrelu and averages in place of ReLUs and maxima, then at most 1.5
    files      what tn_net_save and tn_net_export wrote, in MXNet: equal arrays, output within 1e-5

  --build FOLDER  with the target zoo_nets_run (default: build-release)
  --seed N        of values and inputs (default 1)
  --graphs        compare the graphs alone
  --record        write recorded/zoo_graphs.txt, digests of MXNet's graphs, for the test zoo.graphs
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib

os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"  # each operator by itself: nothing is fused or folded
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from mxnet.gluon.model_zoo import vision  # noqa: E402

from rule import numbers  # noqa: E402
from smooth import smoothed  # noqa: E402

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RECORDED = os.path.join(HERE, "recorded", "zoo_graphs.txt")
NETS = ("alexnet densenet121 densenet161 densenet169 densenet201 inceptionv3 mobilenet0.25 mobilenet0.5 mobilenet0.75 "
        "mobilenet1.0 mobilenetv2_0.25 mobilenetv2_0.5 mobilenetv2_0.75 mobilenetv2_1.0 resnet18_v1 resnet34_v1 resnet50_v1 "
        "resnet101_v1 resnet152_v1 resnet18_v2 resnet34_v2 resnet50_v2 resnet101_v2 resnet152_v2 squeezenet1.0 squeezenet1.1 "
        "vgg11 vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn").split()
# Sides of the input, the least that the last pooling window takes; other nets: 64.
SIDES = {"densenet": 221, "inception": 299, "squeezenet1.0": 213, "squeezenet1.1": 209}
# Arguments of the nets' constructors, recorded too.
VARIANTS = (("alexnet", {"classes": 7}), ("resnet18_v1", {"thumbnail": 1, "classes": 10}), ("resnet50_v2", {"thumbnail": 1}),
            ("vgg13", {"batch_norm": 1}), ("densenet121", {"bn_size": 2, "dropout": 0.25}), ("mobilenetv2_0.5", {"classes": 3}))
DROPOUT = ("alexnet", "inception", "squeezenet", "vgg")
OUTPUT_MAX, F64_MAX, F32_MAX = 1e-5, 1e-7, 1.5


def family_value(table, net, otherwise):
    return next((value for name, value in table.items() if net.startswith(name)), otherwise)


def prefix_of(net):
    """What our net is called."""
    return net.replace(".", "_") + "_"


def model(net, prefix=None, **arguments):
    with mx.name.NameManager():
        return vision.get_model(net, prefix=prefix, **arguments)


# ---- graphs ----


def lines_of(graph, prefix):
    """A line for each node, and one for the heads; tests/zoo/test_graphs.c makes the same."""
    nodes, lines = graph["nodes"], []
    for node in nodes:
        inputs = [item[:2] for item in node["inputs"]]
        variable = node["op"] == "null"
        layer = any(nodes[at]["op"] == "null" and nodes[at]["name"] != "data" for at, _ in inputs)
        name = node["name"] if variable or layer else ""
        name = name[len(prefix):] if name.startswith(prefix) else name
        attrs = {} if variable else {key: value for key, value in node.get("attrs", {}).items() if key[:2] != "__"}
        lines.append("%s %s %s %s" % (node["op"], name, ";".join("%s=%s" % item for item in sorted(attrs.items())),
                                    ",".join("%d.%d" % tuple(i) for i in inputs)))
    return lines + ["heads " + ",".join("%d.%d" % tuple(head[:2]) for head in graph["heads"])]


def mxnet_lines(net, **arguments):
    return lines_of(json.loads(model(net, "net_", **arguments)(mx.sym.var("data")).tojson()), "net_")


def digest(lines):
    return "%d %08x" % (len(lines), zlib.crc32("".join(line + "\n" for line in lines).encode()))


def record():
    """NET, lines of the graph and their CRC-32, parameters and the CRC-32 of their sorted names in save_parameters' files,
    settings of [model]."""
    with open(RECORDED, "w") as out:
        for net, arguments in [(net, {}) for net in NETS] + list(VARIANTS):
            names = sorted(model(net, **arguments)._collect_params_with_prefix())
            out.write("%s %s %s" % (net, digest(mxnet_lines(net, **arguments)), digest(names)))
            out.write("".join(" model.%s=%s" % item for item in arguments.items()) + "\n")


def run(given, words):
    env = dict(os.environ)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        env.pop(name, None)
    done = subprocess.run([os.path.join(given.build, "tests/oracle/zoo_nets_run")] + words, env=env)
    if done.returncode:
        raise RuntimeError("zoo_nets_run %s ended with %d" % (" ".join(words[:2]), done.returncode))


def plugins(given):
    return "plugins.path=" + os.path.join(os.path.realpath(given.build), "lib/tenon/plugins-1")


def graph_equal(net, path):
    """Says where the graphs differ first."""
    with open(path) as file:
        ours = lines_of(json.load(file), prefix_of(net))
    theirs = mxnet_lines(net)
    for number, (a, b) in enumerate(zip(ours + ["(end)"], theirs + ["(end)"])):
        if a != b:
            print("%s: node %d\n   Tenon %s\n   MXNet %s" % (net, number, a, b), file=sys.stderr)
            return False
    return True


# ---- MXNet's numbers ----


def bound(symbol, shape, seed, dtype, gradients):
    """An executor with the rule's values; the shapes of its outputs."""
    graph = json.loads(symbol.tojson())
    for node in graph["nodes"]:
        node.get("attrs", {}).pop("__dtype__", None)
        if node["op"] == "Dropout":
            node["attrs"]["p"] = "0"
    symbol = mx.sym.load_json(json.dumps(graph))
    arguments, outputs, states = symbol.infer_shape(data=shape)

    def filled(names, shapes):
        return {name: mx.nd.array(numbers(name, s, seed), dtype=dtype) for name, s in zip(names, shapes)}

    args = filled(symbol.list_arguments(), arguments)
    grads = {name: mx.nd.zeros(a.shape, dtype=dtype) for name, a in args.items() if name != "data"} if gradients else None
    return symbol.bind(mx.cpu(), args, args_grad=grads, aux_states=filled(symbol.list_auxiliary_states(), states),
                       grad_req="write" if gradients else "null"), outputs


def step(symbol, shape, seed, dtype):
    """Output and gradients of one training step."""
    executor, outputs = bound(symbol, shape, seed, dtype, True)
    output = executor.forward(is_train=True)[0].asnumpy()
    executor.backward([mx.nd.array(numbers("head", outputs[0], seed), dtype=dtype)])
    return output, {name: g.asnumpy() for name, g in executor.grad_dict.items() if g is not None}


def forward(symbol, shape, seed, dtype):
    return [a.asnumpy() for a in bound(symbol, shape, seed, dtype, False)[0].forward(is_train=True)]


def mxnet_files(net, folder, shape, seed):
    """Gluon's two kinds of files; the output in inference."""
    x = mx.nd.array(numbers("data", shape, seed))
    block = model(net, prefix_of(net))
    block.initialize()
    block(x)
    for name, parameter in block.collect_params().items():
        parameter.set_data(mx.nd.array(numbers(name, parameter.shape, seed)))
    block.save_parameters(os.path.join(folder, "gluon.params"))
    again = model(net)
    again.load_parameters(os.path.join(folder, "gluon.params"))
    again.hybridize()
    output = again(x).asnumpy()
    again.export(os.path.join(folder, "export"))
    return x, output


def files_taken(net, folder, x, output):
    """What Tenon has written, in MXNet."""
    block = model(net)
    block.load_parameters(os.path.join(folder, "tenon.params"))
    first = block(x).asnumpy()
    block = mx.gluon.SymbolBlock.imports(os.path.join(folder, "tenon-symbol.json"), ["data"],
                                         os.path.join(folder, "tenon-0000.params"))
    saved, own = (mx.nd.load(os.path.join(folder, name + ".params")) for name in ("gluon", "tenon"))
    equal = set(saved) == set(own) and all((saved[key].asnumpy() == own[key].asnumpy()).all() for key in saved)
    return equal and max(far(first, output), far(block(x).asnumpy(), output)) <= OUTPUT_MAX


# ---- comparing ----


def far(got, want):
    return float(abs(got.astype("float64") - want).max() / abs(want).max())


def f64_distance(got, want):
    """The largest over all parameters, and whose it is."""
    largest = max(abs(g).max() for g in want.values())
    ratios = {name: float(abs(got[name] - g).max() / max(abs(g).max(), 1e-6 * largest)) for name, g in want.items()}
    name = max(ratios, key=ratios.get)
    return ratios[name], name


def length(got, want):
    return np.sqrt(sum(float(((got[name].astype("float64") - g) ** 2).sum()) for name, g in want.items()))


def relus(given, folder, shape):
    """Inputs of ReLUs in training mode, Tenon's and MXNet's float32 against MXNet's float64: how many float32 cannot tell
    from 0, how many have the other sign on each side, and the largest ratio of the root mean squares of a layer's errors."""
    symbol = mx.sym.load(os.path.join(folder, "tenon-symbol.json"))
    internals = symbol.get_internals()
    nodes = json.loads(symbol.tojson())["nodes"]
    inputs = [internals[nodes[node["inputs"][0][0]]["name"] + "_output"] for node in nodes
              if node["op"] == "clip" or node.get("attrs", {}).get("act_type") == "relu"]
    narrow, wide = (forward(mx.sym.Group(inputs), shape, given.seed, dtype) for dtype in ("float32", "float64"))
    path, out = (os.path.join(folder, name) for name in ("relus-symbol.json", "relus.params"))
    mx.sym.Concat(*[mx.sym.Reshape(x, shape=(-1,)) for x in inputs], dim=0).save(path)
    run(given, ["step", path, out, "3,%d,%d" % shape[2:], str(given.seed), plugins(given)])
    mine = np.split(mx.nd.load(out)["output32"].asnumpy(), np.cumsum([a.size for a in wide])[:-1])
    found = {"ties": 0, "turned": [0, 0], "layers": 0.0}
    for ours, theirs, exact in zip(mine, narrow, wide):
        errors = [ours.reshape(exact.shape) - exact, theirs - exact]
        found["ties"] += int((abs(exact) <= abs(errors[1]).max()).sum())
        for side, error in enumerate(errors):
            found["turned"][side] += int(((exact + error > 0) != (exact > 0)).sum())
        found["layers"] = max(found["layers"], float(np.sqrt((errors[0] ** 2).sum() / (errors[1] ** 2).sum())))
    return found


def f32_smooth(given, net, folder, symbol, shape):
    """The ratio f32 of the graphs without decisions."""
    path = os.path.join(folder, "smooth-symbol.json")
    with open(os.path.join(folder, "tenon-symbol.json")) as file:
        graph = smoothed(json.load(file))
    with open(path, "w") as file:
        json.dump(graph, file)
    out = os.path.join(folder, "smooth.params")
    run(given, ["step", path, out, "3,%d,%d" % shape[2:], str(given.seed), plugins(given)])
    mine = {name[7:]: a.asnumpy() for name, a in mx.nd.load(out).items() if name.startswith("grad32:")}
    symbol = mx.sym.load_json(json.dumps(smoothed(json.loads(symbol.tojson()))))
    g64, g32 = (step(symbol, shape, given.seed, dtype)[1] for dtype in ("float64", "float32"))
    return length(mine, g64) / length(g32, g64)


def compare(given, net, folder):
    side = family_value(SIDES, net, 64)
    shape = (2, 3, side, side)
    x, output = mxnet_files(net, folder, shape, given.seed)
    settings = [plugins(given)] + (["model.dropout=0"] if net.startswith(DROPOUT) else [])
    run(given, ["net", net, folder, "3,%d,%d" % (side, side), str(given.seed)] + settings)
    results = {name: a.asnumpy() for name, a in mx.nd.load(os.path.join(folder, "results.params")).items()}
    symbol = model(net, prefix_of(net))(mx.sym.var("data"))
    output64, g64 = step(symbol, shape, given.seed, "float64")
    _, g32 = step(symbol, shape, given.seed, "float32")
    mine = {wide: {name: results["grad%d:%s" % (wide, name)] for name in g64} for wide in (32, 64)}
    worst, name = f64_distance(mine[64], g64)
    theirs = length(g32, g64)
    total = np.sqrt(sum(float((g ** 2).sum()) for g in g64.values()))
    f32 = length(mine[32], g64) / theirs
    far_off = f32 > F32_MAX
    return {
        "output": max(far(results[key], output) for key in ("gluon", "export", "model")),
        "output64": far(results["output64"], output64),
        "f64": worst, "name": name[len(prefix_of(net)):],
        "f32": f32, "mxnet32": theirs / total, "mine32": f32 * theirs / total,
        "relus": relus(given, folder, shape) if far_off else None,
        "smooth": f32_smooth(given, net, folder, symbol, shape) if far_off else None,
        "files": files_taken(net, folder, x, output),
    }


def row(net, equal, found):
    cells = [net, "yes" if equal else "NO"]
    if found:
        f32 = "%.2f" % found["f32"]
        if found["relus"]:
            f32 += ": %d ties, %d turned (MXNet's %d), layers %.2f, smooth %.2f" % (
                found["relus"]["ties"], *found["relus"]["turned"], found["relus"]["layers"], found["smooth"])
        cells += ["%.1e" % found["output"], "%.1e" % found["f64"], found["name"], f32,
                  "%.1e" % found["mine32"], "%.1e" % found["mxnet32"], "yes" if found["files"] else "NO"]
    print("| %s |" % " | ".join(cells), flush=True)
    if not equal or not found:
        return equal
    chance = found["relus"] and found["relus"]["ties"] and max(found["relus"]["layers"], found["smooth"]) <= F32_MAX
    return found["output"] <= OUTPUT_MAX and found["f64"] <= F64_MAX and found["files"] and (
        found["f32"] <= F32_MAX or bool(chance))


def main():
    options = argparse.ArgumentParser(usage=__doc__.split("\n")[0][7:], description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", default=os.path.join(ROOT, "build-release"))
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--graphs", action="store_true")
    options.add_argument("--record", action="store_true")
    options.add_argument("nets", nargs="*", metavar="NET")
    given = options.parse_args()
    given.nets = given.nets or NETS
    if given.record:
        return record()
    if not set(given.nets) <= set(NETS):
        sys.exit("zoo_nets.py: nets are " + " ".join(NETS))
    bad = []
    graphs = tempfile.mkdtemp(prefix="tenon-zoo-")
    try:
        run(given, ["graphs", graphs, plugins(given)] + list(given.nets))
        print("| net | graph | output | f64 | worst parameter | f32 | Tenon's | MXNet's | files |\n" + "| --- " * 9 + "|")
        for net in given.nets:
            equal = graph_equal(net, os.path.join(graphs, net + "-symbol.json"))
            folder = tempfile.mkdtemp(prefix="tenon-zoo-")
            try:
                found = None if given.graphs else compare(given, net, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            if not row(net, equal, found):
                bad.append(net)
    finally:
        shutil.rmtree(graphs, ignore_errors=True)
    print("count %d" % len(given.nets))
    if bad:
        sys.exit("zoo_nets.py: too far, or unlike: " + " ".join(bad))
    return None


main()
