#!/usr/bin/env python3
"""usage: $(tests/oracle/setup mxnet)/bin/python tests/oracle/npz.py [--check FILE...]

Archives as NumPy writes them into recorded/npz, and damaged ones into recorded/npz/bad; the test api.archive reads them. --check: the
files hold the same arrays, by NumPy's reading; TENON_KEEP=FOLDER of that test keeps what Tenon writes.
"""
import io
import os
import struct
import sys
import warnings
import zipfile

import numpy as np

HERE = os.path.dirname(os.path.realpath(__file__))
FOLDER = os.path.join(HERE, "recorded", "npz")
BAD = os.path.join(FOLDER, "bad")


def arrays():
    """The test makes the same ones: element i is i, modulo what the type holds."""
    made = {"weight": np.arange(12, dtype="float32").reshape(3, 4), "arg:bias": np.arange(5, dtype="float64"),
            "layer/ids": np.arange(6, dtype="int64").reshape(1, 2, 3), "bytes": np.arange(300).astype("uint8"),
            "yes": np.array([True, False]), "scalar": np.array(7, "int32"), "none": np.zeros((0, 3), "float16")}
    return made


def npy(array, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version)
    return out.getvalue()


def archive(name, entries, method=zipfile.ZIP_STORED):
    path = os.path.join(BAD, name)
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", method) as z:
        warnings.simplefilter("ignore")
        for entry, data in entries:
            z.writestr(zipfile.ZipInfo(entry, (1980, 1, 1, 0, 0, 0)), data, method)
    with open(path, "rb") as f:
        return bytearray(f.read())


def patched(name, data, at, value):
    data[at:at + len(value)] = value
    with open(os.path.join(BAD, name), "wb") as f:
        f.write(data)


def bad():
    x = npy(np.arange(4, dtype="float32"))
    zeros = npy(np.zeros(1 << 16, "uint8"))
    archive("twice.npz", [("x.npy", x), ("x.npy", x)])
    archive("up.npz", [("../x.npy", x)])
    archive("inside.npz", [("a/../x.npy", x)])
    archive("absolute.npz", [("/x.npy", x)])
    archive("backslash.npz", [("a\\x.npy", x)])
    archive("control.npz", [("a\nb.npy", x)])
    archive("text.npz", [("readme.txt", b"hello")])
    archive("nameless.npz", [(".npy", x)])
    archive("folder.npz", [("a/", b"")])
    archive("bzip2.npz", [("x.npy", x)], zipfile.ZIP_BZIP2)
    archive("no_npy.npz", [("x.npy", b"hello, world")])
    archive("short.npz", [("x.npy", x[:-1])])
    archive("long.npz", [("x.npy", x + b"!")])
    archive("objects.npz", [("x.npy", x.replace(b"<f4", b"|O8"))])
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (9999999999,)})
    archive("huge.npz", [("x.npy", head.getvalue() + bytes(16))])
    for name, at, value in (("encrypted.npz", 8, b"\1\0"), ("aes.npz", 10, struct.pack("<H", 99))):
        data = archive(name, [("x.npy", x)])
        patched(name, data, data.index(b"PK\1\2") + at, value)
    data = archive("crc.npz", [("x.npy", x)])
    patched("crc.npz", data, data.index(b"PK\1\2") - 1, b"\x7f")  # the last byte of the array
    data = archive("bomb.npz", [("x.npy", zeros)], zipfile.ZIP_DEFLATED)
    patched("bomb.npz", data, data.index(b"PK\1\2") + 24, struct.pack("<I", 0x7fffffff))  # unpacked: 2 GiB
    data = archive("stored.npz", [("x.npy", x)])
    patched("stored.npz", data, data.index(b"PK\1\2") + 24, struct.pack("<I", 0x7fffffff))
    data = archive("packed.npz", [("x.npy", x)])
    patched("packed.npz", data, data.index(b"PK\1\2") + 20, struct.pack("<II", 0x7fffffff, 0x7fffffff))
    # both entries of the directory lead to the same bytes
    data = archive("overlap.npz", [("x.npy", zeros), ("y.npy", b"")])
    second = data.index(b"PK\1\2", data.index(b"PK\1\2") + 4)
    patched("overlap.npz", data, second + 16, data[data.index(b"PK\1\2") + 16:data.index(b"PK\1\2") + 28])
    patched("overlap.npz", data, second + 42, struct.pack("<I", 0))
    data = archive("count.npz", [("x.npy", x)])
    patched("count.npz", data, data.index(b"PK\5\6") + 8, b"\xff\xff\xff\xff")
    data = archive("cut.npz", [("x.npy", x)])
    with open(os.path.join(BAD, "cut.npz"), "wb") as f:
        f.write(data[:60])


def record():
    os.makedirs(BAD, exist_ok=True)
    np.savez(os.path.join(FOLDER, "stored.npz"), **arrays())
    np.savez_compressed(os.path.join(FOLDER, "deflated.npz"), **arrays())
    np.savez(os.path.join(FOLDER, "nameless.npz"), np.arange(3, dtype="int32"), np.arange(2, dtype="int8"))
    np.savez(os.path.join(FOLDER, "empty.npz"))
    with zipfile.ZipFile(os.path.join(FOLDER, "zip64.npz"), "w") as z:
        for name, array in arrays().items():
            with z.open(name + ".npy", "w", force_zip64=True) as f:
                f.write(npy(array, (2, 0)))
    bad()


def check(path):
    want, got = arrays(), np.load(path)
    assert sorted(got.files) == sorted(want), got.files
    for name, array in want.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape, name
        assert (got[name] == array).all(), name
    print(path, "holds the same", len(want), "arrays")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        for each in sys.argv[2:]:
            check(each)
    else:
        record()
