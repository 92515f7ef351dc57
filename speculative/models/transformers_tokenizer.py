"""A tokenizer of Hugging Face transformers, for a draft model of a different family (shared_tokens.py).

Two kinds are supported: byte-level BPE (GPT-2, Llama 3, Qwen) writes each byte of a token as one visible character, and
SentencePiece (Llama 2, Mistral, Gemma) a space as "▁" and some single bytes as "<0x0A>".
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any


class TransformersTokenizer:
    """A `shared_tokens.Tokenizer`, for `SharedTokensModel` and `TextDrafter`.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerFast
        As AutoTokenizer.from_pretrained returns it.

    Attributes
    ----------
    start : list of int
        The tokens that it puts before every text, such as Llama's <|begin_of_text|>; a draft model sees them once.

    Examples
    --------
        of_target, of_draft = (TransformersTokenizer(AutoTokenizer.from_pretrained(name)) for name in names)
        drafter = ModelDrafter(SharedTokensModel(draft, of_target, of_draft, target.n_vocab))
    """

    n_vocab: int
    end_of_text: int | None
    start: list[int]

    def __init__(self, tokenizer: Any):
        from tokenizers.pre_tokenizers import ByteLevel

        self.tokenizer = tokenizer
        self.n_vocab, self.end_of_text = len(tokenizer), tokenizer.eos_token_id
        self.start = [token for token in tokenizer("")["input_ids"] if token != self.end_of_text]
        self.byte_level = "ByteLevel" in str(tokenizer.backend_tokenizer.decoder)
        # printable Latin-1 characters stand for their own byte; the other bytes follow in order
        alphabet = sorted(ByteLevel.alphabet())
        others = [byte for byte in range(256) if chr(byte) not in alphabet]
        self.byte_of = dict(zip(alphabet, [*(ord(c) for c in alphabet if ord(c) < 256), *others]))
        self.special = {*tokenizer.all_special_ids}
        self.bytes_of: Callable[[int], bytes] = lru_cache(maxsize=None)(self._bytes_of)
        # a SentencePiece tokenizer puts a space before each text, so encode the text after a newline, then cut that off
        self.head = "" if self.bytes_of((self.ids("a") or [0])[0]) == b"a" else "\n"

    def ids(self, text):
        return self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]

    def encode(self, text: str) -> list[int]:
        """The token ids of a text. Nothing is added, and the name of a special token is treated like any other text."""
        return self.ids(self.head + text)[len(self.ids(self.head)) if self.head else 0 :]

    def _bytes_of(self, token):
        symbol = None if token in self.special else self.tokenizer.convert_ids_to_tokens(token)
        if symbol is None:
            return b""
        if self.byte_level:
            return bytes(self.byte_of[c] for c in symbol) if self.byte_of.keys() >= {*symbol} else symbol.encode()
        if symbol.startswith("<0x") and symbol.endswith(">") and len(symbol) == 6:
            return bytes([int(symbol[3:5], 16)])
        return symbol.replace("▁", " ").encode()
