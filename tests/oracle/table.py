"""Runs in the environment `mxnet`: MXNet's own table of operators, as its library reports it.

usage: table.py FILE

Writes a line of JSON for each operator into FILE: its name, aliases, and [name, type] of each argument; the type has the
default in MXNet's words. tests/oracle/recorded/ops/table.jsonl is such a file of MXNet 1.9.1 (Apache-2.0). Operators of
gradients, and those that MXNet's own graph passes make, are left out.
"""
import ctypes
import json
import sys

from mxnet.base import _LIB, OpHandle, c_str, check_call, mx_uint, py_str


def names_of():
    count, names = mx_uint(), ctypes.POINTER(ctypes.c_char_p)()
    check_call(_LIB.MXListAllOpNames(ctypes.byref(count), ctypes.byref(names)))
    return [py_str(names[i]) for i in range(count.value)]


def info_of(name):
    """(real name, [[argument, type]…])."""
    handle, real, text, count = OpHandle(), ctypes.c_char_p(), ctypes.c_char_p(), mx_uint()
    variadic, returns = ctypes.c_char_p(), ctypes.c_char_p()
    args, types, texts = (ctypes.POINTER(ctypes.c_char_p)() for _ in range(3))
    check_call(_LIB.NNGetOpHandle(c_str(name), ctypes.byref(handle)))
    check_call(_LIB.MXSymbolGetAtomicSymbolInfo(
        handle, ctypes.byref(real), ctypes.byref(text), ctypes.byref(count), ctypes.byref(args), ctypes.byref(types),
        ctypes.byref(texts), ctypes.byref(variadic), ctypes.byref(returns)))
    return py_str(real.value), [[py_str(args[i]), py_str(types[i])] for i in range(count.value)]


def main():
    rows = {}
    for name in names_of():
        if "backward" in name or name.startswith("_sg_mkldnn"):
            continue
        real, args = info_of(name)
        row = rows.setdefault(real, {"name": real, "aliases": [], "args": args})
        if name != real:
            row["aliases"].append(name)
    with open(sys.argv[1], "w") as file:
        for name in sorted(rows):
            rows[name]["aliases"].sort()
            file.write(json.dumps(rows[name], ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
