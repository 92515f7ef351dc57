"""The KV cache stores the keys and values of earlier tokens and finds the ones that the next call can use.

Attention is the only layer that looks at other tokens, and it needs only their k and v. Generating n tokens one by one
takes 1 + 2 + ... + n token passes without a cache and n with one. Each token has a slot. The tokens of a text come
first, in order, and the tokens of a tree follow. An array that is full is replaced by one of twice the size, so few
tokens are ever copied. Tokens are forgotten by reducing a length, and the slots after it are overwritten later.

No caller ever manages the cache: `KVCache.reuse` compares the cached tokens with those of the next call, text or tree.
Leaves out: reading the keys and values in attention (kernels/layer_cache.py).
"""

import operator
from collections.abc import Sequence

import numpy as np

from .kernels.attention import skips_zeros
from .kernels.layer_cache import LayerCache

Tokens = Sequence[int] | np.ndarray  # [n] whole numbers


class KVCache:
    """Keys and values of the first `length` tokens in every layer, with room for n_ctx.

    For GPT-2's shapes a full cache takes 1.13 times 2 * n_layer * n_ctx * n_embd entries because of the padding. The
    arrays grow with the text.

    A model calls `reuse`, runs the tokens that are missing, and then sets `length`. Without a model, `forward` appends
    to the first `length` tokens, whatever they are.
    """

    def __init__(self, n_layer, n_head, n_ctx, d_head, strategy=None):
        self.length = 0
        self.tokens = TokenTree()  # the tokens of the last `reuse`; the first `length` are in the cache
        self.layers = [LayerCache(n_head, n_ctx, d_head, strategy, self) for _ in range(n_layer)]

    def ran(self, n_new):
        """Count n_new tokens that a pass has appended in every layer."""
        self.length += n_new

    def truncate(self, length):
        """Forget all tokens from slot `length` on."""
        self.length = min(self.length, operator.index(length))  # a NumPy integer becomes an int

    def reuse(self, wanted, n_most, rows=None):
        """Keep the cached tokens that the wanted tokens (TokenTree) can use, at most n_most.

        Afterwards the first `length` wanted tokens are in the cache. If the text continues along a branch of the last
        tree, the branch moves next to the text: keys, values, and `rows`, an array with a row for each slot.

        Ctrl-C may come between any two steps, so after each step the first `length` of `tokens` must be in the cache.
        First the cache shrinks to the tokens that stay where they are, which begin both `tokens` and `wanted`. Then
        `tokens` changes, and slots after the length are overwritten. The length grows last, here and after a pass, so
        entries from an unfinished move or pass are never read.
        """
        n_prefix, slots = kept_slots(self.tokens, self.length, wanted)
        slots = slots[: max(0, n_most - n_prefix)]
        self.truncate(min(n_prefix, n_most))
        self.tokens = wanted
        begin, end = self.length, self.length + len(slots)
        if slots != list(range(begin, end)):
            for layer in self.layers:
                layer.move(slots, begin)
            if rows is not None:
                rows[begin:end] = rows[slots]
        self.length = end


class TokenTree:
    """Tokens whose last len(parents) form a tree that follows the rest.

    For each token of the tree, `parents` contains the index of the token before it: parents[i] < i in the tree, or -1
    for the end of the text. Lists, arrays and tensors are copied; ValueError unless they contain whole numbers.
    """

    def __init__(self, tokens=(), parents=()):
        self.tokens, self.parents = whole_numbers(tokens), whole_numbers(parents)
        self.n_text = len(self.tokens) - len(self.parents)

    def parent_slot(self, slot):
        """The slot of the token before the one in this slot, in the text or tree; -1 for the first token."""
        if slot < self.n_text:
            return slot - 1
        parent = self.parents[slot - self.n_text]
        return self.n_text + parent if parent >= 0 else self.n_text - 1

    def positions_and_mask(self, begin):
        """The positions [n_new] of the tokens from slot `begin` on, and their mask [n_new, n_tokens] for attention.

        Without a tree they are a slice and None, because each token attends to all tokens before it.
        """
        n = len(self.tokens)
        if not self.parents:
            return slice(begin, n), None
        positions, seen = np.arange(n), np.tri(n, dtype=bool)
        for slot in range(self.n_text, n):
            parent = self.parent_slot(slot)
            positions[slot] = positions[parent] + 1
            seen[slot, self.n_text :] = seen[parent, self.n_text :]
            seen[slot, slot] = True
        return positions[begin:], np.where(seen[begin:], np.float32(0), np.float32(-np.inf))

    def check(self, n_last, hparams):
        """n_last as an int, since NumPy's small integers overflow; ValueError unless a model can run these tokens."""
        tokens, parents = self.tokens, self.parents
        [n_last] = whole_numbers([n_last])
        if not 1 <= len(tokens) <= hparams.n_ctx:
            raise ValueError(f"expected 1 to n_ctx = {hparams.n_ctx} tokens, got {len(tokens)}")
        if not 1 <= n_last <= len(tokens):
            raise ValueError(f"expected n_last from 1 to the number of tokens, {len(tokens)}, got {n_last}")
        if min(tokens) < 0 or max(tokens) >= hparams.n_vocab:
            raise ValueError(
                f"expected token ids from 0 to {hparams.n_vocab - 1}, got {min(tokens)} to {max(tokens)}: "
                "encode the text with this model's tokenizer"
            )
        if len(parents) >= len(tokens) or any(not -1 <= parent < i for i, parent in enumerate(parents)):
            raise ValueError(
                f"expected parents of a tree after at least one token of text, each -1 or the index of an earlier "
                f"token of the tree, got {parents} for {len(tokens)} tokens"
            )
        return n_last


def whole_numbers(tokens):
    """A list of int with the elements of a list, an array or a tensor. A tensor's elements are views, not numbers."""
    try:
        return list(map(operator.index, tokens.tolist() if hasattr(tokens, "tolist") else tokens))
    except TypeError:
        raise ValueError("expected whole numbers as tokens, parents and n_last: encode the text first") from None


def kept_slots(cached, n_valid, wanted):
    """The slots of a cache that the wanted tokens (TokenTree) can use: (n, slots).

    The first n tokens are in the first n slots, and the tokens after them are in `slots`, in order; any further ones
    are not cached. The cache holds the first n_valid tokens of `cached` (TokenTree), which was run last.

    Examples
    --------
    The text 5, 6 is followed by the alternatives 7 and 8, and 8 by 9. Then the text continues with 8, 9, 4:

    >>> cached = TokenTree([5, 6, 7, 8, 9], parents=[-1, -1, 1])
    >>> kept_slots(cached, 5, TokenTree([5, 6, 8, 9, 4]))
    (2, [3, 4])
    """
    n = min(cached.n_text, wanted.n_text, n_valid)
    if cached.tokens[:n] != wanted.tokens[:n]:
        n = next(i for i in range(n) if cached.tokens[i] != wanted.tokens[i])
    slot_of = {(cached.tokens[slot], cached.parent_slot(slot)): slot for slot in range(n, n_valid)}
    slots = []
    for wanted_slot in range(n, len(wanted.tokens)):
        parent = wanted.parent_slot(wanted_slot)
        slot = slot_of.get((wanted.tokens[wanted_slot], parent if parent < n else slots[parent - n]))
        if slot is None:
            break
        slots.append(slot)
    return n, slots


def n_reusable(wanted, n_last, strategy):
    """The number of wanted tokens that need not be run if cached: all except the ones whose logits are requested.

    If zero weights among nonzero ones change the bits of a sum, no token of a tree can be reused, because an
    interrupted pass may have overwritten its slot (`moved_together` in kernels/attention.py).
    """
    n = len(wanted.tokens) - n_last
    return n if not wanted.parents or skips_zeros(strategy) else min(n, wanted.n_text)
