#!/usr/bin/env python3
"""Line coverage of single files, from a build with TN_COVERAGE after its tests have run.

usage: coverage.py ROOT BUILD PERCENT FILE...

Prints each file's share of executed lines; ends with 1 if one is below PERCENT or was never run. A name may be a
pattern; one that fits no file of the tree counts as such a file.
"""
import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile


def notes_of(build, source):
    """The .gcno files of a source: CMake names them after it."""
    ending = os.path.join(*source.split("/")[1:]) + ".gcno"
    return [path for path in glob.glob(os.path.join(build, "**/*.gcno"), recursive=True) if path.endswith("/" + ending)]


def line_counts(root, build, source):
    """{line: executions}, added up over all objects made of the source."""
    counts = {}
    for note in notes_of(build, source):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["gcov", "--json-format", note], cwd=folder, capture_output=True)
            for path in glob.glob(folder + "/*.gcov.json.gz"):
                with gzip.open(path) as report:
                    files = json.load(report)["files"]
                for entry in files:
                    if os.path.realpath(os.path.join(build, entry["file"])) == os.path.realpath(os.path.join(root, source)):
                        for line in entry["lines"]:
                            number = line["line_number"]
                            counts[number] = counts.get(number, 0) + line["count"]
    return counts


def ranges(lines):
    """[1, 2, 3, 7] as "1-3 7"."""
    parts = []
    for line in sorted(lines):
        if parts and parts[-1][1] == line - 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return " ".join("%d-%d" % tuple(p) if p[0] != p[1] else str(p[0]) for p in parts)


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__.strip())
    root, build, percent = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), float(sys.argv[3])
    low = 0
    for pattern in sys.argv[4:]:
        paths = sorted(glob.glob(os.path.join(root, pattern)))
        if not paths:
            low += 1
            print("there is no file %s" % pattern)
        for path in paths:
            source = os.path.relpath(path, root)
            counts = line_counts(root, build, source)
            missed = [line for line, count in counts.items() if not count]
            share = 100.0 * (len(counts) - len(missed)) / len(counts) if counts else 0.0
            low += share < percent
            print("%5.1f %%  %s%s" % (share, source, "   not run: " + ranges(missed) if share < percent and counts else ""))
    sys.exit(1 if low else 0)


main()
