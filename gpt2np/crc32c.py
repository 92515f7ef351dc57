"""CRC-32C, the checksum of TensorFlow's files, in NumPy.

A checksum walks over the data byte by byte; each step is linear over the two numbers 0 and 1. So long data can be cut
into many pieces of equal length that are walked side by side, one array operation a step, and the results be joined:
the checksum of a then b is that of a, carried on over as many zeros as b has bytes, xor that of b.
Source: RFC 3720, appendix B.4 (Castagnoli's polynomial); the mask: TensorFlow, lib/hash/crc32c.h.
Next: tf_checkpoint.py
"""

from functools import lru_cache

import numpy as np

POLYNOMIAL = 0x82F63B78  # bits in reverse


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
    n_pieces = 1 << min(14, len(data).bit_length() // 2)
    n_steps = -(-len(data) // (2 * n_pieces))  # two bytes a step
    padded = np.zeros(2 * n_pieces * n_steps, np.uint8)  # zeros in front change nothing where the walk begins with 0
    padded[len(padded) - len(data) :] = data
    words = padded.view("<u2").reshape(n_pieces, n_steps)
    crcs, table = np.zeros(n_pieces, np.uint32), step_table()
    for step in range(n_steps):
        crcs = crcs >> 16 ^ table[(crcs ^ words[:, step]) & 0xFFFF]
    n_bytes = 2 * n_steps
    while len(crcs) > 1:  # join neighbours
        crcs = carried_on(crcs[0::2], n_bytes) ^ crcs[1::2]
        n_bytes *= 2
    started = carried_on(np.array([0xFFFFFFFF], np.uint32), len(data))  # the walk begins with all ones
    return int(crcs[0] ^ started[0]) ^ 0xFFFFFFFF


@lru_cache
def step_table():
    """[65536] uint32: what two bytes of data become in one step."""
    crcs = np.arange(65536, dtype=np.uint32)
    for _ in range(16):
        crcs = np.where(crcs & 1, crcs >> 1 ^ POLYNOMIAL, crcs >> 1).astype(np.uint32)
    return crcs


def carried_on(crcs, n_bytes):
    """The checksums [n] uint32 after n_bytes more zeros: as a matrix over 0 and 1, by repeated squaring."""
    power = 1 << np.arange(32, dtype=np.uint32)  # of each bit alone; in the end, after n_bytes zeros
    step = step_table()[power & 0xFFFF] ^ power >> 16  # after two bytes of zeros
    half = np.array([one_byte(crc) for crc in power.tolist()], np.uint32)
    if n_bytes % 2:
        crcs = times(half, crcs)
    n = n_bytes // 2
    while n:
        if n % 2:
            crcs = times(step, crcs)
        step = times(step, step)
        n //= 2
    return crcs


def one_byte(crc):
    for _ in range(8):
        crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
    return crc


def times(matrix, crcs):
    """The matrix, given as the images [32] of single bits, applied to each checksum [n]."""
    bits = crcs[:, None] >> np.arange(32, dtype=np.uint32) & 1  # [n] -> [n, 32]
    return np.bitwise_xor.reduce(bits * matrix, axis=1)  # -> [n]
