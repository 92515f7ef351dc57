"""The page of a trace in a real browser: Chromium without a window, driven by Playwright."""

import re
import shutil

import pytest
from helpers import TreeDrafter

import speculative
from speculative.testing import TableModel
from speculative.trace import Trace, page

pytestmark = pytest.mark.browser
BAD = "<script>document.title = 'bad'</script><img src=x onerror=\"document.title = 'bad'\">"
WORDS = [" king", " wood", "\n", BAD, " caf\u00e9", ".", " a"]


@pytest.fixture(scope="session")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=quiet)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def trace():
    """Drafts of three tokens; accepted, rejected and dropped ones, corrections and a bonus, and texts that attack."""
    target, draft = TableModel.random(7, seed=1, n_ctx=64), TableModel.random(7, seed=2, n_ctx=64)
    sampler = speculative.SpeculativeSampler(target, speculative.ModelDrafter(draft), K=3)
    generation = sampler.generate([3, 1], 40, 5, keep_probs=True)
    about = {"target": {"name": BAD}, "draft": {"name": "small"}, "verifier": "rejection", "exactness": "exact", "K": 3}
    return Trace.of(generation, lambda tokens: "".join(WORDS[token] for token in tokens), about)


@pytest.fixture(params=["wide", "dark", "phone"])
def view(request, chromium, trace, tmp_path):
    """The page as it is open in a browser; nothing may be fetched, nothing may go wrong in it."""
    (tmp_path / "t.html").write_text(page(trace), encoding="utf-8")
    options = {
        "wide": {"viewport": {"width": 1280, "height": 900}},
        "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
        "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
    }[request.param]
    with chromium.new_context(**options) as context:
        opened, wrong, asked = context.new_page(), [], []
        opened.on("console", lambda message: wrong.append(message.text))
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto((tmp_path / "t.html").as_uri())
        opened.kind = request.param
        yield opened
        assert wrong == [] and [url for url in asked if not url.startswith("file:")] == []


def whole(text):
    return text.replace("\n", "\u23ce\n")


def test_it_shows_the_whole_text(view, trace):
    records = trace.rounds
    assert view.locator(".round").count() == len(records)
    kept = view.locator(".round .token:not(.rejected):not(.dropped)").all_text_contents()
    assert "".join(kept) == whole("".join(text for record in records for text in record["texts"]))
    lost = [g["text"] for record in records for g in record["drafted"] if g["decision"] != "accepted"]
    assert view.locator(".round .rejected, .round .dropped").all_text_contents() == [
        t.replace("\n", "\u23ce") for t in lost
    ]
    for text in (f"{trace.summary['tokens_per_target_call']:.2f}", f"40 in {len(records)}", "rule rejection (exact)"):
        assert text in view.locator("body").inner_text()
    assert view.locator("#positions .positions div").count() == 3


def test_a_tree_is_drawn_with_its_branches(chromium, tmp_path):
    target, draft = TableModel.random(3, seed=1), TableModel.random(3, seed=2)
    drafter = TreeDrafter(draft, [-1, -1, 0, 0, 1, 3], "without")
    sampler = speculative.SpeculativeSampler(speculative.ByPaths(target), drafter, K=3)
    trace = Trace.of(sampler.generate([0], 40, 7, keep_probs=True), about={"verifier": "rejection"})
    (tmp_path / "t.html").write_text(page(trace), encoding="utf-8")
    with chromium.new_page() as view:
        view.on("pageerror", lambda error: pytest.fail(str(error)))
        view.goto((tmp_path / "t.html").as_uri())
        view.locator(".round").first.locator(".token:visible").last.click()
        rows, record = view.locator("#panel tbody tr"), trace.rounds[0]
        assert rows.count() == len(record["drafted"]) + 1
        indents = [
            len(text) - len(text.lstrip("\u2003")) for text in rows.locator("td:first-child").all_text_contents()
        ]
        assert indents == [0, 1, 1, 2, 0, 1, 0]
        assert view.locator(".round .dropped:visible").count() == 0
        shown = view.locator(".round .token:not(.rejected):not(.dropped)").all_text_contents()
        assert "".join(shown) == "".join(text for r in trace.rounds for text in r["texts"])


def test_no_text_becomes_a_program(view):
    assert view.title() == "Speculative decoding, round by round"
    assert view.locator("img").count() == 0 and view.locator("script").count() == 2
    assert BAD in view.locator("#about").inner_text() and BAD in view.locator("#stream").inner_text()


def test_pointing_at_a_token_shows_its_round(view, trace):
    number, line = next(
        (n, i)
        for n, record in enumerate(trace.rounds)
        for i, draft in enumerate(record["drafted"])
        if draft["decision"] == "rejected" and i > 0
    )
    draft, token = trace.rounds[number]["drafted"][line], view.locator(f"[data-round='{number}'] .rejected")
    token.tap() if view.kind == "phone" else token.hover()
    panel = view.locator("#panel")
    assert f"Round {number + 1} of {len(trace.rounds)}: {line}/3 accepted" in panel.inner_text()
    rows = panel.locator("tbody tr")
    assert rows.count() == 4 and "chosen" in rows.nth(line).get_attribute("class")
    cells = rows.nth(line).locator("td").all_text_contents()
    assert cells[1:] == [*(view.evaluate("figure", draft[name]) for name in "qpu"), "rejected"]
    assert f"u = {draft['u']:.3f} \u2265 p / q = {draft['p'] / draft['q']:.3f}: rejected" in panel.inner_text()
    assert panel.locator(".bar").count() == len(draft["top"]) == 7
    x, _, p, q = draft["top"][0]  # the bar's parts are as long as min(p, q), and what is above it on either side
    most = max(max(a, b) for *_, a, b in draft["top"])
    widths = [float(re.search(r"width: ([\d.e-]+)%", part.get_attribute("style")).group(1)) for part in
              panel.locator(f".bar[title='token {x}'] .track div").all()]  # fmt: skip
    parts = [min(p, q), max(p - q, 0), 0, min(p, q), max(q - p, 0)]
    assert widths == pytest.approx([100 * part / most for part in parts], abs=0.01)
    assert "A correction here would be drawn from" in panel.inner_text()
    rows.nth(3).click()
    assert "The correction" in panel.inner_text() and "chosen" in rows.nth(3).get_attribute("class")


def test_a_small_number_has_two_digits(view):
    for value, shown in (
        (None, ""),
        (0, "0.000"),
        (0.5, "0.500"),
        (0.0006, "0.001"),
        (0.00012, "1.2e-4"),
        (1, "1.000"),
    ):
        assert view.evaluate("figure", value) == shown


def test_the_player_steps(view, trace):
    k = len(trace.rounds[0]["drafted"])
    view.locator("#first").click()
    assert view.locator(".round:visible").count() == 1 and view.locator(".pending").count() == k
    decided = [draft["decision"] for draft in trace.rounds[0]["drafted"] if draft["decision"] != "dropped"]
    for i, decision in enumerate(decided, 1):
        view.locator("#forward").click()
        assert view.locator(".pending").count() == k - i
        assert decision in view.locator("[data-round='0'] .token").nth(i - 1).get_attribute("class")
    view.locator("#forward").click()
    origin = trace.rounds[0]["next"]["origin"]
    assert view.locator(f"[data-round='0'] .{origin}:visible").count() == 1
    view.locator("#forward").click()
    assert view.locator(".round:visible").count() == 2
    view.locator("#back").click()
    assert view.locator(".round:visible").count() == 1
    view.locator("#last").click()
    assert view.locator(".round:visible").count() == len(trace.rounds) and view.locator(".pending").count() == 0


def test_it_plays_and_follows_the_keys(view, trace):
    view.locator("#play").click()  # from the end it starts again
    while int(view.locator("#slider").input_value()) not in range(2, 20):
        view.wait_for_timeout(50)
    view.locator("#play").click()
    assert view.locator("#play").inner_text() == "play"
    stopped = int(view.locator("#slider").input_value())
    view.locator("h1").click()
    view.evaluate("document.activeElement.blur()")
    view.keyboard.press("ArrowRight")
    view.keyboard.press("ArrowRight")
    view.keyboard.press("ArrowLeft")
    assert int(view.locator("#slider").input_value()) == stopped + 1


def test_draft_tokens_that_were_not_kept_can_be_left_out(view):
    assert view.locator(".round .rejected:visible").count() > 0
    view.locator("#unaccepted").uncheck()
    assert view.locator(".round .rejected:visible, .round .dropped:visible").count() == 0


def test_it_fits_the_screen(view):
    assert view.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ground, ink = (view.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
    brightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ground, ink)]
    assert (brightness[0] < brightness[1]) == (view.kind == "dark")


def test_another_rule_is_not_explained_as_rejection(chromium, trace, tmp_path):
    other = Trace(trace.prompt, lambda tokens: trace.text, {**trace.about, "verifier": "exact_match"})
    other.rounds = trace.rounds
    (tmp_path / "t.html").write_text(page(other), encoding="utf-8")
    with chromium.new_context() as context:
        opened = context.new_page()
        opened.goto((tmp_path / "t.html").as_uri())
        panel = opened.locator("#panel")
        assert "The rule says: rejected." in panel.inner_text() and "Overlap" in panel.inner_text()
        for words in ("p / q", "would be drawn", "so likely"):
            assert words not in panel.inner_text()


def test_a_page_of_a_plain_generation(chromium, tmp_path):
    """No draft tokens, no probabilities: the page says so and works."""
    model = TableModel.random(7, seed=1, n_ctx=64)
    generation = speculative.AutoregressiveSampler(model).generate([1], 5, 0)
    (tmp_path / "t.html").write_text(page(Trace.of(generation)), encoding="utf-8")
    with chromium.new_context() as context:
        opened, wrong = context.new_page(), []
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        opened.goto((tmp_path / "t.html").as_uri())
        assert opened.locator(".round .plain").count() == 5 and wrong == []
        assert "A plain step: nothing was drafted." in opened.locator("#panel").inner_text()


def shown_for(chromium, folder, trace):
    """A page that is open; the caller closes it."""
    (folder / "t.html").write_text(page(trace), encoding="utf-8")
    view = chromium.new_page()
    view.on("pageerror", lambda error: pytest.fail(str(error)))
    view.goto((folder / "t.html").as_uri())
    return view


def test_the_bonus_of_a_tree_does_not_say_that_all_of_it_was_accepted(chromium, tmp_path):
    target, draft = TableModel.random(3, seed=1), TableModel.random(3, seed=2)
    drafter = TreeDrafter(draft, [-1, -1, 0], "without")
    sampler = speculative.SpeculativeSampler(speculative.ByPaths(target), drafter, K=3)
    trace = Trace.of(sampler.generate([0], 40, 7, keep_probs=True), about={"verifier": "rejection"})
    number = next(
        i
        for i, r in enumerate(trace.rounds)
        if r["origins"][-1] == "bonus" and len(r["drafted"]) > len(r["tokens"]) - 1
    )
    with shown_for(chromium, tmp_path, trace) as view:
        view.evaluate(f"showRound({number}, rounds[{number}].drafted.length)")
        said = view.locator("#panel .why").inner_text()
    assert said.startswith("The bonus: nothing was drafted after the last accepted token, and")


def test_block_verification_tests_the_tokens_that_it_drops_too(chromium, tmp_path):
    target, draft = TableModel.random(5, seed=1), TableModel.random(5, seed=2)
    sampler = speculative.SpeculativeSampler(target, speculative.ModelDrafter(draft), K=3, verifier=speculative.block)
    trace = Trace.of(sampler.generate([0], 40, 7, keep_probs=True), about={"verifier": "block"})
    number, line = next(
        (n, i) for n, r in enumerate(trace.rounds) for i, g in enumerate(r["drafted"]) if g["decision"] == "dropped"
    )
    with shown_for(chromium, tmp_path, trace) as view:
        view.evaluate(f"showRound({number}, {line})")
        said = view.locator("#panel .why").inner_text()
    assert said.startswith("Dropped: all prefixes of the draft were tested,") and "not tested" not in said


def test_without_a_draft_there_is_no_share(chromium, tmp_path):
    trace = Trace.of(speculative.AutoregressiveSampler(TableModel.random(5, seed=1)).generate([0], 3, 0))
    with shown_for(chromium, tmp_path, trace) as view:
        tiles = view.locator("#tiles").inner_text()
    assert "nothing was drafted" in tiles and "0 of 0" not in tiles and "%" not in tiles
