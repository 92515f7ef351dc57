"""From rounds to records: what a record holds, what a cache would hold, the texts of tokens, the counts, and files."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpt2np
import speculative
from gpt2np.kernels import matmul
from speculative import (
    AutoregressiveSampler,
    Draft,
    Gumbel,
    ModelDrafter,
    PromptLookupDrafter,
    Sampling,
    SpeculativeSampler,
    Verdict,
    block,
    exact_match,
    traversal,
)
from speculative.interfaces import Round
from speculative.testing import TableModel
from speculative.trace import Trace, page
from speculative.trace.notebook import round_html
from speculative.trace.record import readable

BYTES = [b"a", b" b", b"\xc3", b"\xa9", b"\xf0\x9f", b"\x98\x80", b"!"]
NASTY = "</script><script>document.title = 'bad'</script><b>&amp;\u2028\n\""
NO_TIME = dict.fromkeys(("draft", "target", "verify"), 0.0)


def text_of(tokens):
    return b"".join(BYTES[token] for token in tokens).decode("utf-8", "replace")


def words(tokens):
    return "".join(f" w{token}" for token in tokens)


def chain(tokens, drafted, n_accepted):
    draft = Draft(np.array(drafted, np.int64), None)
    return Round(np.array(tokens), draft, Verdict(n_accepted, tokens[-1]), None, NO_TIME)


class Interrupted(Exception):
    pass


def test_a_round_that_was_interrupted_can_be_added_again(generated):
    """Wherever `decode` fails, the trace has either the whole round or nothing of it."""
    rounds, n_failed = generated(n_tokens=12).rounds, 0
    expected = [Trace([3, 1], text_of).add(rounds[0])]
    for n in range(1, 60):
        left = [n]

        def failing(tokens):
            left[0] -= 1  # noqa: B023, used at once
            if left[0] == 0:  # noqa: B023
                raise Interrupted
            return text_of(tokens)

        trace = Trace([3, 1], text_of)
        trace.decode = failing
        try:
            trace.add(rounds[0])
        except Interrupted:
            n_failed += 1
            assert trace.rounds == []
            trace.add(rounds[0])
        assert trace.rounds == expected
    assert n_failed > 30


def test_a_record_holds_what_the_round_holds(generated):
    generation = generated()
    trace = Trace.of(generation, words, {"seed": 5})
    assert len(trace.rounds) == len(generation.rounds) and trace.text == " w3 w1"
    n_before = 2
    for step, record in zip(generation.rounds, trace.rounds):
        assert record["at"] == n_before
        n_before += len(step.tokens)
        assert record["tokens"] == step.tokens.tolist() and record["origins"] == step.origins
        assert record["texts"] == [f" w{token}" for token in step.tokens]
        assert record["seconds"] == step.seconds and record["uniforms"] == list(step.uniforms)
        assert [(draft["token"], draft["parent"]) for draft in record["drafted"]] == [
            (token, i - 1) for i, token in enumerate(step.drafted)
        ]
        assert record["next"]["token"] == step.tokens[-1]
        assert record["next"]["p"] == step.target_probs[step.n_accepted][step.tokens[-1]]


def test_the_summary_has_the_counts_of_the_generation(generated, of_trees):
    for generation in (generated(n_tokens=60), of_trees()):
        summary, stats = Trace.of(generation).summary, generation.stats
        for name in ("n_tokens", "target_calls", "tokens_per_target_call", "drafted", "accepted", "acceptance"):
            assert summary[name] == getattr(stats, name)
        assert summary["acceptance_by_position"] == pytest.approx(stats.acceptance_by_position)
        assert summary["alpha"] == stats.accepted / (stats.accepted + stats.rejected)


def test_without_probabilities_and_with_nothing_drafted(generated):
    alone = Trace.of(AutoregressiveSampler(TableModel.random(3, seed=1)).generate([1], 4, 0))
    assert [record["drafted"] for record in alone.rounds] == [[]] * 4 and alone.rounds[0]["next"]["origin"] == "plain"
    summary = alone.summary
    assert summary["alpha"] is None and summary["acceptance"] == 0 and summary["acceptance_by_position"] == []
    assert Trace([0]).summary["tokens_per_target_call"] == 0
    bare = Trace.of(speculative.collect([3, 1], generated().rounds), words)
    assert all("p" not in draft for record in bare.rounds for draft in record["drafted"])
    assert "kept without probabilities" in page(bare) and bare.summary["alpha"] is not None


def test_of_common_random_numbers_no_uniform_is_known():
    model = TableModel.random(3, seed=1)
    sampler = SpeculativeSampler(model, ModelDrafter(model), verifier=exact_match, K=3)
    assert all(record["uniforms"] == [] for record in Trace.of(sampler.generate([1], 9, Gumbel(3))).rounds)


def test_a_text_that_ends_in_mid_block(generated):
    stopped = 0
    for seed in range(40):
        generation = generated(rng=seed, K=5, stop_tokens=[4])
        last = Trace.of(generation).rounds[-1]
        if generation.tokens[-1] == 4 and last["next"] is None:
            stopped += 1
            assert {draft["decision"] for draft in last["drafted"]} <= {"accepted", "dropped"}
    assert stopped > 3


def test_a_draft_of_a_thousand_tokens_has_a_trace():
    target = TableModel([[1, 0], [1, 0]], n_ctx=5000)  # always token 0, so that one round takes the whole draft
    found = [
        SpeculativeSampler(target, PromptLookupDrafter(2), verifier=verifier, K=1500).generate([0] * 2000, 1501, 0)
        for verifier in (block, traversal)
    ]
    assert np.array_equal(*(generation.tokens for generation in found))
    assert len(found[0].rounds[0].drafted) == 1500 and "accepted" in round_html(found[0].rounds[0])


# ------------------------------------------------------------------------------------------------ the cache


def test_what_a_cache_holds_by_hand():
    """The last token of the text is always computed, since its row is needed."""
    trace = Trace([0, 1])
    for tokens, drafted, n_accepted, expected in (
        ([2, 5], [2, 3], 1, (0, 0, 4)),  # 0 1 2 3
        ([4], [4], 1, (3, 1, 2)),  # 0 1 2 5 4, where 3 is in the way of 5
        ([6], [], 0, (4, 1, 1)),  # 0 1 2 5 4 again, for the token after it
        ([1], [0, 0], 0, (5, 0, 3)),
    ):
        record = trace.add(chain(tokens, drafted, n_accepted))
        assert tuple(record["cache"].values()) == expected and [*record["cache"]] == ["reused", "dropped", "computed"]


def test_the_cache_of_a_tree_is_that_of_the_model(tiny_pair, monkeypatch):
    if not matmul.skips_zeros(matmul.strategy()):
        pytest.skip("no tokens of trees are reused on this machine")
    target, _, tokenizer = tiny_pair
    prompt, greedy, computed = tokenizer.encode("There was once a poor man"), Sampling(temperature=0), []
    text = [*prompt, *AutoregressiveSampler(target, sampling=greedy).generate(prompt, 14).tokens.tolist()]

    class SecondIsRight:
        def propose(self, tokens, K, rng):
            drafted = [7, *text[len(tokens) : len(tokens) + 2]]
            return Draft(np.array(drafted), np.eye(2048)[drafted], np.array([-1, -1, 1]))

    target.reset()
    original = gpt2np.model.hidden_states
    monkeypatch.setattr(
        gpt2np.model, "hidden_states", lambda new, *rest: computed.append(len(new)) or original(new, *rest)
    )
    sampler = SpeculativeSampler(target, SecondIsRight(), K=2, sampling=greedy)
    trace, cached = Trace(prompt, tokenizer.decode), 0
    for step in sampler.rounds(prompt, 12, 0):
        cache = trace.add(step)["cache"]
        assert step.n_accepted == 2 and cache["computed"] == computed[-1]
        assert cache["reused"] + cache["dropped"] == cached
        cached = target.cache.length
        assert cache["reused"] + cache["computed"] == cached
    assert len(computed) == 4 and computed[1:] == [4, 4, 4]


# ------------------------------------------------------------------------------------------------ characters in parts


def test_each_draft_token_has_its_text():
    """A character in two tokens belongs to the one that completes it; a branch begins with what the text holds back."""
    record = Trace([0], text_of).add(chain([1, 2, 6], [1, 2, 3], 2))  # "b", half of an e acute, "!" and not the rest
    assert [draft["text"] for draft in record["drafted"]] == [" b", "", "\u00e9"]
    trace = Trace([0], text_of)
    trace.add(chain([4], [], 0))
    draft = Draft(np.array([5, 1, 0, 2]), None, np.array([-1, -1, 0, 0]))
    tree = Round(np.array([5, 6]), draft, Verdict((0,), 6), None, NO_TIME)
    record = trace.add(tree)
    texts = {draft["token"]: draft["text"] for draft in record["drafted"]}
    assert texts == {5: "\U0001f600", 1: "\ufffd b", 0: "a", 2: ""} and record["texts"] == ["\U0001f600", "!"]


@given(st.lists(st.sampled_from(sorted(set("A\u00e9\u4e16\U0001f600\ufffd".encode()) | {0x80, 0xFF})), max_size=12))
@settings(deadline=None, derandomize=True, max_examples=200)
def test_texts_of_bytes_add_up_to_the_text(tokens):
    def decode(tokens):
        return bytes(tokens).decode("utf-8", "replace")

    held_back = []
    texts = [readable(token, held_back, decode) for token in tokens]
    assert "".join(texts) + decode(held_back) == decode(tokens)
    assert len(held_back) <= 3 and decode(held_back).endswith("\ufffd" * bool(held_back))


# ------------------------------------------------------------------------------------------------ files


def test_a_trace_comes_back_from_its_file(tmp_path, generated, of_trees):
    for generation in (generated(), of_trees()):
        about = {"verifier": "rejection", "temperature": 1e305, "seed": 2**70, "more": [{"deep": [None, True]}]}
        trace = Trace.of(generation, lambda tokens: NASTY * len(tokens), about)
        trace.rounds[0]["what a later version may add"] = [-1, 0, 0.5]
        trace.save(tmp_path / "t.jsonl")
        back = Trace.load(tmp_path / "t.jsonl")
        for name in ("rounds", "prompt", "text", "about"):
            assert getattr(back, name) == getattr(trace, name)
        assert back.summary == trace.summary and page(back) == page(trace)


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda lines: ["# A README", *lines], 1),
        (lambda lines: [], 1),
        (lambda lines: ['{"prompt": [1]}', *lines[1:]], 1),
        (lambda lines: ["[]", *lines[1:]], 1),
        (lambda lines: [lines[0].replace('"about": {', '"about": {"K": ' + "[" * 99_999), *lines[1:]], 1),
        (lambda lines: [lines[0].replace('"trace": 2', '"trace": 1'), *lines[1:]], 1),
        (lambda lines: [*lines, *lines], None),  # two traces, one after the other
        (lambda lines: [*lines[:2], lines[2][:40], *lines[3:]], 3),
        (lambda lines: [*lines[:3], "null"], 4),
        (lambda lines: [*lines[:3], lines[3].replace('"drafted"', '"guesses"')], 4),
        *(
            (lambda lines, wrong=wrong: [*lines[:3], json.dumps(json.loads(lines[3]) | wrong), *lines[4:]], 4)
            for wrong in ({"drafted": 5}, {"drafted": [{}]}, {"tokens": None}, {"origins": {}}, {"texts": [1]})
        ),
    ],
)
def test_another_file_is_refused_with_its_line(tmp_path, generated, damage, line):
    path = tmp_path / "t.jsonl"
    Trace.of(generated(), words).save(path)
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join(damage(lines)), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"t.jsonl, line {line or len(lines) + 1}: expected a trace as Trace.save"):
        Trace.load(path)


def test_a_line_ends_where_it_ends(tmp_path, generated):
    """Other programs write U+2028 and the like unescaped; in JSON they are ordinary characters."""
    path, odd = tmp_path / "t.jsonl", " \u2028 \u2029 \u0085 \u00e9"
    Trace.of(generated(), lambda tokens: odd).save(path)
    lines = [json.dumps(json.loads(line), ensure_ascii=False) for line in path.read_text("utf-8").splitlines()]
    path.write_bytes("\r\n".join([*lines, ""]).encode())
    assert Trace.load(path).text == odd == Trace.load(path).rounds[0]["texts"][0]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_number_that_json_lacks_is_not_written(tmp_path, generated, bad):
    for trace in (Trace([1], about={"K": [bad]}), Trace.of(generated())):
        if trace.rounds:
            trace.rounds[1]["drafted"][0]["p"] = bad
        for write in (page, lambda trace: trace.save(tmp_path / "t.jsonl")):
            with pytest.raises(ValueError, match="not JSON compliant"):
                write(trace)
    assert not (tmp_path / "t.jsonl").exists()
