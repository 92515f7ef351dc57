"""The moving picture of the README shows a run of the bundled pair, and shows it as it was."""

from helpers import ROOT, script

from speculative import ModelDrafter, Sampling, SpeculativeSampler
from speculative.trace import Trace

make_race = script("dev/pages/make_race.py")
TRACE = Trace.load(ROOT / "docs" / "race.jsonl")


def test_the_picture_is_that_of_the_trace():
    """When this fails: python dev/pages/make_race.py"""
    assert make_race.picture(TRACE) == (ROOT / "docs" / "race.svg").read_text(encoding="utf-8")


def test_the_trace_is_what_the_bundled_pair_writes(tiny_pair):
    target, draft_model, _ = tiny_pair
    sampler = SpeculativeSampler(target, ModelDrafter(draft_model), K=3, sampling=Sampling(0))
    rounds = sampler.generate(TRACE.prompt, 22).rounds
    assert [r.tokens.tolist() for r in rounds] == [record["tokens"] for record in TRACE.rounds]
    assert [r.origins for r in rounds] == [record["origins"] for record in TRACE.rounds]


def test_another_text_is_called_another():
    other = Trace.load(ROOT / "docs" / "race.jsonl")
    other.about["alone"]["texts"][3] = " not"
    assert "same text: no" in make_race.picture(other) and "same text: yes" in make_race.picture(TRACE)
