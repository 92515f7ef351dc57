"""Memory: arrays that begin where a line of the cache begins, and pages of a mapped file that are given back.

A processor reads memory in lines of 64 bytes, and a register of the kernels may be as long. NumPy's arrays begin at any
multiple of 16 bytes, large ones usually 16 bytes after a line: then a register of that length takes two reads instead
of one.
Next: threads.py
"""

import math
import mmap

import numpy as np

LINE = 64  # bytes


def aligned_zeros(shape, dtype=np.float32):
    """np.zeros(shape, dtype), beginning at a multiple of LINE."""
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(n_bytes + LINE, np.uint8)
    begin = -memory.ctypes.data % LINE
    return memory[begin : begin + n_bytes].view(dtype).reshape(shape)


def give_back(array):
    """If the array is a view of a mapped file, release the memory of its pages; they are read again when touched."""
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, mmap.mmap) and memoryview(array).readonly and hasattr(array, "madvise"):
        array.madvise(mmap.MADV_DONTNEED)
