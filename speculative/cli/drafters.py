"""The values of --drafter, --verifier and --K, and the functions that build drafters; also --tree for drafters.

To add a drafter or a verifier, write its file and an entry in DRAFTERS or RULES below; a word for --K is an entry in
LENGTHS. Options, help, refusals and tables follow from the entry. A drafter's entry names a function (options, models)
-> (target, drafter, about). It returns the target or a view with the same logits, the drafter, and a dict with the
drafter's "name" and a draft model's "parameters".
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

import gpt2np
import speculative
from speculative import Draft, Grown, Shape
from speculative.drafters.recycling import WEIGHTS as RECYCLED
from speculative.interfaces import exactness_of

from .brought import graded_drafter, graded_verifier, in_brief
from .files import read_text
from .models import AS_SMALL, named, no_smaller
from .prompts import tales

TOKENIZERS = ("auto", "shared", "text")
ACCEPTED = (0.66, 0.17, 0.06, 0.03, 0.02, 0.01)  # roughly how often a child of each rank is accepted with a draft model


@dataclass(frozen=True)
class Entry:
    """A value of --drafter, and all that it may be combined with: settings.py refuses the rest."""

    build: Callable  # (Options, Models) -> (target, drafter, about)
    help: str  # the source of its draft tokens
    options: tuple = ()  # the options that it uses ...
    always: tuple = ("K", "verifier")  # ... and those of all drafters but one
    lengths: tuple = ("auto", "heuristic")  # the words that it takes for --K
    trees: bool = False  # whether it drafts trees with --tree
    branches: bool = False  # whether it drafts trees even without --tree
    hidden: bool = False  # whether it works inside the target, on its hidden states, and so with one --engine alone
    check: Callable = lambda options: None  # ValueError if something else is missing


@dataclass(frozen=True)
class Rule:
    """A value of --verifier."""

    verifier: Callable
    help: str
    one_text: bool = False  # whether a seed gives the same text with and without a draft, at any temperature
    checked: str = ""  # the exactness, if the verifier does not declare it

    @property
    def exactness(self):
        return self.checked or exactness_of(self.verifier)

    @property
    def noise(self):
        """The function seed -> random source for this verifier."""
        return speculative.Gumbel if self.one_text else np.random.default_rng


@dataclass(frozen=True)
class Length:
    """A value of --K."""

    help: str
    K: int | Callable = 16  # the sampler's K: a number, or a function of the rounds so far
    from_costs: Callable | None = None  # instead of K: (c, v), measured at the start -> the sampler's K
    threshold: float = 0.0  # a less probable token ends the draft
    trees: bool = False  # whether it is for trees as well

    @property
    def depth(self):
        """The depth limit of a tree."""
        return self.K if isinstance(self.K, int) else 16


# ------------------------------------------------------------------------------------------------ drafters from models


def drawing(options, model):
    """A drafter of chains or trees that samples from a language model."""
    return chain_or_tree(options, partial(speculative.ModelDrafter, model), partial(speculative.TreeDrafter, model))


def chain_or_tree(options, chain, tree):
    """chain(sampling=, threshold=), or tree(shape, siblings=, sampling=) with --tree."""
    sampling = options.sampling
    if options.draft_temperature is not None:
        sampling = replace(sampling, temperature=options.draft_temperature)
    if type(options.tree) is int and options.tree and (sampling.temperature == 0 or options.siblings == "top"):
        return tree(Grown(options.tree), siblings="top", sampling=sampling)
    if shape := shape_of(options, ACCEPTED):
        return tree(shape, siblings=options.siblings, sampling=sampling)
    return chain(sampling=sampling, threshold=length_of(options).threshold)


def shape_of(options, weights):
    """The Shape of --tree; None for a chain."""
    if options.tree == 0:
        return None
    return Shape.best(options.tree, weights, length_of(options).depth) if type(options.tree) is int else options.tree


def draft_model(options, models):
    (target, of_target), (name, draft, tokenizer), way = models.target(), models.draft(options), options.draft_tokenizer
    about = named(name, draft)
    if way != "text" and draft.n_vocab == target.n_vocab and tokenizer.vocabulary == of_target.vocabulary:
        if way == "shared":
            raise ValueError(f"--draft_tokenizer has no effect, as {name} has the target's tokenizer: leave it out")
        return target, drawing(options, draft), about
    make = partial(speculative.SharedTokensModel, draft, of_target, tokenizer, target.n_vocab)
    shared = models.once(f"shared {name}", make)
    through_text = way == "text" or (way == "auto" and options.temperature == 0 and options.tree == 0)
    n = f"{shared.shared.shape[1]} of its {tokenizer.n_vocab} tokens"
    way = "through the text" if through_text else "from the shared tokens"
    about["tokenizer"] = f"different tokenizer: {n} are shared with the target; drafts {way}"
    if not through_text:
        return target, drawing(options, shared), about
    sampling = replace(options.sampling, temperature=options.draft_temperature or 0, processors=())
    inner = speculative.ModelDrafter(draft, sampling=sampling, threshold=length_of(options).threshold)
    sizes = {"n_vocab": target.n_vocab, "n_ctx": draft.n_ctx}
    return target, speculative.TextDrafter(inner, of_target, tokenizer, **sizes), about


def ngram(options, models):
    (target, tokenizer), text = models.target(), read_text(options.corpus) if options.corpus else tales()[0]

    def count():
        try:
            tokens = tokenizer.encode(text)
            return speculative.NGramModel.from_tokens(tokens, target.n_vocab, options.n_max)
        except ValueError as error:
            raise ValueError(f"--n_max and --corpus: {error}") from None

    counted = models.once(f"n-grams {options.n_max} {options.corpus}", count)
    return target, drawing(options, speculative.ByPaths(counted)), {"name": f"n-grams up to {options.n_max} tokens"}


def early_exit(options, models):
    target, n = models.target()[0], options.exit_layer
    try:
        whole = models.once(f"the first {n} layers", lambda: gpt2np.EarlyExit(target, n))
    except ValueError as error:
        raise ValueError(f"--exit_layer: {error}") from None
    name = f"the first {n} of the target's {target.hparams.n_layer} layers"
    return whole, drawing(options, whole.early_exit), {"name": name}


def eagle(options, models):
    weights = trained(gpt2np.load_eagle, options, models)
    return on_states(options, models, speculative.EagleDrafter, weights, "a block on the target's hidden states")


def parallel(options, models):
    weights = trained(gpt2np.load_parallel, options, models)
    name = "a parallel block on the target's hidden states"
    return on_states(options, models, speculative.ParallelDrafter, weights, name)


def on_states(options, models, drafter, weights, name):
    """A drafter of chains or trees from a block on the target's hidden states."""
    target = models.target()[0]
    if options.frequent > target.n_vocab:
        raise ValueError(f"--frequent: the target has {target.n_vocab} tokens, got {options.frequent}")
    make = partial(drafter, target, weights, n_frequent=options.frequent)
    return target, chain_or_tree(options, make, make), {"name": name, "parameters": weights.n_params}


def heads(options, models):
    target, weights = models.target()[0], trained(gpt2np.load_heads, options, models)
    drafter = speculative.HeadsDrafter(target, weights)
    if shape := shape_of(options, drafter.weights()):
        drafter = speculative.HeadsDrafter(target, weights, shape)
    about = {"name": f"{weights.n_heads} heads on the target's last hidden state", "parameters": weights.n_params}
    return target, drafter, about


def trained(load, options, models):
    """The heads or the block trained for the target."""
    try:
        return models.once(f"--drafter {options.drafter}", lambda: load(options.target_model_size))
    except ValueError as error:
        raise ValueError(f"--drafter {options.drafter}: {error}") from None


# ------------------------------------------------------------------------------------------------ others


def prompt_lookup(options, models):
    (target, tokenizer), text = models.target(), read_text(options.corpus) if options.corpus else ""
    corpus = models.once(f"tokens {options.corpus}", lambda: tokenizer.encode(text))
    drafter = speculative.PromptLookupDrafter(target.n_vocab, options.n_max, options.n_min, corpus=corpus)
    return target, drafter, {"name": f"prompt lookup of {drafter.n_min} to {drafter.n_max} tokens"}


def forced(options, models):
    target, tokenizer = models.target()
    drafter = speculative.ForcedDrafter(tokenizer.encode, target.n_vocab)
    return target, drafter, {"name": "the text that --grammar forces"}


def recycling(options, models):
    target = models.target()[0]
    drafter = speculative.RecyclingDrafter(target.n_vocab, shape_of(options, RECYCLED))
    return target, drafter, {"name": "tokens recycled from the target's own rows"}


def of_ones_own(options, models):
    """The drafter of --drafter FILE.py:NAME."""
    (target, tokenizer), name = models.target(), options.drafter
    try:
        drafter = graded_drafter(name)(target, tokenizer)
    except Exception as error:
        raise ValueError(f"{name}: a drafter is made by {name}(target, tokenizer), {in_brief(error)}") from None
    if not callable(getattr(drafter, "propose", None)):
        raise ValueError(f"{name}: a drafter has a method propose(tokens, K, rng); yours is {drafter!r:.60}")
    return target, drafter, {"name": name}


class Nothing:
    """A drafter that proposes no token."""

    def __init__(self, n_vocab):
        self.draft = Draft(np.empty(0, np.int64), np.empty((0, n_vocab)))

    def propose(self, tokens, K, rng):
        return self.draft


def has_a_draft_model(options):
    if options.draft_tokenizer == "text" and options.tree:
        raise ValueError("--tree is for --draft_tokenizer auto or shared, not text")
    if options.draft_model_size:
        return
    if options.engine != "numpy":
        raise ValueError(
            f"--engine {options.engine} knows no smaller model of the family: name one with --draft_model_size, or "
            "draft without a model, for example with --drafter prompt_lookup"
        )
    if options.target_model_size in AS_SMALL:
        raise ValueError(no_smaller(options.target_model_size))


def has_a_grammar(options):
    if not options.grammar:
        raise ValueError("--drafter forced drafts nothing without --grammar")


def none(options, models):
    target = models.target()[0]
    return target, Nothing(target.n_vocab), {"name": "none"}


# ------------------------------------------------------------------------------------------------ the entries


OF_A_MODEL = {"trees": "any", "lengths": ("auto", "heuristic", "confidence")}
DRAWN = ("tree", "siblings", "draft_temperature")
# fmt: off
DRAFTERS = {
    "model": Entry(draft_model, "a smaller model, --draft_model_size",
        ("draft_model_size", "draft_tokenizer", *DRAWN), **OF_A_MODEL, check=has_a_draft_model),
    "ngram": Entry(ngram, "counts of a text, --corpus", ("corpus", "n_max", *DRAWN), **OF_A_MODEL),
    "prompt_lookup": Entry(prompt_lookup, "copies of the text so far and of --corpus", ("corpus", "n_max", "n_min")),
    "forced": Entry(forced, "the text that --grammar forces; drafts nothing without it", check=has_a_grammar),
    "recycling": Entry(recycling, "the target's logits after the same tokens earlier", ("tree",), trees=True),
    "early_exit": Entry(early_exit, "the target's own first layers", ("exit_layer", *DRAWN), **OF_A_MODEL, hidden=True),
    "heads": Entry(heads, "a tree from heads on the target's last hidden state (bundled for tiny-target)",
        ("tree",), trees=True, branches=True, hidden=True),
    "eagle": Entry(eagle, "a block that continues the target's hidden states (bundled for tiny-target)",
        ("frequent", *DRAWN), **OF_A_MODEL, hidden=True),
    "parallel": Entry(parallel, "all tokens in one pass, from the target's hidden states (bundled for tiny-target)",
        ("frequent", *DRAWN), **OF_A_MODEL, hidden=True),
    "none": Entry(none, "nothing: the target alone", always=()),
}
RULES = {
    "rejection": Rule(speculative.rejection, "rejection sampling: accepts with probability min(1, p / q)"),
    "block": Rule(speculative.block, "decides on the whole draft; accepts at least as much as rejection on average"),
    "traversal": Rule(speculative.traversal, "block for trees; accepts at least as much as rejection on average"),
    "exact_match": Rule(speculative.exact_match, "accepts a token that equals the target's own sample"),
    "gumbel": Rule(speculative.exact_match, "exact_match with common random numbers: one seed, one text, draft or not",
        one_text=True),
    "lenient": Rule(speculative.Lenient(), "LOSSY: rejection with q scaled down"),
    "typical": Rule(speculative.Typical(), "LOSSY: accepts every token that is probable enough for the target"),
}
LENGTHS = {
    "auto": Length("chosen from costs measured at the start and the acceptance so far, possibly 0; auto depends on "
        "timing, so one seed may give different texts", from_costs=speculative.CostModel),
    "heuristic": Length("two more after a fully accepted draft, one less otherwise",
        K=speculative.heuristic, trees=True),
    "confidence": Length("stop after the first low-confidence token", threshold=0.4),
}
# fmt: on


def kind_of(options):
    return DRAFTERS.get(options.drafter) or Entry(of_ones_own, options.drafter)


def length_of(options):
    return LENGTHS.get(options.K) or Length(f"{options.K} tokens", options.K, trees=True)


def rule_of(options):
    if options.verifier in RULES:
        return RULES[options.verifier]
    verifier, exactness = graded_verifier(options.verifier)
    return Rule(verifier, options.verifier, checked=exactness)
