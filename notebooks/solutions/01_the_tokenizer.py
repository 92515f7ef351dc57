"""Solutions to the exercises of 01_the_tokenizer.ipynb."""

from itertools import pairwise

from gpt2np.tokenizer import byte_symbols


def merge(symbols, pair):
    """`symbols` with every occurrence of the adjacent `pair` joined, from left to right.

    Parameters
    ----------
    symbols : list of str
        Must not be changed.
    pair : tuple (str, str)

    Returns
    -------
    list of str

    Examples
    --------
    >>> merge(["a", "a", "a", "b"], ("a", "a"))
    ['aa', 'a', 'b']
    """
    # Builds a new list. Its last symbol waits for a partner, unless it has just been joined.
    merged, waiting = [], False
    for symbol in symbols:
        if waiting and (merged[-1], symbol) == pair:
            merged[-1] += symbol
            waiting = False
        else:
            merged.append(symbol)
            waiting = True
    return merged


def encode_piece(piece, ranks, vocabulary):
    """The token ids of one piece of text.

    Parameters
    ----------
    piece : str
        As returned by step 1, such as a word with the space before it.
    ranks : dict (str, str) -> int
        The rank of each pair in the list of merges; the lowest goes first.
    vocabulary : dict str -> int

    Returns
    -------
    list of int

    Examples
    --------
    With the merges o + w (rank 0) and l + ow (rank 1), "low" becomes l o w, l ow, low.
    """
    # The bytes as symbols; then join the pair of the lowest rank until no pair is in the list of merges.
    symbols = [byte_symbols()[byte] for byte in piece.encode("utf-8")]
    while candidates := [pair for pair in pairwise(symbols) if pair in ranks]:
        symbols = merge(symbols, min(candidates, key=ranks.get))
    return [vocabulary[symbol] for symbol in symbols]


class MyStreamDecoder:
    """Decodes tokens one by one and never shows half a character.

    The strings returned by all calls of `push`, joined, are the text, as soon as its last
    character is complete.
    """

    def __init__(self, bytes_of):
        """`bytes_of(token)` gives the bytes of a token id."""
        self.bytes_of = bytes_of
        # add what you need
        self.held = b""

    def push(self, token):
        """The text (str, possibly empty) that this token completes."""
        # Try to decode all held bytes; at most three bytes at the end can belong to an incomplete character.
        self.held += self.bytes_of(token)
        for n_back in range(min(4, len(self.held) + 1)):
            whole, rest = self.held[: len(self.held) - n_back], self.held[len(self.held) - n_back :]
            try:
                text = whole.decode("utf-8")
            except UnicodeDecodeError:
                continue
            self.held = rest
            return text
        return ""
