#!/usr/bin/env python3
"""Writes the golden .params files of this folder and expected.txt, from the description of the format alone.

    python3 tests/golden/params/make.py [folder]

A file: u64 0x112, u64 0, u64 n, n records, u64 m (0 or n), m names (u64 length, bytes). A record by version:
0: u32 ndim, u32 dims; 1: u32 magic, shape; 2 and 3: u32 magic, i32 storage type, [storage shape,] shape; where a
shape is i32 ndim, i64 dims. Then i32 device type, i32 device, i32 dtype, [i32 dtype, shape of each index array,]
values, [index arrays]. All little-endian. Versions 0 to 2 stop after a shape without dimensions.
"""
import hashlib
import pathlib
import struct
import sys

MAGIC = {1: 0xF993FAC8, 2: 0xF993FAC9, 3: 0xF993FACA}
CODES = ["f", "d", "e", "B", "i", "b", "q", "?", "h", "H", "I", "Q", None]
I64 = 6


def pack(dtype, values):
    if dtype == 12:  # bfloat16: the upper half of a float
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack("<%d%s" % (len(values), CODES[dtype]), *values)


def shape_bytes(shape):
    return struct.pack("<i%dq" % len(shape), len(shape), *shape)


class Entry:
    def __init__(self, name, dtype, shape, values, storage=0, values_shape=None, aux=()):
        self.name, self.dtype, self.shape, self.values = name, dtype, shape, values
        self.storage, self.values_shape, self.aux = storage, values_shape, aux

    def record(self, version):
        if version == 0:
            out = struct.pack("<I%dI" % len(self.shape), len(self.shape), *self.shape)
        else:
            out = struct.pack("<I", MAGIC[version])
            if version >= 2:
                out += struct.pack("<i", self.storage)
                if self.storage:
                    out += shape_bytes(self.values_shape)
            out += shape_bytes(self.shape)
        if self.values is None:
            return out
        out += struct.pack("<iii", 2, 1, self.dtype)  # saved on gpu(1)
        for a in self.aux:
            out += struct.pack("<i", I64) + shape_bytes((len(a),))
        out += pack(self.dtype, self.values)
        for a in self.aux:
            out += pack(I64, a)
        return out

    def hash(self, h):
        h.update(self.name.encode())
        if self.values is None:
            return
        h.update(struct.pack("<i", self.dtype) + shape_bytes(self.shape) + pack(self.dtype, self.values))
        for a in self.aux:
            h.update(pack(I64, a))

    def expected(self):
        if self.values is None:
            return "%s none" % (self.name or "-")
        parts = [self.name or "-", str(self.dtype), str(self.storage), str(len(self.shape))]
        parts += [str(d) for d in self.shape] + [str(len(self.values))]
        parts += [repr(float(v)) for v in self.values]
        for a in self.aux:
            parts += [str(len(a))] + [str(v) for v in a]
        return " ".join(parts)


def every_dtype(shape):
    values = [0, 1, 2, 3, 100, 7]
    return [Entry("d%d" % d, d, shape, [bool(v) if d == 7 else v for v in values]) for d in range(13)]


FILES = {
    "v0": (0, True, [Entry("arg:w", 0, (2, 3), [1.5, -2, 3, 0.25, 1e-3, 4]), Entry("aux:m", 1, (2,), [1 / 3, -7]),
                     Entry("arg:u", 3, (1, 1, 2), [0, 255])]),
    "v1": (1, True, [Entry("arg:w", 0, (2, 3), [1.5, -2, 3, 0.25, 1e-3, 4]), Entry("arg:h", 2, (2, 2), [0.5, -1, 2, 65504]),
                     Entry("arg:i", 4, (1,), [-5])]),
    "v1-none": (1, True, [Entry("none", 0, (), None), Entry("arg:i", 4, (1,), [-5])]),
    "v2": (2, True, every_dtype((2, 3))),
    "v2-none": (2, True, [Entry("a", 0, (), None), Entry("b", 0, (1,), [2.5])]),
    "v2-unnamed": (2, False, [Entry("", 0, (2,), [1, 2]), Entry("", 6, (1, 1), [-(2 ** 62)])]),
    "v2-empty": (2, False, []),
    "v2-sparse": (2, True, [
        Entry("arg:rows", 0, (5, 2), [1, 2, 3, 4], 1, (2, 2), ((1, 3),)),
        Entry("arg:csr", 0, (3, 4), [1, 2, 3], 2, (3,), ((0, 2, 2, 3), (0, 2, 1))),
        Entry("arg:no-rows", 0, (4, 3), [], 1, (0, 3), ((),)),
        Entry("arg:no-values", 1, (4, 3), [], 2, (0,), ((0, 0, 0, 0, 0), ())),
        Entry("arg:dense", 0, (2,), [8, 9])]),
    "v3": (3, True, [Entry("scalar", 0, (), [3.5]), Entry("empty", 1, (0, 3), []), Entry("full", 12, (2, 2), [1, -2, 0.5, 256]),
                     Entry("s64", 6, (), [-9])]),
}


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    lines = []
    for name, (version, named, entries) in FILES.items():
        names = [e.name.encode() for e in entries] if named else []
        out = struct.pack("<QQQ", 0x112, 0, len(entries)) + b"".join(e.record(version) for e in entries)
        out += struct.pack("<Q", len(names)) + b"".join(struct.pack("<Q", len(n)) + n for n in names)
        (folder / (name + ".params")).write_bytes(out)
        h = hashlib.sha256()
        for e in entries:
            e.hash(h)
        lines.append("file %s %d %s" % (name, len(entries), h.hexdigest()))
        lines += [e.expected() for e in entries]
    (folder / "expected.txt").write_text("\n".join(lines) + "\n")


main()
