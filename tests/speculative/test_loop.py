"""What the loop hands to its parts and takes from them: copies, counts, seconds, rows, nodes."""

import copy
import math
import pickle

import numpy as np
import pytest
from helpers import Clearing
from helpers import TreeDrafter as Planted

from speculative import (
    AutoregressiveSampler,
    ByPaths,
    Draft,
    ModelDrafter,
    Sampling,
    SpeculativeSampler,
    StopText,
    Typical,
    Verdict,
    rejection,
)
from speculative.checks import ask_sampling
from speculative.rng import Recorder
from speculative.testing import TableModel

T3, D3 = TableModel.random(3, seed=1), TableModel.random(3, seed=2)
TARGET, DRAFT = TableModel.random(5, seed=1), TableModel.random(5, seed=2)


def test_what_a_target_does_to_its_list_does_not_reach_the_sampling():
    sampling = Sampling(repetition_penalty=1.5)
    texts = [
        SpeculativeSampler(target, ModelDrafter(DRAFT), K=3, sampling=sampling).generate([0, 1], 20, 0).tokens.tolist()
        for target in (TARGET, Clearing(TARGET.probs))
    ]
    assert texts[0] == texts[1]


def test_a_policy_that_empties_its_history_gets_the_whole_again():
    seen = []

    def clearing(history):
        seen.append(len(history))
        history.clear()
        return 1

    SpeculativeSampler(T3, ModelDrafter(D3), K=clearing).generate([0], 12, 0)
    assert seen == list(range(len(seen)))


def test_the_history_has_the_depths_of_trees():
    histories = []

    def length(history):
        histories.append(list(history))
        return 2

    drafter = Planted(TableModel.random(3, seed=2), [-1, -1, 0, 1], "iid")
    rounds = SpeculativeSampler(ByPaths(T3), drafter, K=length).generate([0], 20, 3).rounds
    assert histories[-1] == [(r.depth, r.n_accepted) for r in rounds[:-1]]
    assert any(r.depth == r.n_accepted < len(r.drafted) for r in rounds)


def test_the_seconds_of_a_part_are_those_of_its_calls(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("speculative.interfaces.perf_counter", lambda: now[0])

    class Slow(TableModel):
        def __call__(self, tokens, n_last=1):
            now[0] += 1.0
            return super().__call__(tokens, n_last)

    target = Slow(T3.probs)
    for sampler, draft in (
        (AutoregressiveSampler(target), 0),
        (SpeculativeSampler(target, ModelDrafter(target), K=1), 3),
    ):
        stats = sampler.generate([0], 6, 0).stats
        assert stats.seconds == {"draft": draft, "target": stats.target_calls, "verify": 0}


def test_the_seconds_of_a_text_are_those_of_its_rounds():
    stats, rounds = (g := SpeculativeSampler(T3, ModelDrafter(D3)).generate([0], 30, 0)).stats, g.rounds
    for part, seconds in stats.seconds.items():
        assert seconds == pytest.approx(sum(r.seconds[part] for r in rounds)) and seconds > 0


def test_rounds_keep_the_parents_as_they_were():
    class ReusesItsParents:
        def __init__(self):
            self.parents = np.array([-1, -1])

        def propose(self, tokens, K, rng):
            self.parents[:] = -1
            rounds.append(self.parents)
            return (
                Draft(np.array([0, 1]), np.eye(3)[[0, 1]], self.parents)
                if K
                else Draft(np.zeros(0, int), np.zeros((0, 3)))
            )

    rounds, drafter = [], ReusesItsParents()
    generation = SpeculativeSampler(ByPaths(T3), drafter, K=1).generate([0], 9, 0)
    drafter.parents[:] = 7
    assert all(r.parents.tolist() == [-1, -1] for r in generation.rounds if len(r.drafted))


def test_a_probability_rounded_above_1_is_right():
    class Rounded:
        def propose(self, tokens, K, rng):
            return Draft(np.ones(K, int), np.tile([0, 1 + 2**-52, 0, 0, 0], (K, 1)))

    assert len(SpeculativeSampler(TARGET, Rounded(), K=2).generate([0], 5, 0).tokens) == 5


def test_how_far_a_row_may_be_from_1():
    def float32(logits, tokens):
        return Sampling()(logits, tokens).astype(np.float32)

    assert len(AutoregressiveSampler(TARGET, sampling=float32).generate([0], 5, 0).tokens) == 5
    logits = np.zeros((1, 5))
    ask_sampling(lambda logits, tokens: np.full((1, 5), 0.2 + 1e-6), logits, [0])
    for off in (1e-3, -1e-3):
        with pytest.raises(ValueError, match="rows that add up to 1"):
            ask_sampling(lambda logits, tokens, off=off: np.full((1, 5), 0.2 + off / 5), logits, [0])


def test_parents_and_nodes_of_a_chain_are_filled_in():
    def rule(draft, target_probs, rng):
        return Verdict(min(1, len(draft.tokens)), 0)

    rounds = SpeculativeSampler(TARGET, ModelDrafter(DRAFT), verifier=rule, K=2).generate([0], 6, 0).rounds
    assert [(r.parents.tolist(), r.nodes) for r in rounds] == [([-1, 0], (0,)), ([-1, 0], (0,)), ([-1], (0,))]


def test_a_prompt_that_leaves_no_room():
    with pytest.raises(ValueError, match="n_ctx is 20: shorten the prompt"):
        AutoregressiveSampler(TableModel.random(3, n_ctx=20)).rounds([0] * 20, 1)


def test_the_number_of_accepted_nodes_is_checked():
    def rule(draft, target_probs, rng):
        return Verdict(2, 0, (0,))

    rule.trees = True

    class Two:
        def propose(self, tokens, K, rng):
            return Draft(np.zeros(3, int), np.full((3, 3), 1 / 3), np.array([-1, -1, 0]))

    with pytest.raises(ValueError, match=r"accepted 2 draft tokens, nodes = \(0,\)"):
        SpeculativeSampler(ByPaths(T3), Two(), verifier=rule, K=3).generate([0], 9, 0)


def test_the_row_that_is_no_distribution_is_named():
    def sampling(logits, tokens):
        probs = Sampling()(logits, tokens)
        probs[-1] /= 2
        return probs

    with pytest.raises(ValueError, match=r"rows that add up to 1, got 0\.5"):
        SpeculativeSampler(TARGET, ModelDrafter(DRAFT), sampling=sampling).generate([0], 5, 0)


def test_a_recorder_can_be_copied():
    for copied in (copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))):
        recorder = copied(Recorder(np.random.default_rng(0)))
        assert recorder.random() == np.random.default_rng(0).random() == recorder.uniforms[0]


def test_a_verifier_may_draw_several_numbers_at_once():
    def rule(draft, target_probs, rng):
        drawn.append(rng.random(2))
        return rejection(draft, target_probs, rng)

    drawn = []
    rounds = SpeculativeSampler(T3, ModelDrafter(D3), verifier=rule).generate([0], 5, 0).rounds
    assert all(
        np.array_equal(r.uniforms[0], numbers) and np.shape(numbers) == (2,) for r, numbers in zip(rounds, drawn)
    )


def test_the_widest_penalties():
    for penalty in (1e-100, 1e100):
        Sampling(repetition_penalty=penalty)


def test_of_equal_tokens_the_lower_ids_stay():
    ties = np.tile([0.0, 1.0], 500)[None]
    assert np.flatnonzero(Sampling(top_k=3)(ties)[0]).tolist() == [1, 3, 5]
    assert np.flatnonzero(Sampling(top_k=502)(ties)[0]).tolist() == sorted([0, 2, *range(1, 1000, 2)])


def test_the_penalty_does_not_write_to_the_logits():
    logits = np.array([[2.0, -2.0, 1.0]])
    logits.setflags(write=False)
    Sampling(repetition_penalty=2)(logits, [1])


def test_a_token_at_the_threshold_is_not_typical():
    p = np.array([[0.25, 0.75]] * 2)
    draft = Draft(np.array([0]), np.array([[1.0, 0.0]]))
    assert Typical(epsilon=0.25, delta=9)(draft, p, None).n_accepted == 0
    assert Typical(epsilon=0.2499, delta=9)(draft, p, None).n_accepted == 1


def test_bounds_of_a_typical_rule():
    for options in ({"epsilon": -1}, {"delta": -1}, {"epsilon": math.nan}, {"delta": math.nan}):
        with pytest.raises(ValueError, match="expected epsilon and delta of 0 or more"):
            Typical(**options)


def test_a_stop_text_of_several_tokens_per_character():
    """A character of three tokens."""
    stop = StopText("\N{SNOWMAN}", lambda tokens: bytes(tokens).decode("utf-8", errors="replace"))
    assert [stop([97, *"\N{SNOWMAN}".encode()][:n]) for n in (1, 2, 3, 4)] == [False, False, False, True]
