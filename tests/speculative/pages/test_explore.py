"""The page explore.html in Chromium: its numbers are the library's, and it follows the hand.

Its functions get random settings and are held to `exact_distribution`, which runs the rules, and to the formulas of
`speculative.theory`.
"""

import re
from functools import partial

import numpy as np
import pytest
from browser import SCREENS, pages, violations
from helpers import ROOT, Uniform

from speculative import Draft, Shape, Verdict, exact_distribution, rejection
from speculative.logits.probs import residual, sample_token
from speculative.testing.mistakes.verifiers import ACCEPT, REST
from speculative.theory import best_K, expected_tokens, overlap, speedup, tree_tokens
from speculative.theory.candidates import without_replacement

pytestmark = pytest.mark.browser
PAGE, N_SETTINGS = ROOT / "speculative" / "pages" / "explore.html", 300


@pytest.fixture
def opened(browser):
    with pages(browser) as show:
        yield lambda screen="wide", **options: show(PAGE, screen, **options)


@pytest.fixture
def view(opened):
    return opened()


# ------------------------------------------------------------------------------------------------ the numbers


def named(mistakes, beginning):
    """The first edit of the mistake whose sentence begins like this."""
    return next(mistake.variants[0] for mistake in mistakes if mistake.hint.startswith(beginning))


def one_uniform(draft, target_probs, rng):
    (x,), p, q, u = draft.tokens, target_probs[0], draft.probs[0], rng.random()
    if u * q[x] < p[x]:
        return Verdict(1, 0)
    cdf = np.cumsum(residual(p, q))
    return Verdict(0, next((y for y in range(len(p) - 1) if u < cdf[y]), len(p) - 1))


RULES = {  # name in the page -> the verifier; of "greedy" the draft token is the most probable one
    "right": rejection,
    "from_p": named(REST, "on a rejection you drew from the target;"),
    "from_q": named(REST, "on a rejection you drew from the draft"),
    "not_renormalised": named(REST, "your residual is not normalised"),
    "wrong_way": named(ACCEPT, "you accept where you should reject, and"),
    "greedy": rejection,
    "one_uniform": one_uniform,
}


def emitted(rule, p, q, rng):
    """The first token: a draft token, tested and corrected."""
    x = int(q.argmax()) if rule == "greedy" else sample_token(q, rng)
    verdict = RULES[rule](Draft([x], q[None]), np.array([p, np.eye(len(p))[0]]), rng)
    return x if verdict.n_accepted else verdict.next_token


def output(rule, p, q, numbers):
    """The exact distribution of the first token [n_vocab]."""
    found = exact_distribution(lambda rng: emitted(rule, p, q, rng))
    return [found.get(x, 0.0) for x in range(len(p))]


def pairs():
    """p, q of 2 to 10 tokens, and three uniform numbers; some have zeros, or are one-hot, or equal."""
    rng = np.random.default_rng(0)
    for i in range(N_SETTINGS):
        size = int(rng.integers(2, 11))
        p, q = rng.dirichlet(np.full(size, 0.7), size=2)
        if i % 5 == 1:
            q = np.where(rng.random(size) < 0.4, 0, q) + 1e-3 * np.eye(size)[0]
        if i % 5 == 2:
            p = np.where(rng.random(size) < 0.4, 0, p) + 1e-3 * np.eye(size)[-1]
        if i % 20 == 3:
            q = np.eye(size)[int(rng.integers(size))]
        if i % 50 == 4:
            q = p
        yield p / p.sum(), q / q.sum(), rng.random(3)


def costs():
    """alpha, K, c, v."""
    rng = np.random.default_rng(1)
    for _ in range(N_SETTINGS):
        v = [1.0, *(1 + np.cumsum(rng.random(rng.integers(2, 14)) / 3))]
        yield rng.random(), int(rng.integers(0, len(v))), rng.random() / 2, np.array(v)


def trees():
    """The numbers of children, and the weights of a child."""
    rng = np.random.default_rng(2)
    for _ in range(N_SETTINGS):
        yield rng.integers(1, 4, size=rng.integers(1, 5)), np.sort(rng.dirichlet(np.ones(5))[:4])[::-1]


NUMBERS = {  # in the page, for settings -> in the library
    "overlap(p, q)": (pairs, lambda p, q, u: overlap(p, q)),
    "residual(p, q)": (pairs, lambda p, q, u: residual(p, q)),
    "[1, 2, 3].map(k => acceptedOf(p, q, k))": (
        pairs, lambda p, q, u: [without_replacement(p, q, k) for k in (1, 2, 3)],
    ),
    "emitted(p, q, ...u)": (pairs, lambda p, q, u: emitted("right", p, q, Uniform(*u))),
    **{f"RULES.{rule}[2](p, q)": (pairs, partial(output, rule)) for rule in RULES},
    "expectedTokens(a, K)": (costs, lambda alpha, K, c, v: expected_tokens(alpha, K)),
    "speedup(a, K, c, v)": (costs, speedup),
    "bestK(a, c, v, v.length - 1)": (costs, lambda alpha, K, c, v: best_K(alpha, c, v)),
    "treeOf(n)": (trees, lambda numbers, weights: Shape.widths(*numbers.tolist()).parents),
    "treeTokens(treeOf(n), w)": (trees, lambda numbers, weights: tree_tokens(Shape.widths(*numbers).parents, weights)),
}  # fmt: skip
ARGUMENTS = {pairs: "[p, q, u]", costs: "[a, K, c, v]", trees: "[n, w]"}


@pytest.mark.parametrize("expression", NUMBERS)
def test_the_numbers_are_the_librarys(view, expression):
    settings, function = NUMBERS[expression]
    given = [[np.asarray(value).tolist() for value in setting] for setting in settings()]
    found = view.evaluate(f"all => all.map(({ARGUMENTS[settings]}) => {expression})", given)
    for number, setting in zip(found, settings()):
        np.testing.assert_allclose(number, function(*setting), rtol=0, atol=1e-12)


# ------------------------------------------------------------------------------------------------ the hand


def drag(view, bar, to):
    """Take a bar at its top and leave it at the height `to`."""
    handle = view.locator(f"#bars [data-bar={bar}]")
    handle.scroll_into_view_if_needed()
    box = view.locator("#bars svg").bounding_box()
    at = view.evaluate(f"at('bars').y(state.{bar[0]}[{bar[1:]}])")
    x = handle.bounding_box()["x"] + handle.bounding_box()["width"] / 2
    view.mouse.move(x, box["y"] + at)
    view.mouse.down()
    view.mouse.move(x, box["y"] + view.evaluate(f"at('bars').y({to})"), steps=4)
    view.mouse.up()


@pytest.mark.parametrize("screen", ["wide", "phone"])
def test_a_bar_can_be_dragged_and_all_follows(opened, screen):
    view = opened(screen)
    drag(view, "p0", 0.3)
    p, q = view.evaluate("[state.p, state.q]")
    assert p[0] == pytest.approx(0.3, abs=0.01) and sum(p) == pytest.approx(1, abs=1e-12)
    assert view.locator("#alpha").inner_text() == f"{overlap(np.array(p), np.array(q)):.3f}"
    view.locator("#bars [data-bar=q5]").focus()
    view.keyboard.press("Home")
    view.keyboard.press("PageUp")
    view.keyboard.press("ArrowUp")
    assert view.evaluate("state.q[5]") == pytest.approx(0.11) and view.evaluate("sum(state.q)") == pytest.approx(1)
    assert view.locator("#bars [data-bar=q5]").get_attribute("aria-valuenow") == "0.110"
    assert view.locator("#presets [aria-pressed=true]").count() == 0


def test_presets_and_the_whole_vocabulary(view):
    found = {}
    for button in view.locator("#presets button").all():
        button.click()
        found[button.inner_text()] = float(view.locator("#alpha").inner_text())
    assert found["disjoint"] == 0 and found["close"] > 0.8 > found["far"] > 0.3
    real = [alpha for name, alpha in found.items() if name.startswith("real, T = ")]
    assert len(real) == 3 and found["real, T = 1"] == real[1]
    assert view.locator("#source").inner_text().startswith("The bundled GPT-2 pair")


def test_u_across_the_edge_turns_the_decision(view):
    u, verdict = view.locator("#one-u input"), view.locator("#verdict")
    ratio = view.evaluate("state.p[state.x] / state.q[state.x]")
    assert 0 < ratio < 1
    for value, word in (ratio - 0.001, "accepted"), (ratio + 0.001, "rejected"):
        u.fill(f"{value:.4f}")
        assert word in verdict.inner_text()
        kept, mass, share, total = map(float, re.findall(r"[\d.]+", view.locator("#equation").inner_text()))
        assert kept + mass * share == pytest.approx(total, abs=2e-3)
    u.focus()
    u.press("Home")
    assert "u = 0.000" in verdict.inner_text() and "accepted" in verdict.inner_text()


def test_a_thousand_draws_are_counted_and_forgotten_with_the_distributions(view):
    view.locator("#draw-many").click()
    view.locator("#draw-many").click()
    assert "2,000 draws" in view.locator("#drawn").inner_text()
    counts, p = np.array(view.evaluate("state.counts")), np.array(view.evaluate("state.p"))
    assert np.abs(counts / 2000 - p).max() < 0.06  # five standard deviations; the page's seed is fixed
    view.locator("#presets button").first.click()
    assert view.locator("#drawn").inner_text() == ""


def test_every_switch_is_thrown_and_only_the_right_rule_stays_at_zero(view):
    assert set(view.evaluate("Object.keys(RULES)")) == RULES.keys()
    for rule in RULES:
        view.locator(f"#rules [value={rule}]").check()
        far = view.locator("#tv").inner_text()
        assert (far == "0.000") == (rule == "right"), rule
        assert view.locator("#what").inner_text() == view.evaluate("name => RULES[name][1]", rule)
    view.locator("#rules [value=right]").check()
    view.locator("#output [data-bar=p2]").focus()
    for _ in range(30):
        view.keyboard.press("ArrowUp")
    assert view.locator("#tv").inner_text() == "0.000"


def test_where_it_stops_paying_is_one_drag_away(view):
    assert float(view.locator("#speed").inner_text()[:-1]) > 1.5
    view.locator("#knob-c").fill("0.9")
    assert float(view.locator("#speed").inner_text()[:-1]) < 1
    for button in view.locator("#costs button").all():
        button.click()
        alpha, K, c, v = view.evaluate("[state.alpha, state.K, state.c, state.v]")
        assert view.locator("#speed").inner_text() == f"{speedup(alpha, K, c, v):.2f}\u00d7"
    view.locator("#knob-slope").fill("1")
    view.locator("#knob-c").fill("0.5")
    assert view.locator("#best").inner_text() == "0: do not draft"


def test_a_tree_follows_its_widths(view):
    for i, number in enumerate((3, 2, 0, 1)):
        view.locator(f"#width-{i}").fill(str(number))
    row = view.locator("#tree-table tr").nth(1).inner_text()
    assert row.startswith("your tree, 2 deep") and row.split("\t")[1] == "9"
    weights = view.evaluate("childWeights(state.p, state.q, 4)")
    assert row.split("\t")[2] == f"{tree_tokens(Shape.widths(3, 2).parents, weights):.2f}"
    assert view.locator("#tree circle title").count() == 9


# ------------------------------------------------------------------------------------------------ every screen


@pytest.mark.parametrize("screen", SCREENS)
def test_it_fits_the_screen_and_axe_finds_nothing(opened, screen, tmp_path):
    view = opened(screen)
    for preset in range(view.locator("#presets button").count()):
        view.evaluate("choose", preset)
        assert view.evaluate("document.documentElement.scrollWidth <= innerWidth"), preset
    view.locator("#rules [value=greedy]").check()
    assert len(view.screenshot(full_page=True, path=tmp_path / "page.png")) > 50_000
    assert violations(opened(screen)) == []


def test_it_says_that_it_needs_javascript(browser):
    view = browser.new_context(java_script_enabled=False).new_page()
    view.goto(PAGE.as_uri())
    assert "JavaScript, which is switched off" in view.locator("body").inner_text()
