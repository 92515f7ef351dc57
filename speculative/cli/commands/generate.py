"""The comparison itself, the default command: one text by the target alone, and with a draft."""

import sys
from dataclasses import asdict, dataclass
from time import perf_counter

from tqdm import tqdm

from gpt2np import StreamDecoder
from gpt2np.tokenizer import END_OF_TEXT
from speculative import collect
from speculative.measuring.llama_cpp import counts_of, lines_of
from speculative.measuring.table import counted, pair
from speculative.measuring.twice import (
    SHORT,
    acceptance_lines,
    costs_line,
    gain,
    gain_lines,
    gap_between,
    results_of,
    rounding,
    same_text,
    seconds_of,
)
from speculative.trace import Trace
from speculative.trace.terminal import colour, has_colours, legend, round_line, visible

from .. import options as shared
from ..drafters import rule_of
from ..effects import first_of, needs, one_by_one, writes_texts
from ..files import write_trace
from ..journal import Journal, machine
from ..models import Models
from ..options import OF_THE_PROGRAM, option
from ..prompts import given_prompts
from ..settings import alone, checked, decoded, pattern_of, with_draft, with_processors, without_name
from ..values import Choice, Written, flag, whole

TAKES = OF_THE_PROGRAM
WORD = "prompt"
MOST_LAPS = 3  # laps of both samplers, in turn; the first of each is shown
LONG = 3.0  # seconds for both texts; longer texts are generated only once


# fmt: off
@dataclass(frozen=True)
class Options(shared.Options):
    show: str = option("text", "S", Choice(("text", "rounds")),
        "how to print the second text: text, or rounds, a line for each call of the target with the accepted and "
        "rejected draft tokens and what replaced them", no_effect=writes_texts, is_aside=True)
    timings: bool = option(False, "", flag, "also print counts and times as llama.cpp does",
        no_effect=writes_texts, is_aside=True)
    output: str = option("", "FILE.jsonl", Written((".jsonl",)),
        "write the text of each prompt, with the draft, without a comparison; after an interruption the same command "
        "resumes", is_aside=True)
    n_lanes: int = option(8, "N", whole(1, 1024), "with --output: how many texts to generate at once",
        no_effect=first_of(needs("output"), one_by_one), is_aside=True)


# fmt: on
def run(options):
    options = checked(options)
    if options.output:
        write_texts(options)
        return
    with Journal(options.json, options) as journal:
        compare_texts(options, journal)


def compare_texts(options, journal):
    """Generate each text by the target alone and with a draft; print both, and what was measured."""
    models = Models(options)
    prompts = given_prompts(options, models)
    if len(prompts) > 1 and options.prompt_file:
        what = f"{options.prompt_file} has {len(prompts)} prompts, one per line, but this command takes one"
        remedy = "give one, write the texts of all with --output, or compare them with `compare`"
        raise ValueError(f"--prompt_file: {what}: {remedy}")
    if len(prompts) > 1 and options.trace:
        raise ValueError(f"--trace is for one prompt, got {len(prompts)}")
    if journal.parts and (options.trace or options.show == "rounds"):
        raise ValueError(f"--json: {options.json} has this comparison, but not its rounds: name a different file")
    for number, prompt in enumerate(prompts, 1):
        compare_text(options, models, prompt, f"comparison {number}" if len(prompts) > 1 else "comparison", journal)


def compare_text(options, models, prompt, part, journal):
    """The same for one prompt, which is a part of the journal."""
    assisted, about = with_draft(options, models, prompt.tokens, journal.keep)
    entrants = {"autoregressive": alone(options, models), "speculative": assisted}
    about |= described(options, prompt, assisted)
    view = View(options, about, assisted)
    is_kept = part in journal.parts
    found = journal.keep(part, lambda: measured(options, prompt, entrants, about, view))
    if is_kept:
        view.show_again(found)
    journal.finish({**about, **found}, view.summary(found))


def measured(options, prompt, entrants, about, view):
    """The results of both texts, and the speedup, in plain numbers; the texts are shown as they are generated."""
    generations, found = {}, {}
    for name, entrant in entrants.items():
        keeps_rounds = options.trace or options.show == "rounds"
        trace = Trace(prompt.tokens, entrant.tokenizer.decode, about) if keeps_rounds else None
        rounds = started(entrant, prompt, options)
        generations[name] = collect(prompt.tokens, view.shown(name, rounds, trace))
        text = decoded(generations[name].tokens.tolist(), entrant.tokenizer, entrant.ends)
        found[name] = results_of(generations[name], text)
        view.end(found[name])
        if trace and name == "autoregressive":
            about["alone"] = of_target_alone(trace)
    laps = [[found[name]["seconds"] for name in entrants]]
    while len(laps) < MOST_LAPS and sum(laps[0]) < LONG and min(laps[0]) >= SHORT:
        laps.append([seconds_of(list(started(entrant, prompt, options))) for entrant in entrants.values()])
    found |= gain(laps)
    found["same_tokens"] = found["autoregressive"]["tokens"] == found["speculative"]["tokens"]
    if options.engine != "numpy" and options.temperature == 0:
        texts, assisted = [found[name]["tokens"] for name in entrants], entrants["speculative"]
        sampler = assisted.sampler(len(prompt.tokens))
        found["gap"] = gap_between(*texts, prompt.tokens, sampler.target, sampler.sampling)
    found["llama_cpp"] = counts_of(generations["speculative"].rounds, len(prompt.tokens))
    if options.trace:
        write_trace(trace, options.trace)
    return found


def started(entrant, prompt, options):
    """The rounds of a sampler, after a warm-up.

    The warm-up starts with a token other than the prompt's first. Otherwise a drafter that learns from a text would
    mistake the prompt for the same text and keep its state.
    """
    sampler, n_tokens = entrant.sampler(len(prompt.tokens)), options.n_tokens_to_generate
    other = (prompt.tokens[0] + 1) % entrant.models.target()[0].n_vocab
    sampler.generate([other], min(n_tokens, 8), rule_of(options).noise(options.seed))
    for model in entrant.models.all():
        model.reset()
    return entrant.rounds(prompt.tokens, n_tokens, options.seed)


def write_texts(options):
    """Write the prompts and their texts, in order; those already in the file are kept."""
    with Journal(options.output, options) as journal:
        models, n_tokens = Models(options), options.n_tokens_to_generate
        n_lanes = 1 if one_by_one(options) else options.n_lanes
        prompts = given_prompts(options, models)
        entrant, about = with_draft(options, models, prompts[0].tokens, journal.keep)
        new = [i for i in range(len(prompts)) if f"text {i + 1}" not in journal.parts]
        requests = [prompts[i].tokens for i in new], n_tokens, [options.seed + i for i in new], n_lanes
        bar = tqdm(total=n_tokens * len(new), unit=" tokens", leave=False, disable=None)
        ended, rounds, waiting, started = {}, [], list(new), perf_counter()
        with bar:
            for i, text in entrant.as_they_end(*requests, watch=lambda i, r: bar.update(len(r.tokens))):
                bar.total -= n_tokens - len(text.tokens)
                ended[new[i]] = text
                rounds += text.rounds
                while waiting and waiting[0] in ended:
                    i = waiting.pop(0)
                    part = text_of(prompts[i], ended[i], options.seed + i, entrant)
                    journal.keep(f"text {i + 1}", lambda part=part: part)
        seconds, n_kept = perf_counter() - started, len(prompts) - len(new)
    there = f" ({n_kept} were there)" if n_kept else ""
    print(visible(pair(about["target"], about["draft"])))
    print(visible(f"{counted(len(prompts), 'text')} in {options.output}{there}; {n_lanes} at once"))
    if new:
        stats = collect([], rounds).stats
        print(f"{stats.n_tokens} tokens in {seconds:.2f} s, {stats.n_tokens / seconds:.1f} tokens per second over all")
        print(f"{stats.tokens_per_target_call:.2f} tokens of a text per call of the target")


# ------------------------------------------------------------------------------------------------ what was measured


def text_of(prompt, generation, seed, entrant):
    """The part of a journal for one text."""
    stats = generation.stats
    return {
        "question_id": prompt.question_id, "prompt": prompt.text, "seed": seed,
        "text": decoded(generation.tokens.tolist(), entrant.tokenizer, entrant.ends),
        "n_tokens": stats.n_tokens, "target_calls": stats.target_calls,
    }  # fmt: skip


def described(options, prompt, assisted):
    """The options and the prompt of a comparison, for its report."""
    sampling = {name: value for name, value in asdict(options.sampling).items() if name != "processors"}
    own = with_processors(options, assisted.tokenizer, len(prompt.tokens))
    return {
        "K": options.K, "drafter": options.drafter, "verifier": options.verifier,
        "exactness": rule_of(options).exactness, **sampling, "processors": [str(each) for each in own.processors],
        "draft_temperature": options.draft_temperature, "seed": options.seed, "prompt": prompt.text,
        "prompt_tokens": len(prompt.tokens), "n_tokens": options.n_tokens_to_generate, "stop": options.stop,
        "matmul": getattr(assisted.models.target()[0], "strategy", options.engine), "machine": machine(),
    }  # fmt: skip


def of_target_alone(trace):
    """The text and seconds of each token of the target alone, for the race on the page of the other trace."""
    texts = [text for record in trace.rounds for text in record["texts"]]
    return {"texts": texts, "seconds": [sum(record["seconds"].values()) for record in trace.rounds]}


# ------------------------------------------------------------------------------------------------ in words


class View:
    """Prints the texts as they are generated, coloured by origin on a terminal, then the measurements."""

    def __init__(self, options, about, entrant):
        self.options, self.about, self.tokenizer = options, about, entrant.tokenizer
        self.stop, self.stop_tokens = entrant.ends.get("stop"), entrant.ends.get("stop_tokens", ())
        self.is_shown, self.is_kept = options.json is not True, bool(options.json or options.trace)
        self.coloured = has_colours()
        self.prompt = visible(about["prompt"] or END_OF_TEXT) + "\n" * (options.template == "chat")
        own = "" if options.draft_temperature is None else f" (of the draft {options.draft_temperature})"
        self.write(visible(pair(about["target"], about["draft"])) + "\n")
        self.write(f"K = {options.K}{self.tree()}, temperature {options.temperature}{own}, seed {options.seed}, ")
        self.write(visible(f"verifier {options.verifier} ({about['exactness']})") + "\n")
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
        second, decoder = name == "speculative", StreamDecoder(self.tokenizer)
        text = searched = ""
        by_round = second and self.options.show == "rounds"
        kinds = legend(self.coloured) if by_round else legend(self.coloured, ("accepted", "correction", "bonus"))
        self.write(f"\n{name}" + (f" ({kinds})" if by_round or (second and self.coloured) else "") + "\n")
        self.write(self.prompt, "prompt")

        def show(piece, origin, token=None):
            """Print a piece of the text, up to the stop text."""
            nonlocal text, searched
            shown, text = len(text), text + piece
            searched += without_name(piece, token, self.tokenizer)
            end = len(self.stop.cut(searched)) if self.stop else len(text)
            self.write(visible(text[shown:end]), origin)

        is_seen = self.is_shown and sys.stdout.isatty()  # on a terminal the text itself shows the progress
        with tqdm(total=self.about["n_tokens"], unit=" tokens", desc=name, leave=False, disable=is_seen or None) as bar:
            for number, r in enumerate(rounds, 1):
                record = trace and trace.add(r)
                if by_round:
                    self.write(f"\n{number:4}  {round_line(record, self.coloured)}")
                for token, origin in zip(r.tokens.tolist(), r.origins) if not by_round else ():
                    show("" if token in self.stop_tokens else decoder.push(token), origin, token)
                bar.update(len(r.tokens))
                yield r
        if not by_round:
            show(decoder.flush(), "plain")

    def show_again(self, found):
        """The texts of an earlier run."""
        for name in ("autoregressive", "speculative"):
            self.write(f"\n{name}\n{self.prompt}{visible(found[name]['text'])}")
            self.end(found[name])

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
        if found.get("gap") is not None:
            lines.append(f"rounding      {rounding(found['gap'])}")
        if options.grammar and result["tokens"][-1] not in self.stop_tokens:
            lines.append(f"cut off       --grammar needs more tokens than {n}: give --n_tokens_to_generate")
        lines += [f"trace         {options.trace}"] if options.trace else []
        lines += ["", *lines_of(found["llama_cpp"])] if options.timings else []
        return "\n".join(lines) + "\n"
