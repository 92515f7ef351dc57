"""Parse the command line: a command, and options as texts. Everything is checked before python-fire calls the command.

python-fire is used because each option of this project is a keyword argument of a function: --name value, with hyphens
or underscores. No other feature of it is used: it would evaluate texts (2010-10-10 becomes 1990), read --noprompt as
--prompt False, and offer a console. Therefore it receives only --name=value, and is told to pass the value on as text.
Next: saved.py
"""

import re
from difflib import get_close_matches

import fire

from .options import FLAGS

AN_OPTION = re.compile(r"--|-[A-Za-z]")  # -1 and - are values


def parse(arguments, commands):
    """(command, dict of options as texts) of the arguments; the comparison has the name ""."""
    named = bool(arguments) and not AN_OPTION.match(arguments[0])
    name = arguments[0] if named else ""
    if name not in commands or (named and not name):  # "" as a word is not the comparison, which has no word
        raise ValueError(
            f"unknown command {cut(name)!r}{suggestion(name, commands)}: expected one of "
            f"{', '.join(filter(None, commands))}, or options, --name value, a text of several words in quotes"
        )
    command, rest, options = commands[name], arguments[named:], {}
    if command.word:
        if not rest or AN_OPTION.match(rest[0]):
            raise ValueError(f"{name} takes a file: {name} trace.jsonl")
        options[command.word], *rest = rest
    while rest:
        option, value, rest = first(rest, command)
        options[option] = value
    return command, options


def first(rest, command):
    """(option, value, remaining arguments) of arguments that start with an option."""
    argument, *rest = rest
    found = re.fullmatch(r"--([A-Za-z][\w-]*)(?:=(.*))?", argument, re.S)
    if not found:
        raise ValueError(
            f"unexpected {cut(argument)!r}: a command comes first, options are --name value, and a text of several "
            "words needs quotes; see --help"
        )
    name, value = found[1].replace("-", "_"), found[2]
    if name not in command.options:
        of = f" for {command.name}" if command.name else ""
        raise ValueError(
            f"unknown option --{cut(name)}{of}{suggestion(name, command.options, '--')}: expected one of "
            f"{', '.join(sorted(command.options, key=str.lower))}; see --help"
        )
    if value is None and rest and not AN_OPTION.match(rest[0]):
        value, *rest = rest
    if value is None and name in FLAGS:
        value = "True"
    if value is None:
        raise ValueError(f"{argument} needs a value; write one that starts with a hyphen as {argument}='-...'")
    return name, value, rest


def suggestion(name, names, before=""):
    """The most similar of some names, as a part of a sentence."""
    lower = {known.lower(): known for known in names if known}
    found = get_close_matches(name.lower().replace("-", "_"), lower, 1)
    return f" (did you mean {before}{lower[found[0]]}?)" if found else ""


def cut(text):
    return text if len(text) <= 60 else text[:57] + "..."


def call(command, options):
    """Let fire call the command with these options, all of them texts."""
    as_text = fire.decorators.SetParseFn(str)(lambda **options: command(**options))
    fire.Fire(as_text, command=[f"--{name}={value}" for name, value in options.items()])
