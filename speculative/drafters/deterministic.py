"""Drafts in which nothing is sampled, with one-hot rows and with several continuations in one tree.

A drafter that copies from the text, from a pool of n-grams or from a corpus may find several continuations, and a chain
can be only one of them. A trie contains them all, and shares their common prefixes. Since every token is deterministic
and siblings differ, `rejection` and `exact_match` are exact; the order of the continuations is the order of the tests.
Source: Yang et al., arXiv:2304.04487 (copies); Miao et al. (SpecInfer), arXiv:2305.09781, section 3 (merging them).
"""

from collections.abc import Sequence

import numpy as np

from ..interfaces import Draft, Tokens


def one_hot(tokens: Tokens, n_vocab: int, parents: Sequence[int] | np.ndarray | None = None) -> Draft:
    """A draft of deterministic tokens: its rows are one-hot. ValueError if a token is not in the vocabulary."""
    tokens = np.array(tokens, dtype=np.int64)
    if (outside := tokens[(tokens < 0) | (tokens >= n_vocab)]).size:
        raise ValueError(
            f"the drafter copied token {outside[0]}, and its n_vocab is {n_vocab}: draft, target and corpus must share "
            "one vocabulary"
        )
    probs = np.zeros((len(tokens), n_vocab))
    probs[np.arange(len(tokens)), tokens] = 1
    return Draft(tokens, probs, None if parents is None else np.array(parents, dtype=np.int64))


def merged(sequences):
    """The trie of sequences of token ids: (tokens, parents, ends), where ends[i] is the node at which sequence i ends.

    Nodes are ordered by depth; within a depth, by the first sequence that contains them.

    >>> merged([[7, 8], [7, 9, 5], [4]])
    ([7, 4, 8, 9, 5], [-1, -1, 0, 0, 3], [2, 4, 1])
    """
    tokens, parents = [], []
    node_of = {(): -1}  # path -> its node
    sequences = [tuple(map(int, sequence)) for sequence in sequences]
    for depth in range(max(map(len, sequences), default=0)):
        for sequence in sequences:
            path = sequence[: depth + 1]
            if len(path) > depth and path not in node_of:
                node_of[path] = len(tokens)
                tokens.append(path[-1])
                parents.append(node_of[path[:-1]])
    return tokens, parents, [node_of[sequence] for sequence in sequences]
