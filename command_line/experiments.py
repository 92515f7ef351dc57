"""The experiments as commands: options to models and prompts, the experiment, and its page.

Next: tables.py
"""

from dataclasses import asdict

from speculative import AutoregressiveSampler, NoisyDrafter, OracleDrafter, Sampling, experiments
from speculative.interfaces import check_request

from .request import COPYING, DRAFTERS, OPTIONS, as_text, held_out_prompts, load, machine, read, set_up
from .tables import print_calibration, print_drafters
from .views import progress, show

ONE_TEXT = {"prompt", "K", "verifier", "stop"}  # options of a single comparison
N_AHEAD = 200  # how far into its own greedy text the target goes round in circles


@as_text
def calibrate(*words, **options):
    """Predict the speedup for K = 1 to 8 from measured costs and acceptance, and hold it against the clock."""
    request = read(words, options, OPTIONS - ONE_TEXT, n_tokens_to_generate=64)
    if request.drafter in COPYING:
        raise ValueError(
            f"calibrate needs a drafter with probabilities (model, ngram, early_exit), got {request.drafter}"
        )
    model, tokenizer, _ = load(request.target_model_size, request)
    setting = set_up(request.drafter, request, model, tokenizer)
    prompts = held_out_prompts(tokenizer, request.n_prompts)
    check_request(prompts[0], request.n_tokens_to_generate, model)
    expected, rows = experiments.calibrate(
        setting.target, setting.drafter, prompts, request.n_tokens_to_generate, sampling=request.sampling,
        seed=request.seed, progress=progress,
    )  # fmt: skip
    report = {
        "target": {"name": request.target_model_size, "parameters": model.n_params}, "draft": setting.draft,
        **asdict(request.sampling), "n_prompts_expected": request.n_prompts - request.n_prompts // 3,
        "n_prompts_timed": request.n_prompts // 3, "n_tokens": request.n_tokens_to_generate, **asdict(expected),
        "rows": rows, "machine": machine(),
    }  # fmt: skip
    show(report, print_calibration, request.json)


@as_text
def drafters(*words, **options):
    """Every drafter in a table, on tales and on text that repeats itself."""
    request = read(words, options, OPTIONS - ONE_TEXT - {"drafter"}, n_tokens_to_generate=64, n_prompts=4)
    target, tokenizer, _ = load(request.target_model_size, request)
    settings = {kind: set_up(kind, request, target, tokenizer) for kind in DRAFTERS}
    entries = {kind: (setting.target, setting.drafter) for kind, setting in settings.items()}
    entries["noisy (0.2)"] = target, NoisyDrafter(target, 0.2, sampling=request.sampling)
    entries["oracle"] = target, OracleDrafter(target, sampling=request.sampling)
    beginnings = held_out_prompts(tokenizer, request.n_prompts)
    check_request([*beginnings[0], *[0] * N_AHEAD], request.n_tokens_to_generate, target)
    alone = AutoregressiveSampler(target, sampling=Sampling(temperature=0))
    prompts = {
        "tales": beginnings,
        "repeating": [[*p, *alone.generate(p, N_AHEAD).tokens.tolist()] for p in progress(beginnings)],
    }
    report = {
        "target": {"name": request.target_model_size, "parameters": target.n_params}, **asdict(request.sampling),
        "n_tokens": request.n_tokens_to_generate, "machine": machine(), "kinds": {
            "tales": f"{request.n_prompts} beginnings of tales, {request.n_tokens_to_generate} tokens each",
            "repeating": f"the same {N_AHEAD} greedy tokens later, where the target's text goes round in circles",
        },
        "rows": {
            kind: experiments.compare_drafters(
                target, entries, some, request.n_tokens_to_generate, sampling=request.sampling, seed=request.seed,
                progress=progress,
            )
            for kind, some in prompts.items()
        },
    }  # fmt: skip
    show(report, print_drafters, request.json)
