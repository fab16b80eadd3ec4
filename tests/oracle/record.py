#!/usr/bin/env python3
"""usage: $(tests/oracle/setup mxnet)/bin/python tests/oracle/record.py

Records as MXNet 1.9.1's recordio writes them, with an index, into recorded/record. The test io.record reads them and writes the
same bytes. Record k is payload_of(k), the last ones packed with labels.
"""
import os
import struct

import mxnet as mx

HERE = os.path.dirname(os.path.realpath(__file__))
FOLDER = os.path.join(HERE, "recorded", "record")
MAGIC = struct.pack("<I", 0xCED7230A)
PAYLOADS = [b"", b"a", b"four", b"eleven byte", MAGIC, MAGIC + MAGIC, b"abcd" + MAGIC + b"xyz", b"ab" + MAGIC + b"cd",
            b"abcd" + MAGIC, bytes(range(256)) * 3]


def main():
    os.makedirs(FOLDER, exist_ok=True)
    writer = mx.recordio.MXIndexedRecordIO(os.path.join(FOLDER, "some.idx"), os.path.join(FOLDER, "some.rec"), "w")
    for key, payload in enumerate(PAYLOADS):
        writer.write_idx(10 * key, payload)
    writer.write_idx(100, mx.recordio.pack(mx.recordio.IRHeader(0, 3.5, 7, 0), b"one label"))
    writer.write_idx(110, mx.recordio.pack(mx.recordio.IRHeader(0, [1, -2, 0.25], 8, 0), b"three"))
    writer.close()


if __name__ == "__main__":
    main()
