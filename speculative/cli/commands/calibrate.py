"""Does it pay here? The speedup for K = 1 to 8, predicted from costs and acceptance, then measured on other prompts."""

from dataclasses import asdict

from speculative import ModelDrafter
from speculative.measuring import calibrate

from ..drafters import kind_of
from ..models import Models
from ..options import FILES, PAIR, PLOT, PROMPTS, SAMPLING, pick
from ..page import costs_line, draw, interval, over, pair, table, with_interval
from ..prompts import prompts_of
from ..settings import check_together, check_used

DRAFTING = "drafter draft_temperature draft_tokenizer corpus n_max exit_layer "  # for drafters that sample from a model
OPTIONS = pick(PAIR + DRAFTING + SAMPLING + PROMPTS + FILES + PLOT, n_tokens_to_generate=64, n_prompts=36)
EXAMPLES = ("", "--target_model_size 355M --draft_model_size 124M")
BELOW, WIDE = 0.95, 0.3  # a v below BELOW contradicts v(1) = 1; on a busy machine the spread exceeds WIDE


def run(options, report):
    check_used(options, [options.drafter])
    check_together(options)
    if options.n_prompts < 3 or options.n_tokens_to_generate < 2:
        raise ValueError("calibrate needs 3 prompts or more, a third of them to measure on, and 2 tokens or more")
    models = Models(options, report)
    target, tokenizer = models.target()
    own_target, drafter, draft = kind_of(options).build(options, models)
    if not isinstance(drafter, ModelDrafter):
        raise ValueError(
            f"calibrate needs a drafter with probabilities along a given text (model, ngram, early_exit), got "
            f"{options.drafter}: compare --drafter {options.drafter} --K 1-8 measures without a prediction"
        )
    prompts = prompts_of(options, target, tokenizer)
    report.same("prompts", [prompt.text for prompt in prompts])
    report.expect(len(prompts) + 1)
    tokens, n_timed = [prompt.tokens for prompt in prompts], len(prompts) // 3
    how = {"sampling": options.sampling, "seed": options.seed, "keep": report.keep}
    expected, rows = calibrate(own_target, drafter, tokens, options.n_tokens_to_generate, **how)
    about = {"target": {"name": options.target_model_size, "parameters": target.n_params}, "draft": draft}
    about |= {"n_texts": len(prompts) - n_timed, "n_timed": n_timed, "n_tokens": options.n_tokens_to_generate}
    found = {**about, **asdict(expected), "rows": rows}
    if options.plot:
        plot(rows, options, report.busy)
    report.finish(found, page_of(found, report.where))


def page_of(found, machine):
    rows, n_timed = found["rows"], found["n_timed"]
    gaps = {row["K"]: abs(row["expected_speedup"] / row["speedup"] - 1) for row in rows}
    worst = max(gaps, key=gaps.get)
    cells = [
        {
            "K": str(row["K"]), "calls: expected": f"{row['expected_tokens_per_call']:.2f}",
            "measured": f"{row['tokens_per_call']:.2f}", "speedup: by alpha": f"{row['speedup_from_alpha']:.2f}",
            "expected": f"{row['expected_speedup']:.2f}", "measured ": with_interval(row, "speedup"),
        }
        for row in rows
    ]  # fmt: skip
    return f"""{pair(found["target"], found["draft"])}
on      {machine}

costs   {costs_line(found["costs"])}
alpha   {found["alpha"]:.3f}, 95 % interval {interval(found, "alpha_", 3)}
{warning(found["costs"])}
{table(cells)}

Expected and measured speedup are at most {gaps[worst]:.1%} apart, at K = {worst}.
Does it pay here? {does_it_pay(found)}

c, v      the time to draft one token, and of a round for m tokens without drafting, over that of an autoregressive step
alpha     the mean of sum min(p, q) over {found["n_texts"]} texts of {found["n_tokens"]} tokens, the target's own
by alpha  from c, v and alpha, by the formula with one alpha everywhere
expected  from c, v and the acceptance of each token along these texts
measured  on {n_timed} other prompts, {found["n_tokens"]} tokens each, whose texts and times the prediction does not use
interval  {over(n_timed)}
"""


def warning(costs):
    """A line about costs that contradict themselves, or nothing."""
    if min(costs["v"]) > BELOW and costs["spread"] < WIDE:
        return ""
    return (
        f"WARNING: do not rely on these times (the least v is {min(costs['v']):.2f}, the quartiles of a step are "
        f"{costs['spread']:.0%} of it apart): measure again on a quiet machine.\n"
    )


def does_it_pay(found):
    """Whether speculation pays, in one sentence, from the expected and the measured speedup."""
    row = found["rows"][found["best_K"] - 1] if found["best_K"] else max(found["rows"], key=lambda row: row["low"] or 0)
    low, high = row["low"] or 0, row["high"] or 9
    reach = f"95 % interval {interval(row)}" if row["low"] is not None else "only one prompt"
    measured = f"measured at {row['speedup']:.2f} ({reach})"
    if not found["best_K"]:
        start = "every K is expected to be slower than the target alone"
        return f"No: {start}." if low <= 1 else f"Unclear: {start}, but K = {row['K']} was {measured}."
    answer = "Yes" if low > 1 else "No" if high < 1 else "Unclear"
    expected = f"{row['expected_speedup']:.2f} times as fast as the target alone"
    return f"{answer}: K = {row['K']} is expected to be the fastest, {expected}, and was {measured}."


def plot(rows, options, busy):
    """The measured and the expected speedup by K."""
    lines = {
        "measured on other prompts": [(row["K"], row) for row in rows],
        "expected from costs and acceptance": [(row["K"], {"speedup": row["expected_speedup"]}) for row in rows],
    }
    draw(options.plot, "K", {"speedup": "speedup in time"}, lines, options.plot_size, busy)
