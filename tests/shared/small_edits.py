"""Every small edit of a right verifier, and a thorough enumeration that decides which of them are wrong.

Two kinds: changes of one piece of syntax, at every place of a program (`of_syntax`), and changes of its test and of its
weights that depend on a number (`of_numbers`), such as a limit beyond which a draft token always passes.
"""

import ast
import itertools
from functools import cache

import numpy as np

from speculative import exact_distribution
from speculative.testing.cases import WAYS, Case, largest_difference
from speculative.testing.mistakes.edits import Edit, code_of
from speculative.testing.mistakes.verifiers import PROGRAMS
from speculative.tree import is_chain


def normalised(weights, otherwise):
    return weights / weights.sum() if weights.sum() > 0 else otherwise


def largest_only(row):
    return np.eye(len(row))[row.argmax()]


NAMES = {"np": np, "normalised": normalised, "largest_only": largest_only}

# ------------------------------------------------------------------------------------------------ of syntax

OTHER = {"p": "q", "q": "p", "joint": "joint_kept", "joint_kept": "joint", "share": "below", "below": "share"}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}  # the opposite
CALLS = {
    "residual": ("{0}", "{1}", "residual({1}, {0})", "abs({0} - {1})", "np.minimum({0}, {1})", "{0} * ({0} > {1})",
                 "np.maximum({0} - {1}, 0) + 1e-6"),
    "sample_token": ("int(({0}).argmax())", "sample_token(({0}) ** 2, rng)", "int(rng.integers(len({0})))"),
    "min": ("max({0}, {1})", "{0}", "{1}"),
    "np.maximum": ("np.minimum({0}, {1})", "{0}", "abs({0})"),
    "rng.random": ("0.5", "rng.random() / 2", "rng.random() ** 2"),
    "enumerate": ("[*enumerate({0})][:1]", "[*enumerate({0})][:2]", "[*enumerate({0})][::-1]", "enumerate({0}, 1)"),
    "draft.children": ("draft.children({0})[:1]", "draft.children({0})[:2]", "draft.children({0})[::-1]"),
    "len": ("(len({0}) - 1)", "(len({0}) + 1)"),
}  # fmt: skip


def of_syntax(program):
    """{name: edit} for one program."""
    code, found = code_of(PROGRAMS[program]), {}
    begins = [0]
    for line in code.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    for node in ast.walk(ast.parse(code)):
        if not hasattr(node, "lineno") or isinstance(node, (ast.FunctionDef, ast.arg)):
            continue
        begin, end = begins[node.lineno - 1] + node.col_offset, begins[node.end_lineno - 1] + node.end_col_offset
        line_begin, line_end = begins[node.lineno - 1], begins[node.end_lineno]
        old_line = code[line_begin:line_end]
        for text in replacements(node, code):
            new_line = code[line_begin:begin] + text + code[end:line_end]
            if new_line != old_line:
                name = f"{program}: {' '.join(old_line.split())} => {' '.join(new_line.split())}"
                found[name] = Edit(PROGRAMS[program], [(code, code[:begin] + text + code[end:])], NAMES)
    return found


def replacements(node, code):
    """Texts in place of a node of the syntax tree."""

    def text(part):
        return ast.get_source_segment(code, part)

    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in OTHER:
        yield OTHER[node.id]
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        yield from map(repr, (node.value + 1, node.value - 1) if isinstance(node.value, int) else (node.value / 2, 0.0))
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        left, right = text(node.left), text(node.comparators[0])
        yield from (f"{left} {sign} {right}" for sign in COMPARISONS.values())
    elif isinstance(node, ast.BinOp):
        left, right = text(node.left), text(node.right)
        yield from (left, right, f"{left} {OPERATORS[type(node.op)]} {right}")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield text(node.operand)
    elif isinstance(node, ast.IfExp):
        yield from (text(node.body), text(node.orelse))
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and not isinstance(node.slice, ast.Slice):
        rows, at = text(node.value), text(node.slice)
        if isinstance(node.slice, ast.Tuple):
            at, column = map(text, node.slice.elts)
            yield from (f"{rows}[{one}, {column}]" for one in (f"{at} - 1", f"{at} + 1", "0", "-1"))
        else:
            yield from (f"{rows}[{one}]" for one in (f"{at} - 1", f"{at} + 1", "0", "-1"))
        if at in ("x", "token"):
            yield from ("0.5", "1.0")  # a constant for a term
    elif isinstance(node, ast.Call):
        arguments = [*map(text, node.args)]
        if text(node.func).endswith(".sum"):
            yield f"{text(node.func.value)}.max()"
        yield from (pattern.format(*arguments) for pattern in CALLS.get(text(node.func), ()))
    elif isinstance(node, (ast.Assign, ast.Expr, ast.Return)):
        yield "pass"  # a skipped line
    elif isinstance(node, ast.Break) or (isinstance(node, ast.If) and text(node).startswith("if")):
        yield from ("pass", "continue")


# ------------------------------------------------------------------------------------------------ of numbers

TEST, REST, BONUS = "rng.random() * q[x] < p[x]", "residual(p, q)", "target_probs[-1]"
NUMBERS = 1e-4, 1e-3, 0.05, 0.2, 0.5, 0.8, 0.9, 0.99, 0.9999
RANKS = 1, 2, 5, 9
TESTS = (
    "({test} or {term} > {c})", "({test} or {term} < {c})", "({test} and not {term} > {c})",
    "({test} and not {term} < {c})",
)  # fmt: skip
TERMS = "p[x]", "q[x]", "p[x] / q[x]", "p.max()", "q.max()", "np.minimum(p, q).sum()"
RANKED = "(p > p[x]).sum()", "(q > q[x]).sum()", "(p / q > p[x] / q[x]).sum()"
WITH_A_NUMBER = [  # changes of the program; {c} is the number
    {TEST: "p[x] > {c}"}, {TEST: "p[x] > {c}", REST: "p"}, {TEST: "rng.random() < p[x] / (q[x] + {c})"},
    {TEST: "rng.random() * q[x] < p[x] + {c}"}, {TEST: "rng.random() * q[x] < p[x] * (1 - {c})"},
    {REST: "normalised(np.where(residual(p, q) < {c}, 0, residual(p, q)), p)"},
    {REST: "normalised(np.maximum(p - {c} * q, 0), p)"}, {REST: "normalised(residual(p, q) * (p > {c}), p)"},
    {REST: "(residual(p, q) if residual(p, q).max() < {c} else largest_only(residual(p, q)))"},
    {REST: "(residual(p, q) if np.maximum(p - q, 0).sum() > {c} else p)"},
    {BONUS: "normalised(np.where(target_probs[-1] < {c}, 0, target_probs[-1]), target_probs[-1])"},
    {BONUS: "(target_probs[-1] if target_probs[-1].max() < {c} else largest_only(target_probs[-1]))"},
]  # fmt: skip
WITHOUT = [
    {TEST: f"({TEST} and i > 0)"}, {TEST: f"({TEST} or i > 0)"}, {TEST: f"({TEST} or i > 2)"},
    {TEST: f"({TEST} or len(draft.tokens) > 2)"}, {TEST: f"({TEST} or len(draft.tokens) > 3)"},
    {TEST: f"({TEST} or x == 0)"}, {TEST: f"({TEST} or x == len(p) - 1)"}, {TEST: f"({TEST} or len(p) >= 5)"},
    {TEST: f"({TEST} or len(p) == 2)"}, {TEST: f"({TEST} or (i > 0 and x == draft.tokens[i - 1]))"},
    {TEST: f"({TEST} or p[x] == 1)"}, {TEST: f"({TEST} or q[x] == 1)"}, {TEST: "rng.random() * q[x] ** 2 < p[x] ** 2"},
    {TEST: "rng.random() ** 2 * q[x] < p[x]"}, {TEST: "rng.random() < p[x] / q.max()"},
    {TEST: "rng.random() < p[x] / p.max()"}, {TEST: "x in p.argsort()[-2:]"}, {TEST: "x == p.argmax()"},
    {TEST: "rng.random() * round(q[x], 2) < p[x]"}, {TEST: "rng.random() * q[x] < round(p[x], 2)"},
    {TEST: "rng.random() * np.float16(q[x]) < np.float16(p[x])"}, {REST: "normalised(residual(p, q) ** 2, p)"},
    {REST: "normalised(np.where(p - q > 1e-3, p - q, 0), p)"}, {REST: "normalised(np.maximum(p - q, 1e-5), p)"},
    {REST: "residual(p, (p + q) / 2)"}, {REST: "normalised(residual(p, q) * (np.arange(len(p)) < len(p) - 1), p)"},
    {REST: "normalised(residual(p, q) * (np.argsort(np.argsort(-p)) < 2), p)"},
    {BONUS: "(residual(target_probs[-1], draft.probs[-1]) if len(draft.probs) else target_probs[-1])"},
]  # fmt: skip


def of_numbers():
    """{name: edit} for the eight-line program."""
    limits = [*itertools.product(TERMS, NUMBERS), *itertools.product(RANKED, RANKS)]
    changes = [{TEST: one.format(test=TEST, term=term, c=c)} for term, c in limits for one in TESTS]
    changes += [{old: new.format(c=c) for old, new in one.items()} for one in WITH_A_NUMBER for c in NUMBERS]
    return {
        "chain: " + ", ".join(f"{old} => {new}" for old, new in one.items()): Edit(
            PROGRAMS["chain"], [*one.items()], NAMES
        )
        for one in [*changes, *WITHOUT]
    }


@cache
def small_edits():
    """{name: edit}, all of them."""
    found = of_numbers()
    for program in PROGRAMS:
        found |= of_syntax(program)
    return found


# ------------------------------------------------------------------------------------------------ the enumeration


def row(n_vocab, kind, rng):
    """A distribution: flat, nearly certain, certain, with zeros, peaked, or uniform."""
    weights = rng.dirichlet(np.full(n_vocab, 0.15 if kind == "peaked" else 1.0))
    if kind == "nearly certain":
        rest = 10.0 ** -rng.uniform(0.7, 5.5)
        weights = rest * weights + (1 - rest) * np.eye(n_vocab)[rng.integers(n_vocab)]
    elif kind == "certain":
        weights = np.eye(n_vocab)[rng.integers(n_vocab)]
    elif kind == "zeros":
        weights = weights * (rng.random(n_vocab) < 0.6)
    elif kind == "uniform":
        weights = np.ones(n_vocab)
    return normalised(weights, np.eye(n_vocab)[0])


KINDS = "flat", "nearly certain", "certain", "zeros", "peaked", "uniform"
CHAINS = [  # n_vocab, K or parents, number of cases
    (2, 1, 60), (3, 1, 80), (4, 1, 30), (2, 2, 30), (3, 2, 25), (5, 1, 10), (12, 1, 15), (2, 3, 8), (2, 4, 3),
    (3, 0, 3),
]  # fmt: skip
TREES = [(3, (-1, -1), 12), (4, (-1, -1, -1), 3), (3, (-1, 0, 0), 4), (2, (-1, 0, 0, -1, 3), 3)]


@cache
def thorough(trees):
    """The cases, the quick ones of each kind first."""
    rng, cases = np.random.default_rng(5), []
    shapes = [(*one, way) for one in TREES for way in WAYS] if trees else []
    for n_vocab, shape, n_cases, *way in [*((*one, "drawn independently") for one in CHAINS), *shapes]:
        for _ in range(n_cases):
            case = Case(n_vocab, shape if isinstance(shape, int) else list(shape), "random", rng, *way)
            for tokens in case.p:
                case.p[tokens], case.q[tokens] = (row(n_vocab, rng.choice(KINDS), rng) for _ in range(2))
                if rng.random() < 0.1:
                    case.q[tokens] = case.p[tokens]
            cases.append(case)
    order = np.random.default_rng(0).permutation(len(cases))
    return sorted((cases[i] for i in order), key=lambda case: case.K > 2 or not is_chain(case.parents))


def is_wrong(verifier):
    """Whether the distribution is wrong in a case, or the verifier fails there."""
    for case in thorough(getattr(verifier, "trees", False)):
        try:
            runs = exact_distribution(lambda rng, case=case: case.run(verifier, rng), max_leaves=50_000)
        except Exception:
            return True
        if largest_difference(case.continued(runs), case.wanted()) > 1e-9:
            return True
    return False
