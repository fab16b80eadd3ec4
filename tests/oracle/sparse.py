#!/usr/bin/env python3
"""usage: $(tests/oracle/setup mxnet)/bin/python tests/oracle/sparse.py [--check FOLDER]

Calls of operators with sparse arrays in MXNet 1.9.1, into recorded/sparse/calls.txt.gz: the form of recorded/ops, all arrays
as dense numbers, with two pseudo attributes: `_in=csr,default` has the storage types of the inputs, `_out` that of output 0.
An output that MXNet makes by its dense fallback has `_out=fallback`. recorded/sparse/arrays.params has arrays as MXNet saves them.
recorded/sparse/gradients.txt.gz: the gradient of input `_of`, in the storage type `_grad`, where the last input arrives at the
output; `now 1` is it, `now 0` its row ids. recorded/sparse/random.txt.gz: numbers drawn into a row_sparse array of which some
rows are stored: `now 0` the row ids that are stored then, `stat` what is known of the numbers. The test mxnet.sparse replays and loads all of them.

--check: FOLDER/arrays.params, which that test writes with TENON_SPARSE_SAVED=FOLDER, holds the same arrays.
"""
import gzip
import os
import re
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
FOLDER = os.path.join(HERE, "recorded", "sparse")
sys.path.insert(0, HERE)
import ops  # noqa: E402  sets the environment for MXNet

os.environ["MXNET_STORAGE_FALLBACK_LOG_VERBOSE"] = "1"
import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402

runner = ops.Runner()
D, R, C = "default", "row_sparse", "csr"
UNARY = ("abs sign round rint ceil floor trunc fix sqrt cbrt square sin tan arcsin arctan sinh tanh arcsinh arctanh expm1 "
         "log1p degrees radians negative relu _copy make_loss BlockGrad zeros_like").split()
SCALARS = [("_mul_scalar", 2.5), ("_div_scalar", 2.5), ("_scatter_plus_scalar", 2.5), ("_scatter_minus_scalar", 2.5),
           ("_plus_scalar", 2.5), ("_minus_scalar", 2.5), ("_greater_scalar", 0.5), ("_lesser_scalar", -0.25)]
PAIRS = "elemwise_add elemwise_sub elemwise_mul _maximum _minimum _hypot".split()


def numbers(shape, seed, dtype="f32", zero=True):
    """Quarters in [-0.75, 0.75], of which some are zero, and every third row."""
    count = int(np.prod(shape))
    a = np.array(ops.values_of("r", dtype, count, seed), "float64").reshape(shape)
    a = np.round(a * 4) / 4 % 1 * np.sign(a)
    if zero:
        a[1::3] = 0
        a[np.abs(a) < 0.3] = 0
    return a


def cases():
    """Operator, type, storage types, shapes, attributes."""
    for op in UNARY:
        for st in (R, C):
            yield op, "f32", [st], [(5, 3)], {}
    for op, scalar in SCALARS:
        for st in (R, C):
            yield op, "f32", [st], [(5, 3)], {"scalar": scalar}
    for st in (R, C):
        yield "clip", "f32", [st], [(5, 3)], {"a_min": -0.5, "a_max": 0.25}
    for op in PAIRS:
        for pair in ([R, R], [C, C], [D, R], [R, D], [D, C], [C, D], [R, C]):
            yield op, "f32", pair, [(5, 3), (5, 3)], {}
    for dtype in ("f64", "f16", "i32", "i64"):
        yield "elemwise_add", dtype, [R, R], [(5, 3), (5, 3)], {}
        yield "elemwise_mul", dtype, [C, C], [(5, 3), (5, 3)], {}
    yield "add_n", "f32", [R, R, R], [(5, 3)] * 3, {"num_args": 3}
    yield "elemwise_add", "f32", [R, R], [(5, 2, 2), (5, 2, 2)], {}
    for dtype in ("f32", "f64", "f16", "u8", "i8", "i32", "i64"):
        for st in (D, R, C):
            for to in (D, R, C):
                if D in (st, to):
                    yield "cast_storage", dtype, [st], [(5, 3)], {"stype": to}
    yield "cast_storage", "f32", [D], [(4, 2, 2)], {"stype": R}
    for dtype in ("f32", "f64"):
        yield "dot", dtype, [C, D], [(4, 3), (3, 5)], {}
        yield "dot", dtype, [C, D], [(4, 3), (4, 5)], {"transpose_a": True}
    yield "dot", "f32", [C, R], [(4, 3), (3, 5)], {}
    yield "dot", "f32", [C, D], [(4, 3), (4, 5)], {"transpose_a": True, "forward_stype": "default"}
    yield "dot", "f32", [R, D], [(4, 3), (3, 5)], {}
    yield "dot", "f32", [C, D], [(4, 3), (5, 3)], {"transpose_b": True}
    for dtype in ("f32", "f64"):
        yield "dot", dtype, [D, C], [(4, 3), (3, 5)], {}
        yield "dot", dtype, [D, C], [(4, 3), (3, 5)], {"forward_stype": D}
        yield "dot", dtype, [D, C], [(4, 3), (5, 3)], {"transpose_b": True, "forward_stype": D}
    yield "dot", "f32", [D, C], [(3, 4), (3, 5)], {"transpose_a": True}
    yield "dot", "f32", [D, C], [(3, 4), (5, 3)], {"transpose_a": True, "transpose_b": True}
    for kinds in ([C, D], [D, C]):
        yield "FullyConnected", "f32", kinds, [(4, 3), (5, 3)], {"num_hidden": 5, "no_bias": True}
        yield "FullyConnected", "f32", kinds + [D], [(4, 3), (5, 3), (5,)], {"num_hidden": 5}
    yield "FullyConnected", "f64", [D, C, D], [(2, 2, 3), (5, 6), (5,)], {"num_hidden": 5}
    yield "FullyConnected", "f32", [D, C], [(2, 2, 3), (5, 3)], {"num_hidden": 5, "flatten": False, "no_bias": True}
    for op in ("sum", "mean"):
        for axis in (0, 1):
            yield op, "f32", [C], [(5, 3)], {"axis": axis}
            yield op, "f32", [C], [(5, 3)], {"axis": axis, "keepdims": True}
    yield "sum", "f32", [R], [(5, 3)], {}
    for begin, end in (((1,), (4,)), ((0, 1), (5, 3)), ((-3, 0), (-1, 2))):
        yield "slice", "f32", [C], [(5, 3)], {"begin": begin, "end": end}
    for dtype in ("f64", "f16", "i32"):
        yield "slice", dtype, [C], [(5, 3)], {"begin": (1, 0), "end": (4, 2)}
        yield "sum", dtype, [C], [(5, 3)], {"axis": 1}
    for st in (R, C):
        yield "norm", "f32", [st], [(5, 3)], {}
    for axis in (0, 1):
        for dtype in ("f32", "f64"):
            yield "_square_sum", dtype, [R], [(5, 3)], {"axis": axis}
            yield "_square_sum", dtype, [R], [(5, 3)], {"axis": axis, "keepdims": True}
    yield "exp", "f32", [C], [(5, 3)], {}
    yield "softmax", "f32", [R], [(5, 3)], {}


def indices(values, dtype="f32"):
    return runner.array([float(v) for v in values], dtype, (len(values),))


def updates():
    """Lazy updates: the gradient alone is row_sparse; what the call changes comes behind."""
    w, g, s, t = ((5, 3),) * 4
    common = {"lr": 0.1, "wd": 0.01, "rescale_grad": 0.5}
    for clip in (-1.0, 0.25):
        yield "sgd_update", 2, dict(common, clip_gradient=clip)
        yield "sgd_mom_update", 3, dict(common, momentum=0.9, clip_gradient=clip)
        yield "adam_update", 4, dict(common, clip_gradient=clip)
    for lazy in (False,):
        yield "sgd_update", 2, dict(common, lazy_update=lazy)
        yield "sgd_mom_update", 3, dict(common, momentum=0.9, lazy_update=lazy)
        yield "adam_update", 4, dict(common, lazy_update=lazy)
    yield "ftrl_update", 4, dict(common, lamda1=0.01, beta=1.0)
    yield "_sparse_adagrad_update", 3, {"lr": 0.1, "rescale_grad": 0.5}


def gradients():
    """Operator, storage types of inputs and gradient, ids or None: a matrix (4, 3), shapes of weight and head, attributes, which
    input the weight is; further shapes. MXNet's attach_grad makes float32 alone."""
    rows = {"input_dim": 5, "output_dim": 2, "sparse_grad": True}
    yield "Embedding", [D, D], R, [1, 3, 3, 0, 3], (5, 2), (5, 2), rows
    yield "Embedding", [D, D], R, [4], (5, 2), (1, 2), rows
    yield "_contrib_SparseEmbedding", [D, D], R, [2, 2, 1], (5, 2), (3, 2), {"input_dim": 5, "output_dim": 2}
    for weight, grad in ((D, R), (R, R), (D, D)):
        yield "dot", [C, weight], grad, None, (3, 2), (4, 2), {}
    for grad in (R, D):
        yield "dot", [C, D], grad, None, (4, 2), (3, 2), {"transpose_a": True, "forward_stype": D}
        yield "dot", [C, D], grad, None, (2, 3), (4, 2), {"transpose_b": True}
        yield "dot", [D, C], grad, None, (2, 4), (2, 3), {"forward_stype": D}, 0
        yield "dot", [D, C], grad, None, (2, 4), (2, 3), {}, 0
        yield "dot", [D, C], grad, None, (2, 3), (2, 4), {"transpose_b": True, "forward_stype": D}, 0
        yield "dot", [D, C], grad, None, (4, 2), (2, 3), {"transpose_a": True}, 0
    yield "FullyConnected", [C, D], D, None, (2, 3), (4, 2), {"num_hidden": 2, "no_bias": True}
    yield "FullyConnected", [C, D, D], D, None, (2, 3), (4, 2), {"num_hidden": 2}, 1, (2,)
    yield "FullyConnected", [D, C], D, None, (2, 3), (2, 4), {"num_hidden": 4, "no_bias": True}, 0
    for axis, head in ((0, (3,)), (1, (5,)), (0, (1, 3)), (1, (5, 1))):
        yield "_square_sum", [R], R, (), (5, 3), head, {"axis": axis, "keepdims": len(head) == 2}, 0


def gradient(op, kinds, grad, ids, weight, head, attrs, of=1, *more):
    ins = [make("f32", (4, 3), op) if ids is None else indices(ids)] if ids != () else []
    ins[of:of] = [make("f32", weight, op + "w", ids == ())]
    ins += [make("f32", s, op + "b", False) for s in more] + [make("f32", head, op + "h")]
    arrays = [a if k == D else a.tostype(k) for a, k in zip(ins, kinds)]
    arrays[of].attach_grad(stype=grad)
    with mx.autograd.record():
        y = runner.invoke(op, arrays, ["%s=%s" % i for i in attrs.items()])[0]
    y.backward(ins[-1])
    g = arrays[of].grad
    lines = [" ".join(["call", op, "f32"] + ["%s=%s" % i for i in attrs.items()] +
                      ["_in=" + ",".join(kinds), "_grad=" + g.stype, "_of=%d" % of])]
    lines += ["in " + runner.text(a) for a in ins] + ["out " + runner.text(y.tostype(D)), "now 1 " + runner.text(g.tostype(D))]
    return lines + (["now 0 " + runner.text(indices(g.indices.asnumpy()))] if g.stype == R else [])


class Warned:
    """Did MXNet tell of a fallback on stderr?"""

    def __enter__(self):
        self.pipe, self.kept = os.pipe(), os.dup(2)
        os.dup2(self.pipe[1], 2)
        return self

    def __exit__(self, *_):
        os.dup2(self.kept, 2)
        os.close(self.pipe[1])
        self.text = os.read(self.pipe[0], 1 << 16) if self.ready() else b""
        os.close(self.pipe[0])
        os.close(self.kept)

    def ready(self):
        import select
        return bool(select.select([self.pipe[0]], [], [], 0)[0])


def call(op, dtype, ins, kinds, attrs, changed=(), given=None, told_as=None):
    texts = ["%s=%s" % (k, v) for k, v in attrs.items()]
    dense = [runner.text(a) for a in ins]
    sparse = [a if k == D else a.tostype(k) for a, k in zip(ins, kinds)]
    with Warned() as w:
        outs = runner.invoke(op, sparse, texts, sparse[given] if given is not None else None)
        for o in outs:
            o.wait_to_read()
    told = b"fallback" in w.text
    lines = [" ".join(["call", op, dtype] + [re.sub(r"\s", "", t) for t in texts] +
                      ["_in=" + ",".join(told_as or kinds), "_out=" + ("fallback" if told else told_as[0] if told_as else outs[0].stype)])]
    lines += ["in " + t for t in dense] + ["out " + runner.text(o.tostype(D)) for o in outs]
    return lines + ["now %d %s" % (i, runner.text(sparse[i].tostype(D))) for i in changed]


def retained():
    for ids in ([0, 2], [3], [0, 1, 2, 3, 4]):
        for dtype in ("f32", "i64", "i32"):
            a = runner.array(numbers((5, 3), "r").reshape(-1).tolist(), "f32", (5, 3))
            yield call("_sparse_retain", "f32", [a, indices(ids, dtype)], [R, D], {})


def make(dtype, shape, seed, zero=True):
    values = numbers(shape, seed, dtype, zero)
    if dtype in ("i32", "i64", "i8", "u8"):
        values = np.round(np.abs(values) * 4)
    return runner.array(values.reshape(-1).tolist(), dtype, shape)


DRAWN = [("uniform", {"low": -1.0, "high": 3.0}), ("normal", {"loc": 2.0, "scale": 0.5}), ("gamma", {"alpha": 3.0, "beta": 0.5}),
         ("exponential", {"lam": 2.0}), ("poisson", {"lam": 4.0}), ("negative_binomial", {"k": 3, "p": 0.5}),
         ("generalized_negative_binomial", {"mu": 2.0, "alpha": 0.25})]


def drawn():
    mx.random.seed(1)
    for name, attrs in DRAWN:
        attrs = dict(attrs, shape=(60, 40))
        out = make("f32", (60, 40), "drawn").tostype(R)
        with Warned() as w:
            runner.invoke("_random_" + name, [], ["%s=%s" % i for i in attrs.items()], out)
            out.wait_to_read()
        if b"fallback" in w.text:
            continue
        yield " ".join(["call", "_random_" + name, "f32"] + [re.sub(r"\s", "", "%s=%s" % i) for i in attrs.items()])
        yield runner.statistics(out.tostype(D), False)
        yield "now 0 " + runner.text(indices(out.indices.asnumpy()))


def arrays():
    a = make("f32", (5, 3), "a")
    return {"rows": a.tostype(R), "csr": a.tostype(C), "dense": a, "wide": make("f64", (4, 2, 2), "b").tostype(R),
            "empty": mx.nd.zeros((4, 3)).tostype(C), "none": mx.nd.zeros((4, 3)).tostype(R),
            "half": make("f16", (3, 4), "c").tostype(C)}


def check(folder):
    have, want = mx.nd.load(os.path.join(folder, "arrays.params")), arrays()
    if sorted(have) != sorted(want):
        sys.exit("other names: %s" % sorted(have))
    for name, w in want.items():
        h = have[name]
        if h.stype != w.stype or h.dtype != w.dtype or h.shape != w.shape or not (h.asnumpy() == w.asnumpy()).all():
            sys.exit("%s: another array" % name)
        print("%s: the same" % name)


def write(name, lines):
    with open(os.path.join(FOLDER, name + ".txt.gz"), "wb") as f:
        with gzip.GzipFile(filename="", mode="wb", fileobj=f, mtime=0) as z:
            z.write(("\n".join(lines) + "\n").encode())


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        return check(sys.argv[2])
    lines = []
    for op, dtype, kinds, shapes, attrs in cases():
        ins = [make(dtype, shape, "%s%d" % (op, i), kinds[i] != D) for i, shape in enumerate(shapes)]
        lines += call(op, dtype, ins, kinds, attrs)
    for made in retained():
        lines += made
    for op, count, attrs in updates():
        ins = [make("f32", (5, 3), "%s%d" % (op, i), i == 1) for i in range(count)]
        if count > 2:
            ins[2:] = [a.abs() for a in ins[2:]]
        kinds = told = [D, R] + [D] * (count - 2)
        if op in ("_sparse_adagrad_update", "ftrl_update"):  # MXNet wants all of it row_sparse: every row is stored
            kinds = [R] * count
            ins = [a + 0.125 if i != 1 else a for i, a in enumerate(ins)]
        lines += call(op, "f32", ins, kinds, attrs, range(2, count), 0, told)
    os.makedirs(FOLDER, exist_ok=True)
    write("calls", lines)
    write("gradients", [line for g in gradients() for line in gradient(*g)])
    write("random", list(drawn()))
    mx.nd.save(os.path.join(FOLDER, "arrays.params"), arrays())


if __name__ == "__main__":
    main()
