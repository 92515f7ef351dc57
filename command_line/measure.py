"""The measurement of each experiment: from options to models and prompts, and on to a report.

A report is a dict of plain numbers, lists and texts. Parts that take long are kept by `parts`, see saved.py.
Next: tables.py
"""

from dataclasses import asdict, replace

from speculative import NoisyDrafter, OracleDrafter
from speculative import measuring as library
from speculative.drafters.model_tree import RULES as TREE_RULES

from .builders import Context
from .lengths import draft_length, drafter_of, nodes_of
from .models import load
from .registry import DRAFTERS, RULES, fitting
from .texts import N_AHEAD, beginning, check_prompts, dialogue_prompts, held_out_prompts, prompts_of, repeating_prompts


def calibrate(request, parts):
    """Predict the speedup for K = 1 to 8 from measured costs and acceptance, and measure it on other prompts."""
    context, about = opened(request, parts)
    setting = DRAFTERS[request.drafter].build(context)
    prompts = held_out_prompts(context.tokenizer, request.n_prompts)
    check_prompts(prompts, request.n_tokens_to_generate, context.target)
    parts.expect(len(prompts) + 1)
    expected, rows = library.calibrate(
        setting.target, setting.drafter(request.sampling), prompts, request.n_tokens_to_generate,
        sampling=request.sampling, seed=request.seed, keep=parts.keep,
    )  # fmt: skip
    n_timed = request.n_prompts // 3
    counts = {"n_prompts_expected": request.n_prompts - n_timed, "n_prompts_timed": n_timed}
    return {**about, "draft": setting.about, **asdict(request.sampling), **counts, **asdict(expected), "rows": rows}


def drafters(request, parts):
    """Every drafter, on tales and on text that repeats itself."""
    context, about = opened(request, parts)
    target, entries = context.target, drafter_entries(DRAFTERS, context)
    entries["noisy (0.2)"] = target, NoisyDrafter(target, 0.2, sampling=request.sampling)
    entries["oracle"] = target, OracleDrafter(target, sampling=request.sampling)
    n_prompts, n_tokens = request.n_prompts, request.n_tokens_to_generate
    beginnings = held_out_prompts(context.tokenizer, n_prompts)
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
        "tales": f"{n_prompts} prefixes of tales, {n_tokens} tokens each",
        "repeating": f"the same {N_AHEAD} greedy tokens later, where greedy text repeats itself",
    }
    return {**about, **asdict(request.sampling), "kinds": kinds, "rows": rows}


def prompts(request, parts):
    """Native against assisted, prompt by prompt."""
    context, about = opened(request, parts)
    setting, tokenizer = DRAFTERS[request.drafter].build(context), context.tokenizer
    some = prompts_of(request, tokenizer)
    check_prompts(some, request.n_tokens_to_generate, context.target)
    parts.expect(len(some))
    drafter, grown = drafter_of(request, setting, some[0], parts.note)
    entries = {"assisted": (setting.target, drafter)}
    K, costs = draft_length(request, setting, drafter, some[0], parts.note)
    runs, rows = library.native_and_assisted(
        context.target, entries, some, request.n_tokens_to_generate, K=K, keep=parts.keep, **rule_arguments(request)
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
    chosen = {"tree": request.tree, "tree_nodes": nodes_of(drafter), "measured_tree": grown, "costs": costs}
    measured = {"rows": per_prompt, "all": rows["assisted"]}
    return {**about, "draft": setting.about, **rule_in_report(request), **chosen, **measured}


def gamma_table(request, parts):
    """The speedup in time and in target calls for K = 1, 2, ..., and the one alpha and c that fit it best."""
    context, about = opened(request, parts)
    setting, some, found = DRAFTERS[request.drafter].build(context), prompts_of(request, context.tokenizer), {}
    check_prompts(some, request.n_tokens_to_generate, context.target)
    parts.expect(len(some) * len(request.listed("temperatures")))
    for name, sampling in samplings(request).items():
        found[name] = library.gamma_table(
            setting.target, setting.drafter(sampling), some, request.n_tokens_to_generate, sampling=sampling,
            lengths=range(1, request.max_K + 1), seed=request.seed, keep=library.under(name, parts.keep),
        )  # fmt: skip
    return {**about, "draft": setting.about, "n_prompts": len(some), "temperatures": found}


def alpha_table(request, parts):
    """alpha of every drafter at every temperature, for each target."""
    names, found = request.listed("target_sizes"), {}
    for target_name in names:
        request = replace(request, target_model_size=target_name)
        context, about = opened(request, parts)
        some = prompts_of(request, context.tokenizer)
        check_prompts(some, request.n_tokens_to_generate, context.target)
        parts.expect(len(some) * len(names) * len(request.listed("temperatures")))
        last = sorted(DRAFTERS.values(), key=lambda kind: kind.name == "model")  # the draft model below the others
        settings = {row: setting for kind in last for row, setting in kind.rows(context).items()}
        by_temperature = {
            name: library.alpha_table(
                context.target, {row: setting.drafter(sampling) for row, setting in settings.items()}, some,
                request.n_tokens_to_generate, sampling=sampling, seed=request.seed,
                keep=library.under(f"{target_name}, {name}", parts.keep),
            )
            for name, sampling in samplings(request).items()
        }  # fmt: skip
        found[target_name] = {**about, "n_prompts": len(some), "temperatures": by_temperature}
    return {"targets": found}


def method_table(request, parts):
    """Drafters and verifiers on texts of several kinds."""
    context, about = opened(request, parts)
    target, tokenizer = context.target, context.tokenizer
    n_prompts, n_tokens = request.n_prompts, request.n_tokens_to_generate
    tales, dialogue = held_out_prompts(tokenizer, n_prompts), dialogue_prompts(tokenizer, n_prompts)
    known = prompts_of(replace(request, prompts="known"), tokenizer)[:n_prompts]
    check_prompts([*known, *([*prompt, *[0] * N_AHEAD] for prompt in tales)], n_tokens, target)
    entries = drafter_entries(request.listed("drafters"), context)
    parts.expect(n_prompts + len(entries) * (3 * n_prompts + len(known)))
    repeating = repeating_prompts(target, tales, parts.keep)
    rules = [RULES[name] for name in request.listed("verifiers")]
    rows = library.method_table(
        target, entries, {rule.name: rule.verifier for rule in rules},
        {"tales": tales, "dialogue": dialogue, "repeating": repeating, "known": known}, n_tokens, K=request.K,
        sampling=request.sampling, shared_noise={rule.name for rule in rules if rule.one_text},
        trees={name for name in entries if DRAFTERS[name].trees}, seed=request.seed,
        keep=parts.keep,
    )  # fmt: skip
    return {**about, "n_prompts": n_prompts, "K": request.K, **asdict(request.sampling), "rows": rows}


def tree_table(request, parts):
    """Trees of several sizes against chains, for every drafter of trees."""
    context, about = opened(request, parts)
    some = prompts_of(request, context.tokenizer)
    check_prompts(some, request.n_tokens_to_generate, context.target)
    kinds = [DRAFTERS[name] for name in request.listed("tree_drafters") if DRAFTERS[name].suits(context)]
    if not kinds:
        lacks = " or ".join(DRAFTERS[name].needs for name in request.listed("tree_drafters"))
        raise ValueError(
            f"--tree_drafters: {request.tree_drafters} has no drafter for {request.target_model_size}, which has no "
            f"{lacks}: add another drafter, or choose another --target_model_size"
        )
    parts.expect(len(some) * (1 + len(kinds)))
    makers, rules = {}, {}
    for kind in kinds:
        setting = kind.build(context)
        makers[kind.name] = maker(setting, request.sampling)
        for rule in TREE_RULES if kind.draws else ():
            rules[f"{kind.name}, {rule}"] = maker(setting, request.sampling, siblings=rule)
    common = {"sampling": request.sampling, "seed": request.seed, "keep": parts.keep}
    n_tokens = request.n_tokens_to_generate
    acceptance = library.acceptance_table({**makers, **rules}, some, n_tokens, **common)
    rows = library.tree_table(
        context.target, makers, acceptance, some, n_tokens, max_depth=request.max_depth,
        sizes=[int(n) for n in request.listed("tree_sizes")], **common,
    )  # fmt: skip
    return {
        **about, "n_prompts": len(some), **asdict(request.sampling), "siblings": request.siblings,
        "acceptance": {name: w for name, w in acceptance.items() if name in rules or not DRAFTERS[name].draws},
        "rows": rows,
    }  # fmt: skip


def maker(setting, sampling, **options):
    """(parents, ranks) -> (target, drafter)"""
    return lambda shape: (setting.target, setting.tree(sampling, shape, **options))


def compare_sizes(request, parts):
    """Seconds for the same work by targets of several sizes, natively and with each drafter."""
    names, found = request.listed("target_sizes"), {}
    check_suits(request, parts)
    for name in names:
        request = replace(request, target_model_size=name)
        context, about = opened(request, parts)
        some = prompts_of(request, context.tokenizer)
        check_prompts(some, request.n_tokens_to_generate, context.target)
        parts.expect(len(some) * len(names))
        listed = fitting(request.listed("drafters"), context)
        kinds = [kind for kind in listed if kind != "model" or request.draft_model_size != name]
        entries = drafter_entries(kinds, context)
        runs, rows = library.native_and_assisted(
            context.target, entries, some, request.n_tokens_to_generate, K=request.K,
            keep=library.under(name, parts.keep), **rule_arguments(request),
        )  # fmt: skip
        found[name] = {**about, "native_seconds": library.total(runs["native"]).seconds, "drafters": rows}
    about = {"draft": request.draft_model_size, "n_prompts": len(some), "n_tokens": request.n_tokens_to_generate}
    return {**about, **rule_in_report(request), "targets": found}


# ------------------------------------------------------------------------------------------------ models and rules


def opened(request, parts):
    """(`Context` with the target, its description for a report)"""
    target, tokenizer, _ = load(request.target_model_size, request, parts)
    about = {"name": request.target_model_size, "parameters": target.n_params}
    return Context(request, parts, target, tokenizer), {"target": about, "n_tokens": request.n_tokens_to_generate}


def drafter_entries(kinds, context):
    """dict kind -> (target, drafter); each drafter with the target that it runs on. Of all kinds, those that suit."""
    settings = {kind: DRAFTERS[kind].build(context) for kind in fitting(kinds, context)}
    return {kind: (found.target, found.drafter(context.request.sampling)) for kind, found in settings.items()}


def check_suits(request, parts):
    """ValueError where one of the targets lacks what a drafter needs; of all drafters, those that suit are taken."""
    listed = request.listed("drafters")
    choosy = [] if listed == list(DRAFTERS) else [DRAFTERS[name] for name in listed if DRAFTERS[name].needs]
    for name in request.listed("target_sizes") if choosy else ():
        context, _ = opened(replace(request, target_model_size=name), parts)
        for kind in choosy:
            if not kind.suits(context):
                lacks = f"{kind.name} needs {kind.needs}, which {name} does not have"
                raise ValueError(f"--drafters: {lacks}: leave one of the two out")


def samplings(request):
    """dict "temperature T" -> Sampling, for each of --temperatures."""
    temperatures = request.listed("temperatures")
    return {f"temperature {text}": replace(request.sampling, temperature=float(text)) for text in temperatures}


def rule_arguments(request):
    """The options that `native_and_assisted` takes."""
    rule = RULES[request.verifier]
    return {
        "sampling": request.sampling, "verifier": rule.verifier, "shared_noise": rule.one_text, "seed": request.seed,
    }  # fmt: skip


def rule_in_report(request):
    """Its description for a report."""
    rule = RULES[request.verifier]
    return {"K": request.K, "verifier": rule.name, "exactness": rule.exactness, **asdict(request.sampling)}
