"""The comparison, which runs without a command: both samplers on one prompt, and the difference between them.

Both texts are shown as they are generated. Then both are generated again, in turn, to see how far the times can be
trusted, see ../verdict.py.
"""

import sys
from dataclasses import asdict, replace
from functools import partial
from json import dumps

from tqdm import tqdm

import gpt2np
from gpt2np.tokenizer import END_OF_TEXT
from speculative import AutoregressiveSampler, SpeculativeSampler
from speculative.checks import check_request
from speculative.trace import Trace
from speculative.trace.terminal import colour, legend, round_line, visible

from ..clocks import Timed
from ..files import deliver
from ..inputs import ends_by_itself, load, processors_of, prompt_of, prompt_tokens
from ..registry import DRAFTERS, RULES, Context, draft_length, drafter_of, size_of
from ..report import machine
from ..tables import acceptance_lines, costs_line, counted, drafted, has_colours, pair, tree_line
from ..verdict import clocked, laps, lines, outcome, suggestion
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
    sampling = replace(options.sampling, processors=processors_of(options, tokenizer, len(tokens)))
    stop_tokens = {tokenizer.end_of_text} if ends_by_itself(options) else set()
    drafter, measured_tree = drafter_of(options, setting, tokens, sampling)
    K, costs = draft_length(options, setting, drafter, tokens)
    is_tree = options.tree or DRAFTERS[options.drafter].branches
    finds_it = ("--tree auto" if setting.tree else "") if is_tree else "--K auto"  # the best size, by itself
    about = {
        "target": {"name": options.target_model_size, "parameters": model.n_params},
        "draft": setting.about, "drafter": options.drafter, "K": options.K, "costs": costs,
        "tree": options.tree, **size_of(drafter, options), "measured_tree": measured_tree,
        "seed": options.seed, "verifier": rule.name, "exactness": rule.exactness, **asdict(options.sampling),
        "processors": [str(processor) for processor in sampling.processors],
        "draft_temperature": options.draft_temperature,
        "prompt": prompt, "prompt_tokens": len(tokens), "n_tokens": n_tokens, "stop": options.stop,
        "matmul": model.strategy, "machine": machine(),
    }  # fmt: skip
    report = {**about, "auto": "" if "auto" in (options.K, options.tree) else finds_it, "trace": options.trace}
    view = JsonView(report) if options.json is True else TextView(report, tokenizer, stop, stop_tokens, options.show)
    samplers = {
        "autoregressive": AutoregressiveSampler(target, sampling=sampling),
        "speculative": SpeculativeSampler(target, drafter, verifier=rule.verifier, K=K, sampling=sampling),
    }

    def start(sampler):
        warm_up(sampler, tokens, n_tokens, rule.noise(options.seed), [target, *drafts])
        return sampler.rounds(tokens, n_tokens, rule.noise(options.seed), stop_tokens=stop_tokens, stop=stop)

    generations, seconds = [], []
    for name, sampler in samplers.items():
        rounds = start(sampler)
        trace = Trace(tokens, tokenizer.decode, about) if options.trace or options.show == "rounds" else None
        view.begin(name)
        generation, times = clocked(tokens, rounds, lambda step, trace=trace: view.see(step, trace and trace.add(step)))
        generations.append(generation)
        seconds.append(times)
        report[name] = measured(generation, sum(times), tokenizer, stop, stop_tokens)
        report[name]["prefill_seconds"] = sum(model.prompt_seconds for model in (target, *drafts))
        view.end(report[name])
        if trace and name == "autoregressive":
            about["alone"] = of_target_alone(trace)
    draft = drafts[0] if drafts else None
    report["llama_cpp"] = llama_cpp(len(tokens), generation.stats, target, draft, sum(times))
    timings = timings_page(target, draft, report) if options.timings else ""
    report["same_tokens"] = report["autoregressive"]["tokens"] == report["speculative"]["tokens"]
    report["cut_off"] = bool(options.grammar) and report["speculative"]["tokens"][-1] not in stop_tokens
    again, later, share = laps([partial(start, sampler) for sampler in samplers.values()], seconds)
    report |= outcome(*map(sum, seconds), again, share)
    levels = min(options.most_levels, getattr(drafter, "most_levels", options.most_levels))
    rounds = [[*first.rounds[1:], *more] for first, more in zip(generations, later)]
    report |= suggestion(*rounds, generation.stats, levels if is_tree and setting.tree else None)
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


def measured(generation, seconds, tokenizer, stop, stop_tokens):
    """One sampler's results as plain numbers and lists."""
    stats, tokens = generation.stats, generation.tokens.tolist()
    text = tokenizer.decode(token for token in tokens if token not in stop_tokens)
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


def llama_cpp(n_prompt, stats, target, draft, seconds):
    """Counts and times under llama.cpp's names; times in milliseconds. The models are `Timed`; `draft` may be None.

    Encoding is the first call of each model, which processes the prompt; decoding is the rest. A model's sample time is
    its share of the seconds without its calls. A drafter without a model has a drafting time instead.
    """
    encoding = target.prompt_seconds + (draft.prompt_seconds if draft else 0)
    drafting = stats.seconds["draft"]
    sampling = {"sample time": 1000 * (seconds - drafting - target.seconds)}
    return {
        "encoded": {"tokens": n_prompt, "time": 1000 * encoding},
        "decoded": {"tokens": stats.n_tokens, "time": 1000 * (seconds - encoding)},
        "n_draft": len(stats.drafted_by_position),
        "n_predict": stats.n_tokens,
        "n_drafted": stats.drafted,
        "n_accept": stats.accepted,
        "accept": 100 * stats.acceptance,
        "target": target.report() | sampling,
        "draft": draft.report() | {"sample time": 1000 * (drafting - draft.seconds)} if draft else None,
        "drafting time": None if draft else 1000 * drafting,
        "total time": 1000 * seconds,
    }


def timings_page(target, draft, report):
    """The lines that llama.cpp prints after a speculative run, and the speedup of this run with and without prefill."""
    found, samplers, lines = report["llama_cpp"], (report["autoregressive"], report["speculative"]), []
    for name in ("encoded", "decoded"):
        n, seconds = found[name]["tokens"], found[name]["time"] / 1000
        lines.append(f"{name} {n:4} tokens in {seconds:8.3f} seconds, speed: {n / seconds:8.3f} t/s")
    lines.append(
        f"n_draft = {found['n_draft']}, n_predict = {found['n_predict']}, n_drafted = {found['n_drafted']}, "
        f"n_accept = {found['n_accept']}, accept = {found['accept']:.3f}%"
    )
    for role, model in {"target": target, "draft": draft}.items():
        if model:
            lines += [f"{role:6}  {line}" for line in str(model).splitlines()]
            lines.append(f"{role:6}  sample time      = {found[role]['sample time']:9.1f} ms")
    times = (f"{name} = {found[name]:.1f} ms" for name in ("drafting time", "total time") if found[name] is not None)
    lines.append(", ".join(times))
    before, after = (sampler["seconds"] for sampler in samplers)
    decoding, other = (sampler["seconds"] - sampler["prefill_seconds"] for sampler in samplers)
    lines.append(f"speedup of the runs shown: {before / after:.2f} with prefill, {decoding / other:.2f} without")
    return "\n".join(lines)


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

    def __init__(self, report, tokenizer, stop, stop_tokens, show):
        self.prompt, self.n_tokens, self.tokenizer, self.stop = report["prompt"], report["n_tokens"], tokenizer, stop
        self.stop_tokens = stop_tokens
        self.coloured, self.wanted = has_colours(), show
        print(visible(pair(report)))
        own = "" if report["draft_temperature"] is None else f" (of the draft {report['draft_temperature']})"
        print(f"{drafted(report)}, temperature {report['temperature']}{own}, seed {report['seed']}, ", end="")
        print(f"verifier {report['verifier']} ({report['exactness']})")
        if report["measured_tree"]:
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
                self.show("" if token in self.stop_tokens else self.decoder.push(token), origin)
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
        print(*lines(report), sep="\n")
        print(f"target calls  {result['target_calls']} instead of {len(result['tokens'])}, {acceptance_lines(result)}")
        if report["exactness"] == "LOSSY":
            at_zero = "; at temperature 0 it accepts only the target's most probable tokens"
            changes = "LOSSY: this rule changes the distribution of the text"
            print(f"output        {changes}{at_zero if report['temperature'] == 0 else ''}")
        if report["temperature"] == 0 or RULES[report["verifier"]].one_text:
            print(f"same text     {compared(ordinary['tokens'], result['tokens'])}")
        if report["cut_off"]:
            print(f"cut off       --grammar needs more tokens than {self.n_tokens}: give --n_tokens_to_generate")
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


LOOK_BACK = names("presence_penalty frequency_penalty no_repeat_ngram_size min_tokens grammar")
COMMAND = Command(
    "generate",
    "the comparison itself, which needs no name",
    run,
    DRAFTS
    | SAMPLING
    | ONE_DRAFTER
    | LOOK_BACK
    | names("prompt prompt_file prompt_template n_tokens_to_generate stop show trace json timings"),
    checks=(models_are_there,),
    example="--draft_model_size 124M --target_model_size 355M --K 4",
)
