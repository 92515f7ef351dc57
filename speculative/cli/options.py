"""Every option of every command, each in one entry: its name, default, bounds and help.

Parsing, --help and docs/options.md follow from the entries. All options are checked before anything is loaded.
"""

from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from itertools import accumulate
from math import inf
from operator import mul
from pathlib import Path
from sys import float_info

from gpt2np.files.model_files import SOURCES
from gpt2np.kernels import matmul
from speculative import Sampling, Shape, StopText
from speculative.drafters.model_tree import RULES as SIBLINGS
from speculative.theory.roofline import ACCELERATORS

from .files import WRITTEN, check_distinct, check_file
from .inputs import either, grammar_pattern, nearest
from .registry import DRAFTERS, RULES

TOKENIZERS = ("auto", "shared", "text")
LENGTHS = ("auto", "heuristic", "confidence")
MOST_NODES = 256  # of a tree
STRATEGIES = (*matmul.STRATEGIES, "plain", "transformers")
HAS_TRANSFORMERS = bool(find_spec("transformers") and find_spec("torch"))
INSTALLED = STRATEGIES if HAS_TRANSFORMERS else STRATEGIES[:-1]
WITH_SHAPES = [name for name, kind in DRAFTERS.items() if kind.trees == "any"]
GROUPS = {  # the headings of the help, each before an option
    "prompt": "The ten to know first",
    "tree": "Drafting",
    "top_k": "Sampling and verification",
    "prompt_file": "Prompts, and the end of a text",
    "models_dir": "Downloads",
    "show": "Output",
    "n_prompts": "Measurements",
    "sizes": "bench",
    "accelerator": "batch_table",
}


# ------------------------------------------------------------------------------------------------ kinds of values


@dataclass(frozen=True)
class Text:
    """Any text, which is never read as a number."""

    def read(self, text):
        """The value that a text on the command line stands for; a text that is no value is left for `check`."""
        return text

    def check(self, name, value):
        """Raise ValueError unless the value is valid for the option of this name."""


@dataclass(frozen=True)
class Number(Text):
    """A finite number within bounds, or one of some words."""

    kind: type | tuple = (int, float)
    least: float = -inf
    most: float = inf
    words: tuple = ()

    def read(self, text):
        return text if text in self.words else number_of(text)

    def check(self, name, value):
        if value is None or (isinstance(value, str) and value in self.words):
            return
        is_number = isinstance(value, self.kind) and not isinstance(value, bool) and abs(value) <= float_info.max
        if not is_number or not self.least <= value <= self.most:
            noun = "whole number" if self.kind is int else "number"
            bounds = f" of {self.least} or more" if self.most == inf else f" from {self.least} to {self.most}"
            bounds = "" if self.least == -inf else bounds
            words = f", or {either(self.words)}" if self.words else ""
            raise ValueError(f"--{name}: expected a {noun}{bounds}{words}, got {shortened(value)}")


@dataclass(frozen=True)
class Choice(Text):
    """One of some words; `choices` may be a registry."""

    choices: object

    def check(self, name, value):
        if value in self.choices:
            return
        if near := nearest(value, self.choices):
            raise ValueError(f"--{name}: there is no {shortened(value)}: did you mean {near}?")
        raise ValueError(f"--{name}: expected one of {', '.join(self.choices)}, got {shortened(value)}")


@dataclass(frozen=True)
class Several(Text):
    """Values separated by commas, kept as one text."""

    each: Text = field(default_factory=Text)

    def check(self, name, value):
        for text in value.split(","):
            if not text:
                raise ValueError(f"--{name}: expected values separated by commas, got {shortened(value)}")
            self.each.check(name, self.each.read(text))


@dataclass(frozen=True)
class Written(Text):
    """The name of a file to write."""

    suffixes: tuple

    def check(self, name, value):
        if value:
            check_file(name, value, self.suffixes)


@dataclass(frozen=True)
class Flag(Text):
    """True where the option is typed without a value; with suffixes, it may also name a file to write."""

    suffixes: tuple = ()

    def read(self, text):
        return {"True": True, "False": False}.get(text, text)

    def check(self, name, value):
        if isinstance(value, bool):
            return
        if not self.suffixes:
            raise ValueError(f"--{name}: expected one of False, True, got {shortened(value)}")
        check_file(name, value, self.suffixes)


def shortened(value):
    text = "a number beyond 1.8e308" if isinstance(value, int) and abs(value) > float_info.max else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def number_of(text):
    """The number that a text spells, an int where possible; a text that spells no number is returned as it is."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def entry(default, value, kind, help):
    """An option: its default, or a function for choices that may grow; the name of its value; its kind; its help."""
    known = {"default_factory": default} if callable(default) else {"default": default}
    return field(**known, metadata={"value": value, "kind": kind, "help": help})


def whole(least, most=inf, words=()):
    return Number(int, least, most, words)


TEXT, AT_LEAST_0 = Text(), Number(least=0)


# ------------------------------------------------------------------------------------------------ the options


@dataclass(frozen=True)
class Options:
    """The options with their defaults, in the order of the help."""

    # fmt: off
    prompt: str = entry("Once upon a time there lived a king who lived in a great forest", "TEXT", TEXT,
        "the text to continue; an empty one starts from <|endoftext|>")
    target_model_size: str = entry("tiny-target", "M", TEXT,
        "the target model: tiny-draft or tiny-target, which are bundled, 124M, 355M, 774M, 1558M, or a folder with a "
        "GPT-2")
    draft_model_size: str = entry("", "M", TEXT,
        "the draft model, for --drafter model only (the smallest of the target's family: tiny-draft for tiny-target, "
        "124M for 355M and larger)")
    drafter: str = entry("model", "D", Choice(DRAFTERS), "what proposes the draft tokens")
    K: int | str = entry(3, "K", whole(1, words=LENGTHS),
        "the draft length, the most tokens drafted per target call\n"
        "N: N tokens\n"
        "auto: chosen from costs measured at the start and the acceptance so far, possibly 0; auto depends on timing, "
        "so one seed may give different texts\n"
        "heuristic: two more after a fully accepted draft, one less otherwise\n"
        "confidence: until the draft model is unsure")
    verifier: str = entry("rejection", "V", Choice(RULES), "the acceptance rule for draft tokens")
    temperature: float = entry(0, "T", AT_LEAST_0,
        "0 always takes the most probable token, 1 samples from the model's own distribution; in Python, Sampling's "
        "default is 1")
    n_tokens_to_generate: int = entry(120, "N", whole(1),
        "how many tokens to generate; fewer only where --stop ends the text")
    seed: int = entry(0, "N", whole(0), "the seed of the random numbers; one seed gives one text")
    trace: str = entry("", "FILE", Written((".html", ".jsonl")),
        "write all rounds with p, q, random numbers and decisions: FILE.html to look at, FILE.jsonl for programs and "
        "for replay")

    tree: str = entry("", "T", TEXT,
        "draft a tree, not a chain; K limits its depth\n"
        "N: N nodes, in the best shape for a typical draft; suffix, and a model at temperature 0 or with --siblings "
        "top, grow the tree where the draft is confident\n"
        "2,2,1: the number of children at each depth\n"
        "auto: the size and shape expected to be fastest, from costs and acceptance measured at the start; auto "
        "depends on timing, so one seed may give different texts")
    siblings: str = entry("without", "S", Choice(SIBLINGS),
        "how a model chooses the children of a node\n"
        "without: draws without replacement\n"
        "drawn: one draw, then the most probable tokens\n"
        "top: the most probable tokens")
    draft_temperature: float | None = entry(None, "T", AT_LEAST_0,
        "the temperature that the draft draws its tokens with; 0 is a greedy draft, as in llama.cpp and by default in "
        "vLLM. The distribution of the text does not depend on it, the number of accepted tokens does (the "
        "temperature of the target)")
    draft_tokenizer: str = entry("auto", "W", Choice(TOKENIZERS),
        "how a draft model with another tokenizer drafts; the distribution of the text does not depend on it\n"
        "shared: only tokens that both vocabularies have\n"
        "text: its text is encoded with the target's tokenizer\n"
        "auto: text at temperature 0, shared above; neither if the draft model has the target's tokenizer")
    corpus: str = entry("", "FILE", TEXT,
        "a text for ngram to count (default: tales that neither bundled model was trained on) and for suffix to copy "
        "from, in addition to the text so far (default: nothing)")
    ngram_table: str = entry("", "FILE", TEXT,
        "stores the counts of ngram: read, and --corpus is not, if the file exists, otherwise counted and written")
    n_max: int = entry(3, "N", whole(1, 1024), "the longest n-gram of ngram, and the longest match of prompt_lookup")
    exit_layer: int = entry(2, "L", whole(1), "the number of layers that early_exit runs")
    frequent: int = entry(0, "N", whole(0), "eagle drafts the N most frequent tokens only; 0 means all")

    top_k: int = entry(0, "N", whole(0),
        "sample from the N most probable tokens only; 0 means all")
    top_p: float = entry(1, "P", Number(), "... from the smallest set of most probable tokens with total probability P")
    min_p: float = entry(0, "P", Number(),
        "... from tokens with at least P times the probability of the most probable one")
    repetition_penalty: float = entry(1, "X", Number(), "above 1, makes tokens that occurred before less probable")
    presence_penalty: float = entry(0, "X", Number(least=-100, most=100),
        "subtracted from the logits of tokens that the new text has already")
    frequency_penalty: float = entry(0, "X", Number(least=-100, most=100), "... as many times as it has them")
    no_repeat_ngram_size: int = entry(0, "N", whole(0),
        "no sequence of N tokens occurs twice in prompt and text; 0 means no limit")
    min_tokens: int = entry(0, "N", whole(0),
        "<|endoftext|> ends the text, but not before N new tokens; 0 means that it ends no text")
    grammar: str = entry("", "G", TEXT,
        "a regular expression that the whole new text matches, such as '[0-9]{4}-[0-9]{2}', or a file with some, one "
        "per line, of which it matches one; <|endoftext|> ends the text")

    prompt_file: str = entry("", "FILE", TEXT,
        "prompts, one per line; - reads standard input. A comparison takes exactly one, an experiment leaves out those "
        "that are too long. In FILE.jsonl each line is a JSON object, so that a prompt may have several lines: "
        '{"prompt": TEXT}, or a question of Spec-Bench or SPEED-Bench, {"question_id": 81, "category": "qa", "turns": '
        "[TEXT, ...]}, of which the first turn is the prompt")
    prompt_template: str = entry("{prompt}", "TEXT", TEXT,
        "the text around a prompt, such as '### Human: {prompt}\\n### Assistant:', where \\n is a line break")
    stop: str = entry("", "TEXT", TEXT, "end the text where the new tokens contain TEXT")
    models_dir: str = entry("models", "DIR", TEXT, "the folder with the models 124M, 355M, ...; downloads go there")
    source: str = entry("hub", "S", Choice(SOURCES),
        "where to download a missing model from: hub (safetensors) or openai (TensorFlow)")
    show: str = entry("text", "S", Choice(("text", "rounds")),
        "how to print the second text: text, or rounds, a line for each call of the target with the accepted and "
        "rejected draft tokens and what replaced them")
    json: bool | str = entry(False, "[FILE.json]", Flag((".json",)),
        "print all measurements as one JSON object and nothing else; with a name, print the page, and write them to "
        "the file, an experiment each finished part at once: after an interruption the same command resumes")
    timings: bool = entry(False, "", Flag(),
        "also print counts and times as llama.cpp does, and the speedup with and without prefill")
    plot: str = entry("", "FILE.png", Written((".png", ".pdf", ".svg")),
        "also draw the table; .pdf or .svg for print; needs matplotlib")

    html: str = entry("", "FILE.html", Written((".html",)),
        "write the page to this file and open no browser; without it, explore.html is written and opened")

    n_prompts: int = entry(36, "N", whole(1, 10_000),
        "the number of prompts, of each kind of text in method_table")
    prompts: str = entry("tales", "P", Choice(("tales", "known")),
        "the prompts without --prompt_file\n"
        "tales: prefixes of tales that neither bundled model was trained on\n"
        "known: the seven of mychen76's script, \"Evaluate LLM fast inference via speculative decoding without "
        "quantization\" (2023)")
    temperatures: str = entry("0,1", "T,T", Several(AT_LEAST_0), "the temperatures of the table")
    max_K: int = entry(10, "K", whole(2, 100), "the largest K of the table")
    drafters: str = entry(lambda: ",".join(DRAFTERS), "D,D", Several(Choice(DRAFTERS)), "the drafters of the table")
    verifiers: str = entry(lambda: ",".join(RULES), "V,V", Several(Choice(RULES)), "the verifiers of the table")
    tree_drafters: str = entry("model,recycling,heads", "D,D", Several(Choice(WITH_SHAPES)), "its drafters")
    tree_sizes: str = entry("4,8,12,16,24", "N,N", Several(whole(1, MOST_NODES)), "the numbers of nodes")
    max_depth: int = entry(4, "N", whole(1, 16), "the maximum depth of a tree")
    target_sizes: str = entry("tiny-draft,tiny-target", "M,M", Several(), "the targets of the table")
    log: str = entry("", "FILE.txt", Written((".txt", ".log")), "write both texts of every prompt")
    spec_bench: str = entry("", "FILE.jsonl", Written((".jsonl",)),
        "write the answers as Spec-Bench's evaluation/speed.py reads them, those of the target alone to "
        "FILE-baseline.jsonl; also print the metrics of Spec-Bench and SPEED-Bench")

    sizes: str = entry("124M,355M", "M,M", Several(),
        "the models to time; a size that is not on disk gets random weights of its shape")
    strategies: str = entry(lambda: ",".join(INSTALLED), "S,S", Several(Choice(STRATEGIES)),
        "panels, rows, plain, and if it is installed transformers, with whole texts by both libraries as well; "
        "see gpt2np/kernels/matmul.py")
    rows: int = entry(9, "N", whole(1, 1023), "passes for 1 to N tokens")
    context: int = entry(100, "N", whole(1, 10_000_000), "with N tokens of context before them, in each text")
    prompt_tokens: int = entry(512, "N", whole(0, 1024), "and one for a prompt of N tokens")
    repeats: int = entry(7, "N", whole(1, 1000), "how often each is timed")

    accelerator: str = entry("H100", "A", Choice(ACCELERATORS),
        f"{either(list(ACCELERATORS))}, with the numbers of its data sheet")
    n_accelerators: int = entry(1, "N", whole(1, 10_000),
        "the number of accelerators that share each model; communication costs nothing here")
    flops: float | None = entry(None, "TFLOPS", Number(least=0.001, most=1_000_000),
        "10^12 operations a second, without sparsity (the accelerator's, in bfloat16)")
    bandwidth: float | None = entry(None, "TB/S", Number(least=0.001, most=10_000),
        "10^12 bytes a second from memory (the accelerator's)")
    memory: float | None = entry(None, "GB", Number(least=0.001, most=1_000_000),
        "10^9 bytes of memory (the accelerator's)")
    alpha: float = entry(0.7, "P", Number(least=0, most=1),
        "the acceptance rate: each draft token is accepted with probability P if those before it are; calibrate "
        "measures it")
    target_params: float = entry(8.03, "N", Number(least=0.001, most=100_000),
        "10^9 parameters of the target, not a mixture of experts")
    target_shape: str = entry("32,32,8,128", "L,H,G,D", Several(whole(1, 100_000)),
        "layers, heads, KV heads and size of a head of the target, as in its config.json: the default is Llama 3.1 8B")
    draft_params: float = entry(1.24, "N", Number(least=0, most=100_000),
        "10^9 parameters of the draft model; 0 for a draft that costs nothing, such as prompt lookup")
    draft_shape: str = entry("16,32,8,64", "L,H,G,D", Several(whole(1, 100_000)),
        "the same four of the draft model: the default is Llama 3.2 1B")
    bytes: float = entry(2, "B", Number(least=0.25, most=8), "the size of a weight, and of a number in the KV cache")
    batch_sizes: str = entry("1,2,4,8,16,32,64,128,256,512", "N,N", Several(whole(1, 100_000)),
        "the numbers of sequences that are generated at once")

    file: str = entry("", "FILE.jsonl", TEXT, "")
    only: str = entry("", "[TEXT]", TEXT, "the mistakes about TEXT")
    # fmt: on

    def __post_init__(self):
        for name, option in ENTRIES.items():
            option.metadata["kind"].check(name, getattr(self, name))
        if self.K == "confidence" and not DRAFTERS[self.drafter].draws:
            raise ValueError(f"--K confidence needs a drafter with probabilities, got {self.drafter}: try auto")
        check_tree(self)
        if "{prompt}" not in self.prompt_template:
            raise ValueError(
                f"--prompt_template: expected a text with {{prompt}} where the prompt goes, such as "
                f"'### Human: {{prompt}}\\n### Assistant:', got {shortened(self.prompt_template)}"
            )
        if self.ngram_table and not Path(self.ngram_table).exists():
            check_file("ngram_table", self.ngram_table)
        if self.plot and not find_spec("matplotlib"):
            raise ValueError("--plot needs matplotlib, which is not installed: pip install matplotlib")
        if "transformers" in self.listed("strategies") and not HAS_TRANSFORMERS:
            raise ValueError("--strategies: transformers is not installed: pip install torch transformers")
        check_distinct({name: getattr(self, name) for name in (*WRITTEN, "prompt_file", "corpus", "file")})
        _ = self.sampling, self.grammar and grammar_pattern(self.grammar)  # runs their checks

    def listed(self, name):
        """The values of an option that is a list, each once."""
        return list(dict.fromkeys(getattr(self, name).split(",")))

    @property
    def sampling(self):
        return Sampling(self.temperature, self.top_k, self.top_p, self.min_p, self.repetition_penalty)

    def draft_sampling(self, sampling):
        """The drafter's own sampling, for a target with this one."""
        own = self.draft_temperature
        return sampling if own is None else replace(sampling, temperature=own)

    def through_text(self, sampling):
        """Whether a draft model with another tokenizer drafts through the text, for a target with this sampling."""
        chosen = self.draft_tokenizer
        return chosen == "text" or (chosen == "auto" and sampling.temperature == 0 and not self.tree)

    @property
    def most_levels(self):
        """The depth of a tree: --K, where it is a number."""
        return 16 if isinstance(self.K, str) else self.K

    @property
    def grown_nodes(self):
        """The number of nodes of --tree; 0 where it is not a number."""
        n = number_of(self.tree)
        return n if type(n) is int else 0

    def shape(self, weights):
        """The Shape of --tree; None for a chain, and for auto, whose shape is found later."""
        if self.tree in ("", "auto"):
            return None
        numbers = [int(number) for number in self.tree.split(",")]
        if len(numbers) == 1:
            return Shape.best(numbers[0], weights, self.most_levels)
        return Shape.widths(*numbers)

    def stop_text(self, tokenizer):
        """The `StopText`, or None."""
        return StopText(self.stop, tokenizer.decode) if self.stop else None


ENTRIES = {option.name: option for option in fields(Options)}
FLAGS = [name for name, option in ENTRIES.items() if isinstance(option.metadata["kind"], Flag)]  # may have no value


# ------------------------------------------------------------------------------------------------ together


def check_tree(options):
    """Raise ValueError unless --tree is valid, alone and with the other options."""
    kind, rule, tree = DRAFTERS[options.drafter], RULES[options.verifier], options.tree
    if not tree and not kind.branches:
        return
    what = "--tree" if tree else f"--drafter {kind.name}"
    if tree and not kind.trees:
        names = [name for name, kind in DRAFTERS.items() if kind.trees]
        raise ValueError(f"--tree {is_for('drafter', names, [kind.name])}")
    if tree and options.draft_tokenizer == "text":
        raise ValueError(f"--tree {is_for('draft_tokenizer', ['auto', 'shared'], ['text'])}")
    if not rule.trees:
        names = ", ".join(name for name, rule in RULES.items() if rule.trees)
        raise ValueError(f"{what} needs a verifier that takes trees ({names}), got {rule.name}")
    if options.K in ("auto", "confidence"):
        auto = "" if tree == "auto" else ", or --tree auto"
        raise ValueError(f"--K {options.K} chooses the length of a chain: for {what} give a number{auto}")
    if tree and kind.trees == "grown" and not options.grown_nodes:
        raise ValueError(f"--tree: expected a number of nodes for --drafter {kind.name}, got {shortened(tree)}")
    if tree in ("", "auto"):
        return
    numbers = [number_of(text) for text in tree.split(",")]
    size = sum(accumulate(numbers, mul)) if all(type(n) is int for n in numbers) else 0
    if not 1 <= size <= MOST_NODES or min(numbers) < 1:
        raise ValueError(
            f"--tree: expected a number of nodes, the number of children for each level (2,2,1), or auto, with at most "
            f"{MOST_NODES} nodes, got {shortened(tree)}"
        )
    if 1 < len(numbers) > options.most_levels:
        raise ValueError(f"--tree {tree} has {len(numbers)} levels: give --K {len(numbers)}, the depth limit")


def is_for(option, wanted, found):
    """The end of a sentence on an option that goes with some values of another one only."""
    return f"is for --{option} {either(wanted)}, not {', '.join(found)}"


def drafters_of(options, names):
    """The drafters that a command with the options `names` will build."""
    one = {"drafter": [options.drafter], "drafters": options.listed("drafters")}
    one["tree_drafters"] = options.listed("tree_drafters")
    return next((kinds for option, kinds in one.items() if option in names), list(DRAFTERS))


def check_used(given, options, names):
    """Raise ValueError for an option that was given to a command with the options `names`, and has no effect there."""
    drafters, unused = drafters_of(options, names), {}
    for name in names:
        users = [kind.name for kind in DRAFTERS.values() if name in kind.options]
        if users and not {*users} & {*drafters}:
            unused[name] = is_for("drafter", users, drafters)
    if "tree" in names and not options.tree:
        unused.setdefault("siblings", "is for --tree")
    if "prompts" in names and options.prompts == "tales" and not options.prompt_file:
        unused["prompt_template"] = "is for --prompt_file and --prompts known"
    if options.prompt_file:
        unused |= dict.fromkeys(("prompt", "prompts", "n_prompts"), "is not for --prompt_file, whose lines are prompts")
    if "strategies" in names and "transformers" not in options.listed("strategies"):
        of_whole_texts = ("draft_model_size", "target_model_size", "K", "n_tokens_to_generate", "n_prompts")
        unused |= dict.fromkeys(of_whole_texts, "is for --strategies transformers")
    for name in given:
        if name in unused:
            raise ValueError(f"--{name} {unused[name]}: leave --{name} out")
