"""Is the installed `transformers` lossless? Its texts with and without a draft are enumerated.

Two GPT-2s with random weights and two or three tokens generate a few tokens for every possible outcome of their random
numbers (see torch_draws.py). The two distributions must be the same up to float32's rounding, whatever the draft is. No
model is loaded, and nothing is actually drawn. `python main.py audit` prints a table.
"""

from dataclasses import dataclass, field
from itertools import count

import numpy as np

from ..exact.enumeration import CannotEnumerate, exact_distribution, total_variation

ROUNDING = 1e-6  # total variation distance; float32 leaves about 1e-7
PROMPT = [0, 1, 1, 0, 1]  # repeats itself, for prompt lookup


@dataclass(frozen=True)
class Setting:
    """A way to generate: K tokens drafted by `draft`, and options that also apply without a draft."""

    draft: str  # "model" or "prompt lookup"
    n_vocab: int = 3
    n_tokens: int = 3
    K: int = 2
    threshold: float = 0.0
    options: dict = field(default_factory=dict)


SETTINGS = {
    "a draft model": Setting("model"),
    "a draft model, 4 tokens": Setting("model", n_vocab=2, n_tokens=4, K=3),
    "top_k 2": Setting("model", options={"top_k": 2}),
    "repetition penalty 1.7": Setting("model", options={"repetition_penalty": 1.7}),
    "a stop token": Setting("model", options={"eos_token_id": 2}),
    "confidence threshold 0.6": Setting("model", threshold=0.6),
    "prompt lookup": Setting("prompt lookup"),
    "prompt lookup, a stop token": Setting("prompt lookup", n_tokens=4, options={"eos_token_id": 0}),
}


def entry(name, setting):
    """The distance of a setting's distribution from the one without a draft, in plain numbers."""
    n_paths = count()
    try:
        alone, found = distribution(setting, None, count()), distribution(setting, setting.draft, n_paths)
    except Exception as error:  # whatever an engine may raise
        if isinstance(error, CannotEnumerate):
            raise
        return {"setting": name, "verdict": "fails", "message": f"{type(error).__name__}: {error}"[:300]}
    gap = {tokens: found.get(tokens, 0) - alone.get(tokens, 0) for tokens in found.keys() | alone.keys()}
    worst = max(sorted(gap), key=lambda tokens: abs(gap[tokens]))
    distance = total_variation(found, alone)
    return {
        "setting": name, "draft": setting.draft, "n_vocab": setting.n_vocab, "n_tokens": setting.n_tokens,
        "K": setting.K, "paths": next(n_paths), "outcomes": len(alone), "distance": distance,
        "impossible": sum(probability for tokens, probability in found.items() if tokens not in alone),
        "worst": {"tokens": list(worst), "alone": alone.get(worst, 0), "with_draft": found.get(worst, 0)},
        "verdict": "lossless" if distance <= ROUNDING else "NOT LOSSLESS",
    }  # fmt: skip


def distribution(setting, draft, n_paths):
    """The exact distribution of the new tokens, by the engine with a draft (a str) or without (None)."""
    import torch

    from .torch_draws import TorchDraws

    target, assistant = random_model(setting.n_vocab, 0), random_model(setting.n_vocab, 1)
    prompt = torch.tensor([PROMPT])
    options = {
        "attention_mask": torch.ones_like(prompt), "do_sample": True, "top_k": 0, "max_new_tokens": setting.n_tokens,
        "pad_token_id": setting.n_vocab - 1, "eos_token_id": None, **setting.options,
    }  # fmt: skip
    if draft == "prompt lookup":
        options |= {"prompt_lookup_num_tokens": setting.K, "max_matching_ngram_size": 2}

    def tokens(rng):
        next(n_paths)
        with TorchDraws(rng), torch.no_grad():
            chosen = {"assistant_model": prepared(assistant, setting)} if draft == "model" else {}
            return target.generate(prompt, **options, **chosen)[0, len(PROMPT) :].tolist()

    return exact_distribution(tokens)


def prepared(assistant, setting):
    """The draft model with its own settings restored, which `generate` may have changed."""
    config = assistant.generation_config
    config.num_assistant_tokens, config.num_assistant_tokens_schedule = setting.K, "constant"
    config.assistant_confidence_threshold = setting.threshold
    return assistant


def random_model(n_vocab, seed):
    """A GPT2LMHeadModel with one layer, and weights that are the same for every version of transformers."""
    import torch
    import transformers

    config = transformers.GPT2Config(
        vocab_size=n_vocab, n_positions=16, n_embd=8, n_layer=1, n_head=2, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model, rng = transformers.GPT2LMHeadModel(config).eval(), np.random.default_rng(seed)
    with torch.no_grad():
        for _, parameter in sorted(model.named_parameters()):
            parameter.copy_(torch.tensor(rng.standard_normal(parameter.shape) / 2))
    return model
