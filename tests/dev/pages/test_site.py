"""The site that dev/pages/make_site.py makes: every page, no broken link, and how it looks in a browser."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest
from browser import chromium, pages, violations
from helpers import ROOT, script

make_site = script("dev/pages/make_site.py")
NEEDED = "furo", "latex2mathml", "myst_nb", "pdoc", "sphinx"
JUPYTERLITE = "jupyterlite_core", "jupyterlite_pyodide_kernel"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if missing := [name for name in NEEDED if not find_spec(name)]:
        pytest.skip(f"{', '.join(missing)} not installed: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    lite = ["--lite"] if all(map(find_spec, JUPYTERLITE)) else []
    subprocess.run([sys.executable, ROOT / "dev" / "pages" / "make_site.py", folder, *lite], cwd=ROOT, check=True)
    return folder


@pytest.mark.slow
def test_it_has_every_page(site):
    """And Sphinx had no warning, and no link was broken: either ends the script with an error."""
    sources = [path for patterns in make_site.CHAPTERS.values() for pattern in patterns for path in ROOT.glob(pattern)]
    expected = {path.relative_to(ROOT).with_suffix(".html").as_posix() for path in sources}
    found = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert expected | {"index.html", "search.html"} | make_site.ELSEWHERE.keys() <= found
    reference = make_site.make_reference
    modules = {path for package in reference.PACKAGES for path in (ROOT / package).rglob("*.py")}
    modules = {path.relative_to(ROOT).with_suffix("").as_posix().removesuffix("/__init__") for path in modules}
    modules = {module for module in modules if reference.can_be_imported(module.replace("/", "."))}
    assert {f"reference/{module}.html" for module in modules} <= found
    explore = (site / "explore.html").read_text(encoding="utf-8")
    assert f'href="{make_site.EXACT}.html"' in explore and "data-site" not in explore
    for notebook in ROOT.glob("notebooks/0[5-9]*.ipynb"):
        page = (site / "notebooks" / notebook.name).with_suffix(".html").read_text(encoding="utf-8")
        assert "<math" in page and "_images/" in page and "get_ipython" not in page


@pytest.mark.slow
def test_the_notebooks_that_pages_open_are_in_the_lite_site_with_the_library(site):
    lite = site / "lite"
    if not lite.exists():
        pytest.skip(f"{' or '.join(JUPYTERLITE)} not installed: pip install -e '.[docs]'")
    pages = [make_site.Links(page.read_text(encoding="utf-8")) for page in site.glob("notebooks/*.html")]
    opened = {link.partition("?path=")[2] for page in pages for link in page.links if "/lite/" in link}
    notebooks = {path.relative_to(lite / "files").as_posix() for path in lite.glob("files/notebooks/*.ipynb")}
    assert opened == notebooks and {name[10:12] for name in notebooks} >= {"01", "02", "04", "05"}
    assert "](06_why" not in (lite / "files/notebooks/05b_speculative_sampling.ipynb").read_text(encoding="utf-8")
    settings = json.loads((lite / "jupyter-lite.json").read_text(encoding="utf-8"))["jupyter-config-data"]
    [(kernel, options)] = settings["litePluginSettings"].items()
    worker = lite / "extensions" / kernel.partition(":")[0] / "static"
    with ZipFile(worker / options["loadPyodideOptions"]["packages"][-1]) as wheel:
        assert {"speculative/__init__.py", "gpt2np/tiny/tiny-target/model.safetensors"} <= {*wheel.namelist()}


@pytest.mark.browser
@pytest.mark.parametrize("screen", ["wide", "phone"])
def test_it_fits_the_screen_and_fetches_nothing(site, screen):
    with chromium() as browser, pages(browser) as show:
        found = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
        found = {name for name in found if not name.startswith(("reference/", "lite/"))}
        for name in found | make_site.ELSEWHERE.keys():
            view = show(site / name, screen)
            assert view.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            assert view.evaluate("[...document.images].every(image => image.complete && image.naturalWidth)"), name
            view.close()
        view = show(site / "notebooks/05_why_speculative_sampling_is_exact.html", screen)
        assert view.locator("math").first.bounding_box()["width"] > 10


@pytest.mark.browser
@pytest.mark.parametrize("screen", ["wide", "dark phone"])
def test_axe_finds_nothing(site, screen):
    with chromium() as browser, pages(browser) as show:
        for name in "index.html", f"{make_site.EXACT}.html", "notebooks/06_why_it_is_fast.html", "docs/options.html":
            found = violations(show(site / name, screen))
            assert [line for line in found if not line.startswith("scrollable-region-focusable")] == [], name


FINE = "other.html", "../a/other.html#there", "other%2Ehtml", "#here", "#", "image.png", "https://example.org/x#y"


@pytest.mark.parametrize("link", [*FINE, "missing.html", "other.html#here", "#there"])
def test_a_broken_link_is_found(tmp_path, link):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "other.html").write_text('<h1 id="there">other</h1>', encoding="utf-8")
    (folder / "image.png").write_bytes(b"")
    (folder / "page.html").write_text(f'<p id="here"><a href="{link}">x</a><script>"#no"</script>', encoding="utf-8")
    assert make_site.broken_links(tmp_path) == ([] if link in FINE else [f"a/page.html: {link}"])


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        (
            "docs/x.md",
            "[its page](../speculative/reference.py), `gpt2np/layers.py`",
            '<a href="../reference/speculative/reference.html">its page</a>, '
            '<a href="../reference/gpt2np/layers.html"><code>gpt2np/layers.py</code></a>',
        ),
        ("README.md", "`speculative/exact/__init__.py`", "reference/speculative/exact.html"),
        ("notebooks/README.md", "[solutions](solutions)", "solutions"),
        ("README.md", "[a](docs/audit.md) ![b](docs/explore.png)", "[a](docs/audit.md) ![b](docs/explore.png)"),
        ("README.md", "[a](docs/audit.md#x), [b](https://x.org)", "[a](docs/audit.md#x), [b](https://x.org)"),
    ],
)
def test_links_to_modules_become_links_to_the_reference(page, text, expected):
    found = make_site.on_site(text, Path(page))
    assert found == expected or (page == "README.md" and f'<a href="{expected}">' in found)
