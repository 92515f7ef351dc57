"""Who imports whom: the rules of the layout, checked on the syntax trees."""

import ast
import subprocess
import sys

from helpers import ROOT

FILES = sorted(p.relative_to(ROOT) for folder in ("gpt2np", "speculative") for p in (ROOT / folder).rglob("*.py"))
MODULES = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}
RUN_TIME_DEPENDENCIES = {"numpy", "regex", "requests", "tqdm", "fire"}
ENGINES = {"matplotlib", "torch", "transformers", "llama_cpp", "tokenizers"}  # imported by what needs them


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


def test_who_imports_whom():
    """gpt2np never imports speculative; of speculative only speculative/cli imports gpt2np, and is imported by none.

    speculative needs NumPy alone; speculative/cli also fire, tqdm and requests. Nothing imports the scripts in dev/.
    """
    scripts = {"dev", *(path.stem for path in (ROOT / "dev").rglob("*.py"))}
    for path in FILES:
        names, in_cli = imports(path), path.parts[:2] == ("speculative", "cli")
        packages, own = {name.split(".")[0] for name in names}, path.parts[0]
        allowed = {"numpy"} if own == "speculative" else RUN_TIME_DEPENDENCIES
        if in_cli:
            allowed = {"numpy", "fire", "tqdm", "requests", "gpt2np"}
        assert packages - {own} - set(sys.stdlib_module_names) - ENGINES <= allowed, path
        assert in_cli or path.as_posix() == "speculative/__main__.py" or not any("speculative.cli" in n for n in names)
        assert not packages & scripts, path


def test_no_cycles():
    graph = {name: imports(path) for name, path in MODULES.items()}
    done, pending = set(), set(graph)
    while ready := {name for name in pending if not (graph[name] & graph.keys()) - done}:
        done |= ready
        pending -= ready
    assert not pending


def test_no_import_brings_more_than_it_needs():
    """Of speculative NumPy alone; of the command line no engine."""
    for statement, allowed in {
        "import speculative.models, speculative.testing": {"speculative", "numpy"},
        "import speculative.cli.main; from speculative.cli.commands import compare, generate": {
            *("speculative", "gpt2np", "numpy", "regex", "tqdm", "fire", "termcolor"),
        },
    }.items():
        code = f"{statement}; import sys; print(*{{name.split('.')[0] for name in sys.modules}})"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
        outside = {name for name in found.stdout.split() if not name.startswith(("_", "sitecustomize"))}
        assert outside - set(sys.stdlib_module_names) - {"cython_runtime"} <= allowed  # it comes with np.random
