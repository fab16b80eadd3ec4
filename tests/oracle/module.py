#!/usr/bin/env python3
"""usage: $(tests/oracle/setup mxnet)/bin/python tests/oracle/module.py

Trainings with MXNet 1.9.1's Module, two from the first values that their variables ask for, one with its BucketingModule, and some of an LSTM over sentences in buckets, into recorded/module, in MXNet's own files: the symbol,
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


def given():
    """Variables that say how they begin and decay; one whose name does not tell what it is."""
    x = mx.sym.Variable("data")
    weight, bias = mx.sym.Variable("fc1_weight", init=mx.init.Constant(0.25)), mx.sym.Variable("fc1_bias", init=mx.init.LSTMBias(0.5))
    x = mx.sym.FullyConnected(x, weight=weight, bias=bias, num_hidden=8, name="fc1")
    x = mx.sym.LeakyReLU(x, act_type="prelu", name="act")
    offset = mx.sym.Variable("offset", shape=(1, 8), init=mx.init.Constant(-0.125), wd_mult=0.5)
    x = mx.sym.broadcast_add(x, offset, name="moved")
    bias = mx.sym.Variable("fc2_bias", init="ones", wd_mult=1.0)
    x = mx.sym.FullyConnected(x, bias=bias, num_hidden=3, name="fc2")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def rnns():
    """Vectors of RNNs: forget gates have a bias, weights are as the module says. (1.9.1 cannot read an own initializer of theirs.)"""
    x = mx.sym.Variable("data")
    own = mx.sym.Variable("own_parameters", init=mx.init.FusedRNN(None, 2, 1, "lstm", True, 0.5))
    own = mx.rnn.FusedRNNCell(2, mode="lstm", bidirectional=True, prefix="own_", params=Params("own_", own))
    x, _ = own.unroll(3, x, layout="NTC", merge_outputs=True)
    x, _ = mx.rnn.FusedRNNCell(3, 2, mode="gru", prefix="gru_").unroll(3, x, layout="NTC", merge_outputs=True)
    x = mx.sym.FullyConnected(x, num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(x, name="softmax")


class Params(mx.rnn.RNNParams):
    """One parameter, that is made already."""

    def __init__(self, prefix, made):
        super().__init__(prefix)
        self.made = made

    def get(self, name, **kwargs):
        return self.made


def first_values(module):
    """The same for all parameters whatever the order: by name."""
    args, states = module.get_params()
    for name, value in sorted(args.items()):
        value[:] = array("q" if name.endswith("gamma") else "r", value.shape, name)
    module.set_params(args, states)


def train(name, module, batches, more=(), begin=first_values):
    """batches: (key, data, label). Weight decay and momentum act as the module's optimizer has them."""
    begin(module)
    module.save_checkpoint(os.path.join(FOLDER, name), 0)
    module.init_optimizer(optimizer="sgd", optimizer_params=(("learning_rate", 0.3), ("momentum", 0.9), ("wd", 0.05)) + more)
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


def scored():
    """Two outputs with labels of their own: metrics count both."""
    x = mx.sym.Variable("data")
    outs = [mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=3, name="fc_" + name), name=name) for name in ("one", "two")]
    module = mx.mod.Module(mx.sym.Group(outs), label_names=("one_label", "two_label"))
    values = {"data": array("r", (6, 5), "scored"), "one_label": array("i3", (6,), "one"), "two_label": array("i3", (6,), "two")}
    batches = mx.io.NDArrayIter(values["data"], {name: values[name] for name in ("one_label", "two_label")}, 2)
    module.bind(batches.provide_data, batches.provide_label)
    module.init_params()
    first_values(module)
    module.save_checkpoint(os.path.join(FOLDER, "scored"), 0)
    for name, made in (("acc", mx.metric.Accuracy()), ("ce", mx.metric.CrossEntropy()), ("pcc", mx.metric.PCC())):
        values[name] = mx.nd.array([module.score(batches, made)[0][1]])
    mx.nd.save(os.path.join(FOLDER, "scored-batches.params"), values)


def sentences(name, layout, devices):
    """BucketingModule.fit over BucketSentenceIter, as example/rnn/bucketing has it: two epochs of an LSTM that is unrolled to each bucket, the
    orders not shuffled; the perplexity of the second one, and of a score behind it. With batches along the first axis or the second."""
    mx.rnn.io.random.shuffle = mx.rnn.io.np.random.shuffle = lambda x: None
    lengths = [i * 7 % 6 + 1 for i in range(26)]
    texts = [[(i * 5 + k * 3) % 11 + 1 for k in range(length)] for i, length in enumerate(lengths)]
    stack = mx.rnn.SequentialRNNCell()
    for layer in range(2):
        stack.add(mx.rnn.LSTMCell(num_hidden=3, prefix="lstm_l%d_" % layer))

    def unrolled(length):
        x = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=12, output_dim=4, name="embed")
        stack.reset()
        x, _ = stack.unroll(length, inputs=x, layout=layout + "C", merge_outputs=True)
        x = mx.sym.FullyConnected(mx.sym.Reshape(x, shape=(-1, 3)), num_hidden=12, name="pred")
        label = mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,))
        return mx.sym.SoftmaxOutput(x, label, name="softmax"), ("data",), ("softmax_label",)

    it = mx.rnn.BucketSentenceIter(texts, 4, buckets=[3, 6], invalid_label=0, layout=layout)
    module = mx.mod.BucketingModule(unrolled, default_bucket_key=it.default_bucket_key, context=[mx.cpu(i) for i in range(devices)])
    module.bind(it.provide_data, it.provide_label)
    module.init_params()
    first_values(module)
    if name == "sentences":  # the others begin so, too
        module.save_checkpoint(os.path.join(FOLDER, name), 0)
    metric, after = mx.metric.Perplexity(0), mx.metric.Perplexity(0)
    module.fit(it, eval_metric=metric, optimizer="sgd", optimizer_params=(("learning_rate", 0.5), ("momentum", 0.5), ("wd", 0.01)), num_epoch=2)
    module.score(it, after)
    module.save_checkpoint(os.path.join(FOLDER, name), 2)
    for length in it.buckets:
        file = os.path.join(FOLDER, "%s-%d-symbol.json" % (name, length))
        unrolled(length)[0].save(file) if devices == 1 else os.remove(file)
    os.remove(os.path.join(FOLDER, name + ".buckets"))
    mx.nd.save(os.path.join(FOLDER, name + "-perplexity.params"), {name: mx.nd.array([m.get()[1]]) for name, m in (("fit", metric), ("score", after))})


def main():
    os.makedirs(FOLDER, exist_ok=True)
    sentences("sentences", "NT", 1)
    sentences("time", "TN", 1)
    sentences("time-two", "TN", 2)
    plain = mx.mod.Module(net())
    plain.bind([("data", (4, 5))], [("softmax_label", (4,))])
    plain.init_params()
    train("plain", plain, [(None, array("r", (4, 5), "x%d" % i), array("i3", (4,), "y%d" % i)) for i in range(STEPS)])
    made = mx.mod.Module(given(), fixed_param_names=["act_gamma"])  # whose gradient is wrong there in a graph
    made.bind([("data", (4, 5))], [("softmax_label", (4,))])
    made.init_params(mx.init.Constant(0.0625))
    train("given", made, [(None, array("r", (4, 5), "g%d" % i), array("i3", (4,), "h%d" % i)) for i in range(STEPS)],
          (("rescale_grad", 0.125),), lambda module: None)
    scored()
    made = mx.mod.Module(rnns())
    made.bind([("data", (2, 3, 4))], [("softmax_label", (2,))])
    made.init_params(mx.init.Constant(0.25))
    train("rnns", made, [(None, array("r", (2, 3, 4), "r%d" % i), array("i3", (2,), "s%d" % i)) for i in range(STEPS)], (),
          lambda module: None)
    lengths = [5, 3, 4, 3]
    buckets = mx.mod.BucketingModule(lambda key: (bucket(key), ("data",), ("softmax_label",)), default_bucket_key=5)
    buckets.bind([("data", (2, 5, 4))], [("softmax_label", (2,))])
    buckets.init_params()
    train("buckets", buckets, [(n, array("r", (2, n, 4), "b%d" % i), array("i3", (2,), "l%d" % i))
                               for i, n in enumerate(lengths)])


if __name__ == "__main__":
    main()
