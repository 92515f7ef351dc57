"""Folders as people have them load like their own framework's; what is saved is loaded. Refusals: refusals.txt."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
import tokenizers
from helpers import random_tensors
from hypothesis import given, settings
from hypothesis import strategies as st

import gpt2np
from gpt2np import HParams, Tokenizer
from gpt2np.files.loading import find_folder
from gpt2np.files.params import build_params
from gpt2np.files.table import PREFIXES, files_read
from gpt2np.files.tokenizer_files import load_tokenizer
from gpt2np.layers import exact_gelu
from gpt2np.reference import forward
from gpt2np.tokenizer import AddedToken, NumberTokenizer, byte_symbols

SHAPE = HParams(n_vocab=2048, n_ctx=29, n_embd=3 * 7, n_head=3, n_layer=2)
CONFIG = {"model_type": "gpt2", "vocab_size": 2048, "n_positions": 29, "n_embd": 21, "n_head": 3, "n_layer": 2,
          "n_inner": 84, "activation_function": "gelu_pytorch_tanh"}  # fmt: skip
NANO = {"vocab_size": 2048, "block_size": 29, "n_embd": 21, "n_head": 3, "n_layer": 2, "bias": True, "dropout": 0.0}
TOKENS = [5, 3, 2, 7, 11, 1000]
TEXTS = ["Hello <s> world", "<|user|> Hi<|user|>", " a  b\n", "", "Grüße 😀<|endoftext|>the king", "overthe the covid"]
FILES = ("vocab.json", "merges.txt")


@pytest.fixture
def folder(tmp_path):
    """A random GPT-2 with the bundled vocabulary."""
    for name in FILES:
        (tmp_path / name).write_bytes((find_folder("tiny-draft", None) / name).read_bytes())
    return written(tmp_path, random_tensors(SHAPE))


def written(folder, tensors, config=CONFIG, name="model.safetensors"):
    safetensors.numpy.save_file({k: np.ascontiguousarray(t) for k, t in tensors.items()}, folder / name)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def logits(folder):
    return gpt2np.load(folder)[0](TOKENS, n_last=len(TOKENS))


def test_prefixes_and_masks_are_dropped_and_a_head_may_be_the_only_copy_of_the_embeddings(folder):
    plain = logits(folder)
    masks = {"h.0.attn.bias": np.ones((1, 1, 29, 29), bool), "h.1.attn.masked_bias": np.array(-1e4, np.float32)}
    for prefix in (*PREFIXES, "base_model.model.transformer.", "_orig_mod.module.transformer."):
        tensors = random_tensors(SHAPE) | masks
        tensors["lm_head.weight"] = tensors.pop("wte.weight")
        twice = {"ln_f.bias": tensors["ln_f.bias"]}  # with the same numbers
        written(folder, {f"{prefix}{name}": tensor for name, tensor in tensors.items()} | twice)
        np.testing.assert_array_equal(logits(folder), plain, err_msg=prefix)


def test_float32_matrices_are_used_in_place_and_other_floats_are_converted():
    tensors = random_tensors(SHAPE)
    tensors["wte.weight"] = np.where(np.arange(21) == 5, np.float32(np.nan), tensors["wte.weight"])
    tensors["lm_head.weight"] = tensors["wte.weight"].copy()  # a copy of the embeddings may have NaN
    for dtype in (np.float32, np.float16, np.float64):
        tensors["wpe.weight"] = tensors["wpe.weight"].astype(dtype)
        tensors["h.1.attn.c_attn.weight"] = tensors["h.1.attn.c_attn.weight"].astype(dtype, copy=False)
        params = build_params(tensors, SHAPE, "file")
        matrix = params["blocks"][1]["attn"]["c_attn"]["w"]
        assert params["wte"] is tensors["wte.weight"] and params["wpe"].dtype == matrix.dtype == np.float32
        assert (matrix is tensors["h.1.attn.c_attn.weight"]) == (dtype == np.float32)
        np.testing.assert_array_equal(matrix, tensors["h.1.attn.c_attn.weight"].astype(np.float32))
    small = params["blocks"][0]["ln_2"]["g"]
    assert not np.shares_memory(small, tensors["h.0.ln_2.weight"]) and not small.flags.writeable


def test_shards_are_read_and_fetched(folder):
    plain, tensors = logits(folder), random_tensors(SHAPE)
    (folder / "model.safetensors").unlink()
    files = {name: f"model-0000{1 + (name[0] == 'h')}-of-00002.safetensors" for name in tensors}
    for file in {*files.values()}:
        written(folder, {name: tensor for name, tensor in tensors.items() if files[name] == file}, name=file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    np.testing.assert_array_equal(logits(folder), plain)
    names = {path.name for path in folder.iterdir()}
    assert {*files_read([*names, "README.md", "pytorch_model.bin"])} == names


@pytest.mark.parametrize("bias", [True, False])
def test_nanogpt_has_transposed_matrices_the_exact_gelu_and_perhaps_no_biases(folder, bias):
    tensors = random_tensors(SHAPE)
    zero = {name: tensor * np.float32(bias) if name.endswith(".bias") else tensor for name, tensor in tensors.items()}
    expected = forward(TOKENS, build_params(zero, SHAPE, "file", {"activation_function": "gelu"}), SHAPE.n_head)
    nano = {name: t.T if ".c_" in name else t for name, t in tensors.items() if bias or not name.endswith("bias")}
    written(folder, {f"_orig_mod.transformer.{name}": tensor for name, tensor in nano.items()}, NANO | {"bias": bias})
    np.testing.assert_allclose(logits(folder), expected, atol=1e-5)
    assert abs(expected - forward(TOKENS, build_params(zero, SHAPE, "file"), SHAPE.n_head)).max() > 1e-4
    (folder / "config.json").write_text(json.dumps({key: NANO[key] for key in NANO if key != "bias"}))
    with pytest.raises(gpt2np.CheckpointError, match="their GELUs differ"):
        gpt2np.load(folder)


def test_the_exact_gelu():
    x = np.linspace(-12, 12, 5000)
    erf = np.vectorize(math.erf)
    np.testing.assert_allclose(exact_gelu(x.astype(np.float32)), x * (1 + erf(x / np.sqrt(2))) / 2, atol=6e-7)


def test_settings_of_the_attention_and_the_norms(folder):
    scaled = {name: tensor.astype(np.float64) for name, tensor in random_tensors(SHAPE).items()}
    for name in [name for name in scaled if "c_attn" in name]:
        scaled[name][..., :21] *= np.sqrt(7) / (int(name.split(".")[1]) + 1)
    params = build_params(scaled, SHAPE, "file", {"layer_norm_epsilon": 1e-3})
    settings = {"scale_attn_by_inverse_layer_idx": True, "scale_attn_weights": False, "layer_norm_epsilon": 1e-3}
    written(folder, random_tensors(SHAPE), CONFIG | settings)
    np.testing.assert_allclose(logits(folder), forward(TOKENS, params, SHAPE.n_head), atol=1e-5)


def test_windows_line_ends_and_byte_order_marks(folder):
    plain = gpt2np.load(folder)[1].encode(TEXTS[4])
    for name in ("config.json", *FILES):
        text = (folder / name).read_text(encoding="utf-8").replace("\n", "\r\n")
        (folder / name).write_bytes(text.encode("utf-8-sig"))
    assert gpt2np.load(folder)[1].encode(TEXTS[4]) == plain


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


NAMES = st.sampled_from(["<s>", "<|user|>", "the", "king", " a", "é", "<", "ng "])
FLAGS = st.fixed_dictionaries({flag: st.booleans() for flag in ("single_word", "lstrip", "rstrip", "normalized")})
WORDS = st.lists(st.sampled_from(["<s>", "<|user|>", "the", "king", " ", "\n", "é", "<", "a", "x"]), max_size=9)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(added=st.dictionaries(NAMES, FLAGS, max_size=4), texts=st.lists(WORDS.map("".join)), prefix_space=st.booleans())
def test_added_tokens_of_a_tokenizer_json_are_those_of_the_tokenizers_library(added, texts, prefix_space):
    source = find_folder("tiny-draft", None)
    files = [str(source / name) for name in FILES]
    oracle = tokenizers.ByteLevelBPETokenizer(*files, add_prefix_space=prefix_space)
    oracle.add_tokens([tokenizers.AddedToken(name, **flags) for name, flags in added.items()])
    ids = oracle.get_vocab(with_added_tokens=True)
    ours = Tokenizer(ids, [*gpt2np.load("tiny-draft")[1].ranks],
                     [AddedToken(name, special=False, **flags) for name, flags in added.items()],
                     prefix_space=prefix_space)  # fmt: skip
    strips = any(flags["lstrip"] or flags["rstrip"] for flags in added.values())
    for text in texts:
        if not (strips and {" a", "ng "} & added.keys()):  # a space taken by two tokens is there twice
            assert ours.encode(text) == oracle.encode(text).ids, (text, added)
            assert ours.decode(ours.encode(text)) == oracle.decode(oracle.encode(text).ids, skip_special_tokens=False)


def test_what_is_saved_is_loaded(folder, tmp_path):
    more = {"activation_function": "gelu", "layer_norm_epsilon": 1e-6, "vocab_size": 2050}
    written(folder, random_tensors(replace(SHAPE, n_vocab=2050)), CONFIG | more)
    (folder / "added_tokens.json").write_text('{"<|user|>": 2048, "covid": 2049}')
    (folder / "tokenizer_config.json").write_text(
        '{"pad_token": "<|user|>", "add_prefix_space": true, "add_bos_token": true}'
    )
    model, tokenizer = gpt2np.load(folder)
    assert tokenizer.bytes_of(2048) == b"" and tokenizer.bytes_of(2049) == b"covid"
    end = tokenizer.end_of_text
    assert tokenizer.decode([2048]) == "<|user|>" and tokenizer.encode("<|user|>", special=True) == [end, 2048]
    gpt2np.save(model, tokenizer, tmp_path / "new")
    again, read = gpt2np.load(tmp_path / "new")
    np.testing.assert_array_equal(again(TOKENS), model(TOKENS))
    for text in TEXTS:
        for special in (True, False):
            assert read.encode(text, special) == tokenizer.encode(text, special)
    with pytest.raises(ValueError, match="choose a new one"):
        gpt2np.save(model, tokenizer, tmp_path / "new")


def test_without_a_tokenizer_a_text_is_token_ids(folder, tmp_path):
    for name in FILES:
        (folder / name).unlink()
    written(folder, random_tensors(SHAPE), CONFIG | {"eos_token_id": 3})
    model, tokenizer = gpt2np.load(folder)
    assert isinstance(tokenizer, NumberTokenizer) and tokenizer.end_of_text == 3
    assert tokenizer.encode(tokenizer.decode(TOKENS)) == TOKENS
    gpt2np.save(model, tokenizer, tmp_path / "new")
    assert repr(gpt2np.load(tmp_path / "new")) == repr((model, tokenizer))
    with pytest.raises(ValueError, match="token ids from 0 to 2047"):
        tokenizer.encode("2 2048")
