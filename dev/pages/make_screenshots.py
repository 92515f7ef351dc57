"""Draw docs/explore.png and docs/trace.png: the pages of `explore` and `--trace` in a browser.

    python dev/pages/make_screenshots.py

It needs the extra `browser`, and Chromium or Chrome. The times in the trace differ from run to run.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
DOCS, EXPLORE = ROOT / "docs", ROOT / "speculative" / "pages" / "explore.html"
OPTIONS = "--temperature", "0.6", "--K", "4", "--seed", "1", "--n_tokens", "130"


def main():
    with TemporaryDirectory() as folder, sync_playwright() as running:
        trace = Path(folder) / "trace.html"
        subprocess.run([sys.executable, "main.py", *OPTIONS, "--trace", trace], cwd=ROOT, check=True)
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1280, "height": 900})
        view.goto(f"{EXPLORE.as_uri()}?sections=two+one")
        view.locator("#draw-many").click()
        view.wait_for_timeout(500)  # until the dart has fallen
        view.screenshot(path=DOCS / "explore.png", full_page=True)
        view.goto(trace.as_uri())
        view.screenshot(path=DOCS / "trace.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
