"""The API reference that dev/pages/make_reference.py makes: every module, and no link that leads nowhere."""

import subprocess
import sys

import pytest
from helpers import ROOT, script

pytest.importorskip("pdoc", reason="pdoc is not installed: pip install -e '.[docs]'")
make_site = script("dev/pages/make_site.py")


@pytest.mark.slow
def test_the_reference_has_every_module_and_no_broken_link(tmp_path):
    subprocess.run([sys.executable, ROOT / "dev" / "pages" / "make_reference.py", tmp_path], cwd=ROOT, check=True)
    pages = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html")}
    modules = {
        path.relative_to(ROOT).with_suffix("").as_posix().removesuffix("/__init__")
        for package in make_site.make_reference.PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    modules = {module for module in modules if make_site.make_reference.can_be_imported(module.replace("/", "."))}
    assert {f"{module}.html" for module in modules} <= pages
    assert make_site.broken_links(tmp_path) == []
