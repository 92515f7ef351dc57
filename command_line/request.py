"""The request: options, checked before anything is loaded, and the models and drafters that they stand for.

Next: views.py
"""

import os
import platform
import re
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter

import fire
import numpy as np

import gpt2np
import speculative
from speculative import Sampling, StopText

TALES = Path(gpt2np.__file__).parent / "tiny" / "held_out.txt"
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
THRESHOLD = 0.4  # of --K confidence
MOST_CONFIDENT = 16  # guesses


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


# ------------------------------------------------------------------------------------------------ models and drafters


def load(name, request):
    """(model, tokenizer, seconds)"""
    started = perf_counter()
    model, tokenizer = gpt2np.load(name, request.models_dir, request.source)
    return model, tokenizer, perf_counter() - started


def load_draft(request, target, tokenizer):
    """(draft model, seconds); ValueError if it does not share the target's vocabulary."""
    draft, other, seconds = load(request.draft_model_size, request)
    if target.n_vocab != draft.n_vocab or tokenizer.vocabulary != other.vocabulary:
        raise ValueError(
            f"{request.target_model_size} and {request.draft_model_size} have no common vocabulary ({target.n_vocab} "
            f"and {draft.n_vocab} tokens): choose --target_model_size and --draft_model_size from one family"
        )
    return draft, seconds


@dataclass(frozen=True)
class Setting:
    """A target, the drafter for it, and what there is to say about the draft."""

    target: speculative.LanguageModel
    drafter: speculative.Drafter
    draft: dict  # "name", and "parameters" where it is a model of its own
    load_seconds: float = 0.0  # of the draft


def set_up(kind, request, target, tokenizer):
    """The `Setting` with one of DRAFTERS; a draft model is loaded for "model" alone."""
    how = {"sampling": request.sampling, "threshold": THRESHOLD if request.K == "confidence" else 0.0}
    if kind == "model":
        draft, seconds = load_draft(request, target, tokenizer)
        about = {"name": request.draft_model_size, "parameters": draft.n_params}
        return Setting(target, speculative.ModelDrafter(draft, **how), about, seconds)
    if kind == "ngram":
        started = perf_counter()
        drafter = speculative.NGramDrafter(ngram_model(request, target, tokenizer), **how)
        name = f"n-grams up to {len(drafter.model.counts)} tokens"
        return Setting(target, drafter, {"name": name}, perf_counter() - started)
    if kind == "early_exit":
        whole = gpt2np.EarlyExit(target, request.exit_layer)
        name = f"the first {request.exit_layer} of the target's {target.hparams.n_layer} layers"
        return Setting(whole, speculative.EarlyExitDrafter(whole, **how), {"name": name})
    if kind == "suffix":
        started, corpus = perf_counter(), tokenizer.encode(read_text(request.corpus)) if request.corpus else ()
        drafter = speculative.SuffixDrafter(target.n_vocab, corpus)
        return Setting(target, drafter, {"name": "suffix automaton"}, perf_counter() - started)
    drafter = speculative.PromptLookupDrafter(target.n_vocab, request.n_max)
    return Setting(target, drafter, {"name": f"prompt lookup of up to {request.n_max} tokens"})


def ngram_model(request, target, tokenizer):
    """The table of --ngram_table, where that is a file; else counted in --corpus, and saved there where it is named."""
    path = Path(request.ngram_table)
    if not path.parent.is_dir():
        raise ValueError(f"--ngram_table: there is no folder {path.parent}: make it, or name a file elsewhere")
    if request.ngram_table and path.exists():
        model = speculative.NGramModel.load(path)
        if model.n_vocab != target.n_vocab:
            raise ValueError(
                f"--ngram_table: {path} counts {model.n_vocab} tokens and {request.target_model_size} has "
                f"{target.n_vocab}: count again, with a new name for the table"
            )
        return model
    text = read_text(request.corpus) if request.corpus else tales()[0]
    model = speculative.NGramModel.from_tokens(tokenizer.encode(text), target.n_vocab, request.n_max)
    if request.ngram_table:
        model.save(path)
    return model


def read_text(path, option="corpus"):
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"--{option}: expected a text in UTF-8, and {path} is none") from error
    except OSError as error:
        raise ValueError(f"--{option}: cannot read {path} ({error.strerror}): give a text file") from error


def tales():
    """The tales that neither bundled model has seen, in two parts: to count in, and to take prompts from."""
    text = TALES.read_text(encoding="utf-8")
    return text[: len(text) * 3 // 4], text[len(text) * 3 // 4 :]


# ------------------------------------------------------------------------------------------------ prompts, draft length


def prompt_tokens(prompt, tokenizer):
    """The prompt's token ids; for an empty prompt `<|endoftext|>`, after which a new text begins."""
    if prompt:
        return tokenizer.encode(prompt)
    if tokenizer.end_of_text is None:
        raise ValueError("the prompt is empty, and this vocabulary has no <|endoftext|> to start from: give a --prompt")
    return [tokenizer.end_of_text]


def held_out_prompts(tokenizer, n_prompts, length=32):
    """Beginnings of `length` tokens at places spread over the second part of the tales."""
    tokens = tokenizer.encode(tales()[1])
    return [tokens[i * len(tokens) // n_prompts :][:length] for i in range(n_prompts)]


def draft_length(request, setting, tokens):
    """(K or a function that chooses it, Costs or None) for a prompt of these tokens."""
    if request.K == "heuristic":
        return speculative.Heuristic(), None
    if request.K == "confidence":
        return MOST_CONFIDENT, None
    if request.K == "auto":
        somewhere = [*tokens, *tokens][: setting.target.n_ctx - 9]
        costs = speculative.measure_costs(
            setting.target,
            setting.drafter,
            somewhere,
            sampling=request.sampling,
            verifier=VERIFIERS[request.verifier],
        )
        return speculative.CostModel(costs.c, costs.v), costs
    return request.K, None


def machine():
    return f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}"
