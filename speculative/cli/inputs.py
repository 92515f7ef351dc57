"""What options name: models, prompts and grammars. Every name is checked before the first model is loaded.

Prompts come from tales that neither bundled model was trained on, from a published comparison, or from a file.
"""

import os.path
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from json import loads
from pathlib import Path
from time import perf_counter

import gpt2np
from gpt2np.files.loading import BUNDLED, find_folder
from gpt2np.files.model_files import SIZES, SOURCES, WEIGHTS, files_of, find_on_disk
from gpt2np.files.params import read_config, read_hparams
from speculative import (
    AutoregressiveSampler,
    FrequencyPenalty,
    Grammar,
    MinTokens,
    NoRepeatNGram,
    PresencePenalty,
    Sampling,
)
from speculative.checks import check_request
from speculative.logits.automaton import byte_automaton

from .files import read_text
from .tables import counted

# The test prompts, word for word, of a published comparison of assisted with native decoding: mychen76, "Evaluate LLM
# fast inference via speculative decoding without quantization" (2023), a script over Llama 2 13B and TinyLlama.
KNOWN = (
    "Name planets in our solar system",
    "Give me detailed info about Justin Trudeau.",
    "Generate a few good titles for a draft of a post [type of transformer models]",
    "Write a 5-line poem that describes a cat in a creative and original way. Use the following words in your poem: "
    "cat, fur, tail, independent, and clean.",
    "Given the text below, generate Q&A from the text provide: [rewrite of minGPT that prioritizes teeth over "
    "education.]",
    "Write a highly detailed discussion response, in the structure of an essay, responding to the following prompt: "
    "Explain the causes of the Inflation and whether expansion played a role in the economic recession. Include "
    "evidence to support your argument.",
    "Make a coding challenge for Python with 3 questions and answers",
)
SHAPES = {
    "124M": gpt2np.HParams(50257, 1024, 768, 12, 12),
    "355M": gpt2np.HParams(50257, 1024, 1024, 16, 24),
    "774M": gpt2np.HParams(50257, 1024, 1280, 20, 36),
    "1558M": gpt2np.HParams(50257, 1024, 1600, 25, 48),
}
SMALLEST = ("tiny-draft", "124M")  # of each family, and its draft model
TALES = Path(gpt2np.__file__).parent / "tiny" / "held_out.txt"
PROMPT_LENGTH = 32  # tokens
N_AHEAD = 200  # so many greedy tokens later the target repeats itself


def nearest(name, names):
    """The most similar of some names, or None; hyphens are underscores, and case does not matter."""
    same = {known.lower().replace("-", "_"): known for known in names}
    found = get_close_matches(name.lower().replace("-", "_"), same, 1)
    return same[found[0]] if found else None


def either(names):
    """The names in a sentence.

    >>> either(["a"]), either(["a", "b", "c"])
    ('a', 'a, b or c')
    """
    *some, last = names
    return f"{', '.join(some)} or {last}" if some else last


# ------------------------------------------------------------------------------------------------ models


def check_models(option, names, options):
    """Raise ValueError unless each name is that of a model on disk, or one that can be downloaded."""
    for name in names:
        if name in (*BUNDLED, *SIZES):
            continue
        try:
            if foreign := another_engines(Path(name)):
                raise ValueError(f"{name} is {foreign}, and this is GPT-2 in NumPy: see docs/engines.md for others")
            if not Path(name).exists() and (near := nearest(name, [*BUNDLED, *SIZES])):
                raise ValueError(f"unknown model {name!r:.80}: did you mean {near}?")
            files_of(find_folder(name, Path(options.models_dir), options.source))
        except OSError as error:
            raise ValueError(
                f"--{option}: cannot read {error.filename} ({error.strerror}): name a folder that you may read"
            ) from None
        except ValueError as error:
            raise ValueError(f"--{option}: {error}") from None


def another_engines(path):
    """What a path is, in words, if it is for another engine: a GGUF file, or the folder of a model of another kind."""
    if path.suffix == ".gguf":
        return "a GGUF file"
    config = path / "config.json"
    try:
        kind = loads(config.read_text(encoding="utf-8")).get("model_type", "gpt2") if config.is_file() else "gpt2"
    except (ValueError, AttributeError):  # files_of or the loading says what is wrong with the file
        return None
    return None if kind == "gpt2" else f"a model of type {kind!r:.40}"


def hparams_of(name, options):
    """The HParams of a model, from its name or its configuration on disk: no weights are read."""
    if name in SHAPES:
        return SHAPES[name]
    folder = find_folder(name, Path(options.models_dir), options.source)
    config = folder / WEIGHTS[files_of(folder)[0]][0]
    return read_hparams(config) if config.name == "hparams.json" else read_config(config)


def draft_name(options, needed=False):
    """The name of the draft model: --draft_model_size, or the smallest model of the target's family.

    Where the target is the smallest itself, "", or a ValueError if a draft is needed.
    """
    target, found = options.target_model_size, options.draft_model_size
    if not found and target not in SMALLEST:
        n_vocab = hparams_of(target, options).n_vocab
        found = next((name for name in SMALLEST if hparams_of(name, options).n_vocab == n_vocab), "")
    if needed and not found:
        raise ValueError(
            f"there is no smaller model to draft for {target}: choose a larger --target_model_size, name a draft with "
            "--draft_model_size, or draft without a model, for example with --drafter ngram"
        )
    return found


def check_draft(options, needed=True):
    """Raise ValueError unless there is a draft model of this name, or, if it is needed, one for the target."""
    if options.draft_model_size:
        check_models("draft_model_size", [options.draft_model_size], options)
    draft_name(options, needed)


def check_vocabularies(names, sizes, same=True):
    """Raise ValueError unless target and draft (their names, and the n_vocab of each) have the same vocabulary."""
    if sizes[0] != sizes[1] or not same:
        raise ValueError(
            f"{names[0]} and {names[1]} have no common vocabulary ({sizes[0]} and {sizes[1]} tokens): choose "
            "--target_model_size and --draft_model_size from one family: tiny-target and tiny-draft, or two of "
            f"{', '.join(SIZES)}"
        )


def load(name, options, saved):
    """(model, tokenizer, seconds). `saved` records the files."""
    models_dir, started = Path(options.models_dir), perf_counter()
    to_download = name in SIZES and not find_on_disk(name, models_dir)
    try:
        model, tokenizer = gpt2np.load(name, options.models_dir, options.source)
    except KeyboardInterrupt:
        if to_download and any(path.stat().st_size for path in (models_dir / name).rglob("*") if path.is_file()):
            kept = f"what was fetched so far is in {models_dir / name}, and the same command resumes from there"
            raise KeyboardInterrupt(kept) from None
        raise
    except gpt2np.DownloadError as error:
        raise ValueError(f"{error}; the source is --source, and python main.py needs no download") from None
    seconds = perf_counter() - started
    if saved.path:
        names = {file for files in SOURCES.values() for file in files}
        folder = find_folder(name, models_dir, options.source)
        saved.opened(name, *sorted(path for path in folder.iterdir() if path.name in names))
    return model, tokenizer, seconds


# ------------------------------------------------------------------------------------------------ prompts


def tales():
    """The tales in two parts: one to count n-grams in, one to take prompts from."""
    text = TALES.read_text(encoding="utf-8")
    return text[: len(text) * 3 // 4], text[len(text) * 3 // 4 :]


def prompt_tokens(prompt, tokenizer):
    """The prompt's token ids; for an empty prompt `<|endoftext|>`, after which a new text begins."""
    if prompt:
        return tokenizer.encode(prompt)
    if tokenizer.end_of_text is None:
        raise ValueError("the prompt is empty, and this vocabulary has no <|endoftext|> to start from: give a --prompt")
    return [tokenizer.end_of_text]


@dataclass(frozen=True)
class Question:
    """A prompt of --prompt_file, with what a benchmark says about it."""

    prompt: str
    question_id: int | str
    category: str = ""
    n_left_out: int = 0  # further turns of the conversation that it begins


def questions_in(name):
    """The `Question`s of --prompt_file: a prompt a line, or a JSON object a line if the name ends in .jsonl."""
    lines = [line for line in read_text(name, "prompt_file").replace("\r", "\n").split("\n") if line.strip()]
    if not lines:
        raise ValueError(f"--prompt_file: {name} is empty: write one prompt per line")
    read = question_of if name.endswith(".jsonl") else lambda line, number, name: Question(line, number)
    return [read(line, number, name) for number, line in enumerate(lines, 1)]


def question_of(line, number, name):
    """The `Question` of a line of Spec-Bench's or SPEED-Bench's questions, or of plain {"prompt": ...}."""
    try:
        found = loads(line)
        turns = found["turns"] if "turns" in found else [found["prompt"]]
        if not isinstance(turns, list) or not isinstance(turns[0], str):
            raise TypeError
    except (ValueError, KeyError, IndexError, TypeError):
        raise ValueError(
            f'--prompt_file: expected {{"prompt": TEXT}} or {{"turns": [TEXT, ...]}}, "category" and "question_id" if '
            f"you like, in line {number} of {name}, got {line[:60]!r}"
        ) from None
    return Question(turns[0], found.get("question_id", number), str(found.get("category", "")), len(turns) - 1)


def in_template(prompt, options):
    """The prompt in --prompt_template, whose two characters \\n are a line break."""
    return options.prompt_template.replace("\\n", "\n").replace("{prompt}", prompt)


def prompt_of(options):
    """The one prompt of a comparison (str), in its template: of --prompt, or of the one line of --prompt_file."""
    if not options.prompt_file:
        return in_template(options.prompt, options)
    found = questions_in(options.prompt_file)
    if len(found) > 1:
        raise ValueError(
            f"--prompt_file: {options.prompt_file} has {len(found)} prompts, one per line, and a comparison takes one: "
            "give one, or run the experiment `prompts`"
        )
    return in_template(found[0].prompt, options)


def prompts_of(options, tokenizer, model):
    """The prompts that --prompt_file or --prompts names, as lists of tokens, which the model has room to continue."""
    return [tokens for _, tokens in questions_of(options, tokenizer, model)]


def questions_of(options, tokenizer, model):
    """The same with the `Question` that each is: [(Question, tokens)].

    What is left out of --prompt_file is said on standard error: prompts that are too long, and further turns.
    """
    n_tokens = options.n_tokens_to_generate
    if options.prompt_file:
        questions = questions_in(options.prompt_file)
    elif options.prompts == "known":
        questions = [Question(prompt, number) for number, prompt in enumerate(KNOWN[: options.n_prompts], 1)]
    else:
        tales = held_out_prompts(tokenizer, options.n_prompts)
        found = [(Question(tokenizer.decode(tokens), number), tokens) for number, tokens in enumerate(tales, 1)]
        check_prompts(tales, n_tokens, model)
        return found
    found = [(question, prompt_tokens(in_template(question.prompt, options), tokenizer)) for question in questions]
    fitting = [(question, tokens) for question, tokens in found if len(tokens) + n_tokens <= model.n_ctx]
    if not fitting or not options.prompt_file:
        check_prompts([tokens for _, tokens in found], n_tokens, model)
    if n := len(found) - len(fitting):
        say(f"left out: {n} of {len(found)} prompts, too long for n_ctx {model.n_ctx} with {n_tokens} new tokens")
    if n := sum(question.n_left_out for question, _ in fitting):
        say(f"left out: {counted(n, 'further turn')}, which only a model with a chat template can answer")
    return fitting


def say(note):
    print(f"note: {note}", file=sys.stderr, flush=True)


def held_out_prompts(tokenizer, n_prompts, length=PROMPT_LENGTH):
    """Prompts of `length` tokens at places spread over the second part of the tales."""
    tokens = tokenizer.encode(tales()[1])
    return [tokens[i * len(tokens) // n_prompts :][:length] for i in range(n_prompts)]


def dialogue_prompts(tokenizer, n_prompts, length=PROMPT_LENGTH):
    """Pieces of the tales with four quotation marks or more, at places spread over the second part."""
    tokens = tokenizer.encode(tales()[1])
    pieces = [tokens[i : i + length] for i in range(0, len(tokens) - length, length)]
    spoken = [piece for piece in pieces if tokenizer.decode(piece).count('"') >= 4]
    return [spoken[i * len(spoken) // n_prompts] for i in range(n_prompts)]


def repeating_prompts(target, prompts, keep):
    """The prompts, each with the next N_AHEAD tokens of the target's greedy text, which then repeats itself."""
    alone = AutoregressiveSampler(target, sampling=Sampling(temperature=0))
    return [
        keep(f"repeating, text {i}", lambda prompt=prompt: [*prompt, *alone.generate(prompt, N_AHEAD).tokens.tolist()])
        for i, prompt in enumerate(prompts, 1)
    ]


def check_prompts(prompts, n_tokens, model, n_ahead=0):
    """Raise ValueError unless the model can continue each prompt, and the n_ahead tokens after it, by n_tokens."""
    for i, prompt in enumerate(prompts, 1):
        try:
            check_request([*prompt, *[0] * n_ahead], n_tokens, model)
        except ValueError as error:
            raise ValueError(f"prompt {i} of {len(prompts)}: {error}") from None


# ------------------------------------------------------------------------------------------------ what looks back


def grammar_pattern(grammar):
    """The pattern of --grammar, from its file if it names one; ValueError unless it is a pattern."""
    lines = [grammar]
    if os.path.isfile(grammar):
        lines = [line for line in read_text(grammar, "grammar").splitlines() if line]
    pattern = "|".join(f"(?:{line})" for line in lines) if len(lines) > 1 else "".join(lines)
    try:
        byte_automaton(pattern)
    except ValueError as error:
        raise ValueError(f"--grammar: {error}") from None
    return pattern


def processors_of(options, tokenizer, n_prompt):
    """The logits processors of the options, for a prompt of this many tokens; the grammar has the first word."""
    end, found = tokenizer.end_of_text, []
    if end is None and ends_by_itself(options):
        raise ValueError("--grammar and --min_tokens need a vocabulary with <|endoftext|>, which ends the text")
    if options.grammar:
        texts = [tokenizer.bytes_of(token) for token in range(tokenizer.n_vocab)]
        try:
            found.append(Grammar(grammar_pattern(options.grammar), texts, end, n_prompt))
        except ValueError as error:
            raise ValueError(f"--grammar: {error}") from None
    if options.presence_penalty:
        found.append(PresencePenalty(options.presence_penalty, n_prompt))
    if options.frequency_penalty:
        found.append(FrequencyPenalty(options.frequency_penalty, n_prompt))
    if options.no_repeat_ngram_size:
        found.append(NoRepeatNGram(options.no_repeat_ngram_size))
    if options.min_tokens:
        found.append(MinTokens(options.min_tokens, end, n_prompt))
    return found


def ends_by_itself(options):
    """Whether <|endoftext|> ends the text."""
    return bool(options.grammar or options.min_tokens)
