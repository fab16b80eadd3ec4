#!/usr/bin/env python3
"""usage: text.py ROOT BUILD

Runs the example text on short texts of this tree: the same figures and files hybridized and call by call, a perplexity that
is one, and the same outputs in MXNet, where that is installed. How well it reads the licences of a Debian system is for
hand: `build-dev/examples/text` says it.
"""
import os
import re
import sys
import tempfile

import examples


def main():
    root, build = sys.argv[1:]
    program = os.path.join(build, "examples", "text")
    with tempfile.TemporaryDirectory() as folder:
        hybrid, eager, texts = (os.path.join(folder, kind) for kind in ("hybrid", "eager", "texts"))
        examples.texts_write(root, texts)
        text = examples.run(program, hybrid, ["2", "1", texts], TENON_TRAIN_HYBRIDIZE="1")
        if text != examples.run(program, eager, ["2", "1", texts], TENON_TRAIN_HYBRIDIZE="0"):
            sys.exit("other figures call by call: %s" % text)
        examples.files_same(hybrid, eager, "", examples.bytes_of)
        print(text.strip().splitlines()[-1])
        found = re.search(r"(\d+) texts, \d+ characters held out: perplexity ([\d.]+), of 5-grams ([\d.]+)", text)
        if not found or int(found[1]) != 2 or not all(1 < float(found[k]) < 80 for k in (2, 3)):
            sys.exit("not as expected: %s" % text)
        examples.mxnet_check(root, build, hybrid, {"text": {"data": "3,20"}})


main()
