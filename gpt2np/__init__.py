"""GPT-2 from scratch in NumPy: forward pass, KV cache, tokenizer, weight files. Start reading at reference.py."""

from pathlib import Path
from typing import TYPE_CHECKING

if not Path(__file__).is_file():
    raise ImportError(f"gpt2np reads files beside its sources, and cannot in {__file__}: install it with pip")

from .drafting.eagle import Eagle, EagleBlock, load_eagle
from .drafting.early_exit import EarlyExit
from .drafting.heads import Heads, load_heads
from .drafting.parallel import ParallelBlock, ParallelEagle, load_parallel
from .files.errors import CheckpointError, DownloadError
from .files.loading import load
from .model import GPT2, HParams, forward
from .saving import save
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
    "load_eagle",
    "load_heads",
    "load_parallel",
    "save",
]


if TYPE_CHECKING:
    __version__: str
else:  # hidden from type checkers, which would accept every name

    def __getattr__(name):
        if name == "__version__":  # the installed version, from setup.py; read on request, because it takes a moment
            from importlib.metadata import PackageNotFoundError, version

            try:
                return version("speculative-decoding-numpy")
            except PackageNotFoundError:
                return "(not installed)"
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
