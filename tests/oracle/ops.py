"""Runs in the environment `mxnet`: calls of operators with every data type, and what MXNet computes for them.

usage: ops.py TABLE FIRST [FAMILY]

Runs calls from number FIRST on; one line of JSON for each stage of each call on stdout. With FAMILY: those of its
operators, which are numbered alone.

The driver `ops` starts this program again behind a call that ends it, or that oneDNN refuses. TABLE is ops.txt beside this file, which states
its form; README.md states that of the recordings.
"""
import json
import os
import re
import sys
import zlib

os.environ.update(MXNET_ENGINE_TYPE="NaiveEngine", MXNET_SUBGRAPH_BACKEND="NONE", MXNET_USE_MKLDNN_RNN="0",
                  OMP_NUM_THREADS="1")

# name: of NumPy, of MXNet's attributes
DTYPES = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "u8": "uint8", "i8": "int8",
          "i32": "int32", "i64": "int64", "bool": "bool"}
FLOATS = ("f32", "f64", "f16", "bf16")
DIFFERENTIATED = FLOATS
TWICE = ("f32", "f64", "f16")
STEP = 16.0  # values are multiples of 1/16 below 8: exact in every float type
# kind: (smallest, largest) in sixteenths, then in integers
KINDS = {"r": (-64, 64, -7, 7), "p": (1, 64, 1, 7), "u": (-15, 15, -1, 1), "g": (17, 80, 2, 7), "b": (0, 1, 0, 1),
         "h": (0, 16, 0, 1), "t": (-2, 2, -2, 2), "q": (1, 15, 1, 1)}
INPUT = re.compile(r"([a-z]|[iI]\d+|=[^(:!*]+)([!*]*)(?::(\w+))?\(([\d,]*)\)$")


def lines_read(lines):
    """(family, operator, attributes, inputs, flags) for each call of these lines of the table."""
    calls, family = [], None
    for line in lines:
        line = line.split("#")[0].strip()
        if line.startswith("["):
            family = line.strip("[]")
        elif line:
            parts = [part.split() for part in line.split("|")] + [[]] * 2
            names = [word for word in parts[0] if "=" not in word]
            attrs = [word for word in parts[0] if "=" in word]
            calls += [(family, name, attrs, parts[1], parts[2]) for name in names]
    return calls


def table_read(path, only=None):
    """The calls of the table; `only`: of that family's operators."""
    calls = lines_read(open(path))
    chosen = {call[1] for call in calls if only in (None, call[0])}
    return [call for call in calls if call[1] in chosen]


def work_of(path, only=None):
    """Every call with every data type that its flags leave: (number, family, operator, attrs, inputs, flags, dtype)."""
    work = []
    for family, name, attrs, inputs, flags in table_read(path, only):
        types = [flag[6:].split(",") for flag in flags if flag.startswith("dtype=")]
        others = DTYPES if any(":any(" in spec for spec in inputs) else ("",)
        for dtype in types[0] if types else DTYPES:
            for other in others:
                made = [spec.replace(":any(", ":%s(" % other) for spec in inputs]
                work.append((len(work), family, name, attrs, made, flags, dtype))
    return work


def pairs_of(path, only=None):
    """Numbers of the calls whose second input has each data type in turn."""
    numbers, count = set(), 0
    for _, _, _, inputs, flags in table_read(path, only):
        own = [len(flag[6:].split(",")) for flag in flags if flag.startswith("dtype=")] or [len(DTYPES)]
        pairs = any(":any(" in spec for spec in inputs)
        own = own[0] * (len(DTYPES) if pairs else 1)
        if pairs:
            numbers.update(range(count, count + own))
        count += own
    return numbers


def state_of(text):
    return zlib.crc32(text.encode("ascii")) or 1


def draw(state, count, low, high):
    """Whole numbers from low to high, by a linear congruential generator; all different where there are enough."""
    out, seen = [], set()
    while len(out) < count:
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        value = low + (state >> 33) % (high - low + 1)
        if value in seen and len(seen) < high - low + 1:
            continue
        seen.add(value)
        out.append(value)
    return out


def values_of(kind, dtype, count, seed):
    """Python numbers for an input."""
    state = state_of(seed)
    if kind[0] == "=":
        given = [float(word) for word in kind[1:].split(";")]
        return [given[i % len(given)] for i in range(count)]
    if kind[0] in "iI":
        size = int(kind[1:])
        return draw(state, count, 0, size - 1) if kind[0] == "i" or dtype in ("u8", "bool") else \
            draw(state, count, -size, 2 * size)
    if kind == "n":  # not 0
        return [value or 1 for value in values_of("r", dtype, count, seed)]
    low, high, int_low, int_high = KINDS[kind]
    if dtype == "bool":
        return draw(state, count, 1 if int_low > 0 else 0, 1)
    if dtype in FLOATS:
        unit = 1.0 if kind == "b" else 2.0 if kind == "t" else STEP
        return [value / unit for value in draw(state, count, low, high)]
    return draw(state, count, max(int_low, 0) if dtype == "u8" else int_low, int_high)


def shortest(value, dtype):
    if dtype in ("f32", "f16", "f64"):
        text = repr(value).replace("e+", "e")
        return text[:-2] if text.endswith(".0") else text
    return "%.6g" % value if dtype == "bf16" else str(int(value))


class Runner:
    def __init__(self):
        import numpy
        import mxnet
        from mxnet import autograd
        from mxnet._ctypes.ndarray import _imperative_invoke
        from mxnet.base import _LIB, OpHandle, c_str, check_call
        import ctypes

        self.np, self.mx, self.autograd = numpy, mxnet, autograd
        self.short = {value: key for key, value in DTYPES.items()}

        def invoke(name, arrays, attrs, given=None):
            handle = OpHandle()
            check_call(_LIB.NNGetOpHandle(c_str(name), ctypes.byref(handle)))
            keys, texts = [a.split("=", 1)[0] for a in attrs], [a.split("=", 1)[1] for a in attrs]
            out = _imperative_invoke(handle.value, arrays, keys, texts, given, False, False)
            return list(out) if isinstance(out, (list, tuple)) else [out]

        self.invoke = invoke

    def dtype_name(self, array):
        dtype = array.dtype
        return "bf16" if getattr(dtype, "names", None) else self.short[self.np.dtype(dtype).name]

    def array(self, values, dtype, shape):
        np = self.np
        wide = np.array(values, "float32" if dtype == "bf16" else DTYPES[dtype]).reshape(shape)
        made = self.mx.nd.array(wide, dtype=wide.dtype)
        return self.invoke("amp_cast", [made], ["dtype=bfloat16"])[0] if dtype == "bf16" else made

    def text(self, array):
        dtype = self.dtype_name(array)
        wide = self.invoke("amp_cast", [array], ["dtype=float32"])[0] if dtype == "bf16" else array
        flat = wide.asnumpy().reshape(-1)
        if dtype not in ("f32", "f16", "f64"):
            flat = flat.tolist()
        elif dtype == "f64":
            flat = flat.tolist()
        return "%s[%s] %s" % (dtype, ",".join(str(d) for d in array.shape),
                              " ".join(shortest(value, dtype) for value in flat))

    def statistics(self, array, ends):
        dtype = self.dtype_name(array)
        wide = self.invoke("amp_cast", [array], ["dtype=float32"])[0] if dtype == "bf16" else array
        values = wide.asnumpy().astype("float64")
        numbers = [values.mean(), values.std()] + ([values.min(), values.max()] if ends else [float("nan")] * 2)
        return "stat %s[%s] %s" % (dtype, ",".join(str(d) for d in array.shape),
                                   " ".join("%.4g" % number for number in numbers))

    def make(self, spec, dtype, seed):
        kind, _, own, shape = INPUT.match(spec).groups()
        own = {"acc": "f64" if dtype == "f64" else "f32", None: dtype}.get(own, own)
        shape = tuple(int(d) for d in shape.split(",") if d)
        count = 1
        for d in shape:
            count *= d
        return self.array(values_of(kind, own, count, seed), own, shape)

    def head(self, like, seed):
        dtype = self.dtype_name(like)
        return self.array(values_of("u", dtype, like.size, seed), dtype, like.shape)

    def run(self, call, say):
        """say(stage, [lines]) after each stage."""
        say("start", [])
        _, _, name, attrs, inputs, flags, dtype = call
        self.mx.random.seed(1)
        attrs = [word.replace("@", DTYPES[dtype]) for word in attrs]
        train = "train" in flags
        marks = [INPUT.match(spec).group(2) for spec in inputs]

        def fresh():
            return [self.make(spec, dtype, "%s %d" % (spec.split("(")[0], i)) for i, spec in enumerate(inputs)]

        arrays = fresh()
        lines = ["in " + self.text(array) for array in arrays]
        wanted = [i for i, array in enumerate(arrays) if not marks[i] and self.dtype_name(array) in DIFFERENTIATED]
        mutated = [i for i, mark in enumerate(marks) if "*" in mark]

        into = [int(i) for flag in flags if flag.startswith("into=") for i in flag[5:].split(",")]

        def forward():  # of the arrays that were made last
            given = [self.mx.nd.zeros(arrays[i].shape, dtype=arrays[i].dtype) for i in into]
            given += [arrays[0]] if "inplace" in flags else []
            return self.invoke(name, arrays, attrs, given or None)

        with self.autograd._RecordingStateScope(False, train):
            outs = forward()
        lines += ["out " + self.text(out) for out in outs]
        summary = "statistics" in flags or "moments" in flags
        if summary:
            lines = [line for line in lines if line.startswith("in ")]
            lines += [self.statistics(out, "statistics" in flags) for out in outs]
        if not wanted:
            lines += ["now %d %s" % (i, self.text(arrays[i])) for i in mutated]
        say("forward", lines)
        if not wanted or summary or dtype not in DIFFERENTIATED or "nograd" in flags or self.dtype_name(outs[0]) not in FLOATS:
            return
        arrays = fresh()
        heads = [self.head(out, "head %d" % i) for i, out in enumerate(outs)]
        xs = [arrays[i] for i in wanted]
        for x in xs:
            x.attach_grad()
        with self.autograd.record(train_mode=train):
            outs = forward()
        lines = ["head " + self.text(head) for head in heads]  # some backward functions change them
        self.autograd.backward(outs, heads, train_mode=train)
        grads = [x.grad for x in xs]
        lines += ["grad %d %s" % (i, self.text(g)) for i, g in zip(wanted, grads)]
        lines += ["now %d %s" % (i, self.text(arrays[i])) for i in mutated]
        say("gradient", lines)
        if "nosecond" in flags or dtype not in TWICE:
            return
        arrays = fresh()
        xs = [arrays[i] for i in wanted]
        overs = [self.head(x, "over %d" % i) for i, x in enumerate(xs)]
        for x in xs:
            x.attach_grad()
        with self.autograd.record(train_mode=train):
            outs = forward()
            grads = self.autograd.grad(outs, xs, heads, create_graph=True, retain_graph=True, train_mode=train)
        self.autograd.backward(grads, overs, train_mode=train)
        say("second", ["over " + self.text(over) for over in overs] +
            ["second %d %s" % (i, self.text(x.grad)) for i, x in zip(wanted, xs)])


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # MXNet prints there, too
    runner = Runner()
    for call in work_of(sys.argv[1], *sys.argv[3:])[int(sys.argv[2]):]:
        def say(stage, lines):
            out.write(json.dumps([call[0], stage, lines]) + "\n")
            out.flush()

        failure = ""
        try:
            with runner.mx.util.np_shape("np" in call[5]):
                runner.run(call, say)
        except Exception as error:
            failure = (str(error).strip().split("\n")[-1] or type(error).__name__)[:200]
            say("error", [failure])
        say("end", [])
        if "could not" in failure:  # MXNet keeps errors of oneDNN, which come out of later calls
            os._exit(0)


if __name__ == "__main__":
    main()
