"""How lossy a rule is along a text: 0 for exact rules, else what an enumeration of all tokens finds."""

from types import SimpleNamespace

import numpy as np
import pytest

from speculative import (
    Draft,
    Lenient,
    ModelDrafter,
    Sampling,
    Typical,
    Verdict,
    block,
    exact_distribution,
    exact_match,
    rejection,
    sample_token,
    total_variation,
)
from speculative.measuring.lossy import check_rule, loss_of, sums_along_text
from speculative.measuring.runs import own_text
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(5, n_back=2, seed=3), TableModel.random(5, n_back=2, seed=4)
PROMPTS, SAMPLING = [[0, 1], [2], [4, 4]], Sampling(0.8)


def top_two(draft, target_probs, rng):
    """LOSSY, drawn with choice: whatever is among the target's two most probable tokens passes."""
    for i, token in enumerate(draft.tokens):
        if (target_probs[i] > target_probs[i][token]).sum() >= 2:
            return Verdict(i, int(rng.choice(5, p=target_probs[i])))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def loss(verifier, prompts=PROMPTS, drafter=ModelDrafter(DRAFT, sampling=SAMPLING), left_out=0):
    with pytest.MonkeyPatch.context() as monkey:
        monkey.setattr("speculative.measuring.lossy.LEFT_OUT", left_out)
        parts = TARGET, drafter, verifier
        return loss_of([sums_along_text(*parts, prompt, 6, SAMPLING, i) for i, prompt in enumerate(prompts)])


@pytest.mark.parametrize("verifier", [rejection, block, exact_match, Lenient(1)])
def test_an_exact_rule_has_no_loss(verifier):
    found = loss(verifier)
    assert found["loss"] < 1e-12 and found["loss_after"] < 1e-12


@pytest.mark.parametrize("verifier", [Lenient(0.5), Typical(), top_two])
def test_it_is_the_distance_of_all_tokens_enumerated(verifier):
    distances = []
    for i, prompt in enumerate(PROMPTS):
        text, probs = own_text(TARGET, prompt, 6, SAMPLING, i)
        for n, p in enumerate(probs, len(prompt)):
            q = SAMPLING(DRAFT(text[:n]))

            def first_token(rng, p=p, q=q):
                token = int(rng.choice(5, p=q[0]))
                verdict = verifier(Draft(np.array([token]), q), np.array([p, p]), rng)
                return token if verdict.n_accepted else verdict.next_token

            distances.append(total_variation(exact_distribution(first_token), dict(enumerate(p))))
    found, part = loss(verifier), loss(verifier, left_out=0.5)
    assert found["loss"] == pytest.approx(np.mean(distances))
    assert 0 < part["loss"] < found["loss"]
    assert found["loss_low"] < found["loss"] < found["loss_high"]
    assert (found["loss_after"] > 0.1) == isinstance(verifier, Typical)  # its bonus is the most probable token
    assert found["loss_after"] > 0.1 or found["loss_after"] < 1e-12


def test_a_drafter_without_a_draft_loses_nothing_and_one_prompt_has_no_interval():
    nothing = Draft(np.zeros(0, np.int64), np.zeros((0, 5)))
    found = loss(Typical(), [[0]], SimpleNamespace(propose=lambda tokens, K, rng: nothing))
    assert (found["loss"], found["loss_low"], found["loss_high"]) == (0, None, None)


def test_a_rule_that_looks_at_the_other_token_is_refused():
    def even(draft, target_probs, rng):
        token = sample_token(target_probs[0], rng)
        return Verdict(int(token == draft.tokens[0]), token // 2)

    with pytest.raises(ValueError, match="decides by which other token it drew"):
        check_rule(even)
