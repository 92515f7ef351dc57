"""What drafters and their trees refuse: each call of refusals.txt with its sentence."""

import math
import re
from pathlib import Path

import pytest
from helpers import random_eagle, random_gpt2, random_heads

import gpt2np
import speculative
from speculative import SpeculativeSampler
from speculative.drafters.deterministic import one_hot
from speculative.testing import TableModel

GPT2 = random_gpt2(gpt2np.HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2))
NAMES = vars(speculative) | {
    "GPT2": GPT2,
    "TABLE": TableModel.random(3),
    "HEADS": random_heads(GPT2.hparams),
    "BLOCK": random_eagle(GPT2.hparams),
    "drafted_by": lambda drafter: SpeculativeSampler(TableModel.random(6), drafter).generate([4, 1] * 3, 3, 0),
    "one_hot": one_hot,
    "EarlyExit": gpt2np.EarlyExit,
    "load_heads": gpt2np.load_heads,
    "nan": math.nan,
}


def refusal(call):
    with pytest.raises(ValueError) as error:
        eval(call, dict(NAMES))
    return re.sub("object at 0x[0-9a-fA-F]*", "object", str(error.value))


def test_each_mistake_gets_one_sentence(golden):
    """`pytest --update` writes the sentences."""
    path = Path(__file__).with_name("refusals.txt")
    calls = [line for line in path.read_text(encoding="utf-8").splitlines() if line and line[0] != " "]
    golden(path, "".join(f"{call}\n    {refusal(call)}\n" for call in calls))
