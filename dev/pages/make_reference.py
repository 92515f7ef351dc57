"""The API reference, made of the docstrings: python dev/pages/make_reference.py [FOLDER] (docs/reference).

Needs pdoc: python -m pip install -e ".[docs]". Open index.html in the folder afterwards.
"""

import importlib
import pkgutil
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = "gpt2np", "speculative"
NEEDS_TORCH = "speculative.testing.torch_", "gpt2np.training"


def modules():
    """The modules to document: all that can be imported.

    pdoc itself finds those of a package without __all__, and of a package with one only the names there.
    """
    for package in PACKAGES:
        yield package
        for _, name, _ in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if not can_be_imported(name):
                continue
            parent = importlib.import_module(name.rpartition(".")[0])
            if hasattr(parent, "__all__"):
                yield name


def can_be_imported(module):
    """Whether its libraries are installed: a module that is not in the API reference is not linked."""
    return find_spec("torch") or not module.startswith(NEEDS_TORCH)


def make(folder):
    import pdoc

    pdoc.render.configure(docformat="numpy", footer_text="speculative-decoding-numpy", math=False)
    pdoc.pdoc(*modules(), output_directory=Path(folder))


if __name__ == "__main__":
    make(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "reference")
