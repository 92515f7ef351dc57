"""Reading JSON objects: a config, a vocabulary, the header of a safetensors file.

Every fault is a CheckpointError that names the file: it is too large, not UTF-8, not JSON, nested too deeply, or not an
object. A name that appears twice in an object is refused as well: a reader should not choose between the two.
"""

import json
from pathlib import Path

from .errors import CheckpointError

MAX_SIZE = 20_000_000  # bytes; GPT-2's vocabulary has a million


def read_json(path):
    """The dict of a JSON object in a file."""
    return json_object(read_small(path), path)


def read_small(path):
    """The bytes of a file of at most MAX_SIZE."""
    size = Path(path).stat().st_size
    if size > MAX_SIZE:
        raise CheckpointError(f"{path} has {size} bytes, expected at most {MAX_SIZE}; get the file again")
    return Path(path).read_bytes()


def json_object(data, what):
    """The dict of a JSON object given as bytes; `what` names them in messages."""
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{what} is not JSON in UTF-8 ({error}); get the file again") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{what} is not a JSON object; get the file again")
    return value


def unique(pairs):
    """The dict of these pairs; a name that appears twice is an error."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a name appears twice in it")
    return entries
