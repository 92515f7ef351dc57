"""The rules of the layout, checked on the syntax trees."""

import ast
import subprocess
import sys

import pytest
from helpers import ROOT

FILES = sorted(p.relative_to(ROOT) for folder in ("gpt2np", "speculative") for p in (ROOT / folder).rglob("*.py"))
RUN_TIME = [path for path in FILES if path.name not in ("train.py", "train_heads.py", "tales.py", "muon.py")]
MODULES = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}
ALLOWED = {"numpy", "regex", "requests", "tqdm", "fire"}
ENGINES = {  # other engines, imported by the functions that need them, or by a module that is imported on request
    "speculative/adapters/transformers_model.py": {"torch"},
    "speculative/adapters/llama_cpp_model.py": {"llama_cpp"},
    "speculative/testing/torch_draws.py": {"torch"},
}


def imports(path):
    """The modules that a file imports, absolute: {"gpt2np.cache", "numpy", ...}."""
    package, found = path.with_suffix("").parts[:-1], set()
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*package[: len(package) - node.level + 1], *(node.module or "").split(".")]).rstrip(".")
            base = base if node.level else node.module
            modules = {f"{base}.{alias.name}" for alias in node.names} & MODULES.keys()
            found |= modules or {base}
    return found


@pytest.mark.parametrize("path", FILES, ids=str)
def test_the_two_packages_do_not_know_each_other(path):
    other = {"gpt2np": "speculative", "speculative": "gpt2np"}[path.parts[0]]
    assert not [name for name in imports(path) if name.split(".")[0] == other]


@pytest.mark.parametrize("path", RUN_TIME, ids=str)
def test_only_the_stated_dependencies(path):
    outside = {name.split(".")[0] for name in imports(path)} - set(sys.stdlib_module_names) - {path.parts[0]}
    outside -= ENGINES.get(path.as_posix(), set())
    assert outside <= ALLOWED
    if path.parts[0] == "speculative":
        assert outside <= {"numpy"}


def test_only_loading_joins_readers_and_model():
    """Only loading.py imports both a reader of files and the model."""
    readers = {"gpt2np.safetensors", "gpt2np.tokenizer"}
    both = [path.name for path in RUN_TIME if imports(path) & readers and "gpt2np.model" in imports(path)]
    assert sorted(both) == ["__init__.py", "loading.py"]


def test_no_cycles():
    graph = {name: imports(path) for name, path in MODULES.items()}
    done, pending = set(), set(graph)
    while ready := {name for name in pending if not (graph[name] & graph.keys()) - done}:
        done |= ready
        pending -= ready
    assert not pending


@pytest.mark.parametrize("path", FILES, ids=str)
def test_no_global_randomness_and_no_super(path):
    """Two exceptions for the graders, which get students' objects of any type: they may look at types, and watch.py
    looks at the state of NumPy's global generator, to detect who draws from it."""
    source, grades = (ROOT / path).read_text(encoding="utf-8"), path.parts[:2] == ("speculative", "testing")
    allowed = {"default_rng", "Generator", "PCG64"} | ({"get_state"} if path.name == "watch.py" else set())
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
            assert node.attr in allowed, f"{path}:{node.lineno}: np.random.{node.attr}"
        if isinstance(node, ast.Call) and path.parts[0] == "speculative":
            called = ast.unparse(node.func)
            by_name = called[0].isupper() and "." in called and node.args and ast.unparse(node.args[0]) == "self"
            assert called != "super" and not by_name, f"{path}:{node.lineno}: {called}, a call of the base class"
    if path.parts[0] == "speculative":
        assert "isinstance(" not in source or path.name == "exact.py" or grades


def test_importing_speculative_imports_only_numpy():
    code = (
        "import sys, speculative.adapters, speculative.testing; "
        "print(*{name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    outside = {name for name in found.split() if not name.startswith(("_", "sitecustomize"))}
    assert outside - {"speculative", "numpy", "cython_runtime"} == set(), outside  # the last comes with np.random


def code_lines(tree):
    """How many lines the code has without docstrings, comments and blank lines."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body.pop(0)
    return len([line for line in ast.unparse(tree).splitlines() if line.strip()])


def test_an_adapter_fits_a_page():
    adapters = (ROOT / "speculative" / "adapters").glob("*_model.py")
    assert all(code_lines(ast.parse(path.read_text("utf-8"))) <= 50 for path in adapters)


def test_files_stay_small_enough_to_read():
    assert {str(path): n for path in RUN_TIME if (n := len((ROOT / path).read_text("utf-8").splitlines())) > 260} == {}


def test_the_forward_pass_stays_small():
    """A budget for each file that a pass goes through, in code lines; reference.py is the page to print."""
    budget = {
        "reference": 45,
        "layers": 90,
        "cache": 35,
        "token_tree": 65,
        "model": 95,
        "matmul": 160,
        "panels": 105,
        "threads": 80,
        "cores": 60,
    }
    found = {name: code_lines(ast.parse((ROOT / "gpt2np" / f"{name}.py").read_text("utf-8"))) for name in budget}
    assert {name: n for name, n in found.items() if n > budget[name]} == {}, found
    assert all(n > 0.6 * budget[name] for name, n in found.items()), f"a budget is for what is there: {found}"


def test_a_round_fits_a_slide():
    tree = ast.parse((ROOT / "speculative" / "sampler.py").read_text("utf-8"))
    one_round = next(node for node in ast.walk(tree) if getattr(node, "name", "") == "one_round")
    assert code_lines(one_round) <= 14
