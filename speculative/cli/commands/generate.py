"""The comparison itself, the default command: one text by the target alone, and with a draft."""

import sys
from dataclasses import dataclass

from tqdm import tqdm

from gpt2np import StreamDecoder
from gpt2np.tokenizer import END_OF_TEXT
from speculative.measuring.page import lines_of
from speculative.measuring.rows import row_of, rows_of
from speculative.measuring.table import counted, pair
from speculative.trace import Trace
from speculative.trace.terminal import colour, has_colours, legend, round_line, visible

from .. import options as shared
from ..experiments import experiments_of, results_of
from ..files import write_trace
from ..journal import Journal
from ..options import OF_THE_PROGRAM, option
from ..samplers import described, pattern_of, without_name
from ..settings import settings_of
from ..texts import write_texts
from ..values import Choice, Written, flag, whole

TAKES = OF_THE_PROGRAM
WORD = "prompt"
LAPS = {"laps": 3, "patience": 6.0}  # of both samplers, in turn; the first is shown


# fmt: off
@dataclass(frozen=True)
class Options(shared.Options):
    show: str = option("text", "S", Choice(("text", "rounds")),
        "how to print the second text: text, or rounds, a line for each call of the target with the accepted and "
        "rejected draft tokens and what replaced them", unless="output", is_aside=True)
    timings: bool = option(False, "", flag, "also print counts and times as llama.cpp does",
        unless="output", is_aside=True)
    output: str = option("", "FILE.jsonl", Written((".jsonl",)),
        "write the text of each prompt, with the draft, without a comparison; after an interruption the same command "
        "resumes", is_aside=True)
    n_lanes: int = option(8, "N", whole(1, 1024), "with --output: how many texts to generate at once",
        needs="output", is_aside=True)


# fmt: on
def run(options):
    [(options, _)], _ = settings_of(options)
    if options.output:
        write_texts(options)
        return
    with Journal(options.json, options) as journal:
        compare_texts(options, journal)


def compare_texts(options, journal):
    """Generate each text by the target alone and with a draft; print both, and what was measured."""
    if journal.parts and (options.trace or options.show == "rounds"):
        raise ValueError(f"--json: {options.json} has this comparison, but not its rounds: name a different file")
    problems = {}
    experiments = [*experiments_of([(options.but(n_lanes=0), {})], problems, **LAPS)]
    if problems:
        raise ValueError(next(iter(problems)))
    [experiment] = experiments
    n_prompts = len(experiment.prompts)
    if n_prompts > 1 and options.prompt_file:
        fault = f"{options.prompt_file} has {n_prompts} prompts, one per line, but this command takes one"
        remedy = "give one, write the texts of all with --output, or compare them with `compare`"
        raise ValueError(f"--prompt_file: {fault}: {remedy}")
    if n_prompts > 1 and options.trace:
        raise ValueError(f"--trace is for one prompt, got {n_prompts}")
    view = View(options, experiment)
    [result] = results_of(experiment, experiment.run(journal.keep, view.watch))
    view.show_again(result)
    if options.trace:
        write_trace(view.trace(), options.trace)
    lines = ["", *lines_of(result, options.timings)]
    if options.grammar and any(run.tokens[-1] not in view.stop_tokens for run in result.runs):
        n_tokens = len(result.runs[0].tokens)
        lines.append(f"cut off       --grammar needs more tokens than {n_tokens}: give --n_tokens_to_generate")
    lines += [f"trace         {options.trace}"] if options.trace else []

    def rows():
        return {"rows": rows_of([result], by="prompt") if n_prompts > 1 else [row_of(result, has_texts=True)]}

    journal.finish(rows, "\n".join([*lines, ""]))


class View:
    """Prints both texts as they are generated, coloured by origin on a terminal, and keeps their rounds if asked to."""

    def __init__(self, options, experiment):
        self.options, self.prompts = options, experiment.prompts
        self.names = dict(zip(experiment.samplers, ("autoregressive", "speculative")))
        self.entrant = entrant = [*experiment.samplers.values()][1]
        self.tokenizer, self.ends = entrant.tokenizer, entrant.ends
        self.stop_tokens = entrant.ends.get("stop_tokens", ())
        self.is_shown, self.is_kept = options.json is not True, bool(options.json or options.trace)
        self.coloured, self.texts, self.traces = has_colours(), set(), {}

    def write(self, text, origin="plain"):
        """Print a text. A closed pipe does not end a run whose results go to a file."""
        try:
            if self.is_shown:
                print(colour(text, origin) if self.coloured else text, end="", flush=True)
        except OSError:
            if not self.is_kept:
                raise
            self.is_shown = False

    def head(self):
        """What is compared: before the first text."""
        options, about = self.options, self.entrant.about
        drawn_at = "" if options.draft_temperature is None else f" (of the draft {options.draft_temperature})"
        tree = options.tree if isinstance(options.tree, int) else counted(len(options.tree), "node")
        self.write(visible(pair(about["target"], about["draft"])) + "\n")
        self.write(f"K = {options.K}{f', tree {tree}' * (tree != 0)}, temperature {options.temperature}{drawn_at}, ")
        self.write(visible(f"seed {options.seed}, verifier {options.verifier} ({self.entrant.rule.exactness})") + "\n")
        if costs := about["costs"]:
            v = " ".join(f"{number:.2f}" for number in costs["v"])
            step = f"an autoregressive step {1000 * costs['step']:.2f} ms"
            self.write(f"measured: {step}, c = {costs['c']:.3f}, v(1..{len(costs['v'])}) = {v}\n")
        if options.grammar:
            is_text = pattern_of(options.grammar) == options.grammar
            self.write(visible(f"grammar {options.grammar}{' (a pattern, not a file)' * is_text}") + "\n")

    def begin(self, name, i, kinds=""):
        if not self.texts:
            self.head()
        self.texts.add((name, i))
        self.write(f"\n{self.names[name]}{f' ({kinds})' if kinds else ''}\n")
        text = visible(self.prompts[i].text or END_OF_TEXT)
        self.write(text + "\n" * (self.options.template == "chat"), "prompt")

    def end(self, n_tokens, seconds):
        speed = f"{n_tokens / seconds:.1f} tokens per second"
        self.write(f"\n{counted(n_tokens, 'token')} in {seconds:.2f} s, {speed}\n")

    def watch(self, name, i, rounds):
        """The rounds of a text, each shown as it arrives."""
        is_drafted = self.names[name] == "speculative"
        by_round = is_drafted and self.options.show == "rounds"
        all_kinds = legend(self.coloured) if by_round else legend(self.coloured, ("accepted", "correction", "bonus"))
        self.begin(name, i, all_kinds if by_round or (self.coloured and is_drafted) else "")
        about = self.entrant.about | described(self.options)
        trace = self.traces[name] = Trace(self.prompts[i].tokens, self.tokenizer.decode, about)
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
        with tqdm(total=n_all, unit=" tokens", desc=self.names[name], leave=False, disable=is_seen or None) as bar:
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

    def show_again(self, result):
        """The texts of an earlier run."""
        for i, runs in enumerate(zip(result.alone, result.runs)):
            for name, run in zip(self.names, runs):
                if (name, i) not in self.texts:
                    self.begin(name, i)
                    self.write(visible(result.decode(run.tokens)))
                    self.end(len(run.tokens), run.laps[0])

    def trace(self):
        """The trace of the second text; the target's own text is shown next to it, as a race."""
        alone, trace = self.traces.values()
        texts = [text for record in alone.rounds for text in record["texts"]]
        trace.about["alone"] = {"texts": texts, "seconds": [sum(r["seconds"].values()) for r in alone.rounds]}
        return trace
