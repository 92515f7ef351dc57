"""The two files of a vocabulary: what is read, and what is refused with the name of the file."""

import json
import random

import pytest

from gpt2np import CheckpointError, Tokenizer
from gpt2np.files.loading import find_folder
from gpt2np.files.vocabulary import load_tokenizer
from gpt2np.tokenizer import byte_symbols


@pytest.fixture
def small_files(tmp_path):
    """A vocabulary of the bytes and one merge, to be damaged."""
    vocabulary = {symbol: i for i, symbol in enumerate([*byte_symbols().values(), "ab"])}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n", encoding="utf-8")
    return tmp_path / "vocab.json", tmp_path / "merges.txt"


@pytest.mark.parametrize("read", [load_tokenizer, Tokenizer.from_files])
def test_the_last_merge_counts_and_number_signs_are_not_a_comment(small_files, read):
    for merges in ("#version: 0.2\na b\n", "#version: 0.2\na b", "a b", "#version: 0.2\r\na b\r\n"):
        small_files[1].write_bytes(merges.encode())
        assert read(*small_files).encode("ab") == [256]
    vocabulary = json.loads(small_files[0].read_text(encoding="utf-8")) | {"##": 257}
    small_files[0].write_text(json.dumps(vocabulary), encoding="utf-8")
    small_files[1].write_text("#version: 0.2\n# #\na b\n", encoding="utf-8")
    assert read(*small_files).encode("##ab") == [257, 256]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("vocab.json", "{", "vocab.json is not JSON"),
        ("vocab.json", "[" * 100_000, "vocab.json is not JSON"),
        ("vocab.json", "[1]", "vocab.json is not a JSON object"),
        ("vocab.json", '{"a": 0}', "vocab.json has no token for some of the 256 bytes"),
        ("merges.txt", "a b\na b c\n", r"merges\.txt: the merge 'a b c' is not of two symbols"),
        ("merges.txt", "\udcff", r"merges\.txt: 'utf-8' codec"),
        ("merges.txt", "x" * 5_000_000, r"merges\.txt: the merge 'xxx"),
        ("merges.txt", "b a\n", r"vocab\.json with merges\.txt: the vocabulary lacks 'ba'"),
        ("merges.txt", "", r"vocab\.json with merges\.txt: no merge makes 'ab' .*; use the files of one"),
    ],
)
def test_a_damaged_file_is_named(small_files, name, text, message):
    small_files[0].with_name(name).write_text(text, encoding="utf-8", errors="surrogateescape", newline="\n")
    with pytest.raises(CheckpointError, match=message) as error:
        load_tokenizer(*small_files)
    assert len(str(error.value)) <= 500


@pytest.mark.parametrize("name", ["gpt2", "tiny-target", "tiny-draft"])
def test_a_truncated_list_of_merges_is_refused(name, gpt2_vocabulary_files, tmp_path):
    files = gpt2_vocabulary_files
    if name != "gpt2":
        files = [find_folder(name, None) / file for file in ("vocab.json", "merges.txt")]
    whole = files[1].read_bytes()
    lines, rng = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")], random.Random(0)
    for end in [lines[0], rng.randrange(len(whole) - 1), rng.choice(lines[:-1])]:
        (tmp_path / "merges.txt").write_bytes(whole[:end])
        with pytest.raises(CheckpointError, match=r"merges\.txt.*; use the files of one"):
            load_tokenizer(files[0], tmp_path / "merges.txt")
