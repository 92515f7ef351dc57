"""The options: a field of `Options` is an option, and its entry is everything known about it.

How its text is read, its help, the refusal where it has no effect, the rows of a comparison and the first line of a
journal follow from the entry. To add an option, add a field. An option that a single command has is a field of a
subclass, in the command's file.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from itertools import product

from gpt2np.files.model_files import SOURCES
from speculative import Sampling
from speculative.drafters.model_tree import RULES as SIBLINGS

from .drafters import DRAFTERS, LENGTHS, RULES, TOKENIZERS
from .files import check_readable
from .models import ENGINES
from .values import Choice, Written, number, template, tree, whole


@dataclass(frozen=True)
class OptionEntry:
    """What is known about an option, apart from its name and its default."""

    value: str  # the name of its value in the help
    read: Callable  # text -> value; ValueError says what was expected
    help: str  # a line "VALUE: what it means" for each value worth a line
    needs: str = ""  # the option without which this one has no effect ...
    unless: str = ""  # ... and the one with which it has none; for the rest see settings.py
    names_files: bool = False  # it may name files or folders, whose contents decide the result
    also: tuple = ()  # its names in other programs: docs/coming_from.md
    repeats: bool = False  # it may be given several times, and its value is a tuple
    is_aside: bool = False  # it changes what is shown, where files are or how fast it goes, but no result


def option(default, *about, also="", **more):
    """A field with its default and its entry."""
    return field(default=default, metadata={"entry": OptionEntry(*about, **more, also=tuple(also.split()))})


# fmt: off
@dataclass(frozen=True)
class Options:
    """The values of the options for one setting; those that a command does not take have their defaults."""

    prompt: tuple = option(("Once upon a time there lived a king who lived in a great forest",), "TEXT", str,
        "the text to continue; an empty one starts from <|endoftext|>", unless="prompt_file", repeats=True,
        also="-p --user_input --input --question")
    target_model_size: str = option("tiny-target", "M", str,
        "the target model: tiny-draft or tiny-target, which are bundled, 124M, 355M, 774M, 1558M, or a folder with a "
        "GPT-2", names_files=True,
        also="-m --model --target --target_model --model_size --model_name_or_path --target_model_name "
        "--target_model_path --checkpoint_path --application_model")
    draft_model_size: str = option("", "M", str,
        "the draft model, for --drafter model only (the smallest of the target's family: tiny-draft for tiny-target, "
        "124M for 355M and larger)", names_files=True,
        also="-md --draft_model --model-draft --spec-draft-model --assistant_model --assist-model "
        "--speculative-model --approx_model_name --draft_model_name --draft_model_path "
        "--draft_checkpoint_path")
    drafter: str = option("model", "D", Choice(DRAFTERS, brings=True), "the source of the draft tokens",
        names_files=True)
    K: int | str = option(3, "K", whole(1, words=LENGTHS),
        "the draft length, the most tokens drafted per target call\n"
        "N: N tokens",
        also="--gamma --draft --draft-n --draft-max --n-draft --spec-draft-n-max --num_assistant_tokens "
        "--num_speculative_tokens --speculate_k --speculate-step")
    verifier: str = option("rejection", "V", Choice(RULES, brings=True), "the acceptance rule for draft tokens",
        names_files=True)
    temperature: float = option(0, "T", number(least=0),
        "0 always takes the most probable token, 1 samples from the model's own distribution; in Python, Sampling's "
        "default is 1",
        also="--temp")
    n_tokens_to_generate: int = option(120, "N", whole(1),
        "how many tokens to generate; fewer only where the text ends by itself, see --stop, --grammar, --min_tokens",
        also="-n --n_tokens --predict --n-predict --max_new_tokens --max_tokens")
    seed: int = option(0, "N", whole(0),
        "the seed of the random numbers. One seed and setting give one text; above temperature 0 a different draft, K "
        "or rule gives a different text of the same distribution, unless --verifier gumbel",
        also="-s")
    trace: str = option("", "FILE", Written((".html", ".jsonl")),
        "write all rounds with p, q, random numbers and decisions: FILE.html to look at, FILE.jsonl for programs",
        unless="output", is_aside=True)
    tree: object = option(0, "T", tree,
        "draft a tree, not a chain; K limits its depth\n"
        "0: a chain, or the drafter's own tree\n"
        "N: N nodes, in the best shape for a typical draft; a model at temperature 0 or with --siblings top grows the "
        "tree where the draft is confident\n"
        "2x2x1: the number of children at each depth")
    siblings: str = option("without", "S", Choice(tuple(SIBLINGS)),
        "how a model chooses the children of a node\n"
        "without: sampled without replacement\n"
        "drawn: one sampled, then the most probable tokens\n"
        "top: the most probable tokens", needs="tree")
    draft_temperature: float | None = option(None, "T", number(least=0),
        "the temperature at which the draft is sampled; 0 is a greedy draft, as in llama.cpp and by default in "
        "vLLM. The distribution of the text does not depend on it, but the number of accepted tokens does (the "
        "temperature of the target)",
        also="--draft_temp")
    draft_tokenizer: str = option("auto", "W", Choice(TOKENIZERS),
        "how a draft model with a different tokenizer drafts; the distribution of the text does not depend on it\n"
        "shared: only tokens that both vocabularies have\n"
        "text: its text is encoded with the target's tokenizer\n"
        "auto: text at temperature 0, shared above; neither if the draft model has the target's tokenizer")
    corpus: str = option("", "FILE", check_readable,
        "a text in which ngram counts (default: tales that neither bundled model was trained on) and from which "
        "prompt_lookup copies, as if it preceded the prompt (default: nothing)", names_files=True)
    n_max: int = option(3, "N", whole(1, 1024), "the maximum n for ngram, and the longest match for prompt_lookup",
        also="--max_matching_ngram_size --prompt_lookup_max --ngram-prompt-lookup-max")
    n_min: int = option(2, "N", whole(1, 1024), "the shortest match for prompt_lookup",
        also="--prompt_lookup_min --ngram-prompt-lookup-min")
    exit_layer: int = option(2, "L", whole(1), "the number of layers that early_exit runs")
    frequent: int = option(0, "N", whole(0), "draft only the N most frequent tokens; 0 means all")
    top_k: int = option(0, "N", whole(0), "sample only from the N most probable tokens; 0 means all")
    top_p: float = option(1, "P", number(least=0, most=1),
        "... from the smallest set of most probable tokens with total probability P")
    min_p: float = option(0, "P", number(least=0, most=1),
        "... from tokens with at least P times the probability of the most probable one")
    repetition_penalty: float = option(1, "X", number(), "above 1, makes tokens that occurred before less probable",
        also="--repeat-penalty")
    presence_penalty: float = option(0, "X", number(least=-100, most=100),
        "subtracted from the logits of tokens that are already in the new text")
    frequency_penalty: float = option(0, "X", number(least=-100, most=100), "... once for each occurrence")
    no_repeat_ngram_size: int = option(0, "N", whole(),
        "no sequence of N tokens occurs twice in prompt and text; 0 means no limit")
    min_tokens: int = option(0, "N", whole(),
        "<|endoftext|> ends the text, but not before N new tokens; with 0 it does not end the text")
    grammar: str = option("", "G", str,
        "a regular expression that the whole new text matches, such as '[0-9]{4}-[0-9]{2}', or a file of them, one "
        "per line, one of which it matches; <|endoftext|> ends the text", names_files=True)
    prompt_file: str = option("", "FILE", str,
        "prompts, one per line; - reads standard input. In FILE.jsonl each line is a JSON object, so that a prompt may "
        'have several lines: {"prompt": TEXT}, or a question of Spec-Bench or SPEED-Bench, {"question_id": 81, '
        '"category": "qa", "turns": [TEXT, ...]}, of which the first turn is the prompt',
        names_files=True,
        also="-f --file")
    template: str = option("{prompt}", "TEXT", template,
        "the text around a prompt, such as '### Human: {prompt}\\n### Assistant:', where \\n is a line break; chat: "
        "the chat template of an --engine's model",
        also="--prompt_template --chat_template")
    prompts: str = option("", "P", Choice(("tales", "repeating", "known")),
        "the prompts without --prompt_file\n"
        "tales: prefixes of tales that neither bundled model was trained on\n"
        "repeating: the same 200 greedy tokens later, where greedy text repeats itself\n"
        "known: the seven of mychen76's script, \"Evaluate LLM fast inference via speculative decoding without "
        "quantization\" (2023)", unless="prompt_file")
    n_prompts: int = option(12, "N", whole(1, 10_000), "the number of prompts",
        unless="prompt_file")
    stop: tuple = option((), "TEXT", str, "end the text where the new tokens contain TEXT", repeats=True,
        also="--stop_token -r --reverse-prompt")
    engine: str = option("numpy", "E", Choice(ENGINES), "the engine of the models, and so what their names mean")
    models_dir: str = option("models", "DIR", str, "the folder with the models 124M, 355M, ...; downloads go there")
    source: str = option("hub", "S", Choice(tuple(SOURCES)),
        "where to download a missing model from: hub (safetensors) or openai (TensorFlow)")
    json: object = option(False, "[FILE.jsonl]", Written((".jsonl",), or_none=True),
        "print only the measurements, as one JSON object. With FILE.jsonl: print the usual page, and save each "
        "finished part at once, so that the same command resumes after an interruption",
        unless="output", is_aside=True)

    command: str = "generate"
    given: dict = field(default_factory=dict)  # the text of each option that was typed; a list of those that repeat
    lists: dict = field(default_factory=dict)  # the options with several values: dict name -> {text: value}
    processors: tuple = ()  # the logits processors for a prompt, see settings.py

    def but(self, **values):
        return replace(self, **values)

    @property
    def sampling(self):
        return Sampling(self.temperature, self.top_k, self.top_p, self.min_p, self.repetition_penalty, self.processors)


# fmt: on
PAIR = "target_model_size draft_model_size "
DRAFTING = "drafter K verifier tree siblings draft_temperature draft_tokenizer corpus n_max n_min exit_layer frequent "
SAMPLING = "temperature top_k top_p min_p repetition_penalty n_tokens_to_generate seed "
SAMPLING += "presence_penalty frequency_penalty no_repeat_ngram_size min_tokens "
PROMPTS = "prompt_file template prompts n_prompts "
ENDS = "grammar stop "
FILES = "engine models_dir source json "
OF_THE_PROGRAM = PAIR + DRAFTING + SAMPLING + ENDS + FILES + "prompt trace prompt_file template"  # by default


def all_entries(options):
    """dict name -> OptionEntry of all options, given `Options`, a subclass, or an instance of them."""
    return {each.name: each.metadata["entry"] for each in fields(options) if each.metadata}


def entries_of(command):
    """dict name -> OptionEntry of the options that a command (a module) takes: its own, and some of `Options`."""
    names = command.TAKES.split()
    entries, shared = all_entries(getattr(command, "Options", Options)), all_entries(Options)
    return {name: entry for name, entry in entries.items() if name in names or name not in shared}


def defaults_of(command):
    """The Options of a command line without options."""
    return getattr(command, "Options", Options)(**getattr(command, "DEFAULTS", {}))


def combinations(options):
    """[(Options, dict name -> text of its value)] for each combination of values; the longest list changes fastest."""
    axes = sorted(options.lists, key=lambda name: len(options.lists[name]))
    settings = []
    for combination in product(*(options.lists[name].items() for name in axes)):
        texts, values = ({name: pair[i] for name, pair in zip(axes, combination)} for i in (0, 1))
        settings.append((options.but(**values), texts))
    return settings
