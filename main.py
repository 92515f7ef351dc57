"""Ordinary against speculative generation: the same target model, without and with a draft model.

    python main.py                                  the bundled pair, no download
    python main.py --draft_model_size 124M --target_model_size 355M --K 4

--prompt TEXT              what to continue; an empty one starts from <|endoftext|>
--n_tokens_to_generate N   how many tokens to add, exactly (120)
--draft_model_size M       the model that guesses (tiny-draft), and
--target_model_size M      the model whose text it is (tiny-target): tiny-draft or tiny-target, which are bundled,
                           124M, 355M, 774M, 1558M, or a folder with a GPT-2; both need the same vocabulary
--K K                      how many tokens the draft guesses before the target checks them (4)
--verifier V               the rule that keeps or drops guesses (rejection): rejection, block, exact_match, gumbel
                           (one seed, one text, with and without a draft), or, LOSSY, lenient and typical
--temperature T            0 takes the likeliest token each time, 1 draws from the model's own distribution (0)
--seed N                   of the random numbers: one seed, one text (0)
--models_dir DIR           where the folders 124M, 355M, ... are, and are downloaded to (models)
--source S                 what to download, where a size is not here: hub (safetensors) or openai (TensorFlow) (hub)
--json                     print one JSON object with all that was measured, and nothing else
--help                     print this

    python main.py museum [--json]                  real mistakes, how far each bends the law, which check sees it
"""

import os
import platform
import re
import sys
from json import dumps
from time import perf_counter

import fire
import numpy as np
from tqdm import tqdm

import gpt2np
import speculative
from speculative import AutoregressiveSampler, Gumbel, ModelDrafter, Sampling, SpeculativeSampler, collect
from speculative.interfaces import check_request

PROMPT = "Once upon a time there was a king who had three daughters"
TEXT_OPTIONS = (
    "prompt",
    "draft_model_size",
    "target_model_size",
    "verifier",
    "models_dir",
    "source",
)  # never read as numbers
VERIFIERS = {
    "rejection": speculative.rejection,
    "block": speculative.block,
    "exact_match": speculative.exact_match,
    "gumbel": speculative.exact_match,  # with shared noise
    "lenient": speculative.Lenient(),
    "typical": speculative.Typical(),
}

COLOURS = {"prompt": "\033[2m", "accepted": "\033[32m", "correction": "\033[31m", "bonus": "\033[34m", "plain": ""}


@fire.decorators.SetParseFns(**dict.fromkeys(TEXT_OPTIONS, str))
def compare(
    *words,
    prompt=PROMPT,
    n_tokens_to_generate=120,
    draft_model_size="tiny-draft",
    target_model_size="tiny-target",
    K=4,
    verifier="rejection",
    temperature=0,
    seed=0,
    models_dir="models",
    source="hub",
    json=False,
    **unknown,
):
    """Run both samplers on one prompt and report. The options are checked before anything is loaded or printed."""
    refuse_unknown(words, unknown)
    check_number("n_tokens_to_generate", n_tokens_to_generate, int, 1)
    check_number("K", K, int, 1)
    check_number("temperature", temperature, (int, float), 0)
    check_number("seed", seed, int, 0)
    check_flag("json", json)
    if verifier not in VERIFIERS:
        raise ValueError(f"--verifier: expected one of {', '.join(VERIFIERS)}, got {verifier!r}")
    target, draft, tokenizer = load_pair(target_model_size, draft_model_size, models_dir, source)
    tokens = prompt_tokens(prompt, tokenizer)
    check_request(tokens, n_tokens_to_generate, target)

    sampling = Sampling(temperature=temperature)
    drafter, rule = ModelDrafter(draft, sampling=sampling), VERIFIERS[verifier]
    samplers = {
        "autoregressive": AutoregressiveSampler(target, sampling=sampling),
        "speculative": SpeculativeSampler(target, drafter, verifier=rule, K=K, sampling=sampling),
    }
    noise = Gumbel if verifier == "gumbel" else np.random.default_rng
    report = {
        "target": {"name": target_model_size, "parameters": target.n_params},
        "draft": {"name": draft_model_size, "parameters": draft.n_params},
        "K": K, "temperature": temperature, "seed": seed, "verifier": verifier, "exactness": rule.exactness,
        "prompt": prompt, "prompt_tokens": len(tokens), "n_tokens": n_tokens_to_generate,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}",
    }  # fmt: skip
    view = JsonView(report) if json else TextView(report, tokenizer)
    for name, sampler in samplers.items():
        warm_up(sampler, tokens, n_tokens_to_generate, noise(seed), (target, draft))
        view.begin(name)
        report[name] = measured(*generate(sampler, tokens, n_tokens_to_generate, noise(seed), view.see), tokenizer)
        view.end(report[name])
    report["speedup"] = report["autoregressive"]["seconds"] / report["speculative"]["seconds"]
    report["same_tokens"] = report["autoregressive"]["tokens"] == report["speculative"]["tokens"]
    view.summary(report)


def museum(*words, json=False, **unknown):
    """Print the museum of bugs: each mistake, the error of its law on the toy case, and the check that catches it."""
    refuse_unknown(words, unknown)
    check_flag("json", json)
    from speculative.museum import EXHIBITS, caught_by, law_error

    table = []
    for exhibit in tqdm(EXHIBITS.values(), leave=False, disable=not sys.stderr.isatty()):
        error, message = law_error(exhibit), caught_by(exhibit)
        error = error if error > 1e-12 else 0.0
        check = exhibit.grader.__name__ if message else "NOT CAUGHT"
        table.append({"mistake": exhibit.name, "law_error": error, "check": check, "message": message,
                      "what": exhibit.what, "seen": exhibit.seen})  # fmt: skip
    if json:
        print(dumps(table, indent=1))
        return
    print(f"{'mistake':45}{'law error':12}caught by")
    for row in table:
        print(f"\n{row['mistake']:45}{row['law_error']:<12.2g}{row['check']}")
        print(f"  {row['what']}\n  seen: {row['seen']}")


# ------------------------------------------------------------------------------------------------ the request


def refuse_unknown(words, unknown):
    if words:
        raise ValueError(
            f"unexpected {words[0]!r}: options are --name value, a text of several words in quotes; see --help"
        )
    if unknown:
        raise ValueError(f"unknown option --{next(iter(unknown))}: python main.py --help lists the options")


def check_number(name, value, kind, least):
    if isinstance(value, bool) or not isinstance(value, kind) or not least <= value < float("inf"):
        noun = "whole number" if kind is int else "number"
        raise ValueError(f"--{name}: expected a {noun} of {least} or more, got {value!r}")


def check_flag(name, value):
    if not isinstance(value, bool):
        raise ValueError(f"--{name} takes no value, got {value!r}")


def check_texts(arguments):
    """Raise ValueError if a text option has no value, which fire would take for True."""
    for argument, following in zip(arguments, [*arguments[1:], "--"]):
        is_option = argument.startswith("-") and argument.lstrip("-").replace("-", "_") in TEXT_OPTIONS
        if is_option and re.match(r"-$|--|-[A-Za-z]", following):
            raise ValueError(f"{argument} needs a value; one that begins with a hyphen is written {argument}='-...'")


def load_pair(target_name, draft_name, models_dir, source):
    """(target, draft, tokenizer); ValueError if the two do not share a vocabulary."""
    target, tokenizer = gpt2np.load(target_name, models_dir, source)
    draft, other = gpt2np.load(draft_name, models_dir, source)
    if target.n_vocab != draft.n_vocab or tokenizer.vocabulary != other.vocabulary:
        raise ValueError(
            f"{target_name} and {draft_name} have no common vocabulary ({target.n_vocab} and {draft.n_vocab} tokens): "
            "choose --target_model_size and --draft_model_size from one family"
        )
    return target, draft, tokenizer


def prompt_tokens(prompt, tokenizer):
    """The prompt's token ids; for an empty prompt `<|endoftext|>`, after which a new text begins."""
    if prompt:
        return tokenizer.encode(prompt)
    if tokenizer.end_of_text is None:
        raise ValueError("the prompt is empty, and this vocabulary has no <|endoftext|> to start from: give a --prompt")
    return [tokenizer.end_of_text]


# ------------------------------------------------------------------------------------------------ the run


def warm_up(sampler, tokens, n_tokens, rng, models):
    """A few tokens that do not count: they bring the weights into memory and start the threads."""
    sampler.generate(tokens[:1], min(n_tokens, 8), rng)
    for model in models:
        model.reset()


def generate(sampler, tokens, n_tokens, rng, see):
    """(generation, seconds); `see` is shown each round, in time that does not count."""
    seconds = 0.0

    def steps():
        nonlocal seconds
        rounds = sampler.rounds(tokens, n_tokens, rng)
        while True:
            started = perf_counter()
            step = next(rounds, None)
            seconds += perf_counter() - started
            if step is None:
                return
            see(step)
            yield step

    return collect(tokens, steps()), seconds


def measured(generation, seconds, tokenizer):
    """One sampler's results as plain numbers and lists."""
    stats = generation.stats
    return {
        "text": tokenizer.decode(generation.tokens.tolist()),
        "tokens": generation.tokens.tolist(),
        "origins": [origin for r in generation.rounds for origin in r.origins],
        "seconds": seconds,
        "seconds_by_part": stats.seconds,
        "tokens_per_second": stats.n_tokens / seconds,
        "target_calls": stats.target_calls,
        "tokens_per_target_call": stats.tokens_per_target_call,
        "drafted": stats.drafted,
        "accepted": stats.accepted,
        "acceptance": stats.acceptance,
        "drafted_by_position": stats.drafted_by_position,
        "accepted_by_position": stats.accepted_by_position,
        "acceptance_by_position": stats.acceptance_by_position,
    }


# ------------------------------------------------------------------------------------------------ what is shown


class JsonView:
    """One JSON object at the end, and a bar on standard error where that is a terminal."""

    def __init__(self, report):
        self.n_tokens = report["n_tokens"]

    def begin(self, name):
        self.bar = progress_bar(self.n_tokens, name)

    def see(self, step):
        self.bar.update(len(step.tokens))

    def end(self, result):
        self.bar.close()

    def summary(self, report):
        print(dumps(report, indent=1))


class TextView:
    """The text as it is produced, coloured by origin on a terminal, then the figures."""

    def __init__(self, report, tokenizer):
        self.prompt, self.n_tokens, self.tokenizer = report["prompt"], report["n_tokens"], tokenizer
        dull = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"  # see https://no-color.org
        self.coloured = sys.stdout.isatty() and not dull
        for role in ("target", "draft"):
            print(f"{role:8}{report[role]['name']}, {report[role]['parameters'] / 1e6:.1f} million parameters")
        print(f"K = {report['K']}, temperature {report['temperature']}, seed {report['seed']}, ", end="")
        print(f"verifier {report['verifier']} ({report['exactness']})")

    def colour(self, text, origin):
        return f"{COLOURS[origin]}{text}\033[0m" if self.coloured and COLOURS[origin] else text

    def begin(self, name):
        legend = [self.colour(origin, origin) for origin in ("accepted", "correction", "bonus")]
        print(f"\n{name}" + (f" ({', '.join(legend)})" if name == "speculative" and self.coloured else ""))
        print(self.colour(self.prompt or gpt2np.tokenizer.END_OF_TEXT, "prompt"), end="", flush=True)
        self.decoder = gpt2np.StreamDecoder(self.tokenizer)
        self.bar = progress_bar(self.n_tokens, name, hidden=sys.stdout.isatty())  # there the text shows the progress

    def see(self, step):
        for token, origin in zip(step.tokens.tolist(), step.origins):
            print(self.colour(self.decoder.push(token), origin), end="")
        sys.stdout.flush()
        self.bar.update(len(step.tokens))

    def end(self, result):
        self.bar.close()
        print(self.decoder.flush())
        speed = f"{result['tokens_per_second']:.1f} tokens per second"
        print(f"{len(result['tokens'])} tokens in {result['seconds']:.2f} s, {speed}")

    def summary(self, report):
        ordinary, result, n = report["autoregressive"], report["speculative"], report["n_tokens"]
        shares = [f"{i}: {share:.0%}" for i, share in enumerate(result["acceptance_by_position"], 1)]
        print(f"\nspeedup       {report['speedup']:.2f}")
        print(f"target calls  {result['target_calls']} instead of {ordinary['target_calls']}, ", end="")
        print(f"{result['tokens_per_target_call']:.2f} tokens per call")
        print(f"accepted      {result['accepted']} of {result['drafted']} drafted tokens ({result['acceptance']:.0%})")
        print(f"by position   {'  '.join(shares) or 'nothing was drafted'}")
        if report["exactness"] == "LOSSY":
            print("law           LOSSY: this rule changes the law of the text")
        if report["temperature"] == 0 or report["verifier"] == "gumbel":
            same = [a == b for a, b in zip(ordinary["tokens"], result["tokens"])]
            found = f"yes, all {n} tokens" if all(same) else f"no, not from token {same.index(False) + 1} of {n} on"
            print(f"same text     {found}")


def progress_bar(n_tokens, name, hidden=False):
    hidden = hidden or not sys.stderr.isatty()
    return tqdm(total=n_tokens, desc=name, unit=" tokens", leave=False, disable=hidden)


def main():
    """Run the command; what cannot be done ends in one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a terminal that lacks a character shows a question mark
    if {"--help", "-h"} & set(sys.argv[1:]):
        print(__doc__.strip())
        return
    try:
        check_texts(sys.argv[1:])
        commands = {"museum": museum}
        named = sys.argv[1:2] and sys.argv[1] in commands
        fire.Fire(commands[sys.argv[1]] if named else compare, command=sys.argv[2 if named else 1 :])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("main.py: interrupted; a download goes on from here when it is run again", file=sys.stderr)
        sys.exit(130)
    except (ValueError, OSError, MemoryError) as error:
        print(f"main.py: {error or 'not enough memory'}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
