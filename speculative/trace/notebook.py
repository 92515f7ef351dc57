"""A round and a generation in a notebook: static HTML without scripts, which sites that show notebooks allow.

The text of a token needs a tokenizer, which samplers do not have: `show_tokens_as(tokenizer.decode)` sets it once for
the session. It affects only the display.
"""

from html import escape

from .record import Trace, as_ids, branches

STYLES = {
    "accepted": "background: #3a9a5b40",
    "rejected": "background: #c23b4b30; text-decoration: line-through",
    "dropped": "color: #8a8a8a; text-decoration: line-through",
    "correction": "background: #c23b4b40; border-bottom: 2px solid #c23b4b",
    "bonus": "background: #1f5fa840; border-bottom: 2px solid #1f5fa8",
    "plain": "background: #80808030",
}
HEAD = ["draft token", "q", "p", "p / q", "u", "decision", "&Sigma; min(p, q)"]
decode = as_ids


def show_tokens_as(function):
    """Show tokens in notebooks by `function`, from a list of token ids to text (str), such as `tokenizer.decode`."""
    global decode
    decode = function


def generation_html(generation):
    """The text of a `Generation`, coloured by origin, with a bar between rounds, and the counts."""
    trace, parts = Trace.of(generation, decode), []
    for number, record in enumerate(trace.rounds, 1):
        spans = [
            token_html(text, origin, f"round {number}: {origin}")
            for text, origin in zip(record["texts"], record["origins"])
        ]
        parts.append("".join(spans))
    bar = '<span style="color: #8a8a8a">|</span>'
    counts = trace.summary
    line = (
        f"{counts['n_tokens']} tokens in {counts['target_calls']} target calls "
        f"({counts['tokens_per_target_call']:.2f} per call), "
        f"{counts['accepted']} of {counts['drafted']} draft tokens accepted"
    )
    text = f'<span style="color: #8a8a8a">{shown(trace.text)}</span>{bar}{bar.join(parts)}'
    return f'<div style="line-height: 1.9">{text}</div><div>{legend_html()} &nbsp; {line}</div>'


def round_html(step):
    """A `Round` as a table with a line for each draft token, indented in a tree, and one for the token that follows."""
    trace = Trace([], decode)
    record = trace.add(step)
    lines = [row(HEAD, "th")]
    guesses = record["guesses"]
    for guess, place in ((guesses[i], place) for i, place in branches(guesses)):
        indent = "&nbsp;" * 4 * place if "parent" in guess else ""
        probs = [number(guess.get(name)) for name in ("q", "p")]
        ratio = f"{guess['p'] / guess['q']:.3g}" if guess.get("q") else ""
        rest = [number(guess["u"]), guess["decision"], number(guess.get("overlap"))]
        lines.append(row([indent + token_html(guess["text"], guess["decision"]), *probs, ratio, *rest]))
    if last := record["next"]:
        cells = [token_html(record["texts"][-1], last["origin"]), "", number(last.get("p")), "", number(last["u"])]
        lines.append(row([*cells, last["origin"], ""]))
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


def legend_html():
    return " ".join(token_html(kind, kind) for kind in ("accepted", "correction", "bonus"))


def shown(text):
    return escape(text).replace("\n", "\u23ce<br>")
