"""Every reader on damaged copies of a good file: it refuses them in one short sentence, or what it reads works.

A few mutants of each kind by default, ten thousand in the group `slow`.
"""

import json
import random

import numpy as np
import pytest
from helpers import random_tensors
from model_server import write_model
from mutants import damaged, damaged_json, damaged_list, dumped
from write_tf import block, with_block

import gpt2np
from gpt2np import CheckpointError, HParams
from gpt2np.files.params import build_params
from gpt2np.files.sstable import read_table
from gpt2np.files.tf_checkpoint import read_tf_checkpoint
from gpt2np.tokenizer import AddedToken, byte_symbols
from speculative import ModelDrafter, SpeculativeSampler
from speculative.testing import TableModel
from speculative.trace import Trace, page, round_line

SHAPE = HParams(n_vocab=261, n_ctx=11, n_embd=6, n_head=2, n_layer=2)
MERGES = [("a", "b"), ("c", "d"), ("ab", "cd"), ("Ġ", "a")]
SYMBOLS = [*byte_symbols().values(), *map("".join, MERGES), "<|endoftext|>"]


# ------------------------------------------------------------------------------------------------ good files


def model_folder(source):
    """Writes a small GPT-2 in the layout of a source."""

    def build(folder):
        vocabulary = json.dumps({symbol: i for i, symbol in enumerate(SYMBOLS)}).encode()
        merges = "\n".join(["#version: 0.2", *map(" ".join, MERGES), ""]).encode()
        write_model(folder, random_tensors(SHAPE), SHAPE, [vocabulary, merges], source)

    return build


def saved_folder(folder):
    """The same in the layout of `gpt2np.save`, with the files that transformers 4 also wrote."""
    hub(folder)
    model, _ = gpt2np.load(folder)
    for path in folder.iterdir():
        path.unlink()
    added = [AddedToken(name, lstrip=True) for name in ("<|endoftext|>", "<s>")]
    vocabulary = {symbol: i for i, symbol in enumerate([*SYMBOLS[:-1], "<|endoftext|>", "<s>"])}
    start = [vocabulary["<s>"]]
    more = HParams(**vars(SHAPE) | {"n_vocab": len(vocabulary)})
    model = gpt2np.GPT2(build_params(random_tensors(more), more, "x"), more)
    gpt2np.save(model, gpt2np.Tokenizer(vocabulary, MERGES, added, start=start), folder)
    (folder / "special_tokens_map.json").write_text('{"pad_token": "<s>", "additional_special_tokens": ["<s>", "ab"]}')
    (folder / "added_tokens.json").write_text(f'{{"<s>": {start[0]}}}')


def trace_file(folder):
    target, draft = TableModel.random(7, seed=1, n_ctx=64), TableModel.random(7, seed=2, n_ctx=64)
    generation = SpeculativeSampler(target, ModelDrafter(draft), K=2).generate([3, 1], 12, 5, keep_probs=True)
    about = {"target": {"name": "x"}, "draft": {"name": "y"}, "verifier": "rejection", "K": 2, "temperature": 1.0}
    Trace.of(generation, lambda tokens: "".join(f" w\u00e9{token}" for token in tokens), about).save(folder / "t.jsonl")


# ------------------------------------------------------------------------------------------------ what must work


def use_model(folder):
    model, tokenizer = gpt2np.load(folder)
    text = "abcd <|endoftext|> abé"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    with np.errstate(all="ignore"):  # the numbers may be anything
        assert model([1, 2, 3], n_last=2).shape == (2, model.n_vocab)


def use_tokenizer(folder):
    """Whatever its settings are now, which may change the text."""
    model, tokenizer = gpt2np.load(folder)
    for special in (False, True):
        tokens = tokenizer.encode("abcd <s> <|endoftext|> abé", special)
        assert tokenizer.decode(tokens).isprintable() and max(tokens) < tokenizer.n_vocab <= model.n_vocab
    gpt2np.StreamDecoder(tokenizer).push(tokens[0])


def use_index(folder):
    """The right variables, if only unused bytes were hit."""
    found, tensors = read_tf_checkpoint(folder / "model.ckpt", verify=True), random_tensors(SHAPE)
    assert sorted(array.tobytes() for array in found.values()) == sorted(array.tobytes() for array in tensors.values())


def use_trace(folder):
    trace = Trace.load(folder / "t.jsonl")
    data = page(trace).split('id="trace">')[1].split("</script>")[0]
    json.loads(data, parse_constant=lambda name: pytest.fail(f"{name} in the page"))
    trace.save(folder / "again.jsonl")
    for record in trace.rounds:
        assert round_line(record).replace("\n", "").isprintable() or not round_line(record).isascii()


# ------------------------------------------------------------------------------------------------ ways to damage a file


def by_bytes(path, rng):
    path.write_bytes(damaged(path.read_bytes(), rng))


def by_json(path, rng):
    path.write_text(dumped(damaged_json(json.loads(path.read_bytes()), rng)), encoding="utf-8")


def header_by_json(path, rng):
    whole = path.read_bytes()
    n = int.from_bytes(whole[:8], "little")
    header = dumped(damaged_json(json.loads(whole[8 : 8 + n]), rng)).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + whole[8 + n :])


def entries_by_bytes(path, rng):
    """The entries of an index are changed, and the checksums fit."""

    def change(entry):
        name, value = entry
        return rng.choice([(name, damaged(value, rng)), (damaged(name, rng), value), (name * 99, value)])

    entries = [*read_table(path).items()]
    for _ in range(rng.choice([1, 1, 3])):
        entries = damaged_list(entries, rng, change)
    path.write_bytes(with_block(block(sorted(entries) if rng.random() < 0.8 else entries)))


def by_lines(path, rng):
    lines = path.read_text(encoding="utf-8").splitlines()
    lines = damaged_list(lines, rng, lambda line: dumped(damaged_json(json.loads(line), rng)))
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


BESIDE = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
INDEX, DATA, VOCAB = "model.ckpt.index", "model.ckpt.data-00000-of-00001", "vocab.json"
hub, openai = model_folder("hub"), model_folder("openai")
CASES = {
    "safetensors": (hub, use_model, [("model.safetensors", by_bytes), ("model.safetensors", header_by_json)]),
    "index": (openai, use_index, [(INDEX, by_bytes)]),
    "tf": (openai, use_model, [(INDEX, entries_by_bytes), (DATA, by_bytes)]),
    "config": (hub, use_model, [("config.json", by_bytes), ("config.json", by_json)]),
    "hparams": (openai, use_model, [("hparams.json", by_bytes), ("hparams.json", by_json)]),
    "vocabulary": (hub, use_model, [(VOCAB, by_bytes), (VOCAB, by_json), ("merges.txt", by_bytes)]),
    "tokenizer": (saved_folder, use_tokenizer, [("tokenizer.json", by_bytes), ("tokenizer.json", by_json),
                  *((name, by_json) for name in BESIDE)]),
    "trace": (trace_file, use_trace, [("t.jsonl", by_bytes), ("t.jsonl", by_lines)]),
}  # fmt: skip


@pytest.mark.parametrize("n", [40, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES)
def test_a_mutant_is_refused_or_works(tmp_path, case, n):
    build, use, ways = CASES[case]
    refuses = ValueError if case == "trace" else CheckpointError
    build(tmp_path)
    use(tmp_path)
    whole, messages = {name: (tmp_path / name).read_bytes() for name, _ in ways}, []
    for seed in range(n):
        name, damage = ways[seed % len(ways)]
        damage(tmp_path / name, random.Random(seed))
        try:
            use(tmp_path)
        except refuses as error:
            messages.append(str(error))
        except Exception as error:
            raise AssertionError(f"{case}, {name}, {damage.__name__}, seed {seed}: {error!r:.300}") from error
        (tmp_path / name).write_bytes(whole[name])
    assert len(messages) > n / 4
    for message in messages:
        assert len(message) <= 500 and message.isprintable() and str(tmp_path) in message, message[:1000]
