"""The same results as `transformers`, at GPT-2's real shapes and on the bundled pair.

python -m pip install -e ".[test]" torch==2.13.0 transformers
python -m pytest -m peers
"""

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
    torch.set_grad_enabled(False)
    return torch, transformers


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
