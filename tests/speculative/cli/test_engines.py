"""Models of other engines on the command line: drafters, rules, templates, files; a row may round as it likes."""

import json
from pathlib import Path

import numpy as np
import pytest
from command import refusal, report_of, row_of, run_here
from random_transformers import peer, random_model

import gpt2np
from speculative import ByPaths
from speculative.cli.drafters import DRAFTERS
from speculative.cli.engines import OTHERS, Engine
from speculative.cli.models import ENGINES
from speculative.cli.options import Options
from speculative.cli.prompts import KNOWN, prompts_of, tales

FOUR = "model,ngram,prompt_lookup,recycling"
TOY = ("--engine=toy", "--target_model_size=tiny-target", "--n_tokens_to_generate=24")
LOOKUP = (*TOY, "--drafter=prompt_lookup")


class Rounding:
    """A model in which two tokens are nearly equal after 40 tokens: which is larger depends on n_last."""

    about, error = "toy 1", 0.0

    def __init__(self, name):
        self.model, _ = gpt2np.load(name)
        self.n_vocab, self.n_ctx, self.n_params = self.model.n_vocab, self.model.n_ctx, 5_000_000

    def reset(self):
        """It has no cache."""

    def __call__(self, tokens, n_last=1, parents=()):
        if len(parents):
            return ByPaths(self)(tokens, n_last, parents)
        rows = self.model(list(tokens), n_last=n_last).copy()
        if self.error and len(tokens) - n_last > 25:
            second, first = np.argsort(rows[0])[-2:]
            rows[0, second] = rows[0, first] + (self.error if n_last > 1 else -self.error)
        return rows


class Chatty:
    """A tokenizer with a first token, several that end a text, and a chat template."""

    start, ends = [7], {5, 0}

    def __init__(self, tokenizer):
        self.tokenizer, self.end_of_text = tokenizer, 0

    def __getattr__(self, name):
        return getattr(self.tokenizer, name)

    def encode(self, text, special=False):
        return [*self.start * special, *self.tokenizer.encode(text)]

    def chat(self, question):
        return [7, 8, *self.encode(question), 9]


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    load = lambda name, options: (Rounding(name), Chatty(gpt2np.load(name)[1]))  # noqa: E731
    monkeypatch.setitem(ENGINES, "toy", Engine("a toy", str, load))


def test_drafters_that_need_a_language_model_alone():
    words = ("--draft_model_size=tiny-draft", f"--drafter={FOUR}", "--n_prompts=2", "--n_tokens_to_generate=8")
    rows = report_of("compare", *TOY[:2], *words)["rows"]
    assert [row["setting"]["drafter"] for row in rows] == FOUR.split(",")
    assert all(row["same_texts"] == row["n_texts"] == 2 and "gap" not in row for row in rows)
    assert {row["target"]["name"] for row in rows} == {"tiny-target (toy 1)"}
    is_slow = ["own: expect no speedup" in row["draft"]["name"] for row in rows]
    assert is_slow == [DRAFTERS[name].branches for name in FOUR.split(",")]


def test_a_difference_between_two_greedy_texts(monkeypatch):
    monkeypatch.setattr(Rounding, "error", 0.125)
    said = run_here(*TOY, "--drafter=recycling").stdout
    assert "same text     no, they differ from token" in said
    assert "\nrounding      the two logits are 0.12 apart, " in said
    assert "ulps of float32: more than rounding, unless the weights are quantised; see docs/audit.md" in said
    said = run_here("compare", *TOY, "--drafter=recycling", "--n_prompts=2").stdout
    assert "\nrounding  where texts differ, the two logits are 0.12 apart, " in said


def test_the_tokens_of_a_prompt():
    target, tokenizer = Rounding("tiny-target"), Chatty(gpt2np.load("tiny-target")[1])
    [begins], [chat] = (
        prompts_of(Options(prompt=("A king",), template=template), target, tokenizer)
        for template in ("{prompt}", "chat")
    )
    assert begins.tokens == [7, *tokenizer.tokenizer.encode("A king")]
    assert chat.tokens == tokenizer.chat("A king") and chat.text == "A king"
    assert row_of(*LOOKUP, "--prompt=A king", "--template=chat")["prompt"] == "A king"
    words = (*LOOKUP, "--template=chat", "--prompts=known", "--by=prompt", "--n_prompts=1")
    assert report_of("compare", *words)["rows"][0]["by"].startswith(f"1 {KNOWN[0][:20]}")


def test_a_text_ends_at_any_of_the_ends():
    tokens = row_of(*LOOKUP)["tokens"][0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chatty, "ends", {tokens[9]})
        assert row_of(*LOOKUP)["tokens"][1] == tokens[: tokens.index(tokens[9]) + 1]
        least = row_of(*LOOKUP, "--min_tokens=20")["tokens"][1]
        assert tokens[9] not in least[:19]


def test_many_texts_one_by_one():
    Path("p").write_text("A king\nA queen\n")
    words = (*TOY, "--draft_model_size=tiny-draft", "--output=o.jsonl", "--prompt_file=p")
    assert "2 texts in o.jsonl; 1 at once" in run_here(*words).stdout
    prompts = [json.loads(line).get("prompt") for line in Path("o.jsonl").read_text("utf-8").splitlines()]
    assert prompts == [None, "A king", "A queen"]


def test_refusals():
    for words, sentence in {
        ("--drafter=eagle",): "--drafter eagle works on hidden states, which --engine toy does not return: choose one",
        (): "--engine toy knows no smaller model of the family: name one with --draft_model_size, or draft without",
    }.items():
        assert refusal(*TOY, *words).startswith(sentence)
    assert refusal("compare", *LOOKUP, "--n_lanes=2").startswith("--n_lanes: --engine toy runs one text")
    assert refusal("--template=chat").startswith("--template chat is for a model with a chat template")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENGINES, "away", Engine("", str, str, {"no_such_module": "no-such-package"}))
        sentence = "--target_model_size: this engine needs packages that are not installed: pip install no-such-package"
        assert refusal("--engine=away") == sentence
    with pytest.raises(ValueError, match=r"expected a file .gguf, got 'tiny-target'"):
        OTHERS["llama_cpp"].read("tiny-target")


# ------------------------------------------------------------------------------------------------ transformers


@peer
def test_a_random_pair_of_transformers():
    """The draft is the target's first layers. Greedy texts are those of the target alone, and of its own generate()."""
    tokenizers, transformers = pytest.importorskip("tokenizers"), pytest.importorskip("transformers")
    bpe = tokenizers.ByteLevelBPETokenizer()
    bpe.train_from_iterator(tales()[0].split("\n"), 600, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False)
    bpe.post_processor = tokenizers.processors.TemplateProcessing("<s> $A", None, [("<s>", 1)])
    names = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, **names)
    tokenizer.chat_template = "{{ bos_token }}Q: {{ messages[0].content }} A: "
    shape = {"max_position_embeddings": 512, "tie_word_embeddings": False}
    target = random_model("Llama", **shape, num_hidden_layers=4, vocab_size=640)  # padded
    draft = random_model("Llama", **shape, num_hidden_layers=2, vocab_size=608)
    weights = target.state_dict()
    draft.load_state_dict({key: weights[key][: len(own)] for key, own in draft.state_dict().items()})
    for name, model in (("target", target), ("draft", draft)):
        model.generation_config.eos_token_id = [2, 0]
        model.save_pretrained(name)
        tokenizer.save_pretrained(name)
    pair = ("--engine=transformers", "--target_model_size=target", "--draft_model_size=draft")
    pair = (*pair, "--n_tokens_to_generate=20", "--K=3")
    rows = report_of("compare", *pair, "--drafter", FOUR, "--temperature=0,1", "--n_prompts=2")["rows"]
    assert len(rows) == 8 and all(row["same_texts"] == row["n_texts"] for row in rows if row["is_one_text"])
    assert sum(row["is_one_text"] for row in rows) == 4 and max(row["tokens_per_call"] for row in rows) > 1.2
    row = row_of(*pair, "--template=chat", "--prompt=Who are you?")
    chat = [{"role": "user", "content": "Who are you?"}]
    ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    n = ids["input_ids"].shape[1]
    options = {"do_sample": False, "max_new_tokens": 20, "pad_token_id": 0, "suppress_tokens": [*range(600, 640)]}
    own = target.generate(**{name: ids[name] for name in ("input_ids", "attention_mask")}, **options)[0, n:].tolist()
    assert row["tokens"][1] == own
