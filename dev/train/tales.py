"""The text that the bundled pair learns from: tales from a folder of .txt files, and a tokenizer for them.

A file contains one paragraph per line, with a blank line between paragraphs; a short line without a full stop is a
title and starts a new tale.
"""

import json
import re
from pathlib import Path

import numpy as np
import tokenizers
import torch
from tqdm import tqdm

from gpt2np.tokenizer import END_OF_TEXT, byte_symbols

N_VOCAB = 2048


def read_tales(folder):
    """The tales (list of str) of all .txt files: paragraphs joined by newlines, without titles, quotes in one style."""
    tales = []
    for path in sorted(Path(folder).glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        british = len(re.findall(r"(?<![A-Za-z])'(?=[A-Za-z])", text)) > text.count('"')
        tale = []
        for paragraph in (" ".join(p.split()) for p in text.split("\n\n")):
            if is_title(paragraph):
                if sum(map(len, tale)) > 1000:
                    tales.append("\n".join(tale))
                    tale = []
            elif paragraph:
                tale.append(swap_quotes(paragraph) if british else paragraph)
        if tale:
            tales.append("\n".join(tale))
    if not tales:
        raise SystemExit(f"expected .txt files in {folder}, found none")
    return tales


def is_title(paragraph):
    if not 0 < len(paragraph) < 80:
        return False
    return paragraph[-1] not in ".,!?;:\"')-" and (paragraph[0].isupper() or paragraph[0].isdigit())


def swap_quotes(paragraph):
    """A paragraph in British style ('...' outside, "..." inside) in American style; apostrophes stay."""
    out, inside = [], False
    for before, char, after in zip(" " + paragraph, paragraph, paragraph[1:] + " "):
        if char == '"':
            char = "'"
        elif char == "'" and not inside and re.match("[^\\w.,!?;:][A-Za-z-]", before + after):
            char, inside = '"', True
        elif char == "'" and inside and before in ".,!?;:-)" and not after.isalnum():
            char, inside = '"', False
        out.append(char)
    return "".join(out)


def split(tales, seed):
    """(training, held-out) tales: one in 25, chosen by the seed, is held out."""
    if len(tales) < 25:
        raise SystemExit(f"expected 25 tales or more, since one in 25 is held out; got {len(tales)}: add texts")
    order = np.random.default_rng(seed).permutation(len(tales)).tolist()
    n_held_out = len(tales) // 25
    return [tales[i] for i in sorted(order[n_held_out:])], [tales[i] for i in sorted(order[:n_held_out])]


def train_tokenizer(tales, folder):
    """vocab.json and merges.txt in GPT-2's order: the 256 bytes, the merges as they are learned, `<|endoftext|>`."""
    level = tokenizers.pre_tokenizers.ByteLevel
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.pre_tokenizer = level(add_prefix_space=False)
    bpe.train_from_iterator(
        tales, tokenizers.trainers.BpeTrainer(vocab_size=N_VOCAB - 1, initial_alphabet=level.alphabet())
    )
    merges = json.loads(bpe.to_str())["model"]["merges"]
    symbols = [*byte_symbols().values(), *map("".join, merges), END_OF_TEXT]
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = json.dumps({symbol: i for i, symbol in enumerate(symbols)}, ensure_ascii=False)
    (folder / "vocab.json").write_text(vocabulary, encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *map(" ".join, merges), ""]), encoding="utf-8")


def tokenize(tales, tokenizer):
    """One stream of token ids [n] int64; `<|endoftext|>` before each tale."""
    stream = []
    for tale in tqdm(tales, desc="tokenize", unit=" tales"):
        stream += [tokenizer.end_of_text, *tokenizer.encode(tale)]
    return torch.tensor(stream)
