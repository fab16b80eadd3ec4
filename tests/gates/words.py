#!/usr/bin/env python3
"""No path of somebody's machine, no unfinished-work mark, no merge mark in any text file of the tree."""
import re
import sys

import common

# what a text has where a rule finds something, looked for first since that is quick; the rule
RULES = [
    (("/work/", "/root/", "/home/", "/Users/"), re.compile(r"(?<![\w.}$-])/(?:work|root|home|Users)/[\w.-]"),
     "an absolute path of one machine"),
    (("TO" + "DO", "FIX" + "ME", "X" + "XX"), re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b"), "a mark of unfinished work"),
    (("<" * 7, ">" * 7), re.compile(r"^(?:<{7}|>{7}) "), "a merge mark"),
    (("pypi", "pythonhosted", "npmjs", "crates"), re.compile(r"\b(?:pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|crates\.io)\b"),
     "the host name of a package registry"),
]


def main():
    root = common.root_of(sys.argv)
    findings, checked = [], 0
    for name in common.tree_files(root):
        with open("%s/%s" % (root, name), "rb") as source:
            data = source.read()
        if b"\0" in data or name == "LICENSE":
            continue
        checked += 1
        text = data.decode("utf-8", "replace")
        rules = [row[1:] for row in RULES if any(word in text for word in row[0])]
        for number, line in enumerate(text.split("\n"), 1) if rules else []:
            for rule, message in rules:
                if rule.search(line) and not name.endswith("gates/words.py"):
                    findings.append("%s:%d: %s: %s" % (name, number, message, line.strip()[:80]))
    common.finish("words", findings, checked)


main()
