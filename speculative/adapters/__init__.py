"""Other engines' models as language models of this library: longer than gpt2np's, on any device, in any format.

from speculative.adapters import LlamaCppModel, TransformersModel, TransformersTokenizer
"""

from .llama_cpp_model import LlamaCppModel
from .transformers_model import TransformersModel
from .transformers_tokenizer import TransformersTokenizer

__all__ = ["LlamaCppModel", "TransformersModel", "TransformersTokenizer"]
