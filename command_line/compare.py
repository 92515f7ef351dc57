"""The comparison: both samplers on one prompt, one after the other, and the difference between them.

Next: measure.py
"""

from dataclasses import asdict, dataclass
from time import perf_counter

from gpt2np.kernels import matmul
from speculative import AutoregressiveSampler, Generation, SpeculativeSampler, Timed, collect
from speculative.checks import check_request
from speculative.trace import Trace

from .best_k import suggestion
from .builders import Context
from .files import deliver
from .lengths import draft_length, drafter_of, nodes_of
from .models import load
from .registry import DRAFTERS, RULES
from .replay import write_trace
from .saved import machine
from .texts import prompt_of, prompt_tokens
from .views import JsonView, TextView, timings_page


def compare(request, parts):
    """Run both samplers on one prompt and report."""
    prompt, n_tokens, drafts = prompt_of(request), request.n_tokens_to_generate, []

    def timed(draft, load_seconds):
        drafts.append(Timed(draft, load_seconds))
        return drafts[-1]

    model, tokenizer, load_seconds = load(request.target_model_size, request, parts)
    setting = DRAFTERS[request.drafter].build(Context(request, parts, model, tokenizer, timed))
    target, rule = Timed(setting.target, load_seconds), RULES[request.verifier]
    tokens, stop = prompt_tokens(prompt, tokenizer), request.stop_text(tokenizer)
    check_request(tokens, n_tokens, model)
    drafter, grown = drafter_of(request, setting, tokens)
    K, costs = draft_length(request, setting, drafter, tokens)
    about = {
        "target": {"name": request.target_model_size, "parameters": model.n_params},
        "draft": setting.about, "drafter": request.drafter, "K": request.K, "costs": costs,
        "tree": request.tree, "tree_nodes": nodes_of(drafter), "measured_tree": grown,
        "seed": request.seed, "verifier": rule.name, "exactness": rule.exactness, **asdict(request.sampling),
        "draft_temperature": request.draft_temperature,
        "prompt": prompt, "prompt_tokens": len(tokens), "n_tokens": n_tokens, "stop": request.stop,
        "matmul": matmul.strategy(model.hparams.n_embd), "machine": machine(),
    }  # fmt: skip
    report = {**about, "trace": request.trace}
    view = JsonView(report) if request.json is True else TextView(report, tokenizer, stop, request.show)
    samplers = {
        "autoregressive": AutoregressiveSampler(target, sampling=request.sampling),
        "speculative": SpeculativeSampler(
            target, drafter, verifier=rule.verifier, K=K, sampling=request.sampling
        ),
    }  # fmt: skip
    outcomes = {}
    for name, sampler in samplers.items():
        warm_up(sampler, tokens, n_tokens, rule.noise(request.seed), [target, *drafts])
        trace = Trace(tokens, tokenizer.decode, about) if request.trace or request.show == "rounds" else None
        view.begin(name)
        rounds = sampler.rounds(tokens, n_tokens, rule.noise(request.seed), stop=stop)
        outcomes[name] = outcome(tokens, rounds, view, trace, target, drafts)
        report[name] = measured(outcomes[name], tokenizer, stop)
        view.end(report[name])
    report["speedup"] = report["speculative"]["tokens_per_second"] / report["autoregressive"]["tokens_per_second"]
    report["same_tokens"] = report["autoregressive"]["tokens"] == report["speculative"]["tokens"]
    report |= suggestion(*(outcomes[name].generation for name in samplers))
    report["llama_cpp"] = outcomes["speculative"].llama_cpp
    timings = outcomes["speculative"].timings if request.timings else ""
    steps = [lambda: parts.finish(report), lambda: view.summary(report, timings)]
    if request.trace:
        steps.append(lambda: write_trace(outcomes["speculative"].trace, request.trace))
    deliver(*steps)


@dataclass(frozen=True)
class Outcome:
    """What one sampler generated, and how long it took."""

    generation: Generation
    seconds: float
    trace: Trace | None
    llama_cpp: dict  # counts and times under llama.cpp's names, times in milliseconds
    timings: str  # the same, as llama.cpp prints them


def outcome(tokens, rounds, view, trace, target, drafts):
    """The `Outcome` of all rounds. The clock stops while a round is shown and recorded in the trace."""
    generation, seconds = clocked(tokens, rounds, lambda step: view.see(step, trace and trace.add(step)))
    draft = drafts[0] if drafts else None
    drafting = draft.seconds if draft else generation.stats.seconds["draft"]
    sampling_seconds = seconds - target.seconds - drafting
    timings = timings_page(generation.stats, target, draft, sampling_seconds, seconds)
    return Outcome(
        generation, seconds, trace, llama_cpp(generation.stats, target, draft, sampling_seconds, seconds), timings
    )


def warm_up(sampler, tokens, n_tokens, rng, models):
    """Generate a few tokens before the clock starts, to bring the weights into memory and start the threads.

    They follow another token than the prompt's first: a drafter that learns from a text, such as `RecyclingDrafter`,
    would otherwise take a prompt that goes on like these tokens for the same text, and keep what it learned from them.
    """
    sampler.generate([(tokens[0] + 1) % sampler.target.n_vocab], min(n_tokens, 8), rng)
    for model in models:
        model.reset()


def clocked(tokens, rounds, see):
    """(generation, seconds). `see` is called with each round; the clock stops meanwhile."""
    seconds = 0.0

    def steps():
        nonlocal seconds
        while True:
            started = perf_counter()
            step = next(rounds, None)
            seconds += perf_counter() - started
            if step is None:
                return
            see(step)
            yield step

    return collect(tokens, steps()), seconds


def measured(outcome, tokenizer, stop):
    """One sampler's results as plain numbers and lists."""
    generation, stats = outcome.generation, outcome.generation.stats
    text = tokenizer.decode(generation.tokens.tolist())
    return {
        "text": stop.cut(text) if stop else text,
        "tokens": generation.tokens.tolist(),
        "origins": [origin for r in generation.rounds for origin in r.origins],
        "seconds": outcome.seconds,
        "seconds_by_part": stats.seconds,
        "tokens_per_second": stats.n_tokens / outcome.seconds,
        "target_calls": stats.target_calls,
        "tokens_per_target_call": stats.tokens_per_target_call,
        "drafted": stats.drafted,
        "accepted": stats.accepted,
        "rejected": stats.rejected,
        "acceptance": stats.acceptance,
        "drafted_by_position": stats.drafted_by_position,
        "accepted_by_position": stats.accepted_by_position,
        "acceptance_by_position": stats.acceptance_by_position,
    }


def llama_cpp(stats, target, draft, sampling_seconds, seconds):
    """What `timings_page` prints, under llama.cpp's names; times in milliseconds."""
    return {
        "n_draft": len(stats.drafted_by_position),
        "n_predict": stats.n_tokens,
        "n_drafted": stats.drafted,
        "n_accept": stats.accepted,
        "accept": 100 * stats.acceptance,
        "target": target.report(),
        "draft": draft.report() if draft else None,
        "drafting time": None if draft else 1000 * stats.seconds["draft"],
        "sampling time": 1000 * sampling_seconds,
        "total time": 1000 * seconds,
    }
