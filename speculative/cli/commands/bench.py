"""How long a forward pass takes for 1 to 9 tokens, against the limit of the memory; see ../passes.py.

Beside the strategies of gpt2np/kernels/matmul.py there are two for comparison: "plain", an ordinary `x @ w` with the
weights as they are stored, and, if it is installed, "transformers", PyTorch on the same weights. The page shows
medians, and half the distance between the quartiles.
"""

import os
import sys
from functools import partial
from pathlib import Path
from time import perf_counter

from tqdm import tqdm

from gpt2np.files.model_files import find_on_disk
from gpt2np.kernels import matmul
from gpt2np.kernels.threads import n_threads
from speculative import AutoregressiveSampler, ModelDrafter, Sampling, SpeculativeSampler

from ..inputs import (
    PROMPT_LENGTH,
    SHAPES,
    check_draft,
    check_models,
    check_vocabularies,
    draft_name,
    held_out_prompts,
    hparams_of,
    load,
)
from ..passes import hand_over, plain, random_model, times
from ..plots import COLOURS, GREY, MARKERS, arrows, panels
from ..registry import Context, load_draft
from ..tables import Columns, busy, counted
from . import experiment, names, one_length

SMALL = 50_000_000  # parameters


def measure(options, saved):
    """Time the passes of each model, and print the cost of a pass for several tokens."""
    strategies, sizes = options.listed("strategies"), options.listed("sizes")
    with_transformers = "transformers" in strategies
    saved.expect(len(sizes) + with_transformers)
    report = {"matmul": saved.note("matmul", matmul.describe), "models": []}
    report["hand_over_seconds"] = saved.note("hand_over_seconds", partial(hand_over, matmul.n_threads()))
    for size in sizes:
        report["models"].append(saved.keep(size, partial(measure_model, size, strategies, options, saved)))
    first, last = (m["strategies"][m["strategy"]] for m in (report["models"][0], report["models"][-1]))
    report["c"] = first["seconds"]["1"][1] / last["seconds"]["1"][1]
    if with_transformers:
        report["generation"] = saved.keep("generation", partial(generation, options, saved))
    return report


def sizes_are_there(options, command):
    """The names of all models: of the pair only for the texts by both libraries; and enough context for the run."""
    one_length(options, command)
    check_models("sizes", options.listed("sizes"), options)
    if "transformers" in options.listed("strategies"):
        check_models("target_model_size", [options.target_model_size], options)
        check_draft(options)
        names = options.target_model_size, draft_name(options)
        check_vocabularies(names, [hparams_of(name, options).n_vocab for name in names])
    check_room(options)


def check_room(options):
    """Raise ValueError unless every model has enough context for its run."""
    wanted = [("--context and --rows", name, options.context + options.rows) for name in options.listed("sizes")]
    wanted += [("--prompt_tokens", name, options.prompt_tokens) for name in options.listed("sizes")]
    if "transformers" in options.listed("strategies"):
        what, n = f"prompts of {PROMPT_LENGTH} and --n_tokens_to_generate", options.n_tokens_to_generate
        wanted += [(what, name, PROMPT_LENGTH + n) for name in (options.target_model_size, draft_name(options))]
    for what, name, n in wanted:
        room = hparams_of(name, options).n_ctx
        if n > room:
            raise ValueError(f"{what}: {name} has room for {room} tokens, got {n}; take fewer")


def measure_model(size, strategies, options, saved):
    """The measurements of one model, in plain numbers."""
    model, weights = open_model(size, options, saved)
    rows = range(1, options.rows + 1)
    bar = partial(tqdm, leave=False, unit=" passes", disable=not sys.stderr.isatty())
    other = {"transformers": transformers_runner}
    n = options.context, options.prompt_tokens, options.repeats
    seconds = times(model, strategies, rows, *n, other=other, progress=bar)
    own = model.strategy if model.strategy in strategies else strategies[0]
    return {"name": size, "weights": weights, "strategy": own, **summary(model, seconds)}


def open_model(size, options, saved):
    """(model, "trained" or "random"): the model of this name on disk, else random weights of its shape."""
    if size in SHAPES and not find_on_disk(size, Path(options.models_dir)):
        return random_model(SHAPES[size]), "random"
    return load(size, options, saved)[0], "trained"


def threads_of(strategy):
    """The most threads that a product of a few rows may use; for BLAS's own threads this is its default."""
    if strategy in matmul.STRATEGIES:
        return n_threads()
    if strategy == "transformers":
        import torch

        return torch.get_num_threads()
    limits = (os.environ.get(name, "") for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return next((int(text) for text in limits if text.isdecimal() and int(text)), cores)


def summary(model, seconds):
    """The results of `times` for a model, in plain numbers for JSON."""
    n_bytes = 4 * model.n_params
    limit = seconds["limit", 1][0]
    strategies = {}
    for strategy, what in seconds:
        if strategy == "limit":
            continue
        entry = strategies.setdefault(strategy, {"threads": threads_of(strategy), "seconds": {}, "v": {}})
        entry["seconds"][str(what)] = seconds[strategy, what]
        if what != "prompt":
            entry["v"][str(what)] = seconds[strategy, what][1] / seconds[strategy, 1][1]
        if what == 1:
            entry["over_limit"] = seconds[strategy, 1][1] / limit
            entry["bytes_per_second"] = n_bytes / seconds[strategy, 1][1]
    limit_seconds = seconds["limit", 1]
    return {"parameters": model.n_params, "bytes": n_bytes, "limit_seconds": limit_seconds, "strategies": strategies}


# ------------------------------------------------------------------------------------------------ by transformers


def transformers_runner(model, strategy, past):
    """Like `numpy_runner`, with `transformers` on the same weights."""
    import torch
    import transformers

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
    import torch
    import transformers

    h = model.hparams
    sizes = {"vocab_size": h.n_vocab, "n_positions": h.n_ctx, "n_embd": h.n_embd, "n_head": h.n_head}
    config = transformers.GPT2Config(**sizes, n_layer=h.n_layer, bos_token_id=None, eos_token_id=None)
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


def generation(options, saved):
    """Seconds of greedy generation, alone and with the draft, here and by `transformers`, in turns by prompt."""
    import torch
    import transformers

    target, tokenizer, _ = load(options.target_model_size, options, saved)
    draft, _ = load_draft(Context(options, saved, target, tokenizer))
    greedy, n = Sampling(0), options.n_tokens_to_generate
    reference, assistant = transformers_model(target), transformers_model(draft)
    assistant.generation_config.num_assistant_tokens = options.K
    assistant.generation_config.num_assistant_tokens_schedule = "constant"
    assistant.generation_config.assistant_confidence_threshold = 0

    of_n_tokens = transformers.GenerationConfig(do_sample=False, min_new_tokens=n, max_new_tokens=n, pad_token_id=0)

    def theirs(prompt, **options):
        ids = torch.tensor([prompt])
        texts = reference.generate(ids, attention_mask=torch.ones_like(ids), generation_config=of_n_tokens, **options)
        return texts[0, len(prompt) :].tolist()

    alone = AutoregressiveSampler(target, sampling=greedy)
    speculative = SpeculativeSampler(target, ModelDrafter(draft, sampling=greedy), K=options.K, sampling=greedy)
    ways = {
        "ours, alone": lambda prompt: alone.generate(prompt, n).tokens.tolist(),
        "ours, with the draft": lambda prompt: speculative.generate(prompt, n).tokens.tolist(),
        "transformers, alone": theirs,
        "transformers, assisted": lambda prompt: theirs(prompt, assistant_model=assistant),
    }
    seconds, same = {name: [] for name in ways}, dict.fromkeys(ways, 0)
    prompts = held_out_prompts(tokenizer, options.n_prompts)
    for i, prompt in enumerate(
        tqdm([prompts[0], *prompts], leave=False, unit=" prompts", disable=not sys.stderr.isatty())
    ):
        texts = {}
        for name, way in ways.items():
            started = perf_counter()
            texts[name] = way(prompt)
            if i > 0:  # the first time is to warm up
                seconds[name].append(perf_counter() - started)
                same[name] += texts[name] == texts["ours, alone"]
    return {
        "target": options.target_model_size, "draft": draft_name(options), "K": options.K, "n_tokens": n,
        "n_prompts": len(prompts), "seconds": seconds, "same_text": same,
        "parameters": target.n_params, "threads": torch.get_num_threads(),
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------ the table


def table(report):
    blocks = [f"{report['machine']}; products by {report['matmul']['strategy']!r}{busy(report)}\n"]
    for model in report["models"]:
        size, limit = model["bytes"] / 1e9, model["limit_seconds"][0]
        counts = [m for m in next(iter(model["strategies"].values()))["seconds"] if m != "prompt"][1:]
        columns = Columns(
            ("", "<14"), ("threads", ">7"), ("one token", ">18"), ("over limit", ">12"), ("   V(m) / V(1)", "<14"),
            *((m, ">6") for m in counts), ("prompt", ">9"),
        )  # fmt: skip
        rows = [cells(strategy, entry, counts) for strategy, entry in model["strategies"].items()]
        head = f"{model['name']}, {model['weights']} weights: {size:.3f} GB, "
        head += f"the memory's limit {1e3 * limit:.2f} ms a pass ({size / limit:.1f} GB/s)"
        blocks.append(f"{head}\n\n{columns.page(rows)}\n")
    names, chosen = [model["name"] for model in report["models"]], report["matmul"]
    sharing = f"; sharing costs {1e3 * report['hand_over_seconds']:.2f} ms a product here, up to four times a layer"
    if chosen["n_threads"] == 1:
        sharing = ""
    blocks.append(f"""\
c = {report["c"]:.3f}: one token of {names[0]} over one of {names[-1]}
limit    the fastest time in which all weights were read here: bare matrix-vector products, or a pass for one token
threads  the most that a product of a few rows uses; panels and rows use one for a small product, and up to
         {chosen["n_threads_for_prompts"]} for a prompt's{sharing}
""")
    if found := report.get("generation"):
        head = f"{found['target']} with {found['draft']}, K = {found['K']}, greedy, "
        head += f"{counted(found['n_prompts'], 'time')} {counted(found['n_tokens'], 'token')}"
        blocks.append(f"{head}\n\n{generation_lines(found)}\n")
        if found["parameters"] < SMALL:
            blocks.append("For so small a model much of a pass of transformers is Python's own time, not arithmetic.")
        blocks.append(
            "of a text: the least and the greatest speedup of a single text; "
            f"PyTorch had {counted(found['threads'], 'thread')}\n"
        )
    return "\n".join(blocks)


def cells(strategy, entry, counts):
    """The row of a strategy."""
    low, middle, high = (1e3 * number for number in entry["seconds"]["1"])
    prompt = f"{entry['seconds']['prompt'][1]:.2f} s" if "prompt" in entry["seconds"] else ""
    spread = f"{middle:.2f} ± {(high - low) / 2:.2f} ms"
    start = [strategy, str(entry["threads"]), spread, f"{entry['over_limit']:.2f}", ""]
    return [*start, *(f"{entry['v'][m]:.2f}" for m in counts), prompt]


def generation_lines(found):
    """A line for each way to generate the same texts."""
    alone = found["seconds"]["ours, alone"]
    columns = Columns(("", "<24"), ("seconds", ">8"), ("speedup", ">10"), ("of a text", ">15"), ("same text", ">12"))
    rows = []
    for name, seconds in found["seconds"].items():
        each = [before / now for before, now in zip(alone, seconds)]
        rows.append([
            name, f"{sum(seconds):.2f}", f"{sum(alone) / sum(seconds):.2f}", f"{min(each):.2f} to {max(each):.2f}",
            f"{found['same_text'][name]} of {found['n_prompts']}",
        ])  # fmt: skip
    return columns.page(rows)


def plot(report):
    figure, axes_of = panels(1, len(report["models"]), 1.6 + 4 * len(report["models"]), 4.4, squeeze=False, sharey=True)
    figure.suptitle("Cost of a forward pass by its number of tokens", x=0.01, ha="left", fontsize=11)
    for axes, model in zip(axes_of[0], report["models"]):
        for (strategy, entry), colour, marker in zip(model["strategies"].items(), COLOURS, MARKERS):
            v = {int(m): cost for m, cost in entry["v"].items()}
            axes.plot([*v], [*v.values()], marker=marker, color=colour, label=strategy)
            arrows(axes, [*v], [*v.values()], len(v) + 0.5, colour)
        axes.plot([*v], [*v], ":", color=GREY, linewidth=1, label="token by token")
        axes.set_title(f"{model['name']}, {model['weights']} weights", loc="left")
        axes.set(xlabel="tokens of the pass, m", ylim=(0, len(v) + 0.5))
    axes_of[0, 0].set_ylabel("V(m) / V(1), medians")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=6)
    return figure


COMMAND = experiment(
    "bench",
    "a forward pass for 1 to 9 tokens, against the memory's limit; plain NumPy and, if it is installed, transformers",
    measure,
    table,
    plot=plot,
    options=names(
        "sizes strategies rows context prompt_tokens repeats draft_model_size target_model_size K n_tokens_to_generate "
        "n_prompts models_dir source json plot"
    ),
    defaults={"n_tokens_to_generate": 60, "n_prompts": 3},
    checks=(sizes_are_there,),
    engines=("transformers", "torch"),
    example="--sizes tiny-draft,tiny-target --rows 5",
)
