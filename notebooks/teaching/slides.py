"""Turn slides.md into one page that needs no network: python notebooks/teaching/slides.py [--output slides.html]

Slides are separated by a line with ---; a quotation at the end of a slide is its notes. In the browser the arrow keys
turn the pages and N shows the notes. Printing gives a page for each slide, and a second one if the notes are shown.
"""

import argparse
import base64
import html
import mimetypes
import re
from pathlib import Path

from writing import write

FOLDER = Path(__file__).resolve().parent
BLOCK = re.compile(
    r"^```.*?^```|(?:^(?!```)[^\n]+\n?)+", re.MULTILINE | re.DOTALL
)  # code, or lines without a blank one
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>TITLE</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { --u: min(1vw, 1.7778vh) }
* { box-sizing: border-box }
html { scroll-snap-type: y mandatory }
body { margin: 0; background: #eee; color: #1a1a1a; font: calc(2.5 * var(--u)) / 1.4 system-ui, sans-serif }
section { position: relative; width: calc(100 * var(--u)); height: calc(56.25 * var(--u)); margin: 0 auto;
  padding: calc(3 * var(--u)) calc(6 * var(--u));
  display: flex; flex-direction: column; background: white; overflow: hidden; scroll-snap-align: start }
section::after { content: attr(data-number); position: absolute; right: calc(2 * var(--u));
  bottom: calc(1 * var(--u)); color: #666; font-size: 60% }
h1, h2 { margin: 0 0 .5em; font-size: 170%; line-height: 1.15; color: #14508f }
h1 { margin-top: 14%; font-size: 230% }
p, ul, ol, table, pre { margin: .5em 0 }
ul, ol { padding-left: 1.25em }
li { margin: .25em 0 }
img { flex: 1 1 0; min-height: 0; margin: .4em 0; object-fit: contain }
pre { padding: .7em 1em; background: #f3f3f3; font-size: 68%; line-height: 1.35; overflow: hidden }
code { font-family: ui-monospace, monospace; font-size: 92% }
pre code { font-size: 100% }
table { border-collapse: collapse; margin: .6em auto; font-size: 82% }
td, th { padding: .25em .8em; border-bottom: 1px solid #bbb; text-align: left }
a { color: #14508f }
aside { display: none; max-width: calc(100 * var(--u)); margin: 0 auto; padding: 1em calc(6 * var(--u));
  background: #fff8dc; font-size: 85% }
.notes { --u: min(1vw, 1.3vh) }
.notes aside { display: block; min-height: calc(100vh - 56.25 * var(--u)) }
@page { size: 1280px 720px; margin: 0 }
@media print {
  :root, .notes { --u: 12.8px }
  .notes aside { min-height: 0 }
  html { scroll-snap-type: none }
  body { background: white; print-color-adjust: exact; -webkit-print-color-adjust: exact }
  section, aside { break-after: page; break-inside: avoid }
  section:last-child, body:not(.notes) section:nth-last-child(3) { break-after: auto }
}
</style></head><body>
SLIDES
<script>
const slides = [...document.querySelectorAll("section")];
const at = () => slides.findLastIndex(slide => slide.getBoundingClientRect().top < innerHeight / 2);
addEventListener("keydown", event => {
  if (event.key == "n") {
    const shown = slides[at()];
    document.body.classList.toggle("notes");
    shown.scrollIntoView();
  }
  const step = {ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1}[event.key];
  if (!step) return;
  event.preventDefault();
  slides[at() + step]?.scrollIntoView();
});
</script>
</body></html>
"""


def page(text, folder):
    """The HTML page of slides in Markdown, with the pictures in it."""
    slides = []
    for i, slide in enumerate(re.split(r"\n---\n", text), 1):
        blocks = [block.strip() for block in BLOCK.findall(slide)]
        notes = [block for block in blocks if block.startswith(">")]
        shown = "\n".join(as_html(block, folder) for block in blocks if not block.startswith(">"))
        said = "\n".join(f"<p>{inline(re.sub(r'(?m)^> ?', '', block))}</p>" for block in notes)
        slides.append(f'<section data-number="{i}">\n{shown}\n</section>\n<aside>{said}</aside>')
    title = (re.search(r"(?m)^#+ (.*)", text) or ["", "Slides"])[1]
    return PAGE.replace("TITLE", html.escape(title)).replace("SLIDES", "\n".join(slides))


def as_html(block, folder):
    """A block: code, a heading, a table, a list, a picture or a paragraph."""
    lines = block.splitlines()
    if block.startswith("```"):
        return f"<pre><code>{html.escape(chr(10).join(lines[1:-1]))}</code></pre>"
    if heading := re.match(r"(#+) (.*)", block):
        return f"<h{len(heading[1])}>{inline(heading[2])}</h{len(heading[1])}>"
    if block.startswith("|"):
        rows = [
            re.split(r"\s*\|\s*", line.strip()[1:-1].strip()) for line in lines if not re.fullmatch(r"[|\s:-]+", line)
        ]
        cells = ["".join(f"<{tag}>{inline(x)}</{tag}>" for x in row) for row, tag in zip(rows, ["th"] + ["td"] * 99)]
        return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"
    if match := re.match(r"- |\d+\. ", block):
        tag = "ul" if match[0] == "- " else "ol"
        items = re.split(r"(?m)^(?:- |\d+\. )", block)[1:]
        return f"<{tag}>" + "".join(f"<li>{inline(item.strip())}</li>" for item in items) + f"</{tag}>"
    if picture := re.fullmatch(r"!\[(.*)\]\((.*)\)", block):
        data = base64.b64encode((folder / picture[2]).read_bytes()).decode()
        kind = mimetypes.guess_type(picture[2])[0]
        return f'<img alt="{html.escape(picture[1])}" src="data:{kind};base64,{data}">'
    return f"<p>{inline(block)}</p>"


def inline(text):
    """Code, bold, emphasis and links of a line."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(f"<code>{html.escape(x[1:-1])}</code>" if x[:1] == "`" else marked(x) for x in parts)


def marked(text):
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html.escape(text, quote=False), flags=re.DOTALL)
    text = re.sub(r"(?<!\w)\*(\S.*?)\*", r"<i>\1</i>", text)
    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>', text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slides", type=Path, default=FOLDER / "slides.md", help="the Markdown file (slides.md)")
    parser.add_argument("--output", type=Path, default=Path("slides.html"), help="the page to write (slides.html)")
    request = parser.parse_args()
    try:
        write(request.output, page(request.slides.read_text("utf-8"), request.slides.parent))
    except (OSError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
