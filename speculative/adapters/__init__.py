"""Other engines' models as language models of this library: longer than gpt2np's, on any device, in any format.

from speculative.adapters import LlamaCppModel, TransformersModel
"""

from .llama_cpp_model import LlamaCppModel
from .transformers_model import TransformersModel

__all__ = ["LlamaCppModel", "TransformersModel"]
