#!/usr/bin/env python3
"""Builds and runs the C programs that README.md shows, so that they are true.

usage: readme.py ROOT BUILD COMPILER FLAG...

Each block ```c of README.md that has a main is compiled with the given flags and run in an empty folder; a block
```text behind it is what the program must print, to the letter. The command `gcc p.c ...` of the page builds and runs it
once more, as it is printed, in a folder in which `sdk` and `build-release` are links to ROOT's and to BUILD.
"""
import os
import re
import subprocess
import sys
import tempfile

import blocks


def programs_of(text):
    """(program, what it prints or None) in the order of the page."""
    found = list(blocks.parse(text))
    for (_, language, _, body), behind in zip(found, found[1:] + [None]):
        if language == "c" and re.search(r"\bmain\(", body):
            yield body, behind[3] if behind and behind[1] == "text" else None


def typed(text, program, prints, root, build):
    """Runs the page's command as one would after the demo."""
    command = re.search(r"`(gcc p\.c [^`]*&& \./a\.out)`", text)
    if not command:
        sys.exit("README.md shows no command that builds its program from the checkout")
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(root, "sdk"), os.path.join(folder, "sdk"))
        os.symlink(build, os.path.join(folder, "build-release"))
        with open(os.path.join(folder, "p.c"), "w", encoding="utf-8") as out:
            out.write(program)
        done = subprocess.run(["sh", "-c", command.group(1)], cwd=folder, stdout=subprocess.PIPE, text=True)
    if done.returncode or done.stdout != prints:
        sys.exit("%s ended with %d and printed:\n%s" % (command.group(1), done.returncode, done.stdout))


def main():
    root, build, compiler, flags = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    with open(os.path.join(root, "README.md"), encoding="utf-8") as page:
        text = page.read()
    programs = list(programs_of(text))
    if not programs:
        sys.exit("README.md shows no C program")
    if not any("-fsanitize" in flag for flag in flags):
        typed(text, programs[0][0], programs[0][1], root, build)
    for number, (program, prints) in enumerate(programs, 1):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "program.c"), "w", encoding="utf-8") as out:
                out.write(program)
            subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "program.c", "-o", "program", *flags],
                           cwd=folder, check=True)
            done = subprocess.run([os.path.join(folder, "program")], cwd=folder, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit("program %d ended with %d" % (number, done.returncode))
        if prints is not None and done.stdout != prints:
            sys.exit("program %d printed:\n%sbut README.md says:\n%s" % (number, done.stdout, prints))
    print("%d programs built and run" % len(programs))


main()
