"""How each drafter of the command line is built, from options and a target.

A drafter is built from a `Context` in two steps: its model or counts are loaded first, and `Setting.drafter(sampling)`
then makes a drafter for any sampling. A draft model is passed through `Context.timed`, which may time its calls.
Next: registry.py
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import gpt2np
import speculative
from gpt2np.heads import heads_file
from speculative import best_tree
from speculative.drafters.recycling import WEIGHTS as RECYCLED

from .files import read_text, replacing
from .models import load
from .texts import tales

THRESHOLD = 0.4  # of --K confidence
WEIGHTS = (0.66, 0.17, 0.06, 0.03, 0.02, 0.01)  # about how often a model's child of each rank is the accepted one


@dataclass(frozen=True)
class Context:
    """What a drafter is built from."""

    request: object  # Options
    parts: object  # Saved: records what is read
    target: speculative.LanguageModel
    tokenizer: gpt2np.Tokenizer
    timed: Callable = lambda model, load_seconds: model


@dataclass(frozen=True)
class Setting:
    """A target and a drafter for it."""

    target: speculative.LanguageModel  # the context's own, or another with the same logits
    drafter: Callable  # (Sampling) -> Drafter
    about: dict  # for reports: "name", and "parameters" for a draft model
    tree: Callable = None  # (Sampling, (parents, ranks), ...) -> Drafter; None where it drafts chains only


def drawing(context, model, about, load_seconds=0.0, target=None):
    """The `Setting` of a drafter that draws from a language model."""
    threshold = THRESHOLD if context.request.K == "confidence" else 0.0
    model = context.timed(model, load_seconds)
    make = partial(speculative.ModelDrafter, model, threshold=threshold)
    own, siblings = context.request.draft_sampling, context.request.siblings

    def tree(sampling, shape, siblings=siblings):
        return speculative.TreeDrafter(model, shape, siblings=siblings, sampling=own(sampling))

    chain = lambda sampling: make(sampling=own(sampling))  # noqa: E731
    grown = context.request.grown_nodes

    def drafter(sampling):
        if grown and (siblings == "top" or own(sampling).temperature == 0):
            return speculative.TreeDrafter(model, grown, siblings="top", sampling=own(sampling))
        return planted(context, chain, tree, WEIGHTS)(sampling)

    return Setting(target or context.target, drafter, about, tree)


def planted(context, chain, tree, weights):
    """(Sampling) -> Drafter: the tree of --tree if its shape is given, otherwise a chain."""
    shape = context.request.shape(weights)
    return chain if shape is None else lambda sampling: tree(sampling, shape)


def copying(context, drafter, name):
    """The `Setting` of a drafter without a model, the same for any sampling."""
    return Setting(context.target, lambda sampling: drafter, {"name": name})


# ------------------------------------------------------------------------------------------------ model


def model(context):
    draft, seconds = load_draft(context)
    about = {"name": context.request.draft_model_size, "parameters": draft.n_params}
    return drawing(context, draft, about, seconds)


def models(context):
    """The draft model by its name, unless it is the target."""
    name = context.request.draft_model_size
    return {name: model(context)} if name != context.request.target_model_size else {}


def load_draft(context):
    """(draft model, seconds). ValueError if its vocabulary is not the target's."""
    request, target = context.request, context.target
    draft, other, seconds = load(request.draft_model_size, request, context.parts)
    if target.n_vocab != draft.n_vocab or context.tokenizer.vocabulary != other.vocabulary:
        raise ValueError(
            f"{request.target_model_size} and {request.draft_model_size} have no common vocabulary ({target.n_vocab} "
            f"and {draft.n_vocab} tokens): choose --target_model_size and --draft_model_size from one family"
        )
    return draft, seconds


# ------------------------------------------------------------------------------------------------ ngram


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
    request, target, path = context.request, context.target, Path(context.request.ngram_table)
    if request.ngram_table and path.exists():
        try:
            counted = speculative.NGramModel.load(path)
        except OSError as error:
            raise ValueError(f"--ngram_table: cannot read {path} ({error.strerror}): name another file") from None
        except ValueError as error:
            raise ValueError(f"--ngram_table: {error}") from None
        if counted.n_vocab != target.n_vocab:
            raise ValueError(
                f"--ngram_table: {path} counts {counted.n_vocab} tokens and {request.target_model_size} has "
                f"{target.n_vocab}: count again, with a new name for the table"
            )
        if (n := len(counted.counts)) != request.n_max:
            raise ValueError(
                f"--ngram_table: {path} has n-grams up to {n} tokens, and --n_max is {request.n_max}: give --n_max "
                f"{n}, or name another table"
            )
    else:
        tokens = context.tokenizer.encode(read_text(request.corpus) if request.corpus else tales()[0])
        try:
            counted = speculative.NGramModel.from_tokens(tokens, target.n_vocab, request.n_max)
        except ValueError as error:
            raise ValueError(f"--n_max and --corpus: {error}") from None
        if request.ngram_table:
            with replacing("ngram_table", path) as new:
                counted.save(new)
    if request.ngram_table:
        context.parts.opened("ngram_table", path)
    return counted


# ------------------------------------------------------------------------------------------------ copies, own layers


def prompt_lookup(context):
    n_max = context.request.n_max
    drafter = speculative.PromptLookupDrafter(context.target.n_vocab, n_max)
    return copying(context, drafter, f"prompt lookup of up to {n_max} tokens")


def suffix(context):
    corpus = context.request.corpus
    tokens = context.tokenizer.encode(read_text(corpus)) if corpus else ()
    tree = {"n_nodes": context.request.grown_nodes, "floor": 0.05} if context.request.tree else {}
    return copying(context, speculative.SuffixDrafter(context.target.n_vocab, tokens, **tree), "suffix automaton")


def recycling(context):
    target = speculative.Recycling(context.target)

    def tree(sampling, shape):
        return speculative.RecyclingDrafter(target, shape)

    of_16 = best_tree(16, RECYCLED, context.request.most_levels)
    about = {"name": "tokens recycled from the target's own rows"}
    return Setting(target, planted(context, lambda sampling: tree(sampling, of_16), tree, RECYCLED), about, tree)


def early_exit(context, n=None):
    n, n_layer = n or context.request.exit_layer, context.target.hparams.n_layer
    try:
        whole = gpt2np.EarlyExit(context.target, n)
    except ValueError as error:
        raise ValueError(f"--exit_layer: {error}") from None
    return drawing(context, whole.early_exit, {"name": f"the first {n} of the target's {n_layer} layers"}, target=whole)


def has_layers(context):
    """Whether the target has layers after --exit_layer."""
    return context.request.exit_layer < context.target.hparams.n_layer


def early_exits(context):
    """Exits after --exit_layer layers, after half of the layers, and before the last."""
    n_layer = context.target.hparams.n_layer
    exits = [n for n in sorted({context.request.exit_layer, n_layer // 2, n_layer - 1}) if 1 <= n < n_layer]
    return {f"{n} of {n_layer} layers": early_exit(context, n) for n in exits}


def heads(context):
    name = context.request.target_model_size
    try:
        path, found = heads_file(name), gpt2np.load_heads(name)
    except ValueError as error:
        raise ValueError(f"--drafter heads: {error}") from None
    context.parts.opened("heads", path)
    whole = gpt2np.Heads(context.target, found)
    of_8 = speculative.HeadsDrafter(whole)

    def tree(sampling, shape):
        return speculative.HeadsDrafter(whole, shape)

    about = {"name": f"{whole.n_heads} heads on the target's last hidden state", "parameters": whole.n_params}
    return Setting(whole, planted(context, lambda sampling: of_8, tree, of_8.weights()), about, tree)


def has_heads(context):
    return heads_file(context.request.target_model_size).exists()
