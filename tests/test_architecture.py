"""Who imports whom: the rules of the layout, checked on the syntax trees."""

import ast
import subprocess
import sys

from helpers import ROOT

FILES = sorted(p.relative_to(ROOT) for folder in ("gpt2np", "speculative") for p in (ROOT / folder).rglob("*.py"))
MODULES = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}
RUN_TIME_DEPENDENCIES = {"numpy", "regex", "requests", "tqdm", "fire"}
ENGINES = {  # other engines, imported by the functions that need them, or by a module that is imported on request
    "speculative/models/transformers_model.py": {"torch"},
    "speculative/models/llama_cpp_model.py": {"llama_cpp"},
    "speculative/models/transformers_tokenizer.py": {"tokenizers"},
    "speculative/testing/forms.py": {"torch"},
    "speculative/testing/torch_draws.py": {"torch"},
    "speculative/testing/torch_functions.py": {"torch"},
    "speculative/testing/transformers_audit.py": {"torch", "transformers"},
    **{
        f"gpt2np/training/{name}.py": {"torch"}
        for name in ("folder", "kinds", "loop", "muon", "needs", "network", "text")
    },
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


def in_cli(path):
    return path.parts[:2] == ("speculative", "cli")


def test_only_the_command_line_imports_both_packages():
    """gpt2np never imports speculative; of speculative only speculative/cli imports gpt2np, and is imported by none."""
    for path in FILES:
        names = imports(path)
        packages, own = {name.split(".")[0] for name in names}, path.parts[0]
        assert own == "speculative" or "speculative" not in packages, path
        assert own == "gpt2np" or "gpt2np" not in packages or in_cli(path), path
        inside = in_cli(path) or path.as_posix() == "speculative/__main__.py"
        assert inside or not any(name.startswith("speculative.cli") for name in names), path


def test_nothing_imports_the_scripts():
    """dev/ has the training of the bundled models, benchmarks and what makes the pages."""
    scripts = {"dev", *(path.stem for path in (ROOT / "dev").rglob("*.py"))}
    for path in FILES:
        assert not {name.split(".")[0] for name in imports(path)} & scripts, path


def test_only_the_stated_dependencies():
    """In speculative NumPy alone; in speculative/cli also fire and tqdm, in functions matplotlib and engines."""
    for path in FILES:
        outside = {name.split(".")[0] for name in imports(path)} - set(sys.stdlib_module_names)
        outside -= {path.parts[0], *ENGINES.get(path.as_posix(), set())}
        if in_cli(path):
            allowed = {"numpy", "fire", "tqdm", "gpt2np", "matplotlib", "torch", "transformers"}
        else:
            allowed = {"numpy"} if path.parts[0] == "speculative" else RUN_TIME_DEPENDENCIES
        assert outside <= allowed, path


def test_no_cycles():
    graph = {name: imports(path) for name, path in MODULES.items()}
    done, pending = set(), set(graph)
    while ready := {name for name in pending if not (graph[name] & graph.keys()) - done}:
        done |= ready
        pending -= ready
    assert not pending


def test_importing_speculative_imports_only_numpy():
    code = (
        "import sys, speculative.models, speculative.testing; "
        "print(*{name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    outside = {name for name in found.split() if not name.startswith(("_", "sitecustomize"))}
    assert outside - {"speculative", "numpy", "cython_runtime"} == set(), outside  # the last comes with np.random


def test_the_command_line_imports_no_engine_before_it_needs_one():
    code = "import sys; from speculative.cli.commands import bench, compare, generate; import speculative.cli.main; "
    code += "print({'matplotlib', 'torch'} & {*sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert found == "set()\n"


def test_an_adapter_fits_a_page():
    for path in (ROOT / "speculative" / "models").glob("*_model.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):  # docstrings do not count
            body = getattr(node, "body", None)
            if isinstance(body, list) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
                body.pop(0)
        assert len(ast.unparse(tree).splitlines()) <= 60, path
