"""From the bytes of a file to an array: what the two formats of weights have in common.

Next: safetensors.py
"""

import math

import numpy as np

from .errors import CheckpointError

MAX_DIMENSIONS = 8
MAX_NAME = 1000  # characters


def check_name(name, path):
    """Raise CheckpointError unless a tensor's name can be shown: not too long, and without control characters."""
    if len(name) > MAX_NAME or not name.isprintable():
        raise CheckpointError(
            f"{path}: a tensor has the name {name[:MAX_NAME]!r:.100}, expected at most {MAX_NAME} printable "
            "characters; get the file again"
        )


def check_shape(shape, what):
    """Raise CheckpointError unless a shape can be multiplied at once, and NumPy can have it."""
    too_large = any(n >= 2**63 for n in shape[:MAX_DIMENSIONS])
    # NumPy multiplies the dimensions that are not 0 even where the array has no numbers.
    if len(shape) > MAX_DIMENSIONS or too_large or (0 in shape and math.prod(n or 1 for n in shape) >= 2**59):
        raise CheckpointError(
            f"{what} has the shape {shape[:MAX_DIMENSIONS]!s:.100}, {len(shape)} dimensions: expected at most "
            f"{MAX_DIMENSIONS} of a sensible size; get the file again"
        )


def as_array(data, dtype, shape, is_bfloat16=False):
    """The array of these bytes [n_bytes] uint8: a view, or a copy where they are not aligned or bfloat16."""
    array = data.view(dtype).reshape(shape)
    if is_bfloat16:  # the upper half of a float32
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array if array.flags.aligned else array.copy()
