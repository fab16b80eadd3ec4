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


def pixels():
    import mxnet as mx
    import numpy as np

    with open(os.path.join(FOLDER, "pixels.txt"), "w") as out:
        for path in sorted(glob.glob(os.path.join(FOLDER, "*.jpg")) + glob.glob(os.path.join(FOLDER, "*.png"))):
            data = mx.nd.array(np.fromfile(path, "uint8"), dtype="uint8")
            for flag in (0, 1):
                got = mx.nd._internal._cvimdecode(data, flag=flag, to_rgb=1).asnumpy()
                out.write("%s %d %d %d %d %016x\n" % (os.path.basename(path), flag, *got.shape, fnv(got.tobytes())))


if __name__ == "__main__":
    files() if sys.argv[1:] == ["--files"] else pixels()
