"""GPT-2 from scratch in NumPy: forward pass, KV cache, tokenizer, weight files. Start reading at reference.py."""

from .eagle import Eagle, EagleBlock, load_eagle
from .early_exit import EarlyExit
from .files.errors import CheckpointError, DownloadError
from .files.loading import load
from .heads import Heads, load_heads
from .model import GPT2, HParams, forward
from .parallel import ParallelBlock, ParallelEagle, load_block
from .tokenizer import StreamDecoder, Tokenizer

__all__ = [
    "GPT2",
    "CheckpointError",
    "DownloadError",
    "Eagle",
    "EagleBlock",
    "EarlyExit",
    "HParams",
    "Heads",
    "ParallelBlock",
    "ParallelEagle",
    "StreamDecoder",
    "Tokenizer",
    "forward",
    "load",
    "load_block",
    "load_eagle",
    "load_heads",
]


def __getattr__(name):
    if name == "__version__":  # the installed version, from setup.py; read on request, because it takes a moment
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("speculative-decoding-numpy")
        except PackageNotFoundError:
            return "(not installed)"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
