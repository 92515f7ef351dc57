"""The drafters and the verifiers of the command line: what --drafter and --verifier can be, and how each is built.

To add one, write its file and an entry in DRAFTERS or RULES below: options, help and tables follow from it. A drafter's
entry names a function from a `Context` to a `Setting`: it loads what the drafter needs, a model or counts, once;
`Setting.drafter(sampling)` then makes a drafter for any sampling.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

import gpt2np
import speculative
from gpt2np.eagle import eagle_file
from gpt2np.heads import heads_file
from speculative import Grown, Shape
from speculative.drafters.jacobi import JacobiDrafter
from speculative.drafters.lookahead import LookaheadDrafter
from speculative.drafters.recycling import WEIGHTS as RECYCLED
from speculative.interfaces import exactness_of, takes_trees
from speculative.measuring.best_shape import acceptance_together, added, best_shape

from .files import read_text, replacing
from .inputs import check_vocabularies, draft_name, load, tales

HEADS = 3  # nodes of the tree of `heads` without --tree; more cost more time than they save with the bundled target
THRESHOLD = 0.4  # of --K confidence
MOST_CONFIDENT = 16  # tokens, of --K confidence
ACCEPTED = (0.66, 0.17, 0.06, 0.03, 0.02, 0.01)  # about how often a model's child of each rank is the accepted one
MOST_NODES = 16  # of --tree auto
N_PLACES = 32  # of the target's text, for the acceptance by rank of --tree auto


@dataclass(frozen=True)
class Context:
    """The ingredients of a drafter."""

    options: object  # Options
    saved: object  # Saved: records the files read
    target: speculative.LanguageModel
    tokenizer: gpt2np.Tokenizer
    timed: Callable = lambda model, load_seconds: model  # is given each draft model, and may time its calls


@dataclass(frozen=True)
class Setting:
    """A target and a drafter for it."""

    target: speculative.LanguageModel  # the context's own, or another with the same logits
    drafter: Callable  # (Sampling) -> Drafter
    about: dict  # for reports: "name", and "parameters" for a draft model
    tree: Callable = None  # (Sampling, Shape, ...) -> Drafter; None where --tree cannot give a shape


@dataclass(frozen=True)
class DrafterKind:
    """A value of --drafter."""

    name: str
    build: Callable  # (Context) -> Setting
    help: str  # where its draft tokens come from
    options: tuple = ()  # the options that it uses, of those that not all drafters use
    draws: bool = True  # from a model's probabilities, which calibrate and --K confidence need
    of_texts: bool = True  # ... along a given text, which calibrate needs: they do not depend on where a draft begins
    trees: str = ""  # what --tree may be: "any", "grown" (a number of nodes), or nothing, for which "" stands
    branches: bool = False  # it drafts trees even without --tree
    variants: Callable = None  # (Context) -> dict name -> Setting: its rows in alpha_table, if not one
    needs: str = ""  # something a target may lack; a table of all drafters then leaves this kind out
    suits: Callable = lambda context: True  # whether the target has it

    def rows(self, context):
        """dict name -> Setting: the rows of this kind in alpha_table; none for trees, whose alpha is not defined."""
        if self.variants or self.branches:
            return self.variants(context) if self.variants else {}
        return {self.name.replace("_", " "): self.build(context)}


@dataclass(frozen=True)
class Rule:
    """A value of --verifier: a verifier, and the random source that it is used with."""

    name: str
    verifier: Callable
    help: str
    noise: Callable = np.random.default_rng  # seed -> `rng`

    @property
    def exactness(self):
        return exactness_of(self.verifier)

    @property
    def trees(self):
        """Whether it takes drafts that branch."""
        return takes_trees(self.verifier)

    @property
    def one_text(self):
        """Whether one seed gives one text, with and without a draft, at any temperature."""
        return self.noise is speculative.Gumbel


# ------------------------------------------------------------------------------------------------ drafters from models


def drawing(context, model, about, load_seconds=0.0, target=None):
    """The `Setting` of a drafter that draws from a language model."""
    model = context.timed(model, load_seconds)
    makers = partial(speculative.ModelDrafter, model), partial(speculative.TreeDrafter, model)
    return chains_and_trees(context, target or context.target, about, *makers)


def chains_and_trees(context, target, about, chains, trees):
    """The `Setting` of chains(sampling=, threshold=), and of trees(shape, siblings=, sampling=) with --tree."""
    options = context.options
    threshold = threshold_of(options)

    def tree(sampling, shape, siblings=options.siblings):
        return trees(shape, siblings=siblings, sampling=options.draft_sampling(sampling))

    def drafter(sampling):
        own = options.draft_sampling(sampling)
        if options.grown_nodes and (options.siblings == "top" or own.temperature == 0):
            return tree(sampling, Grown(options.grown_nodes), "top")
        if shape := options.shape(ACCEPTED):
            return tree(sampling, shape)
        return chains(sampling=own, threshold=threshold)

    return Setting(target, drafter, about, tree)


def threshold_of(options):
    return THRESHOLD if options.K == "confidence" else 0.0


def draft_model(context):
    options, n_vocab, name = context.options, context.target.n_vocab, draft_name(context.options, needed=True)
    draft, tokenizer, seconds = load(name, options, context.saved)
    about = {"name": name, "parameters": draft.n_params}
    same = draft.n_vocab == n_vocab and tokenizer.vocabulary == context.tokenizer.vocabulary
    if same and options.draft_tokenizer == "auto":
        return drawing(context, draft, about, seconds)
    return with_another_tokenizer(context, draft, tokenizer, about, seconds)


def with_another_tokenizer(context, draft, tokenizer, about, load_seconds):
    """The `Setting` of a draft model with a tokenizer of its own: shared tokens, or through the text."""
    options, n_vocab, n_ctx = context.options, context.target.n_vocab, draft.n_ctx
    draft = context.timed(draft, load_seconds)
    shared = speculative.SharedTokensModel(draft, context.tokenizer, tokenizer, n_vocab)
    way = "through the text" if options.through_text(options.sampling) else "from the shared tokens"
    n = f"{shared.shared.shape[1]} of its {tokenizer.n_vocab} tokens"
    about |= {"tokenizer": f"another tokenizer: {n} are shared with the target; drafts {way}"}
    setting = drawing(replace(context, timed=Context.timed), shared, about)

    def drafter(sampling):
        if not options.through_text(sampling):
            return setting.drafter(sampling)
        own = replace(sampling, temperature=options.draft_temperature or 0, processors=())
        inner = speculative.ModelDrafter(draft, sampling=own, threshold=threshold_of(options))
        return speculative.TextDrafter(inner, context.tokenizer, tokenizer, n_vocab=n_vocab, n_ctx=n_ctx)

    return replace(setting, drafter=drafter)


def unless_the_target(context):
    """The draft model by its name, unless it is the target."""
    name = draft_name(context.options)
    return {name: draft_model(context)} if name not in ("", context.options.target_model_size) else {}


def has_draft(context):
    return bool(draft_name(context.options))


def load_draft(context):
    """(draft model, seconds). ValueError if its vocabulary is not the target's."""
    name = draft_name(context.options, needed=True)
    draft, other, seconds = load(name, context.options, context.saved)
    names, sizes = (context.options.target_model_size, name), (context.target.n_vocab, draft.n_vocab)
    check_vocabularies(names, sizes, context.tokenizer.vocabulary == other.vocabulary)
    return draft, seconds


def ngram(context):
    started = perf_counter()
    counted = speculative.ByPaths(ngram_model(context))
    about = {"name": f"n-grams up to {len(counted.model.counts)} tokens"}
    return drawing(context, counted, about, perf_counter() - started)


def ngrams(context):
    """Unigrams, bigrams, ...: the same counts, cut to each length."""
    counts, names = ngram_model(context).counts, {1: "unigram", 2: "bigram", 3: "trigram"}
    cut = {n: speculative.NGramModel(counts[:n], context.target.n_vocab) for n in range(1, len(counts) + 1)}
    return {name: drawing(context, cut[n], {"name": name}) for n in cut for name in [names.get(n, f"{n}-gram")]}


def ngram_model(context):
    """The n-gram model in the file --ngram_table; without the file, counted in --corpus, and saved if it is named."""
    options, target, path = context.options, context.target, Path(context.options.ngram_table)
    if options.ngram_table and path.exists():
        try:
            counted = speculative.NGramModel.load(path)
        except OSError as error:
            raise ValueError(f"--ngram_table: cannot read {path} ({error.strerror}): name another file") from None
        except ValueError as error:
            raise ValueError(f"--ngram_table: {error}") from None
        if counted.n_vocab != target.n_vocab:
            raise ValueError(
                f"--ngram_table: {path} counts {counted.n_vocab} tokens and {options.target_model_size} has "
                f"{target.n_vocab}: count again, with a new name for the table"
            )
        if (n := len(counted.counts)) != options.n_max:
            raise ValueError(
                f"--ngram_table: {path} has n-grams up to {n} tokens, and --n_max is {options.n_max}: give --n_max "
                f"{n}, or name another table"
            )
    else:
        tokens = context.tokenizer.encode(read_text(options.corpus) if options.corpus else tales()[0])
        try:
            counted = speculative.NGramModel.from_tokens(tokens, target.n_vocab, options.n_max)
        except ValueError as error:
            raise ValueError(f"--n_max and --corpus: {error}") from None
        if options.ngram_table:
            with replacing("ngram_table", path) as new:
                counted.save(new)
    if options.ngram_table:
        context.saved.opened("ngram_table", path)
    return counted


def early_exit(context, n=None):
    n, n_layer = n or context.options.exit_layer, context.target.hparams.n_layer
    try:
        whole = gpt2np.EarlyExit(context.target, n)
    except ValueError as error:
        raise ValueError(f"--exit_layer: {error}") from None
    return drawing(context, whole.early_exit, {"name": f"the first {n} of the target's {n_layer} layers"}, target=whole)


def has_layers(context):
    """Whether the target has layers after --exit_layer."""
    return context.options.exit_layer < context.target.hparams.n_layer


def early_exits(context):
    """Exits after --exit_layer layers, after half of the layers, and before the last."""
    n_layer = context.target.hparams.n_layer
    exits = [n for n in sorted({context.options.exit_layer, n_layer // 2, n_layer - 1}) if 1 <= n < n_layer]
    return {f"{n} of {n_layer} layers": early_exit(context, n) for n in exits}


def eagle(context):
    options, name = context.options, context.options.target_model_size
    try:
        path, found = eagle_file(name), gpt2np.load_eagle(name)
    except ValueError as error:
        raise ValueError(f"--drafter eagle: {error}") from None
    context.saved.opened("eagle", path)
    if options.frequent > context.target.n_vocab:
        raise ValueError(f"--frequent: {name} has {context.target.n_vocab} tokens, got {options.frequent}")
    drafter = partial(speculative.EagleDrafter, context.target, found, n_frequent=options.frequent)
    about = {"name": "a block on the target's hidden states", "parameters": found.n_params}
    return chains_and_trees(context, context.target, about, chains=drafter, trees=drafter)


def has_eagle(context):
    return eagle_file(context.options.target_model_size).exists()


# ------------------------------------------------------------------------------------------------ others


def copying(context, drafter, name):
    """The `Setting` of a drafter without a model, the same for any sampling."""
    return Setting(context.target, lambda sampling: drafter, {"name": name})


def prompt_lookup(context):
    n_max = context.options.n_max
    drafter = speculative.PromptLookupDrafter(context.target.n_vocab, n_max)
    return copying(context, drafter, f"prompt lookup of up to {n_max} tokens")


def forced(context):
    drafter = speculative.ForcedDrafter(context.tokenizer.encode, context.target.n_vocab)
    return copying(context, drafter, "what --grammar leaves no choice about")


def suffix(context):
    corpus = context.options.corpus
    tokens = context.tokenizer.encode(read_text(corpus)) if corpus else ()
    grown = {"n_nodes": context.options.grown_nodes, "floor": 0.05} if context.options.tree else {}
    return copying(context, speculative.SuffixDrafter(context.target.n_vocab, tokens, **grown), "suffix automaton")


def jacobi(context):
    n_vocab = context.target.n_vocab
    return Setting(
        context.target, lambda sampling: JacobiDrafter(n_vocab), {"name": "the target's own rows for these positions"}
    )


def lookahead(context):
    """With the largest W of 5 or less and N of 4 or less that fit into K, see `LookaheadDrafter`."""
    n_vocab, K = context.target.n_vocab, context.options.most_levels
    N = min(4, 2 + K // 3)
    W = min(5, K + 2 - N)
    return Setting(
        context.target, lambda sampling: LookaheadDrafter(n_vocab, W, N), {"name": f"a pool of the target's {N}-grams"}
    )


def recycling(context):
    target, options = context.target, context.options

    def tree(sampling, shape):
        return speculative.RecyclingDrafter(target.n_vocab, shape)

    shape = options.shape(RECYCLED) or Shape.chain(max(16, options.most_levels))  # as long as K
    about = {"name": "tokens recycled from the target's own rows"}
    return Setting(target, lambda sampling: tree(sampling, shape), about, tree)


def heads(context):
    name = context.options.target_model_size
    try:
        path, found = heads_file(name), gpt2np.load_heads(name)
    except ValueError as error:
        raise ValueError(f"--drafter heads: {error}") from None
    context.saved.opened("heads", path)
    weights = speculative.HeadsDrafter(context.target, found).weights()

    def tree(sampling, shape):
        return speculative.HeadsDrafter(context.target, found, shape)

    shape = context.options.shape(weights) or Shape.best(HEADS, weights, context.options.most_levels)
    about = {"name": f"{found.n_heads} heads on the target's last hidden state", "parameters": found.n_params}
    return Setting(context.target, lambda sampling: tree(sampling, shape), about, tree)


def has_heads(context):
    return heads_file(context.options.target_model_size).exists()


# ------------------------------------------------------------------------------------------------ the entries


OF_A_MODEL = ("draft_temperature", "siblings")
# fmt: off
DRAFTERS = {kind.name: kind for kind in (
    DrafterKind("model", draft_model, "another model, --draft_model_size",
        options=("draft_model_size", "draft_tokenizer", *OF_A_MODEL), trees="any", variants=unless_the_target,
        needs="a smaller model", suits=has_draft),
    DrafterKind("ngram", ngram, "counts of a text, --corpus",
        options=("corpus", "ngram_table", "n_max", *OF_A_MODEL), trees="any", variants=ngrams),
    DrafterKind("prompt_lookup", prompt_lookup, "copies of the text so far",
        options=("n_max",), draws=False),
    DrafterKind("suffix", suffix, "copies of the text so far and of --corpus",
        options=("corpus",), draws=False, trees="grown"),
    DrafterKind("forced", forced, "what --grammar leaves no choice about; without it, nothing",
        draws=False, variants=lambda context: {}, needs="a --grammar",
        suits=lambda context: bool(context.options.grammar)),
    DrafterKind("recycling", recycling, "the target's logits after the same tokens earlier",
        draws=False, trees="any", variants=lambda context: {}),  # along a given text it says nothing
    DrafterKind("jacobi", jacobi, "the target's last call, at these positions",
        draws=False, variants=lambda context: {}),  # along a given text there is no last call
    DrafterKind("lookahead", lookahead, "a tree of n-grams that the target writes while it verifies",
        draws=False, branches=True),
    DrafterKind("early_exit", early_exit, "the target's own first layers",
        options=("exit_layer", *OF_A_MODEL), trees="any", variants=early_exits,
        needs="layers after those of --exit_layer", suits=has_layers),
    DrafterKind("heads", heads, "a tree from heads on the target's last hidden state (tiny-target has some)",
        draws=False, trees="any", branches=True, needs="heads", suits=has_heads),
    DrafterKind("eagle", eagle, "a block that continues the target's own hidden states (tiny-target has one)",
        options=("frequent", *OF_A_MODEL), trees="any", of_texts=False, needs="EAGLE block", suits=has_eagle,
        variants=lambda context: {"eagle": eagle(context)} if has_eagle(context) else {}),
)}
RULES = {rule.name: rule for rule in (
    Rule("rejection", speculative.rejection, "rejection sampling: accepts with probability min(1, p / q)"),
    Rule("block", speculative.block, "decides on the whole draft at once, on average accepts no less than rejection"),
    Rule("traversal", speculative.traversal, "block for trees, on average accepts no less than rejection"),
    Rule("exact_match", speculative.exact_match, "accepts a token that equals the target's own draw"),
    Rule("gumbel", speculative.exact_match,
        "exact_match on common random numbers: one seed, one text, draft or not", noise=speculative.Gumbel),
    Rule("lenient", speculative.Lenient(), "LOSSY: rejection with the draft's probabilities made smaller"),
    Rule("typical", speculative.Typical(), "LOSSY: accepts every token that is probable enough for the target"),
)}
# fmt: on


def fitting(kinds, context):
    """Of all kinds of drafters, those that suit the target; of some, all."""
    return [kind for kind in kinds if DRAFTERS[kind].suits(context)] if list(kinds) == list(DRAFTERS) else list(kinds)


def drafter_entries(kinds, context):
    """dict kind -> (target, drafter), each drafter with the target that it runs on; of all kinds, those that suit."""
    settings = {kind: DRAFTERS[kind].build(context) for kind in fitting(kinds, context)}
    return {kind: (found.target, found.drafter(context.options.sampling)) for kind, found in settings.items()}


# ------------------------------------------------------------------------------------------------ --K and --tree


def at_once(name, find):
    return find()


def draft_length(options, setting, drafter, tokens, note=at_once):
    """(K or a function that chooses it, the measured costs as a dict or None), for a prompt of these tokens.

    `note` is called with each measurement, and may return an earlier one, see `Saved`.
    """
    if options.K == "heuristic":
        return speculative.Heuristic(), None
    if options.K == "confidence":
        return MOST_CONFIDENT, None
    if options.K == "auto":
        costs = note("costs", lambda: asdict(costs_of(options, setting, drafter, tokens, 8)))
        return speculative.CostModel(costs["c"], costs["v"]), costs
    return options.K, None


def costs_of(options, setting, drafter, tokens, most):
    somewhere = [*tokens, *tokens][: setting.target.n_ctx - most - 1]
    verifier = RULES[options.verifier].verifier
    return speculative.measure_costs(
        setting.target, drafter, somewhere, sampling=options.sampling, verifier=verifier, most=most
    )


def drafter_of(options, setting, tokens, sampling, note=at_once):
    """(drafter, its measured tree as a dict or None), for a prompt of these tokens; `note` as in `draft_length`."""
    if options.tree != "auto":
        return setting.drafter(sampling), None
    found = note("tree", lambda: measured_tree(options, setting, tokens))
    return setting.tree(sampling, Shape(found["parents"], found["ranks"])), found


def measured_tree(options, setting, tokens):
    """The best shape for the acceptance along some text of the target and for the costs, as a dict."""
    sampling, n_ctx, rule = options.sampling, setting.target.n_ctx, RULES[options.verifier]
    start = tokens[: max(1, n_ctx - N_PLACES - 1)]
    text = speculative.AutoregressiveSampler(setting.target, sampling=sampling).generate(start, N_PLACES, options.seed)
    text = [*start, *text.tokens.tolist()]
    make = partial(setting.tree, sampling)
    together = acceptance_together(
        lambda shape: (setting.target, make(shape)),
        8,
        text,
        N_PLACES,
        sampling,
        rule.noise(options.seed),
        rule.verifier,
    )
    chain = make(Shape.chain(MOST_NODES))
    costs = costs_of(options, setting, chain, tokens, MOST_NODES)
    levels = min(options.most_levels, getattr(chain, "most_levels", MOST_NODES))
    w = added(together)
    shape, speedup = best_shape(w, costs.c, costs.v, levels)
    return {
        "nodes": len(shape), "levels": shape.depth, "expected_speedup": speedup, "c": costs.c, "v": list(costs.v),
        "acceptance_by_rank": w.tolist(), "parents": list(shape.parents), "ranks": list(shape.ranks),
    }  # fmt: skip


def size_of(drafter, options):
    """The most nodes and levels that a drafter of trees drafts, for a report: tree_nodes and tree_depth, else None."""
    shape, depth, nodes = getattr(drafter, "tree", None), options.most_levels, options.grown_nodes or None
    if not options.tree and not DRAFTERS[options.drafter].branches:
        return {"tree_nodes": None, "tree_depth": None}
    if isinstance(shape, Shape):
        nodes, depth = len(shape), min(depth, shape.depth)
    return {"tree_nodes": nodes, "tree_depth": depth if nodes else None}
