"""What each experiment measures: from options to models and prompts, and from these to a report.

A report is a dict of plain numbers, lists and texts. Parts that take long go through `parts`, see saved.py.
Next: saved.py
"""

from dataclasses import asdict, replace

import gpt2np
from speculative import EarlyExitDrafter, ModelDrafter, NGramDrafter, NGramModel, NoisyDrafter, OracleDrafter
from speculative import experiments as library

from .models import draft_length, load, set_up
from .prompts import (
    N_AHEAD,
    beginning,
    check_prompts,
    dialogue_prompts,
    held_out_prompts,
    prompts_of,
    repeating_prompts,
)
from .request import COPYING, DRAFTERS, VERIFIERS


def calibrate(request, parts):
    """Predict the speedup for K = 1 to 8 from measured costs and acceptance, and hold it against the clock."""
    need_probabilities(request, "calibrate")
    target, tokenizer, about = open_target(request)
    setting = set_up(request.drafter, request, target, tokenizer)
    prompts = held_out_prompts(tokenizer, request.n_prompts)
    check_prompts(prompts, request.n_tokens_to_generate, target)
    parts.expect(len(prompts) + 1)
    expected, rows = library.calibrate(
        setting.target, setting.drafter, prompts, request.n_tokens_to_generate, sampling=request.sampling,
        seed=request.seed, keep=parts.keep,
    )  # fmt: skip
    n_timed = request.n_prompts // 3
    counts = {"n_prompts_expected": request.n_prompts - n_timed, "n_prompts_timed": n_timed}
    return {**about, "draft": setting.draft, **asdict(request.sampling), **counts, **asdict(expected), "rows": rows}


def drafters(request, parts):
    """Every drafter in a table, on tales and on text that repeats itself."""
    target, tokenizer, about = open_target(request)
    entries = drafter_entries(DRAFTERS, request, target, tokenizer)
    entries["noisy (0.2)"] = target, NoisyDrafter(target, 0.2, sampling=request.sampling)
    entries["oracle"] = target, OracleDrafter(target, sampling=request.sampling)
    n_prompts, n_tokens = request.n_prompts, request.n_tokens_to_generate
    beginnings = held_out_prompts(tokenizer, n_prompts)
    check_prompts([[*prompt, *[0] * N_AHEAD] for prompt in beginnings], n_tokens, target)
    parts.expect(3 * n_prompts)
    prompts = {"tales": beginnings, "repeating": repeating_prompts(target, beginnings, parts.keep)}
    rows = {
        kind: library.compare_drafters(
            target, entries, some, n_tokens, sampling=request.sampling, seed=request.seed,
            keep=library.under(kind, parts.keep),
        )
        for kind, some in prompts.items()
    }  # fmt: skip
    kinds = {
        "tales": f"{n_prompts} beginnings of tales, {n_tokens} tokens each",
        "repeating": f"the same {N_AHEAD} greedy tokens later, where the target's text goes round in circles",
    }
    return {**about, **asdict(request.sampling), "kinds": kinds, "rows": rows}


def prompts(request, parts):
    """Native against assisted, prompt by prompt."""
    target, tokenizer, about = open_target(request)
    setting = set_up(request.drafter, request, target, tokenizer)
    some = prompts_of(request, tokenizer)
    check_prompts(some, request.n_tokens_to_generate, target)
    parts.expect(len(some))
    entries = {"assisted": (setting.target, setting.drafter)}
    K, _ = draft_length(request, setting, some[0])
    runs, rows = library.native_and_assisted(
        target, entries, some, request.n_tokens_to_generate, K=K, keep=parts.keep, **rule(request)
    )
    per_prompt = []
    for tokens, native, assisted in zip(some, runs["native"], runs["assisted"]):
        per_prompt.append({
            "prompt": tokenizer.decode(tokens), "beginning": beginning(tokens, tokenizer),
            "native": tokenizer.decode(native.tokens), "assisted": tokenizer.decode(assisted.tokens),
            "native_seconds": native.seconds, "seconds": assisted.seconds,
            "speedup": native.seconds / assisted.seconds, "tokens_per_call": assisted.tokens_per_call,
            "same_text": native.tokens == assisted.tokens,
        })  # fmt: skip
    return {**about, "draft": setting.draft, **of_rule(request), "rows": per_prompt, "all": rows["assisted"]}


def gamma_table(request, parts):
    """The speedup in time and in target calls for K = 1, 2, ..., and the one alpha and c that fit it best."""
    need_probabilities(request, "gamma_table")
    target, tokenizer, about = open_target(request)
    setting = set_up(request.drafter, request, target, tokenizer)
    some, found = prompts_of(request, tokenizer), {}
    check_prompts(some, request.n_tokens_to_generate, target)
    parts.expect(len(some) * len(request.listed("temperatures")))
    for name, sampling in samplings(request).items():
        found[name] = library.gamma_table(
            setting.target, at(sampling, setting.drafter), some, request.n_tokens_to_generate, sampling=sampling,
            lengths=range(1, request.max_K + 1), seed=request.seed, keep=library.under(name, parts.keep),
        )  # fmt: skip
    return {**about, "draft": setting.draft, "n_prompts": len(some), "temperatures": found}


def alpha_table(request, parts):
    """alpha of every drafter at every temperature, for each target."""
    names, found = request.listed("target_sizes"), {}
    for target_name in names:
        request = replace(request, target_model_size=target_name)
        target, tokenizer, about = open_target(request)
        some = prompts_of(request, tokenizer)
        check_prompts(some, request.n_tokens_to_generate, target)
        parts.expect(len(some) * len(names) * len(request.listed("temperatures")))
        entries = alpha_drafters(request, target, tokenizer)
        by_temperature = {
            name: library.alpha_table(
                target, {key: at(sampling, drafter) for key, drafter in entries.items()}, some,
                request.n_tokens_to_generate, sampling=sampling, seed=request.seed,
                keep=library.under(f"{target_name}, {name}", parts.keep),
            )
            for name, sampling in samplings(request).items()
        }  # fmt: skip
        found[target_name] = {**about, "n_prompts": len(some), "temperatures": by_temperature}
    return {"targets": found}


def alpha_drafters(request, target, tokenizer):
    """dict name -> Drafter: counts, copies, first layers of the target, and the draft model where it is another."""
    kinds, n_layer = ("ngram", "prompt_lookup", "suffix"), target.hparams.n_layer
    known = drafter_entries(kinds, request, target, tokenizer)
    counts = known.pop("ngram")[1].model.counts
    names = {1: "unigram", 2: "bigram", 3: "trigram"}
    entries = {
        names.get(n, f"{n}-gram"): NGramDrafter(NGramModel(counts[:n], target.n_vocab))
        for n in range(1, len(counts) + 1)
    }
    entries |= {kind.replace("_", " "): drafter for kind, (_, drafter) in known.items()}
    for n in sorted({request.exit_layer, n_layer // 2, n_layer - 1}):
        if 1 <= n < n_layer:
            entries[f"{n} of {n_layer} layers"] = EarlyExitDrafter(gpt2np.EarlyExit(target, n))
    if request.draft_model_size != request.target_model_size:
        entries[request.draft_model_size] = set_up("model", request, target, tokenizer).drafter
    return entries


def method_table(request, parts):
    """Drafters and verifiers on texts of several kinds."""
    need_one_length(request, "method_table")
    target, tokenizer, about = open_target(request)
    n_prompts, n_tokens = request.n_prompts, request.n_tokens_to_generate
    tales, dialogue = held_out_prompts(tokenizer, n_prompts), dialogue_prompts(tokenizer, n_prompts)
    known = prompts_of(replace(request, prompts="known"), tokenizer)[:n_prompts]
    check_prompts([*known, *([*prompt, *[0] * N_AHEAD] for prompt in tales)], n_tokens, target)
    entries = drafter_entries(request.listed("drafters"), request, target, tokenizer)
    parts.expect(n_prompts + len(entries) * (3 * n_prompts + len(known)))
    repeating = repeating_prompts(target, tales, parts.keep)
    rows = library.method_table(
        target, entries, {name: VERIFIERS[name] for name in request.listed("verifiers")},
        {"tales": tales, "dialogue": dialogue, "repeating": repeating, "known": known}, n_tokens, K=request.K,
        sampling=request.sampling, shared_noise={"gumbel"}, seed=request.seed, keep=parts.keep,
    )  # fmt: skip
    return {**about, "n_prompts": n_prompts, "K": request.K, **asdict(request.sampling), "rows": rows}


def compare_sizes(request, parts):
    """Seconds for the same work by targets of several sizes, natively and with each drafter."""
    need_one_length(request, "compare_sizes")
    names, found = request.listed("target_sizes"), {}
    for name in names:
        request = replace(request, target_model_size=name)
        target, tokenizer, about = open_target(request)
        some = prompts_of(request, tokenizer)
        check_prompts(some, request.n_tokens_to_generate, target)
        parts.expect(len(some) * len(names))
        kinds = [kind for kind in request.listed("drafters") if kind != "model" or request.draft_model_size != name]
        entries = drafter_entries(kinds, request, target, tokenizer)
        runs, rows = library.native_and_assisted(
            target, entries, some, request.n_tokens_to_generate, K=request.K,
            keep=library.under(name, parts.keep), **rule(request),
        )  # fmt: skip
        found[name] = {**about, "native_seconds": library.total(runs["native"]).seconds, "drafters": rows}
    about = {"draft": request.draft_model_size, "n_prompts": len(some), "n_tokens": request.n_tokens_to_generate}
    return {**about, **of_rule(request), "targets": found}


# ------------------------------------------------------------------------------------------------ models and rules


def open_target(request):
    """(model, tokenizer, what a report says of both)"""
    target, tokenizer, _ = load(request.target_model_size, request)
    about = {"name": request.target_model_size, "parameters": target.n_params}
    return target, tokenizer, {"target": about, "n_tokens": request.n_tokens_to_generate}


def drafter_entries(kinds, request, target, tokenizer):
    """dict kind -> (target, drafter), the target being the one that this drafter works with."""
    settings = {kind: set_up(kind, request, target, tokenizer) for kind in kinds}
    return {kind: (setting.target, setting.drafter) for kind, setting in settings.items()}


def samplings(request):
    """dict "temperature T" -> Sampling, for each of --temperatures."""
    each = {f"temperature {text}": replace(request, temperature=float(text)) for text in request.listed("temperatures")}
    return {name: some.sampling for name, some in each.items()}


def at(sampling, drafter):
    """The drafter with another sampling, where it has one."""
    return ModelDrafter(drafter.model, sampling=sampling) if hasattr(drafter, "model") else drafter


def rule(request):
    """What `native_and_assisted` takes of the options."""
    return {
        "sampling": request.sampling, "verifier": VERIFIERS[request.verifier],
        "shared_noise": request.verifier == "gumbel", "seed": request.seed,
    }  # fmt: skip


def of_rule(request):
    """What a report says of it."""
    exactness = VERIFIERS[request.verifier].exactness
    return {"K": request.K, "verifier": request.verifier, "exactness": exactness, **asdict(request.sampling)}


def need_probabilities(request, command):
    if request.drafter in COPYING:
        raise ValueError(
            f"{command} needs a drafter with probabilities (model, ngram, early_exit), got {request.drafter}"
        )


def need_one_length(request, command):
    if isinstance(request.K, str):
        raise ValueError(f"{command} needs one draft length for all, got --K {request.K}: give a number")
