#!/usr/bin/env python3
"""usage: $(tests/oracle/setup mxnet)/bin/python tests/oracle/nn.py

What MXNet 1.9.1's Gluon computes for the losses, metrics, schedules, optimizers, initializers and layers of nn, into
recorded/nn/calls.txt.gz, for recurrent layers, unrolled cells and CTC into recorded/nn/sequences.txt.gz, and a net of two inputs and two
outputs as it exports one, recorded/nn/pair-*, and one with a parameter and a constant of its own, recorded/nn/own*. The tests mxnet.nn and mxnet.sequences replay them. The form is that of recorded/ops: `call KIND.NAME f32 OPTION=VALUE...`, then arrays; options are those of nn.
"""
import gzip
import io
import os
import re
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


class Wide(gluon.loss.SDMLLoss):
    """Its labels, too, in float64."""

    def _compute_labels(self, F, batch_size):
        return super()._compute_labels(F, batch_size).astype("float64")


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
    axes()
    labels = array("=1;-1;1;-1", (4,), "s", "f64")
    x, y, labels = x.astype("float32"), y.astype("float32"), labels.astype("float32")  # it has constants of float32
    loss("cosine_embedding", L.CosineEmbeddingLoss(), [x, y, labels])
    loss("cosine_embedding", L.CosineEmbeddingLoss(margin=0.25, weight=3), [x, y, labels], {"margin": 0.25, "weight": 3})
    x, y = array("r", (4, 3), "x", "f64"), array("r", (4, 3), "y", "f64")
    loss("sdml", Wide(), [x, y])
    loss("sdml", Wide(smoothing_parameter=0.1), [x, y], {"smoothing": 0.1})


def axes():
    """Classes and samples along other axes than the last and the first."""
    L, image = gluon.loss, array("r", (2, 3, 4), "image", "f64")
    spots, other = array("i3", (2, 4), "spots", "f64"), array("r", (2, 3, 4), "other", "f64")
    logs, dense = mx.nd.log_softmax(image, axis=1), mx.nd.softmax(other, axis=1)
    weight = array("q", (2, 1, 4), "spot weights", "f64")
    loss("softmax_ce", L.SoftmaxCELoss(axis=1), [image, spots], {"axis": 1})
    loss("softmax_ce", L.SoftmaxCELoss(axis=-2, weight=2), [image, spots, weight], {"axis": -2, "weight": 2, "sample_weight": 1})
    loss("softmax_ce", L.SoftmaxCELoss(axis=1, sparse_label=False), [image, dense], {"axis": 1, "dense": 1})
    loss("softmax_ce", L.SoftmaxCELoss(axis=1, from_logits=True), [logs, spots], {"axis": 1, "transformed": 1})
    loss("softmax_ce", L.SoftmaxCELoss(batch_axis=1), [image, array("i4", (2, 3), "steps", "f64")], {"batch_axis": 1})
    loss("softmax_ce", L.SoftmaxCELoss(axis=1, batch_axis=2), [image, spots], {"axis": 1, "batch_axis": 2})
    loss("kl_div", L.KLDivLoss(from_logits=False, axis=1), [image, dense], {"axis": 1})
    loss("kl_div", L.KLDivLoss(batch_axis=2), [logs, dense], {"transformed": 1, "batch_axis": 2})
    for name, made in (("l2", L.L2Loss), ("l1", L.L1Loss), ("huber", L.HuberLoss), ("hinge", L.HingeLoss),
                       ("sigmoid_ce", L.SigmoidBCELoss), ("logistic", L.LogisticLoss)):
        loss(name, made(batch_axis=1), [image, other], {"batch_axis": 1})
    loss("l2", L.L2Loss(batch_axis=1, weight=0.5), [image, other, array("q", (1, 3, 1), "sample weights", "f64")],
         {"batch_axis": 1, "weight": 0.5, "sample_weight": 1})
    loss("triplet", L.TripletLoss(batch_axis=1), [image, other, array("r", (2, 3, 4), "third", "f64")], {"batch_axis": 1})


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


def optimizer(name, given=None, options=None, shape=(3, 4), scale=1):
    made = mx.optimizer.create(name, **dict(given or {}, rescale_grad=0.5 * scale))
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

    words = {"updates_per_epoch": "epoch_updates", "warmup_strategy": "strategy"}
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
            ("ftrl", {}, {}), ("ftrl", {"learning_rate": 0.2, "lamda1": 0.3, "beta": 0.5}, {}),
            ("ftml", {}, {}), ("ftml", {"learning_rate": 0.1, "beta1": 0.5, "beta2": 0.9, "epsilon": 1e-3}, {}),
            ("lamb", {}, {}), ("lamb", {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}, {}),
            ("dcasgd", {"learning_rate": 0.1}, {}), ("dcasgd", {"learning_rate": 0.1, "lamda": 0.3}, {}),  # momentum fails
            ("lars", {"learning_rate": 0.5}, {}), ("lars", {"learning_rate": 0.5, "momentum": 0.9, "eta": 0.1, "eps": 0.01}, {"eps": "epsilon"}),
            ("lbsgd", {"learning_rate": 0.1, "momentum": 0.9}, {}),
            ("lbsgd", {"learning_rate": 0.1, "batch_scale": 3, "warmup_epochs": 2, "updates_per_epoch": 2}, words)]
    rows += [("lbsgd", {"learning_rate": 0.01, "momentum": 0.8, "batch_scale": 2, "warmup_strategy": s}, words)
             for s in ("power2", "sqrt", "lars")]
    for clip in ({}, {"clip_gradient": 0.3}):
        optimizer("groupadagrad", dict(clip, learning_rate=0.1), ours(dict(clip, learning_rate=0.1), {}))
    for name in ("sgd", "adam", "adagrad", "rmsprop", "ftrl", "lamb"):
        optimizer(name, {"wd": 0.01}, {"wd": 0.01, "rescale_grad": -3}, scale=-3)
    for name in ("adam", "adamax", "ftml", "lamb"):
        optimizer(name, {"begin_num_update": 7}, {"begin_num_update": 7})
    for name, given, names in rows:
        for more in common:
            told = {key: (int(value) if value is True else value) for key, value in ours(dict(given, **more), names).items()
                    if key is not None}
            optimizer(name, dict(given, **more), told)


def newer(name, step, options, shape=(3, 4)):
    """Optimizers that MXNet 1.9.1 lacks: by their papers, in float64. `step` gives the new weight."""
    o = dict({"lr": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-6, "wd": 0, "clip": np.inf, "lower_bound": 0,
              "upper_bound": np.inf, "no_bias_correction": 0}, **options)
    weight = array("u", shape, "weight")
    grads = [array("r", shape, "grad %d" % t) for t in range(6)]
    w, m, v, outs = weight.asnumpy().astype(np.float64), np.zeros(shape), np.zeros(shape), []
    for t, grad in enumerate(grads):
        w, m, v = step(o, w, grad.asnumpy().astype(np.float64) * 0.5, m, v, t + 1)
        outs.append(mx.nd.array(w, dtype="float32"))
    call("optimizer." + name, options, [weight] + grads, outs)


def corrected(o, t):
    return 1 if o["no_bias_correction"] else np.sqrt(1 - o["beta2"] ** t) / (1 - o["beta1"] ** t)


def adabelief(o, w, g, m, v, t):  # arXiv:2010.07468, as MXNet 2.0 has it: decay joins the gradient, epsilon the state
    g = np.clip(g + o["wd"] * w, -o["clip"], o["clip"])
    m = o["beta1"] * m + (1 - o["beta1"]) * g
    v = o["beta2"] * v + (1 - o["beta2"]) * (g - m) ** 2 + o["epsilon"]
    return w - o["lr"] * corrected(o, t) * m / (np.sqrt(v) + o["epsilon"]), m, v


def lans(o, w, g, m, v, t):  # arXiv:2006.13484, algorithm 2
    def trust(d):
        n = np.clip(np.linalg.norm(w0), o["lower_bound"], o["upper_bound"])
        return n / np.linalg.norm(d) if n * np.linalg.norm(d) > 0 else 1

    w0 = w
    g = np.clip(g / np.linalg.norm(g), -o["clip"], o["clip"])
    m, v = o["beta1"] * m + (1 - o["beta1"]) * g, o["beta2"] * v + (1 - o["beta2"]) * g * g
    scale = np.sqrt(v / (1 - o["beta2"] ** t)) + o["epsilon"]
    first = m / (1 - o["beta1"] ** t) / scale + o["wd"] * w
    w = w - o["lr"] * o["beta1"] * trust(first) * first
    second = g / scale + o["wd"] * w
    return w - o["lr"] * (1 - o["beta1"]) * trust(second) * second, m, v


def adamw(options, shape=(3, 4)):
    """By the wheel's operator; the rate is corrected as MXNet 2.0's AdamW has it."""
    o = dict({"lr": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-6, "wd": 0, "no_bias_correction": 0}, **options)
    weight, half = array("u", shape, "weight"), mx.nd.array([0.5])
    grads = [array("r", shape, "grad %d" % t) for t in range(6)]
    ins, outs, mean, var = [weight.copy()] + grads, [], weight * 0, weight * 0
    for t, grad in enumerate(grads):
        weight = mx.nd.contrib.adamw_update(weight, grad.copy(), mean, var, half, out=weight * 0, lr=1, eta=o["lr"] * corrected(o, t + 1),
                                            wd=o["wd"], beta1=o["beta1"], beta2=o["beta2"], epsilon=o["epsilon"],
                                            clip_gradient=o.get("clip", -1))
        outs.append(weight.copy())
    call("optimizer.adamw", options, ins, outs)


def half(name, given, options, shape=(3, 4)):
    """Weights and gradients of float16, updated in float32."""
    made = mx.optimizer.create(name, **dict(given, multi_precision=True, rescale_grad=0.5))
    update, weight = mx.optimizer.get_updater(made), array("u", shape, "half", "f16")
    grads = [array("r", shape, "half %d" % t, "f16") for t in range(6)]
    ins, outs = [weight.copy()] + grads, []
    for grad in grads:
        update(0, grad.copy(), weight)
        outs.append(weight.copy())
    call("half." + name, options, ins, outs, dtype="f16")


def newers():
    for more in ({}, {"wd": 0.01}, {"lr": 0.05, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3, "wd": 0.02, "clip": 0.3}):
        newer("lans", lans, more)
        for plain in ({}, {"no_bias_correction": 1}):
            newer("adabelief", adabelief, dict(more, **plain))
            adamw(dict(more, **plain))
    newer("lans", lans, {"lr": 0.1, "lower_bound": 3})
    newer("lans", lans, {"lr": 0.1, "upper_bound": 0.5})
    optimizer("lamb", {"learning_rate": 0.1, "lower_bound": 3, "wd": 0.01}, {"lr": 0.1, "lower_bound": 3, "wd": 0.01})
    optimizer("lamb", {"learning_rate": 0.1, "upper_bound": 0.5}, {"lr": 0.1, "upper_bound": 0.5})
    optimizer("lamb", {"learning_rate": 0.1, "bias_correction": False}, {"lr": 0.1, "no_bias_correction": 1})
    for name, given, ours in (
            ("sgd", {"learning_rate": 0.1, "wd": 0.01}, {"lr": 0.1, "wd": 0.01}),
            ("sgd", {"learning_rate": 0.1, "momentum": 0.9}, {"lr": 0.1, "momentum": 0.9}),
            ("nag", {"learning_rate": 0.1}, {"lr": 0.1}), ("adam", {"learning_rate": 0.01}, {"lr": 0.01}),
            ("signum", {"learning_rate": 0.01, "momentum": 0.9}, {"lr": 0.01, "momentum": 0.9}),
            ("rmsprop", {"learning_rate": 0.01}, {"lr": 0.01}), ("adagrad", {"learning_rate": 0.1}, {"lr": 0.1}),
            ("adadelta", {}, {}), ("adamax", {"learning_rate": 0.01}, {"lr": 0.01}), ("nadam", {"learning_rate": 0.01}, {"lr": 0.01}),
            ("ftrl", {}, {}), ("ftml", {"learning_rate": 0.01}, {"lr": 0.01}), ("dcasgd", {"learning_rate": 0.1}, {"lr": 0.1}),
            ("lars", {"learning_rate": 0.5, "momentum": 0.9, "eta": 0.1}, {"lr": 0.5, "momentum": 0.9, "eta": 0.1}),
            ("lbsgd", {"learning_rate": 0.1, "momentum": 0.9}, {"lr": 0.1, "momentum": 0.9}),
            ("lamb", {"learning_rate": 0.01}, {"lr": 0.01})):
        half(name, given, ours)


# ---- lazy updates: a weight of Embedding with sparse_grad, then ids and labels of each step; the weight after each


def lazy(name, given, options):
    net = gluon.nn.Embedding(5, 3, sparse_grad=True)
    net.initialize()
    ins, outs = [array("u", (5, 3), "lazy weight")], []
    net.weight.set_data(ins[0])
    trainer = gluon.Trainer(net.collect_params(), name, dict(given, lazy_update=True) if name in ("sgd", "adam") else dict(given),
                            kvstore=None)
    for step in range(4):
        ids = mx.nd.array([[0, 3, 3, 1], [4, 4, 1, 1], [2, 0, 2, 3], [3, 3, 3, 3]][step])
        labels = array("r", (4, 3), "lazy labels %d" % step)
        with autograd.record():
            value = gluon.loss.L2Loss()(net(ids), labels)
        value.backward()
        assert net.weight.list_grad()[0].stype == "row_sparse"
        trainer.step(4)
        ins += [ids, labels]
        outs.append(net.weight.data().tostype("default").copy())
    call("lazy." + name, options, ins, outs)


def lazies():
    for more, told in (({}, {}), ({"wd": 0.02}, {"wd": 0.02}), ({"clip_gradient": 0.1}, {"clip": 0.1})):
        rate, lr = dict(more, learning_rate=0.5), dict(told, lr=0.5)
        lazy("sgd", rate, lr)
        lazy("sgd", dict(rate, momentum=0.9), dict(lr, momentum=0.9))
        lazy("adam", dict(rate, learning_rate=0.02), dict(lr, lr=0.02))
        if not more.get("wd"):
            lazy("adagrad", rate, lr)
            lazy("groupadagrad", rate, lr)


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
    signs = [(x, 2 * labels - 1) for x, labels in two]
    for average in ("micro", "macro"):
        for batches in (two, signs):
            metric("f1", M.F1(average=average), batches, {"micro": int(average == "micro")})
            metric("mcc", M.MCC(average=average), batches, {"micro": int(average == "micro")})
    metric("f1", M.F1(), two)
    metric("mcc", M.MCC(), two)
    image = [(array("r", (n, 3, 2, 4), "image %d" % n), array("i3", (n, 2, 4), "spots %d" % n)) for n in (2, 3)]
    steps = [(mx.nd.softmax(array("r", (n, 4, 5), "steps %d" % n)), array("i5", (n, 4), "words %d" % n)) for n in (2, 3)]
    square = [(array("r", (n, 4, 4), "square %d" % n), array("i4", (n, 4), "columns %d" % n)) for n in (2, 3)]
    taken = [(array("i4", (n,), "taken %d" % n), array("i4", (n,), "right %d" % n)) for n in (9, 5)]
    metric("accuracy", M.Accuracy(), image)
    metric("accuracy", M.Accuracy(axis=-3), image, {"axis": -3})
    metric("accuracy", M.Accuracy(), square)
    for axis in (2, -1):
        metric("accuracy", M.Accuracy(axis=axis), square, {"axis": axis})
        metric("accuracy", M.Accuracy(axis=axis), steps, {"axis": axis})
    metric("accuracy", M.Accuracy(), taken)
    metric("accuracy", M.Accuracy(), [(x + 0.75, labels + 0.25) for x, labels in taken])  # compared as whole numbers
    metric("accuracy", M.Accuracy(), [(x.reshape((-1, 1)), labels.reshape((-1, 1))) for x, labels in taken])
    metric("accuracy", M.Accuracy(), [(x.reshape((-1, 1)), labels) for x, labels in taken])
    metric("pcc", M.PCC(), taken)
    metric("perplexity", M.Perplexity(3), [(x.reshape((-1, 5)), labels) for x, labels in steps], {"ignore": 3})
    for eps in (0.25, 1e-3):
        metric("cross_entropy", M.CrossEntropy(eps=eps), scores, {"eps": eps})
        metric("nll", M.NegativeLogLikelihood(eps=eps), scores, {"eps": eps})
    metric("perplexity", M.Perplexity(None), scores)
    metric("perplexity", M.Perplexity(2), scores, {"ignore": 2})
    metric("cross_entropy", M.CrossEntropy(), scores)
    metric("nll", M.NegativeLogLikelihood(), scores)
    for name, made in (("mae", M.MAE), ("mse", M.MSE), ("rmse", M.RMSE)):
        metric(name, made(), real)
        metric(name, made(), flat)
    metric("pearson", M.PearsonCorrelation(average="micro"), flat, {"micro": 1})
    metric("pearson", M.PearsonCorrelation(), flat)
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
    one, half, bias = mx.init.One(), mx.init.Constant(0.5), mx.init.LSTMBias(0.75)
    mixed = mx.init.Mixed(["l0_i2h_f", "r1_h2h.*weight", ".*"], [mx.init.Constant(2), one, mx.init.Constant(3)])
    fused("lstm", 3, 1, False, 1.0, one, {"weights": "one"})
    fused("lstm", 2, 2, True, 0.25, half, {"weights": "constant", "scale": 0.5, "forget": 0.25})
    fused("lstm", 4, 1, False, -1.5, bias, {"weights": "lstmbias", "scale": 0.75, "forget": -1.5})
    fused("lstm", 2, 2, True, 0.0, None, {"no_forget": 1})
    fused("lstm", 2, 2, True, 1.0, None, {"mixed": 1}, mixed)
    for mode in ("gru", "rnn_tanh", "rnn_relu"):
        fused(mode, 2, 2, mode != "gru", 1.0, half, {"weights": "constant", "scale": 0.5})
        fused(mode, 2, 2, True, 1.0, None, {"mixed": 1}, mixed)


def fused(mode, units, layers, both, forget, init, options, net=mx.init.Constant(0.25), width=3):
    """The vector of an RNN, where the net's initializer is `net`."""
    gates, each = {"lstm": 4, "gru": 3}.get(mode, 1), 1 + both
    size = gates * units * each * (width + units + 2 + (layers - 1) * (each * units + units + 2))
    made = mx.nd.zeros((size,))
    mx.init.FusedRNN(init, units, layers, mode, both, forget)._init_weight(mx.init.InitDesc("parameters", global_init=net), made)
    call("init.fusedrnn", {"mode": mode, "units": units, "layers": layers, "bidirectional": int(both), **options}, outs=[made])


def chosen():
    """Initializers by name, and values by name: weight, bias, weight, bias of two layers; the values come first."""
    values = array("r", (2, 3), "load")
    for name, ins, init in (
            ("chosen.mixed", [], mx.init.Mixed(["net_dense0", ".*"], [mx.init.Constant(2), mx.init.Constant(3)])),
            ("chosen.mixed_order", [], mx.init.Mixed([".*", "net_dense0"], [mx.init.One(), mx.init.Constant(3)])),
            ("chosen.load", [values], mx.init.Load({"arg:net_dense0_weight": values}, mx.init.Constant(4)))):
        made = [mx.nd.zeros(shape) for shape in ((2, 3), (2,), (1, 2), (1,))]
        for parameter, out in zip(("net_dense0_weight", "net_dense0_bias", "net_dense1_weight", "net_dense1_bias"), made):
            init(mx.init.InitDesc(parameter), out)  # as Module does
        call(name, {}, ins, made)


# ---- layers, in float64: x, then the parameters; gradients of all of them


def layer(name, block, shape, options=None, dtype="f64"):
    x = array("r", shape, "x", dtype)
    block.initialize()
    block.cast(ops.DTYPES[dtype])
    block(x)
    parameters = list(block.collect_params().values())
    parameters.sort(key=lambda p: p.grad_req == "null")  # a fixed gamma last: it has no gradient
    for number, parameter in enumerate(parameters):
        parameter.set_data(array("q" if "gamma" in parameter.name else "u", parameter.shape, str(number), dtype))
    ins = [x] + [parameter.data() for parameter in parameters]
    x.attach_grad()
    with autograd.record():
        out = block(x)
        scalar = (out * array("u", out.shape, "head", dtype)).sum()
    if not name.startswith("modulated"):  # which MXNet differentiates on GPUs alone
        scalar.backward()
    if name in ("selu", "modulateddeformableconv2d"):  # selu's gradient is lambda (alpha + y) there: tests/mxnet/gaps.txt
        call("layer." + name, options or {}, ins + [array("u", out.shape, "head", dtype)], [out], dtype=dtype)
        return
    call("layer." + name, options or {}, ins + [array("u", out.shape, "head", dtype)], [out],
         [x.grad] + [p.grad() for p in parameters if p.grad_req != "null"], dtype)


def layers():
    G, line, image, volume = gluon.nn, (2, 4, 9), (2, 4, 6, 7), (2, 4, 5, 6, 4)
    layer("conv1d", G.Conv1D(6, 3), line, {"channels": 6, "kernel": 3})
    layer("conv1d", G.Conv1D(6, 3, strides=2, padding=2, dilation=2, groups=2, use_bias=False), line,
          {"channels": 6, "kernel": 3, "stride": 2, "pad": 2, "dilate": 2, "groups": 2, "no_bias": 1})
    layer("conv2d", G.Conv2D(3, (3, 2), strides=(2, 1), padding=(1, 0), activation="relu"), image,
          {"channels": 3, "kernel": "3,2", "stride": "2,1", "pad": "1,0", "activation": "relu"})
    layer("conv1dtranspose", G.Conv1DTranspose(3, 3, strides=2, padding=1, output_padding=1), line,
          {"channels": 3, "kernel": 3, "stride": 2, "pad": 1, "adjust": 1})
    layer("conv2dtranspose", G.Conv2DTranspose(4, (3, 2), strides=(2, 1), padding=(1, 0), output_padding=(1, 0), groups=2,
                                               in_channels=4, activation="tanh"), image,
          {"channels": 4, "kernel": "3,2", "stride": "2,1", "pad": "1,0", "adjust": "1,0", "groups": 2, "activation": "tanh"})
    layer("conv2dtranspose", G.Conv2DTranspose(2, 2, dilation=2, use_bias=False), image,
          {"channels": 2, "kernel": 2, "dilate": 2, "no_bias": 1})
    layer("conv3dtranspose", G.Conv3DTranspose(2, 2, strides=2), volume, {"channels": 2, "kernel": 2, "stride": 2}, "f32")
    layer("conv3d", G.Conv3D(3, (3, 2, 2), strides=(2, 1, 1), padding=(1, 0, 1)), volume,
          {"channels": 3, "kernel": "3,2,2", "stride": "2,1,1", "pad": "1,0,1"})
    for sides, shape in ((1, line), (2, image), (3, volume)):
        for kind in ("max", "avg"):
            pool = getattr(G, "%sPool%dD" % (kind.title(), sides))
            name = "%spool%dd" % (kind, sides)
            layer(name, pool(), shape)
            layer(name, pool(3, 2, 1), shape, {"kernel": 3, "stride": 2, "pad": ",".join("1" * sides)})
            layer(name, pool(3, 2, ceil_mode=True), shape, {"kernel": 3, "stride": 2, "ceil": 1})
            layer("global" + name, getattr(G, "Global%sPool%dD" % (kind.title(), sides))(), shape)
        layer("avgpool%dd" % sides, getattr(G, "AvgPool%dD" % sides)(3, 2, 1, count_include_pad=False), shape,
              {"kernel": 3, "stride": 2, "pad": ",".join("1" * sides), "exclude_pad": 1})
    C = gluon.contrib.nn
    layer("pixelshuffle", C.PixelShuffle1D(2), line, {"factor": "2,0,0"})
    layer("pixelshuffle", C.PixelShuffle2D((2, 3)), (2, 12, 3, 2), {"factor": "2,3,0"})
    layer("pixelshuffle", C.PixelShuffle2D(2), image, {"factor": "2,0,0"})
    layer("pixelshuffle", C.PixelShuffle3D((2, 1, 3)), (2, 6, 2, 3, 1), {"factor": "2,1,3"})
    layer("batchnormrelu", G.BatchNormReLU(), image, {}, "f32")  # which MXNet has of images in float32 alone
    layer("batchnormrelu", G.BatchNormReLU(epsilon=0.01, center=False), image, {"epsilon": 0.01, "no_center": 1}, "f32")
    D = gluon.contrib.cnn
    for name, block in (("deformableconv2d", D.DeformableConvolution), ("modulateddeformableconv2d", D.ModulatedDeformableConvolution)):
        layer(name, block(3, (3, 3), padding=(1, 1)), image, {"channels": 3, "kernel": "3,3", "pad": "1,1"}, "f32")
        layer(name, block(6, (3, 2), strides=(2, 1), dilation=(1, 2), groups=2, num_deformable_group=2, use_bias=False,
                          offset_use_bias=False, activation="tanh"), image,
              {"channels": 6, "kernel": "3,2", "stride": "2,1", "dilate": "1,2", "groups": 2, "parts": 2, "no_bias": 1,
               "offset_no_bias": 1, "activation": "tanh"}, "f32")
    layer("instancenorm", G.InstanceNorm(scale=True), image, {"scale": 1}, "f32")
    layer("instancenorm", G.InstanceNorm(center=False, scale=True), image, {"scale": 1, "no_center": 1}, "f32")
    layer("instancenorm", G.InstanceNorm(epsilon=0.01), line, {"epsilon": 0.01}, "f32")
    layer("layernorm", G.LayerNorm(epsilon=0.01), (5, 6), {"epsilon": 0.01})
    layer("layernorm", G.LayerNorm(axis=1), line, {"axis": 1})
    layer("layernorm", G.LayerNorm(center=False), (5, 6), {"no_center": 1})
    layer("groupnorm", G.GroupNorm(num_groups=2, scale=False), image, {"groups": 2, "no_scale": 1})
    layer("groupnorm", G.GroupNorm(), image)
    layer("groupnorm", G.GroupNorm(num_groups=2, epsilon=0.01), image, {"groups": 2, "epsilon": 0.01})
    layer("prelu", G.PReLU(), image)
    layer("prelu", G.PReLU(in_channels=4), image, {"channels": 4})
    layer("leakyrelu", G.LeakyReLU(0.3), line, {"slope": 0.3})
    layer("reflectionpad2d", G.ReflectionPad2D(2), image, {"pad": 2})
    layer("elu", G.ELU(), line)
    layer("elu", G.ELU(0.4), line, {"alpha": 0.4})
    layer("selu", G.SELU(), line)
    layer("gelu", G.GELU(), line)
    layer("swish", G.Swish(), line)
    layer("swish", G.Swish(2.5), line, {"beta": 2.5})
    for name in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
        layer("activation", G.Activation(name), line, {"activation": name})
    layer("dense", G.Dense(5, activation="tanh"), image, {"units": 5, "activation": "tanh"})
    layer("dense", G.Dense(5, use_bias=False, flatten=False), line, {"units": 5, "no_bias": 1, "keep_axes": 1})


# ---- cells: three inputs, then the first states, then the parameters; all outputs and the last states


def cell(name, block, options=None, sides=()):
    xs = [array("r", (2, 3) + sides, "x%d" % step, "f64") for step in range(3)]
    block.initialize()
    block.cast("float64")
    states = [array("r", (2, 4) + sides, "state %d" % i, "f64") for i in range(len(block.state_info()))]
    block(xs[0], states)
    parameters = [block.params[block.prefix + key] for key in ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")]
    for parameter in parameters:
        parameter.set_data(array("u", parameter.shape, parameter.name[-10:], "f64"))
    ins, outs = xs + states + [parameter.data() for parameter in parameters], []
    with autograd.record():
        for x in xs:
            out, states = block(x, states)
            outs.append(out)
        total = sum(outs[1:], outs[0])
    total.backward()
    call("cell." + name, options or {}, ins, outs + states, [parameter.grad() for parameter in parameters], "f64")


def cells():
    R = gluon.rnn
    cell("rnn", R.RNNCell(4))
    cell("rnn", R.RNNCell(4, activation="relu"), {"activation": "relu"})
    cell("lstm", R.LSTMCell(4))
    cell("gru", R.GRUCell(4))
    cell("lstm", R.LSTMCell(4, activation="relu"), {"activation": "relu"})
    cell("lstm", R.LSTMCell(4, activation="softsign", recurrent_activation="tanh"), {"activation": "softsign", "recurrent": "tanh"})
    from mxnet.gluon.contrib import rnn as C
    windows = {"kernel": 3, "pad": 1, "state_kernel": 3}
    cell("rnn", C.Conv1DRNNCell((3, 5), 4, 3, 3, 1), windows, (5,))
    cell("lstm", C.Conv2DLSTMCell((3, 4, 3), 4, 3, 3, 1), windows, (4, 3))
    cell("gru", C.Conv3DGRUCell((3, 2, 3, 2), 4, 3, 3, 1), windows, (2, 3, 2))
    cell("lstm", C.Conv2DLSTMCell((3, 6, 5), 4, 3, 3, 2, i2h_dilate=2, h2h_dilate=2, activation="softsign"),
         {"kernel": 3, "pad": 2, "state_kernel": 3, "dilate": 2, "state_dilate": 2, "activation": "softsign"}, (6, 5))
    cell("gru", C.Conv1DGRUCell((3, 5), 4, 3, 3, 1, activation="relu"), dict(windows, activation="relu"), (5,))


# ---- layers of whole sequences: x, the first states, then the parameters by layer and direction


def recurrent(name, block, options=None, shape=(4, 2, 3)):
    x = array("r", shape, "x", "f64")
    block.initialize()
    block.cast("float64")
    states = [array("r", info["shape"], "state %d" % i, "f64")
              for i, info in enumerate(block.state_info(shape[block._layout.find("N")]))]
    block(x, states)
    parameters = list(block.collect_params().values())
    for parameter in parameters:
        parameter.set_data(array("u", parameter.shape, parameter.name[-12:], "f64"))
    for a in [x] + states:  # else MXNet leaves some gradients of parameters unwritten
        a.attach_grad()
    with autograd.record():
        out, last = block(x, states)
    out.backward()
    call("recurrent." + name, options or {}, [x] + states + [parameter.data() for parameter in parameters], [out] + last,
         [parameter.grad() for parameter in parameters], "f64")


def projected():
    """LSTMPCell: x of three steps, the first states, then the parameters."""
    from mxnet.gluon.contrib.rnn import LSTMPCell
    block = LSTMPCell(4, 3)
    xs = [array("r", (2, 3), "x%d" % step, "f64") for step in range(3)]
    states = [array("r", (2, width), "state %d" % width, "f64") for width in (3, 4)]
    block.initialize()
    block.cast("float64")
    block(xs[0], states)
    parameters = [block.params[block.prefix + key] for key in ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias", "h2r_weight")]
    for parameter in parameters:
        parameter.set_data(array("u", parameter.shape, parameter.name[-10:], "f64"))
    ins, total = xs + states + [parameter.data() for parameter in parameters], 0
    with autograd.record():
        for x in xs:
            out, states = block(x, states)
            total = out + total
    total.backward()
    call("projected.lstm", {}, ins, [total] + states, [parameter.grad() for parameter in parameters], "f64")


def recurrents():
    R = gluon.rnn
    projected()
    recurrent("rnn", R.RNN(4))
    recurrent("rnn", R.RNN(3, activation="tanh", num_layers=2), {"activation": "tanh", "units": 3, "layers": 2})
    recurrent("lstm", R.LSTM(4))
    recurrent("lstm", R.LSTM(3, num_layers=2, bidirectional=True, layout="NTC"),
              {"units": 3, "layers": 2, "bidirectional": 1, "layout": "NTC"}, (2, 4, 3))
    recurrent("gru", R.GRU(4))
    recurrent("gru", R.GRU(3, num_layers=2, bidirectional=True), {"units": 3, "layers": 2, "bidirectional": 1})


# ---- cells over whole sequences: x, perhaps lengths, then the parameters; the outputs and the last states


def unroll(name, block, cells, options, lengths=None):
    layout = options.get("layout", "TNC")
    x = array("r", (4, 3, 2) if layout == "TNC" else (3, 4, 2), "x")
    block.initialize()
    steps = array(lengths, (3,), "lengths") if lengths else None
    run = dict(layout=layout, merge_outputs=True, valid_length=steps)
    block.unroll(4, x, **run)
    parameters = [c.params[c.prefix + key] for c in cells for key in ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")]
    for number, parameter in enumerate(parameters):
        parameter.set_data(array("u", parameter.shape, "%d" % number))
    with autograd.record():
        out, states = block.unroll(4, x, **run)
    out.backward()
    call("unroll." + name, dict(options, lengths=1) if lengths else options,
         [x] + ([steps] if lengths else []) + [parameter.data() for parameter in parameters],
         [out] + states, [parameter.grad() for parameter in parameters])


def unrolls():
    R = gluon.rnn
    for layout in ("TNC", "NTC"):
        for lengths in (None, "=4;2;3"):
            left, right = R.LSTMCell(3), R.LSTMCell(3)
            unroll("both", R.BidirectionalCell(left, right), [left, right], {"layout": layout}, lengths)
            inner = R.GRUCell(2)
            unroll("residual", R.ResidualCell(inner), [inner], {"layout": layout}, lengths)


# ---- CTC: x, labels, perhaps lengths; in float32, which is all that MXNet has


def ctc(block, options, x, *rest):
    x.attach_grad()
    with autograd.record():
        out = block(x, *rest)
    out.backward()
    call("ctc.loss", options, [x] + [r for r in rest if r is not None], [out], [x.grad])


def ctcs():
    L, x, y = gluon.loss, array("r", (3, 6, 5), "x"), array("=1;2;-1;3;3;0;2;-1;-1", (3, 3), "y")
    steps, labels = array("=6;5;4", (3,), "t"), array("=2;3;1", (3,), "l")
    ctc(L.CTCLoss(), {}, x, y)
    ctc(L.CTCLoss(weight=0.5), {"weight": 0.5}, x, y)
    ctc(L.CTCLoss(layout="TNC"), {"layout": "TNC"}, array("r", (6, 3, 5), "x"), y)
    ctc(L.CTCLoss(), {"data_lengths": 1, "label_lengths": 1}, x, y, steps, labels)
    ctc(L.CTCLoss(), {"label_lengths": 1}, x, y, None, labels)
    ctc(L.CTCLoss(label_layout="TN"), {"label_layout": "TN"}, x, array("=1;3;2;2;0;-1", (3, 3), "turned").T)


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


def stale(name, given, options):
    """Two layers; each step reaches those of its mask, and leaves the other one as it is."""
    layers, x = [gluon.nn.Dense(3, use_bias=False, in_units=2) for _ in range(2)], array("r", (2, 2), "stale x")
    ins = [array("u", (3, 2), "stale %d" % i) for i in range(2)]
    for block, value in zip(layers, ins):
        block.initialize()
        block.weight.set_data(value)
    trainer = gluon.Trainer([block.weight for block in layers], name, given, kvstore=None)
    for mask in (3, 1, 2, 1, 3):
        with autograd.record():
            total = sum((block(x) ** 2).sum() for i, block in enumerate(layers) if mask >> i & 1)
        total.backward()
        trainer.step(2, ignore_stale_grad=True)
    call("stale." + name, options, ins + [x], [block.weight.data() for block in layers])


def stales():
    stale("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.1}, {"lr": 0.1, "momentum": 0.9, "wd": 0.1})
    for name in ("adam", "adamax", "lamb", "adagrad", "rmsprop"):
        stale(name, {"learning_rate": 0.1, "wd": 0.1}, {"lr": 0.1, "wd": 0.1})


def rotations():
    from mxnet.gluon.data.vision import transforms
    for shape in ((2, 5, 7), (3, 4, 4), (1, 6, 2)):
        x = array("r", shape, "rotated")
        for degrees in (0, 30, -75, 90, 180, 400.5):
            for zoom in (0, 1, -1):
                call("rotate.image", {"degrees": degrees, "zoom": zoom}, [x], [transforms.Rotate(degrees, zoom == 1, zoom == -1)(x)])


# ---- a net with a parameter and a constant of its own: its files, an output, gradients


class Own(gluon.HybridBlock):
    def __init__(self, **more):
        super().__init__(**more)
        with self.name_scope():
            self.fc = gluon.nn.Dense(4)
            self.scale = self.params.get("scale", shape=(4,), init=mx.init.Constant(1.5))
            self.shift = self.params.get_constant("shift", [[0.5, -1, 2, 0.25]])

    def hybrid_forward(self, F, x, scale, shift):
        return F.broadcast_add(F.broadcast_mul(self.fc(x), scale), shift)


def own():
    net, x, head = Own(prefix="own_"), array("r", (3, 5), "own x"), array("u", (3, 4), "own head")
    net.initialize()
    net(x)
    for name in ("weight", "bias"):
        getattr(net.fc, name).set_data(array("u", getattr(net.fc, name).shape, "own " + name))
    net.hybridize()
    with autograd.record():
        out = net(x)
        scalar = (out * head).sum()
    scalar.backward()
    call("own.net", {}, [x, head], [out], [net.scale.grad(), net.fc.weight.grad()])
    path = os.path.join(FOLDER, "own")
    net.save_parameters(path + ".params")
    net.export(path)
    with open(path + "-symbol.json") as file:
        text = file.read()
    with open(path + "-symbol.json", "w") as file:  # a constant's initializer has an address in its name
        file.write(re.sub(r"Constant_own_shift_\d+", "Constant_own_shift_0", text, flags=re.I))


def write(name):
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
        file.write(("\n".join(lines) + "\n").encode("ascii"))
    with open(os.path.join(FOLDER, name), "wb") as file:
        file.write(packed.getvalue())
    print("%s: %d calls, %d bytes" % (name, sum(line.startswith("call ") for line in lines), len(packed.getvalue())))
    lines.clear()


def main():
    os.makedirs(FOLDER, exist_ok=True)
    pair()
    losses()
    schedules()
    optimizers()
    newers()
    lazies()
    metrics()
    initializers()
    chosen()
    layers()
    cells()
    write("calls.txt.gz")
    recurrents()
    unrolls()
    ctcs()
    rotations()
    stales()
    own()
    write("sequences.txt.gz")


main()
