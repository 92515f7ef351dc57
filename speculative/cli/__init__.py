"""The command line: `python main.py`, `python -m speculative` and the installed `speculative-decoding`.

The way of a request: main.py finds the command and lets python-fire read its options (options.py); the command, a file
of commands/, builds models and drafters by name (inputs.py, registry.py), calls an experiment of experiments/,
and prints a table. Long measurements are saved part by part in a report (report.py), from which the same command
resumes. This is the only part of `speculative` that imports `gpt2np`.
"""
