"""`drafters`: every drafter in a table."""

from command import words

from speculative.cli.commands.drafters import table
from speculative.cli.registry import DRAFTERS


def test_every_drafter_that_suits_the_target_has_a_row(small):
    page = small("drafters")[1]
    for kind in ("tales", "repeating"):
        lines = page.split(f"\n{kind}: ")[1].split("\n\n")[0].splitlines()[2:]
        names = [*(kind for kind in DRAFTERS if kind not in ("heads", "eagle", "forced")), "noisy (0.2)", "oracle"]
        assert [line.split("  ")[1] for line in lines] == names
        assert all(line.endswith("exact") for line in lines)


def test_the_page_by_hand():
    row = {
        "drafter": "a", "alpha": 0.5, "alpha_low": 0.25, "alpha_high": 0.75, "c": 0.1, "K": 4, "tokens_per_call": 2.0,
        "speedup": 1.5, "low": 1.25, "high": 1.75, "exactness": "exact",
    }  # fmt: skip
    report = {
        "target": {"name": "t"}, "temperature": 1, "machine": "any", "settings": {"n_prompts": 4},
        "kinds": {"tales": "some"}, "rows": {"tales": [row]},
    }  # fmt: skip
    assert "a 0.500 0.25 to 0.75 0.100 4 2.00 1.50 1.25 to 1.75 exact" in words(table(report))
