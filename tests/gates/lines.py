#!/usr/bin/env python3
"""usage: lines.py [ROOT]

Lines of C in the kit, the tool and the core: printed, no number is wrong. What stands for a GPU in tests stays small.
"""
import sys

import common

PARTS = (("kit", "sdk/check/"), ("tool", "cli/"), ("core", "core/"))


# The emulator of the driver, and the doubles of its libraries: who reads a test has to be able to read them.
LIMITS = (("tests/cuda/emulator/", 2500), ("tests/cuda/lt/", 2000), ("tests/cuda/dnn/", 2000), ("tests/cuda/nccl/", 2000),
          ("tests/cuda/nvrtc/", 2000))


def main():
    root = common.root_of(sys.argv)
    names = [name for name in common.tree_files(root) if name.endswith((".c", ".h", ".inc"))]
    lines = lambda folder: sum(common.read(root, name).count("\n") for name in names if name.startswith(folder))
    for part, folder in PARTS:
        print("%s %d" % (part, lines(folder)))
    over = ["%s: %d lines, at most %d" % (folder, lines(folder), most) for folder, most in LIMITS if lines(folder) > most]
    print("\n".join(over), end="\n" if over else "")
    sys.exit(1 if over else 0)


main()
