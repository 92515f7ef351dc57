"""Solutions to the exercises of 10_weight_files.ipynb."""

import json

import numpy as np


def write_safetensors(path, tensors):
    # First all data, to know the offsets; tobytes() goes row by row, whatever the order of the array in memory.
    names = {"float32": "F32", "float16": "F16", "int64": "I64"}
    header, body = {}, b""
    for name, tensor in tensors.items():
        raw = np.asarray(tensor, tensor.dtype.newbyteorder("<")).tobytes()
        header[name] = {
            "dtype": names[tensor.dtype.name],
            "shape": list(tensor.shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    head = json.dumps(header).encode("utf-8")
    path.write_bytes(len(head).to_bytes(8, "little") + head + body)


def read_varint(data, position):
    # The lowest 7 bits of each byte belong 7 bits further left than those of the byte before.
    value = shift = 0
    while data[position] >= 128:
        value |= (data[position] - 128) << shift
        shift += 7
        position += 1
    return value | data[position] << shift, position + 1


def my_crc32c(data):
    # A long division with coefficients 0 and 1, where subtraction is xor; the lowest bit has the highest power.
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF
