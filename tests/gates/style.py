#!/usr/bin/env python3
"""usage: style.py [ROOT [PATH...]]    (PATH: only files whose name starts so)

Sizes and layout: function <= 70 lines, .c <= 800 lines, line <= 110 columns, no tabs, no trailing blanks.

A function is what opens with `{` in column 0 and closes with `}` in column 0. style.exceptions beside this file lists
what may be larger, one `path kind name` per line with a reason behind `#`; an entry that is no longer needed is red,
and there may be at most EXCEPTIONS_MAX of them: lower it with every entry that goes, never raise it.
"""
import os
import re
import sys

import common

FUNCTION_LINES, FILE_LINES, COLUMNS = 70, 800, 110
EXCEPTIONS_MAX = 0


def function_name(lines, opening):
    text = ""
    for line in reversed(lines[max(0, opening - 12):opening]):
        text = line + " " + text
        match = re.search(r"([A-Za-z_]\w*)\s*\(", text)
        if match and not re.match(r"\s", line):
            return match.group(1)
    return "?"


def sizes(name, text):
    """(kind, what, line, message) of everything over a limit."""
    lines = text.split("\n")
    if name.endswith(".c") and len(lines) - 1 > FILE_LINES:
        yield "file", "-", 1, "%d lines, at most %d" % (len(lines) - 1, FILE_LINES)
    opening = None
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            yield "line", str(number), number, "%d columns, at most %d" % (len(line), COLUMNS)
        if "\t" in line:
            yield "tab", str(number), number, "a tab"
        if line != line.rstrip():
            yield "blank", str(number), number, "blanks at the end of the line"
        if line == "{":
            opening = number
        if opening and line[:1] == "}" and re.match(r"}(?!\s*\w)", line):
            if number - opening + 1 > FUNCTION_LINES:
                what = function_name(lines, opening - 1)
                yield "function", what, opening, "%s: %d lines, at most %d" % (what, number - opening + 1, FUNCTION_LINES)
            opening = None
    if text and not text.endswith("\n"):
        yield "end", "-", len(lines), "no newline at the end"


# Kernels are C that the host's compiler reads, too (plugins/cuda/kernels/kernel.h): words of CUDA stand in that header alone.
KERNELS = "plugins/cuda/kernels/"
CUDA_WORDS = re.compile(r"<<<|\basm\b|cooperative_groups|__\w*sync\w*|__shfl\w*|__ballot\w*|\batomic[A-Z]\w*|"
                        r"__(global|device|shared|constant|managed|host|launch_bounds)__|\b(thread|block)Idx\b|\b(block|grid)Dim\b|"
                        r"\btemplate\b|\bnew\b\s*\w+\[|\bmalloc\b")


def kernel_words(name, text):
    """(kind, what, line, message) of each word that is CUDA's alone."""
    if not name.startswith(KERNELS) or name == KERNELS + "kernel.h":
        return
    text = re.sub(r"/\*.*?\*/", lambda match: "\n" * match.group(0).count("\n"), text, flags=re.S)
    for number, line in enumerate(text.split("\n"), 1):
        for match in CUDA_WORDS.finditer(line):
            yield "kernel", match.group(0), number, "%s: kernels use the words of kernel.h" % match.group(0)
        if re.match(r"(static )?(const )?(u?int\d+_t|float|double) \w+(\[\w*\])* *(=|;)", line):
            yield "kernel", "global", number, "a variable of a device"


def read_exceptions(root):
    path = "tests/gates/style.exceptions"
    if not os.path.isfile(os.path.join(root, path)):
        return set()
    return {tuple(line.split("#")[0].split()) for line in common.read(root, path).splitlines()
            if line.split("#")[0].strip()}


def main():
    root = common.root_of(sys.argv)
    exceptions = read_exceptions(root)
    used, findings, checked = set(), [], 0
    for name in common.tree_files(root):
        if not name.endswith(common.CODE) or not name.startswith(tuple(sys.argv[2:]) or ""):
            continue
        checked += 1
        text = common.read(root, name)
        for kind, what, line, message in list(sizes(name, text)) + list(kernel_words(name, text)):
            if (name, kind, what) in exceptions:
                used.add((name, kind, what))
            else:
                findings.append("%s:%d: %s" % (name, line, message))
    exceptions = set() if sys.argv[2:] else exceptions
    findings += ["style.exceptions: \"%s\" is not needed any more: remove it" % " ".join(e) for e in exceptions - used]
    if len(exceptions) > EXCEPTIONS_MAX:
        findings.append("style.exceptions: %d entries, at most %d" % (len(exceptions), EXCEPTIONS_MAX))
    common.finish("style", findings, checked)


main()
