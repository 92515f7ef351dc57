"""The two files of a vocabulary: what is read, and that a truncated one is not. Other damage: test_refusals.py."""

import json
import random

import pytest

from gpt2np import CheckpointError, Tokenizer
from gpt2np.files.loading import find_folder
from gpt2np.files.tokenizer_files import load_tokenizer
from gpt2np.tokenizer import byte_symbols


@pytest.mark.parametrize("read", [load_tokenizer, Tokenizer.from_files])
def test_the_last_merge_counts_and_number_signs_are_not_a_comment(tmp_path, read):
    files = tmp_path / "vocab.json", tmp_path / "merges.txt"
    symbols = [*byte_symbols().values(), "ab", "##"]
    for merges in ("#version: 0.2\na b\n", "#version: 0.2\na b", "a b", "#version: 0.2\r\na b\r\n", "# #\na b\n"):
        n_vocab = 258 if "# #" in merges else 257
        files[0].write_text(json.dumps({symbol: i for i, symbol in enumerate(symbols[:n_vocab])}), encoding="utf-8")
        files[1].write_bytes(merges.encode())
        assert read(*files).encode("##ab")[-1] == 256
        assert n_vocab == 257 or read(*files).encode("##ab") == [257, 256]


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
