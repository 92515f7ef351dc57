"""GPT-2 from scratch in NumPy: forward pass, KV cache, tokenizer, weight files. Start reading at tokenizer.py."""

from .errors import CheckpointError, DownloadError
from .load import load
from .model import GPT2, HParams, forward
from .tokenizer import StreamDecoder, Tokenizer

__all__ = ["GPT2", "CheckpointError", "DownloadError", "HParams", "StreamDecoder", "Tokenizer", "forward", "load"]
