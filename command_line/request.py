"""The request: options, checked before anything is loaded.

Next: prompts.py
"""

import os
import platform
import re
from dataclasses import dataclass, fields
from pathlib import Path

import fire
import numpy as np

import speculative
from speculative import Sampling, StopText

VERIFIERS = {
    "rejection": speculative.rejection,
    "block": speculative.block,
    "exact_match": speculative.exact_match,
    "gumbel": speculative.exact_match,  # with shared noise
    "lenient": speculative.Lenient(),
    "typical": speculative.Typical(),
}
DRAFTERS = ("model", "ngram", "prompt_lookup", "suffix", "early_exit")
COPYING = ("prompt_lookup", "suffix")  # these have no probabilities
LENGTHS = ("auto", "heuristic", "confidence")


@dataclass(frozen=True)
class Request:
    """All options with their defaults; `python main.py --help` says what they mean. What is a str here stays text."""

    prompt: str = "Once upon a time there lived a king who lived in a great forest"
    n_tokens_to_generate: int = 120
    draft_model_size: str = "tiny-draft"
    target_model_size: str = "tiny-target"
    drafter: str = "model"
    corpus: str = ""
    ngram_table: str = ""
    n_max: int = 3
    exit_layer: int = 2
    K: int | str = 3
    verifier: str = "rejection"
    temperature: float = 0
    top_k: int = 0
    top_p: float = 1
    min_p: float = 0
    repetition_penalty: float = 1
    stop: str = ""
    seed: int = 0
    n_prompts: int = 36
    models_dir: str = "models"
    source: str = "hub"
    show: str = "text"
    trace: str = ""
    json: bool | str = False

    def __post_init__(self):
        for name, least in {"n_tokens_to_generate": 1, "n_max": 1, "exit_layer": 1, "top_k": 0, "seed": 0}.items():
            check_number(name, getattr(self, name), int, least)
        check_number("n_prompts", self.n_prompts, int, 3)
        if self.K not in LENGTHS or isinstance(self.K, bool):
            check_number("K", self.K, int, 1, f", or {', '.join(LENGTHS[:-1])} or {LENGTHS[-1]}")
        for name, least in {"temperature": 0, "top_p": 0, "min_p": 0, "repetition_penalty": 0}.items():
            check_number(name, getattr(self, name), (int, float), least)
        check_choice("verifier", self.verifier, VERIFIERS)
        check_choice("drafter", self.drafter, DRAFTERS)
        check_choice("show", self.show, ("text", "rounds"))
        if self.trace:
            check_file("trace", self.trace, (".html", ".jsonl"))
        if self.K == "confidence" and self.drafter in COPYING:
            raise ValueError(f"--K confidence needs a drafter with probabilities, which {self.drafter} lacks: try auto")
        if not isinstance(self.json, bool):
            check_file("json", self.json, (".json",))
        _ = self.sampling  # has its own checks

    @property
    def sampling(self):
        return Sampling(self.temperature, self.top_k, self.top_p, self.min_p, self.repetition_penalty)

    def stop_text(self, tokenizer):
        """The `StopText`, or None."""
        return StopText(self.stop, tokenizer.decode) if self.stop else None


# Never read as numbers; the others are options of plan.py and bench.py.
TEXT_OPTIONS = [field.name for field in fields(Request) if field.type is str]
TEXT_OPTIONS += ["prompts", "prompt_file", "log", "plot", "temperatures", "drafters", "verifiers", "target_sizes"]
TEXT_OPTIONS += ["sizes", "strategies"]
OPTIONS = {field.name for field in fields(Request)}
as_text = fire.decorators.SetParseFns(
    **dict.fromkeys(TEXT_OPTIONS, str), json=lambda text: text == "True" or text
)  # an option without a value is "True"


def read(words, options, names, form=Request, **defaults):
    """The `Request` of a command that knows the options `names`; `defaults` are those of the command."""
    if words:
        raise ValueError(
            f"unexpected {words[0]!r}: options are --name value, a text of several words in quotes; see --help"
        )
    unknown = [name for name in options if name not in names]
    if unknown:
        raise ValueError(f"unknown option --{unknown[0]}: python main.py --help lists the options")
    return form(**{**defaults, **options})


def check_number(name, value, kind, least, otherwise=""):
    if isinstance(value, bool) or not isinstance(value, kind) or not least <= value < float("inf"):
        noun = "whole number" if kind is int else "number"
        raise ValueError(f"--{name}: expected a {noun} of {least} or more{otherwise}, got {value!r}")


def check_choice(name, value, choices):
    if value not in choices:
        raise ValueError(f"--{name}: expected one of {', '.join(choices)}, got {value!r}")


def check_file(name, path, suffixes):
    """Raise ValueError unless a file of that name, with one of these suffixes, could be written."""
    path = Path(path)
    if path.suffix not in suffixes:
        raise ValueError(f"--{name}: expected a name that ends in {' or '.join(suffixes)}, got {path}")
    if not path.parent.is_dir() or path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"--{name}: cannot write {path}: name a file in a folder that is there and yours to write")


def check_texts(arguments):
    """Raise ValueError if a text option has no value, which fire would take for True."""
    for argument, following in zip(arguments, [*arguments[1:], "--"]):
        is_option = argument.startswith("-") and argument.lstrip("-").replace("-", "_") in TEXT_OPTIONS
        if is_option and re.match(r"-$|--|-[A-Za-z]", following):
            raise ValueError(f"{argument} needs a value; one that begins with a hyphen is written {argument}='-...'")


def read_text(path, option="corpus"):
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"--{option}: expected a text in UTF-8, and {path} is none") from error
    except OSError as error:
        raise ValueError(f"--{option}: cannot read {path} ({error.strerror}): give a text file") from error


def machine():
    return f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}"
