"""The API reference that docs/make_reference.py makes: every module, and no link that leads nowhere."""

import re
import subprocess
import sys

import pytest
from helpers import ROOT

pytest.importorskip("pdoc", reason="pdoc is not installed: pip install -e '.[docs]'")


@pytest.mark.slow
def test_the_reference_has_every_module_and_no_broken_link(tmp_path):
    subprocess.run([sys.executable, ROOT / "docs" / "make_reference.py", tmp_path], cwd=ROOT, check=True)
    pages = {
        path.relative_to(tmp_path).as_posix(): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")
    }
    modules = {
        path.relative_to(ROOT).with_suffix("").as_posix().removesuffix("/__init__")
        for package in ("gpt2np", "speculative")
        for path in (ROOT / package).rglob("*.py")
        if (path.parent / "__init__.py").exists()  # not the training scripts
    }
    assert {f"{module}.html" for module in modules} <= pages.keys()
    broken = []
    for name, page in pages.items():
        for target, anchor in re.findall(r'<a[^>]* href="([^"#]*)(?:#([^"]*))?"', page):
            if target.startswith(("http", "data:", "${")):
                continue
            path = (tmp_path / name).parent / target if target else tmp_path / name
            there = path.resolve().relative_to(tmp_path.resolve()).as_posix()
            if there not in pages or (anchor and f'id="{anchor}"' not in pages[there]):
                broken.append((name, target, anchor))
    assert broken == []
