"""Heads on the last hidden state: what they see, what the wrapper keeps, and their files."""

import json
import threading
import time

import numpy as np
import pytest
import safetensors.numpy
from helpers import ROOT, random_gpt2, random_heads, walk

import gpt2np
from gpt2np import Heads, HParams, load_heads
from gpt2np.heads import heads_file, silu
from speculative import ByPaths
from speculative.testing import check_language_model
from speculative.tree import children

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)
TINY = ROOT / "gpt2np" / "tiny"


@pytest.fixture(params=["hydra", "medusa"])
def kind(request):
    return request.param


def wrapped(kind="hydra", shape=SHAPE):
    return Heads(random_gpt2(shape), random_heads(shape, kind))


# ------------------------------------------------------------------------------------------------ the wrapper


def test_its_logits_are_the_models_own_to_the_bit(kind):
    model, heads = random_gpt2(SHAPE), wrapped(kind)
    check_language_model(heads)
    for tokens, n_last in walk(model, 60):
        assert heads(tokens, n_last).tobytes() == model(tokens, n_last).tobytes()
        if len(tokens) > 1:
            heads.head_logits(tokens, [[3]])  # changes no later result
    assert heads.model.cache.length > 0 < len(heads.hidden)
    heads.reset()
    assert heads.model.cache.length == 0 == len(heads.hidden)


def test_a_head_by_its_definition(kind):
    """Against the equations in float64, from the hidden state of the model without a cache."""
    heads, tokens, paths = wrapped(kind), [5, 1, 4, 2, 3], [[7, 8], [9, 7]]
    x = gpt2np.model.hidden_states(tokens[:-1], slice(0, 4), heads.params, SHAPE.n_head)[-1].astype(np.float64)
    h = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
    wte, last = np.asarray(heads.params["wte"]), heads.params["ln_f"]
    head = {name: np.asarray(part) for name, part in heads.heads[2].items()}
    logits = heads.head_logits(tokens, paths)
    assert logits.shape == (2, SHAPE.n_vocab) and logits.dtype == np.float32
    for row, path in zip(logits, paths):
        if kind == "hydra":
            seen = np.concatenate([h, wte[tokens[-1]], wte[path[0]], wte[path[1]]])
            z = seen @ head["w"]
            y = seen @ head["a"] + z / (1 + np.exp(-z))
        else:
            z = h @ head["w"] + head["b"]
            y = h + z / (1 + np.exp(-z))
        np.testing.assert_allclose(row, (y * last["g"] + last["b"]) @ wte.T, rtol=1e-3, atol=1e-3)


def test_silu():
    x = np.array([-1e4, -1.0, 0.0, 1.0, 1e4], np.float32)
    assert silu(x).dtype == np.float32
    np.testing.assert_allclose(silu(x), [0, -1 / (1 + np.e), 0, 1 / (1 + 1 / np.e), 1e4], rtol=1e-6)


def test_a_head_sees_what_it_should():
    """Hydra's head i: the tokens before its own place. Medusa's: only those that the model has processed."""
    for kind, sees_it in (("hydra", True), ("medusa", False)):
        heads = wrapped(kind)
        ask = lambda tokens, path, heads=heads: heads.head_logits(tokens, [path])[0].tobytes()  # noqa: E731
        assert (ask([1, 2, 3], []) != ask([1, 2, 4], [])) == sees_it  # the last token is not processed yet
        assert (ask([1, 2, 3], [5]) != ask([1, 2, 3], [6])) == sees_it
        assert (ask([1, 2, 3], [5, 6]) != ask([1, 2, 3], [7, 6])) == sees_it
        assert ask([1, 2, 3], []) != ask([1, 7, 3], [])  # and the text through the hidden state
        both = heads.head_logits([1, 2, 3], [[5], [6]])  # a path sees nothing of its neighbours
        np.testing.assert_allclose(both[0], heads.head_logits([1, 2, 3], [[5]])[0], rtol=1e-4, atol=1e-5)


def test_the_state_is_that_of_the_last_accepted_token_and_no_pass_is_needed(monkeypatch):
    heads, ran = wrapped(), []
    original = gpt2np.model.hidden_states
    monkeypatch.setattr(gpt2np.model, "hidden_states", lambda new, *rest: ran.append(new) or original(new, *rest))
    text, draft = [1, 2, 3, 4], [5, 6, 7]
    heads([*text, *draft], n_last=4)
    ran.clear()
    for n_accepted in range(4):
        new = [*text, *draft[:n_accepted], 9]
        kept = heads.head_logits(new, [[]])
        assert ran == []
        fresh = wrapped()
        np.testing.assert_allclose(kept, fresh.head_logits(new, [[]]), rtol=1e-4, atol=1e-5)
        ran.clear()
    heads.head_logits([1, 2, 9, 9], [[]])  # another text: one pass, of the tokens that differ
    assert ran == [[9]]
    heads.head_logits([1, 2, 9, 3], [[]])
    assert ran == [[9]]


def in_a_tree(rng, n):
    parents = [int(rng.integers(-1, i)) if i else -1 for i in range(n)]
    tokens = []
    for i, parent in enumerate(parents):  # siblings carry different tokens
        tokens.append((3 + 5 * sum(p == parent for p in parents[:i])) % SHAPE.n_vocab)
    return tokens, parents


def test_a_tree_is_passed_on_and_its_branches_are_kept(kind):
    model, heads, rng, text = random_gpt2(SHAPE), wrapped(kind), np.random.default_rng(0), [1, 2, 3]
    for n in range(1, 9):
        tokens, parents = in_a_tree(rng, n)
        wanted = ByPaths(model)([*text, *tokens], n_last=n + 1, parents=parents)
        assert heads([*text, *tokens], n_last=n + 1, parents=parents).tobytes() == wanted.tobytes()
        kept, node, accepted = heads.hidden, -1, []
        while below := children(parents, node):
            node = int(rng.choice(below))
            accepted.append(tokens[node])
        row = heads.hidden_state([*text, *accepted])
        assert heads.hidden is kept  # no pass
        model([*text, *accepted])
        assert row.tobytes() == model.hidden[0].tobytes()
        text = [*text, *accepted, 4]


def test_the_hidden_states_are_read_before_another_thread_can_call_the_model(tiny_pair):
    class Watched(gpt2np.GPT2):
        @property
        def hidden(self):
            assert not hasattr(self, "lock") or self.lock._is_owned() or self.is_free
            return self.rows

        @hidden.setter
        def hidden(self, rows):
            self.rows = rows

    target = tiny_pair[0]
    model = Watched(target.params, target.hparams)
    model.is_free = True  # while the heads are made
    heads = Heads(model, load_heads("tiny-target"))
    model.is_free = False
    heads([1, 2, 3])
    heads.hidden_state([1, 2, 3, 4])


def test_threads_may_share_heads(monkeypatch):
    shape = HParams(n_vocab=31, n_ctx=40, n_embd=16, n_head=2, n_layer=1)
    heads, none = Heads(random_gpt2(shape), random_heads(shape)), np.empty((1, 0), int)
    found, kept = {}, gpt2np.heads.kept_slots

    def slowly(*arguments):
        result = kept(*arguments)
        time.sleep(0.002)
        return result

    def ask(text):
        found[text[0]] = [heads.head_logits(text, none) for _ in range(20)]

    expected = {text[0]: heads.head_logits(text, none) for text in ([1, 2, 3], [4, 5, 6, 7])}
    monkeypatch.setattr(gpt2np.heads, "kept_slots", slowly)
    threads = [threading.Thread(target=ask, args=(text,)) for text in ([1, 2, 3], [4, 5, 6, 7])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(row, expected[first]) for first, rows in found.items() for row in rows)


# ------------------------------------------------------------------------------------------------ files


def test_the_bundled_heads(kind):
    heads = load_heads("tiny-target", kind)
    assert len(heads) == 3 and all(array.dtype == np.float32 for head in heads for array in head.values())
    target = gpt2np.load("tiny-target")[0]
    wrapper = Heads(target, heads)
    assert wrapper.n_params == (1_179_648 if kind == "hydra" else 197_376)
    assert wrapper.accepted.shape == (3, 10)
    assert (wrapper.accepted >= 0).all() and (wrapper.accepted.sum(axis=-1) < 1.001).all()  # rounded to float16
    with pytest.raises(
        ValueError, match=r"expected arrays .* for head 1 of a model with n_embd 128, got .* another model's"
    ):
        Heads(gpt2np.load("tiny-draft")[0], heads)
    ranks = np.ones((2, 2), np.float32)
    with pytest.raises(
        ValueError, match=r"'accepted': \('n_ranks',\)} for head 1 .*'accepted': \(2, 2\)}: these heads"
    ):
        Heads(target, [{**head, "accepted": ranks} for head in heads])
    with pytest.raises(ValueError, match="expected one head or more"):
        Heads(target, [])
    with pytest.raises(ValueError, match="expected paths of at most 2 tokens"):
        Heads(target, heads).head_logits([1, 2], [[1, 2, 3]])


def test_files_that_are_no_heads(tmp_path):
    with pytest.raises(ValueError, match="tiny-draft has no heads: expected tiny-target, whose heads are bundled, or"):
        load_heads("tiny-draft")
    with pytest.raises(ValueError, match="unknown heads 'eagle': expected hydra or medusa"):
        load_heads("tiny-target", "eagle")
    with pytest.raises(ValueError, match=r"unknown heads \['hydra'\]: expected hydra or medusa"):
        load_heads("tiny-target", ["hydra"])
    with pytest.raises(ValueError, match="expected a model's name or folder, such as tiny-target, got None"):
        load_heads(None)
    file, w = tmp_path / "heads.safetensors", np.zeros((8, 4), np.float16)
    for tensors, message in (
        ({"hydra.1.w": w}, r"hydra\.1\.a is missing"),
        ({"wte": w}, r"has no heads of the kind hydra: its first tensors are \['wte'\]"),
        ({"medusa.1.w": w, "medusa.1.b": w}, "has no heads of the kind hydra"),
    ):
        safetensors.numpy.save_file(tensors, file)
        with pytest.raises(gpt2np.CheckpointError, match=message):
            load_heads(tmp_path)
    file.write_bytes(b"no")
    with pytest.raises(gpt2np.CheckpointError, match="not a safetensors file"):
        load_heads(tmp_path)
    file.unlink()
    file.mkdir()
    with pytest.raises(gpt2np.CheckpointError, match="has no heads: expected tiny-target"):
        load_heads(tmp_path)
    file.rmdir()
    safetensors.numpy.save_file({"hydra.1.a": w, "hydra.1.w": w, "hydra.1.accepted": w[0]}, file)
    assert [head["a"].shape for head in load_heads(tmp_path)] == [(8, 4)]


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("hydra.7.w", lambda w: np.zeros((1, 1), np.float16), r"hydra\.4\.a is missing"),
        ("hydra.2.w", lambda w: None, r"hydra\.2\.w is missing: these are not whole heads"),
    ],
)
def test_damaged_heads_are_refused(tmp_path, name, damage, message):
    tensors = dict(gpt2np.files.safetensors.read_safetensors(heads_file("tiny-target")))
    changed = damage(tensors.pop(name, None))
    if changed is not None:
        tensors[name] = changed
    safetensors.numpy.save_file(tensors, tmp_path / "heads.safetensors")
    with pytest.raises(gpt2np.CheckpointError, match=message):
        load_heads(tmp_path)


# ------------------------------------------------------------------------------------------------ the card


def test_the_table_of_the_card_is_that_of_its_measurements():
    card, page = (
        json.loads((TINY / "tiny-target" / "heads_figures.json").read_text("utf-8")),
        (TINY / "README.md").read_text("utf-8"),
    )
    for kind in ("hydra", "medusa"):
        assert f"{card[kind]['parameters']:,}" in page
        for i in range(3):
            shares = " | ".join(f"{card[kind][f'top_{k}'][i]:.3f}" for k in (1, 2, 3, 5, 10))
            assert f"| {i + 1} | {shares} |" in page
        np.testing.assert_allclose(
            [head["accepted"] for head in load_heads("tiny-target", kind)], card[kind]["accepted"], atol=0.002
        )
    assert card["hydra"]["top_1"][0] >= 0.55 and card["hydra"]["top_3"][0] >= 0.75


@pytest.mark.slow
def test_the_card_of_the_heads(monkeypatch):
    """Fewer prompts than heads_figures.json has: about 600 positions, with a standard error of .02."""
    monkeypatch.syspath_prepend(ROOT / "dev" / "train")
    from measure_heads import accepted, greedy_texts, held_out_prompts

    target, tokenizer = gpt2np.load("tiny-target")
    texts = greedy_texts(target, held_out_prompts(tokenizer, 36)[::4], 64)
    card = json.loads((TINY / "tiny-target" / "heads_figures.json").read_text("utf-8"))
    for kind in ("hydra", "medusa"):
        heads = Heads(target, load_heads("tiny-target", kind))
        np.testing.assert_allclose(accepted(heads, texts, 64), card[kind]["accepted"], atol=0.08)
