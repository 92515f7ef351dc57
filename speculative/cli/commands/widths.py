"""Rounding or a bug? How much a row changes with the number of rows in a call, and where greedy texts first differ."""

from dataclasses import asdict

from speculative import AutoregressiveSampler, ModelDrafter, Sampling
from speculative.testing.widths import WIDTHS, first_difference, verdict, width_audit

from ..inputs import check_draft, check_prompts, prompts_of
from ..options import whole
from ..registry import load_draft
from ..tables import Columns
from . import LISTS, experiment, models_are_there, names, one_length, open_target

N_PLACES = 24


def enough_tokens(options, command):
    whole(N_PLACES + max(WIDTHS)).check("n_tokens_to_generate", options.n_tokens_to_generate)


def measure(options, saved):
    context, about = open_target(options, saved)
    target, tokenizer, n_tokens = context.target, context.tokenizer, options.n_tokens_to_generate
    some = prompts_of(options, tokenizer, target)
    check_prompts(some, n_tokens, target)
    draft, _ = load_draft(context)
    saved.expect(len(some))
    alone = AutoregressiveSampler(target, sampling=Sampling(temperature=0))
    text = [*some[0], *alone.generate(some[0], n_tokens).tokens.tolist()]
    audit = width_audit(target, text, n_places=N_PLACES)
    found = [first_difference(target, ModelDrafter(draft), prompt, n_tokens, options.K) for prompt in some]
    differences = [
        {"prompt": i, **asdict(one), "texts": [tokenizer.decode([token]) for token in (one.alone, one.drafted)]}
        for i, one in enumerate(found, 1)
        if one
    ]
    widths = [
        {"m": w.m, "largest": w.largest, "units": w.largest / audit.unit, "flips": w.flips, "rows": w.n_rows}
        for w in audit.widths
    ]
    return {
        **about, "K": options.K, "dtype": audit.dtype, "widths": widths, "n_texts": len(some),
        "differences": differences, "verdict": verdict(audit, next(filter(None, found), None)),
    }  # fmt: skip


def table(report):
    columns = Columns(
        ("together", ">8", "{m}", "rows"),
        ("difference", ">12", "{largest:.2g}", "largest"),
        ("of the dtype", ">14", "{units:,.3g}", "units"),
        ("most probable", ">15", "{flips} of {rows}", "another token"),
    )
    differences = "".join(map(in_words, report["differences"]))
    n_equal = report["n_texts"] - len(report["differences"])
    return f"""\
{report["target"]["name"]}, logits in {report["dtype"]}: each row among m rows, against the same row alone

{columns.page(report["widths"])}

Greedy texts of {report["n_tokens"]} tokens with a draft, K = {report["K"]}: {n_equal} of {report["n_texts"]} equal.
{differences}{report["verdict"]}
"""


def in_words(difference):
    """The first place where two greedy texts differ, as a line."""
    place, (a, b) = f"prompt {difference['prompt']}, token {difference['position'] + 1}", difference["texts"]
    margin, row = min(difference["margins"]), difference["row"]
    return f"{place}: {a!r} without, {b!r} with, {margin:.2g} apart; the row differs by {row:.2g}\n"


def has_a_draft(options, command):
    check_draft(options)


COMMAND = experiment(
    "widths",
    "rounding or a bug? How much a row of logits changes with the rows that are computed with it, and the first "
    "token in which a greedy text with a draft differs from the one without",
    measure,
    table,
    options=LISTS | names("target_model_size draft_model_size K n_tokens_to_generate n_prompts models_dir source json"),
    defaults={"n_prompts": 4},
    checks=(models_are_there, has_a_draft, one_length, enough_tokens),
    example="--prompts known",
)
