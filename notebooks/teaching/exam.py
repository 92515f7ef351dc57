"""Write an exam of ten short questions, and its answer sheet: python notebooks/teaching/exam.py --seed 1 --output exams

The numbers and the order of choices come from the seed: give neighbours different seeds. Each answer is computed by the
library, where possible by running its code for every outcome of its random numbers (exact_distribution).
"""

import argparse
from fractions import Fraction
from pathlib import Path

import numpy as np
from writing import write

from speculative import rejection, theory
from speculative.exact.reference import exact_distribution
from speculative.interfaces import Draft
from speculative.reference import accept, residual, sample

WORDS = "king", "fox", "wolf"
RULE = [
    "if rng.random() * q[x] < p[x]:",
    "    return x",
    "return sample(residual(p, q), rng)",
]
WRONG = [  # (number of the line, what stands there instead)
    (1, "if rng.random() * p[x] < q[x]:"),
    (3, "return sample(p, rng)"),
    (3, "return sample(residual(q, p), rng)"),
    (3, "return int(residual(p, q).argmax())"),
]
HARMLESS = [
    (1, "if rng.random() < min(1, p[x] / q[x]):"),
    (1, "if rng.random() * q[x] < min(p[x], q[x]):"),
    (3, "return sample(residual(p, np.minimum(p, q)), rng)"),
]


def numbers_of(seed):
    """The numbers of an exam: distributions in tenths, which differ, and where each word has some probability."""
    rng = np.random.default_rng([8, seed])  # a stream in which the first seeds differ in each answer
    while True:
        p, q = (1 + rng.multinomial(7, [1 / 3] * 3) for _ in range(2))
        if (p > q).sum() == 2 and 2 <= np.maximum(0, p - q).sum() and len({*(p - q)[p > q]}) == 2:
            break  # two words that are drafted too rarely, by different amounts
    change = WRONG[rng.integers(len(WRONG))]
    return {
        "p": p / 10,
        "q": q / 10,
        "alpha": rng.integers(5, 10) / 10,
        "K": int(rng.integers(2, 5)),
        "c": rng.choice([0.05, 0.1, 0.2]),
        "v": rng.choice([1.1, 1.2, 1.5]),
        "change": change,
        "changes": [(change, *HARMLESS)[i] for i in rng.permutation(4)],
        "log": [(4, int(n)) for n in rng.permutation([4, 0, *rng.integers(1, 4, size=2)])],
    }


def one_token(p, q, change=None):
    """dict token -> probability of what the rule returns, with a line changed or as it is, for a token drawn from q."""
    lines = RULE.copy()
    if change:
        lines[change[0] - 1] = change[1]
    names = {"np": np, "sample": sample, "residual": residual}
    exec("def rule(x, p, q, rng):\n" + "\n".join(f"    {line}" for line in lines), names)
    return exact_distribution(lambda rng: names["rule"](sample(q, rng), p, q, rng))


def questions(numbers):
    """(question, answer) of an exam, with answers as a string, or as a list of numbers."""
    p, q, alpha, K = (numbers[name] for name in ("p", "q", "alpha", "K"))
    worst = int((q - p).argmax())  # the only word that is drafted too often
    best = int((p - q).argmax())
    outcomes = exact_distribution(lambda rng: accepted_or_not(p, q, rng))
    paths = exact_distribution(lambda rng: two_tokens(p, q, rng))
    wrong = one_token(p, q, numbers["change"])
    tokens, cost = theory.expected_tokens(alpha, K), K * numbers["c"] + numbers["v"]
    accepted = sum(n for _, n in numbers["log"])
    rejected = sum(n < drafted for drafted, n in numbers["log"])
    lines = "\n".join(f"    - ({a}) line {n}: `{code}`" for a, (n, code) in zip("abcd", numbers["changes"]))
    return [
        (
            f"A draft token is sampled from q. With what probability is it *{WORDS[worst]}* and accepted?",
            [outcomes[worst, True]],
        ),
        ("With what probability is a draft token accepted?", [sum(outcomes.get((x, True), 0) for x in range(3))]),
        (
            "Give the residual, the distribution of the token that replaces a rejected one: king, fox, wolf.",
            [*residual(p, q)],
        ),
        (
            f"With what probability is *{WORDS[worst]}* drafted, rejected and replaced by *{WORDS[best]}*?",
            [replaced(p, q, worst, best)],
        ),
        (
            f"Two tokens are drafted, each from q, and p is the same at each position. With what probability are they "
            f"*{WORDS[best]} {WORDS[worst]}* and both accepted?",
            [paths[best, worst, 2]],
        ),
        (
            "In one round with two draft tokens as in question 5, with what probability is the first accepted and the "
            "second rejected?",
            [sum(part for (*_, n), part in paths.items() if n == 1)],
        ),
        (
            f"Each draft token is accepted with probability α = {alpha:g}, and a round drafts K = {K}. How many tokens "
            "does a call of the target yield on average?",
            [tokens],
        ),
        (
            f"Drafting a token costs c = {numbers['c']:g} and verifying all of them {numbers['v']:g}, both relative to "
            "an autoregressive step of the target. What is the speedup for the α and K of question 7?",
            [tokens / cost],
        ),
        (
            f"A log of rounds, as (drafted, accepted): {', '.join(f'({a}, {b})' for a, b in numbers['log'])}. Estimate "
            "α from the draft tokens that were tested.",
            [accepted / (accepted + rejected)],
        ),
        (
            "One of these four changes to the rule is not exact. Which one, and with what probabilities does a token "
            f"then come out: king, fox, wolf?\n\n{lines}",
            ["abcd"[numbers["changes"].index(numbers["change"])], *(wrong.get(x, 0) for x in range(3))],
        ),
    ]


def accepted_or_not(p, q, rng):
    """(draft token, whether the library's rule accepts it)."""
    x = sample(q, rng)
    return x, rejection(Draft([x], q[None]), np.stack([p, p]), rng).n_accepted == 1


def two_tokens(p, q, rng):
    """(first draft token, second, how many of them are accepted)."""
    x = sample(q, rng), sample(q, rng)
    return *x, rejection(Draft(x, np.stack([q, q])), np.stack([p, p, p]), rng).n_accepted


def replaced(p, q, drafted, by):
    """The probability that this token is drafted and a different one is returned in its place."""
    return exact_distribution(lambda rng: ((x := sample(q, rng)), accept([x], [q], [p, p], rng)[0]))[drafted, by]


def shown(value):
    """A number as an answer sheet has it: a fraction if it is a simple one."""
    if isinstance(value, str):
        return f"({value})"
    simple = Fraction(float(value)).limit_denominator(1000)
    return f"{value:.4g}" + (f" = {simple}" if simple.denominator > 1 and abs(simple - value) < 1e-12 else "")


def written(seed):
    """(exam, answer sheet), Markdown."""
    numbers = numbers_of(seed)
    asked = questions(numbers)
    columns = "\n".join(
        f"| {name} | {' | '.join(f'{x:g}' for x in row)} |"
        for name, row in (("target, p", numbers["p"]), ("draft model, q", numbers["q"]))
    )
    newline = "\n"  # not in an f-string before Python 3.12
    head = f"""# Speculative decoding: exam {seed}

60 minutes, 20 points, 2 for each question. A calculator is allowed. Show how you got each number.

|  | {" | ".join(WORDS)} |
|---|---|---|---|
{columns}

`x` is a draft token sampled from q, and this is the rule:

```python
{newline.join(RULE)}
```
"""
    exam = head + "".join(f"\n{i}. {question}\n" for i, (question, _) in enumerate(asked, 1))
    answers = "".join(f"{i}. {', '.join(map(shown, answer))}\n" for i, (_, answer) in enumerate(asked, 1))
    return exam, f"# Answers to exam {seed}\n\n{answers}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True, help="another seed, another exam")
    parser.add_argument("--output", type=Path, default=Path(), help="the folder for the two files (the working folder)")
    request = parser.parse_args()
    if request.seed < 0:
        parser.error(f"--seed: expected 0 or more, got {request.seed}")
    try:
        request.output.mkdir(parents=True, exist_ok=True)
        for name, text in zip(("exam", "answers"), written(request.seed)):
            path = request.output / f"{name}_{request.seed}.md"
            write(path, text)
            print(path)
    except (OSError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
