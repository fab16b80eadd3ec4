#!/usr/bin/env python3
"""usage: $(tests/oracle/setup mxnet)/bin/python tests/oracle/nn.py

What MXNet 1.9.1's Gluon computes for the losses, metrics, schedules, optimizers, initializers and layers of nn, into
recorded/nn/calls.txt.gz, and a net of two inputs and two outputs as it exports one, recorded/nn/pair-*. The test mxnet.nn
replays them. The form is that of recorded/ops: `call KIND.NAME f32 OPTION=VALUE...`, then arrays; options are those of nn.
"""
import gzip
import io
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
FOLDER = os.path.join(HERE, "recorded", "nn")
sys.path.insert(0, HERE)
import ops  # noqa: E402  sets the environment for MXNet

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from mxnet import autograd, gluon  # noqa: E402

runner = ops.Runner()
lines = []


def array(kind, shape, seed, dtype="f32"):
    count = int(np.prod(shape))
    return runner.array(ops.values_of(kind, dtype, count, seed), dtype, shape)


def call(name, options, ins=(), outs=(), grads=(), dtype="f32"):
    lines.append(" ".join(["call", name, dtype] + ["%s=%s" % pair for pair in options.items()]))
    lines.extend("in " + runner.text(a) for a in ins)
    lines.extend("out " + runner.text(a) for a in outs)
    lines.extend("grad %d %s" % (i, runner.text(a)) for i, a in enumerate(grads))


# ---- losses, in float64: x, labels, then what else there is; gradient of the sum of all numbers to x


def loss(name, block, ins, options=None, given=None):
    """`given`: arguments of the block, where they are not the inputs in their order."""
    x = ins[0]
    x.attach_grad()
    with autograd.record():
        out = block(*(given or ins))
    out.backward()
    call("loss." + name, options or {}, ins, [out], [x.grad], ins[0].dtype == np.float64 and "f64" or "f32")


def losses():
    L = gluon.loss
    x, y, z = (array("r", (4, 3), "x", "f64"), array("r", (4, 3), "y", "f64"), array("r", (4, 3), "z", "f64"))
    zero_one, unit, signs = array("h", (4, 3), "h", "f64"), array("q", (4, 3), "q", "f64"), array("=1;-1;-1;1;1", (4, 3), "s", "f64")
    classes, weight, positive = array("i3", (4,), "c", "f64"), array("q", (4, 1), "w", "f64"), array("p", (4, 3), "p", "f64")
    dense = mx.nd.softmax(array("r", (4, 3), "d", "f64"))
    logs = mx.nd.log_softmax(array("r", (4, 3), "l", "f64"))
    loss("l2", L.L2Loss(), [x, y])
    loss("l2", L.L2Loss(weight=0.7), [x, y, weight], {"weight": 0.7, "sample_weight": 1})
    loss("l1", L.L1Loss(), [x, y])
    loss("l1", L.L1Loss(weight=3), [x, y, weight], {"weight": 3, "sample_weight": 1})
    loss("softmax_ce", L.SoftmaxCELoss(), [x, classes])
    loss("softmax_ce", L.SoftmaxCELoss(weight=2), [x, classes, weight], {"weight": 2, "sample_weight": 1})
    loss("softmax_ce", L.SoftmaxCELoss(sparse_label=False), [x, dense], {"dense": 1})
    loss("softmax_ce", L.SoftmaxCELoss(from_logits=True), [logs, classes], {"transformed": 1})
    loss("softmax_ce", L.SoftmaxCELoss(from_logits=True, sparse_label=False), [logs, dense],
         {"transformed": 1, "dense": 1})
    loss("sigmoid_ce", L.SigmoidBCELoss(), [x, zero_one])
    loss("sigmoid_ce", L.SigmoidBCELoss(weight=0.5), [x, zero_one, weight], {"weight": 0.5, "sample_weight": 1})
    loss("sigmoid_ce", L.SigmoidBCELoss(), [x, zero_one, positive], {"pos_weight": 1}, [x, zero_one, None, positive])
    loss("sigmoid_ce", L.SigmoidBCELoss(from_sigmoid=True), [unit, zero_one], {"transformed": 1})
    loss("sigmoid_ce", L.SigmoidBCELoss(from_sigmoid=True), [unit, zero_one, positive],
         {"transformed": 1, "pos_weight": 1}, [unit, zero_one, None, positive])
    loss("kl_div", L.KLDivLoss(from_logits=False), [x, dense])
    loss("kl_div", L.KLDivLoss(), [logs, dense], {"transformed": 1})
    loss("huber", L.HuberLoss(), [x, y])
    loss("huber", L.HuberLoss(rho=2.5, weight=2), [x, y, weight], {"rho": 2.5, "weight": 2, "sample_weight": 1})
    loss("hinge", L.HingeLoss(), [x, signs])
    loss("hinge", L.HingeLoss(margin=2.5), [x, signs, weight], {"margin": 2.5, "sample_weight": 1})
    loss("squared_hinge", L.SquaredHingeLoss(), [x, signs])
    loss("squared_hinge", L.SquaredHingeLoss(margin=0.5), [x, signs], {"margin": 0.5})
    loss("logistic", L.LogisticLoss(), [x, signs])
    loss("logistic", L.LogisticLoss(label_format="binary"), [x, zero_one], {"binary": 1})
    loss("triplet", L.TripletLoss(), [x, y, z])
    loss("triplet", L.TripletLoss(margin=20, weight=2), [x, y, z], {"margin": 20, "weight": 2})
    loss("poisson_nll", L.PoissonNLLLoss(), [x, positive])
    loss("poisson_nll", L.PoissonNLLLoss(from_logits=False), [array("p", (4, 3), "r", "f64"), positive], {"transformed": 1})
    call("loss.poisson_nll", {"full": 1}, [x, positive],  # which MXNet cannot differentiate
         [L.PoissonNLLLoss(compute_full=True)(x, positive)], dtype="f64")
    labels = array("=1;-1;1;-1", (4,), "s", "f64")
    x, y, labels = x.astype("float32"), y.astype("float32"), labels.astype("float32")  # it has constants of float32
    loss("cosine_embedding", L.CosineEmbeddingLoss(), [x, y, labels])
    loss("cosine_embedding", L.CosineEmbeddingLoss(margin=0.25, weight=3), [x, y, labels], {"margin": 0.25, "weight": 3})


# ---- schedules: the rates of updates 1 to 40


def schedule(name, scheduler, options):
    rates = mx.nd.array([scheduler(step) for step in range(1, 41)], dtype="float64")
    call("schedule." + name, dict(options, lr=0.5), outs=[rates], dtype="f64")


def schedules():
    S, warm = mx.lr_scheduler, {"warmup_steps": 5, "warmup_begin_lr": 0.1}
    ours = {"warmup": 5, "lr_begin": 0.1}
    schedule("factor", S.FactorScheduler(7, 0.5, base_lr=0.5, stop_factor_lr=0.05), {"every": 7, "factor": 0.5, "lr_end": 0.05})
    for extra, mode in (({}, {}), (warm, ours), (dict(warm, warmup_mode="constant"), dict(ours, warmup_constant=1))):
        schedule("multifactor", S.MultiFactorScheduler([6, 9, 30], 0.3, base_lr=0.5, **extra),
                 dict(mode, milestones="6,9,30", factor=0.3))
        schedule("poly", S.PolyScheduler(30, base_lr=0.5, pwr=3, final_lr=0.05, **extra),
                 dict(mode, steps=30, power=3, lr_end=0.05))
        schedule("cosine", S.CosineScheduler(30, base_lr=0.5, final_lr=0.05, **extra), dict(mode, steps=30, lr_end=0.05))
    schedule("poly", S.PolyScheduler(25, base_lr=0.5), {"steps": 25})


# ---- optimizers: a weight, then the gradients of six steps; what the weight is after each


def optimizer(name, given=None, options=None, shape=(3, 4)):
    made = mx.optimizer.create(name, **dict(given or {}, rescale_grad=0.5))
    update, weight = mx.optimizer.get_updater(made), array("u", shape, "weight")
    grads = [array("r", shape, "grad %d" % step) for step in range(6)]
    ins, outs = [weight.copy()] + grads, []
    for grad in grads:
        if name == "nag" and made.momentum:  # in place its momentum reads the weight that it has just written
            update.states[0] = update.states.get(0, weight * 0)
            weight = mx.nd.nag_mom_update(weight, grad, update.states[0], out=weight * 0, lr=made.lr, wd=made.wd,
                                          momentum=made.momentum, rescale_grad=0.5, clip_gradient=made.clip_gradient or -1)
        else:
            update(0, grad.copy(), weight)
        outs.append(weight.copy())
    call("optimizer." + name, options or given or {}, ins, outs)


def optimizers():
    common = ({}, {"wd": 0.01}, {"wd": 0.01, "clip_gradient": 0.6})

    def ours(options, names):
        words = dict(names, learning_rate="lr", clip_gradient="clip")
        return {words.get(key, key): value for key, value in options.items()}

    rows = [("sgd", {"learning_rate": 0.1}, {}), ("sgd", {"learning_rate": 0.1, "momentum": 0.9}, {}),
            ("nag", {"learning_rate": 0.1}, {}), ("nag", {"learning_rate": 0.1, "momentum": 0.9}, {}),
            ("adam", {}, {}), ("adam", {"learning_rate": 0.02, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-4}, {}),
            ("signum", {"learning_rate": 0.1, "momentum": 0.9, "wd_lh": 0.02}, {}), ("signum", {"momentum": 0.0}, {"momentum": None}),
            ("rmsprop", {}, {}), ("rmsprop", {"learning_rate": 0.02, "gamma1": 0.8, "epsilon": 1e-4}, {}),
            ("rmsprop", {"centered": True, "gamma1": 0.95, "gamma2": 0.8}, {}),
            ("rmsprop", {"learning_rate": 0.2, "clip_weights": 0.5}, {}),
            ("adagrad", {"learning_rate": 0.1}, {}), ("adagrad", {"learning_rate": 0.1, "eps": 0.01}, {"eps": "epsilon"}),
            ("adadelta", {}, {}), ("adadelta", {"rho": 0.8, "epsilon": 1e-3}, {}),
            ("adamax", {}, {}), ("adamax", {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.9}, {}),
            ("nadam", {}, {}), ("nadam", {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.9, "schedule_decay": 0.1}, {}),
            ("dcasgd", {"learning_rate": 0.1}, {}), ("dcasgd", {"learning_rate": 0.1, "lamda": 0.3}, {})]  # momentum fails
    for name, given, names in rows:
        for more in common:
            told = {key: (int(value) if value is True else value) for key, value in ours(dict(given, **more), names).items()
                    if key is not None}
            optimizer(name, dict(given, **more), told)


# ---- metrics: predictions and labels of three batches; the value


def metric(name, made, batches, options=None):
    for x, labels in batches:
        made.update([labels], [x])
    value = mx.nd.array([made.get()[1]], dtype="float64")
    call("metric." + name, options or {}, [a for pair in batches for a in pair], [value])


def metrics():
    M = mx.metric
    scores = [(mx.nd.softmax(array("r", (n, 4), "scores %d" % n)), array("i4", (n,), "labels %d" % n)) for n in (5, 3, 6)]
    two = [(mx.nd.softmax(array("r", (n, 2), "two %d" % n)), array("b", (n,), "bits %d" % n)) for n in (7, 8, 9)]
    real = [(array("r", (n, 3), "real %d" % n), array("r", (n, 3), "truth %d" % n)) for n in (5, 3, 6)]
    flat = [(array("r", (n,), "flat %d" % n), array("r", (n,), "line %d" % n)) for n in (5, 3, 6)]
    metric("accuracy", M.Accuracy(), scores)
    for k in (1, 2, 3):
        metric("top_k_accuracy", M.TopKAccuracy(k) if k > 1 else M.Accuracy(), scores, {"k": k})
    for average in ("micro", "macro"):
        metric("f1", M.F1(average=average), two, {"macro": int(average == "macro")})
        metric("mcc", M.MCC(average=average), two, {"macro": int(average == "macro")})
    metric("perplexity", M.Perplexity(None), scores)
    metric("perplexity", M.Perplexity(2), scores, {"ignore": 2})
    metric("cross_entropy", M.CrossEntropy(), scores)
    metric("nll", M.NegativeLogLikelihood(), scores)
    for name, made in (("mae", M.MAE), ("mse", M.MSE), ("rmse", M.RMSE)):
        metric(name, made(), real)
        metric(name, made(), flat)
    metric("pearson", M.PearsonCorrelation(average="micro"), flat)
    metric("pearson", M.PearsonCorrelation(), flat, {"macro": 1})
    metric("pcc", M.PCC(), scores)
    metric("loss", M.Loss(), [(array("r", (n,), "loss %d" % n), array("r", (n,), "none")) for n in (4, 2)])


# ---- initializers without random numbers


def initializers():
    for shape in ((2, 1, 4, 4), (1, 2, 3, 5), (1, 1, 1, 1)):
        made = mx.nd.zeros(shape)
        mx.init.Bilinear()(mx.init.InitDesc("x_weight"), made)
        call("init.bilinear", {}, outs=[made])
    made = mx.nd.zeros((12,))
    mx.init.LSTMBias(0.75)._init_weight("x_bias", made)
    call("init.lstmbias", {"scale": 0.75}, outs=[made])


# ---- a net of two inputs and two outputs


class Pair(gluon.HybridBlock):
    def __init__(self, **more):
        super().__init__(**more)
        with self.name_scope():
            self.left, self.right = gluon.nn.Dense(5, activation="tanh"), gluon.nn.Dense(5)
            self.norm, self.out = gluon.nn.BatchNorm(), gluon.nn.Dense(2)

    def hybrid_forward(self, F, a, b):
        both = self.norm(self.left(a) + self.right(b))
        return self.out(both), F.concat(both, b, dim=1)


def pair():
    net, ins = Pair(prefix="pair_"), [array("r", (3, 4), "a"), array("r", (3, 6), "b")]
    net.initialize()
    net(*ins)
    for name, parameter in net.collect_params().items():
        parameter.set_data(array("q" if name.endswith("var") else "u", parameter.shape, name))
    net.hybridize()
    outs = net(*ins)
    call("net.pair", {}, ins, outs)
    net.export(os.path.join(FOLDER, "pair"))


def main():
    os.makedirs(FOLDER, exist_ok=True)
    pair()
    losses()
    schedules()
    optimizers()
    metrics()
    initializers()
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
        file.write(("\n".join(lines) + "\n").encode("ascii"))
    with open(os.path.join(FOLDER, "calls.txt.gz"), "wb") as file:
        file.write(packed.getvalue())
    print("%d calls, %d bytes" % (sum(line.startswith("call ") for line in lines), len(packed.getvalue())))


main()
