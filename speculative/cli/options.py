"""An option with its default, its value and its help, and the options that several commands share, one entry each.

A command's OPTIONS are the options that only it has and some of these, chosen by `pick`. Parsing, lists and the help
follow from the entries.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import accumulate
from math import inf
from operator import mul
from re import fullmatch
from types import SimpleNamespace

from gpt2np.files.model_files import SOURCES
from speculative import Sampling, Shape
from speculative.drafters.model_tree import RULES as SIBLINGS

from .brought import brought
from .drafters import DRAFTERS, LENGTHS, RULES, TOKENIZERS
from .files import check_readable, check_writable
from .models import check_model_name, nearest

MOST_NODES = 256  # the largest number of nodes in a tree


@dataclass(frozen=True)
class Option:
    """An option of a command."""

    default: object
    value: str  # the name of its value in the help
    read: Callable  # text -> value; ValueError says what was expected
    help: str


# ------------------------------------------------------------------------------------------------ how a text is read


def number(kind=float, least=-inf, most=1e300, words=()):
    """Reads a number within bounds, or one of `words`, a registry; a number without a point is an int."""

    def read(given):
        if given in words:
            return given
        try:
            value = int(given) if fullmatch(r"[-+]?\d{1,300}", given) else kind(given)
        except ValueError:
            value = None
        if value is not None and least <= value <= most:
            return value
        noun = "whole number" if kind is int else "number"
        bounds = f" of {least} or more" if most >= 1e12 else f" from {least} to {most}"
        others = f", or {' or '.join(words)}" if words else ""
        raise ValueError(f"expected a {noun}{bounds if least > -inf else ''}{others}, got {given[:60]!r}")

    read.names = words  # for the help
    return read


def whole(least=0, most=10**30, words=()):
    return number(int, least, most, words)


@dataclass(frozen=True)
class Choice:
    """Reads one of `names`, a sequence or a registry; with `brings`, FILE.py:NAME is allowed as well."""

    names: object
    brings: bool = False

    def __call__(self, given):
        if given in self.names:
            return given
        if self.brings and ".py" in given:
            return brought(given) and given
        if near := nearest(given, self.names):
            raise ValueError(f"there is no {given[:60]!r}: did you mean {near}?")
        of_ones_own = ", or FILE.py:NAME" if self.brings else ""
        raise ValueError(f"expected one of {', '.join(self.names)}{of_ones_own}, got {given[:60]!r}")


def flag(given):
    if given not in ("True", "False"):
        raise ValueError(f"expected no value, got {given[:60]!r}")
    return given == "True"


@dataclass(frozen=True)
class Written:
    """Reads the name of a file to write; with `or_none`, also an option without a value."""

    suffixes: tuple
    or_none: bool = False

    def __call__(self, given):
        if self.or_none and given in ("True", "False"):
            return given == "True"
        if ".png" in self.suffixes and not find_spec("matplotlib"):
            raise ValueError("a plot needs matplotlib, which is not installed: pip install matplotlib")
        return check_writable(given, self.suffixes)


def takes_no_value(option):
    return option.read is flag or getattr(option.read, "or_none", False)


def tree(given):
    """Reads a number of nodes, or the number of children at each depth, 2x2x1, as a Shape."""
    numbers = [int(n) if fullmatch(r"[0-9]{1,9}", n) else -1 for n in given.split("x")]
    if min(numbers) < (len(numbers) > 1) or sum(accumulate(numbers, mul)) > MOST_NODES:
        raise ValueError(
            f"expected a number of nodes up to {MOST_NODES} (0: no tree), or the number of children at each depth, "
            f"such as 2x2x1, got {given[:60]!r}"
        )
    return numbers[0] if len(numbers) == 1 else Shape.widths(*numbers)


def inches(given):
    """Reads the size of a plot, 6.4x4.2, as (width, height)."""
    sizes = given.split("x")
    if len(sizes) != 2 or not all(fullmatch(r"\d{1,2}(\.\d+)?", n) and 1 <= float(n) <= 50 for n in sizes):
        raise ValueError(f"expected width and height in inches, from 1 to 50, such as 3.3x2.5, got {given[:60]!r}")
    return tuple(map(float, sizes))


def template(given):
    """Reads the text around a prompt."""
    if "{prompt}" not in given:
        raise ValueError(f"expected a text with {{prompt}} where the prompt goes, got {given[:60]!r}")
    return given.replace("\\n", "\n")


# ------------------------------------------------------------------------------------------------ the options


# fmt: off
SHARED = {
    "prompt": Option("Once upon a time there lived a king who lived in a great forest", "TEXT", str,
        "the text to continue; an empty one starts from <|endoftext|>"),
    "target_model_size": Option("tiny-target", "M", check_model_name,
        "the target model: tiny-draft or tiny-target, which are bundled, 124M, 355M, 774M, 1558M, or a folder with a "
        "GPT-2"),
    "draft_model_size": Option("", "M", check_model_name,
        "the draft model, for --drafter model only (the smallest of the target's family: tiny-draft for tiny-target, "
        "124M for 355M and larger)"),
    "drafter": Option("model", "D", Choice(DRAFTERS, brings=True), "the source of the draft tokens"),
    "K": Option(3, "K", whole(1, words=LENGTHS),
        "the draft length, the most tokens drafted per target call\n"
        "N: N tokens"),
    "verifier": Option("rejection", "V", Choice(RULES, brings=True), "the acceptance rule for draft tokens"),
    "temperature": Option(0, "T", number(least=0),
        "0 always takes the most probable token, 1 samples from the model's own distribution; in Python, Sampling's "
        "default is 1"),
    "n_tokens_to_generate": Option(120, "N", whole(1),
        "how many tokens to generate; fewer only where the text ends by itself, see --stop, --grammar, --min_tokens"),
    "seed": Option(0, "N", whole(0), "the seed of the random numbers; one seed gives one text"),
    "trace": Option("", "FILE", Written((".html", ".jsonl")),
        "write all rounds with p, q, random numbers and decisions: FILE.html to look at, FILE.jsonl for programs"),
    "tree": Option(0, "T", tree,
        "draft a tree, not a chain; K limits its depth\n"
        "0: a chain, or the drafter's own tree\n"
        "N: N nodes, in the best shape for a typical draft; suffix, and a model at temperature 0 or with --siblings "
        "top, grow the tree where the draft is confident\n"
        "2x2x1: the number of children at each depth"),
    "siblings": Option("without", "S", Choice(tuple(SIBLINGS)),
        "how a model chooses the children of a node\n"
        "without: sampled without replacement\n"
        "drawn: one sampled, then the most probable tokens\n"
        "top: the most probable tokens"),
    "draft_temperature": Option(None, "T", number(least=0),
        "the temperature at which the draft is sampled; 0 is a greedy draft, as in llama.cpp and by default in "
        "vLLM. The distribution of the text does not depend on it, but the number of accepted tokens does (the "
        "temperature of the target)"),
    "draft_tokenizer": Option("auto", "W", Choice(TOKENIZERS),
        "how a draft model with a different tokenizer drafts; the distribution of the text does not depend on it\n"
        "shared: only tokens that both vocabularies have\n"
        "text: its text is encoded with the target's tokenizer\n"
        "auto: text at temperature 0, shared above; neither if the draft model has the target's tokenizer"),
    "corpus": Option("", "FILE", check_readable,
        "a text in which ngram counts (default: tales that neither bundled model was trained on) and from which suffix "
        "copies, in addition to the text so far (default: nothing)"),
    "n_max": Option(3, "N", whole(1, 1024), "the maximum n for ngram, and the longest match for prompt_lookup"),
    "exit_layer": Option(2, "L", whole(1), "the number of layers that early_exit runs"),
    "frequent": Option(0, "N", whole(0), "draft only the N most frequent tokens; 0 means all"),
    "top_k": Option(0, "N", whole(0), "sample only from the N most probable tokens; 0 means all"),
    "top_p": Option(1, "P", number(), "... from the smallest set of most probable tokens with total probability P"),
    "min_p": Option(0, "P", number(), "... from tokens with at least P times the probability of the most probable one"),
    "repetition_penalty": Option(1, "X", number(), "above 1, makes tokens that occurred before less probable"),
    "presence_penalty": Option(0, "X", number(least=-100, most=100),
        "subtracted from the logits of tokens that are already in the new text"),
    "frequency_penalty": Option(0, "X", number(least=-100, most=100), "... once for each occurrence"),
    "no_repeat_ngram_size": Option(0, "N", whole(),
        "no sequence of N tokens occurs twice in prompt and text; 0 means no limit"),
    "min_tokens": Option(0, "N", whole(),
        "<|endoftext|> ends the text, but not before N new tokens; with 0 it does not end the text"),
    "grammar": Option("", "G", str,
        "a regular expression that the whole new text matches, such as '[0-9]{4}-[0-9]{2}', or a file of them, one "
        "per line, one of which it matches; <|endoftext|> ends the text"),
    "prompt_file": Option("", "FILE", str,
        "prompts, one per line; - reads standard input. In FILE.jsonl each line is a JSON object, so that a prompt may "
        'have several lines: {"prompt": TEXT}, or a question of Spec-Bench or SPEED-Bench, {"question_id": 81, '
        '"category": "qa", "turns": [TEXT, ...]}, of which the first turn is the prompt'),
    "prompt_template": Option("{prompt}", "TEXT", template,
        "the text around a prompt, such as '### Human: {prompt}\\n### Assistant:', where \\n is a line break"),
    "prompts": Option("tales", "P", Choice(("tales", "repeating", "known")),
        "the prompts without --prompt_file\n"
        "tales: prefixes of tales that neither bundled model was trained on\n"
        "repeating: the same 200 greedy tokens later, where greedy text repeats itself\n"
        "known: the seven of mychen76's script, \"Evaluate LLM fast inference via speculative decoding without "
        "quantization\" (2023)"),
    "n_prompts": Option(12, "N", whole(1, 10_000), "the number of prompts"),
    "stop": Option("", "TEXT", str, "end the text where the new tokens contain TEXT"),
    "models_dir": Option("models", "DIR", str, "the folder with the models 124M, 355M, ...; downloads go there"),
    "source": Option("hub", "S", Choice(tuple(SOURCES)),
        "where to download a missing model from: hub (safetensors) or openai (TensorFlow)"),
    "show": Option("text", "S", Choice(("text", "rounds")),
        "how to print the second text: text, or rounds, a line for each call of the target with the accepted and "
        "rejected draft tokens and what replaced them"),
    "json": Option(False, "[FILE.json]", Written((".json",), or_none=True),
        "print only the measurements, as one JSON object. With FILE.json: print the usual page, and save each finished "
        "part at once, so that the same command resumes after an interruption"),
    "timings": Option(False, "", flag, "also print counts and times as llama.cpp does"),
    "plot": Option("", "FILE.png", Written((".png", ".pdf", ".svg")),
        "also draw the table; .pdf or .svg for print; needs matplotlib"),
    "plot_size": Option(None, "WxH", inches, "width and height of the plot in inches (5 x 4 for each panel)"),
}
# fmt: on
PAIR = "target_model_size draft_model_size "
DRAFTING = "drafter K verifier tree siblings draft_temperature draft_tokenizer corpus n_max exit_layer frequent "
SAMPLING = "temperature top_k top_p min_p repetition_penalty n_tokens_to_generate seed "
SAMPLING += "presence_penalty frequency_penalty no_repeat_ngram_size min_tokens "
ENDS = "grammar stop "
PROMPTS = "prompt_file prompt_template prompts n_prompts "
FILES = "models_dir source json "
OF_THE_PROGRAM = (PAIR + DRAFTING + SAMPLING + ENDS + FILES).split()  # available without a command
OF_THE_PROGRAM += ["prompt", "prompt_file", "prompt_template", "show", "trace", "timings"]


def pick(names, **defaults):
    """Some of the shared options, in the order of SHARED, with different defaults for some."""
    names = names.split() if isinstance(names, str) else names
    chosen = {name: option for name, option in SHARED.items() if name in names}
    return chosen | {name: replace(SHARED[name], default=value) for name, value in defaults.items()}


class Options(SimpleNamespace):
    """The values of a command's options, as attributes; other options in SHARED have their default values.

    `given` lists the names of the options that were typed; `processors` are the logits processors of `processors_of`.
    """

    def __init__(self, **values):
        super().__init__(**{name: option.default for name, option in SHARED.items()}, processors=(), given=())
        vars(self).update(values)

    def but(self, **values):
        return Options(**vars(self) | values)

    @property
    def sampling(self):
        return Sampling(self.temperature, self.top_k, self.top_p, self.min_p, self.repetition_penalty, self.processors)


def read(options, texts, lists=()):
    """The `Options` from these texts (dict name -> str); an option in `lists` becomes a dict text -> value."""
    values = {}
    for name, option in options.items():
        given, default, is_list = texts.get(name), option.default, name in lists
        if given is None and is_list and "," in str(default):
            given = default
        try:
            if given is None:
                values[name] = {str(default): default} if is_list else default
            elif given in ("True", "False") and not takes_no_value(option):  # python-fire's word for a missing value
                raise ValueError(f"expected a value; write one that starts with a hyphen as --{name}='-...'")
            else:
                found = {part: option.read(part) for part in (parts(given, option) if is_list else [given])}
                values[name] = found if is_list else found[given]
        except ValueError as error:
            raise ValueError(f"--{name}: {error}") from None
    return Options(**values, given=tuple(texts))


def parts(given, option):
    """The values of a list, 1,2,4 or 1-8 or all."""
    if given == "all" and isinstance(option.read, Choice):
        return list(option.read.names)
    if (span := fullmatch(r"(\d{1,4})-(\d{1,4})", given)) and int(span[1]) <= int(span[2]):
        return [str(n) for n in range(int(span[1]), int(span[2]) + 1)]
    return given.split(",")
