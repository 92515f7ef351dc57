"""The tables of docs/measurements.md, from the raw outputs in docs/raw: python dev/bench/summary.py

Run it after dev/bench/run_blocks.py. No number in the tables is written by hand; a test compares them with the outputs.
The raw outputs are the only record of those machines, and they are text as it was printed. A number is found as a
reader finds it: by the command, the first cells of its row, and the heading of its column.
"""

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
RAW = {"AVX-512": DOCS / "raw" / "avx512.md", "AVX2": DOCS / "raw" / "avx2.md"}
FIRST = "| measured |"  # the first cell of each table of the page

# parts of commands
PAIR, LARGE = "speed models/gguf tiny-target", "speed models/gguf models/grown/355M models/grown/124M 24 3 2"
LENGTHS, DRAFTERS, OF_355M = "compare --K 1,2,3,4,6,8", "--drafter none,model", "--drafter model,eagle --K 1,2,3"
TREES, LANES = "compare --drafter model,recycling,heads --tree", "compare --n_lanes"
RULES = "compare --drafter model,prompt_lookup --verifier"
WAYS = {
    "Plain NumPy (`x @ w`), alone": "plain NumPy, alone",
    "This library, alone": "gpt2np, alone",
    "This library, with the draft": "gpt2np, with the draft",
    "transformers, alone": "transformers, alone",
    "transformers, assisted": "transformers, assisted",
    "llama.cpp (wheel), alone": "llama.cpp, alone",
    "llama.cpp (wheel), with the draft": "llama.cpp, with the draft",
}


def of_ways(command):
    return [(words, {command: f"<{way} | ms per token> ms per token"}) for words, way in WAYS.items()]


def of_passes(n_threads, strategy):
    """The form of a strategy's row for each of the two processors' kernels, on which another one was chosen."""
    usual = {"SkylakeX": "panels", "Haswell": "slabs"}
    return {
        f"kernels.py {core}": "<{0} | one token>; <{0} | 5>, <{0} | 9>".format(
            f"{core}  {n_threads}  {strategy}{' *' * (strategy == best)}"
        )
        for core, best in usual.items()
    }


# The tables, in the order of the page. A row names what was measured, and has a form of its cell for each part of a
# command; the first that a machine has the numbers for is used. In a form <ROW | COLUMN> is a number of a printed
# table: ROW is the first cells of its row, two spaces apart, and COLUMN is its heading, "NAME 2" for the second column
# of a name.
TABLES = [
    of_ways(PAIR),
    of_ways(LARGE),
    [(f"{words}, {strategy}", of_passes(n, strategy))
     for n, words in ((2, "Two threads"), (1, "One thread")) for strategy in ("panels", "slabs", "plain")],
    [(f"K = {K}", {LENGTHS: f"<{K} | speedup>; <{K} | calls>"}) for K in (1, 2, 3, 4, 6, 8)],
    [(words, {DRAFTERS: f"<{name} | speedup>; <{name} | calls>"})
     for words, name in (("Hydra heads", "heads"), ("EAGLE block", "eagle"), ("Parallel block", "parallel"),
                         ("Prompt lookup", "prompt_lookup"),
                         ("Recycling", "recycling"))],
    [(f"{words}, K = {K}", {OF_355M: f"<{name}  {K} | speedup>; <{name}  {K} | calls>"})
     for words, name in (("Draft model 124M", "model"), ("EAGLE block", "eagle")) for K in (1, 2, 3)],
    [(f"{words}, `{rule}`{mark}",
      {RULES: f"<{name}  tales  {rule} | speedup>; <{name}  repeating  {rule} | speedup>"})
     for words, name in (("Draft model", "model"), ("Prompt lookup", "prompt_lookup"))
     for rule, mark in (("rejection", ""), ("block", ""), ("typical", ", LOSSY"))],
    [(words, {TREES: "; ".join(f"<{name}  {n_nodes} | speedup>" for n_nodes in (0, 3, 7, 15))})
     for words, name in (("Draft model", "model"), ("Recycling", "recycling"), ("Hydra heads", "heads"))],
    [(f"{n} at once", {LANES: f"<{n} | alone, tok/s>; <{n} | speedup>"}) for n in (1, 2, 4, 8, 16, 32)],
]  # fmt: skip


def blocks(page):
    """dict command -> its output, of a page."""
    fenced = page.read_text(encoding="utf-8").split("```\n")[1::2]
    return dict(block.removeprefix("$ ").split("\n", 1) for block in fenced)


def cells(line):
    """The cells of a line of a printed table: two spaces or more are between them."""
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def number(output, place):
    """The number at a place (see TABLES) of an output, "" if there is none."""
    row, column = place.split(" | ")
    names, first_cells = column_names(output, column), cells(row)
    for line in map(cells, output.splitlines()):
        if line[: len(first_cells)] == first_cells and column in names:
            return line[names.index(column) - len(names)]  # from the right: some rows' names have no heading
    return ""


def column_names(output, column):
    """The names of the columns of the first table with this column, [] if there is none."""
    for line in output.splitlines():
        headings = [cell.removesuffix(", ms") for cell in cells(line) if cell != "V(m) / V(1)"]  # has no column
        headings = ["calls" if cell == "tokens/call" else cell for cell in headings]  # its name in older outputs
        names = [f"{name} 2" if name in headings[:i] else name for i, name in enumerate(headings)]
        if column in names:
            return names
    return []


def filled(form, output):
    """A form with its numbers from an output; None if the output does not have them all."""
    text, *places = form.split("<")
    for place, _, rest in (part.partition(">") for part in places):
        if not (shown := number(output, place)):
            return None
        text += shown + rest
    return text


def cell(page, forms):
    """A cell of a table, None if the page has no such block."""
    for part, form in forms.items():
        for command, output in blocks(page).items():
            if part in command and (text := filled(form, output)):
                return text
    return None


def table(rows):
    """The lines of a table, with a column for each machine that measured any of it."""
    columns = {machine: [cell(page, forms) for _, forms in rows] for machine, page in RAW.items()}
    columns = {machine: column for machine, column in columns.items() if any(column)}
    lines = [f"{FIRST} {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for (claim, _), *texts in zip(rows, *columns.values()):
        lines.append(" | ".join([f"| {claim}", *(text or "not measured" for text in texts)]) + " |")
    return "\n".join(lines)


def with_tables(text):
    """The text of docs/measurements.md with its tables made again."""
    made = map(table, TABLES)
    paragraphs = text.rstrip("\n").split("\n\n")
    return "\n\n".join(next(made) if paragraph.startswith(FIRST) else paragraph for paragraph in paragraphs) + "\n"


if __name__ == "__main__":
    page = DOCS / "measurements.md"
    page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
