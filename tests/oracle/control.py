#!/usr/bin/env python3
"""usage: $(tests/oracle/setup mxnet)/bin/python tests/oracle/control.py [--check FOLDER]

Loops and branches as MXNet 1.9.1's symbols have them: graphs into recorded/control/NAME-symbol.json, and what it computes
for them into recorded/control/calls.txt.gz, in the form of recorded/ops: `call NAME f32`, inputs in the order of
list_arguments, outputs, head gradients, gradients. Rows of outputs that no step of a while loop fills are undefined in
MXNet: they are left out of its outputs by a slice. Where one graph lies in another its symbols have no gradient, or do not
run: those numbers are of the same loop in Python. The test mxnet.control replays them.

--check: FOLDER/NAME-symbol.json, written by Tenon (`TENON_CONTROL_SAVED=FOLDER ctest -R mxnet.control`), are
loaded in their place, and must give the same numbers.
"""
import gzip
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
FOLDER = os.path.join(HERE, "recorded", "control")
sys.path.insert(0, HERE)
import ops  # noqa: E402  sets the environment for MXNet

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from mxnet import autograd  # noqa: E402

S, C = mx.sym, mx.sym.contrib  # or Eager
runner = ops.Runner()


class Eager:
    """mx.nd with arrays that have names."""

    def __init__(self, arrays):
        self.var = arrays.get

    def __getattr__(self, name):
        return getattr(mx.nd, name)

    def Group(self, arrays):
        return arrays


def group(outs, states=()):
    listed = lambda x: list(x) if isinstance(x, (list, tuple)) else [x]
    return S.Group(listed(outs) + listed(states))


def scan():
    """A running sum, weighted; one state, one closed-over value."""
    w = S.var("w")
    return group(*C.foreach(lambda x, s: (x * w + s[0], [S.tanh(s[0] + x)]), S.var("d"), [S.var("s")]))


def two_of_each():
    """Two data, two states, two outputs; what is closed over has a shape of its own."""
    w, b = S.var("w"), S.var("b")

    def body(x, s):
        h = S.tanh(S.FullyConnected(x[0], w, b, num_hidden=3) + s[0])
        return [h * s[1], S.broadcast_add(h, x[1])], [h, s[1] * 0.5]

    return group(*C.foreach(body, [S.var("d"), S.var("e")], [S.var("s"), S.var("t")]))


def no_states():
    w = S.var("w")
    return group(*C.foreach(lambda x, s: (S.sin(x) * w, []), S.var("d"), []))


def nested():
    """A loop in a loop, over the same weight."""
    w = S.var("w")

    def outer(row, s):
        y, inner = C.foreach(lambda x, t: (x * w, [t[0] + x * w]), row, [s[0]])
        return y, [inner[0] * 0.5]

    return group(*C.foreach(outer, S.var("d"), [S.var("s")]))


def body_of_operators():
    """Softmax, slices and a reduction within."""
    w = S.var("w")

    def body(x, s):
        y = S.softmax(S.dot(x, w))
        return S.sum(y * s[0], axis=1), [S.slice_axis(y, axis=1, begin=0, end=2)]

    return group(*C.foreach(body, S.var("d"), [S.var("s")]))


def counted():
    """As long as i < 4: three steps of five."""
    w = S.var("w")
    o, v = C.while_loop(cond=lambda i, a: i < 4, func=lambda i, a: ([a * w], [i + 1, S.tanh(a * w)]),
                        loop_vars=[S.var("i"), S.var("a")], max_iterations=5)
    return group(S.slice_axis(o[0], axis=0, begin=0, end=3), v)


def to_the_end():
    """The condition holds longer than max_iterations."""
    o, v = C.while_loop(cond=lambda i, a: i < 100, func=lambda i, a: ([a + i, a * i], [i + 1, a * 1.5]),
                        loop_vars=[S.var("i"), S.var("a")], max_iterations=4)
    return group(o, v)


def by_value():
    """What decides is a sum of what moves; nothing is put together."""
    w = S.var("w")
    o, v = C.while_loop(cond=lambda a: S.sum(a) < 20, func=lambda a: ([], [a * w]), loop_vars=[S.var("a")],
                        max_iterations=50)
    return group(v)


def branch():
    a, b, w = S.var("a"), S.var("b"), S.var("w")
    return group(C.cond(S.sum(a) > S.sum(b), lambda: a * w, lambda: S.tanh(b) - w))


def branch_in_loop():
    w = S.var("w")

    def body(x, s):
        y = C.cond(S.sum(x) > 0, lambda: s[0] + x * w, lambda: s[0] * 0.5)
        return y, [y]

    return group(*C.foreach(body, S.var("d"), [S.var("s")]))


# name, graph, shapes or numbers of its inputs
CASES = [
    ("scan", scan, {"d": (5, 3), "s": (3,), "w": (3,)}),
    ("two_of_each", two_of_each, {"d": (4, 2, 6), "e": (4, 1, 3), "s": (2, 3), "t": (2, 3), "w": (3, 6), "b": (3,)}),
    ("no_states", no_states, {"d": (3, 2, 2), "w": (2, 2)}),
    ("one_step", scan, {"d": (1, 3), "s": (3,), "w": (3,)}),
    ("nested", nested, {"d": (3, 4, 2), "s": (2,), "w": (2,)}),
    ("body_of_operators", body_of_operators, {"d": (3, 2, 4), "s": (2, 2), "w": (4, 2)}),
    ("counted", counted, {"i": [1.0], "a": (3,), "w": (3,)}),
    ("to_the_end", to_the_end, {"i": [2.0], "a": (1,)}),
    ("by_value", by_value, {"a": [1.0, 0.5], "w": [2.0, 1.5]}),
    ("branch_then", branch, {"a": [2.0, 1.0], "b": [0.5, 0.25], "w": [3.0, 1.0]}),
    ("branch_else", branch, {"a": [0.0, 0.25], "b": [0.5, 0.25], "w": [3.0, 1.0]}),
    ("branch_in_loop", branch_in_loop, {"d": (6, 2), "s": (2,), "w": (2,)}),
]
NESTED = ("nested", "branch_in_loop")


def value(given, name):
    if isinstance(given, tuple):
        count = int(np.prod(given))
        return runner.array(ops.values_of("r", "f32", count, name), "f32", given)
    return mx.nd.array(given)


def heads_of(outs):
    return [value(o.shape, "head%d" % i) for i, o in enumerate(outs)]


def run_eager(make, args):
    global S, C
    S, C = Eager(args), mx.nd.contrib
    for a in args.values():
        a.attach_grad()
    with autograd.record():
        outs = make()
    heads = heads_of(outs)
    autograd.backward(outs, heads)
    S, C = mx.sym, mx.sym.contrib
    return outs, heads, {name: a.grad for name, a in args.items()}


def run_symbol(symbol, args):
    grads = {name: mx.nd.zeros(a.shape) for name, a in args.items()}
    executor = symbol.bind(mx.cpu(), args, args_grad=grads)
    outs = executor.forward(is_train=True)
    heads = heads_of(outs)
    executor.backward(heads)
    return outs, heads, grads


def run(symbol, make, given, eager):
    args = {name: value(given[name], name) for name in symbol.list_arguments()}
    outs, heads, grads = run_eager(make, args) if eager else run_symbol(symbol, args)
    return [args[n] for n in symbol.list_arguments()], outs, heads, [grads[n] for n in symbol.list_arguments()]


def lines_of(name, parts):
    ins, outs, heads, grads = parts
    return (["call %s f32 train" % name] + ["in " + runner.text(a) for a in ins] + ["out " + runner.text(a) for a in outs] +
            ["head " + runner.text(a) for a in heads] + ["grad %d %s" % (i, runner.text(a)) for i, a in enumerate(grads)])


def check(folder):
    for name, make, given in CASES:
        if name in NESTED:
            continue
        with mx.name.NameManager():
            want = run(make(), make, given, False)
        have = run(mx.sym.load(os.path.join(folder, name + "-symbol.json")), make, given, False)
        for w, h in zip(sum(map(list, want), []), sum(map(list, have), [])):
            if w.shape != h.shape or not np.allclose(w.asnumpy(), h.asnumpy(), rtol=1e-6, atol=1e-6):
                sys.exit("%s: MXNet computes something else for the graph that Tenon wrote" % name)
        print("%s: the same" % name)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        return check(sys.argv[2])
    os.makedirs(FOLDER, exist_ok=True)
    lines = []
    for name, make, given in CASES:
        with mx.name.NameManager():
            symbol = make()
        symbol.save(os.path.join(FOLDER, name + "-symbol.json"))
        lines += lines_of(name, run(symbol, make, given, name in NESTED))
    with open(os.path.join(FOLDER, "calls.txt.gz"), "wb") as f:
        with gzip.GzipFile(filename="", mode="wb", fileobj=f, mtime=0) as z:
            z.write(("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
