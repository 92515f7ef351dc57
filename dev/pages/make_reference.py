"""The API reference, made of the docstrings: python dev/pages/make_reference.py [FOLDER] (docs/reference).

Needs pdoc: python -m pip install -e ".[docs]". Open index.html in the folder afterwards.
"""

import importlib
import pkgutil
import sys
from pathlib import Path

import pdoc
from make_site import PACKAGES, can_be_imported

ROOT = Path(__file__).parents[2]


def modules():
    """What pdoc is to be given: all modules that can be imported.

    It finds by itself those of a package without __all__, and of a package with one only the names there.
    """
    for package in PACKAGES:
        yield package
        for _, name, _ in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if not can_be_imported(name):
                continue
            parent = importlib.import_module(name.rpartition(".")[0])
            if hasattr(parent, "__all__"):
                yield name


def make(folder):
    pdoc.render.configure(docformat="numpy", footer_text="speculative-decoding-numpy", math=False)
    pdoc.pdoc(*modules(), output_directory=Path(folder))


if __name__ == "__main__":
    make(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "reference")
