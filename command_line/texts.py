"""Prompts: from tales that neither bundled model was trained on, from a published comparison, or from a file.

Next: compare.py
"""

from pathlib import Path

import gpt2np
from speculative import AutoregressiveSampler, Sampling
from speculative.checks import check_request

from .files import read_text

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
TALES = Path(gpt2np.__file__).parent / "tiny" / "held_out.txt"
PROMPT_LENGTH = 32  # tokens
N_AHEAD = 200  # so many greedy tokens later the target repeats itself


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


def held_out_prompts(tokenizer, n_prompts, length=PROMPT_LENGTH):
    """Prompts of `length` tokens at places spread over the second part of the tales."""
    tokens = tokenizer.encode(tales()[1])
    return [tokens[i * len(tokens) // n_prompts :][:length] for i in range(n_prompts)]


def lines_of(name):
    """The prompts of --prompt_file, one per line."""
    lines = [line for line in read_text(name, "prompt_file").replace("\r", "\n").split("\n") if line.strip()]
    if not lines:
        raise ValueError(f"--prompt_file: {name} is empty: write one prompt per line")
    return lines


def prompt_of(request):
    """The one prompt of a comparison (str): of --prompt, or of the one line of --prompt_file."""
    if not request.prompt_file:
        return request.prompt
    lines = lines_of(request.prompt_file)
    if len(lines) > 1:
        raise ValueError(
            f"--prompt_file: {request.prompt_file} has {len(lines)} prompts, one per line, and a comparison takes one: "
            "give one, or run the experiment `prompts`"
        )
    return lines[0]


def prompts_of(request, tokenizer):
    """The prompts that --prompt_file or --prompts names, as lists of tokens."""
    if request.prompt_file:
        return [tokenizer.encode(line) for line in lines_of(request.prompt_file)]
    if request.prompts == "known":
        return [tokenizer.encode(prompt) for prompt in KNOWN]
    return held_out_prompts(tokenizer, request.n_prompts)


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


def check_prompts(prompts, n_tokens, model):
    """Raise ValueError unless the model can continue each prompt by n_tokens."""
    for i, prompt in enumerate(prompts, 1):
        try:
            check_request(prompt, n_tokens, model)
        except ValueError as error:
            raise ValueError(f"prompt {i} of {len(prompts)}: {error}") from None


def beginning(tokens, tokenizer, length=40):
    """The text of the tokens on one line, shortened to a length."""
    text = " ".join(tokenizer.decode(tokens).split())
    return text if len(text) <= length else text[: length - 3] + "..."
