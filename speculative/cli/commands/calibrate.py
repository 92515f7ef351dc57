"""Does it pay here? The speedup for K = 1 to 8, predicted from measured costs and acceptance, and measured.

A sentence claims no more than the intervals do: where they overlap, it says so.
"""

from dataclasses import asdict

from .. import experiments
from ..inputs import check_prompts, held_out_prompts
from ..plots import BLUE, ORANGE, break_even, most, one_panel, points, sample
from ..registry import DRAFTERS
from ..tables import Columns, costs_line, heads, interval, over
from . import ONE_SIZE, experiment, open_target, two_tokens, with_probabilities

BELOW = 0.95  # a v smaller than this contradicts v(1) = 1
FALLS = 0.85  # ... and one smaller than this times an earlier v contradicts that
WIDE = 0.3  # the quartiles of the same step are this far apart, over the median


def measure(options, saved):
    """Predict the speedup for K = 1 to 8 from measured costs and acceptance, and measure it on other prompts."""
    context, about = open_target(options, saved)
    setting = DRAFTERS[options.drafter].build(context)
    prompts = held_out_prompts(context.tokenizer, options.n_prompts)
    check_prompts(prompts, options.n_tokens_to_generate, context.target)
    saved.expect(len(prompts) + 1)
    expected, rows = experiments.calibrate(
        setting.target, setting.drafter(options.sampling), prompts, options.n_tokens_to_generate,
        sampling=options.sampling, seed=options.seed, keep=saved.keep,
    )  # fmt: skip
    n_timed = options.n_prompts // 3
    counts = {"n_prompts_expected": options.n_prompts - n_timed, "n_prompts_timed": n_timed}
    return {**about, "draft": setting.about, **asdict(options.sampling), **counts, **asdict(expected), "rows": rows}


def table(report):
    rows = report["rows"]
    columns = Columns(
        ("K", ">3", "{K}"),
        ("expected", ">10", "{expected_tokens_per_call:.2f}", "tokens per call"),
        ("measured", ">10", "{tokens_per_call:.2f}"),
        ("by alpha", ">15", "{speedup_from_alpha:.2f}", "speedup"),
        ("expected", ">10", "{expected_speedup:.2f}"),
        ("measured", ">10", "{speedup:.2f}"),
        ("  95 % interval", "<15", lambda row: f"  {interval(row)}"),
    )
    gaps = {row["K"]: row["expected_speedup"] / row["speedup"] - 1 for row in rows}
    worst = max(gaps, key=lambda K: abs(gaps[K]))
    n_texts, n_timed, n_tokens = (report[name] for name in ("n_prompts_expected", "n_prompts_timed", "n_tokens"))
    wilson = " and at least Wilson's over their tokens" if report.get("temperature") == 0 else ""
    return f"""{heads(report)}
costs   {costs_line(report["costs"])}
alpha   {report["alpha"]:.3f}, 95 % interval {interval(report, "alpha_", 3)}
{warning(report)}
{columns.page(rows)}

Expected and measured speedup are at most {abs(gaps[worst]):.1%} apart, at K = {worst}.
Does it pay here? {does_it_pay(report)}

c, v      the time to draft one token, and of a round for m tokens without drafting, over that of an autoregressive step
alpha     the mean of sum min(p, q) over {n_texts} texts of {n_tokens} tokens, the target's own
by alpha  from c, v and alpha, by the formula with one alpha everywhere
expected  from c, v and the acceptance of each token along these texts
measured  on other prompts ({n_timed}), {n_tokens} tokens each, whose texts and times the prediction does not use
interval  {over(n_timed)}; of alpha over the {n_texts} texts{wilson}
"""


def warning(report):
    """A line about costs that contradict themselves, or nothing."""
    v, found = report["costs"]["v"], []
    if min(v) < BELOW:
        found.append(f"v({v.index(min(v)) + 1}) = {min(v):.2f} is below 1")
    falls = [(i, j) for j in range(len(v)) for i in range(1, j) if v[j] < FALLS * v[i]]
    if falls:
        i, j = min(falls, key=lambda pair: v[pair[1]] / v[pair[0]])
        found.append(f"v falls from {v[i]:.2f} at {i + 1} tokens to {v[j]:.2f} at {j + 1}")
    if report["costs"].get("spread", 0) > WIDE:
        found.append(f"the quartiles of an autoregressive step are {report['costs']['spread']:.0%} of it apart")
    why = ", ".join(found)
    return f"WARNING: do not rely on these times ({why}): measure again on a quiet machine.\n" if found else ""


def does_it_pay(report):
    """Whether speculation pays, in one sentence, from the expected and the measured speedup."""
    best_K = report["best_K"]
    if best_K == 0:
        good = max(report["rows"], key=lambda row: row["low"] or 0)
        if (good["low"] or 0) <= 1:
            return "No: every K is expected to be slower than the target alone."
        start = "Unclear: every K is expected to be slower than the target alone"
        return f"{start}, but K = {good['K']} was {measured(good)}."
    row = next(row for row in report["rows"] if row["K"] == best_K)
    if row["low"] is None:
        answer = "Unclear"
    else:
        answer = "Yes" if row["low"] > 1 else "No" if row["high"] < 1 else "Unclear"
    expected = f"{row['expected_speedup']:.2f} times as fast as the target alone"
    return f"{answer}: K = {best_K} is expected to be the fastest, {expected}, and was {measured(row)}."


def measured(row):
    reach = f"95 % interval {row['low']:.2f} to {row['high']:.2f}" if row["low"] is not None else "one prompt alone"
    return f"measured at {row['speedup']:.2f} ({reach})"


def plot(report):
    rows, lengths = report["rows"], [row["K"] for row in report["rows"]]
    figure, axes = one_panel("Speedup by draft length: expected and measured")
    expected = [row["expected_speedup"] for row in rows]
    axes.plot(lengths, expected, color=BLUE, label="expected from costs and acceptance")
    points(axes, lengths, rows, end=most(rows), marker="o", color=ORANGE,
           label=f"measured on other prompts ({sample(report['n_prompts_timed'])})")  # fmt: skip
    break_even(axes)
    axes.set(xlabel="draft length K (tokens)", ylabel="speedup (times the target alone)", xticks=lengths)
    axes.set_ylim(0, most(rows))
    figure.legend(loc="outside lower left")
    return figure


COMMAND = experiment(
    "calibrate",
    "does it pay here? The speedup for K = 1 to 8, predicted from measured costs and acceptance, and measured",
    measure,
    table,
    plot=plot,
    options=ONE_SIZE | {"drafter"},
    defaults={"n_tokens_to_generate": 64},
    checks=(with_probabilities, two_tokens),
    example="--target_model_size 355M --draft_model_size 124M",
)
