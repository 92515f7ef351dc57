"""The values of --engine: what makes a model, and its tokenizer, of a name.

To add an engine, add an entry. Drafters, rules, texts and tables ask only for a `LanguageModel` and a tokenizer; what
works inside a model of this library alone (`Entry.hidden` in drafters.py, lanes, defaults of a family) is for "numpy".
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from gpt2np.files.loading import BUNDLED, folder_of
from speculative.models import LlamaCppModel, LlamaCppTokenizer, TransformersModel, TransformersTokenizer


@dataclass(frozen=True)
class Engine:
    """A value of --engine."""

    help: str
    read: Callable  # the name of a model -> the same, in full; ValueError if it cannot be one. Nothing is loaded
    load: Callable  # (name, Options) -> (LanguageModel, tokenizer)
    packages: dict = field(default_factory=dict)  # module -> the name of its package

    def checked(self, name):
        """The name, in full; ValueError if a package is missing, or if it cannot be the name of a model."""
        if missing := [package for module, package in self.packages.items() if not find_spec(module)]:
            raise ValueError(f"this engine needs packages that are not installed: pip install {' '.join(missing)}")
        return self.read(name)

    def versions(self):
        """The packages and their versions, in words."""
        return ", ".join(f"{package} {version(package)}" for package in self.packages.values())


# ------------------------------------------------------------------------------------------------ transformers


def name_for_transformers(name):
    is_here = os.path.isdir(name) or (name.endswith(".gguf") and os.path.isfile(name))
    if name in BUNDLED or is_here or (re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) and not name.endswith(".gguf")):
        return name
    raise ValueError(f"expected a folder, a file .gguf, or a name on the Hugging Face hub, got {name[:80]!r}")


def load_transformers(name, options, dtype="auto"):
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    path = Path(folder_of(name))
    where = {"pretrained_model_name_or_path": str(path)}
    if path.is_file():
        where = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=dtype)
        tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
    except (OSError, ValueError, ImportError) as error:
        raise ValueError(f"transformers cannot load {name}: {' '.join(str(error).split())[:200]}") from None
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    n_vocab = min(len(tokenizer), model.config.get_text_config().vocab_size)  # some embeddings are padded
    return TransformersModel(model, n_vocab), TransformersTokenizer(tokenizer, model.generation_config.eos_token_id)


# ------------------------------------------------------------------------------------------------ llama.cpp


def name_for_llama_cpp(name):
    if name.endswith(".gguf") and os.path.isfile(name):
        return name
    raise ValueError(f"expected a file .gguf, got {name[:80]!r} (dev/bench/make_gguf.py makes one of a GPT-2)")


def load_llama_cpp(name, options):
    try:
        model = LlamaCppModel(name)
    except ValueError as error:
        raise ValueError(f"llama.cpp cannot load {name}: {' '.join(str(error).split())[:200]}") from None
    return model, LlamaCppTokenizer(model.llama)


# fmt: off
TORCH = {"torch": "torch", "transformers": "transformers"}
OTHERS = {
    "transformers": Engine("Hugging Face transformers: a folder, a GGUF file, or OWNER/NAME on the hub",
        name_for_transformers, load_transformers, TORCH),
    "transformers_float32": Engine("the same in float32, which rounds least",
        name_for_transformers, partial(load_transformers, dtype="float32"), TORCH),
    "llama_cpp": Engine("llama-cpp-python: a GGUF file",
        name_for_llama_cpp, load_llama_cpp, {"llama_cpp": "llama-cpp-python"}),
}
# fmt: on
