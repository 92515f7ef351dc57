"""The tokenizer in a GGUF file, with llama-cpp-python."""

from functools import lru_cache
from typing import Any

from .transformers_tokenizer import NO_TEMPLATE, TransformersTokenizer


class LlamaCppTokenizer(TransformersTokenizer):
    """The same as TransformersTokenizer, for a GGUF file.

    Parameters
    ----------
    llama : llama_cpp.Llama
        Such as `LlamaCppModel(path).llama`. Its `ends` are all tokens that end a text or a turn for llama.cpp.
    """

    def __init__(self, llama: Any):
        import llama_cpp

        self.llama, self.n_vocab = llama, llama.n_vocab()
        vocab = llama_cpp.llama_model_get_vocab(llama.model)
        self.symbol_of = lambda token: llama_cpp.llama_vocab_get_text(vocab, token).decode()
        self.special = {t for t in range(self.n_vocab) if llama_cpp.llama_vocab_is_control(vocab, t)}
        self.ends = {t for t in range(self.n_vocab) if llama_cpp.llama_vocab_is_eog(vocab, t)}
        self.end_of_text = llama.token_eos() if llama.token_eos() >= 0 else None
        self.start = [token for token in llama.tokenize(b"", add_bos=True) if token != self.end_of_text]
        self.bytes_of = lru_cache(maxsize=None)(self._bytes_of)
        self.head = "" if self.bytes_of((self.ids("a") or [0])[0]) == b"a" else "\n"

    def ids(self, text, special=False):
        return self.llama.tokenize(text.encode(), add_bos=False, special=special)

    @property
    def vocabulary(self) -> dict[str, int]:
        """The token id of each symbol."""
        return {self.symbol_of(token): token for token in range(self.n_vocab)}

    def chat(self, question: str) -> list[int]:
        """The token ids of a question in the file's chat template; ValueError if it has none."""
        from llama_cpp.llama_chat_format import Jinja2ChatFormatter

        if not (template := self.llama.metadata.get("tokenizer.chat_template")):
            raise ValueError(NO_TEMPLATE)
        eos, bos = (self.symbol_of(t) if t >= 0 else "" for t in (self.llama.token_eos(), self.llama.token_bos()))
        text = Jinja2ChatFormatter(template, eos, bos)(messages=[{"role": "user", "content": question}]).prompt
        return self.llama.tokenize(text.encode(), add_bos=False, special=True)

    def _bytes_of(self, token):
        return b"" if token in self.special else self.llama.detokenize([token])
