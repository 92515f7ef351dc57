"""Write a page, but never over one that somebody has edited since, or over a different file."""

from gpt2np.files.writing import replacing
from speculative.cli.files import digest

MARK = "\n<!-- as written, with the digest "


def write(path, text):
    """Write the text and its digest; ValueError if the file is there and its text does not have its digest."""
    if path.exists():
        old, _, mark = path.read_text(encoding="utf-8", errors="replace").rpartition(MARK)
        if mark != f"{digest(old)} -->\n":
            raise ValueError(f"{path} was edited, or is a different file: delete it, or write somewhere else")
    with replacing(path) as new:
        new.write_text(f"{text}{MARK}{digest(text)} -->\n", encoding="utf-8")
