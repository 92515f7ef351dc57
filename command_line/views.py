"""What is printed: a comparison while it runs, as text or JSON; a trace; the museum.

Next: columns.py
"""

import os
import sys
from json import dumps

from tqdm import tqdm

import gpt2np
from gpt2np.tokenizer import END_OF_TEXT
from speculative.trace.terminal import colour, legend, round_line, visible
from speculative.tree import n_common

from .best_k import suggestion_line
from .registry import RULES


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
        print(f"target calls  {result['target_calls']} instead of {len(result['tokens'])}, ", end="")
        print_acceptance(result)
        if report["exactness"] == "LOSSY":
            at_zero = "; at temperature 0 it accepts only the target's most probable tokens"
            changes = "LOSSY: this rule changes the distribution of the text"
            print(f"output        {changes}{at_zero if report['temperature'] == 0 else ''}")
        if report["temperature"] == 0 or RULES[report["verifier"]].one_text:
            print(f"same text     {compared(ordinary['tokens'], result['tokens'])}")
        if report["trace"]:
            print(visible(f"trace         {report['trace']}"))
        print(f"\n{timings}" if timings else "", end="\n" if timings else "", flush=True)


def has_colours():
    """Whether standard output is a terminal that should show colours."""
    dull = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"  # see https://no-color.org
    return sys.stdout.isatty() and not dull


def print_trace(trace):
    """Print a trace round by round, and its counts."""
    coloured, counts = has_colours(), trace.summary
    text = visible(trace.text)
    print(f"{legend(coloured)}\n\n{colour(text, 'prompt') if coloured else text}")
    for number, record in enumerate(trace.rounds, 1):
        print(f"{number:4}  {round_line(record, coloured)}")
    print(f"\ntarget calls  {counts['target_calls']} for {counted(counts['n_tokens'], 'token')}, ", end="")
    print_acceptance(counts)


def print_acceptance(counts):
    """The end of the line on target calls, and two lines on draft tokens."""
    shares = [f"{i}: {share:.0%}" for i, share in enumerate(counts["acceptance_by_position"], 1)]
    print(f"{counts['tokens_per_target_call']:.2f} tokens per call")
    share = f" ({counts['acceptance']:.0%}), all rounds" if counts["drafted"] else ""
    print(f"accepted      {counts['accepted']} of {counts['drafted']} drafted tokens{share}")
    of = ", of the rounds that drafted this far"
    print(f"by position   {'  '.join(shares) + of if shares else 'nothing was drafted'}")


def described(model):
    """A model in a report, in words."""
    size = f", {model['parameters'] / 1e6:.1f} million parameters" if "parameters" in model else ""
    return model["name"] + size


def tree_line(report):
    """The tree of a comparison, in words."""
    found = report["measured_tree"]
    if not found:
        nodes = report["tree_nodes"]
        return f"tree    {report['tree']}" + (f": {counted(nodes)}" if nodes and str(nodes) != report["tree"] else "")
    size = f"{counted(found['nodes'])} on {counted(found['levels'], 'level')}" if found["nodes"] else "none pays"
    return f"tree    {size}: expected speedup {found['expected_speedup']:.2f} by measured costs and acceptance"


def counted(n, what="node"):
    return f"{n} {what}{'s' if n != 1 else ''}"


def compared(ordinary, other):
    """Whether two lists of tokens are the same, in words."""
    if ordinary == other:
        return f"yes, all {len(ordinary)} tokens" if len(ordinary) != 1 else "yes, the one token"
    n_same = n_common(ordinary, other)
    return f"no, they differ from token {n_same + 1} of {len(ordinary)} on"


def timings_page(stats, target, draft, sampling_seconds, total_seconds):
    """The lines that llama.cpp prints after a speculative run. The models are `Timed`; `draft` may be None."""
    lines = [str(stats)]
    for role, model in (("target", target), ("draft", draft)):
        lines += [f"{role:6}  {line}" for line in str(model).splitlines()] if model else []
    drafting = "" if draft else f"drafting time = {1000 * stats.seconds['draft']:.1f} ms, "
    lines.append(
        f"sampling time = {1000 * sampling_seconds:.1f} ms, {drafting}total time = {1000 * total_seconds:.1f} ms"
    )
    return "\n".join(lines)


def progress_bar(n_tokens, name, hidden=False):
    hidden = hidden or not sys.stderr.isatty()
    return tqdm(total=n_tokens, desc=name, unit=" tokens", leave=False, disable=hidden)


def progress(items, unit=" prompts"):
    """A list with a progress bar, on a terminal."""
    return tqdm(items, leave=False, unit=unit, disable=not sys.stderr.isatty())


# ------------------------------------------------------------------------------------------------ pages


def show(report, page, as_json):
    """Print a report as JSON, or as the text that `page` returns for it."""
    print(dumps(report, indent=1) if as_json else visible(page(report)).removesuffix("\n"), flush=True)


def costs_line(costs):
    v = " ".join(f"{number:.2f}" for number in costs["v"])
    return f"a plain step {1000 * costs['step']:.2f} ms, c = {costs['c']:.3f}, v(1..{len(costs['v'])}) = {v}"


def museum_page(table):
    """The mistakes of the museum, one after the other."""
    lines = [f"{'mistake':45}{'error':12}caught by"]
    for row in table:
        lines.append(f"\n{row['mistake']:45}{row['law_error']:<12.2g}{row['check']}")
        lines.append(f"  {row['what']}\n  seen: {row['seen']}")
    return "\n".join(lines) + "\n"
