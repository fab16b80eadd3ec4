#!/usr/bin/env python3
"""Shows that the fuzz driver finds a missing bound check: a parser is built without one of its checks.

    planted.py make NAME ROOT OUT             writes the parser's source without the check
    planted.py run PROGRAM TARGET CORPUS      runs the driver over it until it dies; TENON_RUNS bounds the mutations

`run` wants more than a crash: a sanitizer's report or a failed check of the target, the input that did it written
to a file, and TARGET, the same fuzz target over the parser as it is, to be content with that very input.
"""
import os
import re
import subprocess
import sys
import tempfile

RUNS = "20000"

# name: source, the check, what stands there instead
PLANTED = {
    "note": ("core/plugin/elf.c",
             "    if (at > s->size || count > s->size - at)\n"
             "        return tni_refuse(3, TN_E_FORMAT, \"the file ends inside its own tables\");\n"
             "    if (s->bytes) {",
             "    if (s->bytes) {"),
    "elf": ("core/plugin/link.c",
            "    if (!memchr(out, '\\0', left < size ? left : size))\n        return damaged(\"a name has no end\");\n",
            ""),
    "params": ("core/io/params_read.c", "    if (ndim > TN_NDIM_MAX)\n", "    if (ndim == UINT32_MAX)\n"),
    "idx": ("core/io/idx.c", "    if (head[3] == 0 || head[3] > TN_NDIM_MAX)\n", "    if (head[3] == 0)\n"),
    "definition": ("core/op/gradient_steps.c",
                   "    if (length >= TEXT_MAX || length > strlen(s->p.p))\n", "    if (length >= TEXT_MAX)\n"),
    "json_symbol": ("core/graph/json_read.c", "(uint64_t)value >= limit)", "value >= UINT32_MAX || limit == 0)"),
}


def make(name, root, out):
    source, check, instead = PLANTED[name]
    with open(os.path.join(root, source), encoding="utf-8") as file:
        text = file.read()
    if text.count(check) != 1:
        sys.exit("%s: the check to leave out is not there once, but %d times:\n%s" % (source, text.count(check), check))
    with open(out, "w", encoding="utf-8") as file:
        file.write("#line 1 \"%s\"\n" % os.path.join(root, source))
        file.write(text.replace(check, instead))


def run(program, target, corpus):
    environment = dict(os.environ, TENON_RUNS=os.environ.get("TENON_RUNS", RUNS))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, corpus], cwd=folder, env=environment, capture_output=True)
        said = (done.stdout + done.stderr).decode("utf-8", "replace")
        written = re.search(r"input written to (\S+) \((TENON_SEED=\d+, run \d+), \d+ bytes\)", said)
        if done.returncode == 0 or not written:
            sys.exit("not found, the driver ended with %d:\n%s" % (done.returncode, said[-2000:]))
        report = re.search(r"ERROR: AddressSanitizer: \S+|runtime error: [^\n]+|core dumped", said)
        environment["TENON_RUNS"] = "0"
        again = subprocess.run([target, os.path.join(folder, written.group(1))], cwd=folder, env=environment,
                               capture_output=True)
        if again.returncode:
            sys.exit("the parser as it is dies of the same input:\n%s" % again.stderr.decode("utf-8", "replace")[-2000:])
    print("found: %s (%s)" % (report.group(0) if report else "a check of the target failed", written.group(2)))


if sys.argv[1:2] == ["make"] and len(sys.argv) == 5 and sys.argv[2] in PLANTED:
    make(*sys.argv[2:])
elif sys.argv[1:2] == ["run"] and len(sys.argv) == 5:
    run(*sys.argv[2:])
else:
    sys.exit(__doc__)
