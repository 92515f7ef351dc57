"""Pages in Chromium without a window, driven by Playwright. Nothing may be fetched, and nothing may go wrong in one."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
SCREENS = {
    "wide": {"viewport": DESKTOP},
    "dark": {"viewport": DESKTOP, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "is_mobile": True, "has_touch": True},
    "dark phone": {"viewport": PHONE, "is_mobile": True, "has_touch": True, "color_scheme": "dark"},
    "projector": {"viewport": {"width": 1920, "height": 1080}},
}
AXE = os.environ.get("AXE", "")  # axe.min.js of the npm package axe-core


@contextmanager
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=quiet)
        yield browser
        browser.close()


@contextmanager
def pages(browser, home="file:"):
    """A function (path or address of a page, screen) that opens it; all it asks for begins with `home`."""
    contexts, wrong, asked = [], [], []

    def show(path, screen="wide", **options):
        contexts.append(browser.new_context(**SCREENS[screen], **options))
        view = contexts[-1].new_page()
        view.on("console", lambda message: wrong.append(message.text))
        view.on("pageerror", lambda error: wrong.append(str(error)))
        view.on("request", lambda request: asked.append(request.url))
        view.goto(path if isinstance(path, str) else Path(path).as_uri())
        return view

    yield show
    for context in contexts:
        context.close()
    assert wrong == [] and [url for url in asked if not url.startswith((home, "data:"))] == []


def violations(view):
    """What axe-core finds wrong with the accessibility of a page, as sentences."""
    if not AXE:
        pytest.skip("needs axe-core: npm install axe-core, and AXE=node_modules/axe-core/axe.min.js")
    view.evaluate(Path(AXE).read_text(encoding="utf-8"))
    found = view.evaluate("axe.run({preload: false, iframes: false})")["violations"]
    return [f"{rule['id']}: {node['html'][:120]}" for rule in found for node in rule["nodes"]]
