"""The comparison itself, the default command: one text by the target alone, and with a draft."""

import sys
from dataclasses import dataclass
from time import perf_counter

from tqdm import tqdm

from gpt2np import StreamDecoder
from gpt2np.tokenizer import END_OF_TEXT
from speculative import collect
from speculative.measuring.page import lines_of
from speculative.measuring.rows import row_of
from speculative.measuring.table import counted, pair
from speculative.trace import Trace
from speculative.trace.terminal import colour, has_colours, legend, round_line, visible

from .. import options as shared
from ..drafters import rule_of
from ..experiments import groups_of
from ..files import write_trace
from ..journal import Journal
from ..models import Models
from ..options import OF_THE_PROGRAM, option
from ..prompts import prompts_of
from ..samplers import described, pattern_of, with_draft, without_name
from ..settings import settings_of
from ..values import Choice, Written, whole

TAKES = OF_THE_PROGRAM
WORD = "prompt"
LAPS = {"laps": 3, "patience": 3.0}  # of both samplers, in turn; the first is shown


# fmt: off
@dataclass(frozen=True)
class Options(shared.Options):
    show: str = option("text", "S", Choice(("text", "rounds")),
        "how to print the second text: text, or rounds, a line for each call of the target with the accepted and "
        "rejected draft tokens and what replaced them", unless="output", is_aside=True)
    output: str = option("", "FILE.jsonl", Written((".jsonl",)),
        "write the text of each prompt, with the draft, without a comparison; after an interruption the same command "
        "resumes", is_aside=True)
    n_lanes: int = option(8, "N", whole(1, 1024), "with --output: how many texts to generate at once",
        needs="output", is_aside=True)


# fmt: on
def run(options):
    [(options, _)], _ = settings_of(options)
    (write_texts if options.output else compare_texts)(options)


def compare_texts(options):
    """Generate a text by the target alone and with a draft; print both, and what was measured."""
    with Journal(options.json, options) as journal:
        problems = {}
        [group] = groups_of([(options.but(n_lanes=0), {})], journal, problems, **LAPS)
        if problems:
            raise ValueError(next(iter(problems)))
        if len(group.prompts) > 1:
            what = f"{options.prompt_file} has {len(group.prompts)} prompts, one per line, but this command takes one"
            remedy = "give one, write the texts of all with --output, or compare them with `compare`"
            raise ValueError(f"--prompt_file: {what}: {remedy}")
        view = View(options, group)
        [result] = group.results(view.shown)
        alone, run = result.alone[0], result.runs[0]
        if not view.traces:
            if options.trace or options.show == "rounds":
                raise ValueError(
                    f"--json: {options.json} has this comparison, but not its rounds: name a different file"
                )
            view.show_again({"autoregressive": alone, "speculative": run})
        if options.trace:
            write_trace(view.trace(), options.trace)
        lines = [*lines_of(result)]
        if options.grammar and run.tokens[-1] not in view.stop_tokens:
            lines.append(
                f"cut off       --grammar needs more tokens than {len(run.tokens)}: give --n_tokens_to_generate"
            )
        lines += [f"trace         {options.trace}"] if options.trace else []
        journal.finish(lambda: {"rows": [row_of(result, has_texts=True)]}, "\n".join(["", *lines, ""]))


def write_texts(options):
    """Write the prompts and their texts, in order; those already in the file are kept."""
    with Journal(options.output, options) as journal:
        models, n_tokens = Models(options), options.n_tokens_to_generate
        n_lanes = options.n_lanes if options.engine == "numpy" else 1
        prompts = prompts_of(options, *models.target())
        entrant, about = with_draft(options, models, prompts[0].tokens)
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


def text_of(prompt, generation, seed, entrant):
    """The part of a journal for one text."""
    stats = generation.stats
    return {
        "question_id": prompt.question_id, "prompt": prompt.text, "seed": seed,
        "text": entrant.decode(generation.tokens.tolist()),
        "n_tokens": stats.n_tokens, "target_calls": stats.target_calls,
    }  # fmt: skip


class View:
    """Prints both texts as they are generated, coloured by origin on a terminal, and keeps their rounds if asked to."""

    def __init__(self, options, group):
        self.options, self.prompt, entrant = options, group.prompts[0], group.entrants[0]
        self.tokenizer, self.decode, self.ends = entrant.tokenizer, entrant.decode, entrant.ends
        self.stop_tokens = entrant.ends.get("stop_tokens", ())
        self.about = group.abouts[0] | described(options)
        self.is_shown, self.is_kept = options.json is not True, bool(options.json or options.trace)
        self.coloured, self.traces = has_colours(), {}
        own = "" if options.draft_temperature is None else f" (of the draft {options.draft_temperature})"
        tree = options.tree if isinstance(options.tree, int) else counted(len(options.tree), "node")
        self.write(visible(pair(self.about["target"], self.about["draft"])) + "\n")
        self.write(f"K = {options.K}{f', tree {tree}' * (tree != 0)}, temperature {options.temperature}{own}, ")
        self.write(visible(f"seed {options.seed}, verifier {options.verifier} ({rule_of(options).exactness})") + "\n")
        if costs := self.about["costs"]:
            v = " ".join(f"{number:.2f}" for number in costs["v"])
            step = f"an autoregressive step {1000 * costs['step']:.2f} ms"
            self.write(f"measured: {step}, c = {costs['c']:.3f}, v(1..{len(costs['v'])}) = {v}\n")
        if options.grammar:
            is_text = pattern_of(options.grammar) == options.grammar
            self.write(visible(f"grammar {options.grammar}{' (a pattern, not a file)' * is_text}") + "\n")

    def write(self, text, origin="plain"):
        """Print a text. A closed pipe does not end a run whose results go to a file."""
        try:
            if self.is_shown:
                print(colour(text, origin) if self.coloured else text, end="", flush=True)
        except OSError:
            if not self.is_kept:
                raise
            self.is_shown = False

    def head(self, name, kinds=""):
        self.write(f"\n{name}{f' ({kinds})' if kinds else ''}\n")
        self.write(visible(self.prompt.text or END_OF_TEXT) + "\n" * (self.options.template == "chat"), "prompt")

    def end(self, n_tokens, seconds):
        speed = f"{n_tokens / seconds:.1f} tokens per second"
        self.write(f"\n{counted(n_tokens, 'token')} in {seconds:.2f} s, {speed}\n")

    def shown(self, name, rounds):
        """The rounds, each shown as it arrives: what an `Experiment` calls `watch`."""
        name = "autoregressive" if name == "alone" else "speculative"
        by_round = name == "speculative" and self.options.show == "rounds"
        all_kinds = legend(self.coloured) if by_round else legend(self.coloured, ("accepted", "correction", "bonus"))
        self.head(name, all_kinds if by_round or (self.coloured and name == "speculative") else "")
        trace = self.traces[name] = Trace(self.prompt.tokens, self.tokenizer.decode, self.about)
        keeps, n_tokens, stop = by_round or self.options.trace, 0, self.ends.get("stop")
        decoder, text, searched = StreamDecoder(self.tokenizer), "", ""

        def show(piece, origin, token=None):
            """Print a piece of the text, up to the stop text."""
            nonlocal text, searched
            shown, text = len(text), text + piece
            searched += without_name(piece, token, self.tokenizer)
            self.write(visible(text[shown : len(stop.cut(searched)) if stop else len(text)]), origin)

        is_seen = self.is_shown and sys.stdout.isatty()  # on a terminal the text itself shows the progress
        n_all = self.options.n_tokens_to_generate
        with tqdm(total=n_all, unit=" tokens", desc=name, leave=False, disable=is_seen or None) as bar:
            for number, r in enumerate(rounds, 1):
                record = keeps and trace.add(r)
                if by_round:
                    self.write(f"\n{number:4}  {round_line(record, self.coloured)}")
                for token, origin in zip(r.tokens.tolist(), r.origins) if not by_round else ():
                    show("" if token in self.stop_tokens else decoder.push(token), origin, token)
                bar.update(len(r.tokens))
                n_tokens += len(r.tokens)
                yield r
        if not by_round:
            show(decoder.flush(), "plain")
        self.end(n_tokens, rounds.seconds)

    def show_again(self, runs):
        """The texts of an earlier run."""
        for name, run in runs.items():
            self.head(name)
            self.write(visible(self.decode(run.tokens)))
            self.end(len(run.tokens), run.laps[0])

    def trace(self):
        """The trace of the second text; the target's own text is shown next to it, as a race."""
        trace, alone = self.traces["speculative"], self.traces["autoregressive"]
        texts = [text for record in alone.rounds for text in record["texts"]]
        trace.about["alone"] = {"texts": texts, "seconds": [sum(r["seconds"].values()) for r in alone.rounds]}
        return trace
