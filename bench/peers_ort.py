#!/usr/bin/env python3
"""usage: peers_ort.py MODEL.onnx N,C,H,W INPUT.f32

ONNX Runtime on one thread for bench/peers: the other side of bench/serve.c, with the same lines on stdin and stdout.
Runs in the environment of `tests/oracle/setup peers`.
"""
import sys
import time

import numpy as np
import onnxruntime


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.strip())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
    shape = [int(size) for size in sys.argv[2].split(",")]
    feed, output = {"data": np.fromfile(sys.argv[3], np.float32).reshape(shape)}, None
    print("ready onnxruntime %s" % onnxruntime.__version__, flush=True)
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "run":
            times = []
            for _ in range(int(rest)):
                start, used = time.perf_counter(), time.process_time()
                output = session.run(None, feed)[0]
                times.append(((time.perf_counter() - start) * 1e3, (time.process_time() - used) * 1e3))
            print(" ".join("%.4f:%.4f" % each for each in times), flush=True)
        elif word == "save":
            output.tofile(rest)
            print("saved", flush=True)


main()
