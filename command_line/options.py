"""All options of all commands, with defaults and bounds. They are checked before anything is loaded.

Next: arguments.py
"""

import math
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from math import inf
from pathlib import Path
from sys import float_info

from gpt2np.files.model_files import SOURCES
from gpt2np.kernels import matmul
from speculative import Sampling, StopText, best_tree, widths
from speculative.drafters.model_tree import RULES as TREE_RULES

from .files import WRITTEN, check_distinct, check_file
from .registry import DRAFTERS, RULES

LENGTHS = ("auto", "heuristic", "confidence")
TREE_DRAFTERS = [name for name, kind in DRAFTERS.items() if kind.draws or kind.trees]
MOST_NODES = 256  # of a tree
STRATEGIES = (*matmul.STRATEGIES, "plain", "transformers")
HAS_TRANSFORMERS = bool(find_spec("transformers") and find_spec("torch"))


def whole(default, least, most=inf):
    return field(default=default, metadata={"kind": int, "least": least, "most": most})


def number(default, least=-inf):
    """A finite number; bounds that are not given here are checked by `Sampling`."""
    return field(default=default, metadata={"kind": (int, float), "least": least, "most": inf})


def number_or_none(least=-inf):
    """As `number`; None, where the option is not given, has a meaning of its own."""
    return field(default=None, metadata={"kind": (int, float), "least": least, "most": inf, "optional": True})


def choice(default, choices):
    return field(default=default, metadata={"choices": choices})


def several(default, **of_each):
    """Values separated by commas; `default` may be a function, for choices that are known only later."""
    kind = {"default_factory": default} if callable(default) else {"default": default}
    return field(**kind, metadata={"listed": True, **of_each})


def flag():
    """An option that is True where it is typed without a value."""
    return field(default=False, metadata={"choices": (False, True)})


def file(*suffixes):
    """The name of a file to write."""
    return field(default="", metadata={"suffixes": suffixes})


@dataclass(frozen=True)
class Options:
    """The options with their defaults; `--help` explains them. An option of type str is never parsed as a number."""

    # a comparison, and what the experiments share with it
    prompt: str = "Once upon a time there lived a king who lived in a great forest"
    prompt_file: str = ""
    n_tokens_to_generate: int = whole(120, 1)
    draft_model_size: str = "tiny-draft"
    target_model_size: str = "tiny-target"
    drafter: str = choice("model", DRAFTERS)
    corpus: str = ""
    ngram_table: str = ""
    n_max: int = whole(3, 1, 1024)
    exit_layer: int = whole(2, 1)
    K: int | str = 3
    tree: str = ""
    siblings: str = choice("without", TREE_RULES)
    verifier: str = choice("rejection", RULES)
    temperature: float = number(0, 0)
    draft_temperature: float | None = number_or_none(0)
    top_k: int = whole(0, 0)
    top_p: float = number(1)
    min_p: float = number(0)
    repetition_penalty: float = number(1)
    stop: str = ""
    seed: int = whole(0, 0)
    models_dir: str = "models"
    source: str = choice("hub", SOURCES)
    show: str = choice("text", ("text", "rounds"))
    trace: str = file(".html", ".jsonl")
    json: bool | str = False
    timings: bool = flag()

    # the experiments
    n_prompts: int = whole(36, 1, 10_000)
    prompts: str = choice("tales", ("tales", "known"))
    temperatures: str = several("0,1", kind=(int, float), least=0, most=inf)
    max_K: int = whole(10, 2, 100)
    drafters: str = several(lambda: ",".join(DRAFTERS), choices=DRAFTERS)
    verifiers: str = several(lambda: ",".join(RULES), choices=RULES)
    tree_drafters: str = several("model,recycling,heads", choices=TREE_DRAFTERS)
    tree_sizes: str = several("4,8,12,16,24", kind=int, least=1, most=MOST_NODES)
    max_depth: int = whole(4, 1, 16)
    target_sizes: str = several("tiny-draft,tiny-target")
    log: str = file(".txt", ".log")
    plot: str = file(".png", ".pdf", ".svg")

    # bench
    sizes: str = several("124M,355M")
    strategies: str = several(",".join(STRATEGIES if HAS_TRANSFORMERS else STRATEGIES[:-1]), choices=STRATEGIES)
    rows: int = whole(9, 1, 1023)
    context: int = whole(100, 1, 1023)
    prompt_tokens: int = whole(512, 0, 1024)
    repeats: int = whole(7, 1, 1000)

    # replay
    file: str = ""

    def __post_init__(self):
        for option in fields(self):
            check(option.name, getattr(self, option.name), **option.metadata)
        if self.K not in LENGTHS or isinstance(self.K, bool):
            check("K", self.K, kind=int, least=1, otherwise=f", or {', '.join(LENGTHS[:-1])} or {LENGTHS[-1]}")
        if self.K == "confidence" and not DRAFTERS[self.drafter].draws:
            raise ValueError(f"--K confidence needs a drafter with probabilities, got {self.drafter}: try auto")
        check_tree(self)
        if self.draft_temperature is not None and not DRAFTERS[self.drafter].draws:
            raise ValueError(f"--draft_temperature needs a drafter that draws its tokens, got {self.drafter}")
        if not isinstance(self.json, bool):
            check_file("json", self.json, (".json",))
        if self.ngram_table and not Path(self.ngram_table).exists():
            check_file("ngram_table", self.ngram_table)
        if self.plot and not find_spec("matplotlib"):
            raise ValueError("--plot needs matplotlib, which is not installed: pip install matplotlib")
        if "transformers" in self.listed("strategies") and not HAS_TRANSFORMERS:
            raise ValueError("--strategies: transformers is not installed: pip install torch transformers")
        check_distinct({name: getattr(self, name) for name in (*WRITTEN, "prompt_file", "corpus", "file")})
        _ = self.sampling  # runs the checks of Sampling

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
        """The (parents, ranks) of --tree; None for a chain, and for auto, whose shape is found later."""
        if self.tree in ("", "auto"):
            return None
        numbers = [int(number) for number in self.tree.split(",")]
        return best_tree(*numbers, weights, self.most_levels) if len(numbers) == 1 else widths(*numbers)

    def stop_text(self, tokenizer):
        """The `StopText`, or None."""
        return StopText(self.stop, tokenizer.decode) if self.stop else None


def check_tree(request):
    """Raise ValueError unless --tree is valid, alone and with the other options."""
    kind, rule = DRAFTERS[request.drafter], RULES[request.verifier]
    if not request.tree and not kind.trees:
        return
    what = "--tree" if request.tree else f"--drafter {kind.name}"
    if not rule.trees:
        names = ", ".join(name for name, rule in RULES.items() if rule.trees)
        raise ValueError(f"{what} needs a verifier that takes trees ({names}), got {rule.name}")
    if request.K in ("auto", "confidence"):
        auto = "" if request.tree == "auto" else ", or --tree auto"
        raise ValueError(f"--K {request.K} chooses the length of a chain: for {what} give a number{auto}")
    if request.tree and not (kind.draws or kind.trees or kind.grows):
        raise ValueError(f"--tree needs a drafter that proposes trees, got {kind.name}")
    if request.tree and kind.grows and not request.grown_nodes:
        raise ValueError(f"--tree: expected a number of nodes for --drafter {kind.name}, got {shortened(request.tree)}")
    if request.tree in ("", "auto"):
        return
    numbers = [number_of(text) for text in request.tree.split(",")]
    size = sum(math.prod(numbers[: i + 1]) for i in range(len(numbers))) if all(type(n) is int for n in numbers) else 0
    if not 1 <= size <= MOST_NODES or min(numbers) < 1:
        raise ValueError(
            f"--tree: expected a number of nodes, the number of children for each level (2,2,1), or auto, with at most "
            f"{MOST_NODES} nodes, got {shortened(request.tree)}"
        )
    if 1 < len(numbers) > request.most_levels:
        raise ValueError(f"--tree {request.tree} has {len(numbers)} levels: give --K {len(numbers)}, the depth limit")


NAMES = {option.name: option for option in fields(Options)}
FLAGS = {"json", "timings"}  # may be typed without a value, for True


def check(
    name, value, *, listed=False, kind=None, least=-inf, most=inf, otherwise="", choices=(), suffixes=(), optional=False
):
    """Raise ValueError unless the value is valid for this option."""
    if optional and value is None:
        return
    if listed:
        for text in value.split(","):
            if not text:
                raise ValueError(f"--{name}: expected values separated by commas, got {shortened(value)}")
            each = number_of(text) if kind else text
            check(name, each, kind=kind, least=least, most=most, choices=choices)
    elif kind:
        is_number = isinstance(value, kind) and not isinstance(value, bool) and abs(value) <= float_info.max
        if not is_number or not least <= value <= most:
            noun = "whole number" if kind is int else "number"
            bounds = f" of {least} or more" if most == inf else f" from {least} to {most}"
            bounds = "" if least == -inf else bounds
            raise ValueError(f"--{name}: expected a {noun}{bounds}{otherwise}, got {shortened(value)}")
    elif choices and value not in choices:
        raise ValueError(f"--{name}: expected one of {', '.join(map(str, choices))}, got {shortened(value)}")
    elif suffixes and value:
        check_file(name, value, suffixes)


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


def typed(name, text):
    """The value of an option, from its text on the command line."""
    if name in FLAGS:
        return {"True": True, "False": False}.get(text, text)
    return text if NAMES[name].type is str else number_of(text)
