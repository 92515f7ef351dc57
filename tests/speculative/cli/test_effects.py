"""An option that is accepted has an effect: the drafter is the one that the library's own constructor gives with it."""

from functools import lru_cache, partial
from pathlib import Path

import pytest

import gpt2np
import speculative
from speculative.cli.commands import generate
from speculative.cli.drafters import ACCEPTED, DRAFTERS
from speculative.cli.models import Models
from speculative.cli.prompts import tales
from speculative.cli.settings import checked
from speculative.cli.words import read
from speculative.drafters.lookahead import LookaheadDrafter
from speculative.drafters.recycling import WEIGHTS as RECYCLED

PROMPT = "the king and the queen and the king had the queen and the"
CORPUS = "the queen and the king had a garden, and the garden had a rose. " * 3
TALES, WIDTHS, BEST = tales()[0], speculative.Shape.widths(2, 1), speculative.Shape.best(4, ACCEPTED, 3)
target, draft = (lambda: gpt2np.load("tiny-target")[0]), (lambda: gpt2np.load("tiny-draft")[0])


def encoded(text):
    return gpt2np.load("tiny-target")[1].encode(text)


def on_target(make, *arguments, **how):
    """(target, drafter) of a drafter that needs no part of the target."""
    return target(), make(*arguments, **how)


def drawing(model):
    """(target, drafter) of a drafter that draws from this model."""
    return target(), speculative.ModelDrafter(model, sampling=speculative.Sampling(1))


def counted(text, n=3):
    return speculative.ByPaths(speculative.NGramModel.from_tokens(encoded(text), 2048, n))


def chain(name, shape=None, n=1, frequent=0, **how):
    """(target, drafter) of a drafter of chains, or with a shape of trees, at temperature 1."""
    how = {"sampling": speculative.Sampling(1)} | how
    if name in ("eagle", "parallel"):
        makes = {
            "eagle": (speculative.EagleDrafter, "load_eagle"),
            "parallel": (speculative.ParallelDrafter, "load_parallel"),
        }
        (drafter, load), shapes = makes[name], [] if shape is None else [shape]
        block = getattr(gpt2np, load)("tiny-target")
        return target(), drafter(target(), block, *shapes, n_frequent=frequent, **how)
    whole = gpt2np.EarlyExit(target(), n) if name == "early_exit" else target()
    model = {"model": draft, "ngram": lambda: counted(TALES), "early_exit": lambda: whole.early_exit}[name]()
    if shape is None:
        return whole, speculative.ModelDrafter(model, **how)
    return whole, speculative.TreeDrafter(model, shape, **how)


def heads(find_shape):
    found = gpt2np.load_heads("tiny-target")
    return target(), speculative.HeadsDrafter(
        target(), found, find_shape(speculative.HeadsDrafter(target(), found).weights())
    )


CASES = {  # drafter and options, the last of which has the effect -> () -> (target, drafter)
    "model draft_model_size=tiny-target": lambda: drawing(target()),
    "ngram corpus=corpus": lambda: drawing(counted(CORPUS)),
    "ngram n_max=2": lambda: drawing(counted(TALES, 2)),
    "prompt_lookup n_max=1": lambda: on_target(speculative.PromptLookupDrafter, 2048, 1),
    "prompt_lookup n_min=1": lambda: on_target(speculative.PromptLookupDrafter, 2048, n_min=1),
    "suffix n_min=1": lambda: on_target(speculative.SuffixDrafter, 2048, [], n_min=1),
    "suffix n_min=1 corpus=corpus": lambda: on_target(speculative.SuffixDrafter, 2048, encoded(CORPUS), n_min=1),
    "suffix tree=5": lambda: on_target(speculative.SuffixDrafter, 2048, [], n_nodes=5, floor=0.05),
    "recycling tree=5": lambda: on_target(speculative.RecyclingDrafter, 2048, speculative.Shape.best(5, RECYCLED, 3)),
    "recycling tree=2x1": lambda: on_target(speculative.RecyclingDrafter, 2048, WIDTHS),
    "heads tree=5": lambda: heads(lambda weights: speculative.Shape.best(5, weights, 3)),
    "heads tree=2x1": lambda: heads(lambda weights: WIDTHS),
    "early_exit exit_layer=1": lambda: chain("early_exit"),
    "eagle frequent=50": lambda: chain("eagle", frequent=50),
    "parallel frequent=50": lambda: chain("parallel", frequent=50),
    "lookahead K=1": lambda: on_target(LookaheadDrafter, 2048, 1, 2),
    "lookahead K=7": lambda: on_target(LookaheadDrafter, 2048, 5, 4),
    "lookahead K=20": lambda: on_target(LookaheadDrafter, 2048, 5, 4),
}
for name in ("model", "ngram", "early_exit", "eagle", "parallel"):
    usual = partial(chain, name, n=2)
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


@lru_cache
def drafts_with(name, *words):
    """(the same with these options of `generate`, K)."""
    texts = dict(word.split("=") for word in words) | {"drafter": name, "temperature": "1"}
    options = checked(read(generate, "generate", (), texts))
    return drafts(*DRAFTERS[name].build(options, Models(options))[:2], options.K), options.K


@pytest.mark.parametrize("case", CASES)
def test_an_option_builds_what_the_constructor_gives(case, request):
    if case.startswith("suffix"):  # it finds something to copy in a text that makes sense
        request.getfixturevalue("whole_models")
    Path("corpus").write_text(CORPUS, encoding="utf-8")
    found, K = drafts_with(*case.split())
    assert found == drafts(*CASES[case](), K) and found != drafts_with(*case.split()[:-1])[0]


def test_every_option_that_a_drafter_takes_is_in_the_table():
    """How a draft with another tokenizer drafts is in test_other_tokenizers.py."""
    taken = {(name, option) for name, kind in DRAFTERS.items() for option in kind.options}
    taken |= {(name, "tree") for name, kind in DRAFTERS.items() if kind.trees}
    assert taken - {("model", "draft_tokenizer")} <= {
        (case.split()[0], case.split()[-1].partition("=")[0]) for case in CASES
    }
