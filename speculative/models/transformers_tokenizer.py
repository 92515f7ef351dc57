"""A tokenizer of Hugging Face transformers: for prompts, and for draft models of other families (shared_tokens.py).

Two kinds are supported: byte-level BPE (GPT-2, Llama 3, Qwen) writes each byte of a token as one visible character, and
SentencePiece (Llama 2, Mistral, Gemma) a space as "▁" and some single bytes as "<0x0A>".
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

NO_TEMPLATE = "the model has no chat template: write one, with {prompt} in it"


class TransformersTokenizer:
    """A `shared_tokens.Tokenizer`, for `SharedTokensModel` and `TextDrafter`.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerFast
        As AutoTokenizer.from_pretrained returns it.
    ends : int or list of int, optional
        The tokens that end a text: `model.generation_config.eos_token_id`. By default the tokenizer's only one.

    Attributes
    ----------
    start : list of int
        The tokens that it puts before every text, such as Llama's <|begin_of_text|>: `encode` with `special` adds them,
        and a chat template writes its own.
    ends : set of int
        For the `stop_tokens` of a sampler.

    Examples
    --------
        of_target, of_draft = (TransformersTokenizer(AutoTokenizer.from_pretrained(name)) for name in names)
        drafter = ModelDrafter(SharedTokensModel(draft, of_target, of_draft, target.n_vocab))
    """

    n_vocab: int
    end_of_text: int | None
    start: list[int]
    ends: set[int]

    def __init__(self, tokenizer: Any, ends: int | Iterable[int] | None = None):
        from tokenizers.pre_tokenizers import ByteLevel

        self.tokenizer = tokenizer
        self.n_vocab, self.end_of_text = len(tokenizer), tokenizer.eos_token_id
        ends = tokenizer.eos_token_id if ends is None else ends
        self.ends = {*ends} if isinstance(ends, Iterable) else {ends} - {None}
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

    def ids(self, text, special=False):
        return self.tokenizer(text, add_special_tokens=False, split_special_tokens=not special)["input_ids"]

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The token ids of a text; see `gpt2np.Tokenizer.encode` for `special`."""
        tokens = self.ids(self.head + text, special)[len(self.ids(self.head)) if self.head else 0 :]
        return [*self.start, *tokens] if special else tokens

    @property
    def vocabulary(self) -> dict[str, int]:
        """The token id of each symbol."""
        return self.tokenizer.get_vocab()

    def chat(self, question: str) -> list[int]:
        """The token ids of a question in the model's chat template; ValueError if it has none.

        They are ids because a text would lose a template's last space, and get its first token twice. As in the engine
        itself, the name of a special token in the question becomes that token.
        """
        if not self.tokenizer.chat_template:
            raise ValueError(NO_TEMPLATE)
        messages = [{"role": "user", "content": question}]
        return self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)

    def shown(self, token: int) -> bytes:
        """The bytes of a token id in a decoded text: none of a special token."""
        return self.bytes_of(token)

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of token ids, without special tokens."""
        return b"".join(map(self.bytes_of, tokens)).decode("utf-8", errors="replace")

    def _bytes_of(self, token):
        symbol = None if token in self.special else self.tokenizer.convert_ids_to_tokens(int(token))
        if symbol is None:
            return b""
        if self.byte_level:
            return bytes(self.byte_of[c] for c in symbol) if self.byte_of.keys() >= {*symbol} else symbol.encode()
        if symbol.startswith("<0x") and symbol.endswith(">") and len(symbol) == 6:
            return bytes([int(symbol[3:5], 16)])
        return symbol.replace("▁", " ").encode()
