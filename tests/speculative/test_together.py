"""Several texts at once: each as it is alone, all of them independent, and none hurt by another."""

import _thread
import signal
import threading

import numpy as np
import pytest

import gpt2np
import speculative as sd
from speculative import (
    AutoregressiveSampler,
    ByPaths,
    ModelDrafter,
    Sampling,
    Shape,
    SpeculativeSampler,
    generate_together,
    lockstep,
    reference,
)
from speculative.testing import TableModel
from speculative.together import as_they_end

WARM = Sampling(temperature=0.8, repetition_penalty=1.2)
HEADS, BLOCK = gpt2np.load_heads("tiny-target"), gpt2np.load_eagle("tiny-target")


def drafting(drafter, **options):
    """(target, draft) -> a sampler."""
    return lambda target, draft: SpeculativeSampler(target, drafter(target, draft), sampling=WARM, **options)


METHODS = {
    "alone": lambda target, draft: AutoregressiveSampler(target, sampling=WARM),
    "model": drafting(lambda target, draft: ModelDrafter(draft)),
    "model with a threshold": drafting(
        lambda target, draft: ModelDrafter(draft, threshold=0.4), verifier=sd.block, K=5
    ),
    "tree": drafting(lambda target, draft: sd.TreeDrafter(draft, Shape.widths(2, 2)), verifier=sd.traversal),
    "grown tree": drafting(lambda target, draft: sd.TreeDrafter(draft, sd.Grown(6), siblings="top")),
    "prompt lookup": drafting(lambda target, draft: sd.PromptLookupDrafter(target.n_vocab)),
    "recycling": drafting(lambda target, draft: sd.RecyclingDrafter(target.n_vocab)),
    "heads": drafting(lambda target, draft: sd.HeadsDrafter(target, HEADS)),
    "EAGLE": drafting(lambda target, draft: sd.EagleDrafter(target, BLOCK)),
}


def early_exit(target, draft):
    whole = gpt2np.EarlyExit(target, 2)
    return SpeculativeSampler(whole, ModelDrafter(whole.early_exit), sampling=WARM)


METHODS["early exit"] = early_exit


def facts(generation):
    return generation.tokens.tolist(), [(r.drafted.tolist(), r.nodes, r.uniforms) for r in generation.rounds]


@pytest.mark.parametrize("method", METHODS)
def test_each_text_is_the_one_that_it_is_alone(tiny_pair, method):
    """With its drafts, decisions and random numbers: prompts of 1 to 100 tokens, more of them than lanes."""
    target, draft, tokenizer = tiny_pair
    text = tokenizer.encode("Once upon a time there lived a king who had three daughters. " * 8)
    prompts, n_tokens = [text[:n] for n in (30, 1, 100, 7, 2)], [12, 3, 20, 0, 40]
    make, stop = METHODS[method], {"stop_tokens": tokenizer.encode(" and,.")}
    together = generate_together(make, [target, draft], prompts, n_tokens, range(5), n_lanes=3, **stop)
    for i, found in enumerate(together):
        assert facts(found) == facts(make(target, draft).generate(prompts[i], n_tokens[i], i, **stop))
    assert any(len(found.tokens) < n for found, n in zip(together, n_tokens))


# ------------------------------------------------------------------------------------------------ exactness


TARGET, DRAFT = TableModel.random(2, seed=1), TableModel.random(2, seed=2)


def rejecting(K):
    return lambda target, draft: SpeculativeSampler(target, ModelDrafter(draft), K=K)


def with_a_tree(target, draft):
    drafter = sd.TreeDrafter(ByPaths(draft), Shape.widths(2))
    return SpeculativeSampler(ByPaths(target), drafter, verifier=sd.traversal)


ENUMERATED = {  # name -> (make, the lengths of the texts)
    "no draft": (lambda target, draft: AutoregressiveSampler(target), (2, 3)),
    "rejection": (rejecting(K=2), (2, 3)),
    "block": (lambda target, draft: SpeculativeSampler(target, ModelDrafter(draft), K=2, verifier=sd.block), (3, 2)),
    "lookup": (lambda target, draft: SpeculativeSampler(target, sd.PromptLookupDrafter(2), K=2), (3, 3)),
    "tree": (with_a_tree, (2, 2)),
    "more texts than lanes": (rejecting(K=1), (1, 2, 2)),
}
PROMPTS = [[0, 1], [1], [0, 0, 1]]


def product(lengths):
    """The distribution of texts that are independent: dict (text, ...) -> probability."""
    joint = {(): 1.0}
    for prompt, n_tokens in zip(PROMPTS, lengths):
        own = TARGET.distribution(prompt, n_tokens)
        joint = {(*texts, text): p * q for texts, p in joint.items() for text, q in own.items()}
    return joint


@pytest.mark.parametrize("name", ENUMERATED)
def test_the_texts_are_independent_and_each_has_the_targets_distribution(name):
    make, lengths = ENUMERATED[name]

    def texts(rng):
        rngs = [rng] * len(lengths)
        found = generate_together(make, [TARGET, DRAFT], PROMPTS[: len(lengths)], lengths, rngs, n_lanes=2)
        return [text.tokens for text in found]

    assert sd.total_variation(sd.exact_distribution(texts), product(lengths)) < 1e-12


def test_the_lockstep_page_is_the_reference_text_by_text(tiny_pair):
    target, draft, tokenizer = tiny_pair
    prompts = [tokenizer.encode(text) for text in ("The king", "Once upon a time there lived", "A wolf")]
    alone = [reference.generate(target, draft, prompt, 20, 3, i) for i, prompt in enumerate(prompts)]
    assert lockstep.generate(target, draft, prompts, 20, 3, range(3)) == alone


# ------------------------------------------------------------------------------------------------ failures


def test_an_exception_is_the_result_of_its_text(tiny_pair):
    """In the drafter, in the request, in a call of the model: the others are as alone."""
    target, draft, _ = tiny_pair

    class Wrong(ModelDrafter):
        def propose(self, tokens, K, rng):
            if tokens[0] == 7 and len(tokens) > 3:
                raise KeyError("own")
            if tokens[0] == 8:
                self.model([10**6])
            return super().propose(tokens, K, rng)

    make = lambda target, draft: SpeculativeSampler(target, Wrong(draft))  # noqa: E731
    prompts = [[5, 6], [7, 6], [], [8, 1], [9, 10, 11]]
    found = generate_together(make, [target, draft], prompts, 20, range(5), n_lanes=3)
    alone = SpeculativeSampler(target, ModelDrafter(draft))
    assert [facts(found[i]) for i in (0, 4)] == [facts(alone.generate(prompts[i], 20, i)) for i in (0, 4)]
    assert [type(found[i]) for i in (1, 2, 3)] == [KeyError, ValueError, ValueError]
    assert "0 to 2047" in str(found[3])


@pytest.mark.parametrize("where", ["in a pass", "between two texts", "as a text starts"])
def test_an_interruption_ends_all_texts(tiny_pair, where):
    target, draft, _ = tiny_pair
    before, handler = {*threading.enumerate()}, signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt(calls):
        raise KeyboardInterrupt

    class Interrupted(ModelDrafter):
        calls = 0

        def propose(self, tokens, K, rng):
            Interrupted.calls += 1
            if where == "in a pass" and Interrupted.calls == 10:
                monkey.setattr(type(self.model), "together", staticmethod(interrupt))
            return super().propose(tokens, K, rng)

    def watch(i, r):
        if where == "between two texts" and Interrupted.calls > 9:
            _thread.interrupt_main()

    def start(text):
        threading.Thread.start(text)
        raise KeyboardInterrupt

    make = lambda target, draft: SpeculativeSampler(target, Interrupted(draft))  # noqa: E731
    with pytest.MonkeyPatch.context() as monkey, pytest.raises(KeyboardInterrupt):
        if where == "as a text starts":
            monkey.setattr("speculative.together.Text.start", start)
        for _ in as_they_end(make, [target, draft], [[1], [2], [3]], 400, range(3), watch=watch):
            pass
    signal.signal(signal.SIGINT, handler)  # which ignores it, where the tests run in the background
    for thread in {*threading.enumerate()} - before:
        thread.join(10)
        assert not thread.is_alive()
    assert Interrupted.calls < 50  # whole texts take hundreds


def test_what_is_watched_is_every_round_of_every_text():
    seen = [[], []]
    watch = lambda i, r: seen[i].extend(r.tokens.tolist())  # noqa: E731
    options = {"n_lanes": 1, "watch": watch}
    found = dict(as_they_end(AutoregressiveSampler, [TARGET], [[0], [1]], [3, 2], [0, 1], **options))
    assert [*found] == [0, 1] and seen == [found[i].tokens.tolist() for i in (0, 1)]


def test_settings_of_numpy_hold_in_every_text():
    def make(target):
        assert np.geterr()["divide"] == "raise"
        return AutoregressiveSampler(target)

    with np.errstate(divide="raise"):
        [text] = generate_together(make, [TARGET], [[0]], 2, [0])
    assert len(text.tokens) == 2
