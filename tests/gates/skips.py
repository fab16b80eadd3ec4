#!/usr/bin/env python3
"""usage: skips.py [ROOT] --build BUILD

Prints each test that the last run of CTest in BUILD skipped, with its reason: `skipped: NAME: REASON`. A test says its
reason in a line `skipped: REASON` before it skips; one that does not is red.
"""
import os
import re
import sys

import common


def skips(lines):
    """(test, reason) of each skip; the reason is "" where the test gave none."""
    program, reason, seen = "?", "", set()
    for line in lines:
        if match := re.match(r"\d+/\d+ Test: (\S+)", line):
            program, reason = match.group(1), ""
        elif line.startswith("[ RUN"):
            reason = ""
        elif line.startswith("skipped: "):
            reason = line[len("skipped: "):]
        elif match := re.match(r"\[ *SKIPPED *\] (\w+)$", line):
            if (program, match.group(1)) not in seen: # cmocka lists them again at the end
                seen.add((program, match.group(1)))
                yield "%s %s" % (program, match.group(1)), reason
        elif line == "Test Skipped.":
            yield program, reason


def main():
    root = common.root_of(sys.argv)
    build = sys.argv[sys.argv.index("--build") + 1]
    log = "Testing/Temporary/LastTest.log"
    found = []
    if os.path.isfile(os.path.join(build, log)):
        found = list(skips(common.read(build, log).splitlines()))
    for test, reason in found:
        if reason:
            print("skipped: %s: %s" % (test, reason))
    common.finish("skips", ["%s does not say why it is skipped" % test for test, reason in found if not reason], len(found))


main()
