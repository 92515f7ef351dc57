"""The card of a drafter for tiny-target: how often it is right on the bundled held-out tales.

    python dev/train/measure.py eagle|parallel|heads|medusa|draft [FOLDER]

FOLDER contains the drafter; by default it is the bundled one. The target continues 36 prompts, greedily and at
temperature 1.
"""

import json
import sys
from pathlib import Path

import numpy as np

import gpt2np
from gpt2np.tokenizer import END_OF_TEXT
from gpt2np.training.card import measured
from speculative import AutoregressiveSampler, Sampling, generate_together

N_PROMPTS, LENGTH, N_NEW = 36, 64, 64


def texts(target, tokenizer, temperature, n_prompts=N_PROMPTS):
    """Prompts spread over the held-out tales, each with the target's next tokens: [n_prompts, LENGTH + N_NEW]."""
    tales = (Path(gpt2np.__file__).parent / "tiny" / "held_out.txt").read_text(encoding="utf-8")
    tokens = tokenizer.encode(END_OF_TEXT + tales.replace("\n\n", END_OF_TEXT), special=True)
    starts = np.linspace(0, len(tokens) - LENGTH, n_prompts).astype(int)
    prompts = [tokens[start : start + LENGTH] for start in starts]
    samplers = lambda lane: AutoregressiveSampler(lane, sampling=Sampling(temperature))  # noqa: E731
    new = generate_together(samplers, [target], prompts, N_NEW, range(n_prompts), n_lanes=n_prompts)
    return np.array([[*prompt, *text.tokens] for prompt, text in zip(prompts, new)])


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("expected: python dev/train/measure.py eagle|parallel|heads|medusa|draft [FOLDER]")
    kind, folder = [*sys.argv[1:], "tiny-draft" if sys.argv[1] == "draft" else "tiny-target"][:2]
    target, tokenizer = gpt2np.load("tiny-target")
    both = [texts(target, tokenizer, temperature) for temperature in (0, 1.0)]
    print(json.dumps(measured(kind, target, folder, *both, N_NEW), indent=1))
