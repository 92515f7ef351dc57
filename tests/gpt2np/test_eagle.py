"""EAGLE's block: which state goes with which token, what is kept between calls, and its file."""

import copy
import itertools
import json
import threading
import time

import numpy as np
import pytest
import safetensors.numpy
from helpers import ROOT, random_eagle, random_gpt2

import gpt2np
from gpt2np import HParams, load_eagle, reference
from gpt2np.eagle import eagle_file
from speculative.testing import check_language_model
from speculative.tree import path

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)
TINY = ROOT / "gpt2np" / "tiny"
MODEL = random_gpt2(SHAPE)


def eagle_of(shape=SHAPE, n_frequent=0):
    return random_eagle(shape).on(random_gpt2(shape), n_frequent)


def normed(x):
    return reference.layer_norm(x, 1, 0)


def by_definition(tokens, n_text):
    """The logits after `tokens`, of which n_text are the text: the equations in float64, without any cache."""
    params, of_block = random_gpt2(SHAPE).params, random_eagle(SHAPE)
    wide = lambda part: {k: wide(v) if isinstance(v, dict) else np.asarray(v, np.float64) for k, v in part.items()}  # noqa: E731
    of_block, last_norm = {"input": wide(of_block.input), "block": wide(of_block.block)}, wide(params["ln_f"])
    wte, wpe = np.asarray(params["wte"], np.float64), params["wpe"].astype(np.float64)
    x = wte[tokens[: n_text - 1]] + wpe[: n_text - 1]
    for layer in params["blocks"] if n_text > 1 else ():
        x = reference.block(x, wide(layer), SHAPE.n_head)
    states = [np.zeros(SHAPE.n_embd), *normed(x)]  # the target's: before token 0, after it, ..., but not the last
    for n in range(n_text, len(tokens) + 1):
        pairs = [[*state, *normed(wte[token] + wpe[i])] for i, (state, token) in enumerate(zip(states, tokens[:n]))]
        z = np.array(pairs) @ of_block["input"]["w"] + of_block["input"]["b"]
        states.append(normed(reference.block(z, of_block["block"], SHAPE.n_head))[-1])  # predicted
    return (states[-1] * last_norm["g"] + last_norm["b"]) @ wte.T


# ------------------------------------------------------------------------------------------------ what it computes


@pytest.mark.parametrize("n_text", [1, 2, 5, 8])
def test_the_block_by_its_definition(n_text):
    tokens = [5, 1, 4, 2, 3, 9, 16, 0]
    logits = eagle_of().draft_logits(tokens, n_text, n_last=len(tokens) - n_text + 1)
    assert logits.shape == (len(tokens) - n_text + 1, SHAPE.n_vocab) and logits.dtype == np.float32
    for row, n in zip(logits, range(n_text, len(tokens) + 1)):
        np.testing.assert_allclose(row, by_definition(tokens[:n], n_text), rtol=1e-3, atol=1e-3)


def test_after_a_text_the_block_is_a_language_model():
    """Of the texts that begin so: each row depends on the tokens alone, in trees on the path alone."""
    eagle, text = eagle_of(), [7, 3, 3, 9]

    class After:
        n_vocab, n_ctx = SHAPE.n_vocab, SHAPE.n_ctx - len(text)

        def __call__(self, tokens, n_last=1, parents=()):
            return eagle.draft_model(len(text))([*text, *tokens], n_last, parents)

    check_language_model(After())


def draws(rng):
    """(text, draft tokens, parents), for a text that goes on along a branch of the draft, or is cut."""
    text = [1]
    for i in itertools.count():
        n = int(rng.integers(1, 8))
        parents = [int(rng.integers(-1, node)) if node else -1 for node in range(n)]
        tokens = []
        for node, parent in enumerate(parents):  # siblings carry different tokens
            tokens.append((i + 3 * parent + 5 * sum(p == parent for p in parents[:node])) % SHAPE.n_vocab)
        yield text, tokens, parents
        node = int(rng.integers(-1, n))
        text = [*text, *(tokens[i] for i in path(parents, node)), int(rng.integers(17))]
        text = text if len(text) < SHAPE.n_ctx - 8 and rng.random() < 0.9 else text[: 1 + len(text) // 2]


@pytest.mark.parametrize("n_frequent", [0, 6])
def test_a_node_has_the_logits_of_its_path_as_a_chain_and_of_a_fresh_object(n_frequent):
    """To the bit, whatever was drafted, verified and accepted before: level by level and all at once."""
    used, rng = eagle_of(n_frequent=n_frequent), np.random.default_rng(0)
    for text, tokens, parents in itertools.islice(draws(rng), 40):
        rows = {-1: used.draft_logits(text, len(text))[0]}
        for n in range(1, len(tokens) + 1):  # one node more at each call
            rows[n - 1] = used.draft_logits([*text, *tokens[:n]], len(text), 1, parents[:n])[0]
        fresh = eagle_of(n_frequent=n_frequent)
        at_once = fresh.draft_logits([*text, *tokens], len(text), len(tokens) + 1, parents)
        for node, row in rows.items():
            assert row.tobytes() == at_once[node + 1].tobytes()
            chain = [*text, *(tokens[i] for i in path(parents, node))]
            fresh.reset()
            fresh.model.reset()
            assert row.tobytes() == fresh.draft_logits(chain, len(text))[0].tobytes()
        used.model([*text, *tokens], len(tokens) + 1, parents)  # the target verifies


def test_of_the_accepted_tokens_the_states_are_the_targets():
    """Their keys were computed from predicted states, and are computed again; the target need not be called."""
    used, text, drafted = eagle_of(), [1, 2, 3], [4, 5, 6]
    for n in range(4):
        used.draft_logits([*text, *drafted[:n]], len(text))
    predicted = used.states[2:6].copy()
    used.model([*text, *drafted], n_last=4)
    used.model.run = None  # not to be called
    logits = used.draft_logits([*text, *drafted, 7], 7)
    assert not np.isclose(predicted, used.states[2:6]).all(axis=1).any()
    target = random_gpt2(SHAPE)
    np.testing.assert_allclose(used.states[:6], normed(target.run([*text, *drafted], 6)), rtol=1e-4, atol=1e-5)
    assert logits.tobytes() == eagle_of().draft_logits([*text, *drafted, 7], 7).tobytes()
    assert logits.tobytes() != used.draft_logits([*text, *drafted, 7], 3).tobytes()  # had they been drafted


def test_only_frequent_tokens_are_drafted():
    full, some, tokens = eagle_of(), eagle_of(n_frequent=5), [1, 2, 3, 4]
    wanted, logits = full.draft_logits(tokens, 3, 2), some.draft_logits(tokens, 3, 2)
    kept = random_eagle(SHAPE).frequent[:5]
    np.testing.assert_allclose(logits[:, kept], wanted[:, kept], rtol=1e-4, atol=1e-5)
    assert (np.isfinite(logits).sum(axis=1) == 5).all() and np.isfinite(logits[:, kept]).all()


def test_an_interrupted_call_changes_no_later_result(monkeypatch):
    used, text = eagle_of(), [1, 2, 3]
    used.draft_logits([*text, 4, 5], 3)
    with monkeypatch.context() as patch:
        patch.setattr(gpt2np.eagle, "block", lambda *rest: (_ for _ in ()).throw(KeyboardInterrupt))
        for tokens, n_text in (([*text, 4, 5, 6], 3), ([*text, 9], 4)):
            with pytest.raises(KeyboardInterrupt):
                used.draft_logits(tokens, n_text)
    for tokens, n_text in (([*text, 4, 5, 6], 3), ([*text, 9], 4), ([*text, 4], 3)):
        assert used.draft_logits(tokens, n_text).tobytes() == eagle_of().draft_logits(tokens, n_text).tobytes()


def test_copies_and_threads(monkeypatch):
    eagle, found, kept = eagle_of(n_frequent=5), {}, gpt2np.eagle.kept_slots
    assert copy.deepcopy(eagle).draft_logits([1, 2, 3], 2).tobytes() == eagle.draft_logits([1, 2, 3], 2).tobytes()
    texts = [1, 2, 3, 4], [4, 5, 6, 7]
    wanted = {text[0]: eagle.draft_logits(text, 3).tobytes() for text in texts}

    def slowly(*arguments):
        time.sleep(0.001)
        return kept(*arguments)

    def ask(text):
        found[text[0]] = {eagle.draft_logits(text, 3).tobytes() for _ in range(20)}

    monkeypatch.setattr(gpt2np.eagle, "kept_slots", slowly)
    threads = [threading.Thread(target=ask, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {first: {row} for first, row in wanted.items()}


def test_what_does_not_fit_is_refused():
    other = random_eagle(HParams(n_vocab=17, n_ctx=40, n_embd=6, n_head=3, n_layer=1))
    for make, message in (
        (
            lambda: other.on(MODEL),
            "expected a block for a model with n_embd 15 and 17 tokens, got one with n_embd 6",
        ),
        (lambda: random_eagle(SHAPE).on(gpt2np.EarlyExit(MODEL, 1)), "expected a GPT2, whose hidden states"),
        (lambda: eagle_of(n_frequent=18), "expected n_frequent from 1 to 17, the number of tokens, or 0, got 18"),
        (lambda: eagle_of().draft_logits([1, 2], 0), "expected rows after a text of 1 to 2 tokens, got 1 after 0"),
        (lambda: eagle_of().draft_logits([1, 2], 2, 2), "expected rows after a text of 1 to 2 tokens, got 2 after 2"),
        (lambda: eagle_of().draft_logits([1, 99], 1), "expected token ids from 0 to 16"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


# ------------------------------------------------------------------------------------------------ files


def test_the_bundled_block():
    target, params = gpt2np.load("tiny-target")[0], load_eagle("tiny-target")
    assert params.n_params == 921_088 and params.on(target).draft_model(1)([5]).shape == (1, 2048)
    assert params.input["w"].shape == (512, 256) and params.input["w"].dtype == np.float32
    assert sorted(params.frequent.tolist()) == [*range(2048)]
    assert eagle_file("tiny-target").stat().st_size < 1.9e6


def test_files_that_are_no_block(tmp_path):
    with pytest.raises(ValueError, match="tiny-draft has no EAGLE block: expected tiny-target, whose block is bundled"):
        load_eagle("tiny-draft")
    tensors = dict(safetensors.numpy.load_file(eagle_file("tiny-target")))
    for name, change, message in (
        ("h.0.ln_1.bias", None, r"lacks h\.0\.ln_1\.bias"),
        (
            "input.weight",
            np.zeros((3, 3), np.float16),
            r"the wrong shape for input\.weight \[3, 3\] instead of \[512, 2",
        ),
        ("input.bias", None, r"lacks input\.bias"),
        ("input.bias", np.full(256, np.nan, np.float16), r"input\.bias has NaN or infinity in it"),
    ):
        changed = {k: v for k, v in (tensors | {name: change}).items() if v is not None}
        safetensors.numpy.save_file(changed, tmp_path / "eagle.safetensors")
        with pytest.raises(gpt2np.CheckpointError, match=message):
            load_eagle(tmp_path)
    safetensors.numpy.save_file({k: v for k, v in tensors.items() if k != "frequent"}, tmp_path / "eagle.safetensors")
    with pytest.raises(ValueError, match="got one with n_embd 256 and 0 tokens"):
        load_eagle(tmp_path).on(gpt2np.load("tiny-target")[0])
    safetensors.numpy.save_file({**tensors, "frequent": 0 * tensors["frequent"]}, tmp_path / "eagle.safetensors")
    with pytest.raises(ValueError, match="expected each token once in the block's `frequent`"):
        load_eagle(tmp_path).on(gpt2np.load("tiny-target")[0])


# ------------------------------------------------------------------------------------------------ the card


def test_the_table_of_the_card_is_that_of_its_measurements():
    card = json.loads((TINY / "tiny-target" / "eagle_figures.json").read_text("utf-8"))
    page = (TINY / "README.md").read_text("utf-8")
    assert f"{card['parameters']:,}" in page
    for i in range(4):
        shares = [card[name][i] for name in ("top_1", "top_2", "top_3", "top_5", "top_10", "overlap")]
        assert f"| {i + 1} | {' | '.join(f'{share:.3f}' for share in shares)} |" in page
    assert card["top_1"][0] >= 0.82 and card["top_1"][3] >= 0.81
    assert card["overlap"][0] >= 0.77 and card["overlap"][3] >= 0.75


@pytest.mark.slow
def test_the_card_of_the_block(monkeypatch):
    """Fewer prompts than eagle_figures.json has: about 550 positions, with a standard error of .02."""
    monkeypatch.syspath_prepend(ROOT / "dev" / "train")
    from measure_eagle import along, greedy_texts, held_out_prompts

    target, tokenizer = gpt2np.load("tiny-target")
    texts = greedy_texts(target, held_out_prompts(tokenizer, 36)[::4], 64)
    ranks, _ = along(load_eagle("tiny-target").on(target), texts, 64)
    card = json.loads((TINY / "tiny-target" / "eagle_figures.json").read_text("utf-8"))
    np.testing.assert_allclose((ranks == 0).mean(axis=(0, 1)), card["top_1"], atol=0.08)
