"""The same results as `transformers`, at GPT-2's real shapes and on the bundled pair.

python -m pip install -e ".[test]" torch==2.13.0 transformers
python -m pytest -m peers
"""

import os
import shutil

import numpy as np
import pytest
from helpers import intermediates

import gpt2np
from gpt2np import layers
from gpt2np.files.loading import BUNDLED, find_folder

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("default")]

SHAPES = {"124M": (12, 12, 768), "355M": (24, 16, 1024)}


@pytest.fixture(scope="module")
def libraries():
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    with torch.no_grad():
        yield torch, transformers


@pytest.mark.parametrize("size", SHAPES)
def test_a_random_model_of_the_real_shape(libraries, size, gpt2_vocabulary_files, tmp_path):
    """Saved by transformers, loaded here: every intermediate, the logits, and the logits through the cache."""
    torch, transformers = libraries
    n_layer, n_head, n_embd = SHAPES[size]
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=n_layer, n_head=n_head, n_embd=n_embd)
    theirs = transformers.GPT2LMHeadModel(config).eval()
    theirs.save_pretrained(tmp_path)
    for path in gpt2_vocabulary_files:
        shutil.copy(path, tmp_path)
    ours, _ = gpt2np.load(tmp_path)
    assert ours.n_params == sum(p.numel() for p in theirs.parameters())
    tokens = np.random.default_rng(0).integers(0, 50257, 40)
    output = theirs(torch.tensor(tokens)[None], output_hidden_states=True)
    golden = {"embedding": output.hidden_states[0], "ln_f": output.hidden_states[-1], "logits": output.logits}
    golden |= {f"h.{i}": output.hidden_states[i + 1] for i in range(n_layer - 1)}
    for name, array in intermediates(layers, tokens, ours.params, n_head):
        if name in golden:
            expected = golden[name][0].numpy()
            np.testing.assert_allclose(array, expected, rtol=0, atol=1e-5 * np.abs(expected).max(), err_msg=name)
    expected = output.logits[0].numpy()
    ours(tokens[:30])
    for n in (31, 35, 40):
        logits = ours(tokens[:n], n_last=4)
        np.testing.assert_allclose(logits, expected[n - 4 : n], rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", BUNDLED)
def test_the_bundled_pair(libraries, name):
    torch, transformers = libraries
    theirs = transformers.GPT2LMHeadModel.from_pretrained(find_folder(name, None), dtype=torch.float32).eval()
    assert theirs.config.n_ctx == theirs.config.n_positions == 512
    ours, tokenizer = gpt2np.load(name)
    held_out = (find_folder(name, None).parent / "held_out.txt").read_text(encoding="utf-8")
    tokens = tokenizer.encode(held_out)[: ours.n_ctx]
    expected = theirs(torch.tensor(tokens)[None]).logits[0].numpy()
    np.testing.assert_allclose(ours(tokens, n_last=len(tokens)), expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    prompt = torch.tensor(tokens[:20])[None]
    text = theirs.generate(prompt, max_new_tokens=60, do_sample=False, pad_token_id=0, eos_token_id=None)[0].tolist()
    from speculative import AutoregressiveSampler, Sampling

    greedy = AutoregressiveSampler(ours, sampling=Sampling(temperature=0)).generate(tokens[:20], 60)
    assert greedy.tokens.tolist() == text[20:]


KINDS = {
    "plain": {},
    "exact GELU and epsilon": {"activation_function": "gelu", "layer_norm_epsilon": 1e-3},
    "attention": {"scale_attn_by_inverse_layer_idx": True, "scale_attn_weights": False},
    "reordered": {"reorder_and_upcast_attn": True, "activation_function": "gelu_fast"},
}
TEXTS = ["Hello <s> world", "<|user|> Hi <|user|>", "", "Grüße 😀<|endoftext|>the king", " a  covid's covids\n"]


@pytest.mark.parametrize("add_prefix_space", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_transformers_saved_is_saved_again(libraries, tmp_path, kind, add_prefix_space):
    """The same ids and logits from their folder, here, and from the folder that `gpt2np.save` wrote."""
    torch, transformers = libraries
    source = find_folder("tiny-draft", None)
    names = {"vocab": str(source / "vocab.json"), "merges": str(source / "merges.txt")}
    theirs = transformers.GPT2TokenizerFast(**names, add_prefix_space=add_prefix_space)
    theirs.add_special_tokens({"pad_token": "<|user|>", "eos_token": "<s>"})
    theirs.add_tokens(["covid"])
    torch.manual_seed(0)
    shape = {"vocab_size": len(theirs), "n_positions": 64, "n_embd": 48, "n_layer": 2, "n_head": 4}
    config = transformers.GPT2Config(**shape, **KINDS[kind])
    network = transformers.GPT2LMHeadModel(config).eval()
    network.save_pretrained(tmp_path / "theirs", max_shard_size="100KB")
    theirs.save_pretrained(tmp_path / "theirs")
    model, tokenizer = gpt2np.load(tmp_path / "theirs")
    gpt2np.save(model, tokenizer, tmp_path / "ours")
    again = gpt2np.load(tmp_path / "ours")
    network_again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "ours")
    tokens = [*range(30)]
    expected = network(torch.tensor([tokens])).logits[0].numpy()
    np.testing.assert_array_equal(again[0](tokens, 30), model(tokens, 30))
    for logits in (model(tokens, 30), network_again(torch.tensor([tokens])).logits[0].numpy()):
        np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5)
    read = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert tokenizer.decode([tokenizer.end_of_text]) == "<s>" == read.eos_token
    for text in TEXTS:
        ids = theirs(text)["input_ids"]
        assert tokenizer.encode(text, special=True) == ids == again[1].encode(text, special=True)
        assert read(text)["input_ids"] == ids
        assert tokenizer.decode(ids) == theirs.decode(ids)


RELEASED = os.environ.get("GPT2NP_RELEASED_MODEL", "")


@pytest.mark.skipif(not RELEASED, reason="GPT2NP_RELEASED_MODEL names no folder: docs/models.md makes one of MGM")
def test_a_released_model_without_a_tokenizer(libraries, capsys, monkeypatch):
    """Its greedy text with and without a draft, in Python and from the command line, is that of `generate`."""
    torch, transformers = libraries
    from speculative import AutoregressiveSampler, PromptLookupDrafter, Sampling, SpeculativeSampler
    from speculative.cli.main import main

    theirs = transformers.GPT2LMHeadModel.from_pretrained(RELEASED).eval()
    ours, tokenizer = gpt2np.load(RELEASED)
    tokens = np.random.default_rng(0).integers(0, ours.n_vocab, ours.n_ctx)
    expected = theirs(torch.tensor(tokens)[None]).logits[0].numpy()
    np.testing.assert_allclose(ours(tokens, len(tokens)), expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    prompt, greedy = [2, 100, 200, 300], Sampling(temperature=0)
    found = theirs.generate(torch.tensor([prompt]), max_new_tokens=120, do_sample=False, eos_token_id=None)[0].tolist()
    assert AutoregressiveSampler(ours, sampling=greedy).generate(prompt, 120).tokens.tolist() == found[4:]
    fast = SpeculativeSampler(ours, PromptLookupDrafter(ours.n_vocab), sampling=greedy)
    assert fast.generate(prompt, 120).tokens.tolist() == found[4:]
    main(["--target_model_size", RELEASED, "--prompt", "2 100 200 300", "--temperature", "0", "--drafter",
          "prompt_lookup", "--n_tokens_to_generate", "120"])  # fmt: skip
    assert tokenizer.decode(found[4:]) in capsys.readouterr().out
