#!/usr/bin/env python3
"""Every option of core/base/options.list is read by something.

A row counts as read if a source of core/, nn/, cli/ or plugins/ holds its key as a text of its own; of an open-ended row
such as memory.*.pool, its last part. Rows whose last part is open-ended are left out.
"""
import re
import sys

import common

READERS = ("core/", "nn/", "cli/", "plugins/")


def texts(root, folders):
    """Every string literal of the folders' sources."""
    found = set()
    for name in common.tree_files(root):
        if not name.startswith(folders) or not name.endswith((".c", ".h", ".inc")):
            continue
        text = common.read(root, name)
        found |= set(re.findall(r'"((?:[^"\\\n]|\\.)*)"', text))
    return found


def main():
    root = common.root_of(sys.argv)
    rows = re.findall(r'^TN_OPTION\(\s*"([^"]+)"', common.read(root, "core/base/options.list"), re.M)
    known = texts(root, READERS)
    findings = []
    for key in rows:
        last = key.rsplit(".", 1)[1]
        if not ("*" in last or key in known or ("*" in key and last in known)):
            findings.append("core/base/options.list: nothing reads %s" % key)
    common.finish("options", findings, len(rows))


main()
