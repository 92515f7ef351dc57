"""The grader of samplers: right answers and the library's own pass, and the mistakes in wrong ones are named."""

import pytest
from students import answers, samplers, told

import speculative
from speculative import Sampling, SpeculativeSampler
from speculative.testing import check_sampler, watch

LONG = {  # a second each
    "ignores sampling", "temperature twice", "epsilon", "StopsAtTheEndOfABlock", "WithoutTheStopToken",
    "ReplacesInALoop",
}  # fmt: skip


@pytest.mark.parametrize(("answer", "words"), answers("RIGHT", samplers, quick=("decorated",)))
def test_right_ones_pass(answer, words, capsys, monkeypatch):
    monkeypatch.setattr(watch, "QUIET", 60.0)  # no progress, however slow the machine is
    check_sampler(answer)
    said = capsys.readouterr()
    assert said.err == "" and (said.out == "" or said.out.startswith("note: ")), said


def test_the_librarys_own_pass(capsys):
    exported = {name for name in speculative.__all__ if name.endswith("Sampler")} - {"Sampler"}
    assert exported == {"SpeculativeSampler", "AutoregressiveSampler"}  # a new one must be added here
    said = check_sampler(SpeculativeSampler)
    assert repr(said).startswith("check_sampler: the text has the target's distribution, to 1e-12, in 28 cases with 4")
    assert capsys.readouterr().out == ""  # the other one is among NOTES, "one at a time"


@pytest.mark.parametrize(("answer", "words"), answers("NOTES", samplers, quick=("one at a time",)))
def test_exact_but_slow_ones_pass_with_a_note(answer, words, capsys):
    check_sampler(answer)
    said = capsys.readouterr().out
    assert said.startswith("note: ") and all(word in said for word in words), said


@pytest.mark.parametrize(("answer", "words"), answers("WRONG", samplers, quick=samplers.WRONG.keys() - LONG))
def test_the_mistake_is_named(answer, words, monkeypatch):
    monkeypatch.setattr(watch, "PATIENCE", 0.5)
    said = told(check_sampler, answer)
    assert all(word in said for word in words), said


def test_a_target_that_samples_in_another_way_than_the_draft():
    """Top-p in the target only; the sampler is told the target's sampling, or has it built in."""
    top_p = Sampling(top_p=0.6)
    check_sampler(SpeculativeSampler, target_sampling=top_p)

    def built_in(target, drafter, K, sampling):
        return SpeculativeSampler(target, drafter, K=K, sampling=top_p)

    check_sampler(built_in, target_sampling=top_p)
    hint = told(lambda make: check_sampler(make, target_sampling=top_p), samplers.ReadsTheTemperature)
    assert hint.startswith("your sampler ignores sampling.top_p")
