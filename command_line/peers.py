"""The same passes and texts by `transformers` with PyTorch, on the same weights. Only bench imports this file.

Next: passes.py
"""

from time import perf_counter

import torch
import transformers

from speculative import AutoregressiveSampler, ModelDrafter, Sampling, SpeculativeSampler

from .builders import Context, load_draft
from .models import load
from .passes import plain
from .texts import held_out_prompts
from .views import progress


def transformers_runner(model, strategy, past):
    """Like `numpy_runner`, with `transformers` on the same weights."""
    reference, full = transformers_model(model), transformers.DynamicCache()
    torch.set_grad_enabled(False)
    reference(torch.tensor([past]), past_key_values=full)

    def run(new, from_empty):
        cache = transformers.DynamicCache() if from_empty else full
        ids = torch.tensor([new])
        started = perf_counter()
        reference(ids, past_key_values=cache, logits_to_keep=1 if from_empty else 0)
        seconds = perf_counter() - started
        cache.crop(-len(new))
        return seconds

    return run


def transformers_model(model):
    """A GPT2LMHeadModel with the parameters of a GPT2."""
    h = model.hparams
    config = transformers.GPT2Config(
        vocab_size=h.n_vocab,
        n_positions=h.n_ctx,
        n_embd=h.n_embd,
        n_head=h.n_head,
        n_layer=h.n_layer,
        bos_token_id=None,
        eos_token_id=None,
    )
    with torch.device("meta"):
        reference = transformers.GPT2LMHeadModel(config)
    params = plain(model.params)
    state = {f"transformer.{name}.weight": params[name] for name in ("wte", "wpe")}
    norms = {"ln_f": params["ln_f"]}
    for i, block in enumerate(params["blocks"]):
        norms |= {f"h.{i}.{name}": block[name] for name in ("ln_1", "ln_2")}
        for part in ("attn", "mlp"):
            for name, linear in block[part].items():
                state |= {
                    f"transformer.h.{i}.{part}.{name}.{full}": linear[key]
                    for key, full in (("w", "weight"), ("b", "bias"))
                }
    for name, norm in norms.items():
        state |= {f"transformer.{name}.weight": norm["g"], f"transformer.{name}.bias": norm["b"]}
    state["lm_head.weight"] = state["transformer.wte.weight"]
    reference.load_state_dict({name: torch.tensor(array) for name, array in state.items()}, assign=True)
    return reference.eval()


def generation(request, parts):
    """Seconds of greedy generation, alone and with the draft, here and by `transformers`, prompt by prompt in turn."""
    target, tokenizer, _ = load(request.target_model_size, request, parts)
    draft, _ = load_draft(Context(request, parts, target, tokenizer))
    greedy, n = Sampling(0), request.n_tokens_to_generate
    reference, assistant = transformers_model(target), transformers_model(draft)
    assistant.generation_config.num_assistant_tokens = request.K
    assistant.generation_config.num_assistant_tokens_schedule = "constant"
    assistant.generation_config.assistant_confidence_threshold = 0

    of_n_tokens = transformers.GenerationConfig(do_sample=False, min_new_tokens=n, max_new_tokens=n, pad_token_id=0)

    def theirs(prompt, **options):
        ids = torch.tensor([prompt])
        texts = reference.generate(ids, attention_mask=torch.ones_like(ids), generation_config=of_n_tokens, **options)
        return texts[0, len(prompt) :].tolist()

    alone = AutoregressiveSampler(target, sampling=greedy)
    speculative = SpeculativeSampler(target, ModelDrafter(draft, sampling=greedy), K=request.K, sampling=greedy)
    ways = {
        "ours, alone": lambda prompt: alone.generate(prompt, n).tokens.tolist(),
        "ours, with the draft": lambda prompt: speculative.generate(prompt, n).tokens.tolist(),
        "transformers, alone": theirs,
        "transformers, assisted": lambda prompt: theirs(prompt, assistant_model=assistant),
    }
    seconds, same = {name: [] for name in ways}, dict.fromkeys(ways, 0)
    prompts = held_out_prompts(tokenizer, request.n_prompts)
    for i, prompt in enumerate(progress([prompts[0], *prompts])):
        texts = {}
        for name, way in ways.items():
            started = perf_counter()
            texts[name] = way(prompt)
            if i > 0:  # the first time is to warm up
                seconds[name].append(perf_counter() - started)
                same[name] += texts[name] == texts["ours, alone"]
    return {
        "target": request.target_model_size, "draft": request.draft_model_size, "K": request.K, "n_tokens": n,
        "n_prompts": len(prompts), "seconds": seconds, "same_text": same,
        "parameters": target.n_params, "threads": torch.get_num_threads(),
    }  # fmt: skip
