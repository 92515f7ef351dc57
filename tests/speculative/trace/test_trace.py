"""The trace: what a record holds, files and back, the three pictures of it."""

import html
import json
import re

import numpy as np
import pytest
from helpers import TreeDrafter
from hypothesis import given, settings
from hypothesis import strategies as st

import gpt2np
import speculative
from gpt2np.kernels import matmul
from speculative import (
    AutoregressiveSampler,
    ByPaths,
    Draft,
    Gumbel,
    Lenient,
    ModelDrafter,
    PromptLookupDrafter,
    Sampling,
    SpeculativeSampler,
    Typical,
    block,
    exact_match,
    rejection,
    residual,
    traversal,
)
from speculative.testing import TableModel
from speculative.trace import Trace, notebook, page, round_line, show_tokens_as
from speculative.trace.record import readable
from speculative.trace.terminal import visible

TARGET, DRAFT = TableModel.random(7, seed=1, n_ctx=64), TableModel.random(7, seed=2, n_ctx=64)
NASTY = "</script><script>document.title = 'bad'</script><b>&amp;\u2028\n\""


def words(tokens):
    return "".join(f" w{token}" for token in tokens)


def generated(verifier=rejection, K=3, rng=5, temperature=1.0, n_tokens=30, **options):
    sampling = Sampling(temperature)
    sampler = SpeculativeSampler(
        TARGET, ModelDrafter(DRAFT, sampling=sampling), verifier=verifier, K=K, sampling=sampling
    )
    return sampler.generate([3, 1], n_tokens, rng, keep_probs=True, **options)


# ------------------------------------------------------------------------------------------------ records


class Interrupted(Exception):
    pass


def test_a_round_that_was_interrupted_can_be_added_again():
    """Wherever `decode` fails, the trace has either the whole round or nothing of it."""
    halves = {3: b"\xc3", 1: b"\xa9"}  # together one character
    decode = lambda tokens: b"".join(halves.get(token, b"%d" % token) for token in tokens).decode(errors="replace")  # noqa: E731
    rounds, n_failed = generated(n_tokens=12).rounds, 0
    expected = Trace([3, 1], decode)
    for step in rounds:
        expected.add(step)
    for n in range(60):
        left = [n]

        def failing(tokens):
            left[0] -= 1  # noqa: B023, used at once
            if left[0] == 0:  # noqa: B023
                raise Interrupted
            return decode(tokens)

        trace = Trace([3, 1], decode)
        trace.decode = failing
        for step in rounds:
            try:
                trace.add(step)
            except Interrupted:
                n_failed += 1
                trace.add(step)
        assert trace.rounds == expected.rounds
    assert n_failed > 50


def test_a_record_holds_what_the_round_holds():
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
        assert [guess["token"] for guess in record["guesses"]] == step.drafted.tolist()
        for i, guess in enumerate(record["guesses"]):
            p, q = step.target_probs[i], step.draft_probs[i]
            assert (
                guess["decision"]
                == ["accepted", "rejected", "dropped"][np.sign(i - step.n_accepted) + 1 if i >= step.n_accepted else 0]
            )
            assert (guess["p"], guess["q"]) == (p[guess["token"]], q[guess["token"]])
            assert guess["overlap"] == np.minimum(p, q).sum()
            assert {x: (a, b) for x, _, a, b in guess["top"]} == {x: (p[x], q[x]) for x in range(7)}
            assert all(share == residual(p, q)[x] for x, _, share in guess["residual"])
            assert [share for *_, share in guess["residual"]] == sorted(
                residual(p, q)[residual(p, q) > 0], reverse=True
            )[:5]
        assert (
            record["next"]["token"] == step.tokens[-1]
            and record["next"]["p"] == step.target_probs[step.n_accepted][step.tokens[-1]]
        )


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_the_decisions_follow_from_the_numbers_in_the_file(tmp_path, temperature):
    """The decisions of rejection sampling can be recomputed from the file, without a model."""
    Trace.of(generated(temperature=temperature, n_tokens=60), words).save(tmp_path / "t.jsonl")
    seen = set()
    for line in (tmp_path / "t.jsonl").read_text("utf-8").splitlines()[1:]:
        record = json.loads(line)
        for guess in record["guesses"]:
            seen.add(guess["decision"])
            assert (guess["u"] is None) == (guess["decision"] == "dropped")
            if guess["u"] is not None:
                assert (guess["u"] * guess["q"] < guess["p"]) == (guess["decision"] == "accepted")
        assert record["next"]["u"] == record["uniforms"][-1]
    assert seen == {"accepted", "rejected", "dropped"}


@pytest.mark.parametrize(
    ("verifier", "n_tests"),
    [
        (rejection, lambda k, n: min(n + 1, k)),
        (Lenient(0.5), lambda k, n: min(n + 1, k)),
        (block, lambda k, n: k),
        (exact_match, lambda k, n: n),  # the draw that differs is the next token's own
        (Typical(), lambda k, n: 0),
    ],
)
def test_each_number_is_where_it_decided(verifier, n_tests):
    generation = generated(verifier, n_tokens=60)
    for step, record in zip(generation.rounds, Trace.of(generation, words).rounds):
        k, n = len(step.drafted), step.n_accepted
        numbers = [guess["u"] for guess in record["guesses"] if guess["u"] is not None]
        own = n_tests(k, n) + (verifier is exact_match and n < k)
        assert numbers == list(step.uniforms[:own]) and record["guesses"][:own] == [
            g for g in record["guesses"] if g["u"] is not None
        ]


def of_trees(n_tokens=60, verifier=rejection, n_ctx=64):
    target, draft = (TableModel.random(3, seed=seed, n_ctx=n_ctx) for seed in (1, 2))
    drafter = TreeDrafter(draft, [-1, -1, 0, 0, 1, 3], "without")
    sampler = SpeculativeSampler(ByPaths(target), drafter, verifier=verifier, K=3)
    return sampler.generate([0], n_tokens, 7, keep_probs=True)


@pytest.mark.parametrize("verifier", [rejection, exact_match])
def test_a_tree_is_recorded_in_the_order_of_its_tests(tmp_path, verifier):
    generation = of_trees(verifier=verifier)
    trace = Trace.of(generation, words, {"verifier": verifier.__name__})
    trace.save(tmp_path / "t.jsonl")
    assert Trace.load(tmp_path / "t.jsonl").rounds == trace.rounds
    for step, record in zip(generation.rounds, trace.rounds):
        guesses = record["guesses"]
        accepted = [i for i, guess in enumerate(guesses) if guess["decision"] == "accepted"]
        assert [guesses[i]["token"] for i in accepted] == step.tokens[: step.n_accepted].tolist()
        if step.parents is None:
            continue
        assert [guesses[i]["parent"] for i in accepted] == [-1, *accepted][: len(accepted)]
        assert sorted(guess["token"] for guess in guesses) == sorted(step.drafted.tolist())
        tested = [guess for guess in guesses if guess["decision"] != "dropped"]
        assert tested == guesses[: len(tested)]
        if verifier is rejection:
            assert [guess["u"] for guess in tested] == list(step.uniforms[:-1])
            for guess in tested:
                assert (guess["u"] * guess["q"] < guess["p"]) == (guess["decision"] == "accepted")
        line = round_line(record)
        assert line.count("~") == 2 * (len(tested) - step.n_accepted) and f"{step.n_accepted}/{len(guesses)}" in line
        assert notebook.round_html(step).count("<tr>") == len(guesses) + 2
    assert trace.summary["acceptance_by_position"] == pytest.approx(generation.stats.acceptance_by_position)
    assert trace.summary["tokens_per_target_call"] == generation.stats.tokens_per_target_call


@pytest.mark.parametrize("parent", [1, 0.5, -2, None])
def test_a_file_with_what_is_no_tree_is_refused(tmp_path, parent):
    trace = Trace.of(of_trees(), words)
    record = next(record for record in trace.rounds if "parent" in record["guesses"][0])
    record["guesses"][0]["parent"] = parent
    if parent is None:
        del record["guesses"][0]["parent"]
    trace.save(tmp_path / "t.jsonl")
    with pytest.raises(ValueError, match="expected a trace"):
        Trace.load(tmp_path / "t.jsonl")


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


def test_the_cache_is_that_of_the_model(tiny_pair):
    target, draft, tokenizer = tiny_pair
    calls = []

    class Watched:
        n_vocab, n_ctx = target.n_vocab, target.n_ctx

        def __call__(self, tokens, n_last=1):
            before = target.cache.length
            logits = target(tokens, n_last)
            calls.append((before, target.cache.length))
            return logits

    prompt = tokenizer.encode("There was once a poor man")
    target.reset()
    sampler = SpeculativeSampler(Watched(), ModelDrafter(draft), K=4)
    records = Trace.of(sampler.generate(prompt, 30, 0), tokenizer.decode).rounds
    assert len(records) == len(calls) and any(record["cache"]["dropped"] for record in records)
    for (before, after), record in zip(calls, records):
        cache = record["cache"]
        assert cache["reused"] + cache["dropped"] == before and cache["reused"] + cache["computed"] == after


def test_without_probabilities_and_with_nothing_drafted():
    alone = AutoregressiveSampler(TARGET).generate([1], 4, 0)
    records = Trace.of(alone).rounds
    assert [record["guesses"] for record in records] == [[]] * 4 and records[0]["next"]["origin"] == "plain"
    bare = Trace.of(speculative.collect([3, 1], generated().rounds), words)
    assert all("p" not in guess for record in bare.rounds for guess in record["guesses"])
    assert "kept without probabilities" in page(bare) and bare.summary["alpha"] is not None
    noise = SpeculativeSampler(TARGET, ModelDrafter(DRAFT), verifier=exact_match, K=3).generate([1], 9, Gumbel(3))
    assert all(record["uniforms"] == [] for record in Trace.of(noise).rounds)
    copying = SpeculativeSampler(TARGET, PromptLookupDrafter(7), K=3).generate([1, 2, 1, 2, 1], 9, 0, keep_probs=True)
    assert {guess["q"] for record in Trace.of(copying).rounds for guess in record["guesses"]} == {1.0}


def test_a_text_that_ends_in_mid_block():
    stopped = 0
    for seed in range(40):
        generation = generated(rng=seed, K=5, stop_tokens=[4])
        last = Trace.of(generation).rounds[-1]
        if generation.tokens[-1] == 4 and last["next"] is None:
            stopped += 1
            assert {guess["decision"] for guess in last["guesses"]} <= {"accepted", "dropped"}
            assert round_line(last).startswith(f"{len(last['tokens'])}/{len(last['guesses'])} accepted")
    assert stopped > 3


def test_the_summary_has_the_counts_of_the_generation():
    generation = generated(n_tokens=60)
    summary, stats = Trace.of(generation).summary, generation.stats
    for name in ("n_tokens", "target_calls", "tokens_per_target_call", "drafted", "accepted", "acceptance"):
        assert summary[name] == getattr(stats, name)
    assert summary["acceptance_by_position"] == stats.acceptance_by_position
    assert summary["alpha"] == stats.accepted / (stats.accepted + stats.rejected)


# ------------------------------------------------------------------------------------------------ characters in parts


@given(st.text(alphabet=["a", " ", "\u00e9", "\u20ac", "\U0001f40d"], max_size=12), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_parts_of_a_character_are_joined(text, seed):
    tokens, bytes_of = list(text.encode()), {byte: bytes([byte]) for byte in range(256)}

    def decode(ids):
        return b"".join(bytes_of[token] for token in ids).decode(errors="replace")

    rng, rounds, at = np.random.default_rng(seed), [], 0
    while at < len(tokens):
        n = int(rng.integers(1, 4))
        some, at = np.array(tokens[at : at + n]), at + n
        rounds.append(
            speculative.Round(
                some, some[:-1], len(some) - 1, dict.fromkeys(("draft", "target", "verify"), 0.0), None, None
            )
        )
    trace = Trace.of(speculative.Generation(np.array([97]), np.array(tokens), tuple(rounds)), decode)
    assert "".join(text for record in trace.rounds for text in record["texts"]) == text


# ------------------------------------------------------------------------------------------------ files


def test_a_trace_comes_back_from_its_file(tmp_path):
    trace = Trace.of(generated(), lambda tokens: NASTY * len(tokens), {"verifier": "rejection", "K": 3})
    trace.save(tmp_path / "t.jsonl")
    back = Trace.load(tmp_path / "t.jsonl")
    assert (back.rounds, back.prompt, back.text, back.about) == (trace.rounds, trace.prompt, trace.text, trace.about)
    assert back.summary == trace.summary and page(back) == page(trace)


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda lines: ["# A README", *lines], 1),
        (lambda lines: [], 1),
        (lambda lines: ['{"prompt": [1]}', *lines[1:]], 1),
        (lambda lines: ["[]", *lines[1:]], 1),
        (lambda lines: [*lines[:2], lines[2][:40], *lines[3:]], 3),
        (lambda lines: [*lines[:2], lines[2].replace('"texts"', '"text"'), *lines[3:]], 3),
        (lambda lines: [*lines[:3], lines[3].replace('"decision"', '"decided"')], 4),
        (lambda lines: [*lines[:3], "null"], 4),
        (lambda lines: [*lines[:2], re.sub(r'"text": "[^"]*"', '"text": 5', lines[2]), *lines[3:]], 3),
        (lambda lines: [lines[0].replace('" w3 w1"', "[]"), *lines[1:]], 1),
        (lambda lines: [*lines[:2], lines[2].replace('"correction"', '"corrected"'), *lines[3:]], 3),
        (lambda lines: [*lines[:2], re.sub(r'"texts": \[[^]]*\]', '"texts": []', lines[2]), *lines[3:]], 3),
        (lambda lines: [*lines[:2], lines[2].replace('"verify"', '"verified"'), *lines[3:]], 3),
        (lambda lines: [*lines[:2], lines[2].replace('"reused"', '"used"'), *lines[3:]], 3),
        (lambda lines: [*lines[:2], *lines[3:]], 3),  # a round is missing
        (lambda lines: [*lines[:3], *lines[2:]], 4),  # doubled
        (lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], 3),  # swapped
        (lambda lines: [lines[0], *lines[2:]], 2),
        (lambda lines: [*lines[:2], re.sub(r'"p": [^,]*', '"p": NaN', lines[2]), *lines[3:]], 3),
        (lambda lines: [*lines[:2], re.sub(r'"p": [^,]*', '"p": 1e999', lines[2]), *lines[3:]], 3),
        (lambda lines: [*lines[:2], re.sub(r'"p": [^,]*', '"p": "0.5"', lines[2]), *lines[3:]], 3),
        (lambda lines: [*lines[:2], re.sub(r'"p": [^,]*, ', "", lines[2]), *lines[3:]], 3),
        (lambda lines: [*lines[:2], re.sub(r'"top": \[\[', '"top": [[null, ', lines[2]), *lines[3:]], 3),
        (lambda lines: [*lines[:2], re.sub(r'"at": (\d+)', r'"at": "\1"', lines[2]), *lines[3:]], 3),
        (lambda lines: [*lines[:2], lines[2].replace('"uniforms": [', '"uniforms": [true, '), *lines[3:]], 3),
        (lambda lines: [*lines[:2], lines[2].replace('"at"', '"more": [1, {"x": -Infinity}], "at"'), *lines[3:]], 3),
        (lambda lines: [*lines[:2], lines[2].replace('"at"', '"more": ' + "[" * 99_999 + ', "at"'), *lines[3:]], 3),
        (lambda lines: [*lines[:2], lines[2].replace('"at"', f'"more": {"[" * 200 + "]" * 200}, "at"'), *lines[3:]], 3),
        (lambda lines: [*lines[:2], re.sub('"text": " w', r'"text": "\\ud83d', lines[2]), *lines[3:]], 3),
        (lambda lines: ["\ufeff" + lines[0], *lines[1:]], 1),
        (lambda lines: [lines[0].replace('"about": {', '"about": {"K": NaN, '), *lines[1:]], 1),
        (lambda lines: [lines[0].replace('"about": {', '"about": {"K": ' + "[" * 99_999), *lines[1:]], 1),
        (lambda lines: [lines[0].replace('"about": {}', '"about": []'), *lines[1:]], 1),
        (lambda lines: [lines[0].replace('"trace": 1', '"trace": 2'), *lines[1:]], 1),
        (lambda lines: ["", *lines], 1),
    ],
)
def test_another_file_is_refused_with_its_line(tmp_path, damage, line):
    path = tmp_path / "t.jsonl"
    Trace.of(generated(), words).save(path)
    path.write_text("\n".join(damage(path.read_text("utf-8").splitlines())), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"t.jsonl, line {line}: expected a trace as Trace.save") as error:
        Trace.load(path)
    assert str(error.value).isprintable() and len(str(error.value)) <= 500


def test_a_line_ends_where_it_ends(tmp_path):
    """Other programs write U+2028 and the like unescaped; in JSON they are ordinary characters."""
    path, odd = tmp_path / "t.jsonl", " \u2028 \u2029 \u0085 \u00e9"
    Trace.of(generated(), lambda tokens: odd).save(path)
    lines = [json.dumps(json.loads(line), ensure_ascii=False) for line in path.read_text("utf-8").splitlines()]
    path.write_bytes("\r\n".join([*lines, ""]).encode())
    assert Trace.load(path).text == odd == Trace.load(path).rounds[0]["texts"][0]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_json_lacks_is_not_written(tmp_path, bad):
    for trace in (Trace([1], about={"K": [bad]}), Trace.of(generated())):
        if trace.rounds:
            trace.rounds[1]["guesses"][0]["p"] = bad
        for write in (page, lambda trace: trace.save(tmp_path / "t.jsonl")):
            with pytest.raises(ValueError, match="expected finite numbers in a trace, got NaN or infinity"):
                write(trace)
    assert not (tmp_path / "t.jsonl").exists()


def test_what_a_later_version_may_add_is_kept(tmp_path):
    trace = Trace.of(generated(), words, {"seed": 2**70, "more": [{"deep": [None, True]}]})
    trace.rounds[0]["parents"] = [-1, 0, 0.5]
    trace.save(tmp_path / "t.jsonl")
    back = Trace.load(tmp_path / "t.jsonl")
    assert back.rounds == trace.rounds and back.about == trace.about


# ------------------------------------------------------------------------------------------------ pictures


def test_a_round_as_a_line():
    texts = {" so": "accepted", "\nx": "rejected", " y": "dropped"}
    guesses = [{"text": text, "decision": decision} for text, decision in texts.items()]
    record = {"guesses": guesses, "texts": [" so", " sad"], "next": {"text": " sad", "origin": "correction"}}
    assert round_line(record) == "1/3 accepted  | so|~\u23cex~|~ y~|[ sad]"
    coloured = round_line(record, coloured=True)
    assert "\033[32m so\033[0m|\033[9;31m\u23cex\033[0m|\033[2;9m y\033[0m|\033[31m sad\033[0m" in coloured


@pytest.mark.parametrize("coloured", [False, True])
def test_no_text_sends_control_characters_to_the_terminal(coloured):
    odd = "".join(map(chr, range(160))) + "\u2028\u202e\u2066\ud83d caf\u00e9 \U0001f40d"
    guess = {"text": odd, "decision": "accepted"}
    record = {"guesses": [guess], "texts": [odd, odd], "next": {"text": odd, "origin": "bonus"}}
    line = round_line(record, coloured)
    codes = ["\033[32m", "\033[34m", "\033[0m", "\t"]
    for code in codes[: 4 if coloured else 0]:
        line = line.replace(code, "")
    assert line.replace("\t", "").isprintable()
    assert "\u241b[" not in line and "\u241b" in line and "\\x9b" in line and "\\u202e" in line
    assert line.count(" caf\u00e9 \U0001f40d") == 2
    assert visible("a\tb\n\x1b[2J") == "a\tb\n\u241b[2J"


def test_a_small_number_has_two_digits_in_the_notebook():
    shown = [notebook.number(value) for value in (None, 0, 0.0, 0.5, 0.0006, 0.00012, -3e-9, 1)]
    assert shown == ["", "0.000", "0.000", "0.500", "0.001", "1.2e-04", "-3.0e-09", "1.000"]


def test_no_text_becomes_markup_in_the_page():
    made = page(Trace.of(generated(), lambda tokens: NASTY, {"target": {"name": NASTY}, "draft": {"name": NASTY}}))
    assert len(re.findall("<script", made)) == len(re.findall("</script", made)) == 2  # the data, and the program
    data = re.search(r'<script type="application/json" id="trace">(.*?)</script>', made, re.S).group(1)
    assert json.loads(data)["about"]["target"]["name"] == NASTY and not set("<>&") & set(data)
    assert html.escape(NASTY) in made and "http" not in made.replace("http-equiv", "")


def test_the_notebook_shows_rounds_and_generations():
    generation = generated()
    try:
        show_tokens_as(lambda tokens: NASTY if tokens == [4] else words(tokens))
        shown = generation._repr_html_()
        assert f"30 tokens in {len(generation.rounds)} target calls" in shown and "<script" not in shown
        assert shown.count(">|</span>") == len(generation.rounds) and "&lt;/script&gt;" in shown
        rows = re.findall("<tr>.*?</tr>", generation.rounds[0]._repr_html_(), re.S)
        assert len(rows) == len(generation.rounds[0].drafted) + 2 and "<th>q</th>" in rows[0]
        assert f"{generation.rounds[0].uniforms[0]:.3f}" in rows[1]
    finally:
        show_tokens_as(notebook.as_ids)
    assert " 3 1" in generation._repr_html_()


@given(st.lists(st.sampled_from(sorted(set("Aé世😀\ufffd".encode()) | {0x80, 0xFF})), max_size=12))
@settings(deadline=None, derandomize=True, max_examples=500)
def test_texts_of_bytes_add_up_to_the_text(tokens):
    def decode(tokens):
        return bytes(tokens).decode("utf-8", "replace")

    held_back = []
    texts = [readable(token, held_back, decode) for token in tokens]
    assert "".join(texts) + decode(held_back) == decode(tokens)
    assert len(held_back) <= 3 and decode(held_back).endswith("\ufffd" * bool(held_back))


def test_a_draft_of_a_thousand_tokens_has_a_trace():
    target = TableModel([[1, 0], [1, 0]], n_ctx=5000)  # always token 0, so that one round takes the whole draft
    verifiers = [block, traversal]
    found = [
        SpeculativeSampler(target, PromptLookupDrafter(2), verifier=verifier, K=1500).generate([0] * 2000, 1501, 0)
        for verifier in verifiers
    ]
    assert np.array_equal(*(generation.tokens for generation in found))
    assert len(found[0].rounds[0].drafted) == 1500 and "accepted" in found[0].rounds[0]._repr_html_()


def test_numbers_near_the_largest_are_read_back(tmp_path):
    model = TableModel.random(3)
    generation = SpeculativeSampler(model, ModelDrafter(model), sampling=Sampling(1e305)).generate([1], 4)
    Trace.of(generation, about={"temperature": 1e305}).save(tmp_path / "t.jsonl")
    assert Trace.load(tmp_path / "t.jsonl").about["temperature"] == 1e305


def test_a_trace_from_a_file_takes_no_rounds(tmp_path):
    generation = AutoregressiveSampler(TableModel.random(3)).generate([1], 2)
    Trace.of(generation).save(tmp_path / "t.jsonl")
    trace = Trace.load(tmp_path / "t.jsonl")
    with pytest.raises(ValueError, match="takes no more rounds"):
        trace.add(generation.rounds[0])
    assert len(trace.rounds) == 2
