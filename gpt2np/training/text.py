"""The text to learn from: batches that the target itself writes, stored in files with its hidden states.

A prompt is a random piece of the given texts, and the target continues it, because a drafter has to predict words from
the target. In every eight batches, three are greedy, two use temperature 1, one uses 0.6, one extends to the last
position, and one is the given text itself. Tokens are int32: GPT-2's ids go up to 50256.
"""

import numpy as np
import torch

from ..files.writing import replacing
from .network import DEVICE

TEMPERATURES = (0, 1.0, 0, 0.6, 0, 1.0, 1.0, 1.0)  # for eight batches in turn
LAST_POSITIONS, AS_GIVEN = 6, 7  # the indices of two special batches
LEAST_CTX = 32


def lengths(n_ctx, i=0):
    """(tokens of the prompt, tokens that the target adds) in batch i."""
    n_prompt, n_new = (64, 128) if n_ctx >= 192 else (n_ctx // 3, n_ctx - n_ctx // 3)
    if i % 8 == LAST_POSITIONS:
        return n_ctx - n_new, n_new
    return (n_prompt + n_new, 0) if i % 8 == AS_GIVEN else (n_prompt, n_new)


def split(stream, n_ctx):
    """(tokens to train on, held-out tokens) of a stream of tokens; ValueError if it is too short for prompts."""
    n_held_out, least = max(len(stream) // 20, n_ctx + 1), 4 * (n_ctx + 1)
    if len(stream) < least:
        raise ValueError(f"expected {least} tokens of text or more, for different prompts, got {len(stream)}: add text")
    return stream[:-n_held_out], stream[-n_held_out:]


class OwnText:
    """Batches of text in a folder, written when they are first asked for.

    Parameters
    ----------
    target : Target
    write : callable
        write(prompts [n_texts, n], n_new, temperature, seeds [n_texts]) -> tokens [n_texts, n + n_new], by the target.
    stream : array [n] int32
        Tokens to take prompts from. A batch is `n_texts` texts of 192 tokens each, or fewer but longer ones with the
        same number of tokens in total.
    """

    def __init__(self, folder, target, write, stream, n_texts, seed, name="text"):
        self.folder = folder
        self.target = target
        self.write = write
        self.stream = stream
        self.n_texts = n_texts
        self.seed = seed
        self.name = name

    def path(self, i):
        return self.folder / f"{self.name}_{i:05d}.npy"

    def batch(self, i):
        """(tokens [n_texts, n] int32, hidden states [n_texts, n - 1, n_embd] float16), memory-mapped."""
        path = self.path(i)
        if not path.exists():  # the tokens' file appears last, when both files are complete
            tokens = self.written(i)
            inputs = torch.from_numpy(tokens[:, :-1].astype(np.int64)).to(DEVICE)
            hidden = [self.target.states(texts).half().cpu() for texts in inputs.split(4)]
            save(path.with_suffix(".states.npy"), torch.cat(hidden).numpy())
            save(path, tokens)
        tokens = loaded(path, (None, None))
        n_texts, n = tokens.shape
        return tokens, loaded(path.with_suffix(".states.npy"), (n_texts, n - 1, self.target.hparams.n_embd))

    def written(self, i):
        (n_prompt, n_new), rng = lengths(self.target.hparams.n_ctx, i), np.random.default_rng([self.seed, i])
        n_texts = max(1, self.n_texts * 192 // max(192, n_prompt + n_new))
        starts = rng.integers(0, len(self.stream) - n_prompt, n_texts)
        prompts, seeds = np.array([self.stream[s : s + n_prompt] for s in starts]), rng.integers(1 << 31, size=n_texts)
        if not n_new:
            return prompts
        return np.array(self.write(prompts, n_new, TEMPERATURES[i % 8], seeds.tolist()), np.int32)


def save(path, array):
    with replacing(path) as new, new.open("wb") as file:
        np.save(file, array)


def loaded(path, shape):
    """The array of this shape in a file, memory-mapped; None stands for any size."""
    try:
        array = np.load(path, mmap_mode="r")
        if array.ndim != len(shape) or any(size not in (None, n) for size, n in zip(shape, array.shape)):
            raise ValueError
        return array
    except Exception as error:  # it may have many types
        raise ValueError(f"{path} is damaged ({type(error).__name__}): delete its folder, and train again") from None


def tensors_of(batch, rows=slice(None)):
    """(tokens int64, hidden states float32) of these texts of a batch, as tensors."""
    tokens, hidden = (array[rows] for array in batch)
    return torch.from_numpy(tokens.astype(np.int64)).to(DEVICE), torch.from_numpy(hidden.astype(np.float32)).to(DEVICE)
