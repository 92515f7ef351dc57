"""Files of traces: written and read back, and refused with the line that is wrong."""

import json
import re

import pytest

from speculative.trace import Trace, page

NASTY = "</script><script>document.title = 'bad'</script><b>&amp;\u2028\n\""


def words(tokens):
    return "".join(f" w{token}" for token in tokens)


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
        (lambda lines: ["", *lines], 1),
        (lambda lines: ['{"prompt": [1]}', *lines[1:]], 1),
        (lambda lines: ["[]", *lines[1:]], 1),
        (lambda lines: ["\ufeff" + lines[0], *lines[1:]], 1),
        (lambda lines: [lines[0].replace('" w3 w1"', "[]"), *lines[1:]], 1),
        (lambda lines: [lines[0].replace('"about": {', '"about": {"K": NaN, '), *lines[1:]], 1),
        (lambda lines: [lines[0].replace('"about": {', '"about": {"K": ' + "[" * 99_999), *lines[1:]], 1),
        (lambda lines: [lines[0].replace('"about": {}', '"about": []'), *lines[1:]], 1),
        (lambda lines: [lines[0].replace('"trace": 2', '"trace": 1'), *lines[1:]], 1),
        (lambda lines: [lines[0], *lines[2:]], 2),
        (lambda lines: [*lines[:2], lines[2][:40], *lines[3:]], 3),
        (lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], 3),  # swapped
        (lambda lines: [*lines[:3], *lines[2:]], 4),  # doubled
        (lambda lines: [*lines[:3], "null"], 4),
        (lambda lines: [*lines[:3], lines[3].replace('"decision"', '"decided"')], 4),
    ],
)
def test_another_file_is_refused_with_its_line(tmp_path, generated, damage, line):
    path = tmp_path / "t.jsonl"
    Trace.of(generated(), words).save(path)
    path.write_text("\n".join(damage(path.read_text("utf-8").splitlines())), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"t.jsonl, line {line}: expected a trace as Trace.save") as error:
        Trace.load(path)
    assert str(error.value).isprintable() and len(str(error.value)) <= 500


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        ('"texts"', '"text"'),
        (r'"texts": \[[^]]*\]', '"texts": []'),
        ('"text": "[^"]*"', '"text": 5'),
        ('"text": " w', r'"text": "\\ud83d'),  # half of a character
        ('"correction"', '"corrected"'),
        ('"verify"', '"verified"'),
        ('"reused"', '"used"'),
        ('"p": [^,]*', '"p": NaN'),
        ('"p": [^,]*', '"p": 1e999'),
        ('"p": [^,]*', '"p": "0.5"'),
        ('"p": [^,]*, ', ""),  # p, q and the others are present together
        (r'"top": \[\[', '"top": [[null, '),
        (r'"top": \[\[\d+', '"top": [[0.5'),
        (r'"top": \[\[\d+, ', '"top": [['),
        (r'"at": (\d+)', r'"at": "\1"'),
        (r'"uniforms": \[', '"uniforms": [true, '),
        (r'"parent": -1', '"parent": 0'),  # it would follow itself
        (r'"parent": -1', '"parent": -1.0'),
        (r'"parent": -1', '"parent": -2'),
        (r'"parent": -1, ', ""),
        ('"at"', '"more": [1, {"x": -Infinity}], "at"'),
        ('"at"', '"more": ' + "[" * 99_999 + ', "at"'),
    ],
)
def test_a_round_of_another_form_is_refused(tmp_path, generated, pattern, replacement):
    path = tmp_path / "t.jsonl"
    Trace.of(generated(), words).save(path)
    lines = path.read_text("utf-8").splitlines()
    damaged = re.sub(pattern, replacement, lines[2], count=1)
    assert damaged != lines[2]
    path.write_text("\n".join([*lines[:2], damaged, *lines[3:]]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"t.jsonl, line 3: expected a trace"):
        Trace.load(path)


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [("prompt", [2**53 - 1], True), ("prompt", [2**53], False), ("prompt", [-1], False), ("trace", True, False)],
)
def test_a_value_at_the_edge_of_its_form(tmp_path, name, value, accepted):
    header = {"trace": 2, "prompt": [1], "text": "", "about": {}} | {name: value}
    (tmp_path / "t.jsonl").write_text(json.dumps(header))
    if accepted:
        assert Trace.load(tmp_path / "t.jsonl").prompt == value
    else:
        with pytest.raises(ValueError, match="line 1: expected a trace"):
            Trace.load(tmp_path / "t.jsonl")


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
            with pytest.raises(ValueError, match="expected finite numbers in a trace, got NaN or infinity"):
                write(trace)
    assert not (tmp_path / "t.jsonl").exists()
