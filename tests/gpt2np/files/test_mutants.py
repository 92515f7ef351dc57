"""Every reader on damaged copies of a good file: it refuses them in one short sentence, or what it reads works.

A few mutants of each kind by default, ten thousand in the group `slow`.
"""

import json

import numpy as np
import pytest
from helpers import random_tensors
from model_server import write_model
from mutants import damaged, damaged_json, dumped, source
from write_tf import write_index

import gpt2np
from gpt2np import CheckpointError, HParams
from gpt2np.files.model_files import SOURCES
from gpt2np.files.sstable import read_table
from gpt2np.tokenizer import byte_symbols
from speculative import ModelDrafter, NGramModel, SpeculativeSampler
from speculative.testing import TableModel
from speculative.trace import Trace, page, round_line

SHAPE = HParams(n_vocab=261, n_ctx=11, n_embd=6, n_head=2, n_layer=2)
MERGES = [("a", "b"), ("c", "d"), ("ab", "cd"), ("Ġ", "a")]
SYMBOLS = [*byte_symbols().values(), *map("".join, MERGES), "<|endoftext|>"]
FEW, MANY = 24, 10_000


def folder_of(source):
    """Writes a small GPT-2 in the layout of a source."""

    def build(folder):
        vocabulary, merges = folder / "vocabulary", folder / "merges"
        vocabulary.write_text(json.dumps({symbol: i for i, symbol in enumerate(SYMBOLS)}))
        merges.write_text("\n".join(["#version: 0.2", *map(" ".join, MERGES), ""]), encoding="utf-8")
        write_model(folder, random_tensors(SHAPE), SHAPE, [vocabulary, merges])
        for path in folder.iterdir():
            if path.name not in SOURCES[source]:
                path.unlink()

    return build


hub_folder, openai_folder = folder_of("hub"), folder_of("openai")


def table_file(folder):
    NGramModel.from_tokens(np.random.default_rng(0).integers(0, 7, 200), 7).save(folder / "table")


def trace_file(folder):
    target, draft = TableModel.random(7, seed=1, n_ctx=64), TableModel.random(7, seed=2, n_ctx=64)
    generation = SpeculativeSampler(target, ModelDrafter(draft), K=2).generate([3, 1], 12, 5, keep_probs=True)
    about = {"target": {"name": "x"}, "draft": {"name": "y"}, "verifier": "rejection", "K": 2, "temperature": 1.0}
    Trace.of(generation, lambda tokens: "".join(f" w\u00e9{token}" for token in tokens), about).save(folder / "t.jsonl")


def use_model(folder):
    model, tokenizer = gpt2np.load(folder)
    text = "abcd <|endoftext|> abé"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    with np.errstate(all="ignore"):  # the numbers may be anything
        assert model([1, 2, 3], n_last=2).shape == (2, model.n_vocab)


def use_table(folder):
    model = NGramModel.load(folder / "table")
    for context in ([], [1], [2, 3], [0, 0, 0]):
        row = model.row([token % model.n_vocab for token in context])
        assert (row > 0).all() and abs(row.sum() - 1) < 1e-9


def use_trace(folder):
    trace = Trace.load(folder / "t.jsonl")
    made = page(trace)
    data = made.split('id="trace">')[1].split("</script>")[0]
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
    entries = [*read_table(path).items()]
    for _ in range(rng.choice([1, 1, 3])):
        i = rng.randrange(len(entries))
        key, value = entries[i]
        match rng.choice(["value", "value", "key", "swap", "drop", "repeat"]):
            case "value" if value:
                entries[i] = key, damaged(value, rng)
            case "key" if key:
                entries[i] = damaged(key, rng), value
            case "swap":
                entries[i] = key, rng.choice(entries)[1]
            case "drop":
                del entries[i]
            case _:
                entries.insert(i, (key + b"x" * rng.choice([0, 1, 2000]), value))
    write_index(path, sorted(entries) if rng.random() < 0.8 else entries)


def arrays_by_value(path, rng):
    """The arrays of a table are changed, and the file is whole."""
    with np.load(path) as file:
        arrays = dict(file)
    name = rng.choice([*arrays])
    array = arrays[name]
    match rng.choice(["value", "type", "drop", "cut", "sort", "shape", "other"]):
        case "value" if array.ndim:
            array[rng.randrange(len(array))] = rng.choice([-1, 0, 1, 7, 10**6, 2**62, -(2**63), 2**63 - 1])
        case "type":
            arrays[name] = array.astype(rng.choice(["f8", "u8", "i4", "?", "c16", "U3", "V8"]))
        case "drop":
            del arrays[name]
        case "cut" if array.ndim:
            arrays[name] = array[: rng.randrange(len(array))]
        case "sort" if array.ndim:
            arrays[name] = array[::-1]
        case "shape":
            arrays[name] = array.reshape(-1, 1)
        case _:
            arrays[name] = np.array(rng.choice([0, -1, 1, 3, 10**5, 10**9, 10**12, 2**63 - 1]))
    with open(path, "wb") as file:
        rng.choice([np.savez, np.savez, np.savez_compressed])(file, **arrays)


def by_lines(path, rng):
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    i, j = (rng.randrange(len(lines)) for _ in range(2))
    match rng.choice(["drop", "double", "swap", "json", "json", "json", "json"]):
        case "drop":
            del lines[i]
        case "double":
            lines.insert(i, lines[i])
        case "swap":
            lines[i], lines[j] = lines[j], lines[i]
        case "json":
            lines[i] = dumped(damaged_json(json.loads(lines[i]), rng))
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


INDEX, DATA, VOCAB = "model.ckpt.index", "model.ckpt.data-00000-of-00001", "vocab.json"
CASES = {
    "safetensors": (hub_folder, use_model, [("model.safetensors", by_bytes), ("model.safetensors", header_by_json)]),
    "tf": (openai_folder, use_model, [(INDEX, by_bytes), (INDEX, entries_by_bytes), (DATA, by_bytes)]),
    "config": (hub_folder, use_model, [("config.json", by_bytes), ("config.json", by_json)]),
    "hparams": (openai_folder, use_model, [("hparams.json", by_bytes), ("hparams.json", by_json)]),
    "vocabulary": (hub_folder, use_model, [(VOCAB, by_bytes), (VOCAB, by_json), ("merges.txt", by_bytes)]),
    "table": (table_file, use_table, [("table", by_bytes), ("table", arrays_by_value)]),
    "trace": (trace_file, use_trace, [("t.jsonl", by_bytes), ("t.jsonl", by_lines)]),
}  # fmt: skip


@pytest.mark.parametrize("n", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES)
def test_a_mutant_is_refused_or_works(tmp_path, case, n):
    build, use, ways = CASES[case]
    refuses = CheckpointError if use is use_model else ValueError
    build(tmp_path)
    use(tmp_path)
    whole, messages = {name: (tmp_path / name).read_bytes() for name, _ in ways}, []
    for seed in range(n):
        name, damage = ways[seed % len(ways)]
        damage(tmp_path / name, source(seed))
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
