"""Solutions to the exercises of 01_the_tokenizer.ipynb."""

from itertools import pairwise

from gpt2np.tokenizer import byte_symbols


def merge(symbols, pair):
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
    # The bytes as symbols; then join the pair of the lowest rank until no pair is in the list of merges.
    symbols = [byte_symbols()[byte] for byte in piece.encode("utf-8")]
    while candidates := [pair for pair in pairwise(symbols) if pair in ranks]:
        symbols = merge(symbols, min(candidates, key=ranks.get))
    return [vocabulary[symbol] for symbol in symbols]


class MyStreamDecoder:
    def __init__(self, bytes_of):
        self.bytes_of = bytes_of
        self.held = b""

    def push(self, token):
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
