#!/usr/bin/env python3
"""usage: $(tests/oracle/setup mxnet)/bin/python tests/oracle/kv.py

MXNet 1.9.1's parameter store into recorded/kv/store.params, for the test api.kv_mxnet:

sum:V0 …, sum:OUT           values of devices, and the pull behind a push of them; `pushpull:`, the same by pushpull and a pull
NAME:W, NAME:G<step><place> an optimizer on a `local` store: first weight, gradients of two devices in 4 steps, the learning rate
NAME:W4, NAME:S<k>          halved before the third; the last weight, and the states
mixed-NAME:…                the same of a float16 weight with a float32 copy, one gradient in a step
rows:W, rows:G<place>, rows:IDS, rows:OUT   a row_sparse key, sgd with momentum, and row_sparse_pull
2bit:G<step>, 2bit:OUT<step>  gradients through compression 2bit of `dist_sync`: type `device` ends with a segmentation fault in
                            the wheel, and `local` refuses; one worker, one server and a scheduler on loopback

What MXNet refuses is printed, and asserted here: compression of type local, 1bit, a threshold of 0, a second init, mixed keys.
"""
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
FOLDER = os.path.join(HERE, "recorded", "kv")
sys.path.insert(0, HERE)

STEPS, SHAPE, ROUNDS, THRESHOLD = 4, (5, 3), 4, 0.5
OPTIMIZERS = {
    "sgd": dict(learning_rate=0.1, wd=0.01, rescale_grad=0.5),
    "sgd-momentum": dict(learning_rate=0.1, momentum=0.9, wd=0.01, clip_gradient=0.75),
    "nag-momentum": dict(learning_rate=0.1, momentum=0.9),
    "adam": dict(learning_rate=0.05, wd=0.01, beta1=0.8),
    "signum-momentum": dict(learning_rate=0.1, momentum=0.8, wd_lh=0.01),
    "rmsprop": dict(learning_rate=0.05, gamma1=0.8),
    "rmsprop-centered": dict(learning_rate=0.05, gamma1=0.8, gamma2=0.7, centered=True),
    "ftrl": dict(learning_rate=0.1, lamda1=0.02, beta=0.5, wd=0.01),
    "adagrad": dict(learning_rate=0.1, eps=1e-5, wd=0.01),
    "adadelta": dict(rho=0.8, epsilon=1e-4, wd=0.01),
    "adamax": dict(learning_rate=0.05, beta1=0.8, wd=0.01, clip_gradient=0.75),
    "nadam": dict(learning_rate=0.05, schedule_decay=0.01, wd=0.01),
    "ftml": dict(learning_rate=0.05, beta1=0.7, beta2=0.9, wd=0.01),  # 1 - 0.999^t loses four digits in its float32
    "dcasgd": dict(learning_rate=0.1, lamda=0.2, wd=0.01, rescale_grad=0.5),
    "lamb": dict(learning_rate=0.05, beta1=0.8, wd=0.01),
    "lars": dict(learning_rate=0.1, eta=0.05, wd=0.01),
    "lars-momentum": dict(learning_rate=0.1, momentum=0.9, eta=0.05, wd=0.01),
}
# On float16 weights, with a float32 copy.
MIXED = {
    "sgd": dict(learning_rate=0.1, momentum=0.9, wd=0.01, multi_precision=True),
    "adam": dict(learning_rate=0.05, multi_precision=True),
}


def coded():
    """The worker's part: prints nothing, writes 2bit.params."""
    import ops
    import mxnet as mx
    runner, kept = ops.Runner(), {}
    store = mx.kv.create("dist_sync")
    store.set_gradient_compression({"type": "2bit", "threshold": THRESHOLD})
    store.init("key", mx.nd.zeros((41,)))
    for step in range(ROUNDS):
        grad = runner.array(ops.values_of("r", "f32", 41, "g%d" % step), "f32", (41,))
        grad[0:4] = mx.nd.array([THRESHOLD, -THRESHOLD, THRESHOLD / 2, -THRESHOLD / 2])
        out = mx.nd.zeros((41,))
        store.push("key", grad)
        store.pull("key", out)
        kept.update({"2bit:G%d" % step: grad, "2bit:OUT%d" % step: out})
    mx.nd.save(os.path.join(FOLDER, "2bit.params"), kept)


def job():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = dict(os.environ, DMLC_PS_ROOT_URI="127.0.0.1", DMLC_PS_ROOT_PORT=str(port), DMLC_NUM_WORKER="1", DMLC_NUM_SERVER="1",
               DMLC_NODE_HOST="127.0.0.1")
    roles = [subprocess.Popen([sys.executable, __file__, role], env=dict(env, DMLC_ROLE=role))
             for role in ("scheduler", "server", "worker")]
    if roles[2].wait(timeout=120):
        sys.exit("the worker failed")
    for role in roles[:2]:
        role.wait(timeout=60)


def refused(call):
    try:
        call()
    except Exception as e:  # MXNetError, or Exception itself
        print(str(e).strip().splitlines()[-1][:100])
        return
    raise AssertionError("MXNet takes it")


def main():
    import ops
    import mxnet as mx
    runner, kept = ops.Runner(), {}

    def numbers(name, shape=SHAPE):
        count = 1
        for n in shape:
            count *= n
        return runner.array(ops.values_of("r", "f32", count, name), "f32", shape)

    store = mx.kv.create("local")
    store.init(3, numbers("first"))
    values = [numbers("v%d" % i) for i in range(2)]
    out = mx.nd.zeros(SHAPE)
    store.push(3, [v.as_in_context(mx.cpu(i)) for i, v in enumerate(values)])
    store.pull(3, out)
    kept.update({"sum:V0": values[0], "sum:V1": values[1], "sum:OUT": out.copy()})
    store.pushpull(3, [v * 2 for v in values], out=out)
    store.pull(3, out)
    kept["pushpull:OUT"] = out.copy()
    refused(lambda: store.init(3, out))
    refused(lambda: store.init("a", out))
    refused(lambda: store.set_gradient_compression({"type": "2bit"}))
    refused(lambda: mx.kv.create("device").set_gradient_compression({"type": "1bit"}))
    refused(lambda: mx.kv.create("device").set_gradient_compression({"type": "2bit", "threshold": 0}))
    for name, options in OPTIMIZERS.items():
        store = mx.kv.create("local")
        weight, out = numbers(name + "w"), mx.nd.zeros(SHAPE)
        store.init(0, weight)
        optimizer = mx.optimizer.create(name.split("-")[0], **options)
        store.set_optimizer(optimizer)
        kept[name + ":W"] = weight
        for step in range(STEPS):
            if step == 2:
                store._updater.optimizer.lr /= 2
            grads = [numbers("%s%d%d" % (name, step, i)) for i in range(2)]
            store.push(0, grads)
            kept.update({"%s:G%d%d" % (name, step, i): g for i, g in enumerate(grads)})
        store.pull(0, out)
        states = store._updater.states[0]
        states = () if states is None else states if isinstance(states, tuple) else (states,)
        kept.update({"%s:S%d" % (name, k): s for k, s in enumerate(s for s in states if s is not None)})
        kept[name + ":W4"] = out
    for name, options in MIXED.items():
        optimizer = mx.optimizer.create(name, **options)
        updater = mx.optimizer.get_updater(optimizer)
        weight = numbers("mixed" + name).astype("float16")
        kept["mixed-%s:W" % name] = weight.copy()
        for step in range(STEPS):
            if step == 2:
                optimizer.lr /= 2
            grad = numbers("mixed%s%d" % (name, step)).astype("float16")
            kept["mixed-%s:G%d0" % (name, step)] = grad
            updater(0, grad, weight)
        kept["mixed-%s:W4" % name] = weight
    store = mx.kv.create("local")
    weight = numbers("rows", (6, 2))
    store.init(9, weight.tostype("row_sparse"))
    store.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.1, momentum=0.9, wd=0.05))
    grads = [mx.nd.sparse.row_sparse_array((numbers("r%d" % i, (2, 2)).asnumpy(), ids), shape=(6, 2))
             for i, ids in enumerate(([0, 4], [1, 4]))]
    for _ in range(2):
        store.push(9, grads)
    ids = mx.nd.array([4, 0, 2, 4], dtype="int64")
    rows = mx.nd.sparse.zeros("row_sparse", (6, 2))
    store.row_sparse_pull(9, out=rows, row_ids=ids)
    kept.update({"rows:W": weight, "rows:G0": grads[0], "rows:G1": grads[1], "rows:IDS": ids, "rows:OUT": rows})
    os.makedirs(FOLDER, exist_ok=True)
    job()
    coded_file = os.path.join(FOLDER, "2bit.params")
    kept.update(mx.nd.load(coded_file))
    os.unlink(coded_file)
    mx.nd.save(os.path.join(FOLDER, "store.params"), kept)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif sys.argv[1] == "worker":
        coded()
    else:
        import mxnet  # noqa: F401  runs as what DMLC_ROLE says, and ends
