"""What the target alone, a draft model, heads and an EAGLE block make of the same texts, in one race:

    python dev/bench/compare_drafts.py [TARGET DRAFT [N_PROMPTS N_TOKENS TEMPERATURE]]

TARGET and DRAFT are tiny-target and tiny-draft, or folders such as those of dev/train/grow_pair.py, where the target
has heads.safetensors and eagle.safetensors. There are chains of several lengths and trees of 8 nodes, and the block
drafts all tokens or the most frequent 8,192, of a small vocabulary half. Where torch and transformers are installed,
their greedy texts are timed as well, alone and assisted. All take turns on each prompt.
"""

import sys
from functools import partial
from importlib.util import find_spec

import numpy as np

import gpt2np
from gpt2np.files.loading import find_folder
from speculative import (
    AutoregressiveSampler,
    EagleDrafter,
    Grown,
    HeadsDrafter,
    ModelDrafter,
    Sampling,
    Shape,
    SpeculativeSampler,
)
from speculative.cli.prompts import held_out
from speculative.interfaces import Draft, Round, Verdict
from speculative.measuring.runs import compared, race, total

LEVELS = 6  # of the block's trees
HAS_TRANSFORMERS = find_spec("torch") and find_spec("transformers")


class Transformers:
    """Greedy text by `generate`, as one round."""

    def __init__(self, target, **options):
        self.target, self.options = target, options

    def rounds(self, prompt, n_tokens, seed):
        import torch

        ids = torch.tensor([list(prompt)])
        text = self.target.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, min_new_tokens=n_tokens, max_new_tokens=n_tokens,
            pad_token_id=0, eos_token_id=None, **self.options,
        )  # fmt: skip
        new = text[0, len(prompt) :].numpy()
        seconds = {"draft": 0.0, "target": 0.0, "verify": 0.0}
        yield Round(new, Draft(np.empty(0, int), None), Verdict(0, new[-1]), None, seconds)


def transformers_samplers(target, draft):
    """dict name -> sampler."""
    import torch
    import transformers

    models = [
        transformers.GPT2LMHeadModel.from_pretrained(find_folder(name, None), dtype=torch.float32).eval()
        for name in (target, draft)
    ]
    config = models[1].generation_config
    config.num_assistant_tokens, config.num_assistant_tokens_schedule = 3, "constant"
    config.assistant_confidence_threshold = 0
    return {
        "transformers, alone": Transformers(models[0]),
        "transformers, assisted, K = 3": Transformers(models[0], assistant_model=models[1]),
    }


def samplers_of(target, draft, temperature):
    """dict name -> sampler, the target alone first."""
    (model, _), (small, _), sampling = gpt2np.load(target), gpt2np.load(draft), Sampling(temperature)
    heads, block = gpt2np.load_heads(target), gpt2np.load_eagle(target)
    n_frequent = 8192 if model.n_vocab > 8192 else model.n_vocab // 2
    speculative = partial(SpeculativeSampler, model, sampling=sampling)
    samplers = {"alone": AutoregressiveSampler(model, sampling=sampling)}
    samplers |= {f"draft model, K = {K}": speculative(ModelDrafter(small), K=K) for K in (1, 2, 3)}
    samplers["heads, 8 nodes"] = speculative(HeadsDrafter(model, heads), K=3)
    if temperature == 0:
        tree = {"tree": Grown(8), "siblings": "top"}
    else:
        tree = {"tree": Shape.best(8, [0.66, 0.17, 0.06, 0.03]), "siblings": "drawn"}
    for name, n in (("EAGLE", 0), (f"EAGLE, {n_frequent} tokens", n_frequent)):
        eagle = partial(EagleDrafter, model, block, n_frequent=n)
        samplers |= {f"{name}, K = {K}": speculative(eagle(), K=K) for K in (2, 3, 4, 5)}
        samplers[f"{name}, 8 nodes"] = speculative(eagle(**tree), K=LEVELS)
    return samplers | (transformers_samplers(target, draft) if temperature == 0 and HAS_TRANSFORMERS else {})


def main(target="tiny-target", draft="tiny-draft", n_prompts=36, n_tokens=64, temperature=0):
    n_prompts, n_tokens, temperature = int(n_prompts), int(n_tokens), float(temperature)
    prompts = held_out(gpt2np.load(target)[1], n_prompts, 64)
    greedy = temperature == 0
    runs = race(samplers_of(target, draft, temperature), prompts, n_tokens)
    print(f"{target} with {draft}, temperature {temperature:g}, {n_prompts} prompts, {n_tokens} tokens each\n")
    same = "   same text" if greedy else ""
    print(f"{'':28}{'tokens per call':>16}{'speedup':>10}{'95 % interval':>16}{'ms per token':>14}{same}")
    for name, some in runs.items():
        row, seconds = compared(runs["alone"], some), total(some).seconds
        calls = "" if name.startswith("transformers") else f"{row['tokens_per_call']:.2f}"
        interval = "" if row["low"] is None else f"{row['low']:.2f} to {row['high']:.2f}"
        print(f"{name:28}{calls:>16}{row['speedup']:10.2f}{interval:>16}", end="")
        equal = f"   {row['same_texts']} of {row['n_texts']}" if greedy else ""  # drawn texts need not be the same
        print(f"{1000 * seconds / (n_prompts * n_tokens):14.2f}{equal}")


if __name__ == "__main__":
    if len(sys.argv) not in (1, 3, 6):
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
