"""The page live.html: its rounds are those of the samplers, and what it shows in Chromium is the text of the library.

Python is the server of `explore`; with PYODIDE=folder of a distribution with NumPy and regex, it is WebAssembly, too.
"""

import http.client
import json
import os
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, pairwise
from pathlib import Path

import pytest
from browser import SCREENS, pages, violations
from helpers import script

from speculative import ModelDrafter, Sampling, Shape, SpeculativeSampler
from speculative.cli.commands import explore
from speculative.cli.models import Models
from speculative.cli.options import defaults_of
from speculative.pages import live
from speculative.pages.server import Server

FORM = {"prompt": "Once upon a time there lived a king", "K": 3, "temperature": 0.7, "n_tokens": 24, "seed": 5}
HOSTILE = '</script><img src=x onerror="document.title=1">\u202e' + "{{settings}} " * 20


def make_of(**options):
    given = {"tree": "2x1"} if "tree" in options else {}
    options = defaults_of(explore).but(command="explore", given=given, **options)
    return explore.maker(options, Models(options))


def whole(native):
    return "".join(chain(*native))


def said(make, **request):
    messages = []
    for _ in live.answer(messages.append, make, FORM | request):
        pass
    return messages


@pytest.fixture(scope="module")
def native():
    """The text of the form, by the library."""
    target, tokenizer = Models(defaults_of(explore)).target()
    draft = Models(defaults_of(explore))("tiny-draft")[0]
    sampler = SpeculativeSampler(target, ModelDrafter(draft), K=3, sampling=Sampling(0.7))
    rounds = sampler.generate(tokenizer.encode(FORM["prompt"]), 24, rng=5).rounds
    return [[tokenizer.decode([token]) for token in r.tokens.tolist()] for r in rounds]


def test_the_rounds_are_those_of_the_sampler_and_a_draft_is_said_before_it_is_checked(native):
    messages = said(make_of())
    rounds = [message for message in messages if message["kind"] == "round"]
    assert [message["texts"] for message in rounds] == native
    for before, message in pairwise(messages):
        if message["kind"] == "round" and before["kind"] == "drafted":
            n = message["origins"].count("accepted")
            assert message["texts"][:n] == before["texts"][:n]
    assert '"alone": {"texts"' in messages[-1]["page"]


@pytest.mark.parametrize(
    "options", [{"drafter": "recycling"}, {"tree": Shape.widths(2, 1)}, {"drafter": "heads"}, {"K": "heuristic"}]
)
def test_any_drafter_and_tree_is_shown(options):
    messages = said(make_of(**options), K=options.get("K", 3))
    assert messages[0]["kind"] == "drafted" and messages[-1]["kind"] == "end"


def test_costs_are_a_row_for_each_length_and_a_sentence():
    *rows, verdict = said(make_of(), costs=True)
    assert [row["cells"][0] for row in rows] == list("01234") and rows[0]["cells"][3:] == ["1.00×", "V(1) = 1.00"]
    assert "A pass over 5 tokens takes" in verdict["words"]
    [_, row, _] = said(make_of(K="heuristic"), costs=True, K="heuristic")
    assert row["cells"][0] == "heuristic"


# ------------------------------------------------------------------------------------------------ the server


@contextmanager
def running(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with server:
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def server():
    settings = FORM | {"prompt": HOSTILE, "models": ""}
    with running(Server(make_of(), settings)) as server:
        yield server


def answered(server, *request):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request(*request)
    return connection.getresponse()


@pytest.mark.parametrize(
    ("path", "headers", "body", "status"),
    [
        ("", {}, None, 200),
        ("live.js", {}, None, 200),
        ("../live.py", {}, None, 404),
        ("", {"Host": "elsewhere.org"}, None, 403),
        ("answer", {"Origin": "http://elsewhere.org"}, "{}", 403),
        ("answer", {}, "[1]", 400),
        ("answer", {}, "", 400),
        (None, {}, None, 403),
    ],
)
def test_only_its_own_page_is_answered(server, path, headers, body, status):
    address = "/" if path is None else server.path + path
    assert answered(server, "GET" if body is None else "POST", address, body, headers).status == status


@pytest.mark.parametrize(
    ("values", "words"), [({"K": -1}, "expected"), ({"n_tokens": 9999}, "n_ctx"), ({"x": 1}, "'x'")]
)
def test_a_wrong_request_is_one_sentence(server, values, words):
    [line] = answered(server, "POST", server.path + "answer", json.dumps(FORM | values)).read().splitlines()
    message = json.loads(line)
    assert message["kind"] == "error" and words in message["words"]


# ------------------------------------------------------------------------------------------------ in Chromium


@pytest.fixture
def opened(browser, server):
    def first_text(show, screen):
        view = show(server.address, screen)  # the page writes a text by itself
        view.locator("#said", has_text="Done").wait_for()
        return view

    with pages(browser, server.address.removesuffix(server.path)) as show:
        yield lambda screen="wide": first_text(show, screen)


def written(view, prompt=FORM["prompt"], timeout=60_000):
    """The text that the page writes after this prompt."""
    view.locator("[name=prompt]").fill(prompt)
    for name in ("K", "temperature", "n_tokens", "seed"):
        view.locator(f"[name={name}]").fill(str(FORM[name]))
    view.locator("form button").click()
    frame = view.frame_locator("#trace")
    frame.locator("#stream .round").first.wait_for(timeout=timeout)
    kept = frame.locator(".round .token:not(.rejected):not(.dropped)").all_text_contents()
    return "".join(kept).replace("\u23ce\n", "\n")


@pytest.mark.browser
@pytest.mark.parametrize("screen", SCREENS)
def test_a_press_writes_the_text_of_the_library_and_axe_finds_nothing(opened, native, screen):
    view = opened(screen)
    title = view.title()
    assert view.locator("[name=prompt]").input_value() == HOSTILE
    assert written(view) == whole(native)
    assert view.locator("#said").inner_text().startswith("Done")
    view.locator("#measure").click()
    view.locator("#costs tbody tr").nth(4).wait_for()
    assert view.locator("#verdict").inner_text().endswith(".") and view.title() == title
    for page in view.frames:
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if os.environ.get("AXE"):
        assert violations(view) == []


@pytest.mark.browser
def test_no_prompt_harms_and_a_long_one_is_refused_in_a_sentence(opened):
    view = opened()
    title = view.title()
    written(view, HOSTILE)
    assert view.title() == title and view.locator("img").count() == 0
    assert view.frame_locator("#trace").locator("img").count() == 0
    view.locator("[name=prompt]").fill("so " * 3333)
    view.locator("form button").click()
    view.locator("#said", has_text="n_ctx").wait_for()
    assert view.locator("form button").inner_text() == "write"


@pytest.mark.browser
def test_two_tabs_and_a_stop_do_not_disturb_each_other(opened, native):
    first, second = opened(), opened()
    for n_tokens in "150", "140":
        first.locator("[name=prompt]").fill("The fox")
        first.locator("[name=n_tokens]").fill(n_tokens)
        first.locator("form button").click()
        first.locator("#text .accepted").first.wait_for()
        assert written(second) == whole(native)
        first.locator("#trace:visible").wait_for()
    first.locator("form button").click()
    first.locator("#text .accepted").first.wait_for()
    first.locator("form button").click()
    assert first.locator("form button").inner_text() == "write" and written(first) == whole(native)


@pytest.mark.browser
@pytest.mark.skipif(not os.environ.get("PYODIDE"), reason="needs PYODIDE=folder of Pyodide with NumPy and regex")
def test_the_same_text_in_webassembly(browser, native, tmp_path):
    script("dev/pages/make_site.py").live(tmp_path)
    (tmp_path / "pyodide").symlink_to(Path(os.environ["PYODIDE"]).resolve())

    class Quiet(SimpleHTTPRequestHandler):
        extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}  # noqa: RUF012

        def log_message(self, *_):
            pass

    served = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path))
    home = f"http://127.0.0.1:{served.server_port}/"
    with running(served), pages(browser, home) as show:
        assert written(show(f"{home}live.html?local"), timeout=180_000) == whole(native)
