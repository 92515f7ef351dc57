"""Is the installed transformers lossless? The exact distribution of its text with a draft (a model, prompt lookup; with
top_k and other options) and without one.
"""

import sys
from functools import partial
from importlib.util import find_spec

from speculative.measuring.table import table
from speculative.testing.transformers_audit import SETTINGS, entry

from ..journal import Journal

TAKES = "json"


def run(options):
    if not (find_spec("transformers") and find_spec("torch")):
        raise ValueError("audit needs PyTorch and transformers, which are missing: pip install torch transformers")
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    versions = f"transformers {transformers.__version__}, PyTorch {torch.__version__}"
    with Journal(options.json, options, about={"engine": versions}) as journal:
        journal.expect(len(SETTINGS))
        rows = []
        for name, setting in SETTINGS.items():
            rows.append(journal.keep(name, partial(entry, name, setting)))
            print(f"{name}: {rows[-1]['verdict']}", file=sys.stderr, flush=True)
        journal.finish({"rows": rows}, page_of(rows, versions))


def page_of(rows, versions):
    cells = [
        {"with": row["setting"], "vocabulary": str(row["n_vocab"]), "tokens": str(row["n_tokens"]), "K": str(row["K"]),
         "paths": str(row["paths"]), "outcomes": str(row["outcomes"]), "distance": f"{row['distance']:.1e}",
         "verdict": row["verdict"]}
        for row in rows if row["verdict"] != "fails"
    ]  # fmt: skip
    return f"""\
{versions}: generate(do_sample=True), with a draft and without

{table(cells) if cells else ""}
{"".join(map(remark, rows))}
paths     through the random numbers of generate() with the draft; each was taken once, and nothing was drawn
outcomes  texts that generate() can return without a draft
distance  total variation, to the exact distribution without a draft; float32's rounding leaves about 1e-7
"""


def remark(row):
    """A line on the error, if there is one."""
    if row["verdict"] == "fails":
        return f"{row['setting']}: generate() fails: {row['message']}\n"
    if row["verdict"] == "lossless":
        return ""
    worst, start = row["worst"], f"{row['setting']}: the tokens {row['worst']['tokens']} have probability"
    line = f"{start} {worst['with_draft']:.4f} with the draft, {worst['alone']:.4f} without\n"
    if row["impossible"]:
        line += f"{'':{len(row['setting'])}}  and {row['impossible']:.4f} goes to texts that are impossible without\n"
    return line
