"""The pages of the experiments: a report, as main.py prints it as JSON, in a table."""

from .views import costs_line, described


def print_calibration(report):
    """The report of `main.calibrate` as a page."""
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


def print_drafters(report):
    """The report of `main.drafters` as a page."""
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
