"""Draw docs/race.svg, the moving picture of the README: a text by the target alone, and the same text with a draft.

    python main.py --n_tokens 22 --trace docs/race.jsonl \\
        --prompt "Once upon a time there lived a king who lived in a great forest,"
    python dev/pages/make_race.py [--still]

The same trace gives the same bytes. The times are those of the trace, slowed down so that the target alone takes eight
seconds. The picture plays three times and stops. In print, and for a reader who has asked for less motion, it shows
only its last frame. `--still` writes that frame as docs/race.png, for pages that show no SVG, with the extra `browser`.
"""

import shutil
import sys
from html import escape
from pathlib import Path

from speculative.trace import Trace, colours

DOCS = Path(__file__).parents[2] / "docs"
WIDTH, LEFT, LETTER, LINE = 880, 24, 13, 34  # pixels; LETTER is the width of a letter in whatever font the reader has
COLUMNS = (WIDTH - 2 * LEFT) // LETTER
RACE, PERIOD = 8, 14  # seconds until the target alone is done, and until the race starts again
LOOKS = {  # background, text, and a mark that needs no colour
    "guess": (colours.Q.light, "black", "font-style:italic"),
    "accepted": (colours.ACCEPTED.light, "white", ""),
    "correction": (colours.CORRECTED.light, "white", "text-decoration:underline;font-weight:700"),
    "bonus": (colours.BONUS.light, "black", "text-decoration:underline dotted"),
}
NAMES = {"guess": "guess", "accepted": "accepted", "correction": "corrected", "bonus": "bonus"}
STYLE = [
    'text{font:21.5px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1f2328}',
    ".card{fill:#fff}.edge{stroke:#d0d7de}.bold{font-weight:700}.right{text-anchor:end}",
    "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.card{fill:#151b23}.edge{stroke:#3d444d}}",
    *(f".{kind} rect{{fill:{back}}}.{kind} text{{fill:{ink};{mark}}}" for kind, (back, ink, mark) in LOOKS.items()),
    f"[style]{{animation:{PERIOD}s step-end 3}}.gone{{visibility:hidden}}",
    "@media print,(prefers-reduced-motion:reduce){[style]{animation:none!important}}",
]


def places(pieces, column=0, line=0):
    """[(text, column, line)] of the tokens' texts from this position on, and the next position; words stay whole."""
    placed = []
    for i, piece in enumerate(pieces):
        word = piece + "".join(pieces[i + 1 :]).partition(" ")[0]
        if piece.startswith(" ") and column + len(word) > COLUMNS:
            column, line = 0, line + 1
        text = piece if column else piece.lstrip(" ")
        column += len(text)
        bare = text.lstrip(" ")
        placed.append((bare, column - len(bare), line))
    return placed, column, line


def token(place, top, kind):
    """A token at its position in the text, drawn in the style of its kind; the text begins at height `top`."""
    text, column, line = place
    x, y, width = LEFT + column * LETTER, top + line * LINE, len(text) * LETTER
    back = f'<rect x="{x + 0.5}" y="{y - 22}" width="{width - 1}" height="30" rx="3"/>' if kind in LOOKS else ""
    return f'<g class="{kind}">{back}<text x="{x}" y="{y}" textLength="{width}">{escape(text)}</text></g>'


def heading(words, top, kind=""):
    return f'<text class="bold {kind}" x="{WIDTH - LEFT if kind else LEFT}" y="{top}">{words}</text>'


def counter(top, n_tokens, n_calls, seconds):
    """The counter, drawn over the previous one."""
    cover = f'<rect class="card" x="{WIDTH // 3}" y="{top - 25}" width="{WIDTH - WIDTH // 3 - 2}" height="{LINE}"/>'
    tokens, calls = counted(n_tokens, "token"), counted(n_calls, "target call")
    return cover + heading(f"{tokens}, {calls}, {1000 * seconds:.0f} ms", top, "right")


def counted(n, name):
    return f"{n} {name}{'' if n == 1 else 's'}"


def picture(trace):
    """The SVG (str) of a `Trace` that has the times of the target alone."""
    alone = trace.about["alone"]
    slower = RACE / sum(alone["seconds"])
    shapes, frames = [token((trace.text, 0, 0), 40, "")], []

    def show(shape, start, end=None):
        """Add a shape that is seen from `start` to `end`, in seconds of the trace."""
        times = [f"{100 * time * slower / PERIOD:.2f}%" for time in (start, end) if time]
        states = ["0%{visibility:hidden}", *(f"{t}{{visibility:{v}}}" for t, v in zip(times, ("visible", "hidden")))]
        frames.append(f"@keyframes f{len(frames)}{{{''.join(states)}}}")
        kind = "gone" if end else ""
        shapes.append(f'<g class="{kind}" style="animation-name:f{len(frames) - 1}">{shape}</g>')

    top = 84
    shapes.append(heading("target alone", top) + counter(top, 0, 0, 0))
    placed, _, lines = places(alone["texts"])
    finish = 0
    for n, (place, seconds) in enumerate(zip(placed, alone["seconds"]), 1):
        finish += seconds
        show(token(place, top + LINE, "") + counter(top, n, n, finish), finish)

    top += LINE * (lines + 2) + 8
    shapes.append(heading("with a draft", top) + counter(top, 0, 0, 0))
    now, n, end = 0, 0, (0, 0)
    for n_calls, record in enumerate(trace.rounds, 1):
        drafted = now + record["seconds"]["draft"]
        now += sum(record["seconds"].values())
        guesses, *_ = places([draft["text"] for draft in record["drafted"]], *end)
        show("".join(token(place, top + LINE, "guess") for place in guesses), drafted, now)
        placed, *end = places(record["texts"], *end)
        n += len(placed)
        tokens = (token(place, top + LINE, kind) for place, kind in zip(placed, record["origins"]))
        show("".join(tokens) + counter(top, n, n_calls, now), now)

    top += LINE * (end[1] + 2) + 14
    written = [text for record in trace.rounds for text in record["texts"]]
    same = f"same text: {'yes' if written == alone['texts'] else 'no'}"
    show(heading(same, top), max(finish, now))
    column = COLUMNS - len("  ".join(NAMES.values()))
    for kind, name in NAMES.items():
        shapes.append(token((name, column, 0), top, kind))
        column += len(name) + 2

    title = f"{n} tokens in {n_calls} calls of the target instead of {n}, slowed down {slower:.0f} times; {same}"
    size = f'width="{WIDTH - 1}" height="{top + 21}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + 22}" role="img"><title>{title}</title>'
        f"<style>{''.join(STYLE + frames)}</style>"
        f'<rect class="card edge" x=".5" y=".5" {size} rx="10"/>{"".join(shapes)}</svg>\n'
    )


def still():
    """Write docs/race.png, the last frame of docs/race.svg, with Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        view = browser.new_page(reduced_motion="reduce", device_scale_factor=2)
        view.set_content(f'<div style="width: {WIDTH}px">{(DOCS / "race.svg").read_text(encoding="utf-8")}</div>')
        view.locator("svg").screenshot(path=DOCS / "race.png")
        browser.close()


if __name__ == "__main__":
    (DOCS / "race.svg").write_text(picture(Trace.load(DOCS / "race.jsonl")), encoding="utf-8")
    if "--still" in sys.argv:
        still()
