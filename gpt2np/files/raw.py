"""From the bytes of a file to an array: what the two weight formats share."""

import math

import numpy as np

from .errors import CheckpointError

MAX_DIMENSIONS = 8
MAX_NAME = 1000  # characters


def check_name(name, path):
    """Raise CheckpointError unless a tensor's name can be printed: not too long, no control characters."""
    if len(name) > MAX_NAME or not name.isprintable():
        raise CheckpointError(
            f"{path}: a tensor has the name {name[:MAX_NAME]!r:.100}, expected at most {MAX_NAME} printable "
            "characters; get the file again"
        )


def check_shape(shape, what):
    """Raise CheckpointError unless the shape is one that NumPy allows, with a product that is quick to compute."""
    too_large = any(n >= 2**63 for n in shape[:MAX_DIMENSIONS])
    # Even for an empty array, NumPy multiplies the dimensions that are not 0.
    if len(shape) > MAX_DIMENSIONS or too_large or (0 in shape and math.prod(n or 1 for n in shape) >= 2**59):
        raise CheckpointError(
            f"{what} has the shape {shape[:MAX_DIMENSIONS]!s:.100}, {len(shape)} dimensions: expected at most "
            f"{MAX_DIMENSIONS} of a sensible size; get the file again"
        )


def as_array(data, dtype, shape, is_bfloat16=False):
    """The array of these bytes [n_bytes] uint8: a view, or a copy if they are bfloat16 or not aligned."""
    array = data.view(dtype).reshape(shape)
    if is_bfloat16:  # the upper half of a float32
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array if array.flags.aligned else array.copy()
