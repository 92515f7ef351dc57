"""The comparison itself, the default command: one text by the target alone, and with a draft."""

import sys
from dataclasses import asdict
from statistics import median

from tqdm import tqdm

import gpt2np
from gpt2np.tokenizer import END_OF_TEXT
from speculative import collect
from speculative.checks import check_request
from speculative.trace import Trace
from speculative.trace.terminal import colour, legend, round_line, visible

from ..drafters import rule_of
from ..files import write_trace
from ..models import Models
from ..options import OF_THE_PROGRAM, Option, Written, pick, whole
from ..page import acceptance_lines, costs_line, counted, has_colours, pair
from ..prompts import encoded, in_template, questions_in
from ..settings import alone, check_together, check_used, decoded, pattern_of, with_draft, with_processors
from ..texts import write_texts

OPTIONS = pick(OF_THE_PROGRAM)
OPTIONS["output"] = Option(
    "", "FILE.jsonl", Written((".jsonl",)),
    "write the text of each prompt in --prompt_file, with the draft, without a comparison; after an interruption the "
    "same command resumes",
)  # fmt: skip
OPTIONS["n_lanes"] = Option(8, "N", whole(1, 1024), "with --output: how many texts to generate at once")
MOST_LAPS = 3  # laps of both samplers, in turn; the first of each is shown
LONG = 3.0  # seconds for both texts; longer texts are generated only once
SHORT = 0.1  # seconds; the times of shorter texts vary from lap to lap even on a quiet machine
APART = 1.3  # on a quiet machine, the laps differ by less than this factor


def run(options, report):
    check_used(options, [options.drafter], options.tree)
    check_together(options)
    if options.output and options.prompt_file:
        return write_texts(options, report)
    for name in {"output", "n_lanes"} & {*options.given}:
        raise ValueError(f"--{name} is for many prompts: give --output and --prompt_file")
    models, prompt, rule = Models(options, report), prompt_of(options), rule_of(options)
    target, tokenizer = models.target()
    n_tokens, tokens = options.n_tokens_to_generate, encoded(prompt, tokenizer)
    check_request(tokens, n_tokens, target)
    assisted, about = with_draft(options, models, tokens)
    entrants = {"autoregressive": alone(options, models), "speculative": assisted}
    sampling = {name: value for name, value in asdict(options.sampling).items() if name != "processors"}
    processors = [str(processor) for processor in with_processors(options, tokenizer, len(tokens)).processors]
    about |= {
        "K": options.K, "drafter": options.drafter, "verifier": options.verifier, "exactness": rule.exactness,
        **sampling, "processors": processors, "draft_temperature": options.draft_temperature, "seed": options.seed,
        "prompt": prompt, "prompt_tokens": len(tokens), "n_tokens": n_tokens, "stop": options.stop,
        "matmul": target.strategy, "machine": report.about["machine"],
    }  # fmt: skip

    def start(name):
        """The rounds of a sampler, after a warm-up.

        The warm-up starts with a token other than the prompt's first. Otherwise a drafter that learns from a text would
        mistake the prompt for the same text and keep its state.
        """
        sampler = entrants[name].sampler(len(tokens))
        sampler.generate([(tokens[0] + 1) % target.n_vocab], min(n_tokens, 8), rule.noise(options.seed))
        for model in models.all():
            model.reset()
        return entrants[name].rounds(tokens, n_tokens, options.seed)

    view, generations, found = View(options, about, tokenizer, assisted.ends), {}, {}
    for name in entrants:
        trace = Trace(tokens, tokenizer.decode, about) if options.trace or options.show == "rounds" else None
        generations[name] = collect(tokens, view.shown(name, start(name), trace))
        found[name] = measured(generations[name], tokenizer, assisted.ends)
        view.end(found[name])
        if trace and name == "autoregressive":
            about["alone"] = of_target_alone(trace)
    laps = [[found[name]["seconds"] for name in entrants]]
    while len(laps) < MOST_LAPS and sum(laps[0]) < LONG and min(laps[0]) >= SHORT:
        laps.append([seconds_of(list(start(name))) for name in entrants])
    found |= gain(laps)
    found["same_tokens"] = found["autoregressive"]["tokens"] == found["speculative"]["tokens"]
    found["llama_cpp"] = llama_cpp(generations["speculative"].rounds, len(tokens))
    if options.trace:
        write_trace(trace, options.trace)
    report.finish({**about, **found}, view.summary(found))


def prompt_of(options):
    """The prompt of the comparison (str), in its template."""
    some = [question[0] for question in questions_in(options.prompt_file)] if options.prompt_file else [options.prompt]
    if len(some) > 1:
        what = f"--prompt_file: {options.prompt_file} has {len(some)} prompts, one per line, but this command takes one"
        raise ValueError(f"{what}: give one, write the texts of all with --output, or compare them with `compare`")
    return in_template(some[0], options)


# ------------------------------------------------------------------------------------------------ what was measured


def seconds_of(rounds):
    return sum(sum(r.seconds.values()) for r in rounds)


def measured(generation, tokenizer, ends):
    """One sampler's results as plain numbers and lists."""
    stats, tokens, seconds = generation.stats, generation.tokens.tolist(), seconds_of(generation.rounds)
    counts = ("target_calls", "drafted", "accepted", "rejected", "acceptance", "tokens_per_target_call")
    counts += ("drafted_by_position", "accepted_by_position", "acceptance_by_position")
    return {
        "text": decoded(tokens, tokenizer, ends), "tokens": tokens,
        "origins": [origin for r in generation.rounds for origin in r.origins],
        "seconds": seconds, "seconds_by_part": stats.seconds, "tokens_per_second": len(tokens) / seconds,
        **{name: getattr(stats, name) for name in counts},
    }  # fmt: skip


def of_target_alone(trace):
    """The text and seconds of each token of the target alone, for the race on the page of the other trace."""
    texts = [text for record in trace.rounds for text in record["texts"]]
    return {"texts": texts, "seconds": [sum(record["seconds"].values()) for record in trace.rounds]}


def gain(laps):
    """The speedup, a median over laps of (seconds alone, seconds with the draft), and a note if it is unreliable."""
    speedups = [before / after for before, after in laps]
    note = ""
    if min(laps[0]) < SHORT:
        note = f"texts of less than {SHORT} s are too short to measure: generate more"
    elif max(max(times) / min(times) for times in zip(*laps)) > APART:
        note = "this machine is busy, the same run took different times: measure again"
    return {"speedup": median(speedups), "speedups": speedups, "note": note}


def llama_cpp(rounds, n_prompt):
    """Counts, and [tokens, seconds] for each part, under llama.cpp's names. Encoding is the first call."""
    first, *rest = rounds
    n, drafted, accepted = (sum(some) for some in zip(*((len(r.tokens), len(r.drafted), r.n_accepted) for r in rounds)))
    return {
        "encoded": [n_prompt, seconds_of([first])], "decoded": [n - len(first.tokens), seconds_of(rest)],
        "n_draft": max(r.draft.depth for r in rounds), "n_predict": n, "n_drafted": drafted, "n_accept": accepted,
        "accept": 100 * accepted / max(1, drafted),
        "target eval": [sum(len(r.drafted) + 1 for r in rest), sum(r.seconds["target"] for r in rest)],
        "draft eval": [sum(len(r.drafted) for r in rest), sum(r.seconds["draft"] for r in rest)],
        "sample": [n, sum(r.seconds["verify"] for r in rounds)],
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------ in words


def gain_lines(found):
    """Lines: a note, whether the draft paid off, and the speedup."""
    n = len(found["speedups"])
    if found["note"]:
        yield f"note          {found['note']}"
    if found["speedup"] < 1:
        yield "verdict       slower than the target alone; `compare --drafter all --K 1-4` shows what is faster"
    reach = f" ({n} runs: {min(found['speedups']):.2f} to {max(found['speedups']):.2f})" if n > 1 else ""
    yield f"speedup       {found['speedup']:.2f}{reach}"


def timings_lines(found):
    """The lines that llama.cpp prints after a speculative run."""
    counts = found["llama_cpp"]
    for name in ("encoded", "decoded"):
        n, seconds = counts[name]
        yield f"{name} {n:4} tokens in {seconds:8.3f} seconds, speed: {n / max(seconds, 1e-9):8.3f} t/s"
    yield ", ".join(f"{name} = {counts[name]}" for name in ("n_draft", "n_predict", "n_drafted", "n_accept"))
    yield f"accept = {counts['accept']:.3f}%"
    for name in ("target eval", "draft eval", "sample"):
        n, ms = counts[name][0], 1000 * counts[name][1]
        yield f"{name:11} time = {ms:9.1f} ms / {n:5} tokens ({ms / max(n, 1):7.2f} ms per token)"
    yield f"total time = {1000 * found['speculative']['seconds']:.1f} ms"


def same_text(ordinary, other):
    """A phrase that says whether two lists of tokens are the same."""
    if ordinary == other:
        return f"yes, all {len(ordinary)} tokens" if len(ordinary) != 1 else "yes, the one token"
    n_same = next((i for i, (a, b) in enumerate(zip(ordinary, other)) if a != b), min(len(ordinary), len(other)))
    return f"no, they differ from token {n_same + 1} of {len(ordinary)} on"


class View:
    """Prints the texts as they are generated, coloured by origin on a terminal, then the measurements."""

    def __init__(self, options, about, tokenizer, ends):
        self.options, self.about, self.tokenizer = options, about, tokenizer
        self.stop, self.stop_tokens = ends.get("stop"), ends.get("stop_tokens", ())
        self.is_shown, self.is_kept = options.json is not True, bool(options.json or options.trace)
        self.coloured = has_colours()
        own = "" if options.draft_temperature is None else f" (of the draft {options.draft_temperature})"
        self.write(visible(pair(about["target"], about["draft"])) + "\n")
        self.write(f"K = {options.K}{self.tree()}, temperature {options.temperature}{own}, seed {options.seed}, ")
        self.write(f"verifier {options.verifier} ({about['exactness']})\n")
        if about["costs"]:
            self.write(f"measured: {costs_line(about['costs'])}\n")
        if options.grammar:
            is_text = pattern_of(options.grammar) == options.grammar
            self.write(visible(f"grammar {options.grammar}{' (a pattern, not a file)' * is_text}") + "\n")

    def tree(self):
        tree = self.options.tree
        return "" if tree == 0 else f", tree {tree if isinstance(tree, int) else counted(len(tree), 'node')}"

    def write(self, text, origin="plain"):
        """Print a text. A closed pipe does not end a run whose results go to a file."""
        try:
            if self.is_shown:
                print(colour(text, origin) if self.coloured else text, end="", flush=True)
        except OSError:
            if not self.is_kept:
                raise
            self.is_shown = False

    def shown(self, name, rounds, trace):
        """The rounds, each shown as it arrives. Their seconds exclude the time for display."""
        second, text, decoder = name == "speculative", "", gpt2np.StreamDecoder(self.tokenizer)
        by_round = second and self.options.show == "rounds"
        kinds = legend(self.coloured) if by_round else legend(self.coloured, ("accepted", "correction", "bonus"))
        self.write(f"\n{name}" + (f" ({kinds})" if by_round or (second and self.coloured) else "") + "\n")
        self.write(visible(self.about["prompt"] or END_OF_TEXT), "prompt")

        def show(piece, origin):
            """Print a piece of the text, up to the stop text."""
            nonlocal text
            shown, text = len(text), text + piece
            self.write(visible((self.stop.cut(text) if self.stop else text)[shown:]), origin)

        is_seen = self.is_shown and sys.stdout.isatty()  # on a terminal the text itself shows the progress
        with tqdm(total=self.about["n_tokens"], unit=" tokens", desc=name, leave=False, disable=is_seen or None) as bar:
            for number, r in enumerate(rounds, 1):
                record = trace and trace.add(r)
                if by_round:
                    self.write(f"\n{number:4}  {round_line(record, self.coloured)}")
                for token, origin in zip(r.tokens.tolist(), r.origins) if not by_round else ():
                    show("" if token in self.stop_tokens else decoder.push(token), origin)
                bar.update(len(r.tokens))
                yield r
        if not by_round:
            show(decoder.flush(), "plain")

    def end(self, result):
        speed = f"{result['tokens_per_second']:.1f} tokens per second"
        self.write(f"\n{counted(len(result['tokens']), 'token')} in {result['seconds']:.2f} s, {speed}\n")

    def summary(self, found):
        """The lines after both texts."""
        options, result = self.options, found["speculative"]
        n, lossy = len(result["tokens"]), self.about["exactness"] == "LOSSY"
        lines = ["", *gain_lines(found)]
        lines.append(f"target calls  {result['target_calls']} instead of {n}, {acceptance_lines(result)}")
        if lossy:
            greedy = "; at temperature 0 it accepts only the target's most probable tokens" * (options.temperature == 0)
            lines.append(f"output        LOSSY: this rule changes the distribution of the text{greedy}")
        if options.temperature == 0 or rule_of(options).one_text:
            lines.append(f"same text     {same_text(found['autoregressive']['tokens'], result['tokens'])}")
        if options.grammar and result["tokens"][-1] not in self.stop_tokens:
            lines.append(f"cut off       --grammar needs more tokens than {n}: give --n_tokens_to_generate")
        lines += [f"trace         {options.trace}"] if options.trace else []
        lines += ["", *timings_lines(found)] if options.timings else []
        return "\n".join(lines) + "\n"
