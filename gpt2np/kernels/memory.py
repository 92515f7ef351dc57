"""Memory: arrays aligned to cache lines, pages of a mapped file released, freed memory kept for reuse.

A processor reads memory in lines of 64 bytes, and a register of the kernels may be as long. NumPy's large arrays
usually begin 16 bytes after the start of a line. Then loading a register of that length takes two reads, not one.
"""

import math
import mmap

import numpy as np

LINE = 64  # bytes


def aligned_zeros(shape):
    """np.zeros(shape, np.float32), beginning at a multiple of LINE."""
    n_bytes = 4 * math.prod(shape)
    memory = np.zeros(n_bytes + LINE, np.uint8)
    begin = -memory.ctypes.data % LINE
    return memory[begin : begin + n_bytes].view(np.float32).reshape(shape)


def give_back(array):
    """If the array is a view of a mapped file, release the memory of its pages. They are read again when touched."""
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, mmap.mmap) and memoryview(array).readonly and hasattr(array, "madvise"):
        array.madvise(mmap.MADV_DONTNEED)


def keep_freed():
    """Let the C library keep the memory of freed arrays for the next ones, up to about 64 MiB.

    The system clears each page that it hands out, and a prompt of 256 tokens would get thousands in every layer. glibc
    keeps arrays smaller than the largest one freed so far, up to 32 MiB. So this function frees an array of about
    that size, to which it never writes.
    """
    np.empty(31 * 2**20, np.uint8)
