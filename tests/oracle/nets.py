#!/usr/bin/env python3
"""usage: nets.py PREFIX RECORD.params    (in the environment that `setup mxnet` makes)

Loads PREFIX-symbol.json and PREFIX-0000.params, which Tenon exported, runs them in MXNet on the inputs of the record that
net_run wrote, and compares the outputs: at most 1e-5 of the largest absolute value, and 1e-6.
"""
import os
import sys

os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"  # each operator by itself

import mxnet as mx  # noqa: E402


def main():
    prefix, record = sys.argv[1], mx.nd.load(sys.argv[2])
    symbol, args, aux = mx.model.load_checkpoint(prefix, 0)
    inputs = {name[3:]: value for name, value in record.items() if name.startswith("in:")}
    executor = symbol.bind(mx.cpu(), dict(args, **inputs), aux_states=aux, grad_req="null")
    outputs = executor.forward(is_train=False)
    wanted = sorted(name for name in record if name.startswith("out:"))
    if len(outputs) != len(wanted):
        sys.exit("%s: MXNet gives %d outputs, Tenon %d" % (prefix, len(outputs), len(wanted)))
    for name, output in zip(wanted, outputs):
        have, want = output.asnumpy(), record[name].asnumpy()
        if have.shape != want.shape:
            sys.exit("%s %s: MXNet gives %s, Tenon %s" % (prefix, name, have.shape, want.shape))
        far = abs(have - want).max()
        print("%s %s %s: %.2g away, of at most %.3g" % (os.path.basename(prefix), name, have.shape, far, abs(have).max()))
        if not far <= 1e-6 + 1e-5 * abs(have).max():
            sys.exit("%s %s: not equal" % (prefix, name))


main()
