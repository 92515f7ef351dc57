"""What exact programs give away: their share of rejection sampling's tokens per target call, and where they lose it."""

import re

import numpy as np
import pytest

from speculative import ModelDrafter, Sampling, SpeculativeSampler, block
from speculative.testing import TableModel, audit_loop, samplers
from speculative.testing.mistakes.samplers import SLOW, loop
from speculative.testing.pace import calls_of_rejection, told_pace


def pace_of(make, greedy=False, seed=0):
    target, draft = samplers.models(np.random.default_rng(0))
    sampling = Sampling(temperature=1 - greedy)
    made = samplers.Made(make, target, ModelDrafter(draft, sampling=sampling), 1, sampling)
    return told_pace(made, "your sampler", seed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("greedy", [False, True])
def test_the_librarys_own_loop_is_as_fast_as_the_formula(greedy, seed, capsys):
    said = pace_of(SpeculativeSampler, greedy, seed)
    assert re.fullmatch(r"; K = 2: [12]\.\d\d tokens per target call, as rejection sampling", said)
    assert capsys.readouterr().out == ""


def test_the_formula_by_hand():
    """One draft token of a target that is 0 or 1, each with 1/2, and of a draft that is always 0."""
    p, q = (lambda text: np.array([0.5, 0.5])), (lambda text: np.array([1.0, 0.0]))
    assert calls_of_rejection(p, q, [0], 2, K=1) == 1 + 0.5
    assert calls_of_rejection(p, q, [0], 3, K=1) == 0.5 * 2 + 0.5 * (1 + 1.5)


def test_block_verification_is_faster():
    said = pace_of(loop(verifier=staticmethod(block)))
    assert re.search(r"tokens per target call, 100\.[1-9] % of rejection sampling's$", said), said


@pytest.mark.parametrize("mistake", SLOW, ids=lambda mistake: mistake.hint)
def test_slow_ones_are_told_their_share_and_what_was_seen(mistake, capsys):
    said = pace_of(mistake.variants[0])
    [note] = capsys.readouterr().out.splitlines()
    first, second = re.search(r"it has ([\d.]+) % where K = 1, ([\d.]+) % where K = 2", note).groups()
    assert f"{second} % of rejection sampling's" in said and float(first) < 99.9
    assert mistake.hint in note, note


def test_a_draft_that_lags_is_told_the_text_it_was_asked_about(capsys):
    bonus_unseen = SLOW[1].variants[0]
    pace_of(bonus_unseen)
    where = (
        r"after an accepted draft your draft is asked about \[(.*)\], where the text is \[(.*)\]: its cache or its text"
    )
    asked, text = re.search(where, capsys.readouterr().out).groups()
    assert text.startswith(f"{asked}, ") and len(text) == len(asked) + 3


def test_an_audit_says_the_pace_of_modules():
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):
        def __init__(self, table):
            super().__init__()
            self.table, self.config = table, type("Config", (), {"vocab_size": 3})

        def forward(self, ids):
            rows = self.table(ids[0].tolist(), n_last=ids.shape[1])
            return type("Output", (), {"logits": torch.tensor(np.array(rows), dtype=torch.float64)[None]})

    target, draft = (Module(TableModel.random(3, seed=seed)) for seed in (0, 1))

    def generate(prompt, n_tokens):
        ids = [*prompt]
        for _ in range(n_tokens):
            row = target(torch.tensor([ids])).logits[0, -1]
            ids.append(int(torch.multinomial(torch.softmax(row, -1), 1)))
        return ids

    verdict, pace = str(audit_loop(generate, target, draft, n_tokens=2)).splitlines()
    assert verdict.startswith(("exact", "rounding"))
    assert re.fullmatch(r"K = 2: 1\.00 tokens per target call, \d\d\.\d % of rejection sampling's", pace)
