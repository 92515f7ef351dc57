"""The opening table of docs/measurements.md, from the blocks of the two pages: python dev/bench/summary.py

Run it after dev/bench/run_blocks.py. No number of the table is written by hand; a test compares it with the blocks.
"""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"AVX-512": DOCS / "measurements.md", "AVX2": DOCS / "measurements_avx2.md"}
TABLE = re.compile(r"^\| measured \|.*?(?=\n\n)", re.M | re.S)
CALIBRATE, LENGTHS = "python main.py calibrate", "compare --K 1-8"
PAIR = "models/grown/355M --draft_model_size models/grown/124M --drafter model,eagle,heads"
ENGINES = "taskset -c 0 python dev/bench/compare_engines.py speed models/gguf"
BENCH, TREES = "python main.py bench", "compare --drafter model,recycling,heads --tree"
LANES = "compare --n_lanes"
CHOSEN = r"(?:products by '|\n)(\w+)(?='| \*)"  # the strategy, in the words of now or of earlier blocks
TOKEN = r"355M, random.*?\n{}(?: \*)?(?: +\d+)? +([\d.]+) ± "  # the milliseconds of one token
FIVE = (
    r"355M, random.*?\n{}(?: \*)?(?: +\d+)? +[\d.]+ ± [\d.]+(?: ms)? +[\d.]+ +(?:[\d.]+ +){{3}}([\d.]+)"  # V(5) / V(1)
)
GAIN = r"([\d.]+ \([\d.]+ to [\d.]+\))"  # a number with its interval
ONE_TEXT = "python main.py --target_model_size models/grown/355M"

# the measurement; then one block or several, of which the first on the page counts: a part of its command, the patterns
# to read there, in this order, and the format
ROWS = [
    ("Speedup of the bundled pair, K = 3 (95 % interval)",
     (LENGTHS, [rf"\n *3 +{GAIN}"], "**{0}**"),
     (CALIBRATE, [r"\n *3 +(?:[\d.]+ +){4}([\d.]+)", r"\n *3 +(?:[\d.]+ +){5}([\d.]+ to [\d.]+)"], "**{0} ({1})**")),
    ("Its block efficiency (tokens per target call), K = 3",
     (LENGTHS, [rf"\n *3 +[\d.]+ \(.*?\) +{GAIN}"], "{0}"), (CALIBRATE, [r"\n *3 +[\d.]+ +([\d.]+)"], "{0}")),
    ("Largest error of a predicted speedup, K = 1 to 8", (CALIBRATE, [r"at most ([\d.]+)% apart"], "{0}%")),
    ("Cost of a forward pass for five tokens over one, 355M", (BENCH, [CHOSEN, FIVE], '**{1}** ("{0}")')),
    ("The same with plain `x @ w`", (BENCH, [FIVE.format("plain")], "{0}")),
    ("The same in transformers", (BENCH, [FIVE.format("transformers")], "{0}")),
    ("One token of 355M, here and with plain `x @ w`",
     (BENCH, [CHOSEN, TOKEN, TOKEN.format("plain")], "{1} and {2} ms")),
    ("Speedup of 124M drafting for 355M, grown weights, K = 2",
     (PAIR, [rf"\nmodel +2 +{GAIN}"], "{0}"), (ONE_TEXT, [r"\nspeedup +([\d.]+)"], "{0} (one prompt)")),
    ("Speedup of an EAGLE block for 355M, K = 3", (PAIR, [rf"\neagle +3 +{GAIN}"], "{0}")),
    ("The fastest of chains (tree 0) and trees, bundled pair",
     (TREES, [r"Fastest of the exact, (.*?), [\d.]+ \(", r"Fastest of the exact, .*?, ([\d.]+) \("], "{0}: {1}")),
    ("32 texts at once over one by one, tokens a second without a draft",
     (LANES, [r"\n1 +32 .*?- +([\d.]+)", r"\n1 +1 .*?- +([\d.]+)"], "{0}, {1}")),
    ("Bundled pair, one core, alone and with the draft: here, llama.cpp",
     (ENGINES, [rf"\n{engine}, {how} +([\d.]+)" for engine in ("gpt2np", "llama.cpp")
                for how in ("alone", "with the draft")],
      "{0} and {1}, {2} and {3} ms a token")),
    ("The same by llama.cpp built for the processor, in this project's loop",
     (ENGINES, [rf"\nour loop over llama-cpp-python, {how} +([\d.]+)" for how in ("alone", "with the draft")],
      "{0} and {1} ms a token")),
]  # fmt: skip


def blocks(page):
    """dict command -> its output, of a page."""
    return dict(re.findall(r"^```\n\$ ([^\n]+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S))


def cell(page, *ways):
    """A cell of the table, and the command of its block; (None, None) without such a block on the page."""
    for part, patterns, form in ways:
        for command, output in blocks(page).items():
            if part in command:
                found = []
                for pattern in patterns:  # one with {} is about the strategy that was found before
                    pattern = pattern.format(*found) if "{}" in pattern else pattern
                    match = re.search(pattern, output, re.S)
                    found.append(match[1] if match else "")
                if all(found):
                    return form.format(*found), command
    return None, None


def table():
    """The lines of the table."""
    lines = [f"| measured | {' | '.join(PAGES)} | command |", "|---" * (len(PAGES) + 2) + "|"]
    for claim, *ways in ROWS:
        cells = [cell(page, *ways) for page in PAGES.values()]
        command = re.sub(" --.*", " ...", cells[0][1])
        lines.append(" | ".join([f"| {claim}", *(text or "not measured" for text, _ in cells), f"`{command}` |"]))
    return "\n".join(lines)


if __name__ == "__main__":
    path = PAGES["AVX-512"]
    path.write_text(TABLE.sub(lambda _: table(), path.read_text(encoding="utf-8")), encoding="utf-8")
