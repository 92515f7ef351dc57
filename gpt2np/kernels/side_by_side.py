"""The caches of several texts in one pass, used like the cache of one text.

A pass reads every weight once, whether for one text or for many, and the result of a row is bitwise identical whatever
other rows are computed with it (matmul.py). So the rows of all texts go through norms, linear layers and the vocabulary
projection together. Nothing is padded, and texts may have any lengths. One may be in prefill while others verify a
chain or a tree. Only attention looks at the cache of each text, so there each text attends alone, to its own cache.

Leaves out: the pass itself (`together` in model.py), and when to make one (speculative/together.py).
"""

import numpy as np


class Caches:
    """The caches of several texts as one: `layers` for a pass over the rows of all texts, then `ran` to count them.

    Parameters
    ----------
    texts : list of (KVCache, n_new, mask, n_last)
        As in `layers.attention`; the rows of a text follow those of the text before it. `last` [sum of n_last] lists
        the requested rows.
    """

    def __init__(self, texts):
        self.texts = texts
        ends = np.cumsum([n_new for _, n_new, _, _ in texts])
        self.last = np.concatenate([np.arange(end - n_last, end) for end, (*_, n_last) in zip(ends, texts)])
        self.layers = [Layer(texts, i) for i in range(len(texts[0][0].layers))]

    def ran(self, _):
        for cache, n_new, _, _ in self.texts:
            cache.ran(n_new)


class Layer:
    """One layer of the caches, used as a LayerCache."""

    def __init__(self, texts, i):
        self.layers = [cache.layers[i] for cache, *_ in texts]
        _, self.n_new, self.masks, self.n_last = zip(*texts)

    def append(self, k, v):
        ends = np.cumsum(self.n_new)[:-1]
        for layer, own_k, own_v in zip(self.layers, np.split(k, ends, axis=1), np.split(v, ends, axis=1)):
            layer.append(own_k, own_v)

    def attend(self, q, _):
        """As `LayerCache.attend`; q has the rows of all new tokens, or of the requested ones."""
        sizes = self.n_new if q.shape[1] == sum(self.n_new) else self.n_last
        parts = np.split(q, np.cumsum(sizes)[:-1], axis=1)
        return np.concatenate([layer.attend(own, mask) for layer, own, mask in zip(self.layers, parts, self.masks)])
