#!/usr/bin/env python3
"""usage: $(tests/oracle/setup images)/bin/python tests/oracle/image.py --files
       $(tests/oracle/setup mxnet)/bin/python tests/oracle/image.py

--files: images of all kinds, as Pillow writes them, into recorded/image. Without: what MXNet's _cvimdecode makes of them, as lines of
file, flag, height, width, channels and the FNV-1a hash (64 bits) of the pixels, into recorded/image/pixels.txt; the test api.image reads both.
"""
import glob
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
FOLDER = os.path.join(HERE, "recorded", "image")


def fnv(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = (h ^ b) * 0x100000001b3 & 0xffffffffffffffff
    return h


def files():
    import numpy as np
    from PIL import Image

    os.makedirs(FOLDER, exist_ok=True)
    y, x = np.mgrid[0:45, 0:61]
    colours = np.stack([(2 * x + y) % 256, (x + 3 * y) % 256, ((x * y) // 9) % 256], -1).astype("uint8")
    alpha = ((x + y) % 256)[..., None].astype("uint8")
    image, grey = Image.fromarray(colours), Image.fromarray(colours[..., 0])

    def save(name, what, **options):
        what.save(os.path.join(FOLDER, name), **options)

    turned = Image.Exif()
    turned[0x0112] = 6
    save("s420.jpg", image, quality=90)
    save("s422.jpg", image, quality=90, subsampling=1)
    save("s444.jpg", image, quality=95, subsampling=0)
    save("progressive.jpg", image, quality=90, progressive=True)
    save("restart.jpg", image, quality=90, restart_marker_blocks=2)
    save("turned.jpg", image, quality=90, exif=turned)
    save("grey.jpg", grey, quality=90)
    save("cmyk.jpg", image.convert("CMYK"), quality=90)
    save("rgb.png", image)
    save("grey.png", grey)
    save("palette.png", image.convert("P", palette=Image.Palette.ADAPTIVE))
    save("one.png", image.convert("1"))
    save("alpha.png", Image.fromarray(np.concatenate([colours, alpha], -1)))
    save("grey_alpha.png", Image.fromarray(np.concatenate([colours[..., :1], alpha], -1)))
    save("sixteen.png", Image.fromarray(colours[..., 1].astype("uint16") * 257 + 13))
    palette = image.convert("P", palette=Image.Palette.ADAPTIVE, colors=16)
    save("clear.png", palette, transparency=3, bits=4)


def iterated():
    """Three images of other sizes, for iterators: recorded/image/iter."""
    import numpy as np
    from PIL import Image

    os.makedirs(os.path.join(FOLDER, "iter"), exist_ok=True)
    for k, (w, h) in enumerate([(100, 75), (64, 90), (52, 50), (81, 81), (60, 120)]):
        y, x = np.mgrid[0:h, 0:w]
        waves = [127 + 90 * np.sin((x * (k + 1) + y * c) / (7.0 + 5 * c)) + 30 * np.cos(y / (3.0 + c)) for c in range(3)]
        image = Image.fromarray(np.clip(np.stack(waves, -1), 0, 255).astype("uint8"))
        path = os.path.join(FOLDER, "iter", "%d.%s" % (k, "png" if k == 2 else "jpg"))
        image.save(path, **({} if k == 2 else {"quality": 85}))


SHAPE = (3, 48, 48)
ARGS = [
    dict(), dict(data_shape=(1, 48, 48)), dict(resize=56), dict(resize=120), dict(data_shape=(3, 110, 104)),
    dict(mean_r=123.68, mean_g=116.28, mean_b=103.53, std_r=58.395, std_g=57.12, std_b=57.375, scale=0.5),
    dict(mirror=1), dict(pad=4, fill_value=7), dict(pad=9, resize=49, mirror=1), dict(rotate=30), dict(rotate=90, resize=60),
    dict(min_random_scale=0.8, max_random_scale=0.8), dict(min_random_scale=1.7, max_random_scale=1.7),
    dict(min_aspect_ratio=1.3, max_aspect_ratio=1.3), dict(max_img_size=70, min_img_size=64),
    dict(min_crop_size=40, max_crop_size=40), dict(min_crop_size=50, max_crop_size=50, inter_method=3),
    dict(resize=52, inter_method=0), dict(resize=56, inter_method=2), dict(resize=49, inter_method=3), dict(resize=200, inter_method=3),
    dict(resize=51, inter_method=4), dict(resize=63, inter_method=9), dict(resize=100, inter_method=9), dict(resize=150, inter_method=2),
    dict(batch_size=2), dict(batch_size=2, num_parts=2, part_index=0),
    dict(batch_size=1, num_parts=3, part_index=0), dict(path_imgidx=True, batch_size=1, num_parts=2, part_index=1),
    dict(path_imglist=True, label_width=2),
]


def records():
    """recorded/image/iter.rec, .idx, .lst of these; iter.txt: arguments, then for each batch of two epochs its filler, labels, hash."""
    import mxnet as mx

    at = os.path.join(FOLDER, "iter")
    out = mx.recordio.MXIndexedRecordIO(at + ".idx", at + ".rec", "w")
    with open(at + ".lst", "w") as lst:
        for k, path in enumerate(sorted(glob.glob(os.path.join(at, "*")))):
            with open(path, "rb") as f:
                out.write_idx(k, mx.recordio.pack(mx.recordio.IRHeader(0, float(k % 3), 10 + k, 0), f.read()))
            lst.write("%d\t%f\t%f\titer/%s\n" % (10 + k, k / 2, -k, os.path.basename(path)))
    out.close()
    with open(at + ".txt", "w") as txt:
        for args in ARGS:
            files = dict(path_imgidx=at + ".idx", path_imglist=at + ".lst")
            given = dict(dict(data_shape=SHAPE, batch_size=5), **args)
            txt.write("args %s\n" % " ".join("%s=%s" % (k, str(v).replace(" ", "")) for k, v in sorted(given.items())))
            given.update((k, files[k]) for k in files if k in args)
            it = mx.io.ImageRecordIter(path_imgrec=at + ".rec", preprocess_threads=1, verbose=False, **given)
            for epoch in range(2):
                for batch in it:
                    x = batch.data[0].asnumpy()
                    labels = ",".join("%g" % v for v in batch.label[0].asnumpy().ravel())
                    txt.write("%d %d %s %016x\n" % (epoch, batch.pad, labels, fnv(x.tobytes())))
                    if os.environ.get("TENON_KEEP"):
                        x.tofile(os.path.join(os.environ["TENON_KEEP"], "%d-%d.bin" % (ARGS.index(args), epoch)))
                it.reset()


BOX_ARGS = [
    dict(), dict(data_shape=(1, 48, 48)), dict(resize=60), dict(inter_method=2), dict(inter_method=3), dict(inter_method=4),
    dict(inter_method=9, data_shape=(3, 80, 70)), dict(rand_mirror_prob=1), dict(rand_mirror_prob=1, resize=71),
    dict(mean_r=123.68, mean_g=116.28, mean_b=103.53, std_r=58.395, std_g=57.12, std_b=57.375, scale=0.5),
    dict(resize_mode="shrink", data_shape=(3, 64, 80)), dict(resize_mode="fit", data_shape=(3, 96, 64)),
    dict(label_pad_width=30, label_pad_value=5), dict(batch_size=2), dict(batch_size=2, num_parts=2, part_index=0),
    dict(path_imglist=True),
]


def boxes():
    """recorded/image/boxes.rec, .lst of the same images with boxes; boxes.txt: as iter.txt, the hash of the pixels that images have."""
    import mxnet as mx

    at = os.path.join(FOLDER, "boxes")
    out = mx.recordio.MXRecordIO(at + ".rec", "w")
    with open(at + ".lst", "w") as lst:
        for k, path in enumerate(sorted(glob.glob(os.path.join(FOLDER, "iter", "*")))):
            objects = [[(k + i) % 4, 0.125 * i, 0.0625 * k, 0.5 + 0.125 * i, 0.75, 0.5 * i] for i in range(1 + k % 3)]
            if k == 3:
                objects.append([1, 0.5, 0.5, 0.5, 0.75, 0])  # without an area
            numbers = [3, 6, 7.5] + [v for o in objects for v in o]
            with open(path, "rb") as f:
                out.write(mx.recordio.pack(mx.recordio.IRHeader(0, numbers, 10 + k, 0), f.read()))
            other = [2, 5] + [v for o in reversed(objects) for v in o[:5]]
            lst.write("%d\t%s\titer/%s\n" % (10 + k, "\t".join("%g" % v for v in other), os.path.basename(path)))
    out.close()
    with open(at + ".txt", "w") as txt:
        for args in BOX_ARGS:
            given = dict(dict(data_shape=SHAPE, batch_size=5), **args)
            txt.write("args %s\n" % " ".join("%s=%s" % (k, str(v).replace(" ", "")) for k, v in sorted(given.items())))
            if "path_imglist" in args:
                given["path_imglist"] = at + ".lst"
            it = mx.io.ImageDetRecordIter(path_imgrec=at + ".rec", preprocess_threads=1, verbose=False, **given)
            for epoch in range(2):
                for batch in it:
                    x, y = batch.data[0].asnumpy(), batch.label[0].asnumpy()
                    there = b"".join(v[:, : int(l[1]), : int(l[2])].tobytes() for v, l in zip(x, y))
                    txt.write("%d %d %s %016x\n" % (epoch, batch.pad, ",".join("%.9g" % v for v in y.ravel()), fnv(there)))
                it.reset()


def pixels():
    import mxnet as mx
    import numpy as np

    with open(os.path.join(FOLDER, "pixels.txt"), "w") as out:
        for path in sorted(glob.glob(os.path.join(FOLDER, "*.jpg")) + glob.glob(os.path.join(FOLDER, "*.png"))):
            data = mx.nd.array(np.fromfile(path, "uint8"), dtype="uint8")
            for flag in (0, 1):
                got = mx.nd._internal._cvimdecode(data, flag=flag, to_rgb=1).asnumpy()
                out.write("%s %d %d %d %d %016x\n" % (os.path.basename(path), flag, *got.shape, fnv(got.tobytes())))


def operators():
    """recorded/image/operators.txt: operator, arguments, shape of the image, then that of the result and the hash of its bytes.

    Byte i of an image is (7 i + i / 5) % 256; a call that MXNet refuses has `refused` in the place of shape and hash.
    """
    import mxnet as mx
    import numpy as np

    def calls():
        for shape in ((45, 61, 3), (45, 61, 1), (32, 64, 3), (7, 5, 4), (9, 6, 6), (1, 1, 3)):
            for w, h in ((61, 45), (30, 22), (32, 16), (16, 8), (100, 80), (1, 1), (64, 7), (3, 90)):
                for interp in range(5):
                    yield "_cvimresize", shape, dict(w=w, h=h, interp=interp)
        yield "_cvimresize", (4, 4, 3), dict(w=0, h=3)
        yield "_cvimresize", (4, 4, 3), dict(w=3, h=-1)
        yield "_cvimresize", (4, 4, 3), dict(w=3, h=3, interp=7)
        for shape in ((2, 3, 1), (5, 4, 3), (3, 2, 4), (1, 1, 3), (4, 1, 3)):
            for kind in range(5):
                for top, bot, left, right in ((0, 0, 0, 0), (1, 2, 3, 4), (9, 0, 0, 11), (0, 7, 8, 0)):
                    yield "_cvcopyMakeBorder", shape, dict(top=top, bot=bot, left=left, right=right, type=kind, value=7)
        for values in ((1, 2, 3), (4,), (1.5, 2.5, 300, 4), (-3, 0.49, 254.5, 9, 8), ()):
            for channels in (c for c in (1, 3, 4) if not values or len(values) >= c):  # beyond: what memory holds
                yield "_cvcopyMakeBorder", (3, 4, channels), dict(top=1, bot=0, left=2, right=1, value=251.5, values=values)
        yield "_cvcopyMakeBorder", (3, 4, 5), dict(top=1, bot=0, left=2, right=1, type=2)
        yield "_cvcopyMakeBorder", (3, 4, 5), dict(top=1, bot=0, left=2, right=1, value=3)
        yield "_cvcopyMakeBorder", (3, 4, 3), dict(top=1, bot=0, left=2, right=1, type=5)
        yield "_cvcopyMakeBorder", (3, 4, 3), dict(top=-1, bot=0, left=2, right=1)

    with open(os.path.join(FOLDER, "operators.txt"), "w") as out:
        for op, shape, args in calls():
            i = np.arange(int(np.prod(shape)))
            data = mx.nd.array(((7 * i + i // 5) % 256).reshape(shape), dtype="uint8")
            words = " ".join("%s=%s" % (k, str(v).replace(" ", "")) for k, v in sorted(args.items()))
            out.write("%s %s %s : " % (op, "x".join(map(str, shape)), words))
            try:
                got = getattr(mx.nd._internal, op)(data, **args).asnumpy()
                out.write("%s %016x\n" % ("x".join(map(str, got.shape)), fnv(got.tobytes())))
            except (mx.base.MXNetError, ValueError):
                out.write("refused\n")


if __name__ == "__main__":
    for made in (files, iterated) if sys.argv[1:] == ["--files"] else (pixels, records, boxes, operators):
        made()
