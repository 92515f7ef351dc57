"""The models, the drafters and the draft length that a request names.

Next: views.py
"""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import gpt2np
import speculative

from .prompts import tales
from .request import VERIFIERS, read_text

THRESHOLD = 0.4  # of --K confidence
MOST_CONFIDENT = 16  # guesses


def load(name, request):
    """(model, tokenizer, seconds)"""
    started = perf_counter()
    model, tokenizer = gpt2np.load(name, request.models_dir, request.source)
    return model, tokenizer, perf_counter() - started


def load_draft(request, target, tokenizer):
    """(draft model, seconds); ValueError if it does not share the target's vocabulary."""
    draft, other, seconds = load(request.draft_model_size, request)
    if target.n_vocab != draft.n_vocab or tokenizer.vocabulary != other.vocabulary:
        raise ValueError(
            f"{request.target_model_size} and {request.draft_model_size} have no common vocabulary ({target.n_vocab} "
            f"and {draft.n_vocab} tokens): choose --target_model_size and --draft_model_size from one family"
        )
    return draft, seconds


@dataclass(frozen=True)
class Setting:
    """A target, the drafter for it, and what there is to say about the draft."""

    target: speculative.LanguageModel
    drafter: speculative.Drafter
    draft: dict  # "name", and "parameters" where it is a model of its own
    load_seconds: float = 0.0  # of the draft


def set_up(kind, request, target, tokenizer):
    """The `Setting` with one of DRAFTERS; a draft model is loaded for "model" alone."""
    how = {"sampling": request.sampling, "threshold": THRESHOLD if request.K == "confidence" else 0.0}
    if kind == "model":
        draft, seconds = load_draft(request, target, tokenizer)
        about = {"name": request.draft_model_size, "parameters": draft.n_params}
        return Setting(target, speculative.ModelDrafter(draft, **how), about, seconds)
    if kind == "ngram":
        started = perf_counter()
        drafter = speculative.NGramDrafter(ngram_model(request, target, tokenizer), **how)
        name = f"n-grams up to {len(drafter.model.counts)} tokens"
        return Setting(target, drafter, {"name": name}, perf_counter() - started)
    if kind == "early_exit":
        whole = gpt2np.EarlyExit(target, request.exit_layer)
        name = f"the first {request.exit_layer} of the target's {target.hparams.n_layer} layers"
        return Setting(whole, speculative.EarlyExitDrafter(whole, **how), {"name": name})
    if kind == "suffix":
        started, corpus = perf_counter(), tokenizer.encode(read_text(request.corpus)) if request.corpus else ()
        drafter = speculative.SuffixDrafter(target.n_vocab, corpus)
        return Setting(target, drafter, {"name": "suffix automaton"}, perf_counter() - started)
    drafter = speculative.PromptLookupDrafter(target.n_vocab, request.n_max)
    return Setting(target, drafter, {"name": f"prompt lookup of up to {request.n_max} tokens"})


def ngram_model(request, target, tokenizer):
    """The table of --ngram_table, where that is a file; else counted in --corpus, and saved there where it is named."""
    path = Path(request.ngram_table)
    if not path.parent.is_dir():
        raise ValueError(f"--ngram_table: there is no folder {path.parent}: make it, or name a file elsewhere")
    if request.ngram_table and path.exists():
        model = speculative.NGramModel.load(path)
        if model.n_vocab != target.n_vocab:
            raise ValueError(
                f"--ngram_table: {path} counts {model.n_vocab} tokens and {request.target_model_size} has "
                f"{target.n_vocab}: count again, with a new name for the table"
            )
        return model
    text = read_text(request.corpus) if request.corpus else tales()[0]
    model = speculative.NGramModel.from_tokens(tokenizer.encode(text), target.n_vocab, request.n_max)
    if request.ngram_table:
        model.save(path)
    return model


def draft_length(request, setting, tokens):
    """(K or a function that chooses it, Costs or None) for a prompt of these tokens."""
    if request.K == "heuristic":
        return speculative.Heuristic(), None
    if request.K == "confidence":
        return MOST_CONFIDENT, None
    if request.K == "auto":
        somewhere = [*tokens, *tokens][: setting.target.n_ctx - 9]
        costs = speculative.measure_costs(
            setting.target,
            setting.drafter,
            somewhere,
            sampling=request.sampling,
            verifier=VERIFIERS[request.verifier],
        )
        return speculative.CostModel(costs.c, costs.v), costs
    return request.K, None
