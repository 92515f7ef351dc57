"""Is the installed `transformers` lossless? The table of speculative/testing/transformers_audit.py."""

from functools import partial

from speculative.testing.transformers_audit import SETTINGS, entry

from ..options import HAS_TRANSFORMERS
from ..tables import Columns
from . import experiment


def needs_transformers(options, command):
    if not HAS_TRANSFORMERS:
        raise ValueError("audit needs PyTorch and transformers, which are missing: pip install torch transformers")


def measure(options, saved):
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    saved.expect(len(SETTINGS))
    rows = [saved.keep(name, partial(entry, name, setting)) for name, setting in SETTINGS.items()]
    return {"transformers": transformers.__version__, "torch": torch.__version__, "rows": rows}


def table(report):
    columns = Columns(
        ("with", "<28", "{setting}"),
        ("vocabulary", ">10", "{n_vocab}"),
        ("tokens", ">8", "{n_tokens}"),
        ("K", ">4", "{K}"),
        ("paths", ">8", "{paths}"),
        ("outcomes", ">10", "{outcomes}"),
        ("distance", ">10", "{distance:.1e}"),
        ("  verdict", "<14", "  {verdict}"),
    )
    rows = [row for row in report["rows"] if row["verdict"] != "fails"]
    return f"""\
transformers {report["transformers"]}, PyTorch {report["torch"]}: generate(do_sample=True), with a draft and without

{columns.page(rows)}
{"".join(map(remark, report["rows"]))}
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
    worst = row["worst"]
    lines = (
        f"{row['setting']}: the tokens {worst['tokens']} have probability {worst['with_draft']:.4f} with the draft, "
    )
    lines += f"{worst['alone']:.4f} without\n"
    if row["impossible"]:
        lines += f"{'':{len(row['setting'])}}  and {row['impossible']:.4f} is for texts that are impossible without\n"
    return lines


COMMAND = experiment(
    "audit",
    "is the installed transformers lossless? The exact distribution of its text with a draft (a model, prompt lookup; "
    "with top_k and other options) and without one",
    measure,
    table,
    options={"json"},
    checks=(needs_transformers,),
    engines=("transformers", "torch"),
)
