"""Models of transformers: logits that depend on the tokens alone, and greedy text equal to the engine's own.

The group `peers` runs transformers with random weights.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from random_transformers import LLAMA, SHAPE, SHAPES, peer, random_model

import speculative as sp
from speculative.models import TransformersModel
from speculative.models.transformers_model import NO_LIMIT, n_ctx_of
from speculative.testing import TableModel, check_language_model


@peer
@pytest.mark.parametrize("name", SHAPES)
def test_a_model_of_transformers(name, ways):
    torch = pytest.importorskip("torch")
    model, prompt, n = random_model(name), [3, 1, 4, 1, 5, 9, 2, 6, 5, 3], 40
    target, same, draft = (TransformersModel(m) for m in (model, model, random_model(name, 1)))
    check_language_model(target)
    tokens = np.random.default_rng(0).integers(0, 61, 30).tolist()
    with torch.no_grad():
        expected = model(torch.tensor([tokens]), use_cache=False).logits[0].numpy()
    np.testing.assert_allclose(target(tokens, n_last=30), expected, rtol=0, atol=2e-5)
    np.testing.assert_allclose(target([*tokens[:20], *tokens[20:]], n_last=4), expected[26:], rtol=0, atol=2e-5)
    ids = torch.tensor([prompt])
    own = model.generate(ids, max_new_tokens=n, do_sample=False, pad_token_id=0)[0, len(prompt) :].tolist()
    assert len(set(own)) > 3
    for way, sampler in ways(target, same, draft).items():
        generation = sampler.generate(prompt, n)
        assert generation.tokens.tolist() == own, way
        if way == "with itself as draft":
            assert generation.stats.acceptance == 1


@peer
def test_a_model_that_counts_positions_from_elsewhere():
    """Roberta's positions begin after that of its padding token."""
    torch, tokens = pytest.importorskip("torch"), list(range(5, 25))
    shape = SHAPE | {"intermediate_size": 40, "max_position_embeddings": 128, "is_decoder": True, "pad_token_id": 1}
    model = random_model("Roberta", **shape)
    with torch.no_grad():
        expected = model(torch.tensor([tokens]), use_cache=False).logits[0].numpy()
    adapter = TransformersModel(model)
    for begin, end in ((0, 9), (9, 10), (10, 14), (12, 20)):
        rows = adapter(tokens[:end], n_last=end - begin)
        np.testing.assert_allclose(rows, expected[begin:end], rtol=0, atol=2e-5)


@peer
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_gives_float32_logits(dtype):
    torch = pytest.importorskip("torch")
    model = TransformersModel(random_model("Llama").to(getattr(torch, dtype)))
    assert model([1, 2, 3], n_last=2).dtype == np.float32
    generation = sp.SpeculativeSampler(model, sp.PromptLookupDrafter(61), K=3).generate([1, 2, 1, 2], 20, rng=0)
    assert len(generation.tokens) == 20


@peer
def test_a_padded_vocabulary():
    model = random_model("Qwen3", vocab_size=64)
    target, draft = TransformersModel(model, n_vocab=61), TransformersModel(random_model("Qwen3", 1))
    np.testing.assert_array_equal(target([1, 2, 3]), TransformersModel(model)([1, 2, 3])[:, :61])
    generation = sp.SpeculativeSampler(target, sp.ModelDrafter(draft), K=2).generate([1, 2, 3], 20, rng=0)
    assert generation.tokens.max() < 61
    with pytest.raises(ValueError, match="expected n_vocab from 1 to the model's 64 tokens, got 65"):
        TransformersModel(model, n_vocab=65)


@peer
@pytest.mark.parametrize("where", ["pass", "cut"])
def test_an_interruption_leaves_nothing_wrong(where, monkeypatch):
    model = random_model("Llama")
    target, fresh = TransformersModel(model), TransformersModel(model)
    target([1, 2, 3, 4, 5, 6])
    with monkeypatch.context() as patch:
        owner, name = (model.model.layers[1], "forward") if where == "pass" else (target.cache.layers[1], "crop")
        patch.setattr(owner, name, lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            target([1, 2, 3, 9])
    np.testing.assert_array_equal(target([1, 2, 3, 4, 5, 6, 7]), fresh([1, 2, 3, 4, 5, 6, 7]))


@peer
def test_a_model_in_training_has_no_dropout_here_and_n_last_may_be_a_number_of_numpy():
    """transformers takes what is not an int for the places of the rows."""
    model = random_model("GPT2")
    expected = TransformersModel(model)([1, 2, 3, 4], n_last=2)
    model.train()
    np.testing.assert_array_equal(TransformersModel(model)([1, 2, 3, 4], n_last=np.int64(2)), expected)


@peer
def test_positions_that_change_in_a_long_text_end_the_context():
    rope = {"type": "longrope", "short_factor": [1.0] * 3, "long_factor": [4.0, 3.0, 2.0]}
    longer = {"original_max_position_embeddings": 32, "rope_scaling": rope}
    target = TransformersModel(random_model("Phi3", **LLAMA, **longer, pad_token_id=None))
    assert target.n_ctx == 32
    check_language_model(target)
    with pytest.raises(ValueError, match="n_ctx is 32"):
        sp.AutoregressiveSampler(target).generate([1] * 30, 3)


LONG, YARN = {"rope_type": "longrope", "original_max_position_embeddings": 16}, {"rope_type": "yarn"}


@pytest.mark.parametrize(
    ("rope", "n_ctx"),
    [(LONG, 16), (YARN, 128), (None, 128), ({"full_attention": LONG, "sliding_attention": YARN}, 16)],
)
def test_the_context_of_a_configuration(rope, n_ctx):
    assert n_ctx_of(SimpleNamespace(max_position_embeddings=128, rope_parameters=rope)) == n_ctx
    assert n_ctx_of(SimpleNamespace(max_seq_len=64)) == 64 and n_ctx_of(SimpleNamespace()) == NO_LIMIT


@peer
def test_a_model_that_is_no_causal_language_model_is_refused():
    """Bart's encoder reads the whole text, also what follows a row, and runs only in the first call."""
    transformers = pytest.importorskip("transformers")
    layers = {f"{part}_layers": 1 for part in ("encoder", "decoder")}
    bart = transformers.BartConfig(vocab_size=61, d_model=16, max_position_embeddings=64, **layers)
    llama = transformers.LlamaConfig(**LLAMA, pad_token_id=0)
    kinds = {
        "BertForSequenceClassification": transformers.BertConfig(**SHAPE, intermediate_size=40),  # it has no cache
        "BartForConditionalGeneration": bart,
        "LlamaModel": llama,  # it has no language model head
        "LlamaForSequenceClassification": llama,
    }
    for kind, config in kinds.items():
        with pytest.raises(ValueError, match=f"expected a causal language model with a cache, got {kind}"):
            TransformersModel(getattr(transformers, kind)(config))
    TransformersModel(transformers.BartForCausalLM(bart))  # its decoder alone is one


def test_what_is_no_model_of_transformers_is_refused():
    for given, shown in (("gpt2", "'gpt2'"), (TableModel.random(3), "<speculative.*")):
        with pytest.raises(ValueError, match=f"^expected a loaded model of transformers, got {shown}: Transformers"):
            TransformersModel(given)
