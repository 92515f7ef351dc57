"""Writes the golden file: a random GPT-2 by `transformers`, and every intermediate of its forward pass.

    python -m pip install torch==2.13.0 transformers==5.23.0
    python tests/golden/make_golden.py

It wrote, with these versions and Python 3.11: config.json and model.safetensors (the model, as transformers saves it)
and intermediates.npz (token ids; arrays in the order of the pass). Every dimension is another prime or a product of
two, so that a swapped axis cannot pass. The weights are larger than a real model's, so that softmax and gelu are bent.
"""

from pathlib import Path

import numpy as np
import torch
import transformers

HERE = Path(__file__).parent


def main():
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=53, n_positions=29, n_embd=3 * 7, n_layer=2, n_head=3, bos_token_id=None, eos_token_id=None
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * 0.3 + (1.0 if "ln_" in name and name.endswith("weight") else 0.0))
    seen = {}

    def keep(name):
        def hook(module, inputs, output):
            seen[name] = (output[0] if isinstance(output, tuple) else output)[0].numpy().copy()

        return hook

    transformer = model.transformer
    transformer.drop.register_forward_hook(keep("embedding"))
    for i, block in enumerate(transformer.h):
        for part in ("ln_1", "attn", "ln_2", "mlp"):
            getattr(block, part).register_forward_hook(keep(f"h.{i}.{part}"))
        block.register_forward_hook(keep(f"h.{i}"))
    transformer.ln_f.register_forward_hook(keep("ln_f"))
    tokens = torch.randint(0, config.vocab_size, (1, 11))
    with torch.no_grad():
        seen["logits"] = model(tokens).logits[0].numpy().copy()
    model.save_pretrained(HERE)
    (HERE / "generation_config.json").unlink(missing_ok=True)
    np.savez(HERE / "intermediates.npz", tokens=tokens[0].numpy(), **seen)
    print(*seen, sep="\n")


if __name__ == "__main__":
    main()
