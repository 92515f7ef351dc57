"""An option that is accepted has an effect: the drafter is the one that the library's own constructor gives with it."""

from functools import partial
from pathlib import Path

import pytest

import gpt2np
import speculative
from speculative.cli.commands import generate
from speculative.cli.drafters import ACCEPTED, DRAFTERS
from speculative.cli.models import Models
from speculative.cli.prompts import tales
from speculative.cli.settings import settings_of
from speculative.cli.words import read
from speculative.drafters.recycling import WEIGHTS as RECYCLED

PROMPT = "the king and the queen and the king had the queen and the"
CORPUS = "the queen and the king had a garden, and the garden had a rose. " * 3
TALES, WIDTHS, BEST = tales()[0], speculative.Shape.widths(2, 1), speculative.Shape.best(4, ACCEPTED, 3)
target, draft = (lambda: gpt2np.load("tiny-target")[0]), (lambda: gpt2np.load("tiny-draft")[0])


def encoded(text):
    return gpt2np.load("tiny-target")[1].encode(text)


def counted(text, n=3):
    return speculative.ByPaths(speculative.NGramModel.from_tokens(encoded(text), 2048, n))


def exited(n):
    return gpt2np.EarlyExit(target(), n).early_exit


def drawn(model, *shape, sampling=speculative.Sampling(1), **how):
    """A drafter of chains, or with a shape of trees, from a model."""
    drafter = speculative.TreeDrafter if shape else speculative.ModelDrafter
    return drafter(model, *shape, sampling=sampling, **how)


def from_states(kind, *shape, sampling=speculative.Sampling(1), **how):
    """The same from a block on the target's hidden states."""
    load, drafter = {
        "eagle": (gpt2np.load_eagle, speculative.EagleDrafter),
        "parallel": (gpt2np.load_parallel, speculative.ParallelDrafter),
    }[kind]
    return drafter(target(), load("tiny-target"), *shape, sampling=sampling, **how)


def heads(shape_of):
    found = gpt2np.load_heads("tiny-target")
    shape = shape_of(speculative.HeadsDrafter(target(), found).weights())
    return speculative.HeadsDrafter(target(), found, shape)


CASES = {  # drafter and options, the last of which has the effect -> the drafter
    "model draft_model_size=tiny-target": lambda: drawn(target()),
    "ngram corpus=corpus": lambda: drawn(counted(CORPUS)),
    "ngram n_max=2": lambda: drawn(counted(TALES, 2)),
    "prompt_lookup n_max=1": lambda: speculative.PromptLookupDrafter(2048, 1),
    "prompt_lookup n_min=1": lambda: speculative.PromptLookupDrafter(2048, n_min=1),
    "prompt_lookup n_min=1 corpus=corpus": lambda: speculative.PromptLookupDrafter(
        2048, n_min=1, corpus=encoded(CORPUS)
    ),
    "recycling tree=5": lambda: speculative.RecyclingDrafter(2048, speculative.Shape.best(5, RECYCLED, 3)),
    "recycling tree=2x1": lambda: speculative.RecyclingDrafter(2048, WIDTHS),
    "heads tree=5": lambda: heads(lambda weights: speculative.Shape.best(5, weights, 3)),
    "heads tree=2x1": lambda: heads(lambda weights: WIDTHS),
    "early_exit exit_layer=1": lambda: drawn(exited(1)),
    "eagle frequent=50": lambda: from_states("eagle", n_frequent=50),
    "parallel frequent=50": lambda: from_states("parallel", n_frequent=50),
}
for name, usual in {
    "model": lambda *shape, **how: drawn(draft(), *shape, **how),
    "ngram": lambda *shape, **how: drawn(counted(TALES), *shape, **how),
    "early_exit": lambda *shape, **how: drawn(exited(2), *shape, **how),
    "eagle": partial(from_states, "eagle"),
    "parallel": partial(from_states, "parallel"),
}.items():
    CASES |= {
        f"{name} draft_temperature=0": partial(usual, sampling=speculative.Sampling(0)),
        f"{name} K=confidence": partial(usual, threshold=0.4),
        f"{name} tree=4": partial(usual, BEST, siblings="without"),
        f"{name} tree=2x1": partial(usual, WIDTHS, siblings="without"),
        f"{name} tree=4 siblings=top": partial(usual, speculative.Grown(4), siblings="top"),
        f"{name} tree=2x1 siblings=drawn": partial(usual, WIDTHS, siblings="drawn"),
    }


def drafts(own_target, drafter, K):
    """What it drafts in some rounds, with its rows."""
    sampler = speculative.SpeculativeSampler(own_target, drafter, K=K if type(K) is int else 16)
    rounds = sampler.generate(encoded(PROMPT), 10, 1, keep_probs=True).rounds
    return [[r.drafted.tolist(), r.draft.parents.tolist(), r.draft_probs.round(4).tolist()] for r in rounds]


def built(name, *words):
    """(target, drafter, K) with these options of `generate`."""
    texts = dict(word.split("=") for word in words) | {"drafter": name, "temperature": "1"}
    [(options, _)], _ = settings_of(read(generate, "generate", (), texts))
    return *DRAFTERS[name].build(options, Models(options))[:2], options.K


@pytest.mark.parametrize("case", CASES)
def test_an_option_builds_what_the_constructor_gives(case, request):
    if "corpus=" in case:  # it finds something to copy in a text that makes sense
        request.getfixturevalue("whole_models")
    Path("corpus").write_text(CORPUS, encoding="utf-8")
    own_target, drafter, K = built(*case.split())
    found = drafts(own_target, drafter, K)
    assert found == drafts(own_target, CASES[case](), K) and found != drafts(*built(*case.split()[:-1]))


def test_every_option_that_a_drafter_takes_is_in_the_table():
    """How a draft with another tokenizer drafts is in test_other_tokenizers.py."""
    taken = {(name, option) for name, kind in DRAFTERS.items() for option in kind.options}
    taken |= {(name, "tree") for name, kind in DRAFTERS.items() if kind.trees}
    assert taken - {("model", "draft_tokenizer")} <= {
        (case.split()[0], case.split()[-1].partition("=")[0]) for case in CASES
    }
