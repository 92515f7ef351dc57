"""The tables of docs/measurements.md, from the raw outputs in docs/raw: python dev/bench/summary.py

Run it after dev/bench/run_blocks.py. No number in the tables is written by hand; a test compares them with the outputs.
"""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
RAW = {"AVX-512": DOCS / "raw" / "avx512.md", "AVX2": DOCS / "raw" / "avx2.md"}
TABLE = re.compile(r"^\| measured \|.*?(?=\n\n|\s*\Z)", re.M | re.S)
LENGTHS = "compare --K 1-8"
CALIBRATE = "python main.py calibrate"  # a command of earlier versions: predicted and measured speedup for K = 1 to 8
PAIR = "models/grown/355M --draft_model_size models/grown/124M --drafter model,eagle,heads"
ENGINES = "taskset -c 0 python dev/bench/compare_engines.py speed models/gguf"
ENGINES_355M, KERNELS = "speed models/gguf models/grown/355M", "dev/bench/kernels.py"
BENCH, TREES = "dev/bench/passes.py|main.py bench", "compare --drafter model,recycling,heads --tree"
RULES, LANES = "compare --drafter model,prompt_lookup --verifier", "compare --n_lanes"
TRAINED, PARALLEL = "compare --drafter model,eagle,heads --K 1-4", "compare --drafter model,eagle,block --K 3"
CHOSEN = r"(?:products by '|\n)(\w+)(?='| \*)"  # the strategy, as worded now or in earlier blocks
TOKEN = r"355M, random.*?\n{}(?: \*)?(?: +\d+)? +([\d.]+) ± "  # the milliseconds of one token
FIVE = (
    r"355M, random.*?\n{}(?: \*)?(?: +\d+)? +[\d.]+ ± [\d.]+(?: ms)? +[\d.]+ +(?:[\d.]+ +){{3}}([\d.]+)"  # V(5) / V(1)
)
GAIN = r"([\d.]+ \([\d.]+ to [\d.]+\))"  # a number with its interval
ONE_TEXT = "python main.py --target_model_size models/grown/355M"


def gains(*rows, column=0):
    """Patterns for a gain in each of these rows of a table: in this column of gains."""
    return [rf"\n *{row.replace(' ', ' +')} +(?:[\d.]+ \(.*?\) +(?:[\d.-]+ +)?){{{column}}}{GAIN}" for row in rows]


def predicted(K):
    """Patterns for `calibrate`: the expected and the measured speedup, and its interval."""
    before = rf"\n *{K} +(?:[\d.]+ +)"
    return [rf"{before}{{3}}([\d.]+)", rf"{before}{{4}}([\d.]+)", rf"{before}{{5}}([\d.]+ to [\d.]+)"]


def of_costs(name, line):
    """A pattern for a line of draft_costs.py, at K = 3."""
    return rf"\n{name} {{2,}}.*?{line}(?: +[\d.]+){{2}} +([\d.]+)"


def ms(*rows):
    """Patterns for the milliseconds of engines."""
    return [rf"\n{row} +([\d.]+)" for row in rows]


# The tables, in the order of the page. A row names what was measured. Then it lists blocks of output, and the first of
# them that the machine has is used: a pattern for the command, the patterns to read in order, how to write the cell.
TABLES = [
    [
        ("Speedup of the bundled pair, K = 3",
         (LENGTHS, gains("3"), "**{0}**"), (CALIBRATE, predicted(3), "**{1} ({2})**")),
        ("Its block efficiency (tokens per target call), K = 3",
         (LENGTHS, gains("3", column=1), "{0}"), (CALIBRATE, [r"\n *3 +[\d.]+ +([\d.]+)"], "{0}")),
        ("Largest error of a predicted speedup, K = 1 to 8", (CALIBRATE, [r"at most ([\d.]+)% apart"], "{0}%")),
        ("Five-token pass / one-token pass, 355M", (BENCH, [CHOSEN, FIVE], '**{1}** ("{0}")')),
        ("The same with plain `x @ w`; in transformers",
         (BENCH, [FIVE.format("plain"), FIVE.format("transformers")], "{0}; {1}")),
        ("Speedup of 124M drafting for 355M, K = 2",
         (PAIR, gains("model 2"), "{0}"), (ONE_TEXT, [r"\nspeedup +([\d.]+)"], "{0} (one prompt)")),
        ("Speedup of an EAGLE block for 355M, K = 3", (PAIR, gains("eagle 3"), "{0}")),
        ("Tokens per second without a draft: one text, 32 at once",
         (LANES, [r"\n1 +1 .*?- +([\d.]+)", r"\n1 +32 .*?- +([\d.]+)"], "{0}, {1}")),
        ("Bundled pair, one core, alone and with the draft: here, llama.cpp",
         (ENGINES, ms("gpt2np, alone", "gpt2np, with the draft", "llama.cpp, alone", "llama.cpp, with the draft"),
          "{0} and {1}, {2} and {3} ms per token")),
    ],
    [
        ("Five-token pass / one-token pass", (BENCH, [CHOSEN, FIVE], '{1} ("{0}")')),
        *[(f"The same, {words}", (BENCH, [FIVE.format(name)], "{0}"))
          for words, name in (("plain `x @ w`", "plain"), ("transformers", "transformers"))],
        ("One-token pass", (BENCH, [CHOSEN, TOKEN], "{1} ms")),
        *[(f"The same, {words}", (BENCH, [TOKEN.format(name)], "{0} ms"))
          for words, name in (("plain `x @ w`", "plain"), ("transformers", "transformers"))],
    ],
    [
        *[(f"Draft model 124M, K = {K}", (PAIR, gains(f"model {K}"), "{0}"),
           *[(ONE_TEXT, [r"\nspeedup +([\d.]+)"], "{0} (one prompt)")] * (K == 2)) for K in (1, 2, 3)],
        *[(f"{words}, K = {K}", (PAIR, gains(f"{name} {K}"), "{0}"))
          for words, name in (("EAGLE block", "eagle"), ("Hydra heads", "heads")) for K in (1, 2, 3)],
    ],
    [
        *[(words, ("draft_costs", [of_costs(name, line) for line in ("draft", "pays from", "flat")], "{0}; {1}; {2}"))
          for words, name in (("124M", "124M"), ("EAGLE block", "EAGLE"), ("Parallel block", "block"),
                              ("EAGLE block, 8192 most frequent tokens", "EAGLE, 8192 tokens"),
                              ("Parallel block, 8192 most frequent tokens", "block, 8192 tokens"))],
    ],
    [(f"Speedup, K = {K}", (LENGTHS, gains(f"{K}"), "{0}"), (CALIBRATE, predicted(K), "{1} ({2})"))
     for K in (1, 2, 3, 4, 6, 8)],
    [(f"K = {K}: predicted, measured", (CALIBRATE, predicted(K), "{0}, {1} ({2})")) for K in (1, 3, 8)],
    [(f"{drafter}, `{rule}`{mark}",
      (RULES, gains(*(f"{name} {rule} {prompts}" for prompts in ("tales", "repeating"))), "{0}; {1}"))
     for drafter, name in (("Draft model", "model"), ("Prompt lookup", "prompt_lookup"))
     for rule, mark in (("rejection", ""), ("block", ""), ("typical", ", LOSSY"))],
    [(words, (TREES, gains(*(f"{name} {size}" for size in (0, 3, 7, 15))), "{0}; {1}; {2}; {3}"))
     for words, name in (("Draft model", "model"), ("Recycling", "recycling"), ("Hydra heads", "heads"))],
    [
        *[(f"{words}, first run", (TRAINED, gains(f"{name} 3"), "{0}"))
          for words, name in (("Draft model", "model"), ("EAGLE block", "eagle"), ("Hydra heads", "heads"))],
        *[(f"{words}, second run", (PARALLEL, gains(name), "{0}"))
          for words, name in (("Draft model", "model"), ("EAGLE block", "eagle"), ("Parallel block", "block"))],
    ],
    [(f"{n} at once", (LANES, [rf"\n3 +{n} .*?- +([\d.]+)", *gains(f"3 {n}")], "{0}; {1}"))
     for n in (1, 2, 4, 8, 16, 32)],
    [
        *[(f"{words}, one core: alone, with the draft",
           (ENGINES, ms(f"{name}, alone", f"{name}, with the draft"), "{0}, {1} ms per token"))
          for words, name in (("This library", "gpt2np"), ("llama.cpp", "llama.cpp"),
                              ("llama.cpp built for the processor, in our loop", "our loop over llama-cpp-python"))],
        ("transformers, one core: alone, assisted",
         (ENGINES, ms("transformers, alone", "transformers, assisted"), "{0}, {1} ms per token")),
        ("124M for 355M, K = 3, two cores: speedup here, llama.cpp, transformers",
         (ENGINES_355M, [rf"\n{row} +[\d.]+ +[\d.]+ +([\d.]+)"
                         for row in ("gpt2np, with the draft", "llama.cpp, with the draft", "transformers, assisted")],
          "{0}, {1}, {2}")),
    ],
    [(f"{words}: the chosen strategy, plain `x @ w`",
      (KERNELS, [rf"\n{core} +2 +{row} +[\d.]+ ms +[\d.]+ +([\d.]+)" for row in (chosen, "plain")], "{0}, {1}"))
     for words, core, chosen in (("Kernels for AVX-512", "SkylakeX", r"panels \*"),
                                 ("Kernels for AVX2", "Haswell", r"rows \*"))],
]  # fmt: skip


def blocks(page):
    """dict command -> its output, of a page."""
    return dict(re.findall(r"^```\n\$ ([^\n]+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S))


def cell(page, *ways):
    """A cell of a table, None if the page has no such block."""
    for name, patterns, form in ways:
        for command, output in blocks(page).items():
            if re.search(name, command):
                found = []
                for pattern in patterns:  # one with {} is about the strategy that was found before
                    pattern = pattern.format(*found) if "{}" in pattern else pattern
                    match = re.search(pattern, output, re.S)
                    found.append(match[1] if match else "")
                if all(found):
                    return form.format(*found)
    return None


def table(rows):
    """The lines of a table, with a column for each machine that measured any of it."""
    cells = {machine: [cell(page, *ways) for _, *ways in rows] for machine, page in RAW.items()}
    cells = {machine: column for machine, column in cells.items() if any(column)}
    lines = [f"| measured | {' | '.join(cells)} |", "|---" * (len(cells) + 1) + "|"]
    for (claim, *_), *texts in zip(rows, *cells.values()):
        lines.append(" | ".join([f"| {claim}", *(text or "not measured" for text in texts)]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    path, made = DOCS / "measurements.md", map(table, TABLES)
    path.write_text(TABLE.sub(lambda _: next(made), path.read_text(encoding="utf-8")), encoding="utf-8")
