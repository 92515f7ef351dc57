"""An option that is accepted has an effect: the drafter is the one that the library's own constructor gives with it."""

from functools import lru_cache

import pytest
from command import report_of

import gpt2np
from gpt2np.frequent import most_frequent
from speculative import (
    BlockDrafter,
    ByPaths,
    EagleDrafter,
    Grown,
    HeadsDrafter,
    ModelDrafter,
    NGramModel,
    PromptLookupDrafter,
    RecyclingDrafter,
    Sampling,
    Shape,
    SpeculativeSampler,
    SuffixDrafter,
    TreeDrafter,
)
from speculative.cli.drafters import ACCEPTED, DRAFTERS
from speculative.cli.models import Models
from speculative.cli.options import Options
from speculative.cli.prompts import tales
from speculative.cli.report import Report
from speculative.drafters.lookahead import LookaheadDrafter
from speculative.drafters.recycling import WEIGHTS as RECYCLED

PROMPT = "the king and the queen and the king had the queen and the"
CORPUS = "the queen and the king had a garden, and the garden had a rose. " * 3
WIDTHS, BEST = Shape.widths(2, 1), Shape.best(4, ACCEPTED, 3)
target, draft = (lambda: gpt2np.load("tiny-target")[0]), (lambda: gpt2np.load("tiny-draft")[0])


def counted(text, n=3):
    tokens = gpt2np.load("tiny-target")[1].encode(text)
    return ByPaths(NGramModel.from_tokens(tokens, 2048, n))


def drawing(name, n=2, frequent=0):
    """(target, what makes a chain, what makes a tree) of a drafter that draws from a model."""
    if name in ("eagle", "block"):
        drafter, load = {"eagle": (EagleDrafter, "load_eagle"), "block": (BlockDrafter, "load_block")}[name]
        params = getattr(gpt2np, load)("tiny-target")
        make = lambda *shape, **how: drafter(target(), params, *shape, n_frequent=frequent, **how)  # noqa: E731
        return target(), make, make
    whole = gpt2np.EarlyExit(target(), n) if name == "early_exit" else target()
    model = {"model": draft, "ngram": lambda: counted(tales()[0]), "early_exit": lambda: whole.early_exit}[name]()
    return whole, lambda **how: ModelDrafter(model, **how), lambda shape, **how: TreeDrafter(model, shape, **how)


def chain(name, temperature=1, threshold=0.0, **how):
    own_target, make, _ = drawing(name, **how)
    return own_target, make(sampling=Sampling(temperature), threshold=threshold)


def tree(name, shape, siblings="without"):
    own_target, _, make = drawing(name)
    return own_target, make(shape, siblings=siblings, sampling=Sampling(1))


def heads(shape):
    """Of Shape, or of a number of nodes."""
    found = gpt2np.load_heads("tiny-target")
    shape = Shape.best(shape, HeadsDrafter(target(), found).weights(), 3) if type(shape) is int else shape
    return target(), HeadsDrafter(target(), found, shape)


def encoded(text):
    return gpt2np.load("tiny-target")[1].encode(text)


def of_frequent(text):
    tokens = most_frequent(encoded(text), 50, 2048)
    return target(), ModelDrafter(gpt2np.FrequentTokens(draft(), tokens), sampling=Sampling(1))


CASES = {  # (drafter, option) -> [(options, () -> (target, drafter))]
    ("model", "draft_model_size"): [
        ({"draft_model_size": "tiny-target"}, lambda: (target(), ModelDrafter(target(), sampling=Sampling(1))))
    ],
    ("model", "frequent"): [({"frequent": 50}, lambda: of_frequent(tales()[0]))],
    ("model", "corpus"): [({"frequent": 50, "corpus": True}, lambda: of_frequent(CORPUS))],
    ("ngram", "corpus"): [({"corpus": True}, lambda: (target(), ModelDrafter(counted(CORPUS), sampling=Sampling(1))))],
    ("ngram", "n_max"): [
        ({"n_max": 2}, lambda: (target(), ModelDrafter(counted(tales()[0], 2), sampling=Sampling(1))))
    ],
    ("prompt_lookup", "n_max"): [({"n_max": 1}, lambda: (target(), PromptLookupDrafter(2048, 1)))],
    ("suffix", "corpus"): [({"corpus": True}, lambda: (target(), SuffixDrafter(2048, encoded(CORPUS))))],
    ("suffix", "tree"): [({"tree": 5}, lambda: (target(), SuffixDrafter(2048, [], n_nodes=5, floor=0.05)))],
    ("recycling", "tree"): [
        ({"tree": 5}, lambda: (target(), RecyclingDrafter(2048, Shape.best(5, RECYCLED, 3)))),
        ({"tree": WIDTHS}, lambda: (target(), RecyclingDrafter(2048, WIDTHS))),
    ],
    ("heads", "tree"): [({"tree": 5}, lambda: heads(5)), ({"tree": WIDTHS}, lambda: heads(WIDTHS))],
    ("early_exit", "exit_layer"): [({"exit_layer": 1}, lambda: chain("early_exit", n=1))],
    ("eagle", "frequent"): [({"frequent": 50}, lambda: chain("eagle", frequent=50))],
    ("block", "frequent"): [({"frequent": 50}, lambda: chain("block", frequent=50))],
    ("lookahead", "K"): [({"K": K}, lambda W=W, N=N: (target(), LookaheadDrafter(2048, W, N)))
                         for K, W, N in ((1, 1, 2), (7, 5, 4), (20, 5, 4))],
}  # fmt: skip
for name in ("model", "ngram", "early_exit", "eagle", "block"):
    CASES |= {
        (name, "draft_temperature"): [({"draft_temperature": 0}, lambda name=name: chain(name, 0))],
        (name, "K"): [({"K": "confidence"}, lambda name=name: chain(name, threshold=0.4))],
        (name, "tree"): [({"tree": 4}, lambda name=name: tree(name, BEST)),
                         ({"tree": WIDTHS}, lambda name=name: tree(name, WIDTHS))],
        (name, "siblings"): [({"siblings": "top", "tree": 4}, lambda name=name: tree(name, Grown(4), "top")),
                             ({"siblings": "drawn", "tree": WIDTHS}, lambda name=name: tree(name, WIDTHS, "drawn"))],
    }  # fmt: skip


def built(name, options):
    options = Options(drafter=name, temperature=1, **options)
    return DRAFTERS[name].build(options, Models(options, Report(False, "", {})))[:2]


def drafts(own_target, drafter, K=3):
    """What it drafts in some rounds, with its rows."""
    sampler = SpeculativeSampler(own_target, drafter, K=K if type(K) is int else 16)
    rounds = sampler.generate(encoded(PROMPT), 10, 1, keep_probs=True).rounds
    return [[r.drafted.tolist(), r.draft.parents.tolist(), r.draft_probs.round(4).tolist()] for r in rounds]


as_usual = lru_cache(lambda name: drafts(*built(name, {})))


@pytest.mark.parametrize(("name", "option"), CASES)
def test_an_option_builds_what_the_constructor_gives(name, option, tmp_path):
    (tmp_path / "corpus").write_text(CORPUS, encoding="utf-8")
    for given, right in CASES[name, option]:
        given = given | ({"corpus": str(tmp_path / "corpus")} if "corpus" in given else {})
        K = given.get("K", 3)
        found = drafts(*built(name, given), K)
        assert found == drafts(*right(), K) and found != as_usual(name)
        if option == "siblings":
            assert found != drafts(*built(name, given | {"siblings": "without"}))


def test_every_option_that_a_drafter_takes_is_in_the_table():
    """How a draft with another tokenizer drafts is in test_other_tokenizers.py."""
    taken = {(name, option) for name, kind in DRAFTERS.items() for option in kind.options}
    taken |= {(name, "tree") for name, kind in DRAFTERS.items() if kind.trees}
    assert taken - {("model", "draft_tokenizer")} <= CASES.keys()


def test_options_of_the_sampling_change_the_text():
    """Of top_k 1, to the text of temperature 0."""
    few = ("--n_tokens_to_generate=12", "--target_model_size=tiny-draft", "--drafter=prompt_lookup")
    words = ["", "--seed=1", "--top_k=1", "--top_p=0.5", "--min_p=0.3", "--repetition_penalty=1.8"]
    words = [[word] * bool(word) for word in words]
    found = [report_of("--temperature=1", *word, *few) for word in [*words, []]]
    for text in ("autoregressive", "speculative"):
        tokens = [tuple(data[text]["tokens"]) for data in found]
        assert len({*tokens}) == 6 and tokens[0] == tokens[-1]
    assert found[2]["autoregressive"]["tokens"] == report_of(*few)["speculative"]["tokens"]
