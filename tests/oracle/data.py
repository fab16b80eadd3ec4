#!/usr/bin/env python3
"""usage: $(tests/oracle/setup mxnet)/bin/python tests/oracle/data.py

Small files of data, and the batches that MXNet 1.9.1's iterators make of them, into recorded/data: batches.params has, for each case,
epoch and batch, `CASE:EPOCH:BATCH:FIELD` and `…:pad`. The test nn.data_mxnet makes the same batches.
"""
import os
import shutil
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
FOLDER = os.path.join(HERE, "recorded", "data")
sys.path.insert(0, HERE)
import ops  # noqa: E402  sets the environment for MXNet

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402

kept = {}


def keep(case, it, epochs=1, real_only=False, names=("data", "label")):
    """real_only: what MXNet leaves in the filler is of no meaning."""
    for epoch in range(epochs):
        if epoch:  # it stands at its beginning; a reset would be an epoch
            it.reset()
        for index, got in enumerate(it):
            for name, array in zip(names, got.data + got.label):
                value = array.asnumpy().astype("float32")
                kept["%s:%d:%d:%s" % (case, epoch, index, name)] = value[:len(value) - got.pad] if real_only else value
            kept["%s:%d:%d:pad" % (case, epoch, index)] = np.array([got.pad], "float32")


def keep_arrays(case, count, batch, last, epochs):
    a = np.arange(count * 2, dtype="float32").reshape(count, 2)
    b = np.arange(count * 3, dtype="float32").reshape(count, 3, 1) + 100
    y = np.arange(count, dtype="float32")
    it = mx.io.NDArrayIter({"a": a, "b": b}, y, batch_size=batch, last_batch_handle=last, label_name="y")
    keep(case, it, epochs, names=("a", "b", "y"))


def path(name):
    return os.path.join(FOLDER, name)


def write_files():
    rng = np.random.RandomState(3)
    rows = np.round(8 * rng.randn(10, 4)) / 8  # that MXNet reads to the last bit
    np.savetxt(path("x.csv"), rows, fmt="%g", delimiter=",")
    np.savetxt(path("y.csv"), np.arange(10) % 3, fmt="%g")
    with open(path("x.libsvm"), "w") as f:
        for i in range(11):
            columns = sorted(rng.choice(7, i % 4, replace=False))
            f.write(" ".join(["%d" % (i % 2)] + ["%d:%g" % (c, round(8 * rng.randn()) / 8) for c in columns]) + "\n")
    with open(path("y.libsvm"), "w") as f:
        for i in range(11):
            f.write("0 0:%d 2:%g\n" % (i, 0.5 * i))
    images = rng.randint(0, 256, (11, 3, 5), dtype="uint8")
    with open(path("images"), "wb") as f:
        f.write(struct.pack(">IIII", 0x803, *images.shape) + images.tobytes())
    with open(path("labels"), "wb") as f:
        f.write(struct.pack(">II", 0x801, 11) + bytes(i % 10 for i in range(11)))
    for name, head in (("cifar10", 1), ("cifar100", 2)):
        for part in range(2):
            with open(path("%s_%d.bin" % (name, part)), "wb") as f:
                for i in range(2):
                    labels = rng.randint(0, 10, 1) if head == 1 else [rng.randint(0, 20), rng.randint(0, 100)]
                    f.write(bytes(int(x) for x in labels) + (rng.randint(0, 8, 3072) * 36).astype("uint8").tobytes())


def cifar(case, parts, kind, **attributes):
    dataset = object.__new__(kind)
    for name, value in attributes.items():
        setattr(dataset, name, value)
    got = [dataset._read_batch(path(p)) for p in parts]
    kept[case + ":0:0:data"] = np.concatenate([x for x, _ in got]).transpose(0, 3, 1, 2).astype("float32")
    kept[case + ":0:0:label"] = np.concatenate([y for _, y in got]).astype("float32")
    kept[case + ":0:0:pad"] = np.zeros(1, "float32")


def keep_samplers():
    """Numbers of samples as samplers give them, and slices of split_data: `CASE:EPOCH:BATCH:numbers`, `split:COUNT:SLICE:AXIS`."""
    from mxnet.gluon.contrib.data.sampler import IntervalSampler
    from mxnet.gluon.data import BatchSampler, FilterSampler, SequentialSampler
    found = {}
    samplers = {"keep": BatchSampler(SequentialSampler(10), 4, "keep"),
                "discard": BatchSampler(SequentialSampler(10), 4, "discard"),
                "roll_over": BatchSampler(SequentialSampler(10), 4, "rollover"),
                "few": BatchSampler(SequentialSampler(3), 4, "rollover"),
                "start": BatchSampler(SequentialSampler(5, start=7), 2, "keep"),
                "interval": BatchSampler(IntervalSampler(13, 3), 5, "keep"),
                "once": BatchSampler(IntervalSampler(13, 3, rollover=False), 5, "keep"),
                "filter": BatchSampler(FilterSampler(lambda x: x % 3 != 1, list(range(11))), 4, "keep")}
    for name, sampler in samplers.items():
        for epoch in range(4):
            for index, batch in enumerate(sampler):
                found["%s:%d:%d:numbers" % (name, epoch, index)] = np.array(batch, "float32")
    x = mx.nd.array(np.arange(60, dtype="float32").reshape(5, 4, 3))
    for count, axis in ((5, 0), (3, 0), (2, 1), (3, 1), (7, 0), (2, 2)):
        for index, part in enumerate(mx.gluon.utils.split_data(x, count, axis, even_split=False)):
            found["split:%d:%d:%d" % (count, index, axis)] = part.asnumpy()
    mx.nd.save(path("samplers.params"), {k: mx.nd.array(v) for k, v in found.items()})


def keep_transforms():
    """An image as gluon.data.vision's transforms change it; CenterCrop's larger size shrinks the window."""
    t = mx.gluon.data.vision.transforms
    image = mx.nd.array(np.random.RandomState(5).randint(0, 256, (6, 9, 3)), dtype="uint8")
    found = {"image": image}
    steps = {"to_tensor": [t.ToTensor()], "normalize": [t.ToTensor(), t.Normalize((0.25, 0.5, 0), (0.5, 2, 1))],
             "cast": [t.Cast("float32")], "center": [t.CenterCrop((4, 3))], "center_odd": [t.CenterCrop((7, 5))],
             "center_wide": [t.CenterCrop((18, 6))], "resize": [t.Resize((5, 7))], "resize_one": [t.Resize(4)],
             "resize_short": [t.Resize(4, keep_ratio=True)]}
    for name, each in steps.items():
        x = image
        for step in each:
            x = step(x)
        found[name] = x
    mx.nd.save(path("transforms.params"), {k: v.astype("float32") for k, v in found.items()})


def keep_sentences():
    """Batches of BucketSentenceIter in the order that they have before they are shuffled; `CASE:0:BATCH:bucket` is the key."""
    from mxnet.rnn import io
    io.random.shuffle = np.random.shuffle = lambda x: None
    lengths = [i * 7 % 10 + 1 for i in range(43)]
    sentences = [[(i * 5 + k * 3) % 11 + 1 for k in range(length)] for i, length in enumerate(lengths)]
    kept.clear()
    for case, batch, buckets, invalid, layout in (("given", 4, [7, 3, 9, 30], -1, "NT"), ("usual", 4, None, 0, "NT"),
                                                  ("few", 3, [2, 4, 8], 0, "NT"), ("time", 4, [7, 3, 9, 30], -1, "TN")):
        it = mx.rnn.BucketSentenceIter(sentences, batch, buckets=buckets, invalid_label=invalid, layout=layout)
        for index, got in enumerate(it):
            for name, value in (("data", got.data[0]), ("label", got.label[0]), ("bucket", mx.nd.array([got.bucket_key]))):
                kept["%s:0:%d:%s" % (case, index, name)] = value
        kept["%s:largest" % case] = mx.nd.array([it.default_bucket_key])
    mx.nd.save(path("sentences.params"), kept)


def keep_words():
    """Numbers of encode_sentences for the same lengths, and those of its vocabulary in the order of its words."""
    words = [["w%d" % ((i * 5 + k * 3) % 11 + 1) if (i + k) % 7 else "\n" for k in range(i * 7 % 10 + 1)] for i in range(43)]
    found = {}
    for case, options in (("plain", {}), ("inside", dict(invalid_label=3, start_label=1)), ("key", dict(invalid_label=0, invalid_key="<eos>"))):
        coded, vocab = mx.rnn.encode_sentences(words, **options)
        again, _ = mx.rnn.encode_sentences(words[::-1], vocab=vocab)
        for name, rows in (("tokens", coded), ("again", again), ("labels", [vocab.values()])):
            found["%s:%s" % (case, name)] = mx.nd.array([x for row in rows for x in row])
    mx.nd.save(path("words.params"), found)


def main():
    os.makedirs(FOLDER, exist_ok=True)
    write_files()
    for last in ("pad", "discard", "roll_over"):
        keep_arrays("arrays_" + last, 10, 4, last, 4)
    keep_arrays("arrays_even", 8, 4, "roll_over", 2)
    csv = dict(data_csv=path("x.csv"), data_shape=(4,), label_csv=path("y.csv"), label_shape=(1,), prefetch_buffer=1)
    keep("csv_round", mx.io.CSVIter(batch_size=4, round_batch=True, **csv), 4)
    keep("csv_keep", mx.io.CSVIter(batch_size=4, round_batch=False, **csv), 2, real_only=True)
    keep("csv_even", mx.io.CSVIter(batch_size=5, round_batch=True, **csv), 2)
    keep("csv_shape", mx.io.CSVIter(batch_size=5, **dict(csv, data_shape=(2, 2))), 1)
    svm = dict(data_libsvm=path("x.libsvm"), data_shape=(7,))
    keep("libsvm_round", mx.io.LibSVMIter(batch_size=4, round_batch=True, **svm), 3)
    keep("libsvm_labels", mx.io.LibSVMIter(batch_size=4, label_libsvm=path("y.libsvm"), label_shape=(3,), **svm), 1)
    for part in range(3):
        keep("libsvm_part%d" % part, mx.io.LibSVMIter(batch_size=1, num_parts=3, part_index=part, **svm), 1)
    mnist = dict(image=path("images"), label=path("labels"), shuffle=False, silent=True)
    keep("mnist", mx.io.MNISTIter(batch_size=4, **mnist), 2)
    keep("mnist_flat", mx.io.MNISTIter(batch_size=4, flat=True, **mnist), 1)
    for part in range(3):
        keep("mnist_part%d" % part, mx.io.MNISTIter(batch_size=1, num_parts=3, part_index=part, **mnist), 1)
    vision = mx.gluon.data.vision
    cifar("cifar10", ["cifar10_0.bin", "cifar10_1.bin"], vision.CIFAR10)
    cifar("cifar100", ["cifar100_0.bin", "cifar100_1.bin"], vision.CIFAR100, _fine_label=True)
    cifar("cifar20", ["cifar100_0.bin"], vision.CIFAR100, _fine_label=False)
    keep_samplers()
    keep_transforms()
    mx.nd.save(path("batches.params"), {k: mx.nd.array(v) for k, v in kept.items()})
    keep_sentences()
    keep_words()


if __name__ == "__main__":
    main()
