"""What the gates share: the list of files, comments stripped, findings printed.

A gate is a program: exit 0 green, 1 red with one line per finding, 77 skipped with its reason. It takes the root of
the tree as its first argument (default: the tree it lies in), so that the self-test can run it on a planted fault.
"""
import os
import re
import subprocess
import sys

SKIP = 77
CODE = (".c", ".h", ".inc", ".list", ".cu")


def root_of(argv):
    if len(argv) > 1 and not argv[1].startswith("-"):
        return os.path.abspath(argv[1])
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tree_files(root):
    """Files of the tree, relative: what git tracks or would track; without git, all but build folders."""
    try:
        out = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"], check=True,
                             capture_output=True).stdout.decode()
        files = [name for name in out.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        files = []
        for folder, folders, names in os.walk(root):
            made = [f for f in folders if f in ("runs", "b") or f.startswith("build")] if folder == root else []
            folders[:] = [f for f in folders if f not in (".git", "__pycache__", *made)]
            files += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(name for name in files if os.path.isfile(os.path.join(root, name)))


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as source:
        return source.read()


def without_comments(text):
    """C text with comments and the insides of string literals blanked; line numbers stay."""
    def blank(match):
        found = match.group(0)
        if found[0] in "\"'":
            return found[0] + " " * (len(found) - 2) + found[-1]
        return re.sub(r"[^\n]", " ", found)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', blank, text, flags=re.S)


def finish(name, findings, checked):
    for finding in findings:
        print("%s: %s" % (name, finding))
    print("%s: %s, %d checked" % (name, "red, %d findings" % len(findings) if findings else "green", checked))
    sys.exit(1 if findings else 0)
