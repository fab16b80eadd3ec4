#!/usr/bin/env python3
"""usage: $(tests/oracle/setup mxnet)/bin/python tests/oracle/module.py

A training with MXNet 1.9.1's Module and one with its BucketingModule, into recorded/module, in MXNet's own files: the symbol,
parameters before (epoch 0) and after (epoch 4), batches and outputs. The test nn.module_mxnet makes the same steps.
"""
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
FOLDER = os.path.join(HERE, "recorded", "module")
sys.path.insert(0, HERE)
import ops  # noqa: E402  sets the environment for MXNet

import mxnet as mx  # noqa: E402

STEPS = 4
runner = ops.Runner()


def array(kind, shape, seed):
    count = 1
    for n in shape:
        count *= n
    return runner.array(ops.values_of(kind, "f32", count, seed), "f32", shape)


def net():
    x = mx.sym.Variable("data")
    slow = mx.sym.Variable("fc1_weight", lr_mult=0.5)
    x = mx.sym.FullyConnected(x, weight=slow, num_hidden=6, name="fc1")
    x = mx.sym.Activation(x, act_type="tanh", name="act")
    x = mx.sym.BatchNorm(x, fix_gamma=False, name="bn")
    x = mx.sym.FullyConnected(x, num_hidden=3, name="fc2")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def bucket(length):
    """Means over `length` rows, then layers that all lengths share."""
    x = mx.sym.mean(mx.sym.Variable("data"), axis=1, name="mean")
    x = mx.sym.FullyConnected(x, num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def first_values(module):
    """The same for all parameters whatever the order: by name."""
    args, states = module.get_params()
    for name, value in sorted(args.items()):
        value[:] = array("q" if name.endswith("gamma") else "r", value.shape, name)
    module.set_params(args, states)


def train(name, module, batches):
    """batches: (key, data, label). Weight decay and momentum act as the module's optimizer has them."""
    first_values(module)
    module.save_checkpoint(os.path.join(FOLDER, name), 0)
    module.init_optimizer(optimizer="sgd", optimizer_params=(("learning_rate", 0.3), ("momentum", 0.9), ("wd", 0.05)))
    kept = {}
    for step, (key, data, label) in enumerate(batches):
        module.forward(mx.io.DataBatch(data=[data], label=[label], bucket_key=key,
                                       provide_data=[("data", data.shape)], provide_label=[("softmax_label", label.shape)]),
                       is_train=True)
        module.backward()
        module.update()
        kept.update({"data%d" % step: data, "label%d" % step: label, "out%d" % step: module.get_outputs()[0].copy()})
    module.save_checkpoint(os.path.join(FOLDER, name), STEPS)
    mx.nd.save(os.path.join(FOLDER, name + "-batches.params"), kept)


def main():
    os.makedirs(FOLDER, exist_ok=True)
    plain = mx.mod.Module(net())
    plain.bind([("data", (4, 5))], [("softmax_label", (4,))])
    plain.init_params()
    train("plain", plain, [(None, array("r", (4, 5), "x%d" % i), array("i3", (4,), "y%d" % i)) for i in range(STEPS)])
    lengths = [5, 3, 4, 3]
    buckets = mx.mod.BucketingModule(lambda key: (bucket(key), ("data",), ("softmax_label",)), default_bucket_key=5)
    buckets.bind([("data", (2, 5, 4))], [("softmax_label", (2,))])
    buckets.init_params()
    train("buckets", buckets, [(n, array("r", (2, n, 4), "b%d" % i), array("i3", (2,), "l%d" % i))
                               for i, n in enumerate(lengths)])


if __name__ == "__main__":
    main()
