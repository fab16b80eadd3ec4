#!/usr/bin/env python3
"""Each public header compiles alone, included twice, as C11 and as C++17, with gcc and clang, without a warning; as C99
and the next C with all warnings that clang has, but for those about padding and about the word @threads.

usage: headers.py [ROOT [HEADER]...]      of these headers alone, as tenon/tenon.h
"""
import concurrent.futures
import glob
import os
import shutil
import subprocess
import sys

import common

C_FLAGS = ["-x", "c", "-std=c11", "-Wstrict-prototypes", "-Wconversion", "-Wshadow"]
CXX_FLAGS = ["-x", "c++", "-std=c++17"]
ALL_FLAGS = ["-Weverything", "-Wno-padded", "-fcomment-block-commands=threads"]


def compile_alone(job):
    root, header, compiler, flags = job
    text = "#include \"%s\"\n#include \"%s\"\n" % (header, header)
    if "c" in flags:
        text += "extern int only_to_have_a_declaration;\n"
    done = subprocess.run([compiler, *flags, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
                           "-I" + os.path.join(root, "sdk/include"), "-"], input=text, text=True, capture_output=True)
    first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
    return None if done.returncode == 0 else "%s, %s as %s: %s" % (header, compiler, flags[2], first)


def main():
    root = common.root_of(sys.argv)
    base = os.path.join(root, "sdk/include")
    names = sorted(os.path.relpath(p, base) for p in glob.glob(base + "/tenon/**/*.h", recursive=True))
    names = [name for name in names if name in sys.argv[2:] or not sys.argv[2:]]
    jobs = []
    for compiler, flags in (("gcc", C_FLAGS), ("clang", C_FLAGS), ("g++", CXX_FLAGS), ("clang++", CXX_FLAGS),
                            ("clang", ["-x", "c", "-std=c99", *ALL_FLAGS]),
                            ("clang", ["-x", "c", "-std=c2x", *ALL_FLAGS])):
        if shutil.which(compiler):
            jobs += [(root, name, compiler, flags) for name in names]
        else:
            print("headers: %s is not installed: skipped for it" % compiler)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [finding for finding in pool.map(compile_alone, jobs) if finding]
    common.finish("headers", findings, len(jobs))


main()
