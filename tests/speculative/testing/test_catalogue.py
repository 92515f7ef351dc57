"""The catalogue: every entry is wrong, and in the stage that names it no two entries have the same distribution."""

import itertools

import pytest
from students import told

from speculative.testing import check_sampler, diagnosis
from speculative.testing.mistakes import samplers, verifiers

CHAINS = [stage for stage in diagnosis.STAGES if stage not in diagnosis.TREES_OF]
TOO_SMALL = 1e-9  # errors below are named by whatever entry has them, such as an epsilon of 1e-15


@pytest.mark.parametrize("stage", [*CHAINS, "trees"])
def test_no_two_entries_of_a_stage_have_one_distribution(stage):
    found = [(hint, wrong) for hint, wrong in diagnosis.entries(stage) if error_of(wrong, stage) > TOO_SMALL]
    for (hint, one), (other_hint, other) in itertools.combinations(found, 2):
        if hint != other_hint and diagnosis.wrong_part(one) == diagnosis.wrong_part(other):
            part = diagnosis.wrong_part(one)
            views = (diagnosis.known(verifier, stage, part) for verifier in (one, other))
            assert diagnosis.distance(*views) > TOO_SMALL, (hint, other_hint)


def error_of(verifier, stage):
    views = (diagnosis.known(one, stage, "all") for one in (verifier, diagnosis.rejection))
    return diagnosis.distance(*views)


def test_every_entry_of_chains_is_wrong_in_a_stage():
    groups = (verifiers.WHOLE, verifiers.ACCEPT, verifiers.REST, verifiers.BONUS, verifiers.BLOCK, verifiers.SEVERAL)
    for mistake in itertools.chain(*groups):
        assert any(error_of(wrong, stage) > 1e-13 for wrong in mistake.variants for stage in CHAINS), mistake.hint


LOOPS = [(mistake.hint, wrong) for mistake in [*samplers.SAMPLING, *samplers.LOOPS] for wrong in mistake.variants]


@pytest.mark.parametrize(("hint", "wrong"), [
    pytest.param(*one, id=str(i), marks=[pytest.mark.slow] if i not in (2, 3) else []) for i, one in enumerate(LOOPS)
])  # fmt: skip
def test_each_loop_is_named_by_its_grader(hint, wrong):
    """By default two of the options that no student ignores in tests/shared/students."""
    assert told(check_sampler, wrong) == hint
