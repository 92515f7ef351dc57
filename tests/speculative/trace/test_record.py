"""From rounds to records: what a record holds, what a cache would hold, the texts of tokens, the counts, and files."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpt2np
import speculative
from gpt2np.kernels import matmul
from speculative import AutoregressiveSampler, ModelDrafter, PromptLookupDrafter, Sampling, SpeculativeSampler
from speculative.generation import Round
from speculative.interfaces import Draft, Verdict
from speculative.rng import Gumbel
from speculative.testing import TableModel
from speculative.trace import Trace, page
from speculative.trace.notebook import round_html
from speculative.trace.record import readable

BYTES = [b"a", b" b", b"\xc3", b"\xa9", b"\xf0\x9f", b"\x98\x80", b"!"]
NASTY = "</script><script>document.title = 'bad'</script><b>&amp;\u2028\n\""


def text_of(tokens):
    return b"".join(BYTES[token] for token in tokens).decode("utf-8", "replace")


def words(tokens):
    return "".join(f" w{token}" for token in tokens)


def a_round(tokens, drafted, nodes, parents=None):
    """A round of a chain with this number of accepted tokens, or of a tree with these nodes; it took no time."""
    draft = Draft(np.array(drafted, np.int64), None, *([] if parents is None else [np.array(parents)]))
    seconds = dict.fromkeys(("draft", "target", "verify"), 0.0)
    return Round(np.array(tokens), draft, Verdict(nodes, tokens[-1]), None, seconds)


def test_a_round_that_was_interrupted_can_be_added_again(generated):
    """Wherever `decode` fails, the trace has either the whole round or nothing of it."""
    first = generated(n_tokens=12).rounds[0]
    expected, n_failed = [Trace([3, 1], text_of).add(first)], 0
    for n in range(60):
        trace, answers = Trace([3, 1], text_of), iter([text_of] * n + [lambda tokens: 1 / 0] + [text_of] * 60)
        trace.decode = lambda tokens, answers=answers: next(answers)(tokens)
        try:
            trace.add(first)
        except ZeroDivisionError:
            n_failed += 1
            assert trace.rounds == []
            trace.add(first)
        assert trace.rounds == expected
    assert n_failed > 30


def test_a_record_holds_what_the_round_holds(generated):
    generation, n_before = generated(), 2
    trace = Trace.of(generation, words, {"seed": 5})
    assert len(trace.rounds) == len(generation.rounds) and trace.text == " w3 w1"
    for r, record in zip(generation.rounds, trace.rounds):
        tokens, last = r.tokens.tolist(), r.tokens[-1]
        assert (record["at"], record["tokens"], record["origins"]) == (n_before, tokens, r.origins)
        assert record["texts"] == [f" w{token}" for token in tokens]
        assert (record["seconds"], record["uniforms"]) == (r.seconds, list(r.uniforms))
        drafted = [(draft["token"], draft["parent"]) for draft in record["drafted"]]
        assert drafted == [(token, i - 1) for i, token in enumerate(r.drafted)]
        assert (record["next"]["token"], record["next"]["p"]) == (last, r.target_probs[r.n_accepted][last])
        n_before += len(tokens)


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
    assert (summary["alpha"], summary["acceptance"], summary["acceptance_by_position"]) == (None, 0, [])
    assert Trace([0]).summary["tokens_per_target_call"] == 0
    bare = Trace.of(speculative.collect([3, 1], generated().rounds), words)
    assert all("p" not in draft for record in bare.rounds for draft in record["drafted"])
    assert "kept without probabilities" in page(bare) and bare.summary["alpha"] is not None


def test_of_common_random_numbers_no_uniform_is_known():
    model = TableModel.random(3, seed=1)
    sampler = SpeculativeSampler(model, ModelDrafter(model), verifier=speculative.exact_match, K=3)
    assert all(record["uniforms"] == [] for record in Trace.of(sampler.generate([1], 9, Gumbel(3))).rounds)


def test_a_draft_of_a_thousand_tokens_has_a_trace():
    target = TableModel([[1, 0], [1, 0]], n_ctx=5000)  # always token 0, so that one round takes the whole draft
    found = [
        SpeculativeSampler(target, PromptLookupDrafter(2), verifier=verifier, K=1100).generate([0] * 1200, 1101, 0)
        for verifier in (speculative.block, speculative.traversal)
    ]
    assert np.array_equal(*(generation.tokens for generation in found))
    assert len(found[0].rounds[0].drafted) == 1100 and "accepted" in round_html(found[0].rounds[0])


# ------------------------------------------------------------------------------------------------ the cache


def test_the_last_token_of_the_text_is_always_computed_since_its_row_is_needed():
    trace = Trace([0, 1])
    trace.add(a_round([4], [4], 1))
    assert trace.add(a_round([6], [], 0))["cache"] == {"reused": 2, "dropped": 1, "computed": 1}


@pytest.mark.parametrize("branches", [False, True])
def test_the_cache_of_a_trace_is_that_of_the_model(branches, tiny_pair, monkeypatch):
    if branches and not matmul.skips_zeros(matmul.strategy()):
        pytest.skip("no tokens of trees are reused on this machine")
    target, draft_model, tokenizer = tiny_pair
    prompt, greedy, computed = tokenizer.encode("There was once a poor man"), Sampling(temperature=0), []
    text = [*prompt, *AutoregressiveSampler(target, sampling=greedy).generate(prompt, 14).tokens.tolist()]

    class SecondIsRight:
        def propose(self, tokens, K, rng):
            drafted = [7, *text[len(tokens) : len(tokens) + 2]]
            return Draft(np.array(drafted), np.eye(2048)[drafted], np.array([-1, -1, 1]))

    def counting(new, *rest):
        computed.append(len(new))
        return hidden_states(new, *rest)

    target.reset()
    hidden_states = gpt2np.model.hidden_states
    monkeypatch.setattr(gpt2np.model, "hidden_states", counting)
    drafter = SecondIsRight() if branches else ModelDrafter(draft_model)
    sampler = SpeculativeSampler(target, drafter, K=2, sampling=greedy)
    trace, cached = Trace(prompt, tokenizer.decode), 0
    for r in sampler.rounds(prompt, 12, 0):
        cache = trace.add(r)["cache"]
        assert cache["computed"] == computed[-1]
        assert cache["reused"] + cache["dropped"] == cached
        cached = target.cache.length
        assert cache["reused"] + cache["computed"] == cached
    assert not branches or computed[1:] == [4, 4, 4]


# ------------------------------------------------------------------------------------------------ characters in parts


def test_each_draft_token_has_its_text():
    """A character in two tokens belongs to the one that completes it; a branch begins with what the text holds back."""
    record = Trace([0], text_of).add(a_round([1, 2, 6], [1, 2, 3], 2))  # "b", half of an e acute, "!" and not the rest
    assert [draft["text"] for draft in record["drafted"]] == [" b", "", "\u00e9"]
    trace = Trace([0], text_of)
    trace.add(a_round([4], [], 0))
    record = trace.add(a_round([5, 6], [5, 1, 0, 2], (0,), [-1, -1, 0, 0]))
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
        for name in ("rounds", "prompt", "text", "about", "summary"):
            assert getattr(back, name) == getattr(trace, name)
        assert page(back) == page(trace)


@pytest.mark.parametrize(
    ("line", "damage"),
    [
        (1, lambda lines: []),
        (1, lambda lines: ['{"prompt": [1]}', *lines[1:]]),
        (1, lambda lines: [lines[0].replace('"about": {', '"about": {"K": ' + "[" * 99_999), *lines[1:]]),
        (1, lambda lines: [lines[0].replace('"trace": 2', '"trace": 1'), *lines[1:]]),
        (3, lambda lines: [*lines[:2], lines[2][:40], *lines[3:]]),
        (4, lambda lines: [*lines[:3], *lines]),  # two traces, one after the other
        (4, lambda lines: [*lines[:3], lines[3].replace('"drafted"', '"guesses"')]),
        (4, lambda lines: [*lines[:3], json.dumps(json.loads(lines[3]) | {"drafted": [{}]})]),
        (4, lambda lines: [*lines[:3], json.dumps(json.loads(lines[3]) | {"texts": [1]})]),
    ],
)
def test_another_file_is_refused_with_its_line(tmp_path, generated, line, damage):
    path = tmp_path / "t.jsonl"
    Trace.of(generated(), words).save(path)
    path.write_text("\n".join(damage(path.read_text("utf-8").splitlines())), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"t.jsonl, line {line}: expected a trace as Trace.save"):
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
    trace = Trace.of(generated())
    trace.rounds[1]["drafted"][0]["p"] = bad
    for wrong in (Trace([1], about={"K": [bad]}), trace):
        for write in (page, lambda trace: trace.save(tmp_path / "t.jsonl")):
            with pytest.raises(ValueError, match="not JSON compliant"):
                write(wrong)
    assert not (tmp_path / "t.jsonl").exists()
