"""What options read: functions of the Options that return a dict, name -> paths and texts, whose digests a journal has.

A dict may contain more than one name, as a setting with a draft model reads two models.
"""

import os

from gpt2np.files.loading import read_tokenizer_of
from speculative.logits.automaton import parsed

from .brought import files_of as files_of_code
from .drafters import DRAFTERS, RULES, kind_of
from .files import read_text
from .models import ENGINES, folder_of, smallest


def of_nothing(options):
    return {}


def of_model(name, options):
    return {name: ENGINES[options.engine].contents(name, options)}


def of_engine(options):
    """The versions of an engine's packages."""
    versions = ENGINES[options.engine].versions()
    return {f"--engine {options.engine}": versions} if versions else {}


def of_target(options):
    return of_model(options.target_model_size, options)


def of_draft(options):
    if options.drafter != "model":
        return {}
    name = options.draft_model_size
    name = name or smallest(read_tokenizer_of(folder_of(options.target_model_size, options)))
    return of_model(name, options) if name else {}


def of_drafter(options):
    """The file trained for the target, or the code of a drafter of one's own."""
    if options.drafter not in DRAFTERS:
        return {options.drafter: files_of_code(options.drafter)}
    find = kind_of(options).file
    path = find and find(options.target_model_size)
    return {str(path): [path]} if path and path.is_file() else {}


def of_verifier(options):
    return {} if options.verifier in RULES else {options.verifier: files_of_code(options.verifier)}


def of_text(name):
    """The text of the file that this option names."""

    def reads(options):
        file = getattr(options, name)
        return {f"--{name} {file}": [read_text(file, name)]} if file else {}

    return reads


def of_grammar(options):
    is_file = os.path.exists(options.grammar)
    return {f"--grammar {options.grammar}": [pattern_of(options.grammar)]} if is_file else {}


def pattern_of(grammar):
    """The pattern of --grammar: the text itself, or if there is such a file, any of the patterns in its lines."""
    if not os.path.exists(grammar):
        return grammar
    lines = [line for line in read_text(grammar, "grammar").replace("\r", "\n").split("\n") if line]
    if not lines:
        raise ValueError(f"--grammar: {grammar} is empty: write a pattern per line")
    try:
        for line in lines:
            parsed(line)
    except ValueError as error:
        raise ValueError(f"--grammar: {grammar}: {error}") from None
    return "|".join(f"(?:{line})" for line in lines)
