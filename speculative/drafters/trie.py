"""Several continuations as one tree: a trie, in which equal prefixes are shared.

A drafter that copies from the text, from a pool of n-grams or from a corpus finds several continuations, and a chain
can take only one of them. Nothing in a trie is drawn: its rows are one-hot, siblings differ, and `exact_match` and
`rejection` are exact. The order of the continuations is the order of the tests.
Source: Yang et al., arXiv:2304.04487 (copies); Miao et al. (SpecInfer), arXiv:2305.09781, section 3 (merging them).
"""


def merged(sequences):
    """The trie of sequences of token ids: (tokens, parents, ends), where ends[i] is the node at which sequence i ends.

    Level by level, and in a level in the order of the sequences.

    >>> merged([[7, 8], [7, 9, 5], [4]])
    ([7, 4, 8, 9, 5], [-1, -1, 0, 0, 3], [2, 4, 1])
    """
    tokens, parents, place = [], [], {(): -1}
    sequences = [tuple(map(int, sequence)) for sequence in sequences]
    for depth in range(max(map(len, sequences), default=0)):
        for sequence in sequences:
            path = sequence[: depth + 1]
            if len(path) > depth and path not in place:
                place[path] = len(tokens)
                tokens.append(path[-1])
                parents.append(place[path[:-1]])
    return tokens, parents, [place[sequence] for sequence in sequences]
