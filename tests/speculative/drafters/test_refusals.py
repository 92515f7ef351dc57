"""What drafters and their trees refuse: each call of refusals.txt with its sentence."""

import math
from pathlib import Path

from helpers import random_eagle, random_gpt2, random_heads
from refusals import answered

import gpt2np
import speculative
from speculative.drafters.deterministic import one_hot
from speculative.testing import TableModel

GPT2 = random_gpt2(gpt2np.HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2))
TABLE, HEADS, BLOCK = TableModel.random(3), random_heads(GPT2.hparams), random_eagle(GPT2.hparams)
NAMES = vars(gpt2np) | vars(speculative) | {"one_hot": one_hot, "nan": math.nan}


def test_each_mistake_gets_one_sentence(golden):
    path = Path(__file__).with_name("refusals.txt")
    golden(path, answered(path, NAMES | globals()))
