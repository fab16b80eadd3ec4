#!/usr/bin/python3
"""Converts scikit-learn's digits.csv.gz to IDX files under the names of MNIST.

usage: digits-to-idx.py digits.csv.gz examples/data

Writes digits/ (test = rows whose index is divisible by 5, train = the others) and digits-by-writer/ (test = the
last 360 rows), rows in the order of the file. Pixels 0..16 become bytes: round(value * 255 / 16), halves up.
"""
import gzip
import hashlib
import os
import struct
import sys

ROWS, SIDE, TEST_ROWS = 1797, 8, 360


def read_rows(path):
    with gzip.open(path, "rt", encoding="ascii") as source:
        rows = [[int(float(cell)) for cell in line.split(",")] for line in source if line.strip()]
    assert len(rows) == ROWS, "%d rows, expected %d" % (len(rows), ROWS)
    for row in rows:
        assert len(row) == SIDE * SIDE + 1
        assert all(0 <= pixel <= 16 for pixel in row[:-1]) and 0 <= row[-1] <= 9
    return rows


def images_of(rows):
    body = bytes((pixel * 255 * 2 + 16) // 32 for row in rows for pixel in row[:-1])
    return struct.pack(">IIII", 0x803, len(rows), SIDE, SIDE) + body


def labels_of(rows):
    return struct.pack(">II", 0x801, len(rows)) + bytes(row[-1] for row in rows)


def write_split(folder, train, test, compressed):
    os.makedirs(folder, exist_ok=True)
    sums = []
    for part, rows in (("train", train), ("t10k", test)):
        for name, data in (("images-idx3-ubyte", images_of(rows)), ("labels-idx1-ubyte", labels_of(rows))):
            name = "%s-%s" % (part, name)
            if compressed:
                name, data = name + ".gz", gzip.compress(data, 9, mtime=0)
            with open(os.path.join(folder, name), "wb") as out:
                out.write(data)
            sums.append("%s  %s\n" % (hashlib.sha256(data).hexdigest(), name))
    with open(os.path.join(folder, "SHA256SUMS"), "w", encoding="ascii") as out:
        out.writelines(sorted(sums, key=lambda line: line.split()[1]))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    rows = read_rows(sys.argv[1])
    write_split(os.path.join(sys.argv[2], "digits"), [r for i, r in enumerate(rows) if i % 5],
                [r for i, r in enumerate(rows) if i % 5 == 0], False)
    write_split(os.path.join(sys.argv[2], "digits-by-writer"), rows[:-TEST_ROWS], rows[-TEST_ROWS:], True)


if __name__ == "__main__":
    main()
