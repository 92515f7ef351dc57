"""Solutions to the exercises of 10_weight_files.ipynb."""

import json

import numpy as np


def write_safetensors(path, tensors):
    """Write arrays to a safetensors file.

    Parameters
    ----------
    path : Path
    tensors : dict str -> array
        Of the types float32 ("F32"), float16 ("F16") and int64 ("I64"), of any shape,
        including (). An array may be transposed: in the file its rows still follow one
        another.

    The file: 8 bytes with the length of the header, little-endian; the header in JSON,
    {name: {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}}; the tensors end
    to end.
    """
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
    """The number that starts at a position in the data, and the position after it.

    Parameters
    ----------
    data : bytes
    position : int

    Returns
    -------
    (int, int)
        The number has 7 bits in each byte, the lowest first. A byte of 128 or more says
        that one more follows.

    Examples
    --------
    >>> read_varint(b"\\xe6\\x06", 0)
    (870, 2)
    """
    # The lowest 7 bits of each byte belong 7 bits further left than those of the byte before.
    value = shift = 0
    while data[position] >= 128:
        value |= (data[position] - 128) << shift
        shift += 7
        position += 1
    return value | data[position] << shift, position + 1


def my_crc32c(data):
    """CRC-32C of bytes, int.

    The register has 32 bits, all of them 1 at the start. For each byte: xor it into the
    lowest 8 bits; then, 8 times, shift the register right by one bit, and if the bit
    shifted out was 1, xor the register with the polynomial 0x82F63B78. At the end, flip
    all 32 bits.

    Examples
    --------
    >>> hex(my_crc32c(b"123456789"))
    '0xe3069283'
    """
    # A long division with coefficients 0 and 1, where subtraction is xor; the lowest bit has the highest power.
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF
