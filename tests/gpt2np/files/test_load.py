import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
from helpers import random_tensors
from systems import needs_links, needs_proc
from write_tf import write_checkpoint

import gpt2np
from gpt2np import CheckpointError, HParams
from gpt2np.files.loading import find_folder
from gpt2np.files.params import build_params

SHAPE = HParams(n_vocab=2048, n_ctx=29, n_embd=3 * 7, n_head=3, n_layer=2)
CONFIG = {"model_type": "gpt2", "vocab_size": 2048, "n_positions": 29, "n_embd": 21, "n_head": 3, "n_layer": 2}
TOKENS = [1, 2, 3, 4, 5]


@pytest.fixture
def folder(tmp_path):
    """A small random GPT-2 in the Hugging Face layout, with the bundled vocabulary."""
    bundled = find_folder("tiny-target", None)
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(bundled / name, tmp_path / name)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    save(tmp_path, random_tensors(SHAPE))
    return tmp_path


def save(folder, tensors):
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")


def logits(folder):
    return gpt2np.load(folder)[0](TOKENS)


def test_with_and_without_prefix_and_with_tensors_that_are_not_parameters(folder):
    plain = logits(folder)
    mask = np.ones((1, 1, 29, 29), bool)
    extra = {"h.0.attn.bias": mask, "h.1.attn.masked_bias": np.array(-1e4, np.float32)}
    save(folder, random_tensors(SHAPE) | extra)
    np.testing.assert_array_equal(logits(folder), plain)
    tensors = {f"transformer.{name}": tensor for name, tensor in (random_tensors(SHAPE) | extra).items()}
    save(folder, tensors | {"lm_head.weight": tensors["transformer.wte.weight"]})
    np.testing.assert_array_equal(logits(folder), plain)


def test_float16_is_read_as_float32(folder):
    half = {name: tensor.astype(np.float16) for name, tensor in random_tensors(SHAPE).items()}
    save(folder, half)
    from_half = gpt2np.load(folder)[0]
    save(folder, {name: tensor.astype(np.float32) for name, tensor in half.items()})
    np.testing.assert_array_equal(from_half(TOKENS), logits(folder))
    assert from_half.params["wte"].dtype == np.float32 == from_half.params["blocks"][1]["mlp"]["c_proj"]["w"].dtype


def test_bfloat16_is_read_as_float32(folder):
    rounded = {name: (t.view(np.uint32) & 0xFFFF0000).view(np.float32) for name, t in random_tensors(SHAPE).items()}
    save(folder, rounded)
    expected = logits(folder)
    header, data = {}, b""
    for name, tensor in rounded.items():
        raw = (tensor.view(np.uint32) >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": "BF16", "shape": tensor.shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    raw_header = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(raw_header).to_bytes(8, "little") + raw_header + data)
    np.testing.assert_array_equal(logits(folder), expected)


def test_float32_matrices_are_used_in_place():
    tensors = random_tensors(SHAPE)
    params = build_params(tensors, SHAPE, "file")
    assert params["wte"] is tensors["wte.weight"]
    assert params["blocks"][1]["attn"]["c_attn"]["w"] is tensors["h.1.attn.c_attn.weight"]
    small = params["blocks"][0]["ln_2"]["g"]
    np.testing.assert_array_equal(small, tensors["h.0.ln_2.weight"])
    assert small is not tensors["h.0.ln_2.weight"] and not small.flags.writeable


@pytest.mark.parametrize("layout", ["hub", "openai"])
def test_a_model_does_not_depend_on_its_file(folder, layout):
    """Writing to the file later changes no model; reading from a truncated mapped file would end the process."""
    name = "model.safetensors"
    if layout == "openai":
        write_checkpoint(folder, random_tensors(SHAPE))
        (folder / "hparams.json").write_text(json.dumps(SHAPE.__dict__))
        (folder / name).unlink()
        name = "model.ckpt.data-00000-of-00001"
    model, _ = gpt2np.load(folder)
    before = model(TOKENS).copy()
    with (folder / name).open("r+b") as file:
        file.write(bytes((folder / name).stat().st_size))
    model.reset()
    np.testing.assert_array_equal(model(TOKENS), before)
    (folder / name).write_bytes(b"")
    model.reset()
    np.testing.assert_array_equal(model(TOKENS), before)


def test_openai_names_of_the_vocabulary_files(folder):
    expected = gpt2np.load(folder)[1].encode("Once upon a time")
    (folder / "vocab.json").rename(folder / "encoder.json")
    (folder / "merges.txt").rename(folder / "vocab.bpe")
    assert gpt2np.load(folder)[1].encode("Once upon a time") == expected


def test_a_size_is_a_folder_in_models_dir(folder, tmp_path_factory):
    models = tmp_path_factory.mktemp("models")
    shutil.copytree(folder, models / "124M")
    np.testing.assert_array_equal(gpt2np.load("124M", models)[0](TOKENS), logits(folder))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("h.1.mlp.c_fc.bias"), r"lacks h\.1\.mlp\.c_fc\.bias; use the files"),
        (lambda t: [t.pop(name) for name in list(t) if name.startswith("h.1.")], r"lacks .* and 8 more"),
        (lambda t: t.update({"h.2.ln_1.bias": t["ln_f.bias"]}), r"has the unexpected h\.2\.ln_1\.bias"),
        (
            lambda t: t.update({"ln_f.bias": t["ln_f.bias"][:-1]}),
            r"wrong shape for ln_f\.bias \[20\] instead of \[21\]",
        ),
        (
            lambda t: t.update({"h.0.attn.c_attn.weight": np.ascontiguousarray(t["h.0.attn.c_attn.weight"].T)}),
            r"wrong shape for h\.0\.attn\.c_attn\.weight \[63, 21\] instead of \[21, 63\]",
        ),
        (
            lambda t: t.update({"ln_f.bias": np.zeros(21, np.int32)}),
            r"no floating-point values in ln_f\.bias \(int32\)",
        ),
        (
            lambda t: t.update({"ln_f.bias": np.full(21, -1e300)}),
            r"has values beyond float32 in ln_f\.bias; use the files",
        ),
        (lambda t: t.update({"lm_head.weight": t["wte.weight"] + 1}), r"lm_head\.weight that differs from wte"),
        (
            lambda t: t.update({"transformer.wte.weight": t["wte.weight"] + 1}),
            r"model\.safetensors has both .*wte\.weight and .*wte\.weight, one parameter under two names",
        ),
    ],
)
def test_the_wrong_tensor_is_named(folder, change, message):
    tensors = random_tensors(SHAPE)
    change(tensors)
    save(folder, tensors)
    with pytest.raises(CheckpointError, match=message):
        gpt2np.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation_function": "gelu"}, "activation_function is 'gelu', but GPT-2 has 'gelu_new'"),
        ({"model_type": "llama"}, "model_type is 'llama', but GPT-2 has 'gpt2'"),
        ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon is 1e-06"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True"),
        ({"scale_attn_weights": False}, "scale_attn_weights is False"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings is False, but GPT-2 has True"),
        ({"add_cross_attention": True}, "add_cross_attention is True, but GPT-2 has False"),
        ({"n_inner": 50}, "n_inner is 50, but GPT-2 has None"),
        ({"n_head": 4}, "n_embd a multiple of n_head"),
        ({"n_layer": "2"}, "expected positive whole numbers"),
        ({"n_layer": 0}, "expected positive whole numbers"),
        ({"n_head": 0}, "expected positive whole numbers"),
        ({"n_head": -3}, "expected positive whole numbers"),
        ({"vocab_size": 2**31}, "expected positive whole numbers"),
        ({"vocab_size": 2000}, "the vocabulary has 2048 tokens, but the model has 2000"),
        ({"n_layer": 3}, r"lacks h\.2\.ln_1\.weight"),
        ({"n_layer": 10**9}, r"has 28 tensors, too few for the 1000000000 layers of its config"),
        ({"n_embd": 3 * 10**4200}, "expected positive whole numbers"),
        ({"model_type": "x" * 1_000_000}, r"model_type is 'xxx.* only that is supported"),
        ({"is_causal": False}, "is_causal is False, but GPT-2 has True"),
        ({"num_attention_heads": 4}, "n_head is . and num_attention_heads is 4, two names of one number: remove one"),
        ({"num_hidden_layers": 1}, "n_layer is 2 and num_hidden_layers is 1"),
        ({"hidden_size": 8}, "n_embd is .* and hidden_size is 8"),
        ({"max_position_embeddings": 8}, "n_positions is .* and max_position_embeddings is 8"),
        ({"model_type": "\x1b[2J"}, r"model_type is '\\x1b\[2J', but GPT-2 has"),
    ],
)
def test_a_config_that_is_not_a_gpt2s_is_refused(folder, change, message):
    (folder / "config.json").write_text(json.dumps(CONFIG | change))
    with pytest.raises(CheckpointError, match=message) as error:
        gpt2np.load(folder)
    assert str(error.value).isprintable() and len(str(error.value)) <= 500


def test_a_model_may_have_more_tokens_than_its_vocabulary(folder):
    """As one whose embeddings were padded to a round number of rows."""
    (folder / "config.json").write_text(json.dumps(CONFIG | {"vocab_size": 2064}))
    save(folder, random_tensors(replace(SHAPE, n_vocab=2064)))
    model, tokenizer = gpt2np.load(folder)
    assert model.n_vocab == 2064 and tokenizer.n_vocab == 2048 and model(TOKENS).shape == (1, 2064)


@pytest.mark.parametrize(
    ("text", "what"),
    [("", "JSON"), ("{", "JSON"), ("[" * 99_999, "JSON"), ('{"a": 1, "a": 2}', "JSON"), ("[]", "a JSON object")],
)
def test_a_config_that_is_no_json_object_is_refused(folder, text, what):
    (folder / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=rf"config\.json is not {what}"):
        gpt2np.load(folder)


def test_an_incomplete_config_is_refused(folder):
    (folder / "config.json").write_text(json.dumps({"vocab_size": 2048}))
    with pytest.raises(CheckpointError, match=r"config\.json: expected positive whole numbers .* n_ctx=None"):
        gpt2np.load(folder)


def test_equivalent_configs_are_accepted(folder):
    expected = logits(folder)
    (folder / "config.json").write_text(
        json.dumps(CONFIG | {"n_inner": 84, "activation_function": "gelu_pytorch_tanh"})
    )
    np.testing.assert_array_equal(logits(folder), expected)


@pytest.mark.parametrize("missing", ["config.json", "merges.txt", "model.safetensors"])
def test_a_missing_file_is_named(folder, missing):
    (folder / missing).unlink()
    with pytest.raises(CheckpointError, match=f"lacks .*{missing}"):
        gpt2np.load(folder)


def test_an_unknown_name(tmp_path):
    with pytest.raises(ValueError, match="unknown model '125M': expected tiny-target, tiny-draft, 124M"):
        gpt2np.load("125M", tmp_path)
    with pytest.raises(ValueError, match="unknown source 'hg': expected hub or openai"):
        gpt2np.load("124M", tmp_path, source="hg")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("gpt2", 'write "124M"'),
        ("gpt2-medium", 'write "355M"'),
        ("openai-community/gpt2-xl", 'write "1558M"'),
        ("GPT2-Large", 'write "774M"'),
        ("124m", 'write "124M"'),
        (124, 'write "124M"'),
        ("355", 'write "355M"'),
        ("distilgpt2", r"or a folder with config\.json, vocab\.json, .* of a GPT-2 \(the Hugging Face hub has those"),
        *[
            (name, "expected tiny-target, .* or a folder with")
            for name in ("", None, 3.5, ["124M"], b"124M", "x" * 9999)
        ],
        ("\0", "expected tiny-target, .* or a folder with"),
    ],
)
def test_a_name_that_others_use_is_answered_with_ours(tmp_path, name, remedy):
    with pytest.raises(ValueError, match=f"unknown model .*: .*{remedy}") as caught:
        gpt2np.load(name, tmp_path)
    assert len(str(caught.value)) < 400 and list(tmp_path.iterdir()) == []


def test_a_folder_of_that_name_is_used(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    folder.rename(folder.parent / "gpt2")
    assert gpt2np.load("gpt2")[0].hparams == SHAPE


@needs_proc
@needs_links
@pytest.mark.parametrize("name", ["config.json", "merges.txt", "model.safetensors"])
def test_a_file_that_cannot_be_read(folder, name):
    (folder / name).unlink()
    (folder / name).symlink_to("/proc/self/mem")  # a file, but it cannot be read from its beginning
    with pytest.raises(CheckpointError, match=f"{name}|cannot be read"):
        gpt2np.load(folder)


def test_files_in_another_form_are_named_with_what_to_do(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(find_folder("tiny-draft", None), folder)
    for name, other, message in (
        ("merges.txt", "tokenizer.json", "tokenizer.json has both: write its model.vocab as vocab.json, and each of"),
        (
            "model.safetensors",
            "model.safetensors.index.json",
            "save the model with max_shard_size='100GB', in one file",
        ),
    ):
        (folder / name).rename(folder / other)
        with pytest.raises(CheckpointError) as error:
            gpt2np.load(folder)
        assert message in str(error.value)
