"""The comparison, which runs without a command: both samplers on one prompt, and the difference between them.

The draft length that it suggests follows from its own rounds, which give the costs and the acceptance for
`theory.best_K`. Left out are the first round of each text, which processes the prompt, and whatever K costs beyond the
rounds seen: v is a straight line through v(1) = 1 and the v at the usual draft length, up to twice that length.
"""

import sys
from collections import Counter
from dataclasses import asdict
from json import dumps
from statistics import median
from time import perf_counter

import numpy as np
from tqdm import tqdm

import gpt2np
from gpt2np.kernels import matmul
from gpt2np.tokenizer import END_OF_TEXT
from speculative import AutoregressiveSampler, SpeculativeSampler, Timed, collect
from speculative.checks import check_request
from speculative.theory import best_K, estimate_alpha
from speculative.trace import Trace
from speculative.trace.terminal import colour, legend, round_line, visible

from ..files import deliver
from ..inputs import load, prompt_of, prompt_tokens
from ..registry import DRAFTERS, RULES, Context, draft_length, drafter_of, nodes_of
from ..report import machine
from ..tables import acceptance_lines, costs_line, counted, described, has_colours, tree_line
from . import DRAFTS, ONE_DRAFTER, SAMPLING, Command, models_are_there, names, write_trace


def run(options, saved):
    """Run both samplers on one prompt and report."""
    prompt, n_tokens, drafts = prompt_of(options), options.n_tokens_to_generate, []

    def timed(draft, load_seconds):
        drafts.append(Timed(draft, load_seconds))
        return drafts[-1]

    model, tokenizer, load_seconds = load(options.target_model_size, options, saved)
    setting = DRAFTERS[options.drafter].build(Context(options, saved, model, tokenizer, timed))
    target, rule = Timed(setting.target, load_seconds), RULES[options.verifier]
    tokens, stop = prompt_tokens(prompt, tokenizer), options.stop_text(tokenizer)
    check_request(tokens, n_tokens, model)
    drafter, measured_tree = drafter_of(options, setting, tokens)
    K, costs = draft_length(options, setting, drafter, tokens)
    about = {
        "target": {"name": options.target_model_size, "parameters": model.n_params},
        "draft": setting.about, "drafter": options.drafter, "K": options.K, "costs": costs,
        "tree": options.tree, "tree_nodes": nodes_of(drafter), "measured_tree": measured_tree,
        "seed": options.seed, "verifier": rule.name, "exactness": rule.exactness, **asdict(options.sampling),
        "draft_temperature": options.draft_temperature,
        "prompt": prompt, "prompt_tokens": len(tokens), "n_tokens": n_tokens, "stop": options.stop,
        "matmul": matmul.strategy(model.hparams.n_embd), "machine": machine(),
    }  # fmt: skip
    report, generations = {**about, "trace": options.trace}, []
    view = JsonView(report) if options.json is True else TextView(report, tokenizer, stop, options.show)
    samplers = {
        "autoregressive": AutoregressiveSampler(target, sampling=options.sampling),
        "speculative": SpeculativeSampler(target, drafter, verifier=rule.verifier, K=K, sampling=options.sampling),
    }
    for name, sampler in samplers.items():
        warm_up(sampler, tokens, n_tokens, rule.noise(options.seed), [target, *drafts])
        trace = Trace(tokens, tokenizer.decode, about) if options.trace or options.show == "rounds" else None
        view.begin(name)
        rounds = sampler.rounds(tokens, n_tokens, rule.noise(options.seed), stop=stop)
        generation, seconds = clocked(tokens, rounds, view, trace)
        generations.append(generation)
        report[name] = measured(generation, seconds, tokenizer, stop)
        view.end(report[name])
        if trace and name == "autoregressive":
            about["alone"] = of_target_alone(trace)
    report["speedup"] = report["speculative"]["tokens_per_second"] / report["autoregressive"]["tokens_per_second"]
    report["same_tokens"] = report["autoregressive"]["tokens"] == report["speculative"]["tokens"]
    report |= suggestion(*generations)
    draft = drafts[0] if drafts else None
    report["llama_cpp"] = llama_cpp(generation.stats, target, draft, seconds)
    timings = timings_page(generation.stats, target, draft, report["llama_cpp"]) if options.timings else ""
    steps = [lambda: saved.finish(report), lambda: view.summary(report, timings)]
    if options.trace:
        steps.append(lambda: write_trace(trace, options.trace))
    deliver(*steps)


def warm_up(sampler, tokens, n_tokens, rng, models):
    """Generate a few tokens before the clock starts, to bring the weights into memory and start the threads.

    They follow another token than the prompt's first: a drafter that learns from a text, such as `RecyclingDrafter`,
    would otherwise take a prompt that goes on like these tokens for the same text, and keep what it learned from them.
    """
    sampler.generate([(tokens[0] + 1) % sampler.target.n_vocab], min(n_tokens, 8), rng)
    for model in models:
        model.reset()


def of_target_alone(trace):
    """The texts and seconds of its tokens, for the race on the page of the other sampler's trace."""
    return {
        "texts": [text for record in trace.rounds for text in record["texts"]],
        "seconds": [sum(record["seconds"].values()) for record in trace.rounds],
    }


def clocked(tokens, rounds, view, trace):
    """(generation, seconds). The clock stops while a round is recorded in the trace and shown."""
    seconds = 0.0

    def steps():
        nonlocal seconds
        while True:
            started = perf_counter()
            step = next(rounds, None)
            seconds += perf_counter() - started
            if step is None:
                return
            view.see(step, trace and trace.add(step))
            yield step

    return collect(tokens, steps()), seconds


def measured(generation, seconds, tokenizer, stop):
    """One sampler's results as plain numbers and lists."""
    stats, tokens = generation.stats, generation.tokens.tolist()
    text = tokenizer.decode(tokens)
    counts = ("target_calls", "drafted", "accepted", "rejected", "acceptance")
    counts += ("drafted_by_position", "accepted_by_position", "acceptance_by_position")
    return {
        "text": stop.cut(text) if stop else text,
        "tokens": tokens,
        "origins": [origin for r in generation.rounds for origin in r.origins],
        "seconds": seconds,
        "seconds_by_part": stats.seconds,
        "tokens_per_second": stats.n_tokens / seconds,
        "tokens_per_target_call": stats.tokens_per_target_call,
        **{name: getattr(stats, name) for name in counts},
    }


# ------------------------------------------------------------------------------------------------ as llama.cpp


def llama_cpp(stats, target, draft, seconds):
    """Counts and times under llama.cpp's names; times in milliseconds. The models are `Timed`; `draft` may be None."""
    drafting = draft.seconds if draft else stats.seconds["draft"]
    return {
        "n_draft": len(stats.drafted_by_position),
        "n_predict": stats.n_tokens,
        "n_drafted": stats.drafted,
        "n_accept": stats.accepted,
        "accept": 100 * stats.acceptance,
        "target": target.report(),
        "draft": draft.report() if draft else None,
        "drafting time": None if draft else 1000 * drafting,
        "sampling time": 1000 * (seconds - target.seconds - drafting),
        "total time": 1000 * seconds,
    }


def timings_page(stats, target, draft, found):
    """The lines that llama.cpp prints after a speculative run."""
    models = {"target": target, "draft": draft} if draft else {"target": target}
    lines = [f"{role:6}  {line}" for role, model in models.items() for line in str(model).splitlines()]
    times = (
        f"{name} = {found[name]:.1f} ms"
        for name in ("sampling time", "drafting time", "total time")
        if found[name] is not None
    )
    counts = (
        f"n_draft = {found['n_draft']}, n_predict = {found['n_predict']}, n_drafted = {found['n_drafted']}, "
        f"n_accept = {found['n_accept']}, accept = {found['accept']:.3f}%"
    )
    return "\n".join([counts, *lines, ", ".join(times)])


# ------------------------------------------------------------------------------------------------ the suggested K


def suggestion(plain, assisted):
    """Which K the rounds of two texts suggest (`Generation`): of the target alone, and with a draft.

    Returns
    -------
    dict
        best_K: 0 where every K is expected to be slower than the target alone; best_K_from: alpha, c, v as {number of
        tokens: v}, and most_K, the largest K considered. Both None where too little was drafted, and for trees.
    """
    later = [r for r in assisted.rounds[1:] if len(r.drafted)]
    if not later or len(plain.rounds) < 2 or any(r.depth < len(r.drafted) for r in later):
        return {"best_K": None, "best_K_from": None}
    step = median(checking(r) for r in plain.rounds[1:])
    counts = Counter(len(r.drafted) for r in later)
    K = max(counts, key=lambda k: (counts[k], k))  # the usual draft length
    alpha, _, _ = estimate_alpha(assisted.stats.accepted, assisted.stats.rejected)
    c = median(r.seconds["draft"] / len(r.drafted) for r in later) / step
    v = median(checking(r) for r in later if len(r.drafted) == K) / step
    line = np.maximum(1, 1 + (v - 1) * np.arange(2 * K + 1) / K)  # less than 1 is noise
    return {
        "best_K": best_K(alpha, c, line),
        "best_K_from": {"alpha": alpha, "c": c, "v": {str(K + 1): v}, "most_K": 2 * K},
    }


def checking(r):
    """Seconds of a round without the drafting."""
    return r.seconds["target"] + r.seconds["verify"]


def suggestion_line(report):
    """The suggestion in words."""
    K, found = report["best_K"], report["best_K_from"]
    number = f"{K} or more" if K == found["most_K"] else f"{K} (no draft)" if K == 0 else K
    ((m, v),) = found["v"].items()
    numbers = f"alpha {found['alpha']:.2f} of the tokens tested, c {found['c']:.2f}, v({m}) {v:.2f}"
    return f"{number}, by the costs and acceptance of this run ({numbers})"


# ------------------------------------------------------------------------------------------------ what is printed


class JsonView:
    """One JSON object at the end; a progress bar if standard error is a terminal."""

    def __init__(self, report):
        self.n_tokens = report["n_tokens"]

    def begin(self, name):
        self.bar = progress_bar(self.n_tokens, name)

    def see(self, step, record):
        self.bar.update(len(step.tokens))

    def end(self, result):
        self.bar.close()

    def summary(self, report, timings):
        print(dumps(report, indent=1), flush=True)


class TextView:
    """The text as it is generated, coloured by origin on a terminal, then the measurements."""

    def __init__(self, report, tokenizer, stop, show):
        self.prompt, self.n_tokens, self.tokenizer, self.stop = report["prompt"], report["n_tokens"], tokenizer, stop
        self.coloured, self.wanted = has_colours(), show
        for role in ("target", "draft"):
            print(visible(f"{role:8}{described(report[role])}"))
        own = "" if report["draft_temperature"] is None else f" (of the draft {report['draft_temperature']})"
        print(f"K = {report['K']}, temperature {report['temperature']}{own}, seed {report['seed']}, ", end="")
        print(f"verifier {report['verifier']} ({report['exactness']})")
        if report["tree"]:
            print(tree_line(report))
        if report["costs"]:
            print(f"measured: {costs_line(report['costs'])}")

    def colour(self, text, origin):
        return colour(visible(text), origin) if self.coloured else visible(text)

    def begin(self, name):
        self.by_round, self.n_rounds = name == "speculative" and self.wanted == "rounds", 0
        kinds = legend(self.coloured) if self.by_round else legend(self.coloured, ("accepted", "correction", "bonus"))
        print(f"\n{name}" + (f" ({kinds})" if self.by_round or (name == "speculative" and self.coloured) else ""))
        print(self.colour(self.prompt or END_OF_TEXT, "prompt"), end="", flush=True)
        self.decoder, self.text = gpt2np.StreamDecoder(self.tokenizer), ""
        self.bar = progress_bar(self.n_tokens, name, hidden=sys.stdout.isatty())  # there the text shows it

    def see(self, step, record):
        if self.by_round:
            self.n_rounds += 1
            print(f"\n{self.n_rounds:4}  {round_line(record, self.coloured)}", end="", flush=True)
        else:
            for token, origin in zip(step.tokens.tolist(), step.origins):
                self.show(self.decoder.push(token), origin)
            sys.stdout.flush()
        self.bar.update(len(step.tokens))

    def show(self, piece, origin):
        """Print a piece of text, up to the stop text."""
        shown, self.text = len(self.text), self.text + piece
        whole = self.stop.cut(self.text) if self.stop else self.text
        print(self.colour(whole[shown:], origin), end="")

    def end(self, result):
        self.bar.close()
        if not self.by_round:
            self.show(self.decoder.flush(), "plain")
        speed = f"{result['tokens_per_second']:.1f} tokens per second"
        print(f"\n{counted(len(result['tokens']), 'token')} in {result['seconds']:.2f} s, {speed}")

    def summary(self, report, timings):
        ordinary, result = report["autoregressive"], report["speculative"]
        print()
        if report["best_K"] is not None:
            print(f"best K        {suggestion_line(report)}")
        print(f"speedup       {report['speedup']:.2f}")
        print(f"target calls  {result['target_calls']} instead of {len(result['tokens'])}, {acceptance_lines(result)}")
        if report["exactness"] == "LOSSY":
            at_zero = "; at temperature 0 it accepts only the target's most probable tokens"
            changes = "LOSSY: this rule changes the distribution of the text"
            print(f"output        {changes}{at_zero if report['temperature'] == 0 else ''}")
        if report["temperature"] == 0 or RULES[report["verifier"]].one_text:
            print(f"same text     {compared(ordinary['tokens'], result['tokens'])}")
        if report["trace"]:
            print(visible(f"trace         {report['trace']}"))
        print(f"\n{timings}" if timings else "", end="\n" if timings else "", flush=True)


def compared(ordinary, other):
    """Whether two lists of tokens are the same, in words."""
    if ordinary == other:
        return f"yes, all {len(ordinary)} tokens" if len(ordinary) != 1 else "yes, the one token"
    n_same = next((i for i, (a, b) in enumerate(zip(ordinary, other)) if a != b), min(len(ordinary), len(other)))
    return f"no, they differ from token {n_same + 1} of {len(ordinary)} on"


def progress_bar(n_tokens, name, hidden=False):
    hidden = hidden or not sys.stderr.isatty()
    return tqdm(total=n_tokens, desc=name, unit=" tokens", leave=False, disable=hidden)


COMMAND = Command(
    "generate",
    "the comparison itself, which needs no name",
    run,
    DRAFTS | SAMPLING | ONE_DRAFTER | names("prompt prompt_file n_tokens_to_generate stop show trace json timings"),
    checks=(models_are_there,),
    example="--draft_model_size 124M --target_model_size 355M --K 4",
)
