"""One HTML file with a whole trace: the text, every round behind it, and a player. Nothing is fetched from elsewhere.

The records stand in the page as JSON, in which no character can end the element that holds it; the page's script makes
every text by textContent. So no text, whatever it contains, becomes markup.
"""

from html import escape
from pathlib import Path

from .record import to_json

TEMPLATE = Path(__file__).with_name("page.html")


def page(trace):
    """The page (str) of a `Trace`."""
    data = {"text": trace.text, "about": trace.about, "summary": trace.summary, "rounds": trace.rounds}
    embedded = to_json(data).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    text = trace.text + "".join(text for record in trace.rounds for text in record["texts"])
    before, between, after = TEMPLATE.read_text(encoding="utf-8").replace("{{text}}", "{{data}}").split("{{data}}")
    return before + escape(text) + between + embedded + after
