"""One HTML file with a whole trace: the text, all its rounds, and a player. Nothing is loaded from elsewhere.

The records are embedded as JSON, escaped so that no character can end the element around it, and the page's script
inserts every text with textContent. So no text, whatever it contains, becomes markup.
"""

import json
from html import escape
from pathlib import Path

TEMPLATE = Path(__file__).parents[1] / "pages" / "trace.html"


def page(trace):
    """The page (str) of a `Trace`."""
    data = {"text": trace.text, "about": trace.about, "summary": trace.summary, "rounds": trace.rounds}
    embedded = json.dumps(data, allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    text = trace.text + "".join(text for record in trace.rounds for text in record["texts"])
    before, between, after = TEMPLATE.read_text(encoding="utf-8").replace("{{text}}", "{{data}}").split("{{data}}")
    return before + escape(text) + between + embedded + after
