"""A model seen differently: for trees (by_paths.py), in a different vocabulary (shared_tokens.py), from other engines.

from speculative.models import LlamaCppModel, LlamaCppTokenizer, TransformersModel, TransformersTokenizer
"""

from .llama_cpp_model import LlamaCppModel
from .llama_cpp_tokenizer import LlamaCppTokenizer
from .transformers_model import TransformersModel
from .transformers_tokenizer import TransformersTokenizer

__all__ = ["LlamaCppModel", "LlamaCppTokenizer", "TransformersModel", "TransformersTokenizer"]
