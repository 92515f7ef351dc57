"""The pages of the experiments: a report, as main.py prints it as JSON, in a table.

Next: plots.py
"""

from pathlib import Path

from .views import costs_line, described


def calibration(report):
    """The page of `calibrate`."""
    print(f"target  {described(report['target'])}\ndraft   {described(report['draft'])}\non      {report['machine']}\n")
    print(f"costs   {costs_line(report['costs'])}")
    print(f"alpha   {report['alpha']:.3f}, 95 % interval {report['alpha_low']:.3f} to {report['alpha_high']:.3f}\n")
    print("     tokens per call          speedup")
    print("  K  expected  measured       by alpha  expected  measured  95 % interval")
    for row in report["rows"]:
        print(
            f"{row['K']:3}  {row['expected_tokens_per_call']:8.2f}  {row['tokens_per_call']:8.2f}       "
            f"{row['speedup_from_alpha']:8.2f}  {row['expected_speedup']:8.2f}  {row['speedup']:8.2f}  "
            f"{row['low']:.2f} to {row['high']:.2f}"
        )
    gaps = {row["K"]: row["expected_speedup"] / row["speedup"] - 1 for row in report["rows"]}
    worst = max(gaps, key=lambda K: abs(gaps[K]))
    print(f"\nExpected and measured speedup are at most {abs(gaps[worst]):.1%} apart, at K = {worst}.")
    if best_K := report["best_K"]:
        print(f"Best is K = {best_K}, with an expected speedup of {report['expected_speedup'][best_K - 1]:.2f}.")
    else:
        print("Speculation does not pay here: with this draft and this sampling every K is expected to be slower.")
    n_texts, n_timed, n_tokens = (report[name] for name in ("n_prompts_expected", "n_prompts_timed", "n_tokens"))
    print(f"""
alpha     the mean of sum min(p, q) over {n_texts} texts of {n_tokens} tokens, the target's own
by alpha  what the formula for one alpha everywhere makes of alpha, c and v
expected  what the acceptance of each token along these texts makes of c and v
measured  {n_timed} other prompts, {n_tokens} tokens each: the expected knows neither their texts nor their times""")


def drafters(report):
    """The page of `drafters`."""
    print(f"target  {described(report['target'])}; temperature {report['temperature']}\non      {report['machine']}")
    for kind, rows in report["rows"].items():
        print(f"\n{kind}: {report['kinds'][kind]}")
        print("  drafter        alpha  95 % interval    c       best K  tokens per call  speedup  95 % interval  law")
        for row in rows:
            alpha, c = ("-" if row[name] is None else f"{row[name]:.3f}" for name in ("alpha", "c"))
            print(
                f"  {row['drafter']:13}  {alpha:5}  {row['alpha_low']:.2f} to {row['alpha_high']:.2f}     "
                f"{c:6}  {row['K']:6}  {row['tokens_per_call']:15.2f}  {row['speedup']:7.2f}  "
                f"{row['low']:.2f} to {row['high']:.2f}   {row['exactness']}"
            )


def prompts(report):
    """The page of `prompts`."""
    print_heads(report)
    total, n, n_tokens = report["all"], len(report["rows"]), report["n_tokens"]
    print(f"{described_rule(report)}, {n_tokens} tokens each\n")
    print(f"{'':40}  native           assisted         speedup  tokens    same")
    print(f"{'':40}  seconds  tok./s  seconds  tok./s           per call  text")
    for row in report["rows"]:
        print_prompt(row["beginning"], row, n_tokens, "yes" if row["same_text"] else "no")
    print_prompt(f"all {n}", total, n * n_tokens, f"{total['same_texts']} of {n}")
    print(f"\nThe speedup of all has the 95 % interval {total['low']:.2f} to {total['high']:.2f}.")
    print(about_texts(report))
    print("Seconds are those of the new tokens: the prompt is in both caches, and a few tokens went before to warm up.")


def print_prompt(name, row, n_tokens, same):
    before, after = row["native_seconds"], row["seconds"]
    print(
        f"{name:40}{before:9.2f}{n_tokens / before:8.0f}{after:9.2f}{n_tokens / after:8.0f}{row['speedup']:9.2f}"
        f"{row['tokens_per_call']:10.2f}  {same}"
    )


def about_texts(report):
    """What the column of same texts means with this rule."""
    if report["temperature"] == 0 or report["verifier"] == "gumbel":
        return "With these options both texts are to be the same."
    if report["exactness"] == "LOSSY":
        return "This rule is LOSSY: the texts have not even the same law."
    return "At this temperature both texts have one law, and need not be the same; --verifier gumbel makes them so."


def write_log(report, path):
    """Both texts of each prompt of `prompts`, one below the other."""
    blocks = [f"{described_rule(report)}, {report['n_tokens']} tokens each\n"]
    for i, row in enumerate(report["rows"], 1):
        same = "the same text" if row["same_text"] else "another text"
        blocks.append(f"=== {i}\n{row['prompt']}\n\n--- native, {row['native_seconds']:.3f} s\n{row['native']}\n")
        blocks.append(f"--- assisted, {row['seconds']:.3f} s, {same}\n{row['assisted']}\n")
    Path(path).write_text("\n".join(blocks), encoding="utf-8")


def gamma(report):
    """The page of `gamma_table`."""
    print_heads(report)
    print(f"{report['n_prompts']} prompts, {report['n_tokens']} tokens each")
    for name, found in report["temperatures"].items():
        print(f"\n{name}: alpha = {found['alpha']:.3f}, c = {found['c']:.3f}, ", end="")
        print(f"of which drafting is {found['c_draft']:.3f}")
        print("      speedup                          of the row alone    speedup, theory")
        print("   K  in time  95 % interval  in calls   alpha      c      in time  in calls")
        for row in found["rows"]:
            print(
                f"  {row['K']:2}  {row['speedup']:7.2f}   {row['low']:.2f} to {row['high']:.2f}  "
                f"{row['tokens_per_call']:8.2f}   {row['alpha']:.3f}  {row['c']:.3f}   {row['theory_speedup']:10.2f}"
                f"{row['theory_tokens_per_call']:10.2f}"
            )
        gap = max(abs(row["theory_speedup"] / row["speedup"] - 1) for row in found["rows"])
        print(f"Theory is at most {gap:.1%} from the measured speedup in time. ", end="")
        print(f"{found['repetition']:.0%} of the text's 4-grams stood in it before.")
    print("""
speedup  over the target alone: seconds over seconds; target calls over target calls, which is tokens per call
theory   one alpha and one c for all rows, by least squares: alpha from the calls, c from the times. A call with k
         guesses takes 1 + c k plain steps, so c is what a guess costs to draft and to check""")


def alpha(report):
    """The page of `alpha_table`."""
    print(f"on      {report['machine']}")
    for found in report["targets"].values():
        tables = found["temperatures"]
        print(f"\ntarget  {described(found['target'])}; {found['n_prompts']} texts of {found['n_tokens']} tokens")
        print(f"{'':18}" + "".join(f"{name:33}" for name in tables).rstrip())
        print(f"{'drafter':18}" + ("alpha  95 % interval  guesses    " * len(tables)).rstrip())
        for rows in zip(*(table["rows"] for table in tables.values())):
            print(f"{rows[0]['drafter']:18}" + "".join(alpha_cell(row) for row in rows).rstrip())
        print(f"{'repetition':18}" + "".join(f"{table['repetition']:<33.0%}" for table in tables.values()).rstrip())
    print("""
alpha       the mean of sum min(p, q) along the target's own text, over the places where the drafter guesses
guesses     at what share of the places it does
repetition  the share of the text's 4-grams that stood in it before""")


def alpha_cell(row):
    if row["alpha"] is None:
        return f"{'-':33}"
    return f"{row['alpha']:.3f}  {row['low']:.2f} to {row['high']:.2f}   {row['guessed']:7.0%}    "


def methods(report):
    """The page of `method_table`."""
    kinds = list(report["rows"][0]["kinds"])
    print(f"target  {described(report['target'])}; K = {report['K']}, temperature {report['temperature']}")
    print(f"on      {report['machine']}\n")
    print(f"{'':27}" + "".join(f"{kind:14}" for kind in kinds).rstrip())
    print(f"{'drafter':14}{'verifier':13}" + "calls  time   " * len(kinds) + "law")
    for row in report["rows"]:
        cells = [f"{cell['tokens_per_call']:5.2f} {cell['speedup']:5.2f}   " for cell in row["kinds"].values()]
        print(f"{row['drafter']:14}{row['verifier']:13}" + "".join(cells) + law(row, report["temperature"]))
    if exact := [row for row in report["rows"] if row["exactness"] == "exact"]:
        calls, time = (best_method(exact, what) for what in ("tokens_per_call", "speedup"))
        print(f"\nOf the exact ones, {calls} makes the most tokens per call, and {time} is the fastest.")
    print(f"""
calls      tokens per call of the target, which is the speedup in calls; time: the speedup in seconds
tales      {report["n_prompts"]} beginnings of tales, {report["n_tokens"]} tokens each; dialogue: places with quotes
repeating  the tales some greedy tokens later, where the target's text goes round in circles
known      the first of the prompts that python main.py prompts has""")


def best_method(rows, what):
    """The drafter and verifier with the largest figure over all kinds of text, in words."""
    row = max(rows, key=lambda row: row["kinds"]["all"][what])
    return f"{row['drafter']} with {row['verifier']}"


def law(row, temperature):
    """What the rule does to the law of the text; at temperature 0, whether the texts were the target's own."""
    if temperature > 0:
        return row["exactness"]
    cell = row["kinds"]["all"]
    name = "exact for greedy" if row["exactness"] == "LOSSY" else row["exactness"]
    return f"{name}, same text {cell['same_texts']} of {cell['n_texts']}"


def sizes(report):
    """The page of `compare_sizes`."""
    print(f"{report['n_prompts']} prompts, {report['n_tokens']} tokens each; {described_rule(report)}")
    print(f"on      {report['machine']}\n")
    print("target          parameters   native   draft         assisted   speedup  95 % interval  tokens per call")
    for name, found in report["targets"].items():
        first = f"{name:16}{found['target']['parameters'] / 1e6:8.1f} M {found['native_seconds']:7.2f} s   "
        for kind, row in found["drafters"].items():
            draft, interval = report["draft"] if kind == "model" else kind, f"{row['low']:.2f} to {row['high']:.2f}"
            print(f"{first}{draft:14}{row['seconds']:8.2f} s{row['speedup']:10.2f}   {interval}", end="")
            print(f"{row['tokens_per_call']:16.2f}")
            first = " " * len(first)
        if not found["drafters"]:
            print(f"{first}-")
    print("\nSeconds are those of the new tokens of all prompts.")


def print_heads(report):
    print(f"target  {described(report['target'])}\ndraft   {described(report['draft'])}\non      {report['machine']}\n")


def described_rule(report):
    return (
        f"K = {report['K']}, temperature {report['temperature']}, verifier {report['verifier']} ({report['exactness']})"
    )
