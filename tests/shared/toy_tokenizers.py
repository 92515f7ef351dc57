"""Tokenizers of a few tokens, which disagree on ids, on where tokens end, on bytes and on what they can write."""


class ToyTokenizer:
    """Takes the longest token that fits, from left to right, and leaves out what no token fits.

    Parameters
    ----------
    *tokens : bytes, or None for end_of_text
    """

    def __init__(self, *tokens):
        self.n_vocab, self.tokens = len(tokens), tokens
        self.end_of_text = tokens.index(None) if None in tokens else None

    def encode(self, text):
        left, found = text.encode(), []
        while left:
            fits = [token for token in self.tokens if token and left.startswith(token)]
            longest = max(fits, key=len, default=left[:1])
            found += [self.tokens.index(longest)] if fits else []
            left = left[len(longest) :]
        return found

    def bytes_of(self, token):
        return self.tokens[token] or b""


OF_TARGET, OF_DRAFT = ToyTokenizer(b"a", b"ab", b"b"), ToyTokenizer(b"b", b"a", b"ba")
LARGER_TARGET = ToyTokenizer(b"a", b"ab", b"b", b"\xc3", b"\xa9", None)  # the two bytes of an "é"
LARGER_DRAFT = ToyTokenizer(None, b"b", "é".encode(), b"ba", b"\xa9", b"a", b"\xffb")
