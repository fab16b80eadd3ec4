#!/usr/bin/env python3
"""Every .c and .cu of the tree is compiled by the build, and every header, .inc and .list is included by something.

usage: dead.py [ROOT] --build BUILD    (reads BUILD/compile_commands.json)
"""
import json
import os
import re
import sys

import common

BUILT = ("core/", "plugins/", "nn/", "cli/", "examples/", "bench/", "tests/", "sdk/template/", "sdk/check/")


# Of libraries that a machine may lack.
OPTIONAL = ("plugins/cpu/openblas", "plugins/kv-nccl", "tests/cuda/described", "tests/cuda/dnn", "tests/cuda/lt", "tests/cuda/nccl")


def left_out(name, built):
    """A plugin whose library is absent is left out whole: then no file of the folder is built."""
    folder = os.path.dirname(name)
    return folder in OPTIONAL and not any(os.path.dirname(b) == folder for b in built)


def main():
    if "--build" not in sys.argv:
        sys.exit(__doc__.strip())
    root, build = common.root_of(sys.argv), sys.argv[sys.argv.index("--build") + 1]
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as source:
        built = {os.path.relpath(os.path.realpath(entry["file"]), os.path.realpath(root)) for entry in json.load(source)}
    files = [f for f in common.tree_files(root) if f.endswith(common.CODE) and f.startswith(BUILT + ("sdk/include/",))]
    files = [f for f in files if not f.startswith("tests/gates/")]
    included = set()
    for name in files:
        included |= {os.path.basename(m) for m in re.findall(r'#\s*(?:include|define BODY)\s*["<]([^">]+)', common.read(root, name))}
    findings, notes = [], set()
    for name in files:
        if name.endswith((".c", ".cu")):
            if left_out(name, built):
                notes.add(os.path.dirname(name))
            elif name not in built and os.path.basename(name) not in included:
                findings.append("%s is not compiled by anything" % name)
        elif not name.startswith("sdk/include/") and os.path.basename(name) not in included:
            findings.append("%s is not included by anything" % name)
    for folder in sorted(notes):
        print("dead: %s is left out of this build" % folder)
    common.finish("dead", findings, len(files))


main()
