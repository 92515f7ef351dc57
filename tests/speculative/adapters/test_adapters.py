"""Other engines' models: logits that depend on the tokens alone, and greedy text equal to the engine's own.

The group `peers` runs transformers with random weights, and llama-cpp-python on the bundled pair if the variable
GGUF_FOLDER names the folder that docs/make_gguf.py has written. The other tests have a stand-in for llama_cpp.
"""

import copy
import os
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import random_gpt2

import gpt2np
from speculative import (
    AutoregressiveSampler,
    ByPaths,
    Lenient,
    ModelDrafter,
    PromptLookupDrafter,
    Sampling,
    SpeculativeSampler,
    Typical,
    block,
    exact_match,
    rejection,
)
from speculative.adapters import LlamaCppModel, TransformersModel
from speculative.adapters.prefix import checked_n_vocab, split
from speculative.adapters.transformers_model import NO_LIMIT, n_ctx_of
from speculative.measuring import calibrate
from speculative.testing import TableModel, check_language_model
from speculative.trace import Trace, page

peers = [pytest.mark.peers, pytest.mark.filterwarnings("default")]
SHAPE = {"vocab_size": 61, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
WIDE = SHAPE | {"intermediate_size": 40, "num_key_value_heads": 2, "max_position_embeddings": 128}
SHAPES = {
    "Llama": WIDE,
    "Qwen3": WIDE | {"head_dim": 6},
    "Mistral": WIDE | {"sliding_window": 9},
    "Mamba": SHAPE | {"state_size": 4, "tie_word_embeddings": False},
    "Qwen3Next": WIDE
    | {
        "head_dim": 6,
        "layer_types": ["linear_attention", "full_attention"],
        "linear_key_head_dim": 4,
        "linear_value_head_dim": 4,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "num_experts": 4,
        "moe_intermediate_size": 8,
        "shared_expert_intermediate_size": 8,
        "num_experts_per_tok": 2,
    },
    "Bamba": WIDE
    | {"attn_layer_indices": [1], "mamba_n_heads": 6, "mamba_d_head": 8, "mamba_d_state": 4, "mamba_chunk_size": 4},
    "MiniMax": WIDE
    | {
        "head_dim": 6,
        "layer_types": ["linear_attention", "full_attention"],
        "num_local_experts": 2,
        "num_experts_per_tok": 1,
        "block_size": 4,
    },
    "GPT2": {"vocab_size": 61, "n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 128},
}


def random_model(name, seed=0, **changes):
    """A model of transformers with random weights, large enough that its text does not repeat one token."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    config = getattr(transformers, f"{name}Config")(**SHAPES[name] | changes, bos_token_id=None, eos_token_id=None)
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(std=0.3)
    return model


def samplers(target, same, draft):
    """Every way to the target's greedy text."""
    greedy = Sampling(0)

    def speculative(drafter):
        return SpeculativeSampler(target, drafter, K=3, sampling=greedy)

    return {
        "alone": AutoregressiveSampler(target, sampling=greedy),
        "with itself as draft": speculative(ModelDrafter(same, sampling=greedy)),
        "with another draft": speculative(ModelDrafter(draft, sampling=greedy)),
        "with prompt lookup": speculative(PromptLookupDrafter(target.n_vocab)),
    }


@pytest.mark.parametrize("name", [pytest.param(name, marks=peers) for name in SHAPES])
def test_a_model_of_transformers(name):
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
    for way, sampler in samplers(target, same, draft).items():
        generation = sampler.generate(prompt, n)
        assert generation.tokens.tolist() == own, way
        if way == "with itself as draft":
            assert generation.stats.acceptance == 1


@pytest.mark.parametrize("name", [pytest.param("Roberta", marks=peers)])
def test_a_model_that_counts_positions_from_elsewhere(name, monkeypatch):
    """Roberta's positions begin after that of its padding token."""
    shape = WIDE | {"is_decoder": True, "pad_token_id": 1}
    monkeypatch.setitem(SHAPES, name, {key: shape[key] for key in shape if key != "num_key_value_heads"})
    torch, model, tokens = pytest.importorskip("torch"), random_model(name), list(range(5, 25))
    with torch.no_grad():
        expected = model(torch.tensor([tokens]), use_cache=False).logits[0].numpy()
    adapter = TransformersModel(model)
    for begin, end in ((0, 9), (9, 10), (10, 14), (12, 20)):
        rows = adapter(tokens[:end], n_last=end - begin)
        np.testing.assert_allclose(rows, expected[begin:end], rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", [pytest.param("Llama", marks=peers)])
def test_rules_traces_and_experiments_run_on_them(name):
    target, draft = TransformersModel(random_model(name)), TransformersModel(random_model(name, 1))
    sampling, prompts = Sampling(1, top_k=5), [[3, 1, 4], [1, 5, 9], [2, 6, 5]]
    for verifier in (rejection, block, exact_match, Typical(), Lenient()):
        sampler = SpeculativeSampler(target, ModelDrafter(draft), verifier=verifier, K=2, sampling=sampling)
        generation = sampler.generate([3, 1, 4], 8, rng=0, keep_probs=True)
        assert len(generation.tokens) == 8 and len(page(Trace.of(generation, str))) > 1000
    drafter = ModelDrafter(draft, sampling=sampling)
    _, rows = calibrate(target, drafter, prompts, 6, sampling=sampling, most=2)
    assert [row["K"] for row in rows] == [1, 2]


@pytest.mark.parametrize("dtype", [pytest.param(dtype, marks=peers) for dtype in ("bfloat16", "float16")])
def test_half_precision_gives_float32_logits(dtype):
    torch = pytest.importorskip("torch")
    model = TransformersModel(random_model("Llama").to(getattr(torch, dtype)))
    assert model([1, 2, 3], n_last=2).dtype == np.float32
    generation = SpeculativeSampler(model, PromptLookupDrafter(61), K=3).generate([1, 2, 1, 2], 20, rng=0)
    assert len(generation.tokens) == 20


@pytest.mark.parametrize("name", [pytest.param("Qwen3", marks=peers)])
def test_a_padded_vocabulary(name):
    model = random_model(name, vocab_size=64)
    target, whole = TransformersModel(model, n_vocab=61), TransformersModel(model)
    np.testing.assert_array_equal(target([1, 2, 3]), whole([1, 2, 3])[:, :61])
    generation = SpeculativeSampler(target, ModelDrafter(TransformersModel(random_model(name, 1))), K=2)
    assert generation.generate([1, 2, 3], 20, rng=0).tokens.max() < 61
    with pytest.raises(ValueError, match="expected n_vocab from 1 to the model's 64 tokens, got 65"):
        TransformersModel(model, n_vocab=65)


@pytest.mark.parametrize("name", [pytest.param("Llama", marks=peers)])
def test_an_interrupted_pass_leaves_nothing_wrong(name, monkeypatch):
    model = random_model(name)
    target, fresh = TransformersModel(model), TransformersModel(model)
    target([1, 2, 3, 4])
    layer, forward = model.model.layers[1], model.model.layers[1].forward
    monkeypatch.setattr(layer, "forward", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        target([1, 2, 3, 4, 5, 6])
    monkeypatch.setattr(layer, "forward", forward)
    np.testing.assert_array_equal(target([1, 2, 3, 4, 5]), fresh([1, 2, 3, 4, 5]))


@pytest.mark.parametrize("name", [pytest.param("Llama", marks=peers)])
def test_an_interrupted_cut_of_the_cache_leaves_nothing_wrong(name, monkeypatch):
    model = random_model(name)
    target, fresh = TransformersModel(model), TransformersModel(model)
    target([1, 2, 3, 4, 5, 6])
    monkeypatch.setattr(target.cache.layers[1], "crop", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        target([1, 2, 3, 9])
    np.testing.assert_array_equal(target([1, 2, 3, 4, 5, 6, 7]), fresh([1, 2, 3, 4, 5, 6, 7]))


@pytest.mark.parametrize("name", [pytest.param("Llama", marks=peers)])
def test_a_copy_has_a_cache_of_its_own(name):
    model = random_model(name)
    target, fresh = TransformersModel(model), TransformersModel(model)
    target([1, 2, 3, 4])
    other = copy.copy(target)
    other([1, 2, 3, 4, 9, 9])
    np.testing.assert_allclose(target([1, 2, 3, 4, 5]), fresh([1, 2, 3, 4, 5]), atol=2e-5)
    assert other.model is model


@pytest.mark.parametrize("name", [pytest.param("GPT2", marks=peers)])
def test_a_model_in_training_has_no_dropout_here(name):
    model = random_model(name)
    target, fresh = TransformersModel(model), TransformersModel(model)
    expected = fresh([1, 2, 3, 4])
    model.train()
    np.testing.assert_array_equal(target([1, 2, 3, 4]), expected)


@pytest.mark.parametrize("name", [pytest.param("Phi3", marks=peers)])
def test_positions_that_change_in_a_long_text_end_the_context(name, monkeypatch):
    rope = {"type": "longrope", "short_factor": [1.0] * 3, "long_factor": [4.0, 3.0, 2.0]}
    longer = {"original_max_position_embeddings": 32, "rope_scaling": rope}
    ends = {"pad_token_id": None}
    monkeypatch.setitem(SHAPES, name, WIDE | longer | ends)
    target = TransformersModel(random_model(name))
    assert target.n_ctx == 32
    check_language_model(target)
    with pytest.raises(ValueError, match="n_ctx is 32"):
        AutoregressiveSampler(target).generate([1] * 30, 3)


def test_the_context_of_a_configuration():
    kinds = {"rope_type": "longrope", "original_max_position_embeddings": 16}, {"rope_type": "yarn"}
    for rope, n_ctx in (
        (kinds[0], 16),
        (kinds[1], 128),
        (None, 128),
        ({"full_attention": kinds[0], "sliding_attention": kinds[1]}, 16),
    ):
        assert n_ctx_of(SimpleNamespace(max_position_embeddings=128, rope_parameters=rope)) == n_ctx
    assert n_ctx_of(SimpleNamespace(max_seq_len=64)) == 64 and n_ctx_of(SimpleNamespace()) == NO_LIMIT


@pytest.mark.parametrize("name", [pytest.param("transformers", marks=peers)])
def test_a_model_without_a_cache_is_refused(name):
    transformers = pytest.importorskip(name)
    config = transformers.BertConfig(**SHAPE, intermediate_size=40)
    with pytest.raises(ValueError, match="expected a causal language model with a cache, got BertForSequenceClass"):
        TransformersModel(transformers.BertForSequenceClassification(config))


@pytest.mark.parametrize("name", [pytest.param("transformers", marks=peers)])
def test_a_model_that_is_no_causal_language_model_is_refused(name):
    """Bart's encoder reads the whole text, also what follows a row, and runs only in the first call."""
    transformers = pytest.importorskip(name)
    layers = {f"{part}_layers": 1 for part in ("encoder", "decoder")}
    bart = transformers.BartConfig(vocab_size=61, d_model=16, max_position_embeddings=64, **layers)
    llama = transformers.LlamaConfig(**WIDE, pad_token_id=0)
    kinds = {
        "BartForConditionalGeneration": bart,
        "LlamaModel": llama,  # it has no language model head
        "LlamaForSequenceClassification": llama,
    }
    for kind, config in kinds.items():
        with pytest.raises(ValueError, match=f"expected a causal language model with a cache, got {kind}"):
            TransformersModel(getattr(transformers, kind)(config))
    TransformersModel(transformers.BartForCausalLM(bart))  # its decoder alone is one


@pytest.mark.parametrize("name", [pytest.param("Llama", marks=peers)])
def test_n_last_may_be_a_number_of_numpy(name):
    """transformers takes what is not an int for the places of the rows."""
    model = TransformersModel(random_model(name))
    np.testing.assert_allclose(model([1, 2, 3], n_last=np.int64(2)), model([1, 2, 3], n_last=2), atol=2e-5)


@pytest.mark.parametrize("name", [pytest.param("tiny", marks=peers)])
def test_the_bundled_pair_in_llama_cpp(name):
    pytest.importorskip("llama_cpp")
    if not (folder := os.environ.get("GGUF_FOLDER")):
        pytest.skip("GGUF_FOLDER does not name the folder of docs/make_gguf.py")
    target, same, draft = (
        LlamaCppModel(Path(folder, f"{name}-{role}.gguf"), n_threads=1) for role in ("target", "target", "draft")
    )
    ours, tokenizer = gpt2np.load(f"{name}-target")
    prompt = tokenizer.encode("Once upon a time there lived a king who")
    check_language_model(target)
    expected = ours(prompt, n_last=len(prompt))
    np.testing.assert_allclose(target(prompt, n_last=len(prompt)), expected, rtol=0, atol=1e-3 * np.abs(expected).max())
    target.reset()
    tokens = target.llama.generate(prompt, temp=0, top_k=1, repeat_penalty=1.0)
    own = [int(next(tokens)) for _ in range(100)]
    target.cached = []  # the text above was not its own
    for way, sampler in samplers(target, same, draft).items():
        assert sampler.generate(prompt, 100).tokens.tolist() == own, way


# ------------------------------------------------------------------------------------------------ a stand-in


class Llama:
    """What LlamaCppModel uses of llama_cpp.Llama 0.3.36, in terms of a model of this library.

    Like the original it forgets what follows n_tokens when it evaluates more, and writes one row of scores a token.
    """

    recurrent = False

    def __reduce__(self):
        """A deep copy is another engine, which opens the file again."""
        return Llama, (self.path, len(self.scores), True, False, True)

    def __init__(self, path, n_ctx, logits_all, verbose, swa_full):
        assert logits_all and swa_full and not verbose
        self.path = path
        self.model = random_gpt2(gpt2np.HParams(17, 64, 12, 2, 2), seed=int(path))
        self.kept, self.n_tokens, self.scores = [], 0, np.full((n_ctx or 64, 17), np.nan, np.float32)
        self._ctx = SimpleNamespace(kv_cache_seq_rm=self.remove)
        self.n_evaluated = 0

    def n_vocab(self):
        return 17

    def n_ctx(self):
        return len(self.scores)

    def reset(self):
        self.n_tokens = 0
        self.kept = [] if self.recurrent else self.kept

    def remove(self, sequence, first, end):
        assert sequence in (-1, 0) and end == -1
        if self.recurrent and 0 < first < len(self.kept):
            return False
        del self.kept[first:]
        return True

    def eval(self, tokens):
        assert self.remove(-1, self.n_tokens, -1) and len(self.kept) == self.n_tokens
        self.kept += tokens
        self.n_evaluated += len(tokens)
        self.scores[self.n_tokens : len(self.kept)] = self.model(self.kept, n_last=len(tokens))
        self.n_tokens = len(self.kept)


@pytest.fixture
def llama_cpp(monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_cpp", SimpleNamespace(Llama=Llama))
    return Llama


@pytest.mark.parametrize("recurrent", [False, True])
def test_a_stand_in_for_llama_cpp(llama_cpp, recurrent, monkeypatch):
    monkeypatch.setattr(llama_cpp, "recurrent", recurrent)
    target, same, draft = LlamaCppModel("0"), LlamaCppModel("0"), LlamaCppModel("1")
    check_language_model(target)
    own = AutoregressiveSampler(target.llama.model, sampling=Sampling(0)).generate([1, 2, 3], 30).tokens.tolist()
    for way, sampler in samplers(target, same, draft).items():
        target.reset()
        before = target.llama.n_evaluated
        generation = sampler.generate([1, 2, 3], 30)
        assert generation.tokens.tolist() == own, way
        drafted = generation.stats.drafted
        if not recurrent:  # nothing is computed twice
            assert target.llama.n_evaluated - before <= 3 + 30 + drafted
    tree = ByPaths(target)([1, 2, 3, 4, 5, 6], n_last=4, parents=[-1, -1, 1])  # 4, and 5 before 6
    for row, tokens in zip(tree, ([1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 3, 5, 6])):
        np.testing.assert_allclose(row, same(tokens)[0], rtol=0, atol=1e-5)
    assert LlamaCppModel("0", n_vocab=5)([1, 2]).shape == (1, 5) and LlamaCppModel("0", n_ctx=8).n_ctx == 8
    with pytest.raises(ValueError, match="expected n_vocab from 1 to the model's 17 tokens, got 18"):
        LlamaCppModel("0", n_vocab=18)


def test_an_interrupted_evaluation_leaves_nothing_wrong(llama_cpp, monkeypatch):
    target = LlamaCppModel("0")
    expected = target([1, 2, 7, 5])
    target([1, 2, 7])
    evaluate = llama_cpp.eval

    def interrupted(self, tokens):
        evaluate(self, tokens[:1])
        raise KeyboardInterrupt

    monkeypatch.setattr(llama_cpp, "eval", interrupted)
    with pytest.raises(KeyboardInterrupt):
        target([1, 2, 9, 8])  # 7 is forgotten, and 9 is in its place
    monkeypatch.setattr(llama_cpp, "eval", evaluate)
    np.testing.assert_allclose(target([1, 2, 7, 5]), expected, rtol=0, atol=1e-5)


def test_an_interruption_after_the_cut_of_llama_cpp_leaves_nothing_wrong(llama_cpp, monkeypatch):
    target = LlamaCppModel("0")
    expected = target([1, 2, 7, 5])
    target([1, 2, 7])
    remove = target.llama.remove

    def interrupted(*arguments):
        remove(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(target.llama._ctx, "kv_cache_seq_rm", interrupted)
    with pytest.raises(KeyboardInterrupt):
        target([1, 9, 8])
    monkeypatch.setattr(target.llama._ctx, "kv_cache_seq_rm", remove)
    np.testing.assert_allclose(target([1, 2, 7, 5]), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_knows_what_is_in_its_engine(llama_cpp, copied):
    """A shallow copy shares the engine, which either may have used last; a deep one has another, which is empty."""
    target, texts = LlamaCppModel("0"), ([1, 2, 7, 5], [1, 9, 9, 4])
    expected = [LlamaCppModel("0")(text) for text in texts]
    target([1, 2, 7])
    other = copied(target)
    other([1, 9, 9])
    for model in (target, other):
        for text, logits in zip(texts, expected):
            np.testing.assert_allclose(model(text), logits, rtol=0, atol=1e-5)


# ------------------------------------------------------------------------------------------------ the prefix


def test_what_is_kept_of_a_cache():
    assert split([5, 6, 7, 8], [5, 6, 9], 1, 9) == (2, [5, 6, 9])
    assert split([5, 6, 7], np.array([5, 6, 7]), 1, 9) == (2, [5, 6, 7])  # the last row is always computed
    assert split([5, 6, 7], [5, 6, 7, 8], 3, 9)[0] == 1
    assert split([], [1], 1, 1) == (0, [1])
    assert split(list(range(300)), range(300), np.uint8(2), 300)[0] == 298
    for tokens, n_last in (([1.5], 1), (["3"], 1), ([1], 1.0)):
        with pytest.raises(TypeError):
            split([], tokens, n_last, 9)
    for tokens, n_last, message in (
        ([], 1, "expected 1 to n_ctx = 4 tokens, got 0"),
        ([1] * 5, 1, "expected 1 to n_ctx = 4 tokens, got 5"),
        ([1, 2], 3, "expected n_last from 1 to the number of tokens, 2, got 3"),
        ([1, 2], 0, "expected n_last from 1 to the number of tokens, 2, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            split([], tokens, n_last, 4)


def test_as_many_tokens_as_the_model_has_may_be_used():
    assert [checked_n_vocab(n, 5) for n in (None, 1, 5)] == [5, 1, 5]
    for n in (0, 6, -1):
        with pytest.raises(ValueError, match=f"expected n_vocab from 1 to the model's 5 tokens, got {n}"):
            checked_n_vocab(n, 5)


def test_without_the_engine_the_adapter_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(ImportError):
        LlamaCppModel("0")
    with pytest.raises(AttributeError):
        TransformersModel(TableModel.random(3))
