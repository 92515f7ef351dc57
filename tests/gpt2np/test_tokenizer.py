import copy
import pickle
import random

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt2np import StreamDecoder, Tokenizer
from gpt2np.files.loading import find_folder
from gpt2np.tokenizer import byte_symbols, fully_merged, merge_steps

# Python's own tables know these characters, so that both libraries put them in the same class.
CHARACTERS = st.characters(exclude_categories=("Cs", "Cn"))
WORDS = """
    's 't 're 've 'm 'll 'd 'S 'LL '' don't O'Reilly's 3.14 1,000 2010-10-10 ½ ² Ⅷ ٣٤٥ १२३ Grüße, żółć İI ıI Привет,
    мир! שלום مرحبا हिन्दी में ไทย 한국어 日本語 中文。 e\u0301 a\u0308\u0323 ﬁ Ｆｕｌｌ 😀👍🏽👩‍👩‍👧🏳️‍🌈🇩🇪 ☃️✈⌘
    <b>&amp;</b> {'a': [x**2]} <|endoftext|>
"""
SIGNS = " \n\t'seT0a\u00a0\u2003\u200b\u2028\u2029\u3000\x00\x01\x0b\x1c\x7f\x85é"
PIECES = [*WORDS.split(), *SIGNS, "\r\n", "x" * 500, " " * 300, "\n" * 50, "!?" * 100]
TEXTS = st.lists(st.one_of(CHARACTERS, st.sampled_from(PIECES)), max_size=60).map("".join)


@pytest.fixture(scope="module", params=["gpt2", "tiny"])
def both(request, gpt2_vocabulary_files, tmp_path_factory):
    """(ours, the tokenizers library's) for GPT-2's vocabulary and for the bundled one."""
    files = gpt2_vocabulary_files
    if request.param == "tiny":
        folder = find_folder("tiny-target", None)
        files = folder / "vocab.json", folder / "merges.txt"
    merges = tmp_path_factory.mktemp(request.param) / "merges.txt"
    merges.write_text(files[1].read_text(encoding="utf-8").rstrip("\n"), encoding="utf-8")
    oracle = tokenizers.ByteLevelBPETokenizer(str(files[0]), str(merges), add_prefix_space=False)
    return Tokenizer.from_files(*files), oracle


def test_known_ids(gpt2_tokenizer):
    assert gpt2_tokenizer.encode(" gazed") == [50255]  # the last of the 50,000 merges
    alan = "Alan Turing theorized that computers would one day become the most powerful machines"
    tokens = [36235, 39141, 18765, 1143, 326, 9061, 561, 530, 1110, 1716, 262, 749, 3665, 8217]
    assert gpt2_tokenizer.encode(alan) == tokens
    assert gpt2_tokenizer.decode(tokens) == alan
    assert gpt2_tokenizer.n_vocab == 50257 and len(gpt2_tokenizer.ranks) == 50000


def test_equals_the_tokenizers_library_on_any_text(both):
    ours, oracle = both

    def check(text):
        assert ours.encode(text) == oracle.encode(text).ids, text
        assert ours.decode(ours.encode(text)) == text
        work = ours.show_work(text)
        assert "".join(piece.text for piece in work) == text
        assert [token for piece in work for token in piece.tokens] == ours.encode(text)
        for piece in work:
            assert piece.utf8 == piece.text.encode() and piece.merges[0] == list(piece.symbols)
            assert all("".join(state) == piece.symbols for state in piece.merges)
            assert all(len(a) > len(b) for a, b in zip(piece.merges, piece.merges[1:]))

    check(" ".join(PIECES))
    check("".join(PIECES))
    settings(max_examples=100, deadline=None, derandomize=True)(given(TEXTS)(check))()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(tokens=st.lists(st.integers(-3, 50300), max_size=30))
def test_the_stream_of_any_tokens_gives_each_character_as_soon_as_it_is_complete(gpt2_tokenizer, tokens):
    """So what is given is the text of the tokens so far, without the replacement of an incomplete character."""
    stream, given = StreamDecoder(gpt2_tokenizer), ""
    for n, token in enumerate([*tokens, *gpt2_tokenizer.encode("a😀b")], 1):
        given += stream.push(token)
        so_far = gpt2_tokenizer.decode([*tokens, *gpt2_tokenizer.encode("a😀b")][:n])
        assert given in (so_far, so_far.removesuffix("\ufffd"))
    assert given == so_far and stream.flush() == ""
    assert stream.push(gpt2_tokenizer.encode("😀")[0]) == "" and stream.flush() == "\ufffd"


def test_what_is_no_text_is_one_replacement_character(gpt2_tokenizer):
    encode, decode = gpt2_tokenizer.encode, gpt2_tokenizer.decode
    assert decode([50257, 15496, -1]) == "\ufffdHello\ufffd"  # ids outside of the vocabulary
    assert decode(encode("a😀b")[:2]) == "a\ufffd"
    assert decode(encode("a\ud83db\udcff")) == "a\ufffdb\ufffd"  # lone surrogates
    assert encode("\ud83d\ude00") == encode("😀")


def test_end_of_text_is_special_only_on_request_and_only_in_a_vocabulary_that_has_it(gpt2_tokenizer):
    text = "a<|endoftext|><|endoftext|>b"
    assert gpt2_tokenizer.encode(text, special=True) == [64, 50256, 50256, 65]
    assert 50256 not in gpt2_tokenizer.encode(text)
    assert gpt2_tokenizer.decode([64, 50256, 50256, 65]) == text == gpt2_tokenizer.decode(gpt2_tokenizer.encode(text))
    assert gpt2_tokenizer.encode("", special=True) == []
    without = Tokenizer(BYTES, [])
    assert without.encode(text, special=True) == without.encode(text) and without.decode(without.encode(text)) == text


BYTES = {symbol: i for i, symbol in enumerate(byte_symbols().values())}


# ------------------------------------------------------------------------------------------------ long words


@pytest.mark.parametrize("seed", range(3))
def test_the_fast_merge_is_the_last_of_the_steps(seed):
    """For any merges in any order, including those that no training would give."""
    rng = random.Random(seed)
    for _ in range(200):
        symbols, pairs = list("abc"), []
        for _ in range(rng.randrange(12)):
            pairs.append((rng.choice(symbols), rng.choice(symbols)))
            symbols.append("".join(pairs[-1]))
        rng.shuffle(pairs)
        ranks = {pair: rank for rank, pair in enumerate(dict.fromkeys(pairs))}
        word = "".join(rng.choices("abc", k=rng.randrange(25)))
        *_, last = merge_steps(word, ranks)
        assert fully_merged(word, ranks) == last


def test_a_long_word_of_many_letters(gpt2_tokenizer):
    """Twenty thousand letters: to scan all of them for each merge would take minutes."""
    rng = random.Random(0)
    word = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=20_000))
    tokens = gpt2_tokenizer.encode(word)
    assert gpt2_tokenizer.decode(tokens) == word and len(tokens) < 12_000


def test_long_pieces_are_not_cached():
    tokenizer = Tokenizer(BYTES, [])
    tokenizer.encode("a" * 31 + " " + "b" * 29)
    assert tokenizer._cached.cache_info().currsize == 1


def test_a_tokenizer_can_be_copied_and_keeps_its_own_vocabulary():
    vocabulary = {**BYTES, "ab": 256}
    tokenizer = Tokenizer(vocabulary, [["a", "b"]])  # a list, as tokenizer.json has it
    vocabulary.clear()
    for one in (tokenizer, pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)):
        assert one.encode("cab") == [BYTES["c"], 256]
        assert one.ranks == tokenizer.ranks and one.vocabulary == tokenizer.vocabulary
