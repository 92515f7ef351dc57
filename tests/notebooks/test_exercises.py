"""The checks of the exercises: other ways to be right pass, and every sentence that they can say is said to a mistake.

The answers are in students/exercises: most mistakes are edits of the solutions.
"""

import ast
import functools
import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from students.exercises import FOLDER, early, late, solution, styles
from students.exercises.styles import Called, without_replacement_from_the_library

import gpt2np
import gpt2np.files.crc32c
import gpt2np.reference
import speculative
import speculative.theory
from speculative import rejection, tree
from speculative.logits.probs import sample_distinct

pytest.importorskip("nbformat", reason="pip install -e '.[notebooks]'")
pytestmark = pytest.mark.notebooks
FOUR = ["rows_of_a_round", "counts_of_a_round", "verify_masked", "end_of_round"]  # are checked together
EDITS = early.WRONG | late.WRONG


@pytest.fixture(autouse=True)
def checks_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)


def graded(number, i, answer):
    """Check an answer: a function, a class, or (the name of a solution, changes)."""
    [path] = FOLDER.glob(f"{number}_*.ipynb")
    check = getattr(importlib.import_module(f"checks.{path.stem.partition('_')[2]}"), f"exercise_{i}")
    name, *changes = answer if isinstance(answer, tuple) else [getattr(answer, "fills", "")]
    made = solution(number, name, *changes) if isinstance(answer, tuple) else answer
    answers = [made if name == one else solution(number, one) for one in FOUR] if name in FOUR else [made]
    with np.errstate(all="ignore"):
        return check(*answers)


@functools.cache
def refused(number, i, answer):
    """What a check says to a wrong answer."""
    with pytest.raises(AssertionError) as error:
        graded(number, i, answer)
    return str(error.value)


HEADER = "path.write_bytes(len(head).to_bytes(8, "
IN_PLACE_OF_0 = "np.finfo(np.float32).min"
RIGHT = [
    ("01", 1, ("merge", "return merged", "return tuple(merged)")),
    ("01", 1, styles.in_one_go),
    ("01", 2, ("encode_piece", "return [", "return __import__('numpy').array([", "symbols]", "symbols])")),
    ("01", 3, styles.Incrementally),
    ("02", 1, ("my_layer_norm", "centred = x", "x = x.astype(float); centred = x", "eps) + b", "eps) + b.tolist()")),
    ("02", 2, styles.split_into_three),
    ("02", 2, ("my_head", "-np.inf", IN_PLACE_OF_0)),
    ("02", 4, ("my_count", "return (", "return 1.0 * (")),
    ("03", 1, ("n_that_stay", "return n", "return np.int64(n)")),
    ("03", 2, ("attend", "-np.inf", "-1e9")),
    ("03", 3, ("CachedModel", "self.tokens = tokens", "self.tokens = tuple(tokens)", "n = n", "n = np.int64(1) * n")),
    ("04", 1, ("my_probs", "return p / p.sum()", "return (p / p.sum()).tolist()")),
    ("04", 2, ("my_top_p", "order = ", "order = len(probs) - 1 - ", "(-probs,", "(-probs[::-1],")),  # of a tie the last
    ("04", 3, styles.in_place),
    ("04", 3, ("my_draw", "return int(", "return np.array(")),
    ("05b", 1, lambda p, q: 1 - abs(p - q).sum() / 2),
    ("05b", 1, lambda p, q: sum(b * min(1, a / b) for a, b in zip(p, q) if b)),
    ("05b", 2, lambda p, q: np.maximum(p - q, 0) / (1 - np.minimum(p, q).sum()) if (p != q).any() else p),
    ("05b", 2, lambda p, q: [max(a - b, 0) / s for a, b in zip(p, q)] if (s := sum(np.maximum(p - q, 0))) else p),
    ("05b", 3, styles.by_recursion),
    *(("06", 1, way(solution("06", "my_expected_tokens"))) for way in (functools.partial, functools.cache, Called)),
    ("06", 1, styles.recursive),
    ("06", 1, lambda alpha, K: np.polyval(np.ones(K + 1), alpha)),
    ("06", 2, lambda a, c, v: np.argmax(np.cumsum(a ** np.arange(len(v))) / (np.arange(len(v)) * c + np.array(v)))),
    ("06", 3, lambda r: np.divide(*np.sum([(n, min(k, n + 1)) for k, n in r] or [(0, 0)], axis=0, dtype=float))),
    ("07", 1, styles.from_behind),
    ("07", 2, lambda c, s: [(a + np.sum(c > 0) * b) / (sum(c) + np.sum(c > 0)) if sum(c) else b for a, b in zip(c, s)]),
    ("07", 3, lambda p, q: np.array(solution("07", "acceptances")(p, q))),
    ("08", 1, lambda E, p: int(np.argmax(np.log(p) - np.log(E)))),
    ("08", 1, lambda E, p: min((e / x, i) for i, (e, x) in enumerate(zip(E, p)) if x > 0)[1]),
    ("08", 2, styles.lenient),
    ("08", 3, styles.by_arrays),
    ("09", 1, styles.own_matching),
    ("09", 1, styles.coin_with_p),
    ("10", 1, ("write_safetensors", HEADER, "head += b'   '; " + HEADER)),  # the header's length may be rounded up
    ("10", 2, ("read_varint", "return value | data[position] << shift, position + 1",
               "return [value | data[position] << shift, position + 1]")),
    ("10", 3, ("my_crc32c", "return register ^ 0xFFFFFFFF", "return np.uint32(register ^ 0xFFFFFFFF)")),
    ("11", 1, lambda q, k, rng: (pair for pair in solution("11", "without_replacement")(q, k, rng))),
    ("11", 1, ("without_replacement", "rng), row))", "rng), row.tolist()))")),
    ("11", 1, styles.drawn_recursively),
    ("11", 2, styles.mask_in_lists),
    ("11", 3, styles.grown),
    ("11", 3, lambda n, w: (list(node) for node in reversed(styles.grown(n, w)))),
    ("11", 3, lambda n, w: {np.array(node).tobytes(): np.array(node) for node in styles.grown(n, w)}.values()),
    ("12", 1, ("accepted_by_rank", "return np.array(", "return list(")),
    ("12", 1, lambda logits, tokens, n: (np.argsort(-logits)[:, :n] == tokens[:, None]).mean(axis=0)),
    ("12", 1, styles.among_the_first),
    ("12", 2, styles.in_parts),
    ("12", 3, ("Recycler", late.TREE, f"type(d := {late.TREE})(np.int32(d.tokens), np.float32(d.probs), d.parents)")),
    ("13", 1, lambda p, q: 1 - abs(p - q).sum(axis=1).mean() / 2),
    ("13", 1, lambda p, q: sum(min(a, b) for rows in zip(p, q) for a, b in zip(*rows)) / len(p)),
    ("13", 2, styles.in_a_loop),
    ("13", 3, styles.by_jacobians),
    ("13", 3, lambda z, p: styles.Tensor(styles.by_jacobians(z, p))),
    ("14", 1, functools.partial(lambda F, B, b, K: max(n for n in range(1000) if 2 * n * (K + 1) / F <= b / B))),
    ("14", 1, lambda F, B, b, K: np.floor((b / B) / (2 * (K + 1) / F))),
    ("14", 2, ("audit", late.BOTH, "[[1], [1]], [3, 3]", "small_target.distribution([0], 3)",
               "small_target.distribution([1], 3)", "([1], 2)", "([1], 3)")),
    ("14", 2, ("audit", "return max(", "return sum(")),
    ("15", 1, ("rows_of_a_round", "return np.array(", "return sampling(logits, [*text, *drafted]); np.array(")),
    ("15", 1, styles.one_after_the_other),
    ("15", 1, styles.cut_at_the_first_forbidden),
    ("15", 1, styles.cut_and_counted),
    ("15", 2, ("rounding_or_bug", "D_high < D_low / 1000", "D_high < 1e-4")),
]  # fmt: skip
WRONG = [
    *((number, i, hint, (name, *changes)) for (number, i, name), some in EDITS.items() for hint, *changes in some),
    ("01", 1, "compare whole symbols",
     lambda symbols, pair: " ".join(symbols).replace(" ".join(pair), "".join(pair)).split()),
    ("01", 2, "longest entry of the vocabulary", styles.longest_first),
    ("05b", 2, "q - p is the surplus", lambda p, q: np.maximum(q - p, 0)),
    ("05b", 2, "has the surplus in it", lambda p, q: abs(p - q) / 2),
    ("05b", 3, "first rejection", styles.goes_on_after_a_rejection),
    ("05b", 3, r"it accepts 0.* on average", styles.own_matching),
    ("05b", 3, "endless loop", styles.until_accepted),
    ("08", 3, "exact, but it accepts no more", styles.by_recursion),
    ("07", 3, "expected three numbers.* got 4", lambda p, q: [1, 1, 1, 1]),
    ("13", 3, "detach", lambda z, p: styles.Tensor(styles.by_jacobians(z, p), requires_grad=True)),
    ("14", 2, "draw no samples", styles.by_drawing),
    ("14", 3, "is another rule", lambda *given: speculative.exact_match(*given)),
]  # fmt: skip


OF_THE_LIBRARY = [
    ("01", 1, gpt2np.tokenizer.merge_pair),
    ("01", 3, gpt2np.StreamDecoder),
    ("02", 1, gpt2np.reference.layer_norm),
    ("02", 2, lambda x, w, b, head, n_head: gpt2np.reference.attention(x, w, b, n_head)),
    ("02", 3, gpt2np.reference.block),
    ("04", 1, lambda logits, temperature: speculative.Sampling(temperature)(logits[None])[0]),
    ("04", 3, speculative.sample_token),
    ("05b", 2, speculative.residual),
    ("05b", 3, speculative.rejection),
    ("05b", 4, type("MySampler", (speculative.SpeculativeSampler,), {})),
    ("05b", 4, styles.Delegating),
    ("06", 1, speculative.theory.expected_tokens),
    ("06", 2, functools.partial(lambda alpha, c, v: speculative.theory.best_K(alpha, c, v))),
    ("08", 3, lambda *given: speculative.block(*given)),
    ("10", 3, gpt2np.files.crc32c.crc32c),
    ("11", 1, lambda q, k, rng: without_replacement_from_the_library(q, k, rng)),
    ("11", 1, lambda q, k, rng: [(int(token), row) for token, row in zip(*sample_distinct(q, k, rng))]),
    ("11", 2, lambda parents, n_text: tree.visible(parents)),
    ("11", 3, lambda n, w: speculative.Shape.best(n, w)),
    ("12", 2, lambda head, h, seen: gpt2np.load_heads("tiny-target").logits(gpt2np.load("tiny-target")[0], h, seen)),
    ("12", 3, type("Recycler", (speculative.RecyclingDrafter,), {})),
    ("15", 1, styles.fills("verify_masked")(lambda *given: rejection(*given))),
]
RETURNS = "01-1 04-2 04-3 05b-2 06-2 06-3 07-2 08-1 08-2 09-3 11-1 11-2 11-3 12-1 12-2 13-1 13-2 13-3 14-1 14-2 15-2"


def nothing(*_):
    """An answer without a return."""


def name_of(value):
    return str(value) if isinstance(value, (str, int)) else ""


@pytest.mark.parametrize(("number", "i", "name"), EDITS, ids=name_of)
def test_the_solution_is_right(number, i, name):
    graded(number, i, (name,))


@pytest.mark.parametrize(("number", "i", "answer"), RIGHT, ids=name_of)
def test_a_right_answer_passes_in_any_form(number, i, answer):
    graded(number, i, answer)


@pytest.mark.parametrize(("number", "i", "hint", "answer"), WRONG, ids=name_of)
def test_a_wrong_answer_is_told_its_mistake(number, i, hint, answer):
    said = refused(number, i, answer)
    assert re.search(hint, said), said


@pytest.mark.parametrize(("number", "i", "answer"), OF_THE_LIBRARY, ids=name_of)
def test_the_library_is_no_answer(number, i, answer):
    said = refused(number, i, answer)
    assert re.search(r"comes with the library|the library's", said), said


@pytest.mark.parametrize("exercise", RETURNS.split())
def test_an_answer_without_a_return_is_told_so(exercise):
    number, i = exercise.split("-")
    assert "is a return missing" in refused(number, int(i), nothing)


def literal(part):
    return re.escape(str(part.value)).replace(r"\ ", " ") if isinstance(part, ast.Constant) else ""


def sentences(node):
    """Patterns of the sentences in a piece of code, but not of those that are returned or encoded."""
    if isinstance(node, (ast.Constant, ast.JoinedStr)):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        pattern = ".*".join(
            re.escape(str(part.value)) if isinstance(part, ast.Constant) else "" for part in parts if part
        )
        return {pattern} if pattern.count(" ") > 3 else set()
    silent = isinstance(node, (ast.Return, ast.Expr)) or "encode" == getattr(getattr(node, "func", 0), "attr", "")
    silent |= isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.col_offset == 0
    return set() if silent else set().union(*map(sentences, ast.iter_child_nodes(node)))


def test_every_sentence_of_the_checks_is_said_to_an_answer_or_listed():
    asked = [(number, i, answer) for number, i, *_, answer in [*WRONG, *OF_THE_LIBRARY]]
    asked += [(number, int(i), nothing) for number, i in (exercise.split("-") for exercise in RETURNS.split())]
    said = "\n".join(refused(*one) for one in asked)
    listed = Path(__file__).with_name("never_said.txt").read_text(encoding="utf-8").splitlines()
    unheard = []
    for styles.path in sorted((FOLDER / "checks").glob("[a-z]*.py")):
        patterns = sentences(ast.parse(styles.path.read_text(encoding="utf-8")))
        unheard += sorted(f"{styles.path.stem}: {pattern}" for pattern in patterns if not re.search(pattern, said))
    assert listed == [line.replace("\n", "|") for line in unheard]
