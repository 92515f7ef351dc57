"""A round and a generation in a notebook: static HTML without scripts, which sites that show notebooks allow.

The text of a token needs a tokenizer, which samplers do not have: `show_tokens_as(tokenizer.decode)` sets it once for
the session, and from then on a notebook displays rounds and generations this way. It affects only the display.
"""

from html import escape

from ..generation import Generation, Round
from ..tree import depths, is_chain, path
from .colours import ACCEPTED, BONUS, CORRECTED, Q
from .record import Trace, as_ids

STYLES = {  # the backgrounds are transparent, since a notebook may be light or dark
    "accepted": f"background: {ACCEPTED.light}40",
    "rejected": f"background: {Q.light}40; text-decoration: line-through",
    "dropped": "color: #808080; text-decoration: line-through dotted",
    "correction": f"background: {CORRECTED.light}40; border-bottom: 3px solid {CORRECTED.light}; font-weight: bold",
    "bonus": f"background: {BONUS.light}40; border-bottom: 3px dotted {BONUS.light}",
    "plain": "",
}
HEAD = ["draft token", "q", "p", "p / q", "u", "decision", "&Sigma; min(p, q)"]
decode = as_ids


def show_tokens_as(function):
    """Show tokens in notebooks with `function`, from a list of token ids to text (str), such as `tokenizer.decode`."""
    global decode
    decode = function
    Round._repr_html_, Generation._repr_html_ = round_html, generation_html


def generation_html(generation):
    """The text of a `Generation`, coloured by origin, with a bar between rounds, and the counts."""
    trace = Trace.of(generation, decode)
    rounds = [
        "".join(
            token_html(text, origin, f"round {number}: {origin}")
            for text, origin in zip(record["texts"], record["origins"])
        )
        for number, record in enumerate(trace.rounds, 1)
    ]
    counts = trace.summary
    line = (
        f"{counts['n_tokens']} tokens in {counts['target_calls']} target calls "
        f"({counts['tokens_per_target_call']:.2f} per call), "
        f"{counts['accepted']} of {counts['drafted']} draft tokens accepted"
    )
    text = '<span style="color: #8a8a8a">|</span>'.join(
        [f'<span style="color: #8a8a8a">{shown(trace.text)}</span>', *rounds]
    )
    legend = " ".join(token_html(kind, kind) for kind in ("accepted", "correction", "bonus"))
    return f'<div style="line-height: 1.9">{text}</div><div>{legend} &nbsp; {line}</div>'


def round_html(round_):
    """A `Round` as a table with a row for each draft token, indented in a tree, and one for the token that follows."""
    record = Trace([], decode).add(round_)
    drafted, lines = record["drafted"], [row(HEAD, "th")]
    parents = [draft["parent"] for draft in drafted]
    depth = [0] * len(drafted) if is_chain(parents) else depths(parents)
    for i in sorted(range(len(drafted)), key=lambda i: path(parents, i)):  # each node, then the nodes after it
        draft = drafted[i]
        name = "&nbsp;" * 4 * depth[i] + token_html(draft["text"], draft["decision"])
        ratio = f"{draft['p'] / draft['q']:.3g}" if draft.get("q") else ""
        q, p, u, overlap = (number(draft.get(name)) for name in ("q", "p", "u", "overlap"))
        lines.append(row([name, q, p, ratio, u, draft["decision"], overlap]))
    if last := record["next"]:
        name = token_html(record["texts"][-1], last["origin"])
        lines.append(row([name, "", number(last.get("p")), "", number(last["u"]), last["origin"], ""]))
    return f"<table>{''.join(lines)}</table>"


def row(cells, tag="td"):
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def number(value):
    """Three decimals, or two significant digits if these would all be 0."""
    if value is None:
        return ""
    return f"{value:.1e}" if value and f"{abs(value):.3f}" == "0.000" else f"{value:.3f}"


def token_html(text, kind, title=""):
    return f'<span style="{STYLES[kind]}" title="{escape(title)}">{shown(text)}</span>'


def shown(text):
    return escape(text).replace("\n", "\u23ce<br>")
