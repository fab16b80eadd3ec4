#!/usr/bin/env python3
"""usage: kv_mxnet.py [2bit]

A process of a job of MXNet's dist_sync for bench/kv: what DMLC_ROLE says. A worker is the other side of
bench/kv_worker.c, with the same lines on stdin and stdout. Runs in the environment of `tests/oracle/setup mxnet`.
"""
import sys
import time

import numpy as np

if not hasattr(np, "bool"):
    np.bool = bool
import mxnet as mx  # a scheduler or server runs in here, and ends


def sizes_of(case):
    if case != "resnet50":
        return [int(case.split(":")[1])]
    sizes, inside = [], 64

    def conv(out, into, kernel):
        sizes.extend((out * into * kernel * kernel, out, out))

    conv(64, 3, 7)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        mid = 64 << stage
        for block in range(blocks):
            conv(mid, inside, 1)
            conv(mid, mid, 3)
            conv(4 * mid, mid, 1)
            if not block:
                conv(4 * mid, inside, 1)
            inside = 4 * mid
    return sizes + [1000 * inside, 1000]


class Load:
    def __init__(self, store, case, key):
        self.store, self.pulls = store, not case.startswith("push:")
        self.sizes = sizes_of(case)
        self.keys = list(range(key, key + len(self.sizes)))
        self.into = [mx.nd.zeros(size) for size in self.sizes]
        self.out = [mx.nd.zeros(size) for size in self.sizes]
        store.init(self.keys, self.into)

    def round(self):
        for at, key in enumerate(self.keys):
            self.store.push(key, self.into[at], priority=-at)
            if self.pulls:
                self.store.pull(key, self.out[at], priority=-at)
        if not self.pulls:
            mx.nd.waitall()
        for out in self.out if self.pulls else ():
            out.wait_to_read()

    def check(self, coded):
        rank, workers = self.store.rank, self.store.num_workers
        for array, size in zip(self.into, self.sizes):
            at = np.arange(size)
            array[:] = np.array((0.7, -0.7, 0.2), np.float32)[at % 3] if coded else (at % 7 + 1) * (rank + 1)
        self.round()
        for array, size in zip(self.out if self.pulls else (), self.sizes):
            at = np.arange(size)
            wanted = np.array((0.5, -0.5, 0))[at % 3] * workers if coded else (at % 7 + 1) * (workers * (workers + 1) // 2)
            if not np.array_equal(array.asnumpy(), wanted.astype(np.float32)):
                return False
        return True

    def run(self, rounds):
        self.round()
        times = []
        for _ in range(rounds):
            begun = time.perf_counter()
            self.round()
            times.append((time.perf_counter() - begun) * 1e6)
        return times


def main():
    store, load, key = mx.kv.create("dist_sync"), None, 0
    if sys.argv[1:] == ["2bit"]:
        store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    print("ready", mx.__version__, flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "make":
            load = Load(store, words[1], key)
            key += len(load.keys)
            print("made", flush=True)
        elif words[0] == "check":
            print("right" if load.check(words[2:] == ["2bit"]) else "wrong", flush=True)
        elif words[0] == "run":
            print(" ".join("%.2f" % each for each in load.run(int(words[2]))), flush=True)


main()
