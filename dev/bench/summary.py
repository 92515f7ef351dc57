"""The tables of docs/measurements.md, from the raw outputs in docs/raw: python dev/bench/summary.py

Run it after dev/bench/run_blocks.py. No number in the tables is written by hand; a test compares them with the outputs.
The raw outputs are the only record of those machines, and they are text as it was printed. A number is found as a
reader finds it: by the command, the first cells of its row, and the heading of its column.
"""

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
RAW = {name: DOCS / "raw" / f"{page}.md" for name, page in (("AVX-512", "avx512"), ("AVX2", "avx2"), ("EPYC", "epyc"))}
FIRST = "| measured |"  # the first cell of each table of the page

# parts of commands; dev/bench/passes.py was `bench`, and `calibrate` predicted and measured speedups for K = 1 to 8;
# the drafter `parallel` was called `block`
LENGTHS, CALIBRATE = "compare --K 1-8", "python main.py calibrate"
PAIR = "models/grown/355M --draft_model_size models/grown/124M --drafter model,eagle,heads"
ONE_TEXT = "python main.py --target_model_size models/grown/355M"
ENGINES = "taskset -c 0 python dev/bench/compare_engines.py speed models/gguf"
ENGINES_355M, KERNELS = "speed models/gguf models/grown/355M", "--strategies panels,rows,plain"
TODAY = "--strategies panels,slabs,plain"
BENCH, COSTS = "python main.py bench", "draft_costs"
TREES, LANES = "compare --drafter model,recycling,heads --tree", "compare --n_lanes"
RULES = "compare --drafter model,prompt_lookup --verifier"
TRAINED, PARALLEL = "compare --drafter model,eagle,heads --K 1-4", "compare --drafter model,eagle,block --K 3"

# The tables, in the order of the page. A row names what was measured, and has a form of its cell for each part of a
# command; the first that a machine has the numbers for is used. In a form <ROW | COLUMN> is a number of a printed
# table: ROW is the first cells of its row, two spaces apart, or "chosen" for the strategy that `bench` chose; COLUMN is
# its heading, "NAME 2" for the second column of a name. <TABLE | ROW | COLUMN> looks below the line that begins with
# TABLE. <TEXT> is the first word after TEXT, where a line begins with it, and <chosen> is the name of the strategy.
TABLES = [
    [
        ("Speedup of the bundled pair, K = 3",
         {LENGTHS: "**<3 | speedup>**", CALIBRATE: "**<3 | measured 2> (<3 | 95 % interval>)**"}),
        ("Its block efficiency (tokens per target call), K = 3", {LENGTHS: "<3 | calls>", CALIBRATE: "<3 | measured>"}),
        ("Largest error of a predicted speedup, K = 1 to 8",
         {CALIBRATE: "<Expected and measured speedup are at most>"}),
        ("Five-token pass / one-token pass, 355M", {BENCH: '**<355M, random | chosen | 5>** ("<chosen>")'}),
        ("The same with plain `x @ w`; in transformers",
         {BENCH: "<355M, random | plain | 5>; <355M, random | transformers | 5>"}),
        ("Speedup of 124M drafting for 355M, K = 2",
         {PAIR: "<model  2 | speedup>", ONE_TEXT: "<speedup> (one prompt)"}),
        ("Speedup of an EAGLE block for 355M, K = 3", {PAIR: "<eagle  3 | speedup>"}),
        ("Tokens per second without a draft: one text, 32 at once",
         {LANES: "<1  1 | alone, tok/s>, <1  32 | alone, tok/s>"}),
        ("Bundled pair, one core, alone and with the draft: here, llama.cpp",
         {ENGINES: "<gpt2np, alone | ms per token> and <gpt2np, with the draft | ms per token>, "
                   "<llama.cpp, alone | ms per token> and <llama.cpp, with the draft | ms per token> ms per token"}),
    ],
    [
        ("Five-token pass / one-token pass", {BENCH: '<355M, random | chosen | 5> ("<chosen>")'}),
        ("The same, plain `x @ w`", {BENCH: "<355M, random | plain | 5>"}),
        ("The same, transformers", {BENCH: "<355M, random | transformers | 5>"}),
        ("One-token pass", {BENCH: "<355M, random | chosen | one token> ms"}),
        ("The same, plain `x @ w`", {BENCH: "<355M, random | plain | one token> ms"}),
        ("The same, transformers", {BENCH: "<355M, random | transformers | one token> ms"}),
    ],
    [
        ("Draft model 124M, K = 1", {PAIR: "<model  1 | speedup>"}),
        ("Draft model 124M, K = 2", {PAIR: "<model  2 | speedup>", ONE_TEXT: "<speedup> (one prompt)"}),
        ("Draft model 124M, K = 3", {PAIR: "<model  3 | speedup>"}),
        *[(f"{words}, K = {K}", {PAIR: f"<{name}  {K} | speedup>"})
          for words, name in (("EAGLE block", "eagle"), ("Hydra heads", "heads")) for K in (1, 2, 3)],
    ],
    [(words, {COSTS: f"<{name} | draft | K = 3>; <{name} | pays from | K = 3>; <{name} | flat | K = 3>"})
     for words, name in (("124M", "124M"), ("EAGLE block", "EAGLE"), ("Parallel block", "block"),
                         ("EAGLE block, 8192 most frequent tokens", "EAGLE, 8192 tokens"),
                         ("Parallel block, 8192 most frequent tokens", "block, 8192 tokens"))],
    [(f"Speedup, K = {K}", {LENGTHS: f"<{K} | speedup>", CALIBRATE: f"<{K} | measured 2> (<{K} | 95 % interval>)"})
     for K in (1, 2, 3, 4, 6, 8)],
    [(f"K = {K}: predicted, measured",
      {CALIBRATE: f"<{K} | expected 2>, <{K} | measured 2> (<{K} | 95 % interval>)"}) for K in (1, 3, 8)],
    [(f"{words}, `{rule}`{mark}",
      {RULES: f"<{name}  {rule}  tales | speedup>; <{name}  {rule}  repeating | speedup>"})
     for words, name in (("Draft model", "model"), ("Prompt lookup", "prompt_lookup"))
     for rule, mark in (("rejection", ""), ("block", ""), ("typical", ", LOSSY"))],
    [(words, {TREES: "; ".join(f"<{name}  {n_nodes} | speedup>" for n_nodes in (0, 3, 7, 15))})
     for words, name in (("Draft model", "model"), ("Recycling", "recycling"), ("Hydra heads", "heads"))],
    [
        *[(f"{words}, first run", {TRAINED: f"<{name}  3 | speedup>"})
          for words, name in (("Draft model", "model"), ("EAGLE block", "eagle"), ("Hydra heads", "heads"))],
        *[(f"{words}, second run", {PARALLEL: f"<{name} | speedup>"})
          for words, name in (("Draft model", "model"), ("EAGLE block", "eagle"), ("Parallel block", "block"))],
    ],
    [(f"{n} at once", {LANES: f"<3  {n} | alone, tok/s>; <3  {n} | speedup>"}) for n in (1, 2, 4, 8, 16, 32)],
    [
        *[(f"{words}, one core: alone, with the draft",
           {ENGINES: f"<{name}, alone | ms per token>, <{name}, with the draft | ms per token> ms per token"})
          for words, name in (("This library", "gpt2np"), ("llama.cpp", "llama.cpp"),
                              ("llama.cpp built for the processor, in our loop", "our loop over llama-cpp-python"))],
        ("transformers, one core: alone, assisted",
         {ENGINES: "<transformers, alone | ms per token>, <transformers, assisted | ms per token> ms per token"}),
        ("124M for 355M, K = 3, two cores: speedup here, llama.cpp, transformers",
         {ENGINES_355M: "<gpt2np, with the draft | speedup>, <llama.cpp, with the draft | speedup>, "
                        "<transformers, assisted | speedup>"}),
    ],
    [(f"{words}: the chosen strategy, plain `x @ w`", {KERNELS: f"<{core}  2  {best} * | 5>, <{core}  2  plain | 5>"})
     for words, core, best in (("Kernels for AVX-512", "SkylakeX", "panels"), ("Kernels for AVX2", "Haswell", "rows"))],
    [(f"{words}, {name.removesuffix(' *')}",
      {TODAY: f"<{core}  2  {name} | one token>; <{core}  2  {name} | 5>, <{core}  2  {name} | 9>"})
     for words, core, names in (("Kernels for AVX-512", "SkylakeX", ("panels *", "slabs", "plain")),
                                ("Kernels for AVX2", "Haswell", ("slabs *", "plain")))
     for name in names],
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
    if place == "chosen":
        return chosen(output).removesuffix(" *")
    if " | " not in place:
        _, _, rest = f"\n{output}".partition(f"\n{place} ")
        return rest.split()[0] if rest else ""
    beginning, row, column = ["", *place.split(" | ")][-3:]
    names = column_names(output, column)
    first_cells = cells(chosen(output) if row == "chosen" else row)
    _, _, below = f"\n{output}".partition(f"\n{beginning}")
    for line in map(cells, below.splitlines()):
        if line[: len(first_cells)] == first_cells and column in names:
            # from the right: some tables have no heading above the names of their rows
            mean, *deviation = line[names.index(column) - len(names)].split(" ± ")
            return mean.split()[-1] if deviation else mean  # a wide mean may touch the column before it
    return ""


def column_names(output, column):
    """The names of the columns of the first table with this column, [] if there is none."""
    for line in output.splitlines():
        headings = [cell.removesuffix(", ms") for cell in cells(line) if cell != "V(m) / V(1)"]  # has no column
        names = [f"{name} 2" if name in headings[:i] else name for i, name in enumerate(headings)]
        if column in names:
            return names
    return []


def chosen(output):
    """The first cell in the row of the chosen strategy; earlier outputs of `bench` name it in their first line."""
    marked = [cell for line in output.splitlines() for cell in cells(line)[:1] if cell.endswith(" *")]
    return marked[0] if marked else output.split("'")[1]


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
