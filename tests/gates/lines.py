#!/usr/bin/env python3
"""usage: lines.py [ROOT]

Lines of C in the kit, the tool and the core. It only prints them: no number is wrong.
"""
import sys

import common

PARTS = (("kit", "sdk/check/"), ("tool", "cli/"), ("core", "core/"))


def main():
    root = common.root_of(sys.argv)
    names = [name for name in common.tree_files(root) if name.endswith((".c", ".h", ".inc"))]
    for part, folder in PARTS:
        print("%s %d" % (part, sum(common.read(root, name).count("\n") for name in names if name.startswith(folder))))


main()
