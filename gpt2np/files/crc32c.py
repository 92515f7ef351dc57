"""CRC-32C, the checksum of TensorFlow's files, in NumPy.

The checksum takes one step for each byte, and each step is linear over the field GF(2). So long data is cut into many
pieces of equal length, which are processed side by side with one array operation per step. To join two results,
continue the first over as many zero bytes as the second piece is long, then xor the outcome with the second.
Source: RFC 3720, appendix B.4 (Castagnoli's polynomial); the mask: TensorFlow, lib/hash/crc32c.h.
"""

from functools import lru_cache

import numpy as np

POLYNOMIAL = 0x82F63B78  # bit-reversed


def masked_crc32c(data):
    """The checksum of bytes or of an array [n] uint8 as TensorFlow stores it, int.

    >>> hex(masked_crc32c(b"123456789"))
    '0xc78ab0e5'
    """
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(data):
    """CRC-32C of bytes or of an array [n] uint8, int.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    data = np.frombuffer(data, np.uint8)
    n_pieces = 1 << min(13, len(data).bit_length() // 2)
    n_steps = -(-len(data) // (4 * n_pieces))  # four bytes per step
    padded = np.zeros(4 * n_pieces * n_steps, np.uint8)  # leading zeros change nothing if the state starts at 0
    padded[len(padded) - len(data) :] = data
    words = padded.view("<u4").reshape(n_pieces, n_steps)
    crcs = np.zeros(n_pieces, np.uint32)
    first, last = step_tables()
    for step in range(n_steps):
        crcs = crcs ^ words[:, step]
        crcs = first[crcs & 0xFFFF] ^ last[crcs >> 16]
    n_bytes = 4 * n_steps
    while len(crcs) > 1:  # join neighbours
        crcs = times(zeros(n_bytes), crcs[0::2]) ^ crcs[1::2]
        n_bytes *= 2
    initial = times(zeros(len(data)), np.array([0xFFFFFFFF], np.uint32))  # CRC-32C starts with all ones
    return int(crcs[0] ^ initial[0]) ^ 0xFFFFFFFF


@lru_cache
def step_tables():
    """Two arrays [65536] uint32: the parts of a result from the first and last two bytes of a step, lowest first."""
    last = bit_by_bit(np.arange(65536, dtype=np.uint32), 16)
    return last[last & 0xFFFF] ^ last >> 16, last  # two more bytes follow the first two


def bit_by_bit(crcs, n_bits):
    """The checksums [n] uint32 after n_bits more zero bits, computed from the definition."""
    for _ in range(n_bits):
        crcs = np.where(crcs & 1, crcs >> 1 ^ POLYNOMIAL, crcs >> 1).astype(np.uint32)
    return crcs


@lru_cache(1024)
def zeros(n_bytes):
    """The matrix over GF(2) that continues a checksum over n_bytes of zeros: the images [32] uint32 of single bits."""
    bits = 1 << np.arange(32, dtype=np.uint32)
    if n_bytes < 2:
        return bit_by_bit(bits, 8 * n_bytes)
    half = zeros(n_bytes // 2)
    return times(zeros(n_bytes % 2), times(half, half))


def times(matrix, crcs):
    """The matrix, given as the images [32] of single bits, applied to each checksum [n]."""
    bits = crcs[:, None] >> np.arange(32, dtype=np.uint32) & 1  # [n] -> [n, 32]
    return np.bitwise_xor.reduce(bits * matrix, axis=1)  # -> [n]
