#!/usr/bin/env python3
"""usage: examples.py ROOT BUILD COMPILER NAME

Trains an example and looks at what it is worth: the last line's figures within the bounds below and a loss that falls; the
same bits hybridized and call by call; the same names in its files when another compiler than COMPILER has built it; the
same outputs in MXNet, where that is installed. TENON_TEST_SHORT=1: one epoch of the first 256 digits, hybridized or call by
call, one with each commit, and that it ends well; nothing is compared.
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Bounds of the last line's figures; files and shapes of their inputs; arguments of the runs that are compared to the bit;
# those of the run with bounds (the same: no further run); lines of the program at most.
Example = collections.namedtuple("Example", "bounds nets first whole lines", defaults=(["1"], [], 70))
EXAMPLES = {
    "resnet18": Example({"accuracy": (0.9, 1)}, {"resnet18": {"data": "3,1,8,8"}}, ["1", "1", "1"], ["6", "1", "1"]),
    "two_inputs": Example({"right": (0.92, 1)}, {"two_inputs": {"upper": "3,1,4,8", "lower": "3,1,4,8"}}),
    "two_heads": Example({"digit": (0.92, 1), "odd": (0.92, 1)}, {"two_heads": {"data": "3,1,8,8"}}),
    "recurrent": Example({"accuracy": (0.92, 1)}, {"recurrent": {"data": "3,1,8,8"}}),
    "autoencoder": Example({"l1": (0, 0.1), "mse": (0, 0.0245)},
                           {"autoencoder": {"data": "3,1,8,8"}, "encoder": {"data": "3,1,8,8"}}),
    "ctc": Example({}, {"ctc": {"data": "3,1,12,48"}}, ["3", "1", "200"], ["3", "1", "200"], 150),
    "fcn": Example({"iou": (0.08, 1)}, {"fcn": {"data": "3,1,32,32"}}, ["4", "1", "160"], ["4", "1", "160"], 150),
    "ssd": Example({}, {"heads": {"data": "3,1,32,32"}}, ["3", "1", "100"], ["3", "1", "100"], 150),
    "bert": Example({"accuracy": (0.1, 1)}, {"bert": {"data": "3,32"}}, ["2", "1", "TEXTS"], ["2", "1", "TEXTS"], 150),
}
TEXTS = {"a": ("LICENSE", 4000), "b": ("examples/lenet.c", 2000), "short": ("LICENSE", 100)}  # the last one is passed over
# Passes that keep within bounds, but not to the bit, are left out.
EXACT = {"TENON_RUN_DETERMINISTIC": "threads", "TENON_COMPILE_PASSES_OFF": "fold,fuse,layout"}


# The first of each file of the digits, for short runs: its name, the bytes of its head and of an item, items.
SHORT_DATA = (("train-images-idx3-ubyte", 16, 64, 256), ("train-labels-idx1-ubyte", 8, 1, 256),
              ("t10k-images-idx3-ubyte", 16, 64, 128), ("t10k-labels-idx1-ubyte", 8, 1, 128))


def short_data(root, folder):
    """The settings of a program that is to read the first digits alone, which are written to FOLDER/digits."""
    os.makedirs(os.path.join(folder, "digits"))
    for name, head, item, items in SHORT_DATA:
        data = bytes_of(os.path.join(root, "examples/data/digits", name))
        with open(os.path.join(folder, "digits", name), "wb") as out:
            out.write(data[:4] + items.to_bytes(4, "big") + data[8:head + items * item])
    return {"TENON_DATA_PATH": folder}


def texts_write(root, folder):
    os.makedirs(folder)
    for name, (path, size) in TEXTS.items():
        with open(os.path.join(folder, name), "wb") as out:
            out.write(bytes_of(os.path.join(root, path))[:size])


def run(program, folder, words, **settings):
    os.makedirs(folder)
    done = subprocess.run([program] + words, cwd=folder, env=dict(os.environ, **EXACT, **settings), text=True,
                          stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit("%s ended with %d" % (program, done.returncode))
    return done.stdout


def graph_of(path):
    """The graph but for the order of its making, in which compilers differ where C leaves an order open."""
    with open(path, encoding="utf-8") as source:
        graph = json.load(source)
    for node in graph["nodes"]:
        node.get("attrs", {}).pop("__creation_index__", None)
    return graph


def bytes_of(path):
    with open(path, "rb") as source:
        return source.read()


def files_same(a, b, ending, content):
    names = sorted(name for name in os.listdir(a) if name.endswith(ending))
    if not names or names != sorted(name for name in os.listdir(b) if name.endswith(ending)):
        sys.exit("not the same files in %s and %s" % (a, b))
    for name in names:
        if content(os.path.join(a, name)) != content(os.path.join(b, name)):
            sys.exit("%s differs: %s, %s" % (name, a, b))


def figures_check(text, bounds):
    last = text.strip().splitlines()[-1].split("valid:")[1]
    figures = {name: float(value) for name, value in re.findall(r"(\w+) ([\d.]+)", last)}
    for name, (least, most) in bounds.items():
        if not least <= figures[name] <= most:
            sys.exit("%s is %g, %g to %g is expected: %s" % (name, figures[name], least, most, last))


def loss_check(text):
    """The loss of the last epoch is below that of the first."""
    losses = [float(value) for value in re.findall(r"^epoch +\d+ +loss ([\d.]+)", text, re.M)]
    if len(losses) < 2 or not losses[-1] < 0.95 * losses[0]:
        sys.exit("the loss does not fall: %s" % losses)


def other_compiler(root, build, compiler, name, folder, words, data):
    """The example built by another compiler gives its files the same names."""
    other = "gcc" if "clang" in os.path.basename(compiler) else "clang"
    if not shutil.which(other):
        print("another compiler: skipped, %s is not installed" % other)
        return
    program, sources = os.path.join(folder, name), [os.path.join(root, "examples", name + ".c")]
    if b'"helpers.h"' in bytes_of(sources[0]):
        sources.append(os.path.join(root, "examples", "helpers.c"))
    subprocess.run([other, "-std=c11", "-Wall", "-Wextra", "-Werror"] + sources + ["-o", program, "-I" + os.path.join(root, "sdk/include"), "-L" + os.path.join(build, "lib"),
                    "-Wl,-rpath," + os.path.join(build, "lib"), "-ltenon-nn", "-ltenon", "-lm"], check=True)
    run(program, program + "-files", ["1"] + words[1:], **data)
    files_same(os.path.join(folder, "hybrid"), program + "-files", ".json", graph_of)
    print("built by %s: equal names" % other)


def mxnet_check(root, build, folder, nets):
    home = os.environ.get("HOME", "")
    python = os.path.join(os.environ.get("TENON_ORACLE") or os.path.join(home, ".cache/tenon-oracle"), "mxnet/bin/python")
    if not os.path.exists(python):
        print("MXNet: skipped, %s is not there (tests/oracle/setup mxnet makes it)" % python)
        return
    for net, inputs in nets.items():
        prefix, record = os.path.join(folder, net), os.path.join(folder, net + "-record.params")
        words = [word for pair in inputs.items() for word in pair]
        subprocess.run([os.path.join(build, "tests/oracle/net_run"), prefix, record] + words, check=True)
        subprocess.run([python, os.path.join(root, "tests/oracle/nets.py"), prefix, record], check=True)


def main():
    root, build, compiler, name = sys.argv[1:]
    example = EXAMPLES[name]
    program = os.path.join(build, "examples", name)
    short = os.environ.get("TENON_TEST_SHORT") == "1"
    lines = len(bytes_of(os.path.join(root, "examples", name + ".c")).splitlines())
    if lines > example.lines:
        sys.exit("%s.c has %d lines, at most %d are allowed" % (name, lines, example.lines))
    with tempfile.TemporaryDirectory() as folder:
        hybrid, eager, whole, texts = (os.path.join(folder, kind) for kind in ("hybrid", "eager", "whole", "texts"))
        texts_write(root, texts)
        words, last = ([texts if word == "TEXTS" else word for word in list] for list in (example.first, example.whole))
        if short:
            words = last = ["1"] + words[1:]
        first = short_data(root, os.path.join(folder, "data"))
        data = first if short else {}
        if short:  # one of both with each commit
            way = int(os.environ.get("TENON_TEST_ROTATION") or 0) % 2
            print("with TENON_TRAIN_HYBRIDIZE=%d alone" % way)
            print(run(program, hybrid, words, TENON_TRAIN_HYBRIDIZE=str(way), **data).strip().splitlines()[-1])
            return
        text = run(program, hybrid, words, TENON_TRAIN_HYBRIDIZE="1", **data)
        if text != run(program, eager, words, TENON_TRAIN_HYBRIDIZE="0", **data):
            sys.exit("other figures call by call: %s" % text)
        files_same(hybrid, eager, "", bytes_of)
        print("hybridized and call by call: equal bits")
        if words == last:
            whole = hybrid
        else:
            text = run(program, whole, last)
        print(text.strip().splitlines()[-1])
        figures_check(text, example.bounds)
        loss_check(text)
        other_compiler(root, build, compiler, name, folder, words, first)
        mxnet_check(root, build, whole, example.nets)


if __name__ == "__main__":
    main()
