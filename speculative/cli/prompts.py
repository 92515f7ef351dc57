"""The prompts that options name: from tales that neither bundled model was trained on, a published list, or a file."""

from itertools import repeat
from json import loads
from pathlib import Path

import gpt2np
from gpt2np.tokenizer import NumberTokenizer
from speculative import AutoregressiveSampler, Sampling
from speculative.checks import check_request
from speculative.measuring.experiment import Prompt
from speculative.measuring.table import counted

from .files import lines_of, read_text, say

# The test prompts, word for word, of a published comparison of assisted with autoregressive decoding: mychen76,
# "Evaluate LLM fast inference via speculative decoding without quantization" (2023), a script over Llama 2 13B and
# TinyLlama.
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
TALES = Path(gpt2np.__file__).parent / "tiny" / "held_out.txt"
PROMPT_LENGTH = 32  # tokens
N_AHEAD = 200  # after this many greedy tokens the target repeats itself


def tales():
    """The tales in two parts: one for counting n-grams, one for prompts."""
    text = TALES.read_text(encoding="utf-8")
    return text[: len(text) * 3 // 4], text[len(text) * 3 // 4 :]


def prompts_of(options, target, tokenizer):
    """The `Prompt`s of --prompt_file or --prompts that fit the target's context, or the one of --prompt."""
    if options.prompt_file:
        return from_file(options, target, tokenizer)
    if not options.prompts:
        prompts = []
        for i, text in enumerate(options.prompt, 1):
            prompts.append(Prompt(encoded(text, tokenizer, options), in_template(text, options), i))
            check_request(prompts[-1].tokens, options.n_tokens_to_generate, target)
        return prompts
    if isinstance(tokenizer, NumberTokenizer):
        raise ValueError("this model has no tokenizer: give a --prompt_file, with a list of token ids in each line")
    if options.prompts == "known":
        token_lists = [encoded(prompt, tokenizer, options) for prompt in KNOWN[: options.n_prompts]]
    else:
        token_lists = held_out(tokenizer, options.n_prompts)
    room = options.n_tokens_to_generate + N_AHEAD * (options.prompts == "repeating")
    for i, tokens in enumerate(token_lists, 1):
        check_room(tokens, room, target, f"prompt {i} of {len(token_lists)}")
    if options.prompts == "repeating":
        alone = AutoregressiveSampler(target, sampling=Sampling(temperature=0))
        token_lists = [[*tokens, *alone.generate(tokens, N_AHEAD).tokens.tolist()] for tokens in token_lists]
    texts = (
        map(in_template, KNOWN, repeat(options)) if options.prompts == "known" else map(tokenizer.decode, token_lists)
    )
    return [Prompt(tokens, text, i) for i, (text, tokens) in enumerate(zip(texts, token_lists), 1)]


def held_out(tokenizer, n_prompts, length=PROMPT_LENGTH):
    """Prompts of `length` tokens at positions spread over the second part of the tales."""
    tokens = tokenizer.encode(tales()[1])
    return [[*tokenizer.start, *tokens[i * len(tokens) // n_prompts :][:length]] for i in range(n_prompts)]


def check_room(tokens, n_tokens, target, what):
    try:
        check_request(tokens, n_tokens, target)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def encoded(prompt, tokenizer, options):
    """The token ids of a prompt in its template; an empty text becomes `<|endoftext|>`, which begins a text."""
    if options.template == "chat":
        return tokenizer.chat(prompt)
    text = in_template(prompt, options)
    if text or tokenizer.start:
        return tokenizer.encode(text, special=True)
    if tokenizer.end_of_text is None:
        raise ValueError("the prompt is empty, and this vocabulary has no <|endoftext|> to start from: give a --prompt")
    return [tokenizer.end_of_text]


def in_template(prompt, options):
    return prompt if options.template == "chat" else options.template.replace("{prompt}", prompt)


def from_file(options, target, tokenizer):
    """The `Prompt`s of --prompt_file; prompts that are left out are reported on standard error."""
    prompts, n_turns, n_tokens = [], 0, options.n_tokens_to_generate
    for prompt, question_id, category, n_more in questions_in(options.prompt_file):
        tokens = encoded(prompt, tokenizer, options)
        prompts.append(Prompt(tokens, in_template(prompt, options), question_id, category))
        n_turns += n_more
    fitting = [prompt for prompt in prompts if len(prompt.tokens) + n_tokens <= target.n_ctx]
    if not fitting:
        check_room(prompts[0].tokens, n_tokens, target, "the first prompt")
    if n := len(prompts) - len(fitting):
        say(f"left out: {n} of {len(prompts)} prompts, too long for n_ctx {target.n_ctx} with {n_tokens} new tokens")
    if n_turns:
        say(f"left out: {counted(n_turns, 'further turn')}, which only a model with a chat template can answer")
    return fitting


def questions_in(name):
    """[(prompt, question id, category, number of further turns)], one per line; FILE.jsonl has an object per line."""
    lines = lines_of(read_text(name, "prompt_file"))
    if not lines:
        raise ValueError(f"--prompt_file: {name} is empty: write one prompt per line")
    if not name.endswith(".jsonl"):
        return [(line, number, "", 0) for number, line in enumerate(lines, 1)]
    questions = []
    for number, line in enumerate(lines, 1):
        try:
            fields = loads(line)
            first, *more = fields["turns"] if "turns" in fields else [fields["prompt"]]
            question_id = fields.get("question_id", number)
            if type(question_id) not in (int, str) or not isinstance(fields.get("turns", []), list):
                raise TypeError
            questions.append((first + "", question_id, str(fields.get("category", "")), len(more)))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ValueError(
                f'--prompt_file: expected {{"prompt": TEXT}} or {{"turns": [TEXT, ...]}}, with a whole number or a '
                f'text as "question_id" if any, in line {number} of {name}, got {line[:60]!r}'
            ) from None
    return questions
