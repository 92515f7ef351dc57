"""The exercises of notebook 01."""

import functools
import re
from itertools import accumulate

import gpt2np
from checks import exercise, more, refuse_library
from gpt2np.tokenizer import SPLIT, byte_symbols

TEXT = """The old king had a beautiful daughter. "Didn't she go to the well?" he asked, 12 times...
Der alte König hatte eine schöne Tochter. Ο γέρος βασιλιάς. 老国王有一个美丽的女儿。 a 🐉!"""


@functools.cache
def bundled():
    return gpt2np.load("tiny-target")[1]


def joined(text):
    """A case: the symbols of a text, and a + b joined in it."""
    return [*text], ("a", "b"), re.findall("ab|.", text), "join the pair everywhere"


@exercise
def exercise_1(fn):
    refuse_library(fn, "merge_pair")
    for symbols, pair, right, hint in [
        (["a", "b"], ("a", "b"), ["ab"], "a pair at the end counts as well"),
        (["a"], ("a", "b"), ["a"], "a single symbol has no neighbour; it stays"),
        ([], ("a", "b"), [], "an empty list stays empty"),
        (["xa", "b"], ("a", "b"), ["xa", "b"], "compare whole symbols: xa is not a"),
        (["a", "b", "c", "a", "b"], ("a", "b"), ["ab", "c", "ab"], "join the pair everywhere"),
        (["a", "a", "a", "b"], ("a", "a"), ["aa", "a", "b"], "from left to right, each once"),
        (["b", "a"], ("a", "b"), ["b", "a"], "the order of a pair matters"),
        (["a", "bc", "ab", "c"], ("ab", "c"), ["a", "bc", "abc"], "compare whole symbols"),
        *more(lambda rng: joined("".join(rng.choice([*"abc"], 12)))),
    ]:
        given = list(symbols)
        yours = fn(given, pair)
        assert yours is not None, "nothing came back: is a return missing?"
        assert not isinstance(yours, str), f"expected a list of symbols, got {yours!r}"
        yours = list(yours)
        assert yours == right, f"{hint}: {symbols} with {pair} is {right}, not {yours}"
        assert given == symbols, "your function changed its argument; make a new list"
    return "right: everywhere, from left to right, each symbol once"


def takes_longest(fn, ranks, ids):
    """Whether fn encodes as other tokenizers do: by the longest entry of the vocabulary, again and again."""
    found = {piece: [*fn(piece, ranks, ids)] for piece in ("aab", "xabab")}
    return found == {"aab": [ids["aa"], ids["b"]], "xabab": [ids["xab"], ids["ab"]]}


@exercise
def exercise_2(fn):
    refuse_library(fn, "merge_pair", "show_work")
    symbols = [*byte_symbols().values(), "ab", "bc", "abc", "aa", "aaaa", "xa", "xab"]
    ids = {symbol: i for i, symbol in enumerate(symbols)}
    order = [("x", "a"), ("b", "c"), ("a", "b"), ("a", "bc"), ("a", "a"), ("aa", "aa")]
    ranks = {pair: rank for rank, pair in enumerate(order)}
    longest = "you take the longest entry of the vocabulary: join pairs, those of the lowest rank first"
    for piece, right, hint in [
        ("x", ["x"], "a byte in no merge stays a single byte"),
        ("ab", ["ab"], "the pair a + b is in the list: join it"),
        ("aaaaa", ["aaaa", "a"], "repeat until no pair is left: joined symbols can be joined again"),
        ("abc", ["abc"], "the pair of the lowest rank goes first: b + c, not the first from the left"),
        ("aab", ["a", "ab"], "the pair of the lowest rank goes first: a + b, not a + a"),
        ("xabab", ["xa", "b", "ab"], "compare whole symbols: xa is not a"),
        ("é", ["Ã", "©"], "é is two bytes in UTF-8, and each byte has a symbol"),
        (" a", ["Ġ", "a"], "each byte is written as its visible symbol: a space is Ġ"),
    ]:
        right, yours = [ids[symbol] for symbol in right], fn(piece, ranks, ids)
        assert yours is not None, "nothing came back: is a return missing?"
        yours = [*yours]
        assert yours == right or not takes_longest(fn, ranks, ids), longest
        assert yours == right, f"{hint}: {piece!r} has the tokens {right}, yours are {yours}"
    tokenizer, yours = bundled(), []
    for piece in SPLIT.findall(TEXT):
        yours += [*fn(piece, tokenizer.ranks, tokenizer.vocabulary)]
    assert yours == tokenizer.encode(TEXT), "not the tokens of tokenizer.encode for this text: " + TEXT
    return f"right: {len(yours)} tokens of a text in four languages, the same as the library's"


@exercise
def exercise_3(cls):
    refuse_library(cls, "StreamDecoder")

    def shown(cuts):
        decoder = cls(cuts.__getitem__)  # token i stands for the bytes cuts[i]
        return [decoder.push(token) for token in range(len(cuts))]

    a, b = "é".encode()  # a character of two bytes ...
    a, b, dragon = bytes([a]), bytes([b]), "🐉".encode()  # ... and one of four
    for cuts, right, hint in [
        ([b"a", b"b"], ["a", "b"], "plain English is shown token by token"),
        ([a, b], ["", "é"], "the first byte of é is half a character: hold it back"),
        ([b"x" + a, b], ["x", "é"], "x is complete: show it, and hold back the rest only"),
        ([bytes([byte]) for byte in dragon], ["", "", "", "🐉"], "four bytes, one character"),
        ([dragon + a, b], ["🐉", "é"], "show a complete character at once"),
        ([a, b + b"!", b"?"], ["", "é!", "?"], "what was shown must not be shown again"),
        ([a], [""], "hold back what is not complete"),
        ([b"z"], ["z"], "each decoder starts empty: keep nothing in the class"),
    ]:
        try:
            yours = shown(cuts)
        except UnicodeDecodeError as error:
            raise AssertionError(f"{hint}: for {cuts} your decoder fails with {error}") from None
        assert None not in yours, "push returned None: is a return missing? If no character is complete, return ''"
        if yours == [*accumulate(right)] != right:
            hint = "what was shown must not be shown again"
        if cuts == [a, b] and yours == ["", ""]:
            hint = "bytes that are not a character yet are kept for the next call, not dropped"
        assert yours == right, f"{hint}: for {cuts} expected {right}, got {yours}"
    tokenizer = bundled()
    decoder = cls(tokenizer.bytes_of)
    joined = "".join(decoder.push(token) for token in tokenizer.encode(TEXT))
    assert joined == TEXT, "the parts, joined, are not the text"
    return "right: every character is shown whole, once, and as soon as it is complete"
