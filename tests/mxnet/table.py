#!/usr/bin/env python3
"""usage: table.py TENON TABLE DIFFERENCES

Compares `tenon ops --json` with MXNet's own table of operators (tests/oracle/table.py): names and aliases, names of arguments in
their order, types and defaults. DIFFERENCES states each difference with its reason; one that is closed is an error, too.
Operators that Tenon lacks are counted.
"""
import ast
import json
import re
import subprocess
import sys

DIFFERENCES_MAX = 15
PLUGINS = (None, "", "image")  # the core, and plugins with operators of MXNet
ARRAYS = ("NDArray-or-Symbol", "NDArray", "Symbol", "NDArray-or-Symbol[]", "Symbol or Symbol[]", "SymbolArray")
DTYPES = {"float16", "float32", "float64", "bfloat16", "uint8", "int8", "int32", "int64", "bool", "uint16", "int16",
          "uint32", "uint64", "None"}
WORDS = {"int": "int", "long": "int", "int (non-negative)": "int", "long (non-negative)": "int", "float": "float",
         "double": "float", "real_t": "float", "boolean": "bool", "string": "text", "Shape(tuple)": "tuple of int",
         "Shape or None": "tuple of int", "int or None": "int or None", "long or None": "int or None",
         "float or None": "float or None", "double or None": "float or None", "boolean or None": "bool or None",
         "tuple of <float>": "tuple of float", "tuple of <double>": "tuple of float", "tuple of <long>": "tuple of int",
         "tuple of <int>": "tuple of int", "tuple of <Shape(tuple)>": "tuple of pairs of int"}
SAME = {"tuple of int or None": "tuple of int"}  # MXNet's tuples may have holes


def mxnets(text):
    """(type, default) of an argument in MXNet's words; a choice is a frozenset."""
    choice = re.match(r"\{(.*?)\}", text)
    default = re.search(r"default=(.*)$", text)
    fallback = default.group(1).strip().strip("'") if default else None
    if choice:
        names = {name.strip().strip("'") for name in choice.group(1).split(",")}
        return "data type" if names <= DTYPES and names & {"float32", "int32"} else frozenset(names), fallback
    word = re.sub(r",\s*(required|optional.*)$", "", text).strip()
    return WORDS.get(word, word), fallback


def tenons(arg):
    kind = arg[1]
    return frozenset(kind[len("choice of "):].split("|")) if kind.startswith("choice of ") else SAME.get(kind, kind)


def value(text, kind):
    """A default as a value that compares."""
    if text is None or text == "None":
        return text
    if kind == "bool" or kind == "bool or None":
        return {"1": True, "True": True, "true": True, "0": False, "False": False, "false": False}.get(text, text)
    try:
        got = ast.literal_eval(text.replace("[", "(").replace("]", ",)") if text.startswith("[") and text != "[]"
                               else text.replace("[]", "()"))
    except (ValueError, SyntaxError):
        return text
    rounded = lambda x: float("%.6g" % x) if isinstance(x, (int, float)) else x
    return tuple(map(rounded, got)) if isinstance(got, tuple) else rounded(got)


def compare(ours, theirs):
    """(operator, argument or -, what) of each difference."""
    name = ours["name"]
    if sorted(ours["aliases"]) != sorted(theirs["aliases"]):
        yield name, "-", "aliases %s, MXNet has %s" % (",".join(sorted(ours["aliases"])), ",".join(sorted(theirs["aliases"])))
    attrs = [arg for arg in ours["args"] if arg[1] != "array"]
    inputs = [arg[0] for arg in ours["args"] if arg[1] == "array"]
    listed = [(arg, mxnets(kind)) for arg, kind in theirs["args"] if kind.split(",")[0] not in ARRAYS]
    arrays = [arg for arg, kind in theirs["args"] if kind.split(",")[0] in ARRAYS]
    if not any("*" in one for one in inputs) and inputs != arrays:
        yield name, "-", "inputs %s, MXNet has %s" % (",".join(inputs), ",".join(arrays))
    if [arg[0] for arg in attrs] != [arg for arg, _ in listed]:
        yield name, "-", "arguments %s, MXNet has %s" % (",".join(arg[0] for arg in attrs), ",".join(a for a, _ in listed))
        return
    for arg, (_, (kind, fallback)) in zip(attrs, listed):
        if kind and tenons(arg) != kind:  # of some MXNet says no type
            yield name, arg[0], "type %s, MXNet has %s" % (arg[1], kind if isinstance(kind, str) else "|".join(sorted(kind)))
        elif value(arg[2], kind) != value(fallback, kind):
            yield name, arg[0], "default %s, MXNet has %s" % (arg[2], fallback)


def main():
    done = subprocess.run([sys.argv[1], "ops", "--json"], stdout=subprocess.PIPE, check=True)
    ours = {op["name"]: op for op in json.loads(done.stdout)["operators"] if op["plugin"] in PLUGINS}
    stated = {}
    for line in open(sys.argv[3], encoding="utf-8"):
        if line.strip() and not line.startswith("#"):
            names, arg, reason = line.strip().split(None, 2)
            stated.update(((name, arg), reason) for name in names.split(","))
    bad, missing, seen, compared = 0, 0, set(), 0
    for line in open(sys.argv[2], encoding="ascii"):
        theirs = json.loads(line)
        if theirs["name"] not in ours:
            missing += 1
            continue
        compared += 1
        for name, arg, what in compare(ours[theirs["name"]], theirs):
            seen.add((name, arg))
            if (name, arg) not in stated:
                print("%s %s: %s" % (name, arg, what))
                bad += 1
    for name, arg in sorted(set(stated) - seen):
        print("%s %s is as in MXNet: remove it from %s" % (name, arg, sys.argv[3]))
        bad += 1
    print("%d operators compared, %d differences with reasons; %d operators are not there" % (compared, len(seen), missing))
    sys.exit(bad != 0 or compared < 400 or len(seen) > DIFFERENCES_MAX)


if __name__ == "__main__":
    main()
