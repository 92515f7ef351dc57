"""The page of a trace in a real browser: Chromium without a window, driven by Playwright."""

import re

import pytest
from browser import SCREENS, pages, violations

from speculative import AutoregressiveSampler, block
from speculative.testing import TableModel
from speculative.trace import Trace, page

pytestmark = pytest.mark.browser
BAD = "<script>document.title = 'bad'</script><img src=x onerror=\"document.title = 'bad'\">"
WORDS = [" king", " wood", "\n", BAD, " caf\u00e9", ".", " a"]


@pytest.fixture
def trace(generated):
    """Drafts of three tokens; accepted, rejected and dropped ones, corrections and a bonus, and texts that attack."""
    about = {"target": {"name": BAD}, "draft": {"name": "small"}, "verifier": "rejection", "exactness": "exact", "K": 3}
    return Trace.of(generated(n_tokens=40), lambda tokens: "".join(WORDS[token] for token in tokens), about)


@pytest.fixture
def tree(of_trees):
    """A trace of drafts that branch."""
    return lambda **how: Trace.of(of_trees(**{"n_tokens": 40} | how), about={"verifier": "rejection"})


@pytest.fixture
def opened(browser, tmp_path):
    """A function that opens the page of a trace."""
    with pages(browser) as show:

        def written(trace, screen="wide", **options):
            (tmp_path / "t.html").write_text(page(trace), encoding="utf-8")
            return show(tmp_path / "t.html", screen, **options)

        yield written


@pytest.fixture(params=["wide", "dark", "phone"])
def view(request, opened, trace):
    view = opened(trace, request.param)
    view.kind = request.param
    return view


def test_it_shows_the_whole_text_which_becomes_no_program_and_fits_the_screen(view, trace):
    records = trace.rounds
    assert view.locator(".round").count() == len(records)
    kept = view.locator(".round .token:not(.rejected):not(.dropped)").all_text_contents()
    text = "".join(text for record in records for text in record["texts"])
    assert "".join(kept) == text.replace("\n", "\u23ce\n")
    lost = [g["text"] for record in records for g in record["drafted"] if g["decision"] != "accepted"]
    shown = view.locator(".round .rejected, .round .dropped").all_text_contents()
    assert shown == [t.replace("\n", "\u23ce") for t in lost]
    assert view.title() == "Speculative decoding, round by round"
    assert view.locator("img").count() == 0 and view.locator("script").count() == 2
    assert BAD in view.locator("#about").inner_text() and BAD in view.locator("#stream").inner_text()
    for text in (f"{trace.summary['tokens_per_target_call']:.2f}", f"40 in {len(records)}", "rule rejection (exact)"):
        assert text in view.locator("body").inner_text()
    assert view.locator("#positions .positions div").count() == 3
    assert view.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ground, ink = (view.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
    brightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ground, ink)]
    assert (brightness[0] < brightness[1]) == (view.kind == "dark")


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
    styles = [part.get_attribute("style") for part in panel.locator(f".bar[title='token {x}'] .track div").all()]
    widths = [float(re.search(r"width: ([\d.e-]+)%", style).group(1)) for style in styles]
    parts = [min(p, q), max(p - q, 0), 0, min(p, q), max(q - p, 0)]
    assert widths == pytest.approx([100 * part / most for part in parts], abs=0.01)
    assert "A correction here would be drawn from" in panel.inner_text()
    rows.nth(3).click()
    assert "The correction" in panel.inner_text() and "chosen" in rows.nth(3).get_attribute("class")


def test_it_plays_and_follows_the_keys(opened, trace):
    view = opened(trace)
    view.locator("#play").click()  # from the end it starts again
    while int(view.locator("#slider").input_value()) not in range(2, 20):
        view.wait_for_timeout(50)
    view.locator("#play").click()
    assert view.locator("#play").inner_text() == "play"
    stopped = int(view.locator("#slider").input_value())
    view.locator("h1").click()
    view.evaluate("document.activeElement.blur()")
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        view.keyboard.press(key)
    assert int(view.locator("#slider").input_value()) == stopped + 1


def test_draft_tokens_that_were_not_kept_can_be_left_out_and_a_small_number_has_two_digits(opened, trace):
    view = opened(trace)
    assert view.locator(".round .rejected:visible").count() > 0
    view.locator("#unaccepted").uncheck()
    assert view.locator(".round .rejected:visible, .round .dropped:visible").count() == 0
    values = {"null": "", "0": "0.000", "0.5": "0.500", "0.0006": "0.001", "0.00012": "1.2e-4", "1": "1.000"}
    assert {value: view.evaluate(f"figure({value})") for value in values} == values


# ------------------------------------------------------------------------------------------------ other traces


def test_a_tree_is_drawn_as_a_tree(opened, tree):
    trace = tree()
    view, record = opened(trace), trace.rounds[0]
    view.locator("#stream .round").first.locator(".token:visible").last.click()
    assert "accepted of 6 nodes, depth 3" in view.locator("#panel h2").inner_text()
    nodes = view.locator("#panel .node").all()
    kinds = [draft["decision"] for draft in record["drafted"]] + [record["next"]["origin"]]
    by_line = {int(node.get_attribute("data-line")): node.get_attribute("class").split()[1] for node in nodes}
    assert [by_line[i] for i in range(7)] == kinds
    x, y = ([float(c.get_attribute(name)) for c in view.locator("#panel .node circle").all()] for name in ("cx", "cy"))
    lines = [int(node.get_attribute("data-line")) for node in nodes]
    place = dict(zip(lines, zip(x, y)))
    for i, draft in enumerate(record["drafted"]):
        parent = draft["parent"]
        assert parent < 0 or place[i][0] > place[parent][0]
        elder = [j for j in range(i) if record["drafted"][j]["parent"] == parent]
        assert all(place[j][0] == place[i][0] and place[j][1] < place[i][1] for j in elder)
    assert len(set(place.values())) == 7
    tested = [kind for kind in kinds if kind != "dropped"]
    assert view.locator("#panel tbody td:last-child").all_inner_texts() == tested
    dropped = kinds.index("dropped")
    view.locator(f"#panel .node[data-line='{dropped}']").press("Enter")
    assert "Dropped: on a branch that was not taken" in view.locator("#panel .why").inner_text()
    assert view.locator(f"#panel .node[data-line='{dropped}']").evaluate("e => e === document.activeElement")


def test_the_player_steps_and_no_outcome_shows_before_it_happens(opened, trace, tree):
    """While a round is stepped through, what is not decided yet has no p, no u and no colour of a decision."""
    for some in trace, tree():
        view, drafted = opened(some), some.rounds[0]["drafted"]
        decided = [draft["decision"] for draft in drafted if draft["decision"] != "dropped"]
        view.locator("#first").click()
        assert "accepted so far" in view.locator("#panel h2").inner_text()
        for i, decision in enumerate(decided):
            shown = view.locator("#panel tbody tr:has(.accepted), #panel tbody tr:has(.rejected)").count()
            assert shown == i and view.locator("#panel .node:not(.pending)").count() in (0, i)
            for row in view.locator("#panel tbody tr:has(.pending)").all():
                assert row.locator("td").all_text_contents()[2:] == ["", "", "\u2026"]
            assert view.locator("#panel tbody .correction, #panel tbody .bonus").count() == 0
            view.locator("#forward").click()
            assert view.locator("#panel tbody tr").nth(i).locator(f".{decision}").count() == 1
        view.locator("#forward").click()
        assert view.locator("#panel tbody .correction, #panel tbody .bonus").count() == 1
        for button, n_rounds in ("forward", 2), ("back", 1), ("last", len(some.rounds)):
            view.locator(f"#{button}").click()
            assert view.locator(".round:visible").count() == n_rounds
        assert view.locator("#stream .pending").count() == 0


def test_keys_go_from_token_to_token(opened, trace):
    view = opened(trace)
    assert view.locator("#stream [tabindex='0']").count() == 1
    view.locator("#stream .token").nth(3).focus()
    step = view.locator("#slider").input_value()
    view.keyboard.press("ArrowRight")
    assert view.locator("#stream .token").nth(4).evaluate("e => e === document.activeElement")
    view.keyboard.press("ArrowLeft")
    assert view.locator("#stream .token").nth(3).evaluate("e => e === document.activeElement")
    assert view.locator("#slider").input_value() == step and view.locator("#stream [tabindex='0']").count() == 1
    view.locator("#panel tbody button").first.press("Enter")
    assert "chosen" in view.locator("#panel tbody tr").first.get_attribute("class")


def test_on_a_phone_the_player_is_on_the_first_screen(opened, trace):
    view = opened(trace, "phone")
    box = view.locator("#play").bounding_box()
    view.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)  # without scrolling
    assert view.locator("#play").inner_text() == "pause"


@pytest.mark.parametrize("temperature", [0, 1])
def test_one_sentence_says_what_one_sees(opened, generated, temperature):
    lead = opened(Trace.of(generated(), about={"temperature": temperature})).locator("#lead").inner_text()
    assert lead.startswith("Each call of the target adds the draft tokens that it accepts")
    assert ("p is 1 for the target's most probable token" in lead.replace("\u2019", "'")) == (temperature == 0)


def test_both_samplers_race_slowed_down_and_the_texts_are_compared(opened, trace):
    view = opened(trace)
    assert view.locator("#race").is_hidden()
    of_draft = [text for record in trace.rounds for text in record["texts"]]
    seconds = sum(sum(record["seconds"].values()) for record in trace.rounds)
    for temperature, texts, same in (0, of_draft, "yes"), (0, [" king"], "no"), (1, [" king"], "no, two samples"):
        trace.about |= {"temperature": temperature, "alone": {"texts": texts, "seconds": [0.25] * len(texts)}}
        view = opened(trace, reduced_motion="reduce")
        view.locator("summary").click()
        view.locator("#run").click()
        target = f"{len(texts)} tokens, {len(texts)} target calls, {250 * len(texts)} ms"
        assert view.locator("#alone b").inner_text() == target
        calls = f"40 tokens, {len(trace.rounds)} target calls, {1000 * seconds:.0f} ms"
        assert view.locator("#drafted b").inner_text() == calls
        assert view.locator("#result").inner_text().startswith("4 tokens per second target alone, ")
        assert view.locator("#result").inner_text().endswith(f"; same text: {same}")
        assert view.locator("#alone div").text_content().endswith("".join(texts).replace("\n", "\u23ce\n"))
        assert view.locator(".later").count() == 0
    assert view.evaluate("racers()[0].tokens.map(token => token.slice(2))") == [[0.25, 1]]


def test_a_race_lasts_about_eight_seconds(opened, trace):
    trace.about["alone"] = {"texts": [" king", "."], "seconds": [0.1, 0.06]}
    for record in trace.rounds:
        record["seconds"] = {"draft": 0.001, "target": 0.001, "verify": 0}
    view = opened(trace, reduced_motion="no-preference")
    view.locator("summary").click()
    assert view.locator("#run").inner_text() == "run, slowed down 50 times"
    view.clock.install(time=0)
    view.clock.pause_at(1000)
    view.locator("#run").click()
    view.clock.run_for(5500)
    assert view.locator("#alone b").inner_text().startswith("1 tokens, 1 target calls, 1")
    assert view.locator("#result").inner_text() == ""
    view.clock.run_for(3000)
    assert view.locator("#alone b").inner_text() == "2 tokens, 2 target calls, 160 ms"
    assert "same text: " in view.locator("#result").inner_text()


@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_nothing(opened, trace, tree, screen):
    for some in trace, tree(n_tokens=20):
        view = opened(some, screen)
        view.locator("#back").click()
        view.locator("#back").click()
        assert violations(view) == []
        view.evaluate("showStep(steps.length)")
        view.evaluate("showRound(0, rounds[0].drafted.findIndex(g => g.decision !== 'accepted'))")
        assert violations(view) == []


def test_the_bonus_of_a_tree_does_not_say_that_all_of_it_was_accepted(opened, tree):
    trace = tree(parents=(-1, -1, 0))
    of_bonus = (i for i, r in enumerate(trace.rounds) if r["origins"][-1] == "bonus")
    number = next(i for i in of_bonus if len(trace.rounds[i]["drafted"]) >= len(trace.rounds[i]["tokens"]))
    view = opened(trace)
    view.evaluate(f"showRound({number}, rounds[{number}].drafted.length)")
    said = view.locator("#panel .why").inner_text()
    assert said.startswith("The bonus: nothing was drafted after the last accepted token, and")


def test_another_rule_is_not_explained_as_rejection(opened, generated):
    trace = Trace.of(generated(block), about={"verifier": "block"})
    decisions = [(n, i, g["decision"]) for n, r in enumerate(trace.rounds) for i, g in enumerate(r["drafted"])]
    view, said = opened(trace), {}
    for number, line, decision in decisions:
        view.evaluate(f"showRound({number}, {line})")
        said[decision] = view.locator("#panel").inner_text()
    assert "The rule says: rejected." in said["rejected"] and "Overlap" in said["rejected"]
    assert not any(words in said["rejected"] for words in ("p / q", "would be drawn", "so likely"))
    assert "Dropped: all prefixes of the draft were tested," in said["dropped"]


def test_a_page_of_a_plain_generation(opened):
    """No draft tokens, no probabilities: the page says so and works."""
    view = opened(Trace.of(AutoregressiveSampler(TableModel.random(7, seed=1, n_ctx=64)).generate([1], 5, 0)))
    assert view.locator(".round .plain").count() == 5
    assert "An autoregressive step: nothing was drafted." in view.locator("#panel").inner_text()
    tiles = view.locator("#tiles").inner_text()
    assert "nothing was drafted" in tiles and "0 of 0" not in tiles and "%" not in tiles
