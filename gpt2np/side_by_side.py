"""The caches of several texts in one pass. They lie side by side in memory and are used like the cache of one text.

A pass reads every weight once, whether for one text or for many, and the result of a row is bitwise identical whatever
other rows are computed with it (kernels/). So the rows of all texts go through norms, linear layers and the vocabulary
projection together. Nothing is padded there, and texts may have any lengths. One may be in prefill while others verify
a chain or a tree. Only attention looks at the cache of each text. Texts with few new tokens attend together, like one
text with more heads, padded to the longest text and to the largest number of new tokens. The other texts attend alone.

Leaves out: the pass itself (`together` in model.py), and when to make one (speculative/together.py).
"""

from itertools import accumulate

import numpy as np

from .cache import KVCache
from .kernels.attention import PIECE, padded, round_up, skips_zeros, weighted_sums
from .kernels.layer_cache import LayerCache
from .kernels.memory import aligned_zeros

FEW = 16  # new tokens of a text; a text with more attends alone, because the others would be padded to its length


def caches_side_by_side(n, hparams, strategy):
    """n KVCaches, for n texts. Their arrays grow with the longest text."""
    rooms = [Room(n, hparams.n_head, hparams.n_ctx, hparams.d_head) for _ in range(hparams.n_layer)]
    caches = []
    for place in range(n):
        cache = KVCache(0, hparams.n_head, hparams.n_ctx, hparams.d_head, strategy)
        cache.layers = [PlaceInLayer(room, place, strategy, cache) for room in rooms]
        caches.append(cache)
    return caches


class Room:
    """The keys and values of one layer for n texts: `arrays`, each like a LayerCache's, with a first axis [n]."""

    def __init__(self, n, n_head, n_ctx, d_head):
        self.shape, self.n_ctx = (n, n_head, d_head), n_ctx
        self.arrays = self.empty(PIECE)

    def empty(self, n_columns):
        n, n_head, d_head = self.shape
        try:
            return aligned_zeros((*self.shape, n_columns)), aligned_zeros((n, n_head, n_columns, round_up(d_head + 1)))
        except MemoryError:
            raise MemoryError(f"the caches of {n} texts at once do not fit in memory: use fewer lanes") from None

    def fit(self, n_seq):
        """Make room for texts of n_seq tokens. If there is too little room, at least double it."""
        keys, values = self.arrays
        old = keys.shape[-1]
        if n_seq > old:
            new_keys, new_values = self.empty(round_up(min(self.n_ctx, max(2 * old, n_seq)), PIECE))
            new_keys[..., :old], new_values[:, :, :old] = keys, values
            self.arrays = new_keys, new_values


class PlaceInLayer(LayerCache):
    """The LayerCache of one of the texts."""

    def __init__(self, room, place, strategy, whole):
        self.room, self.place, self.strategy, self.whole, self.n_seq = room, place, strategy, whole, 0

    @property
    def keys(self):
        return self.room.arrays[0][self.place]

    @property
    def values(self):
        return self.room.arrays[1][self.place]

    def append(self, k, v):
        self.room.fit(self.whole.length + k.shape[1])
        super().append(k, v)


class Caches:
    """The caches of several texts as one: `layers` for a pass over the rows of all texts, then `ran` to count them.

    Parameters
    ----------
    texts : list of (KVCache, n_new, mask, n_last)
        As in `layers.attention`. `order` lists the indices of the texts in the order of their rows, and `last`
        [sum of n_last] the requested rows.
    """

    def __init__(self, texts, strategy):
        places = [cache.layers[0].place for cache, *_ in texts]
        short = [n_new <= FEW and (mask is None or skips_zeros(strategy)) for _, n_new, mask, _ in texts]
        few = sorted((i for i in range(len(texts)) if short[i]), key=places.__getitem__)
        if len(few) < 2 or 2 * len(few) < places[few[-1]] - places[few[0]]:  # too many places in between are empty
            few = []
        alone = [i for i in range(len(texts)) if i not in few]
        self.order, self.texts = [*few, *alone], texts
        self.parts = ([SideBySide([texts[i] for i in few], strategy)] if few else []) + [Alone(texts[i]) for i in alone]
        begins = accumulate((texts[i][1] for i in self.order), initial=0)
        last = [begin + np.arange(texts[i][1])[-texts[i][3] :] for i, begin in zip(self.order, begins)]
        self.last = np.concatenate(last)
        self.layers = [Layer(self.parts, i) for i in range(len(texts[0][0].layers))]

    def ran(self, _):
        for cache, n_new, _, _ in self.texts:
            cache.ran(n_new)


class Layer:
    """One layer of the caches, used as a LayerCache."""

    def __init__(self, parts, i):
        self.parts, self.i = parts, i

    def append(self, k, v):
        for part, k_of_part, v_of_part in self.split(k, v):
            part.append(self.i, k_of_part, v_of_part)

    def attend(self, q, _):
        return np.concatenate([part.attend(self.i, q_of_part) for part, q_of_part in self.split(q)])

    def split(self, *arrays):
        """(part, its rows of each array [n_head, n, d_head]) for each part; n counts all or the requested rows."""
        sizes = [len(part.rows) for part in self.parts]
        if sum(sizes) != arrays[0].shape[1]:
            sizes = [len(part.last) for part in self.parts]
        for part, end, size in zip(self.parts, accumulate(sizes), sizes):
            yield part, *(array[:, end - size : end] for array in arrays)


class Alone:
    """A text that attends by itself."""

    def __init__(self, text):
        self.cache, n_new, self.mask, n_last = text
        self.rows, self.last = range(n_new), range(n_last)

    def append(self, i, k, v):
        self.cache.layers[i].append(k, v)

    def attend(self, i, q):
        return self.cache.layers[i].attend(q, self.mask)


class SideBySide:
    """Texts with few new tokens at neighbouring places, treated as one text with more heads."""

    def __init__(self, texts, strategy):
        caches, counts, masks, n_last = zip(*texts)
        places = np.array([cache.layers[0].place for cache in caches])
        past, counts = np.array([cache.length for cache in caches]), np.array(counts)
        self.rooms, self.strategy = [layer.room for layer in caches[0].layers], strategy
        self.places = slice(places[0], places[-1] + 1)
        self.n_rows, self.n_seq = counts.max(), (past + counts).max()
        # for each row: its text, its index among the new tokens of the text, and its slot
        text, row = np.repeat(places - places[0], counts), np.concatenate([np.arange(n) for n in counts])
        self.slots = text, np.repeat(past, counts) + row
        ends = np.repeat(counts, counts)
        self.rows = np.stack([text, row], axis=1)
        self.last = self.rows[row >= ends - np.repeat(n_last, counts)]
        n_texts = places[-1] + 1 - places[0]
        begins = np.zeros(n_texts, int)  # 0 for a text that takes no part, whose rows are not used
        begins[places - places[0]] = past
        seen = np.arange(self.n_seq) <= (begins[:, None] + np.arange(self.n_rows))[..., None]
        mask = np.where(seen, np.float32(0), np.float32(-np.inf))  # [n_texts, n_rows, n_seq]
        for place, own in zip(places - places[0], masks):
            if own is not None:
                n_new, n_own = own.shape
                mask[place, :n_new, :n_own], mask[place, :n_new, n_own:] = own, -np.inf
        self.mask = np.repeat(mask, self.rooms[0].shape[1], axis=0)

    def append(self, i, k, v):
        self.rooms[i].fit(self.n_seq)
        (text, slot), (keys, values) = self.slots, (array[self.places] for array in self.rooms[i].arrays)
        keys[text, :, :, slot] = k.swapaxes(0, 1)  # [n_head, n_new, d_head] -> [n_new, n_head, d_head]
        values[text, :, slot, : k.shape[2]] = v.swapaxes(0, 1)
        values[text, :, slot, k.shape[2]] = 1

    def attend(self, i, q):
        n_head, n_new, d_head = q.shape
        text, row = (self.rows if n_new == len(self.rows) else self.last).T
        keys, values = (array[self.places] for array in self.rooms[i].arrays)
        n_texts, n = len(keys), padded(self.n_seq, keys.shape[-1], self.strategy)
        new = np.zeros((n_texts, n_head, self.n_rows, d_head), np.float32)
        new[text, :, row] = q.swapaxes(0, 1)
        new, keys, values = (array.reshape(n_texts * n_head, *array.shape[2:]) for array in (new, keys, values))
        sums = weighted_sums(new, keys[..., :n], values[:, :n], self.mask, self.strategy)
        sums = sums.reshape(n_texts, n_head, self.n_rows, -1)[text, :, row]  # -> [n_new, n_head, d_head + 1], padded
        return (sums[..., :d_head] / sums[..., d_head, None]).reshape(n_new, -1)
