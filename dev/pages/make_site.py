"""The README, docs, notebooks and API reference as a static site: python dev/pages/make_site.py [FOLDER].

Needs the extra: python -m pip install -e ".[docs]". The folder is "site" if none is named. Formulas are MathML, and
explore.html and live.html are separate pages. The site fetches nothing from elsewhere, except that live.html gets
Python from a CDN when a reader presses its button; the library comes from live.zip. A warning of Sphinx or a broken
link ends the script with an error.

--lite adds a JupyterLite site with the notebooks, to run in a browser. It gets Python from the same CDN.
To try these pages: python -m http.server --directory FOLDER.
"""

import ast
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit
from zipfile import ZIP_DEFLATED, ZipFile

import make_reference
from speculative.pages import linked
from speculative.pages.live import live_page

ROOT = Path(__file__).parents[2]
CHAPTERS = {  # the navigation; README.md becomes index.md
    "Learn": ["notebooks/README.md", "notebooks/[0-9]*.ipynb"],
    "Docs": ["docs/*.md", "docs/raw/*.md", "gpt2np/tiny/README.md"],
    "Teach": ["notebooks/teaching/*.md"],
    "Project": ["CONTRIBUTING.md", "CHANGELOG.md"],
}
PICTURES = "docs/**/*.png", "docs/**/*.svg", "notebooks/*/*.png", "notebooks/*/*.svg"
COPIED = ".md", ".ipynb", ".png", ".svg", ".cff", ""  # the endings of the files that are on the site
DRAWING = re.compile(r"plt|fig|figures|ax(is|es)?")  # names in the statements that draw a figure
EXACT = "notebooks/05_why_speculative_sampling_is_exact"  # the page to which others link
ABOUT_EXACT = (
    "Speculative sampling writes every text with exactly the probability that the target alone gives it: "
    "a picture, a rule of three steps, a proof of three lines, and a computation that finds a bug."
)
PART = re.compile(r"<!-- explore ([\w ]+) -->")  # sections of explore.html, shown at this point of a page
FRAME = """<iframe src="{up}explore.html?sections={sections}" title="Sections of the page Play" loading="lazy"
style="width: 100%; height: 40rem; border: 0"></iframe>
<script>
addEventListener("message", ({{source, data}}) => {{  // its height, from the page in the frame
  for (const frame of document.querySelectorAll("iframe"))
    if (frame.contentWindow === source && data.height) frame.style.height = `${{data.height}}px`;
}});
</script>"""
ELSEWHERE = {"live.html": "Try it", "explore.html": "Play", "reference/index.html": "API reference"}
NOT_LIVE = re.compile(r"\.pyc$|/cli/|/training/|tiny-target/(heads|eagle|parallel)|tiny/held_out|explore|__main__")
IN_FORM = {"prompt": "Once upon a time there lived a king who lived in a great forest", "K": 3, "temperature": 0.7}
TIMES_OR_TRAINS = re.compile(r"perf_counter|\brace\(|def train\(|import torch")  # notebooks that are not in lite/
IN_LITE = (  # what the others read, besides the installed library
    *("notebooks/*.mplstyle", "notebooks/checks/*.*", "notebooks/figures/*.*", "gpt2np/tiny/*.txt"),
    *("tests/golden/*.*", "tests/golden_tf/model/*"),
)
OPEN = """</h1>
<p><a href="../lite/notebooks/index.html?path={}">Open in your browser</a>: nothing to install, 60 MB to load.</p>"""
MENDED = {  # in the pages of Sphinx, for screen readers
    'class="caption" role="heading"': 'class="caption" role="heading" aria-level="2"',
    '<aside class="announcement-content">': '<aside class="announcement-content" aria-label="Other pages">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<summary aria-label="Toggle hidden content">': "<summary>",
    '<th class="head"><p></p></th>': "<td></td>",
}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:)([^)#\s]+)\)|`((?:gpt2np|speculative)/[\w/]+\.py)`")
OPTIONS = {
    "project": "Speculative decoding in NumPy",
    "html_title": "Speculative decoding in NumPy",
    "extensions": ["myst_nb", "make_site"],
    "html_theme": "furo",
    "html_math_renderer": "mathml",
    "html_show_sourcelink": False,
    "html_copy_source": False,
    "html_show_copyright": False,
    "html_use_index": False,
    "highlight_language": "text",
    "myst_heading_anchors": 4,
    "myst_enable_extensions": ["dollarmath", "amsmath"],
    "nb_execution_mode": "off",
    "nb_code_prompt_show": "Show the code",
    "nb_code_prompt_hide": "Hide the code",
}


def make(folder, with_lite=False):
    """Write the site into this folder, which is replaced; ValueError if a link is broken."""
    from sphinx.application import Sphinx

    with TemporaryDirectory() as parent:
        source, built = Path(parent) / "source", Path(parent) / "site"
        stage(source)
        Sphinx(source, None, built, Path(parent) / "doctrees", "html", OPTIONS, None, warningiserror=True).build()
        for page in built.rglob("*.html"):
            write(page, mended(page.read_text(encoding="utf-8")))
        make_reference.make(built / "reference")
        live(built)
        if with_lite:
            lite(built)
        if broken := broken_links(built):
            raise ValueError("\n".join(["expected links that lead somewhere, got", *broken]))
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(built, folder)


def live(folder):
    """Write explore.html, and live.html with its worker and the library, which its first press loads."""
    own = ROOT / "speculative" / "pages"
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*.html")} | ELSEWHERE.keys()
    write(folder / "explore.html", linked((own / "explore.html").read_text(encoding="utf-8"), there))
    write(folder / "live.html", linked(live_page(**IN_FORM, n_tokens=60, seed=0), there))
    shutil.copy(own / "live.js", folder)
    with ZipFile(folder / "live.zip", "w", ZIP_DEFLATED) as library:
        for path in sorted(path for package in make_reference.PACKAGES for path in (ROOT / package).rglob("*.*")):
            name = path.relative_to(ROOT).as_posix()
            if not NOT_LIVE.search(name):
                library.write(path, name)


def lite(folder):
    """Write lite/, a JupyterLite site with notebooks and the library's wheel, and link the notebooks' pages to it."""
    with TemporaryDirectory() as source:
        source = Path(source)
        library, wheels, files = source / "library", source / "pypi", source / "files"  # the last two are JupyterLite's
        for package in make_reference.PACKAGES:
            shutil.copytree(ROOT / package, library / package)
        for name in "setup.py", "README.md", "LICENSE":
            shutil.copy(ROOT / name, library)
        subprocess.run([sys.executable, "-m", "pip", "wheel", library, "--no-deps", "-q", "-w", wheels], check=True)
        for path in (path for pattern in IN_LITE for path in ROOT.glob(pattern)):
            (files / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, files / path.relative_to(ROOT))
        notebooks = {path: path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("notebooks/*.ipynb"))}
        notebooks = {path: text for path, text in notebooks.items() if not TIMES_OR_TRAINS.search(text)}
        for path, text in notebooks.items():
            name, page = f"notebooks/{path.name}", folder / "notebooks" / f"{path.stem}.html"
            write(files / name, in_lite(text, {other.name for other in notebooks}))
            write(page, page.read_text(encoding="utf-8").replace("</h1>", OPEN.format(name), 1))
        [wheel] = wheels.iterdir()
        packages = ["numpy", "regex", "matplotlib", f"../../../../pypi/{wheel.name}"]  # as the kernel's worker sees it
        kernel = {"@jupyterlite/pyodide-kernel-extension:kernel": {"loadPyodideOptions": {"packages": packages}}}
        settings = {"appUrl": "./tree", "litePluginSettings": kernel}
        settings = {"jupyter-lite-schema-version": 0, "jupyter-config-data": settings}
        write(source / "jupyter-lite.json", json.dumps(settings))
        options = "--apps", "notebooks", "--apps", "tree", "--no-sourcemaps", "--output-dir", folder / "lite"
        subprocess.run([sys.executable, "-m", "jupyterlite_core", "build", *options], cwd=source, check=True)


def in_lite(notebook, names):
    """The text of a notebook with links to these notebooks only."""
    notebook = json.loads(notebook)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            cell["source"] = LINK.sub(lambda link: link[0] if link[3] or link[2] in names else link[1], text)
    return json.dumps(notebook)


def mended(page):
    for theirs, ours in MENDED.items():
        page = page.replace(theirs, ours)
    return page


def stage(source):
    """Copy what Sphinx reads, with links as they are on the site."""
    toctrees = ""
    for caption, patterns in CHAPTERS.items():
        pages = [path.relative_to(ROOT) for pattern in patterns for path in sorted(ROOT.glob(pattern))]
        names = "\n".join(path.with_suffix("").as_posix() for path in pages)
        if not pages:
            continue
        toctrees += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n{names}\n```\n"
        for path in pages:
            write(source / path, on_site((ROOT / path).read_text(encoding="utf-8"), path))
    write(source / "index.md", on_site((ROOT / "README.md").read_text(encoding="utf-8"), Path("README.md")) + toctrees)
    pictures = [path for pattern in PICTURES for path in ROOT.glob(pattern)]
    for path in [*pictures, ROOT / "LICENSE", ROOT / "CITATION.cff"]:
        (source / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, source / path.relative_to(ROOT))


def on_site(text, path):
    """The text of a page or notebook: modules link to the API reference, what is not on the site is not linked."""

    def changed(match):
        words, target, named = match.groups()
        there = ROOT / (named or (path.parent / target))
        if there.suffix == ".py" and there.resolve().relative_to(ROOT).parts[0] in make_reference.PACKAGES:
            page = there.resolve().relative_to(ROOT).with_suffix(".html").as_posix().replace("/__init__.html", ".html")
            if not make_reference.can_be_imported(page.removesuffix(".html").replace("/", ".")):
                return words or match[0]
            return f'<a href="{"../" * len(path.parent.parts)}reference/{page}">{words or f"<code>{named}</code>"}</a>'
        is_elsewhere = there.is_dir() or (there.exists() and there.suffix not in COPIED)
        return words if words and is_elsewhere else match[0]

    def framed(match):
        up = "../" * len(path.parent.parts)
        return FRAME.format(up=up, sections=match[1].replace(" ", "+"))

    if path.suffix == ".md":
        return LINK.sub(changed, re.sub(r'<a id="([\w-]+)"></a>', r"(\1)=", text))  # the anchor in the words of MyST
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = PART.sub(framed, LINK.sub(changed, "".join(cell["source"])))
        elif only_draws(cell):
            cell["metadata"].setdefault("tags", []).append("hide-input")
    return json.dumps(notebook)


def only_draws(cell):
    """Whether half of the lines above a figure, and more than three, draw it: the page shows them on a click."""
    try:
        statements = ast.parse("".join(cell["source"])).body
    except SyntaxError:  # of IPython
        return False

    def lines(of):
        return sum(statement.end_lineno - statement.lineno + 1 for statement in of)

    def draws(statement):
        return any(isinstance(node, ast.Name) and DRAWING.fullmatch(node.id) for node in ast.walk(statement))

    defines = ast.FunctionDef, ast.ClassDef
    drawing = lines(statement for statement in statements if draws(statement) and not isinstance(statement, defines))
    has_figure = any("image/png" in output.get("data", ()) for output in cell["outputs"])
    return has_figure and drawing > 3 and 2 * drawing >= lines(statements)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def setup(app):
    """Sphinx calls it: formulas as MathML, and a bar with the pages that Sphinx does not make."""
    from docutils import nodes
    from latex2mathml.converter import convert

    def renderer(display):
        def visit(writer, node):
            formula = convert(node.astext(), display=display)
            writer.body.append(f'<div style="overflow-x: auto">{formula}</div>' if display == "block" else formula)
            raise nodes.SkipNode

        return visit, None

    def bar(app, name, template, context, doctree):
        links = [f'<a href="{context["pathto"](page, 1)}">{words}</a>' for page, words in ELSEWHERE.items()]
        context["theme_announcement"] = " · ".join(links)
        if name == EXACT:
            context["metatags"] += f'<meta name="description" property="og:description" content="{ABOUT_EXACT}">'

    app.add_html_math_renderer("mathml", renderer("inline"), renderer("block"))
    app.connect("html-page-context", bar)


class Links(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors |= {attributes.get("id"), attributes.get("name")}
        self.links += [attributes[name] for name in ("href", "src") if attributes.get(name)]


def broken_links(folder):
    """A line for each link between files of the folder whose file or anchor is missing."""
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in sorted(folder.resolve().rglob("*.html"))}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages[there].anchors if there in pages else {unquote(parts.fragment)}
            if not parts.scheme and not (there.exists() and unquote(parts.fragment) in known):
                broken.append(f"{path.relative_to(folder.resolve()).as_posix()}: {link}")
    return broken


if __name__ == "__main__":
    named = [name for name in sys.argv[1:] if name != "--lite"]
    make(Path(named[0]) if named else ROOT / "site", with_lite="--lite" in sys.argv)
