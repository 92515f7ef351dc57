"""`python main.py bench`: how long a forward pass takes for 1 to 9 tokens, against the limit of the memory.

The limit is a bare matrix-vector product with every weight, measured in the same run. The strategies are those of
gpt2np/matmul.py, and two for comparison: "plain", the ordinary `x @ w` with the weights as they are in the file, and,
where it is installed, "transformers", PyTorch on the same weights. The passes are made in turn, and all of that several
times; the median counts, and the quartiles tell the spread. So a machine that slows down slows all of them.
"""

from dataclasses import dataclass, fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, sleep

import numpy as np

import gpt2np
from gpt2np import matmul
from gpt2np.cache import KVCache
from gpt2np.loading import find_on_disk
from gpt2np.params import build_params, param_shapes
from speculative import AutoregressiveSampler, ModelDrafter, Sampling, SpeculativeSampler

from .models import load, load_draft
from .prompts import held_out_prompts
from .request import check_choice, check_file, check_number, read
from .saved import Saved, settings_of
from .views import progress, show

SHAPES = {
    "124M": gpt2np.HParams(50257, 1024, 768, 12, 12),
    "355M": gpt2np.HParams(50257, 1024, 1024, 16, 24),
    "774M": gpt2np.HParams(50257, 1024, 1280, 20, 36),
    "1558M": gpt2np.HParams(50257, 1024, 1600, 25, 48),
}
STRATEGIES = (*matmul.STRATEGIES, "plain", "transformers")
HAS_TRANSFORMERS = bool(find_spec("transformers") and find_spec("torch"))


@dataclass(frozen=True)
class Options:
    """The options with their defaults; `python main.py --help` says what they mean."""

    sizes: str = "124M,355M"
    strategies: str = ",".join(STRATEGIES if HAS_TRANSFORMERS else STRATEGIES[:-1])
    rows: int = 9
    context: int = 100
    prompt_tokens: int = 512
    repeats: int = 7
    draft_model_size: str = "tiny-draft"
    target_model_size: str = "tiny-target"
    K: int = 3
    n_tokens_to_generate: int = 60
    n_prompts: int = 3
    models_dir: str = "models"
    source: str = "hub"
    json: bool | str = False

    def __post_init__(self):
        for name in ("rows", "context", "repeats", "K", "n_tokens_to_generate", "n_prompts"):
            check_number(name, getattr(self, name), int, 1)
        check_number("prompt_tokens", self.prompt_tokens, int, 0)
        for name in self.strategies.split(","):
            check_choice("strategies", name, STRATEGIES)
        if "transformers" in self.strategies and not HAS_TRANSFORMERS:
            raise ValueError("--strategies: transformers is not installed: pip install -e '.[peers]'")
        if not isinstance(self.json, bool):
            check_file("json", self.json, (".json",))


def bench(words, options):
    """Time the passes of each model in turn, and print what a pass for several tokens costs."""
    names = {field.name for field in fields(Options)}
    request = read(words, options, names, Options)
    parts, strategies = Saved(request.json, "bench", settings_of(request, names)), request.strategies.split(",")
    report = {"matmul": matmul.describe(), "models": []}
    for size in request.sizes.split(","):
        report["models"].append(parts.keep(size, partial(measure, size, strategies, request)))
    name = matmul.strategy() if matmul.strategy() in strategies else strategies[0]
    first, last = (m["strategies"][name] for m in (report["models"][0], report["models"][-1]))
    report["c"] = first["seconds"]["1"][1] / last["seconds"]["1"][1]
    if "transformers" in strategies:
        report["generation"] = parts.keep("generation", partial(generation, request))
    show(parts.finish(report), page, request.json is True)


def measure(size, strategies, request):
    """What is measured of one model, in plain numbers."""
    model, weights = open_model(size, request.models_dir)
    if max(request.context + request.rows, request.prompt_tokens) > model.n_ctx:
        raise ValueError(f"--context and --prompt_tokens: {size} has room for {model.n_ctx} tokens; take fewer")
    rows = range(1, request.rows + 1)
    seconds = times(model, strategies, rows, request.context, request.prompt_tokens, request.repeats)
    return {"name": size, "weights": weights, **summary(model, seconds)}


def open_model(size, models_dir):
    """(model, "trained" or "random"): what is on disk under this name, else random weights of that shape."""
    if size in SHAPES and not find_on_disk(size, Path(models_dir)):
        return random_model(SHAPES[size]), "random"
    return gpt2np.load(size, models_dir)[0], "trained"


def random_model(hparams, seed=0):
    """A GPT2 with weights drawn as they are before training."""
    rng, tensors = np.random.default_rng(seed), {}
    for name, shape in param_shapes(hparams).items():
        if len(shape) == 2:
            tensors[name] = rng.standard_normal(shape, np.float32)
            tensors[name] *= np.float32(0.02)
        else:
            tensors[name] = np.full(shape, "ln_" in name and name.endswith("weight"), np.float32)
    return gpt2np.GPT2(build_params(tensors, hparams, "random"), hparams)


def times(model, strategies, rows, context, prompt, repeats):
    """Seconds of the passes: dict (strategy, what) -> [lower quartile, median, upper quartile].

    Parameters
    ----------
    model : GPT2
    strategies : sequence of str
        Of STRATEGIES; ("limit", 1) is measured in any case.
    rows : sequence of int
        What: how many tokens a pass is for, with `context` tokens in the cache.
    context : int
    prompt : int
        What: "prompt", a pass for this many tokens without any in the cache. 0: none.
    repeats : int
        How often each pass is made.
    """
    tokens = np.random.default_rng(0).integers(0, model.n_vocab, model.n_ctx).tolist()
    runners = {"limit": limit(model)}
    for strategy in strategies:
        runner = transformers_runner if strategy == "transformers" else numpy_runner
        runners[strategy] = runner(model, strategy, tokens[:context])
    inputs = {m: tokens[context : context + m] for m in rows} | ({"prompt": tokens[:prompt]} if prompt else {})
    plan = [("limit", 1), *((strategy, what) for strategy in strategies for what in inputs)]
    seconds, before, last = {key: [] for key in plan}, matmul.strategy(), None
    for strategy, what in progress(plan * repeats, unit=" passes"):
        if strategy in matmul.STRATEGIES:
            matmul.use(strategy)
        if strategy != last:  # the threads of BLAS and PyTorch spin on for a moment after a call; then once to warm up
            sleep(0.1)
            runners[strategy](inputs[1], False)
        last = strategy
        seconds[strategy, what].append(runners[strategy](inputs.get(what), what == "prompt"))
    matmul.use(before)
    return {key: np.quantile(some, (0.25, 0.5, 0.75)).tolist() for key, some in seconds.items()}


def limit(model):
    """A function (None, False) -> seconds of `w @ x` for all weight matrices w of the model, one after the other."""
    blocks = model.params["blocks"]
    matrices = [linear["w"] for block in blocks for part in ("attn", "mlp") for linear in block[part].values()]
    chunks = [chunk for w in (*matrices, model.params["wte"].T) for chunk in w.chunks]
    weights = [chunk.reshape(-1, chunk.shape[2]) for chunk in chunks]  # the same numbers, as [n_out, n_in]
    vectors = {w.shape[1]: np.ones(w.shape[1], np.float32) for w in weights}

    def run(new, from_empty):
        started = perf_counter()
        for w in weights:
            w @ vectors[w.shape[1]]
        return perf_counter() - started

    return run


def numpy_runner(model, strategy, past):
    """A function (new tokens, whether without the past) -> seconds of the pass over them."""
    params = plain(model.params) if strategy == "plain" else model.params
    h = model.hparams
    full, empty = (KVCache(h.n_layer, h.n_head, h.n_ctx, h.d_head) for _ in range(2))
    gpt2np.forward(past, params, h.n_head, 1, full)

    def run(new, from_empty):
        cache = empty if from_empty else full
        cache.truncate(0 if from_empty else len(past))
        started = perf_counter()
        gpt2np.forward(new, params, h.n_head, 1 if from_empty else len(new), cache)
        return perf_counter() - started

    return run


def plain(params):
    """The parameter tree with ordinary arrays for its weight matrices: one more copy of them."""
    if isinstance(params, dict):
        return {name: plain(value) for name, value in params.items()}
    return [plain(value) for value in params] if isinstance(params, list) else np.asarray(params)


def summary(model, seconds):
    """What `times` measured of a model, in plain numbers for JSON."""
    n_bytes = 4 * model.n_params
    limit = seconds["limit", 1][1]
    strategies = {}
    for strategy, what in seconds:
        if strategy == "limit":
            continue
        entry = strategies.setdefault(strategy, {"seconds": {}, "v": {}})
        entry["seconds"][str(what)] = seconds[strategy, what]
        if what != "prompt":
            entry["v"][str(what)] = seconds[strategy, what][1] / seconds[strategy, 1][1]
        if what == 1:
            entry["over_limit"] = seconds[strategy, 1][1] / limit
            entry["bytes_per_second"] = n_bytes / seconds[strategy, 1][1]
    return {
        "parameters": model.n_params,
        "bytes": n_bytes,
        "limit_seconds": seconds["limit", 1],
        "strategies": strategies,
    }


def page(report):
    print(f"{report['machine']}; products by {report['matmul']['strategy']!r}")
    for model in report["models"]:
        size, limit = model["bytes"] / 1e9, model["limit_seconds"][1]
        counts = [m for m in next(iter(model["strategies"].values()))["seconds"] if m != "prompt"][1:]
        print(f"\n{model['name']}, {model['weights']} weights: {size:.3f} GB, ", end="")
        print(f"the memory's limit {1e3 * limit:.2f} ms a pass ({size / limit:.1f} GB/s)\n")
        print(
            f"{'':14}{'one token':>18}{'over limit':>12}   V(m) / V(1)"
            + "".join(f"{m:>6}" for m in counts)
            + "   prompt"
        )
        for strategy, entry in model["strategies"].items():
            low, middle, high = (1e3 * number for number in entry["seconds"]["1"])
            spread, ratios = (
                f"{middle:.2f} ± {(high - low) / 2:.2f} ms",
                "".join(f"{entry['v'][m]:6.2f}" for m in counts),
            )
            prompt = f"{entry['seconds']['prompt'][1]:7.2f} s" if "prompt" in entry["seconds"] else ""
            print(f"{strategy:14}{spread:>18}{entry['over_limit']:12.2f}{'':14}{ratios}{prompt}")
    names = [model["name"] for model in report["models"]]
    print(f"\nc = {report['c']:.3f}: one token of {names[0]} over one of {names[-1]}")
    if found := report.get("generation"):
        print(f"\n{found['target']} with {found['draft']}, K = {found['K']}, greedy, ", end="")
        print(f"{found['n_prompts']} times {found['n_tokens']} tokens\n")
        alone = found["seconds"]["ours, alone"]
        for name, seconds in found["seconds"].items():
            print(f"{name:24}{seconds:8.2f} s   speedup {alone / seconds:.2f}   ", end="")
            print(f"same text {found['same_text'][name]} of {found['n_prompts']}")


# ------------------------------------------------------------------------------------------------ transformers


def transformers_runner(model, strategy, past):
    """As `numpy_runner`, with `transformers` on the same weights."""
    import torch
    from transformers import DynamicCache

    reference, full = transformers_model(model), DynamicCache()
    torch.set_grad_enabled(False)
    reference(torch.tensor([past]), past_key_values=full)

    def run(new, from_empty):
        cache = DynamicCache() if from_empty else full
        ids = torch.tensor([new])
        started = perf_counter()
        reference(ids, past_key_values=cache, logits_to_keep=1 if from_empty else 0)
        seconds = perf_counter() - started
        cache.crop(-len(new))
        return seconds

    return run


def transformers_model(model):
    """A GPT2LMHeadModel with the parameters of a GPT2."""
    import torch
    import transformers

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


def generation(request):
    """Seconds of greedy generation, alone and with the draft, here and by `transformers`, prompt by prompt in turn."""
    import torch

    (target, tokenizer, _), greedy, n = (
        load(request.target_model_size, request),
        Sampling(0),
        request.n_tokens_to_generate,
    )
    draft, _ = load_draft(request, target, tokenizer)
    reference, assistant = transformers_model(target), transformers_model(draft)
    assistant.generation_config.num_assistant_tokens = request.K
    assistant.generation_config.num_assistant_tokens_schedule = "constant"
    assistant.generation_config.assistant_confidence_threshold = 0

    def theirs(prompt, **options):
        ids = torch.tensor([prompt])
        options |= {
            "attention_mask": torch.ones_like(ids),
            "do_sample": False,
            "min_new_tokens": n,
            "max_new_tokens": n,
        }
        return reference.generate(ids, pad_token_id=0, **options)[0, len(prompt) :].tolist()

    alone = AutoregressiveSampler(target, sampling=greedy)
    speculative = SpeculativeSampler(target, ModelDrafter(draft, sampling=greedy), K=request.K, sampling=greedy)
    ways = {
        "ours, alone": lambda prompt: alone.generate(prompt, n).tokens.tolist(),
        "ours, with the draft": lambda prompt: speculative.generate(prompt, n).tokens.tolist(),
        "transformers, alone": theirs,
        "transformers, assisted": lambda prompt: theirs(prompt, assistant_model=assistant),
    }
    seconds, same = dict.fromkeys(ways, 0.0), dict.fromkeys(ways, 0)
    prompts = held_out_prompts(tokenizer, request.n_prompts)
    for i, prompt in enumerate(progress([prompts[0], *prompts])):
        texts = {}
        for name, way in ways.items():
            started = perf_counter()
            texts[name] = way(prompt)
            seconds[name] += (perf_counter() - started) * (i > 0)  # the first time is to warm up
            same[name] += (texts[name] == texts["ours, alone"]) * (i > 0)
    return {
        "target": request.target_model_size, "draft": request.draft_model_size, "K": request.K, "n_tokens": n,
        "n_prompts": len(prompts), "seconds": seconds, "same_text": same,
    }  # fmt: skip
