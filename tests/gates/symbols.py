#!/usr/bin/env python3
"""The libraries export exactly what their headers declare TN_API, the conformance kit its one table; a plugin exports
tn_plugin_v1 and needs no tn_. Nothing is linked to NVIDIA's libraries: plugins of GPUs open them, and only those and the tool name one.

usage: symbols.py [ROOT] --build BUILD
"""
import glob
import os
import re
import subprocess
import sys

import common


def declared(root, names):
    """Functions and variables declared TN_API."""
    found = set()
    for name in names:
        text = common.without_comments(common.read(root, name))
        text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", "", text, flags=re.M)
        for match in re.finditer(r"\bTN_API\b([^;{]*)[;{]", text):
            function = re.search(r"\b(\w+)\s*\(", match.group(1))
            found.add(function.group(1) if function else re.search(r"(\w+)\s*(?:\[[^]]*\])*\s*$", match.group(1)).group(1))
    return found


def symbols(path, flag):
    out = subprocess.run(["nm", "-D", flag, "--format=posix", path], check=True, capture_output=True, text=True).stdout
    return {line.split()[0].split("@")[0] for line in out.splitlines() if line}


NVIDIA = r"lib(cuda|cudart|cublas|cublasLt|cudnn\w*|nvrtc|nccl|nvidia\S*)\.so"
NAMES_NVIDIA = ("cuda.so", "kv-nccl.so", "tenon")  # they open it by its name; the tool says where it is


def nvidias(path):
    """What of NVIDIA's is in a file: functions it needs, libraries it is linked to or names."""
    functions = [name for name in symbols(path, "--undefined-only") if re.match(r"(cu|cuda|cublas\w*|cudnn|nccl|nvrtc)[A-Z]", name)]
    dynamic = subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True).stdout
    linked = re.findall(r"NEEDED.*\[(%s\S*?)\]" % NVIDIA, dynamic)
    with open(path, "rb") as source:
        named = [] if os.path.basename(path) in NAMES_NVIDIA else re.findall(NVIDIA.encode(), source.read())
    return sorted(functions) + sorted(name for name, _ in linked) + ["lib%s.so" % name.decode() for name in sorted(set(named))]


def compare(label, want, have):
    return ["%s: declared but not exported: %s" % (label, name) for name in sorted(want - have)] + \
           ["%s: exported but in no header: %s" % (label, name) for name in sorted(have - want)]


def main():
    if "--build" not in sys.argv:
        sys.exit(__doc__.strip())
    root, build = common.root_of(sys.argv), sys.argv[sys.argv.index("--build") + 1]
    headers = sorted(glob.glob(os.path.join(root, "sdk/include/tenon/*.h")))
    headers = [os.path.relpath(path, root) for path in headers]
    nn_headers = [name for name in headers if re.match(r"nn($|[_.-])", os.path.basename(name)[:-2])]
    findings, checked = [], 0
    for library, names in (("libtenon.so", [h for h in headers if h not in nn_headers]), ("libtenon-nn.so", nn_headers)):
        path = os.path.join(build, "lib", library)
        if os.path.exists(path):
            want = declared(root, names)
            checked += len(want)
            findings += compare(library, want, symbols(path, "--defined-only"))
    kit = os.path.join(build, "lib/tenon/libtenon-check.so")
    if os.path.exists(kit):
        checked += 1
        findings += compare(os.path.basename(kit), {"tn_check_library"}, symbols(kit, "--defined-only"))
    for path in sorted(glob.glob(os.path.join(build, "lib/tenon/plugins-1/*.so"))):
        label = os.path.basename(path)
        checked += 1
        findings += compare(label, {"tn_plugin_v1"}, symbols(path, "--defined-only"))
        findings += ["%s: needs %s of the host" % (label, name)
                     for name in sorted(symbols(path, "--undefined-only")) if re.match(r"tni?_", name)]
    for path in sorted(glob.glob(os.path.join(build, "lib/*.so")) + glob.glob(os.path.join(build, "lib/tenon/**/*.so"), recursive=True) +
                       glob.glob(os.path.join(build, "bin/tenon"))):
        findings += ["%s: has %s of NVIDIA's" % (os.path.basename(path), name) for name in nvidias(path)]
    if not checked:
        print("symbols: nothing is built in %s" % build)
        sys.exit(common.SKIP)
    common.finish("symbols", findings, checked)


if __name__ == "__main__":
    main()
