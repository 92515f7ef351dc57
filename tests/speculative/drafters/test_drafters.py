"""What holds for all drafters. A new one is tested by its entry in CHAINS or TREES."""

import copy
import pickle

import pytest
from exactness import error_by_rounds, error_of
from helpers import interrupted, random_eagle, random_gpt2, random_heads, random_parallel
from toy_tokenizers import OF_DRAFT, OF_TARGET

import speculative as sp
from gpt2np import EarlyExit, HParams
from speculative import Sampling, Shape, block, exact_match, rejection, traversal
from speculative.logits.probs import inheriting
from speculative.testing import TableModel
from speculative.testing import drafters as grader

TARGET, DRAFT = TableModel.random(3, seed=1, n_ctx=16), TableModel.random(3, seed=2)
GPT2 = random_gpt2(HParams(n_vocab=3, n_ctx=16, n_embd=6, n_head=2, n_layer=2), scale=0.6)
EARLY, HEADS, BLOCK = EarlyExit(GPT2, 1), random_heads(GPT2.hparams, n_heads=2), random_eagle(GPT2.hparams)
PARALLEL = random_parallel(GPT2.hparams)
MEDUSA = random_heads(GPT2.hparams, "medusa", n_heads=2)
PATHS, SHARED = sp.ByPaths(DRAFT), sp.SharedTokensModel(DRAFT, OF_TARGET, OF_DRAFT)
COUNTS = sp.NGramModel.from_tokens([0, 1, 2, 0, 1, 0, 2, 2], n_vocab=3, n=2)
CORPUS = [0, 1, 0, 2, 1]
AB = sp.Grammar("01(01)*", [b"0", b"1", b""], end=2, n_prompt=0)
OPTIONS = Sampling(0.7, top_k=2, top_p=0.9, min_p=0.1, repetition_penalty=1.3)
GREEDY, TWO_AND_ONE = Sampling(0), Shape.widths(2, 1)


def digits(text):
    return [*map(int, text)]


def by_text(drafter):
    return sp.TextDrafter(drafter, OF_TARGET, OF_DRAFT)


# name -> a new drafter for a target; the target is GPT2 for those that need its layers or states
CHAINS = {
    "ModelDrafter": lambda target: sp.ModelDrafter(DRAFT, threshold=0.3),
    "ModelDrafter, options": lambda target: sp.ModelDrafter(DRAFT, sampling=OPTIONS),
    "ModelDrafter, shared tokens": lambda target: sp.ModelDrafter(SHARED),
    "TextDrafter": lambda target: by_text(sp.ModelDrafter(DRAFT)),
    "TextDrafter, drawn": lambda target: by_text(sp.ModelDrafter(DRAFT, sampling=Sampling(top_k=2))),
    "NGramDrafter": lambda target: sp.NGramDrafter(COUNTS),
    "NGramDrafter, options": lambda target: sp.NGramDrafter(COUNTS, sampling=OPTIONS, threshold=0.4),
    "PromptLookupDrafter": lambda target: sp.PromptLookupDrafter(3),
    "PromptLookupDrafter, corpus": lambda target: sp.PromptLookupDrafter(3, corpus=CORPUS),
    "ForcedDrafter": lambda target: inheriting(sp.ForcedDrafter(digits, 3), Sampling(processors=[AB])),
    "EarlyExitDrafter": lambda target: sp.EarlyExitDrafter(target),
    "EarlyExitDrafter, options": lambda target: sp.EarlyExitDrafter(target, sampling=OPTIONS, threshold=0.4),
    "EagleDrafter": lambda target: sp.EagleDrafter(target, BLOCK),
    "EagleDrafter, options": lambda target: sp.EagleDrafter(
        target, BLOCK, sampling=OPTIONS, n_frequent=2, threshold=0.6
    ),
    "ParallelDrafter": lambda target: sp.ParallelDrafter(target, PARALLEL),
    "ParallelDrafter, options": lambda target: sp.ParallelDrafter(target, PARALLEL, sampling=OPTIONS, threshold=0.6),
}
TREES = {
    "TreeDrafter without": lambda target: sp.TreeDrafter(PATHS, Shape.widths(2)),
    "TreeDrafter drawn": lambda target: sp.TreeDrafter(PATHS, Shape.widths(2), siblings="drawn"),
    "TreeDrafter top": lambda target: sp.TreeDrafter(PATHS, TWO_AND_ONE, siblings="top"),
    "TreeDrafter that grows": lambda target: sp.TreeDrafter(PATHS, sp.Grown(4), siblings="top"),
    "TreeDrafter, options": lambda target: sp.TreeDrafter(PATHS, TWO_AND_ONE, sampling=OPTIONS),
    "TreeDrafter, shared tokens": lambda target: sp.TreeDrafter(SHARED, Shape.widths(3)),
    "TextDrafter, trees": lambda target: by_text(sp.TreeDrafter(PATHS, sp.Grown(4), siblings="top")),
    "PromptLookupDrafter, copies": lambda target: sp.PromptLookupDrafter(3, n_copies=2),
    "HeadsDrafter": lambda target: sp.HeadsDrafter(target, HEADS, TWO_AND_ONE),
    "HeadsDrafter, medusa": lambda target: sp.HeadsDrafter(target, MEDUSA),
    "EagleDrafter that grows": lambda target: sp.EagleDrafter(target, BLOCK, sp.Grown(3), siblings="top"),
    "EagleDrafter, drawn": lambda target: sp.EagleDrafter(target, BLOCK, TWO_AND_ONE, n_frequent=2, siblings="drawn"),
    "EagleDrafter, without": lambda target: sp.EagleDrafter(target, BLOCK, Shape.widths(2)),
    "RecyclingDrafter": lambda target: sp.RecyclingDrafter(3, TWO_AND_ONE, n_followers=2),
    "ParallelDrafter that grows": lambda target: sp.ParallelDrafter(target, PARALLEL, sp.Grown(3), siblings="top"),
    "ParallelDrafter, drawn": lambda target: sp.ParallelDrafter(
        target, PARALLEL, TWO_AND_ONE, n_frequent=2, siblings="drawn"
    ),
    "ParallelDrafter, without": lambda target: sp.ParallelDrafter(target, PARALLEL, Shape.widths(2)),
}
DRAFTERS = {**CHAINS, **TREES}
every = pytest.mark.parametrize("name", DRAFTERS)


def kind(name):
    return name.split()[0].rstrip(",")


def target_of(name):
    of_states = dict.fromkeys(("EagleDrafter", "HeadsDrafter", "ParallelDrafter"), GPT2)
    return {"EarlyExitDrafter": EARLY, **of_states}.get(kind(name), sp.ByPaths(TARGET))


def new(name):
    return DRAFTERS[name](target_of(name))


def sampler_of(name, drafter=None, **options):
    return sp.SpeculativeSampler(target_of(name), drafter or new(name), **options)


def error(name, verifier, n_tokens=3, K=2):
    """Of a text's distribution; a drafter that learns is built again for each text."""
    make = lambda: sampler_of(name, verifier=verifier, K=K)  # noqa: E731
    learns = hasattr(make().drafter, "observe")
    return error_of(make(), n_tokens, make=make) if learns else error_by_rounds(make(), n_tokens)


def test_every_exported_drafter_is_in_the_tables():
    exported = {name for name in sp.__all__ if name.endswith("Drafter")} - {"Drafter"}
    assert exported == {*map(kind, DRAFTERS)}


@every
def test_a_text_has_the_distribution_of_the_target(name):
    assert error(name, block if name in CHAINS else traversal) < 1e-12
    assert error(name, rejection, n_tokens=2) < 1e-12


@pytest.mark.slow
@every
def test_with_every_rule_in_longer_drafts(name):
    for verifier in (rejection, exact_match, traversal):
        assert error(name, verifier, 2, 1) < 1e-12
        assert error(name, verifier, 3, 3) < 1e-12


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (", " in name)) for name in DRAFTERS])
def test_each_token_is_drawn_from_its_row(name, capsys, monkeypatch):
    """Nothing is drafted for K = 0, no more than K otherwise: all that the grader looks at, for fewer texts."""
    monkeypatch.setattr(grader, "PROMPTS", grader.PROMPTS[-1:])
    grader.check_drafter(new(name), n_vocab=3)
    assert "not for an array" not in capsys.readouterr().out


@every
def test_a_greedy_text_is_the_targets_own_up_to_the_end_of_its_context(name):
    """Also after a single token; twice, the second time with a drafter that was used."""
    sampler = sampler_of(name, K=4, sampling=GREEDY)
    for prompt in ([2], [0, 1, 2], [2]):
        wanted = sp.AutoregressiveSampler(target_of(name), sampling=GREEDY).generate(prompt, 16 - len(prompt))
        assert sampler.generate(prompt, 16 - len(prompt)).tokens.tolist() == wanted.tokens.tolist()


def drafts(name, drafter, text, n_tokens=6, **options):
    """The drafts of the rounds in which the text is continued."""
    sampler = sampler_of(name, drafter, K=3, **options)
    rounds = sampler.generate(text, min(n_tokens, 16 - len(text)), 1, keep_probs=True).rounds
    return [(r.drafted.tolist(), r.draft.parents.tolist(), r.draft_probs.tolist()) for r in rounds]


def after_a_round(name):
    """(a drafter after a round of a text, the text to go on with)"""
    drafter, text = new(name), [0, 1, 2, 0, 1]
    return drafter, [*text, *next(sampler_of(name, drafter, K=3).rounds(text, 5, 0)).tokens.tolist()]


def right_ones(name, **options):
    """The drafts of a new drafter, and of one that goes on."""
    drafter, text = after_a_round(name)
    return [drafts(name, one, text, **options) for one in (new(name), drafter)]


@every
def test_a_used_drafter_drafts_another_text_as_a_new_one(name):
    drafter, text = after_a_round(name)
    for another in ([0, 1, 2, 0, 1], text[:3], [2, 2, *text], [2, 0, 1]):
        assert drafts(name, drafter, another) == drafts(name, new(name), another)


@every
def test_a_drafter_that_was_interrupted_starts_again_or_goes_on(name):
    """At every line of a round, if it keeps something between them; otherwise at every 29th."""
    drafter, text = after_a_round(name)
    step = 1 if hasattr(drafter, "observe") or hasattr(drafter, "known") else 29
    right = right_ones(name, n_tokens=3)
    for n in range(1, 10_000, step):
        drafter, _ = after_a_round(name)
        rounds = sampler_of(name, drafter, K=3).rounds(text, 6, 1)
        was_interrupted = interrupted(n, next, rounds, part="speculative/drafters/")
        assert drafts(name, drafter, text, n_tokens=3) in right, n
        if not was_interrupted:
            return


@every
def test_a_copy_and_the_original_go_on_with_texts_of_their_own(name):
    right = right_ones(name)
    for way in (copy.copy, copy.deepcopy, lambda drafter: pickle.loads(pickle.dumps(drafter))):
        drafter, text = after_a_round(name)
        copied = way(drafter)
        if way is not copy.copy or not hasattr(drafter, "observe"):  # else they share what they learned
            drafts(name, copied, [*text, 2])
        assert drafts(name, drafter, text) in right
        copied = way(drafter)
        drafts(name, drafter, [*text, 2])
        assert drafts(name, copied, text) in right


@every
def test_a_target_of_another_vocabulary_is_refused(name):
    with pytest.raises(ValueError, match="share one vocabulary"):
        sp.SpeculativeSampler(sp.ByPaths(TableModel.random(6)), new(name)).generate([0, 1] * 3, 9, 0)


def test_a_drafter_draws_with_the_sampling_that_it_is_given_or_else_with_that_of_its_sampler():
    with_sampling = {name for name in DRAFTERS if hasattr(new(name), "sampling") and "Forced" not in name}
    with_options = {name for name in with_sampling if name.endswith(" options")}
    assert {*map(kind, with_sampling)} == {*map(kind, with_options)}
    for name in with_sampling:
        assert new(name).sampling is (OPTIONS if name in with_options else None)

        def drafted(own, sampling, name=name):
            drafter = new(name)
            drafter.sampling = own
            return [probs for _, _, probs in drafts(name, drafter, [0, 1], 8, sampling=sampling)]

        samplings = GREEDY, Sampling(top_k=2), Sampling(0.7, repetition_penalty=2.0)
        assert all(drafted(None, some) == drafted(some, some) for some in samplings)
        if "top" not in name and "grows" not in name:
            assert any(drafted(some, some) != drafted(Sampling(), some) for some in samplings)
