"""The grader of samplers: right answers and the library's own pass, and the mistakes in wrong ones are named."""

import pytest
from students import answers, samplers, told

import speculative
from speculative import ModelDrafter, Sampling, SpeculativeSampler
from speculative.testing import check_sampler, watch

NOTED = {"never all K": "it drafts 1 where 2 fit", "lists alone": "for a prompt that is a list, but not for an array"}


@pytest.mark.parametrize("name", samplers.RIGHT)
def test_right_ones_pass(name, capsys, monkeypatch, few_cases):
    monkeypatch.setattr(watch, "QUIET", 60.0)  # no progress, however slow the machine is
    check_sampler(samplers.RIGHT[name])
    said = capsys.readouterr()
    noted = NOTED.get(name, "")
    assert said.err == "" and said.out.count("note: ") == (noted != "") and noted in said.out, said


def test_the_librarys_own_pass(capsys):
    exported = {name for name in speculative.__all__ if name.endswith("Sampler")} - {"Sampler"}
    assert exported == {"SpeculativeSampler", "AutoregressiveSampler"}  # a new one must be added here
    said = check_sampler(SpeculativeSampler)
    assert repr(said).startswith(
        "check_sampler: the text has the target's distribution, to 1e-12, with 4 drafters and in"
    )
    assert capsys.readouterr().out == ""  # the other one is among NOTES, "one at a time"


def test_what_is_accepted_of_unobserved_drafts_is_not_counted(few_cases):
    def make(target, drafter, K, sampling):
        own = ModelDrafter(drafter.model, sampling=drafter.sampling)  # its propose() is not the grader's
        return SpeculativeSampler(target, own, K=K, sampling=sampling)

    check_sampler(make, with_models=True)


@pytest.mark.parametrize(("answer", "words"), answers("NOTES", samplers))
def test_exact_but_slow_ones_pass_with_a_note(answer, words, capsys, few_cases):
    check_sampler(answer)
    said = capsys.readouterr().out
    assert said.startswith("note: ") and all(word in said for word in words), said


@pytest.mark.parametrize(("answer", "words"), answers("WRONG", samplers))
def test_the_mistake_is_named(answer, words, request):
    if "stop" in words[0]:  # looked for after all cases
        request.getfixturevalue("few_cases")
    said = told(check_sampler, answer)
    assert all(word in said for word in words), said


def test_a_target_that_samples_in_another_way_than_the_draft(few_cases):
    top_p = Sampling(top_p=0.6)
    check_sampler(lambda target, drafter, K, sampling: SpeculativeSampler(target, drafter, K=K, sampling=top_p),
                  target_sampling=top_p)  # fmt: skip
    hint = told(lambda make: check_sampler(make, target_sampling=top_p), samplers.WRONG["the temperature alone"][0])
    assert hint.startswith("your sampler ignores sampling.top_p")
